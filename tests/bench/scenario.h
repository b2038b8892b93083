/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scenario.h - what is measured, as data. A row of the table is one traffic and all the subjects that it is sent to: they are
 * measured side by side, each compared with XDP_DROP in the same rounds. Rows are repeated for each number of sources and of
 * prefixes that was asked for.
 */
#ifndef BENCH_SCENARIO_H
#define BENCH_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

enum subject_id {
	SUBJECT_DROP,	   /* a bare XDP_DROP */
	SUBJECT_TABLE,	   /* ours, store `table` */
	SUBJECT_LRU,	   /* ours, store `lru` */
	SUBJECT_GCRA,	   /* gcra.bpf.c */
	SUBJECT_SKB,	   /* a frame that is dropped where nftables sees it, and no limiter */
	SUBJECT_HASHLIMIT, /* iptables, xt_hashlimit */
	SUBJECT_NFT,	   /* nftables, a set with a limit for each element */
	SUBJECTS,
};

enum drive {
	DRIVE_RUN,  /* BPF_PROG_TEST_RUN: the program alone */
	DRIVE_VETH, /* real frames, into a veth */
};

enum levels {
	LEVELS_SOURCE,
	LEVELS_ALL, /* source, tenant and device */
};

enum verdict {
	PASSING,  /* 148.8 Mpps: within every limit */
	REJECTED, /* 1/h: all but each source's first packet */
};

/* What a row tells of a subject. */
enum compare {
	OVER_DROP,     /* ns over XDP_DROP; a ratio to ours, of ours to XDP_DROP */
	NEW_TO_KNOWN,  /* ns over XDP_DROP of new sources' packets, against known ones' */
	TWO_CPUS_TO_1, /* packets a second of two CPUs against one, over XDP_DROP's own */
};

struct scenario {
	enum drive drive;
	__u8 family; /* 4 or 6 */
	__u32 sources;
	__u32 prefixes; /* in the policy; 1: `any` */
	enum levels levels;
	enum verdict verdict;
	enum compare compare;
	unsigned int subjects; /* 1 << enum subject_id */
};

#define SCENARIO_NAME 64

/* What was asked for. Ends of lists: 0. */
struct scenario_choice {
	__u32 sources[9];
	__u32 prefixes[9];
	bool lru;	  /* SUBJECT_LRU in the place of SUBJECT_TABLE */
	const char *only; /* an extended regular expression that names match */
};

/* *out is allocated; the caller frees it. What has no subject left isn't in it. -EINVAL where `only` is none. */
int scenarios_make(const struct scenario_choice *choice, struct scenario **out, size_t *count);

/* "veth/ip4/nft/16Ki/p1/source/passing". Returns buf. */
const char *scenario_name(const struct scenario *scenario, enum subject_id subject, char buf[SCENARIO_NAME]);

const char *subject_name(enum subject_id subject);

/* "memory/table": is it wanted? */
bool scenario_wants(const struct scenario_choice *choice, const char *name);

#endif

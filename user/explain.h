/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain.h - what would become of one packet: which limits it is held to and why, what their buckets hold,
 * when it would pass. Pure, in two steps: the limits from a snapshot, then, once their buckets are read, the
 * rest.
 *
 * The same order and arithmetic as the packet path's: a source that has no bucket yet takes one from `new`, and is then given
 * a place, if there is room (trial.h); likewise its classes. Then source, classes, tenant, device: all are looked at, and the
 * first that has too little gives the reason.
 */
#ifndef RL_EXPLAIN_H
#define RL_EXPLAIN_H

#include "snapshot.h"
#include "trial.h"

#define RL_EXPLAIN_LEVELS (RL_MAX_CLASSES + 3)	   /* source, classes, tenant, new */
#define RL_EXPLAIN_WIDER  (RL_PREFIX_MAX_BITS + 1) /* prefixes that can be around one address */
#define RL_EXPLAIN_NEVER  RL_TRIAL_NEVER
#define RL_EXPLAIN_BYTES  60 /* of a packet where nothing else is said: the smallest frame */

struct rl_explain_packet {
	struct rl_prefix source; /* one address */
	__u32 bytes;
	__u16 port; /* the service's; 0: none */
	__u8 kinds; /* enum rl_kind */
};

/* The packet in the operator's words; NULL: not said. */
struct rl_explain_words {
	const char *address;
	const char *proto; /* "tcp", "udp", "icmp", or a number */
	const char *dport;
	const char *bytes;
	int syn;
	int frag;
};

/*
 * RL_ERROR_USAGE for an address that is none or a prefix, and for what no packet can be: a port without a
 * protocol that has ports, a fragment with a port, --syn on what isn't TCP.
 */
int rl_explain_parse(const struct rl_explain_words *words, struct rl_explain_packet *out,
		     struct rl_error *err);

/* Why this limit, or none. */
enum rl_explain_why {
	RL_EXPLAIN_LONGEST,   /* of the prefixes that have a limit, it is the longest around the source */
	RL_EXPLAIN_ALLOWED,   /* likewise, and it allows */
	RL_EXPLAIN_DENIED,    /* likewise, and it denies */
	RL_EXPLAIN_NO_PREFIX, /* no prefix with a limit is around the source */
	RL_EXPLAIN_WHYS,
};

/* A bucket of one unit, in tokens: packets or bytes. */
struct rl_explain_unit {
	bool limited; /* the rest is zero otherwise */
	__u64 burst;
	__u64 left; /* whole tokens in it */
	__u64 kept; /* of those, kept for packets of a higher priority */
	__u64
	    wait; /* ns until it has enough for the packet if nothing else comes; RL_EXPLAIN_NEVER: it can't hold so much */
};

struct rl_explain_level {
	const struct rl_limit_stats *limit; /* in the snapshot; NULL: none holds (a device's) */
	/* Filled in between the two steps. */
	bool found; /* it has a bucket */
	struct rl_trial
	    trial; /* otherwise, of source and classes in a table: what then. All zero: it is given a full one */
	struct rl_buckets buckets;
	struct rl_tally tally; /* of the source */
	/* Computed. Without room for the source: its neighbourhood's; no unit is limited where it has none either. */
	struct rl_explain_unit unit[RL_UNITS];
	__u64
	    wait; /* ns until it admits the packet: the longer of the units', or less where there is room before */
};

struct rl_explain_device {
	const struct rl_device_stats *device; /* in the snapshot */
	struct rl_explain_level level;	      /* its own limit */
	enum rl_reason reason;		      /* the packet's, now */
	__u64 wait;			      /* ns until the packet passes; 0: now */
};

struct rl_explain {
	struct rl_explain_packet packet;
	enum rl_explain_why why;
	const struct rl_limit_stats *limit;		      /* NULL: NO_PREFIX */
	const struct rl_limit_stats *wider[RL_EXPLAIN_WIDER]; /* that were not taken, widest first */
	size_t wider_count;
	const struct rl_limit_stats *tenant_from; /* the prefix that says the tenant; NULL: none has one */
	struct rl_prefix source;		  /* the address cut to what has one bucket */
	__u32 cost; /* packet tokens, in all buckets but those of classes and `new` */
	enum rl_priority priority;
	enum rl_when_full when_full; /* what becomes of sources without room */
	/*
	 * level[0] is the source's where it is limited; then classes, tenant, and last `new` where the source has no
	 * bucket.
	 */
	struct rl_explain_level level[RL_EXPLAIN_LEVELS];
	size_t level_count;
	struct rl_explain_device device[RL_MAX_DEVICES];
	size_t device_count;
};

/*
 * Which limits hold the packet, on each device of the snapshot that isn't gone, or on the one of this name
 * (NULL: all). `new` counts as long as the source isn't found. The snapshot needs devices, limits and counts,
 * and must outlive *out.
 */
void rl_explain_begin(const struct rl_snapshot *snapshot, const struct rl_explain_packet *packet,
		      const struct rl_device_stats *only, struct rl_explain *out);

/* Once `found`, `trial`, `buckets` and `tally` of each level are filled in. `now`: CLOCK_MONOTONIC, ns. */
void rl_explain_finish(struct rl_explain *explain, __u64 now);

/* The level of `new`, where the source has no bucket and asks for one; or NULL. */
const struct rl_explain_level *rl_explain_new(const struct rl_explain *explain);

/* The table has no room for the level's source, which has no bucket. */
bool rl_explain_no_room(const struct rl_explain_level *level);

const char *
rl_explain_why_name(enum rl_explain_why why);	/* "longest_prefix", "allowed", "denied", "no_prefix" */
const char *rl_level_name(enum rl_level level); /* "source", "class", "tenant", "device", "new" */

#endif

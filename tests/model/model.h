/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * model.h - what the limiter is meant to do, written down a second time, to be compared with what it does.
 *
 * It shares no code with bpf/: no word with a time in it, no compare-and-swap, no slots, no trie, no hash. A policy is a
 * list of limits, each with the terms that the operator gave; buckets are levels (level.h). A change converts every bucket
 * at once, at the moment of the change, where the program does it for each bucket when its next packet comes.
 *
 * Two things are taken over, since without them nothing could be compared without tolerance:
 *   - the quantum: rate, burst, reserve and the most that can be owed, as user/limit.c made whole units of them;
 *   - the rounding of a conversion, which model_convert() holds against the exact quotient each time.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stddef.h>

#include "level.h"

#define MODEL_LIMITS  160
#define MODEL_SOURCES 256 /* buckets of one limit */
#define MODEL_DEVICES 2

struct model_bucket {
	__u8 family;   /* 0: free */
	__u8 addr[16]; /* cut to the granularity */
	struct model_level unit[RL_UNITS];
	struct rl_tally tally;
};

struct model_limit {
	bool used;
	__u64 made;  /* the how manieth limit it is */
	bool stated; /* by set-limit, allow or deny; otherwise a class or a prefix's tenant made it */
	struct rl_target target;
	struct rl_terms terms;	 /* terms.class: of that class of it */
	struct rl_limit quantum; /* of it, rate, gen and past[0].until are read, and nothing else */
	struct rl_limit_count count;
	struct model_bucket whole; /* of a limit with one bucket */
	struct model_bucket source[MODEL_SOURCES];
	/* Of a prefix's general limit, as the policy is now: */
	struct model_limit
	    *tenant; /* its own, or that of the nearest prefix around it that has one; NULL: none */
	struct model_limit *class[RL_MAX_CLASSES]; /* in the order in which they came */
	int class_count;
};

struct model_device {
	char name[RL_NAME_LEN];
	bool paused, shadow;
	struct model_limit *limit; /* of "dev:" and its name; NULL: none */
	struct rl_device_count count;
};

struct model {
	struct model_limit *limit; /* room for MODEL_LIMITS; a place that is freed forgets everything */
	struct model_limit *end;   /* those from here on are free, and so are some before */
	__u64 made;
	struct model_limit *general[MODEL_LIMITS]; /* of prefixes, the longest first */
	int general_count;
	struct model_limit *fresh; /* of `new`; NULL: none */
	struct model_device device[MODEL_DEVICES];
};

/* A packet, as far as the limiter tells packets apart. */
struct model_packet {
	bool not_ip, unparsed, malformed;
	__u8 family;
	__u8 addr[16];
	__u8 kinds; /* enum rl_kind */
	__u16 port; /* of the service; 0 without RL_KIND_PORTS */
	__u32 len;
};

int model_open(struct model *model);
void model_close(struct model *model);

/* The limit of this very target (class NULL: the general one), or NULL. */
struct model_limit *model_find(struct model *model, const struct rl_target *target,
			       const struct rl_class *class);

/*
 * set-limit, allow, deny. `quantum` is what user/limit.c makes of these terms; its generation says whether rate or burst
 * changed. Returns false where MODEL_LIMITS are there.
 */
bool model_set(struct model *model, const struct rl_target *target, const struct rl_terms *terms,
	       const struct rl_limit *quantum, __u64 now);

/* A class of what is allowed or denied isn't accepted. */
bool model_refuses(struct model *model, const struct rl_target *target, const struct rl_terms *terms);

/* A tenant that prefixes name: del-limit then leaves it without a rate, but with its bucket, as model_empty() does. */
bool model_is_named(const struct model *model, const struct rl_target *tenant);
void model_empty(struct model *model, struct model_limit *tenant, const struct rl_limit *quantum, __u64 now);

/* del-limit of anything else. Returns false where there is none. */
bool model_delete(struct model *model, const struct rl_target *target, const struct rl_class *class);

/* reset: all counters, no bucket. */
void model_reset(struct model *model);

enum rl_reason model_packet(struct model *model, unsigned int device, const struct model_packet *packet,
			    __u64 now);

/*
 * How long until this packet would be within every level that it is held to, ns; 0: it is already. For choosing
 * clocks that stand just before and just behind a boundary. At most `most`.
 */
__u64 model_wait(struct model *model, unsigned int device, const struct model_packet *packet, __u64 now,
		 __u64 most);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.h - sources by the thousand, each with its own packet: 10.0.0.0 and on, or 2001:db8:a00:0::/64 and
 * on, none of them twice; and among them known ones, from 203.0.113.0 or 2001:db8:cb00:7100::/64 on.
 */
#ifndef RL_CROWD_H
#define RL_CROWD_H

#include "fixture.h"

#define CROWD_LEN   80	/* bytes of each frame */
#define CROWD_SMALL 160 /* fixture_options.max_sources: one region of places */
#define CROWD_TEXT  48

/* Of the fresh ones. */
#define CROWD_PREFIX4 "10.0.0.0/8"
#define CROWD_PREFIX6 "2001:db8:a00::/40"

struct many;

struct crowd {
	struct fixture *fx;
	struct many *skel;
	__u32 fresh; /* the next one; either family's */
};

struct crowd_plan {
	__u32 packets;
	__u64 step;   /* ns before each packet */
	__u32 every;  /* one packet in so many is a known source's; 0: none */
	__u32 known;  /* how many those are, at most 256; they take turns */
	__u32 stride; /* from one fresh one to the next; 0: 1 */
};

struct crowd_result {
	__u64 passed, dropped;	   /* of the fresh ones */
	__u64 known, known_passed; /* packets of the known ones */
};

/* A fixture with the smallest table there is, for the crowd to fill. */
struct fixture crowd_small(enum rl_when_full when_full);

struct crowd crowd_open(struct fixture *fx);
void crowd_close(struct crowd *crowd);

/* Send what is planned; the known ones' limit is theirs to be counted by. */
struct crowd_result crowd_run(struct crowd *crowd, __u8 family, const struct crowd_plan *plan,
			      const struct rl_limit *limit);

/* Fresh ones at one instant until no place in the table is free. Returns the first one's number. */
__u32 crowd_fill(struct crowd *crowd, __u8 family);

/* As if no source had ever come. */
void crowd_empty(const struct fixture *fx);

/* Places in the table, and those that are taken. */
__u64 crowd_places(const struct fixture *fx);
__u64 crowd_taken(const struct fixture *fx);

const char *crowd_fresh_text(__u8 family, __u32 number, char text[CROWD_TEXT]);
const char *crowd_known_text(__u8 family, __u32 number, char text[CROWD_TEXT]);

#endif

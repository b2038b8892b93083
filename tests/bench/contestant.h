/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * contestant.h - a subject in its contest: made ready where the contest's packets reach it, sent to, and summed up.
 */
#ifndef BENCH_CONTESTANT_H
#define BENCH_CONTESTANT_H

#include "contest.h"
#include "sender.h"
#include "subject.h"
#include "veth.h"

/* What is measured in a round: the packets that a comparison is made of. The first is that of random known sources, on one CPU. */
#define LANES 2

struct contestant {
	bool there;
	struct subject subject;
	struct veth_port port;
	__u32 index; /* its program's or its port's */
	double ns[LANES][ROUNDS_MAX];
	__u64 sent, received, dropped; /* since the rounds began, warming up included */
	__u64 dropped_before;	       /* by its own count */
	char skipped[RESULT_TEXT];
};

struct contest {
	const struct scenario *scenario;
	const struct contest_options *options;
	struct veth veth;
	struct sender senders[2]; /* the second is for two CPUs */
	struct contestant contestants[SUBJECTS];
	double others; /* noise.h */
};

int contestant_open(const struct contest *contest, struct contestant *contestant, enum subject_id id,
		    struct rl_error *err);
void contestant_close(struct contestant *contestant);

/* A packet of each source. */
int contestant_fill(struct contest *contest, struct contestant *contestant, struct rl_error *err);

int contestant_send(struct contest *contest, struct contestant *contestant, int lane, __u32 packets,
		    struct sent *out, struct rl_error *err);

/* Begin to count what became of its packets, or end it. */
int contestant_count(struct contestant *contestant, struct rl_error *err);

/* What was measured of a subject; failed: why all of it wasn't. */
void contest_conclude(const struct contest *contest, enum subject_id id, const char *failed,
		      struct result *out);

#endif

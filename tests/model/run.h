/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * run.h - a run: episode after episode of random operations, each from nothing and with a seed of its own, until so many
 * packets went by. The first difference is shrunk and printed.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include "play.h"

struct run {
	__u64 seed;
	__u64 packets;	     /* to go by in all */
	size_t episode;	     /* operations in each */
	size_t compare;	     /* operations from one comparison of all counters to the next */
	unsigned int calm;   /* changes are so many times rarer (generate.h) */
	size_t shrinks;	     /* plays that shrinking may take */
	bool quiet;	     /* print no difference */
	size_t shrunk_count; /* operations that are left of a difference */
	/* what happened */
	__u64 played, changes, clock, reasons[RL_REASONS];
	char difference[PLAY_TEXT];
};

/* `[SEED] [PACKETS]` of a test's command line, on top of what run has already. Exits on anything else. */
void run_arguments(struct run *run, int argc, char **argv);

/* More packets, after what went by already. Returns 0, or 1 after a difference. */
int run_episodes(struct run *run, struct backend *backend);

/* How many packets, and how often each reason was given. */
void run_print(const struct run *run, const char *name);

#endif

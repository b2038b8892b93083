/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trial.h - what the packet path would make of a source that has no bucket: is there room for it in the table, and what if
 * not. The path's own code (bpf/rl_sources.h) decides, over copies of the rows that the source may be in, so nothing is
 * charged, locked or given away by asking. `new` isn't asked: its bucket is one like any other, for explain to look at.
 */
#ifndef RL_TRIAL_H
#define RL_TRIAL_H

#include "snapshot.h"

#define RL_TRIAL_NEVER (~0ULL)

/* Where the copies come from. */
struct rl_trial_rows {
	/* Row `index` of ROWS4, ROWS6 or GROUPS (enum rl_where); *address is wanted of ROWS6 alone. */
	int (*read)(void *context, __u32 where, __u32 index, struct rl_row *row,
		    struct rl_row_address *address, struct rl_error *err);
	void *context;
};

struct rl_trial {
	/*
	 * RL_PASS_LIMIT: it would be given a full bucket. Or there is no room for it: RL_PASS_AGGREGATE, RL_PASS_OPEN, or
	 * RL_DROP_FULL.
	 */
	enum rl_reason reason;
	/* The rest is of a source without room. */
	struct rl_prefix group;	   /* its neighbourhood */
	struct rl_buckets buckets; /* AGGREGATE: the neighbourhood's */
	__u64 room; /* ns until it would fare better, if nothing else comes; RL_TRIAL_NEVER: not in years */
};

/*
 * One packet of `source`, an address, against a limit of the snapshot that is for sources or a class of theirs, and has no
 * bucket of its own. For the store `table`. `now`: CLOCK_MONOTONIC, ns.
 */
int rl_trial_source(const struct rl_snapshot *snapshot, const struct rl_limit *limit,
		    const struct rl_prefix *source, const struct rl_trial_rows *rows, __u64 now,
		    struct rl_trial *out, struct rl_error *err);

#endif

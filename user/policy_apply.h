/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policy_apply.h - the policy becomes what a file says, all of it by one store (stage.h): a packet sees the old policy or the
 * new one. What is in both keeps identity, bucket and counters, as by rl_policy_set; what the file doesn't say is gone.
 *
 *     diff      what becomes of each limit (diff.h); nothing is written yet, and all that can be refused is refused
 *     room      slots and cells for all that comes and changes, found, then claimed
 *     cells     written; nobody reads them yet
 *     stage     heads, prefixes, names, the epoch
 *
 * Killed before the last of these, what was claimed is found again by rl_room_reclaim.
 */
#ifndef RL_POLICY_APPLY_H
#define RL_POLICY_APPLY_H

#include "attached.h"
#include "diff.h"

/* The file's devices by the names that they have at present (rl_attached_resolve). RL_ERROR_USAGE, with the line. */
int rl_policy_file_resolve(struct rl_policy_file *file, const struct rl_attached *attached, size_t count,
			   struct rl_error *err);

/* Do the file's limits contradict each other, as rl_policy_check asks it of one? RL_ERROR_USAGE, with the line. */
int rl_policy_file_check(const struct rl_policy_file *file, struct rl_error *err);

enum rl_apply_how {
	RL_APPLY,
	RL_APPLY_CHECK, /* refuse what would be refused, count, and leave all as it is */
};

struct rl_applied {
	struct rl_diff_counts said;
	size_t overdrawn; /* changed limits whose buckets may owe more than the new burst holds */
	__u64 longest;	  /* ns, at most, that such a bucket passes nothing */
};

/* Under the lock. `file` has been resolved and checked. `now`: CLOCK_MONOTONIC, ns. On error nothing changed. */
int rl_policy_apply(const struct rl_state *state, const struct rl_policy_file *file, enum rl_apply_how how,
		    __u64 now, struct rl_applied *out, struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policy.h - the policy map as targets and limits: read all of it, set one, delete one.
 *
 * A limit owns a slot, the index of its counters and of its own bucket. Order of a new target: claim the
 * slot, zero what it indexes, insert the policy entry; the last step alone makes it count, so a set-limit
 * killed on the way changed nothing, and the slot it claimed is found again when the next one needs it.
 */
#ifndef RL_POLICY_H
#define RL_POLICY_H

#include <stddef.h>
#include "state.h"

struct rl_policy_entry {
	struct rl_prefix target;
	struct rl_limit limit;
};

/* Every entry, in the order of rl_target_compare. *out is allocated; the caller frees it. */
int rl_policy_read(const struct rl_state *state, struct rl_policy_entry **out, size_t *count,
		   struct rl_error *err);

/* Give `target` these complete terms: a new limit, or the one it has changed in place. Needs the lock. */
int rl_policy_set(const struct rl_state *state, const struct rl_prefix *target, const struct rl_terms *terms,
		  struct rl_error *err);

/* -ENOENT with RL_ERROR_USAGE where the target has no limit. Needs the lock. */
int rl_policy_delete(const struct rl_state *state, const struct rl_prefix *target, struct rl_error *err);

/* The limit that holds for this source at present: the longest match. False where there is none. */
bool rl_policy_match(const struct rl_state *state, const struct rl_prefix *source, struct rl_limit *out);

#endif

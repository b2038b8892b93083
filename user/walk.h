/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * walk.h - all keys of rl_names with their slots, in order. Needs no lock: what others change meanwhile is there or not,
 * once.
 */
#ifndef RL_WALK_H
#define RL_WALK_H

#include "state.h"

struct rl_walk_name {
	struct rl_target target;
	__u32 slot;
};

/* *out is allocated; the caller frees it. In the order of rl_target_compare. */
int rl_walk_names(const struct rl_state *state, struct rl_walk_name **out, size_t *count,
		  struct rl_error *err);

#endif

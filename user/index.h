/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index.h - the prefixes that have limits, and their slots: rl_prefixes, for the agent, and what is made of it for packets, the
 * ranges (ranges.h). Which limit a slot has, its head tells (heads.h).
 *
 * Both are changed under the lock, rl_prefixes first: who is killed in between leaves meta.unfinished behind (stage.h), and
 * whoever finds that takes the same prefixes out of both again. Reading rl_prefixes takes no lock.
 */
#ifndef RL_INDEX_H
#define RL_INDEX_H

#include "heads.h"
#include "ranges.h"

struct rl_index {
	const struct rl_heads *heads; /* open for writing */
	struct rl_mapping blocks;     /* of rl_ranges */
	struct rl_ranges ranges;
};

#define RL_INDEX __attribute__((cleanup(rl_index_close)))

/* Start from a zeroed struct. */
int rl_index_open(const struct rl_heads *heads, struct rl_index *out, struct rl_error *err);
void rl_index_close(struct rl_index *index);

/* The slot of this very prefix; 0: it has none. */
__u32 rl_index_find(const struct rl_state *state, const struct rl_prefix *prefix);

/* That of the longest prefix around this one, or 0. */
__u32 rl_index_around(const struct rl_state *state, const struct rl_prefix *prefix);

/* Likewise, or its own. */
__u32 rl_index_match(const struct rl_state *state, const struct rl_prefix *prefix);

/* In: its sources are in this slot from here on. On error it isn't in. */
int rl_index_enter(const struct rl_index *index, const struct rl_prefix *prefix, __u32 slot,
		   struct rl_error *err);

/* Out, if it has this slot: its sources are in that of the prefix around it, or in none. */
int rl_index_leave(const struct rl_index *index, const struct rl_prefix *prefix, __u32 slot,
		   struct rl_error *err);

#define RL_INDEX_MANY 512 /* prefixes; from here on it takes less time to do all at once */

/*
 * Many in or out, for packets all at once. On error packets find what they found before; what is in rl_prefixes by then is
 * taken out by the caller. Both wait for a grace period.
 */
int rl_index_enter_many(const struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err);
int rl_index_leave_many(const struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * index.h - the prefixes that have limits, and their slots, in two shapes:
 *
 *   rl_index    for the agent: a hash table of slots, by their prefixes. Which prefix a slot has stands in its limit, which
 *               its head gives (heads.h). An entry is one word, written by one store:
 *
 *                   63              32 31               0
 *                  | hash of the prefix |     slot      |     slot 0: free; RL_INDEX_GONE: look further
 *
 *   rl_ranges   for packets: what is made of them (ranges.h)
 *
 * Both are changed under the lock, of a prefix that comes rl_index first, of one that goes rl_ranges: who is killed in between
 * leaves meta.unfinished behind (stage.h), and whoever finds that takes the prefix out of both again. Reading rl_index takes
 * no lock: what others change meanwhile is found or not.
 */
#ifndef RL_INDEX_H
#define RL_INDEX_H

#include "heads.h"
#include "ranges.h"

/* The slot of this very prefix; 0: it has none. Also while it comes or goes. */
__u32 rl_index_find(const struct rl_heads *heads, const struct rl_prefix *prefix);

/* That of the longest prefix around this one, or 0. */
__u32 rl_index_around(const struct rl_heads *heads, const struct rl_prefix *prefix);

/* Likewise, or its own. */
__u32 rl_index_match(const struct rl_heads *heads, const struct rl_prefix *prefix);

/* Has this prefix this slot? By rl_index alone, whatever the slot's limit is. */
bool rl_index_has(const struct rl_heads *heads, const struct rl_prefix *prefix, __u32 slot);

/* The general limit that is in force in this slot, of a prefix that has it; in *room where cells aren't mapped. NULL: none. Slots
 * that were given back may have their last cell still. */
const struct rl_limit *rl_index_in_force(const struct rl_heads *heads, __u32 slot, struct rl_limit *room);

/* Every prefix in force, with its slot, in the order of rl_prefix_compare. *out is allocated; the caller frees it. Needs cells
 * that are mapped. */
int rl_index_list(const struct rl_heads *heads, struct rl_ranges_prefix **out, size_t *count,
		  struct rl_error *err);

/* To change it: begun with `heads` alone. */
struct rl_index {
	const struct rl_heads *heads; /* open for writing */
	struct rl_mapping blocks;     /* of rl_ranges: as far as it is needed */
	struct rl_ranges ranges;
};

#define RL_INDEX __attribute__((cleanup(rl_index_close)))

void rl_index_close(struct rl_index *index);

/* In: its sources are in this slot from here on, whose head gives its limit, now or before long. On error it isn't in. */
int rl_index_enter(struct rl_index *index, const struct rl_prefix *prefix, __u32 slot, struct rl_error *err);

/* Out, if it has this slot: its sources are in that of the prefix around it, or in none. */
int rl_index_leave(struct rl_index *index, const struct rl_prefix *prefix, __u32 slot, struct rl_error *err);

#define RL_INDEX_MANY 512 /* prefixes; from here on it takes less time to do all at once */

/*
 * Many in or out, for packets all at once. On error packets find what they found before; what is in rl_index by then is taken
 * out by the caller. Both wait for a grace period.
 */
int rl_index_enter_many(struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err);
int rl_index_leave_many(struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err);

#endif

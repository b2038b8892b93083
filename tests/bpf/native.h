/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * native.h - the table of sources as a test reads it: by the packets' own hash, from the maps.
 */
#ifndef RL_NATIVE_H
#define RL_NATIVE_H

#include <stdbool.h>

#include "../../user/state.h"

/* The source's place under the limit, its address cut already. False where it has none. Asserts that it has but one. */
bool native_find(const struct rl_state *state, const struct rl_table *table, const struct rl_limit *limit,
		 __u8 family, const __u8 *addr, struct rl_source *out);

/* Likewise. *place: rl_place_number() */
bool native_find_at(const struct rl_state *state, const struct rl_table *table, const struct rl_limit *limit,
		    __u8 family, const __u8 *addr, struct rl_source *out, __u64 *place);

/* Add the drops that CPUs have counted, and that aren't in the tally yet (rl_tally.h). */
void native_add_pending(const struct rl_state *state, __u64 place, __u64 key, struct rl_source *out);

/*
 * An IPv6 source and an IPv4 one that have the same two rows and, but for the family, the same key: addresses as they are sent
 * from. n: which of many such pairs.
 */
void native_twins(const struct rl_table *table, __u32 n, __u8 *six, __u8 *four);

/* How many places a family's sources have. */
__u64 native_taken(const struct rl_state *state, const struct rl_table *table, __u8 family);

#endif

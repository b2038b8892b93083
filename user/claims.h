/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims.h - who has a slot or a cell (rl_slots, rl_cells): taking free ones, giving them back. Index 0 is nobody's.
 *
 * What was given back may still be read by packets that came before. So it is taken again RL_POLICY_QUARANTINE seconds
 * later, or, where nothing else is free, behind a grace period of the kernel's: then no packet that came before is left.
 *
 * `which` is RL_MAP_SLOTS or RL_MAP_CELLS. All of it needs the lock, and heads that were opened for writing. A claim is one
 * 64-bit word, taken or given back by one store.
 */
#ifndef RL_CLAIMS_H
#define RL_CLAIMS_H

#include "heads.h"

/* Ids for `count` limits, one behind the other from *first on: those that were given are never given again. */
int rl_ids_take(const struct rl_state *state, size_t count, __u32 *first, struct rl_error *err);

/* The claim as it is. index: below rl_claims_count */
struct rl_claim rl_claim_read(const struct rl_heads *heads, enum rl_map which, __u32 index);

/*
 * Many at once: `count` free ones, looked for from `from` on and around, which rl_claims_write then gives to the limits `ids`,
 * one each. *found is how many there are; -ENOSPC without a text where that is too few.
 */
int rl_claims_find(const struct rl_heads *heads, enum rl_map which, __u32 from, size_t count, __u32 *out,
		   size_t *found, struct rl_error *err);
void rl_claims_write(const struct rl_heads *heads, enum rl_map which, const __u32 *indexes, const __u32 *ids,
		     size_t count);

/* A free one for the limit `id`, looked for from `from` on and around in wide steps. -ENOSPC without a text where all are taken. */
int rl_claim_take(const struct rl_heads *heads, enum rl_map which, __u32 id, __u32 from, __u32 *out,
		  struct rl_error *err);

/* Give one back. */
void rl_claim_free(const struct rl_heads *heads, enum rl_map which, __u32 index);

/* Give back all but those whose owner's id stands in `owners`, by index, `count` of them; 0 is no owner. */
void rl_claims_keep(const struct rl_heads *heads, enum rl_map which, const __u32 *owners, __u32 count);

/* How many there are, 0 included. */
__u32 rl_claims_count(const struct rl_heads *heads, enum rl_map which);

/* Wait until every packet that is under way at present is done. */
int rl_grace_wait(struct rl_error *err);

#endif

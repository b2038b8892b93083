/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_ref.h - which version of a limit is in force: a head, one 64-bit word, to a cell. Pure.
 *
 * A head names two cells and an epoch: from that epoch on the second one is in force, before it the first. A change of
 * one limit is one store of a head with twice the same cell. A change of several stages them all for the next epoch,
 * which no packet is in yet, and one store of the epoch then puts all of it in force: a packet reads the epoch once,
 * and sees the old policy or the new one. Killed before that store, nothing has changed; killed after it, everything
 * has, and who changes the policy next tidies up (user/policy.h).
 *
 *            63    48 47                24 23                 0
 *           | epoch  |  cell from then on |  cell before that  |
 *
 * Epochs wrap and are compared by their distance, which is sound as long as no head stays staged while 2^15 more pass: a head
 * is settled, twice the same cell, before the next change begins. That of a limit that went may stay staged, to no cell; but
 * only packets that were under way then find it, and who asks whose a place was.
 */
#ifndef RL_REF_H
#define RL_REF_H

#include "rl_abi.h"

#define RL_REF_CELL ((1ULL << 24) - 1)
_Static_assert(RL_CELLS(RL_MOST_LIMITS) <= (__u32)RL_REF_CELL, "a cell's number fits");

/* A settled head. */
RL_INLINE __u64 rl_ref(__u32 cell)
{
	return (__u64)cell << 24 | cell;
}

/* A head that switches from one cell to another with `epoch`. */
RL_INLINE __u64 rl_ref_staged(__u32 before, __u32 after, __u32 epoch)
{
	return (__u64)epoch << 48 | (__u64)after << 24 | before;
}

RL_INLINE __u32 rl_ref_before(__u64 ref)
{
	return ref & RL_REF_CELL;
}

RL_INLINE __u32 rl_ref_after(__u64 ref)
{
	return ref >> 24 & RL_REF_CELL;
}

/* The cell in force. */
RL_INLINE __u32 rl_ref_cell(__u64 ref, __u32 epoch)
{
	return (__s16)(__u16)(epoch - (ref >> 48)) >= 0 ? rl_ref_after(ref) : rl_ref_before(ref);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_count.h - counting a packet, once its verdict is known. Compiles on both sides.
 *
 * Counters of devices and of limits are per CPU, and added to without an atomic: a program isn't interrupted by itself. A
 * source's own, beside its bucket, are shared by all CPUs.
 */
#ifndef RL_COUNT_H
#define RL_COUNT_H

#include "rl_abi.h"

/* Counters that nobody else adds to. */
RL_INLINE void rl_count_local(struct rl_count *count, __u32 len)
{
	count->packets++;
	count->bytes += len;
}

/* A source's packets arrive on any CPU. */
RL_INLINE void rl_count_shared(struct rl_count *count, __u32 len)
{
	__sync_fetch_and_add(&count->packets, 1);
	__sync_fetch_and_add(&count->bytes, len);
}

RL_INLINE void rl_tally(struct rl_tally *tally, enum rl_reason reason, __u32 len)
{
	rl_count_shared(rl_reason_drops(reason) ? &tally->dropped : &tally->passed, len);
	if (rl_reason_shadows(reason))
		rl_count_shared(&tally->shadow, len);
}

/* place: below RL_ROW */
RL_INLINE void rl_row_tally(struct rl_row *row, __u32 place, enum rl_reason reason, __u32 len)
{
	rl_count_shared(rl_reason_drops(reason) ? &row->at[place].dropped : &row->at[place].passed, len);
	if (rl_reason_shadows(reason))
		rl_count_shared(&row->shadow[place], len);
}

#endif

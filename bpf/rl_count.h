/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_count.h - counting a packet, once its verdict is known. Compiles on both sides.
 *
 * Counters of devices and of limits are per CPU, and added to without an atomic: a program isn't interrupted by itself. A
 * source's own are rl_tally.h's.
 */
#ifndef RL_COUNT_H
#define RL_COUNT_H

#include "rl_abi.h"

/* Counters that nobody else adds to. */
RL_INLINE void rl_count_local(struct rl_count *count, __u32 packets, __u32 len)
{
	count->packets += packets;
	count->bytes += len;
}

/* Counters that every CPU adds to. */
RL_INLINE void rl_count_shared(struct rl_count *count, __u64 packets, __u64 bytes)
{
	__sync_fetch_and_add(&count->packets, packets);
	__sync_fetch_and_add(&count->bytes, bytes);
}

#endif

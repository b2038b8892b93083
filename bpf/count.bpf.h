/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * count.bpf.h - what became of a packet, by device, by limit and by source.
 */
#ifndef COUNT_BPF_H
#define COUNT_BPF_H

#include "maps.bpf.h"

/* Per-CPU counters: nobody else adds to them, and a program isn't interrupted by itself. */
RL_INLINE void rl_count_local(struct rl_count *count, __u32 len)
{
	count->packets++;
	count->bytes += len;
}

RL_INLINE void rl_count_device(__u32 slot, enum rl_reason reason, __u32 len)
{
	struct rl_device_count *device = bpf_map_lookup_elem(&rl_device_count, &slot);

	if (device && reason < RL_REASONS)
		rl_count_local(&device->by_reason[reason], len);
}

RL_INLINE void rl_count_limit(const struct rl_limit *limit, enum rl_reason reason, __u32 len)
{
	__u32 slot = limit->slot;
	struct rl_limit_count *count = bpf_map_lookup_elem(&rl_limit_count, &slot);

	if (count)
		rl_count_local(rl_reason_drops(reason) ? &count->dropped : &count->passed, len);
}

/* A source's packets arrive on any CPU. */
RL_INLINE void rl_count_source(struct rl_source *source, enum rl_reason reason, __u32 len)
{
	struct rl_count *count = rl_reason_drops(reason) ? &source->dropped : &source->passed;

	__sync_fetch_and_add(&count->packets, 1);
	__sync_fetch_and_add(&count->bytes, len);
}

#endif

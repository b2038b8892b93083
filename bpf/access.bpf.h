/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * access.bpf.h - the packet's way to the maps: what rl_admit.h, and the headers that it builds upon, ask their includer for.
 */
#ifndef ACCESS_BPF_H
#define ACCESS_BPF_H

#include "clock.bpf.h"
#include "maps.bpf.h"
#include "rl_bytes.h"
#include "rl_ref.h"

const volatile bool rl_store_lru; /* set before load: sources are in rl_sources, not in rows */
struct rl_table rl_table; /* set before load, then only read: the same in every program over the same maps */
struct rl_limit rl_nd_limit; /* neighbour discovery's budget; set before load, then only read */

/*
 * The kernel replaces a look into an array by a few instructions, but only where the map is the same each time it comes there.
 * So that the compiler doesn't make one call of several, each is followed by something of its own.
 */
#define RL_LOOKUP(map, key)                                                                                  \
	({                                                                                                   \
		void *value_ = bpf_map_lookup_elem(&map, key);                                               \
                                                                                                             \
		asm volatile("# " #map : "+r"(value_));                                                      \
		value_;                                                                                      \
	})

RL_INLINE const struct rl_settings *rl_settings_at(void)
{
	__u32 zero = 0;

	return RL_LOOKUP(rl_settings, &zero);
}

RL_INLINE const struct rl_table *rl_table_at(void)
{
	return &rl_table;
}

RL_INLINE const union rl_ranges_block *rl_ranges_block_at(__u32 index)
{
	return RL_LOOKUP(rl_ranges, &index);
}

#include "rl_ranges.h"

/* The slot of the longest prefix that the packet's source is in. Read after the epoch: a prefix is there before its epoch is. */
RL_INLINE __u32 rl_slot_of(const struct rl_packet *packet)
{
	const struct rl_settings *settings = rl_settings_at();
	__u64 word = settings ? *(const volatile __u64 *)&settings->ranges.word : 0;

	if (packet->family == 4)
		return rl_ranges_find4(word, rl_be32(packet->src));
	return rl_ranges_find6(word, rl_be64(packet->src), rl_be64(packet->src + 8));
}

RL_INLINE __u32 rl_cell_of(__u32 epoch, __u32 slot)
{
	const __u64 *head = slot ? RL_LOOKUP(rl_heads, &slot) : NULL;

	return head ? rl_ref_cell(*(const volatile __u64 *)head, epoch) : 0;
}

RL_INLINE const struct rl_limit *rl_limit_at(__u32 cell)
{
	return cell ? RL_LOOKUP(rl_limits, &cell) : NULL;
}

RL_INLINE struct rl_source *rl_own_at(__u32 slot)
{
	return RL_LOOKUP(rl_own, &slot);
}

RL_INLINE struct rl_slice *rl_slice_at(__u32 slot)
{
	__u32 index = slot & (RL_SLICES - 1);

	return RL_LOOKUP(rl_slices, &index);
}

RL_INLINE struct rl_pending *rl_pending_at(__u32 index)
{
	index += bpf_get_smp_processor_id() * RL_CPU_PENDINGS;
	return RL_LOOKUP(rl_pending, &index);
}

RL_INLINE struct rl_row *rl_row_at(__u32 where, __u32 index)
{
	switch (where) {
	case RL_AT_ROWS4:
	case RL_AT_ROWS6:
		return RL_LOOKUP(rl_rows, &index);
	case RL_AT_GROUPS:
		return RL_LOOKUP(rl_groups, &index);
	default:
		return NULL;
	}
}

RL_INLINE struct rl_row_address *rl_row_address_at(__u32 index)
{
	return RL_LOOKUP(rl_address6, &index);
}

RL_INLINE struct rl_kept *rl_kept_at(__u32 index)
{
	return RL_LOOKUP(rl_kept, &index);
}

RL_INLINE __u32 *rl_lock_at(__u32 index)
{
	return RL_LOOKUP(rl_locks, &index);
}

RL_INLINE int rl_lru_used(void)
{
	return rl_store_lru;
}

RL_INLINE struct rl_source *rl_lru_find(const struct rl_source_key *key)
{
	return RL_LOOKUP(rl_sources, key);
}

/* Two CPUs that meet the same new source make one entry: only one BPF_NOEXIST insert succeeds. */
RL_INLINE int rl_lru_make(const struct rl_source_key *key, const struct rl_source *fresh)
{
	return bpf_map_update_elem(&rl_sources, key, fresh, BPF_NOEXIST) == 0;
}

RL_INLINE const struct rl_device *rl_device_at(__u32 device)
{
	return RL_LOOKUP(rl_devices, &device);
}

RL_INLINE struct rl_source *rl_nd_at(__u32 device)
{
	return RL_LOOKUP(rl_nd, &device);
}

RL_INLINE const struct rl_limit *rl_nd_budget(void)
{
	return &rl_nd_limit;
}

RL_INLINE struct rl_limit_count *rl_limit_count_at(__u32 slot)
{
	return RL_LOOKUP(rl_limit_count, &slot);
}

RL_INLINE struct rl_device_count *rl_device_count_at(__u32 device)
{
	return RL_LOOKUP(rl_device_count, &device);
}

#include "rl_sources.h"

/* The source under this limit, as the hold found it. */
RL_INLINE struct rl_source *rl_lru_at(const struct rl_job *job, const struct rl_limit *limit)
{
	struct rl_source_key key = rl_source_key(job, limit);

	return rl_store_lru ? RL_LOOKUP(rl_sources, &key) : NULL;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.bpf.h - every map, with who writes it, who reads it, and what happens when it is full.
 *
 * All but rl_scratch, rl_kept and the program's own .rodata and .bss are pinned (user/state.h) and shared by the programs of
 * every attached device of a network namespace. A name is at most 15 characters: the kernel's limit. Those that have one
 * element for each limit, slot or cell are made by attach for as many as it is asked for (--max-limits).
 */
#ifndef MAPS_BPF_H
#define MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "clock.bpf.h"
#include "rl_job.h"
#include "rl_ranges_abi.h"
#include "rl_table.h"

/*
 * Policy: which slot a source's longest prefix has, as blocks (rl_ranges.h). Written by the commands that change a limit; read
 * by the packet path. Room for rl_meta.max_limits prefixes of whatever kind (user/ranges.h); full of what
 * single changes have left behind: they are moved together.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, union rl_ranges_block);
} rl_ranges SEC(".maps");

/*
 * The slots of prefixes, by a hash of the prefix: what it is stands in the slot's limit. User space alone (user/index.h). Twice
 * as many entries as there can be limits, so never full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * RL_DEFAULT_LIMITS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} rl_index SEC(".maps");

/* Which cell is in force, by slot (rl_ref.h). Written by the commands that change a limit, one word by one store; read by
 * the packet path. One for each possible limit, so never full. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_DEFAULT_LIMITS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} rl_heads SEC(".maps");

/*
 * Limits, by cell. Written by the commands that change a limit, and only while no packet can read the cell; read by the
 * packet path. As many again as there can be limits, so that all may change at once. Full: cells that packets may still read
 * are waited for (user/claims.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_CELLS(RL_DEFAULT_LIMITS));
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_limit);
} rl_limits SEC(".maps");

/*
 * Buckets that are a limit's own, by slot: one for all of its packets, never evicted. Written by the packet path; counters
 * zeroed by reset, and all of it by set-limit before a new limit takes the slot. One slot for each possible limit, so never full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_DEFAULT_LIMITS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_source);
} rl_own SEC(".maps");

/*
 * What a CPU has taken ahead of buckets of rl_own (rl_slice.h). Written by the packet path alone. Several limits share an element, by
 * their slots: while one can spend what is there, the others take nothing ahead.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RL_SLICES);
	__type(key, __u32);
	__type(value, struct rl_slice);
} rl_slices SEC(".maps");

/*
 * Store `table`: the rows of sources, IPv4's and IPv6's in the same. Written by the packet path, counters zeroed by reset; read by
 * top and explain.
 * Full: no place without a debt and idle for a grace time in either of a source's rows. Its packet is then treated as
 * `attach --when-full` says. Sized by attach; one row where the store is `lru`.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_row);
} rl_rows SEC(".maps");

/* The whole addresses of IPv6 sources, by row of rl_rows, and never full before those. Written by the packet path, under the
 * region's lock; read by it, top and explain. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_row_address);
} rl_address6 SEC(".maps");

/* The regions' locks: of rl_rows, then of rl_groups. Packet path alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} rl_locks SEC(".maps");

/*
 * By row of rl_rows: which of its places can't be given away yet (rl_table.h). Each program's own, since it is but what it found
 * out. Packet path alone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rl_kept);
} rl_kept SEC(".maps");

/*
 * Buckets of the /24s and /48s that stand in for sources without a place of their own: rows as above, for both families,
 * without grace. Written by the packet path alone; read by explain. Full: the packet drops, RL_DROP_FULL.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_GROUP_REGIONS *RL_REGION_ROWS);
	__type(key, __u32);
	__type(value, struct rl_row);
} rl_groups SEC(".maps");

/*
 * Store `lru`: sources in the kernel's LRU hash. Written by the packet path, counters zeroed by reset; read by top and explain.
 * Full: the kernel evicts the least recently used, a fresh bucket is a full one, so the bound holds only while the sources fit
 * (attach --max-sources). One entry where the store is `table`.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct rl_source_key);
	__type(value, struct rl_source);
} rl_sources SEC(".maps");

/*
 * Drops of sources that aren't in their tallies yet (rl_tally.h): RL_CPU_PENDINGS elements of each CPU, one behind the other.
 * Written by the packet path, and made nobody's by reset; read by top and explain. Full: the drop is counted in the tally. Sized by attach.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_CPU_PENDINGS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_pending);
} rl_pending SEC(".maps");

/* Counters of limits, by slot. Written by the packet path; zeroed by set-limit for a new limit, and by reset; read by
 * stats. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RL_DEFAULT_LIMITS);
	__type(key, __u32);
	__type(value, struct rl_limit_count);
} rl_limit_count SEC(".maps");

/* Counters of devices, by device slot. Written by the packet path; zeroed by attach for a new device, and by reset; read
 * by stats. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RL_MAX_DEVICES);
	__type(key, __u32);
	__type(value, struct rl_device_count);
} rl_device_count SEC(".maps");

/* What is attached, the pause flag, the device's limit. Written by attach, detach, pause, resume, set-limit; read by the
 * packet path. Full: attach refuses. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_MAX_DEVICES);
	__type(key, __u32);
	__type(value, struct rl_device);
} rl_devices SEC(".maps");

/* Neighbour discovery's bucket, one a device. Written by the packet path alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_MAX_DEVICES);
	__type(key, __u32);
	__type(value, struct rl_source);
} rl_nd SEC(".maps");

/* What packets read of the whole state. Written by attach and by the commands that change a limit, word by word. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_settings);
} rl_settings SEC(".maps");

/* Which limit id owns which slot and which cell. User space alone; what a killed set-limit had claimed is found
 * again there (user/policy.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_DEFAULT_LIMITS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_claim);
} rl_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_CELLS(RL_DEFAULT_LIMITS));
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_claim);
} rl_cells SEC(".maps");

/* Slots of tenants, devices' limits and `new`, by target (its prefix is zero). User space alone. Full: set-limit refuses. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, RL_DEFAULT_LIMITS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rl_target);
	__type(value, __u32);
} rl_names SEC(".maps");

/* The state's version and settings. User space alone; pinned last, so a state without it was never finished.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rl_meta);
} rl_meta SEC(".maps");

/* Room for the packet at hand: what it is held to takes more than the stack has. Per CPU: a packet's program isn't
 * interrupted by another's. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rl_job);
} rl_scratch SEC(".maps");

#endif

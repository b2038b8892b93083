/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.bpf.h - every map, with who writes it, who reads it, and what happens when it is full.
 *
 * All but the program's own .rodata and .bss are pinned (user/state.h) and shared by the programs of every
 * attached device of a network namespace. A name is at most 15 characters: the kernel's limit.
 */
#ifndef MAPS_BPF_H
#define MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rl_abi.h"

/*
 * Policy: prefix to limit, longest match wins. Written by set-limit and del-limit, one entry by one system
 * call; read by the packet path. Full: set-limit refuses (RL_MAX_LIMITS), what is there stays. One entry more
 * than that, since kernels before 6.13 want a free one even to replace a value.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, RL_MAX_LIMITS + 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rl_prefix);
	__type(value, struct rl_limit);
} rl_policy SEC(".maps");

/*
 * Buckets of sources inside wider targets. Written by the packet path alone; read by top. Full: the kernel
 * evicts the least recently used, a fresh bucket is a full one, so the bound holds only while the sources fit
 * (attach --max-sources). No entry to be had at all: the packet passes, RL_PASS_NO_BUCKET.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1000000); /* attach --max-sources */
	__type(key, struct rl_source_key);
	__type(value, struct rl_source);
} rl_sources SEC(".maps");

/*
 * Buckets of targets that are one source, by the limit's slot: never evicted. Written by the packet path;
 * zeroed by set-limit before a new target takes the slot. One slot for each possible limit, so never full.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_MAX_LIMITS);
	__type(key, __u32);
	__type(value, struct rl_source);
} rl_own SEC(".maps");

/* Counters of limits, by slot. Written by the packet path; zeroed by set-limit for a new target; read by
 * stats. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RL_MAX_LIMITS);
	__type(key, __u32);
	__type(value, struct rl_limit_count);
} rl_limit_count SEC(".maps");

/* Counters of devices, by device slot. Written by the packet path; zeroed by attach for a new device; read by
 * stats. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RL_MAX_DEVICES);
	__type(key, __u32);
	__type(value, struct rl_device_count);
} rl_device_count SEC(".maps");

/* What is attached, and the pause flag. Written by attach, detach, pause and resume; read by the packet path.
 * Full: attach refuses. */
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
	__type(value, struct rl_bucket);
} rl_nd SEC(".maps");

/* Which limit id owns which slot, 0 for none. User space alone; a slot lost by a killed set-limit is found
 * again there (user/policy.h). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RL_MAX_LIMITS);
	__type(key, __u32);
	__type(value, __u32);
} rl_slots SEC(".maps");

/* The state's version and settings. User space alone; pinned last, so a state without it was never finished.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rl_meta);
} rl_meta SEC(".maps");

#endif

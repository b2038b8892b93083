// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * classify.bpf.c - the ranges of prefixes inside BPF, beside the kernel's trie. A test run sends one buffer again and again:
 * each takes the next address that is asked for.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rl_ranges_abi.h"

const volatile __u32 asked_most = 1; /* addresses that are asked for; set before load, with the map's size */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, union rl_ranges_block);
} blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_ranges_head);
} head SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1 << 20);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rl_prefix);
	__type(value, __u32);
} trie SEC(".maps");

/* Whole addresses as the trie takes them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct rl_prefix);
} asked SEC(".maps");

__u32 next;  /* address to take */
__u64 slots; /* sum of slots, so that nothing is left out */
__u32 found; /* lookups in them that found a prefix */
__u32 wrong; /* lookups in which they differ */
struct rl_prefix wrong_at;
__u32 wrong_slot[2]; /* by the ranges, and by the trie */

RL_INLINE const union rl_ranges_block *rl_ranges_block_at(__u32 index)
{
	return bpf_map_lookup_elem(&blocks, &index);
}

#include "rl_ranges.h"

RL_INLINE const struct rl_prefix *address_next(void)
{
	__u32 index = next++;

	if (next >= asked_most)
		next = 0;
	return bpf_map_lookup_elem(&asked, &index);
}

RL_INLINE __u64 be64(const __u8 *p)
{
	return __builtin_bswap64(*(const __u64 *)p);
}

RL_INLINE __u32 slot_by_ranges(const struct rl_prefix *address)
{
	__u32 zero = 0;
	const struct rl_ranges_head *now = bpf_map_lookup_elem(&head, &zero);
	__u64 word = now ? *(const volatile __u64 *)&now->word : 0;

	if (address->family == 4)
		return rl_ranges_find4(word, (__u32)(be64(address->addr) >> 32));
	return rl_ranges_find6(word, be64(address->addr), be64(address->addr + 8));
}

RL_INLINE __u32 slot_by_trie(const struct rl_prefix *address)
{
	struct rl_prefix key = *address;
	const __u32 *slot = bpf_map_lookup_elem(&trie, &key);

	return slot ? *slot : 0;
}

SEC("xdp")
int compare(struct xdp_md *ctx)
{
	const struct rl_prefix *address = address_next();
	__u32 slot[2];

	(void)ctx;
	if (!address)
		return XDP_ABORTED;
	slot[0] = slot_by_ranges(address);
	slot[1] = slot_by_trie(address);
	found += !!slot[0];
	if (slot[0] != slot[1]) {
		wrong++;
		wrong_at = *address;
		wrong_slot[0] = slot[0];
		wrong_slot[1] = slot[1];
	}
	return XDP_PASS;
}

/* What a lookup costs: one of each, and none. */
SEC("xdp")
int with_ranges(struct xdp_md *ctx)
{
	const struct rl_prefix *address = address_next();

	(void)ctx;
	if (address)
		slots += slot_by_ranges(address);
	return XDP_PASS;
}

SEC("xdp")
int with_trie(struct xdp_md *ctx)
{
	const struct rl_prefix *address = address_next();

	(void)ctx;
	if (address)
		slots += slot_by_trie(address);
	return XDP_PASS;
}

SEC("xdp")
int with_none(struct xdp_md *ctx)
{
	const struct rl_prefix *address = address_next();

	(void)ctx;
	if (address)
		slots += be64(address->addr);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_ranges.h - which prefix a source is in: the longest one's slot, out of up to 2^20 prefixes. The lookup; pure, compiles
 * on both sides. user/ranges.h builds and changes what it reads.
 *
 * Prefixes of one family cut its addresses into disjoint ranges, at most two a prefix and one more; within a range the
 * longest match is one and the same. So it is found by a search for the last range that begins at or before the address.
 * A table over the first bits of the address makes most of that search (DXR: Zec, Rizzo, Mikuc, DXR: towards a billion
 * routing lookups per second in software, 2012); what is left goes through a tree of cache lines, as shallow as the
 * ranges under this entry allow (a static B+ tree, with keys of 14 bits for IPv4 and of 56 for IPv6):
 *
 *             table, entries of 4 bytes      tree                           tree of trees
 *     IPv4    18 bits, 1 MiB                 bits 18 to 31, 64 bytes a node
 *     IPv6    16 bits, 256 KiB               bits 16 to 71, 128 bytes       bits 72 to 127, only where a prefix is
 *                                                                           longer than /72
 *
 * All of it is in one array of blocks, whose layout rl_ranges_abi.h tells. Nothing depends on the order of a node's keys:
 * the range, or child, is told by how many of them are not above the address, counted without a branch; IPv4's four at once.
 *
 * Cost, as loads each of which needs the one before: the word, which every packet reads; the table; one for each node, whose
 * blocks are read at once. With 2^20 prefixes that are hosts anywhere, IPv4 takes 1.2 nodes on average; as networks, 1.9;
 * at most 5. IPv6 takes log16 of the ranges under the table's entry: 5 nodes with networks of 41 /16s, 6 with all of them in
 * one /32, of which the last two are not in the cache; one or two more where there is a prefix longer than /72.
 *
 * Readers and the writer. A packet reads the word once: where the tables are, and the slot of `any`. What it then meets is
 * never written again, but for two kinds of 32-bit words: an entry of a table, and an inner node's `child`. The writer
 * builds what is new in blocks that no packet can reach, then makes one store, of one of these or of the word: so a packet
 * sees the policy before or after a change. See user/ranges.h on when a block is used again.
 *
 * All zero is a policy without prefixes. Blocks that make no sense give a wrong slot or none, never an access out of bounds.
 *
 * The includer defines, over its map of blocks:
 *   const union rl_ranges_block *rl_ranges_block_at(__u32 index)      NULL beyond the end
 */
#ifndef RL_RANGES_H
#define RL_RANGES_H

#include "rl_ranges_abi.h"

/* How many of the keys are not above the one that `lanes` has in all lanes, with their high bits set. */
RL_INLINE __u32 rl_ranges_rank4(const __u64 *key, __u32 words, __u64 lanes)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < words; i++)
		sum += (lanes - key[i]) >> 15 & RL_RANGES_ONES;
	return (__u32)(sum * RL_RANGES_ONES >> 48);
}

/* The same for IPv6, below: ~key. All keys are below 2^63, so the sign of the difference is the answer. */
RL_INLINE __u32 rl_ranges_rank6(const __u64 *key, __u32 count, __u64 below)
{
	__u32 rank = 0;

	for (__u32 i = 0; i < count; i++)
		rank += (key[i] + below) >> 63;
	return rank;
}

RL_INLINE __u32 rl_ranges_child(const union rl_ranges_block *node)
{
	return *(const volatile __u32 *)&node->inner.child;
}

/* The value that the table has at these first bits of an address. */
RL_INLINE __u32 rl_ranges_entry(__u32 table, __u32 first)
{
	const union rl_ranges_block *block = rl_ranges_block_at(table + first / RL_RANGES_ENTRIES);

	return block ? *(const volatile __u32 *)&block->entry[first % RL_RANGES_ENTRIES] : 0;
}

/* The slot that the tree at block `at` has at `key`. */
RL_FUNCTION __u32 rl_ranges_walk4(__u32 at, __u32 key)
{
	__u64 lanes = (key & ((1U << RL_RANGES_KEY4) - 1)) * RL_RANGES_ONES | RL_RANGES_HIGH * RL_RANGES_ONES;

	for (__u32 i = 0; i < RL_RANGES_DEPTH4; i++) {
		const union rl_ranges_block *node = rl_ranges_block_at(at);
		__u32 rank;

		if (!node)
			return 0;
		if (node->leaf4.ranges) {
			rank = rl_ranges_rank4(node->leaf4.key, 3, lanes);
			if (rank >= RL_RANGES_LEAF4)
				return 0; /* never so: said for the verifier */
			return node->leaf4.low[rank] | (__u32)node->leaf4.high[rank] << 16;
		}
		at = rl_ranges_child(node) + rl_ranges_rank4(node->inner.key, 7, lanes);
	}
	return 0;
}

RL_INLINE __u32 rl_ranges_value6(const union rl_ranges_block *leaf, __u32 rank)
{
	__u32 value = leaf->leaf6.low[rank] | (__u32)leaf->leaf6.high[rank] << 16;

	return value | ((__u32)leaf->leaf6.trees >> rank & 1) << 31;
}

/* The value that the tree at block `at` has at `key`. */
RL_FUNCTION __u32 rl_ranges_walk6(__u32 at, __u64 key)
{
	__u64 below = ~(key & ((1ULL << RL_RANGES_KEY6) - 1));

	for (__u32 i = 0; i < RL_RANGES_DEPTH6; i++) {
		const union rl_ranges_block *node = rl_ranges_block_at(at), *more;
		__u32 rank;

		if (!node)
			return 0;
		rank = rl_ranges_rank6(node->leaf6.key, 3, below);
		if (node->leaf6.ranges && node->leaf6.ranges <= RL_RANGES_SMALL6)
			return rl_ranges_value6(node, rank);
		more = rl_ranges_block_at(at + 1);
		if (!more)
			return 0;
		rank += rl_ranges_rank6(more->keys, 8, below);
		if (node->leaf6.ranges)
			return rl_ranges_value6(node, rank);
		rank += rl_ranges_rank6(node->inner.key + 3, 4, below);
		at = rl_ranges_child(node) + 2 * rank;
	}
	return 0;
}

/* The slot of the longest prefix that an IPv4 address is in, under the word that was read once; 0: of none. */
RL_INLINE __u32 rl_ranges_find4(__u64 word, __u32 address)
{
	__u32 value = rl_ranges_entry(rl_ranges_tables(word), address >> RL_RANGES_KEY4);

	if (value & RL_RANGES_TREE)
		value = rl_ranges_walk4(value & RL_RANGES_INDEX, address);
	return value ? value : rl_ranges_any(word);
}

/* The same for an IPv6 address: its first and its last 64 bits as numbers. */
RL_INLINE __u32 rl_ranges_find6(__u64 word, __u64 first, __u64 last)
{
	__u32 value = rl_ranges_entry(rl_ranges_tables(word) + RL_RANGES_BLOCKS4, (__u32)(first >> 48));

	if (value & RL_RANGES_TREE)
		value = rl_ranges_walk6(value & RL_RANGES_INDEX, first << 8 | last >> 56);
	if (value & RL_RANGES_TREE)
		value = rl_ranges_walk6(value & RL_RANGES_INDEX, last);
	return value ? value : rl_ranges_any(word);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_ranges_abi.h - what the ranges of prefixes look like in their map: blocks of 64 bytes, the size of a cache line. It
 * crosses the kernel line as rl_abi.h does; rl_ranges.h tells what it is for. A block is one of these:
 *
 *     entry    sixteen entries of a table. An entry is a value: a slot, or RL_RANGES_TREE and a tree's first block
 *     inner    up to 28 keys of IPv4, or 15 of IPv6 together with a second block, and the block where the children begin,
 *              all of them one behind the other; child i has the addresses from key i - 1 on
 *     leaf     up to 13 ranges of IPv4, 12 of IPv6; four of IPv6 need no second block. Range i begins at key i - 1, the
 *              first one where its leaf begins. Each has a slot of 24 bits, or (IPv6) the block of a tree of 56 bits more
 *     keys     the second block of an IPv6 node: eight keys, behind those of the first one
 *
 * IPv4's keys are 16-bit lanes, four in a word, the lowest first. Keys that aren't used are above every address.
 */
#ifndef RL_RANGES_ABI_H
#define RL_RANGES_ABI_H

#include <linux/types.h>

#include "rl_abi.h"

#define RL_RANGES_BLOCK	   64
#define RL_RANGES_TABLE4   18 /* bits of an address that the table is indexed by */
#define RL_RANGES_TABLE6   16
#define RL_RANGES_KEY4	   14 /* bits of an address that are a tree's key */
#define RL_RANGES_KEY6	   56
#define RL_RANGES_ENTRIES  16 /* in a block */
#define RL_RANGES_BLOCKS4  ((1U << RL_RANGES_TABLE4) / RL_RANGES_ENTRIES)
#define RL_RANGES_BLOCKS6  ((1U << RL_RANGES_TABLE6) / RL_RANGES_ENTRIES)
#define RL_RANGES_TABLES   (RL_RANGES_BLOCKS4 + RL_RANGES_BLOCKS6) /* blocks: IPv4's table, then IPv6's */
#define RL_RANGES_LEAF4	   13					   /* ranges in a leaf */
#define RL_RANGES_LEAF6	   12
#define RL_RANGES_SMALL6   4  /* ranges in a leaf of one block */
#define RL_RANGES_INNER4   29 /* children */
#define RL_RANGES_INNER6   16
#define RL_RANGES_DEPTH4   5 /* nodes from a tree's root to a leaf, at most */
#define RL_RANGES_DEPTH6   8
#define RL_RANGES_TREE	   (1U << 31)		/* in a value: not a slot, but a tree */
#define RL_RANGES_INDEX	   (RL_RANGES_TREE - 1) /* of its first block */
#define RL_RANGES_SLOT_MAX ((1U << 24) - 1)

/* A 16-bit lane's bits, in all four of a word. A key that isn't used is RL_RANGES_HIGH in its lane. */
#define RL_RANGES_ONES	0x0001000100010001ULL
#define RL_RANGES_HIGH	0x8000U
#define RL_RANGES_NEVER 0x7fffffffffffffffULL /* IPv6's key that isn't used */

union rl_ranges_block {
	__u32 entry[RL_RANGES_ENTRIES];
	struct {
		__u64 key[7]; /* IPv4: four in each; IPv6: one */
		__u32 child;
		__u8 children;
		__u8 pad[2];
		__u8 ranges; /* 0: tells it from a leaf */
	} inner;
	struct {
		__u64 key[3];
		__u16 low[RL_RANGES_LEAF4]; /* of each range's slot: bits 0 to 15 */
		__u8 high[RL_RANGES_LEAF4]; /* and 16 to 23 */
		__u8 ranges;
	} leaf4;
	struct {
		__u64 key[3];
		__u16 low[RL_RANGES_LEAF6];
		__u8 high[RL_RANGES_LEAF6];
		__u16 trees; /* bit i: range i has a tree, and its block in place of a slot */
		__u8 pad;
		__u8 ranges;
	} leaf6;
	__u64 keys[8];
};

_Static_assert(sizeof(union rl_ranges_block) == RL_RANGES_BLOCK, "rl_ranges_block");
_Static_assert(RL_MOST_LIMITS - 1 <= RL_RANGES_SLOT_MAX, "a slot fits");
_Static_assert(RL_RANGES_TABLE4 + RL_RANGES_KEY4 == 32, "all bits of IPv4");
_Static_assert(RL_RANGES_TABLE6 + 2 * RL_RANGES_KEY6 == 128, "all bits of IPv6");
_Static_assert(1U << RL_RANGES_KEY4 <= RL_RANGES_HIGH, "a lane's high bit is free");

/* Where the tables begin, and the slot of `any`; 0: there is none. */
RL_INLINE __u64 rl_ranges_word(__u32 tables, __u32 any)
{
	return (__u64)any << 32 | tables;
}

RL_INLINE __u32 rl_ranges_tables(__u64 word)
{
	return (__u32)word;
}

RL_INLINE __u32 rl_ranges_any(__u64 word)
{
	return word >> 32;
}

#endif

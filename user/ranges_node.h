/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ranges_node.h - one node of a tree of ranges: its keys, its slots, its children. For ranges_tree.c.
 */
#ifndef RL_RANGES_NODE_H
#define RL_RANGES_NODE_H

#include <errno.h>
#include <string.h>

#include "ranges_tree.h"

#define RL_LANE_BITS  16
#define RL_LANE_MASK  0xffffULL
#define RL_WORD_LANES 4

static inline bool rl_shape_lanes(const struct rl_tree_shape *shape)
{
	return shape->lines == 1;
}

/* Does a tree of so many ranges need one block only, whatever its shape's nodes take? */
static inline bool rl_leaf_small(const struct rl_tree_shape *shape, size_t ranges)
{
	return rl_shape_lanes(shape) ? ranges <= RL_RANGES_LEAF4 : ranges <= RL_RANGES_SMALL6;
}

/* 0: an inner node. */
static inline __u32 rl_node_ranges(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at)
{
	return rl_shape_lanes(shape) ? space->block[at].leaf4.ranges : space->block[at].leaf6.ranges;
}

static inline __u32 rl_inner_child(const struct rl_space *space, __u32 at)
{
	return space->block[at].inner.child;
}

static inline __u32 rl_inner_children(const struct rl_space *space, __u32 at)
{
	return space->block[at].inner.children;
}

/* Can what is there be a node that has at most `depth` nodes from it down to a leaf? -EPROTO if not. */
static inline int rl_node_check(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				__u32 depth)
{
	__u32 ranges, children, child;

	if (!depth || at >= space->blocks)
		return -EPROTO;
	ranges = rl_node_ranges(space, shape, at);
	if (ranges && rl_leaf_small(shape, ranges))
		return 0;
	if (ranges > shape->leaf || space->blocks - at < shape->lines)
		return -EPROTO;
	if (ranges)
		return 0;
	children = rl_inner_children(space, at);
	child = rl_inner_child(space, at);
	if (depth == 1 || !children || children > shape->inner || child >= space->blocks)
		return -EPROTO;
	return space->blocks - child < children * shape->lines ? -EPROTO : 0;
}

/* The word that key i of a node is in. */
static inline __u64 *rl_key_word(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				 __u32 i)
{
	__u32 first = rl_node_ranges(space, shape, at) ? 3 : 7; /* keys in an IPv6 node's first block */

	if (rl_shape_lanes(shape))
		return &space->block[at].inner.key[i / RL_WORD_LANES];
	return i < first ? &space->block[at].inner.key[i] : &space->block[at + 1].keys[i - first];
}

static inline __u64 rl_key_read(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				__u32 i)
{
	__u64 word = *rl_key_word(space, shape, at, i);

	return rl_shape_lanes(shape) ? word >> i % RL_WORD_LANES * RL_LANE_BITS & RL_LANE_MASK : word;
}

static inline void rl_key_write(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				__u32 i, __u64 key)
{
	__u64 *word = rl_key_word(space, shape, at, i);
	__u32 shift = i % RL_WORD_LANES * RL_LANE_BITS;

	*word = rl_shape_lanes(shape) ? (*word & ~(RL_LANE_MASK << shift)) | key << shift : key;
}

/* Which range or child of a node a key is in. */
static inline __u32 rl_node_rank(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				 __u64 key)
{
	__u32 ranges = rl_node_ranges(space, shape, at);
	__u32 keys = (ranges ? ranges : rl_inner_children(space, at)) - 1, rank = 0;

	while (rank < keys && rl_key_read(space, shape, at, rank) <= key)
		rank++;
	return rank;
}

/* Clear a node, its keys set to those that aren't used. */
static inline void rl_node_clear(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				 __u32 words, __u32 lines)
{
	__u64 unused = rl_shape_lanes(shape) ? RL_RANGES_HIGH * RL_RANGES_ONES : RL_RANGES_NEVER;

	memset(&space->block[at], 0, sizeof(*space->block));
	for (__u32 i = 0; i < words; i++)
		space->block[at].inner.key[i] = unused;
	for (__u32 i = 0; lines == 2 && i < 8; i++)
		space->block[at + 1].keys[i] = unused;
}

/* An inner node, its keys yet to be written. */
static inline void rl_inner_begin(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				  __u32 child, __u32 children)
{
	rl_node_clear(space, shape, at, 7, shape->lines);
	space->block[at].inner.child = child;
	space->block[at].inner.children = (__u8)children;
}

static inline __u32 rl_leaf_value(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				  __u32 i)
{
	const union rl_ranges_block *leaf = &space->block[at];

	if (rl_shape_lanes(shape))
		return leaf->leaf4.low[i] | (__u32)leaf->leaf4.high[i] << 16;
	return leaf->leaf6.low[i] | (__u32)leaf->leaf6.high[i] << 16 |
	       (leaf->leaf6.trees >> i & 1 ? RL_RANGES_TREE : 0);
}

static inline void rl_leaf_write(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 at,
				 const struct rl_range *range, __u32 count)
{
	union rl_ranges_block *leaf = &space->block[at];

	rl_node_clear(space, shape, at, 3, rl_leaf_small(shape, count) ? 1 : shape->lines);
	if (rl_shape_lanes(shape))
		leaf->leaf4.ranges = (__u8)count;
	else
		leaf->leaf6.ranges = (__u8)count;
	for (__u32 i = 0; i < count; i++) {
		if (i)
			rl_key_write(space, shape, at, i - 1, range[i].key);
		if (rl_shape_lanes(shape)) {
			leaf->leaf4.low[i] = (__u16)range[i].value;
			leaf->leaf4.high[i] = (__u8)(range[i].value >> 16);
		} else {
			leaf->leaf6.low[i] = (__u16)range[i].value;
			leaf->leaf6.high[i] = (__u8)(range[i].value >> 16);
			leaf->leaf6.trees |= (__u16)(range[i].value >> 31 << i);
		}
	}
}

#endif

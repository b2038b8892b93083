/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ranges_tree.h - trees of ranges in blocks, as bpf/rl_ranges.h reads them: write one, read it back, change it by one store.
 * For ranges.c and ranges_build.c.
 *
 * Nothing that packets can reach is written here. Blocks are only ever taken behind the last one in use, so what becomes of
 * a change that is given up is free again once `next` is put back.
 *
 * Errors: -ENOMEM, -ENOSPC where the blocks are used up, -EPROTO where what is read is no tree. Without texts.
 */
#ifndef RL_RANGES_TREE_H
#define RL_RANGES_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "../bpf/rl_ranges_abi.h"

/* A family's trees. */
struct rl_tree_shape {
	__u32 leaf;			   /* ranges in a leaf, at most */
	__u32 inner;			   /* children of an inner node, at most */
	__u32 lines;			   /* blocks of a node */
	__u32 depth;			   /* nodes from the root to a leaf, at most */
	__u64 last;			   /* the largest key */
	const struct rl_tree_shape *below; /* of trees that may be in place of slots; NULL: there are none */
};

extern const struct rl_tree_shape rl_tree4, rl_tree6;

/* Blocks, and those that are free: [next, end). */
struct rl_space {
	union rl_ranges_block *block;
	__u32 blocks;
	__u32 next, end;
};

/* So many blocks, one behind the other. */
int rl_space_take(struct rl_space *space, __u32 blocks, __u32 *at);

/* A range goes from its key to the next one's. */
struct rl_range {
	__u64 key;
	__u32 value; /* a slot, or RL_RANGES_TREE and the first block of a tree for the 56 bits that follow */
};

/* Ranges in the order of their keys. */
struct rl_range_list {
	struct rl_range *range;
	size_t count, room;
};

#define RL_RANGE_LIST __attribute__((cleanup(rl_range_list_free)))

void rl_range_list_free(struct rl_range_list *list);

/* One more range, behind the others: in place of the last one if that has its key; none if that has its value. */
int rl_range_add(struct rl_range_list *list, __u64 key, __u32 value);

/* Write ranges, at least one, the first of which has key 0. A single one needs no tree: its value is the tree's. */
int rl_tree_write(struct rl_space *space, const struct rl_tree_shape *shape, const struct rl_range_list *list,
		  __u32 *value);

/* Add all ranges of a value to a list. */
int rl_tree_read(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 value,
		 struct rl_range_list *out);

/* The value's tree and the trees in it, all of them written anew. */
int rl_tree_copy(struct rl_space *space, const struct rl_tree_shape *shape, __u32 value, __u32 *out);

/* From key `first` to key `last`, what has the value `from` gets `to`; also in trees that are in place of slots. */
struct rl_tree_edit {
	__u64 first, last;
	__u32 from, to;
};

/* The store that puts an edit in force. */
struct rl_tree_store {
	__u32 *where; /* in an inner node; NULL: wherever the tree's value stands */
	__u32 value;  /* NULL and the value that was there: nothing changes */
};

/* Write the lowest node that holds all of the change anew, and its siblings with it; or else the whole tree. */
int rl_tree_edit(struct rl_space *space, const struct rl_tree_shape *shape, __u32 value,
		 const struct rl_tree_edit *edit, struct rl_tree_store *out);

/* The same for all that a value is for: what it becomes. */
int rl_value_edit(struct rl_space *space, const struct rl_tree_shape *shape, __u32 from, __u32 to,
		  __u32 *value);

/* The value at a key. */
int rl_tree_find(const struct rl_space *space, const struct rl_tree_shape *shape, __u32 value, __u64 key,
		 __u32 *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ranges_table.h - the tables over the trees of ranges, and the halves of the blocks. For ranges.c and ranges_build.c.
 */
#ifndef RL_RANGES_TABLE_H
#define RL_RANGES_TABLE_H

#include "ranges.h"
#include "ranges_tree.h"

/* An address of either family, its first bit on top; 96 zeros are behind an IPv4 address. */
typedef unsigned __int128 rl_address;

struct rl_ranges_family {
	const struct rl_tree_shape *tree;
	__u32 block; /* of the tables: where its own begins */
	__u32 bits;  /* of an address that tell the entry, */
	__u32 keys;  /* then those that are a key of its tree; the rest is one of a tree below */
};

extern const struct rl_ranges_family rl_ranges_family4, rl_ranges_family6;

/* The family of a valid prefix other than `any`. */
const struct rl_ranges_family *rl_ranges_family_of(const struct rl_prefix *prefix);

/* The first and the last address of a prefix other than `any`. -EINVAL: it is none, or has host bits. */
int rl_ranges_span(const struct rl_prefix *prefix, rl_address *first, rl_address *last);

static inline __u32 rl_ranges_entry_of(const struct rl_ranges_family *family, rl_address address)
{
	return (__u32)(address >> (128 - family->bits));
}

static inline __u64 rl_ranges_key_of(const struct rl_ranges_family *family, rl_address address)
{
	return (__u64)(address >> (128 - family->bits - family->keys)) & family->tree->last;
}

static inline __u64 rl_ranges_rest_of(const struct rl_ranges_family *family, rl_address address)
{
	return family->tree->below ? (__u64)address & family->tree->below->last : 0;
}

/* An entry of the tables that begin at block `tables`. */
static inline __u32 *rl_ranges_entry_at(const struct rl_ranges *ranges, __u32 tables,
					const struct rl_ranges_family *family, __u32 entry)
{
	union rl_ranges_block *block = &ranges->block[tables + family->block];

	return &block[entry / RL_RANGES_ENTRIES].entry[entry % RL_RANGES_ENTRIES];
}

/* There is room for the tables, and no more blocks than there may be. */
bool rl_ranges_usable(const struct rl_ranges *ranges);

/* The tables in force, and the slot of `any`. */
__u64 rl_ranges_word_now(const struct rl_ranges *ranges);

/* Free blocks of the half in force: what is behind those in use. */
struct rl_space rl_ranges_space(const struct rl_ranges *ranges);

/* The other half, with nothing in it but tables that are to be written. -ENOSPC where the blocks aren't usable. */
int rl_ranges_space_other(const struct rl_ranges *ranges, struct rl_space *space, __u32 *tables);

/* What was taken of a space stays taken. Before the store that puts it in force. */
void rl_ranges_commit(const struct rl_ranges *ranges, const struct rl_space *space);

/* The store that puts the tables in force. */
void rl_ranges_switch(const struct rl_ranges *ranges, __u32 tables, __u32 any);

/* One text for each way in which writing fails; returns rc. */
int rl_ranges_failed(int rc, struct rl_error *err);

#endif

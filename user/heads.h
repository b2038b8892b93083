/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * heads.h - limits by slot: which cell is in force, reading it, and putting another one in its place by one store.
 */
#ifndef RL_HEADS_H
#define RL_HEADS_H

#include "mapping.h"

struct rl_heads {
	const struct rl_state *state;
	struct rl_mapping map;	    /* of rl_heads: a word a slot (rl_ref.h) */
	struct rl_mapping settings; /* of rl_settings */
	struct rl_mapping index;    /* of rl_index (index.h) */
	struct rl_mapping cells;    /* of rl_limits; mapped for SCAN and REWRITE, it is large */
	struct rl_mapping slots;    /* of rl_slots; mapped for WRITE and REWRITE (claims.h) */
	struct rl_mapping claims;   /* of rl_cells; likewise */
	struct rl_mapping own;	    /* of rl_own; mapped for REWRITE */
};

#define RL_HEADS __attribute__((cleanup(rl_heads_close)))

enum rl_heads_use {
	RL_HEADS_READ, /* few limits */
	RL_HEADS_SCAN, /* most of them */
	RL_HEADS_WRITE,
	RL_HEADS_REWRITE, /* most of them, and new ones into cells that nobody reads */
};

/* Start from a zeroed struct. */
int rl_heads_open(const struct rl_state *state, enum rl_heads_use use, struct rl_heads *out,
		  struct rl_error *err);
void rl_heads_close(struct rl_heads *heads);

__u64 rl_head_read(const struct rl_heads *heads, __u32 slot); /* 0 for a slot that there isn't */
void rl_head_write(const struct rl_heads *heads, __u32 slot, __u64 ref);

struct rl_settings *rl_heads_settings(const struct rl_heads *heads);
__u32 rl_heads_epoch(const struct rl_heads *heads);

/* Before a prefix comes into the policy: one that is longer than /64 divides the sources of others. */
void rl_heads_split(const struct rl_heads *heads, const struct rl_prefix *prefix);

/* One store of one word of rl_settings. */
void rl_setting_write(__u32 *word, __u32 value);

/* The limit in force in this slot; false for slot 0, or none. Also while others change it: never a mixture. */
bool rl_heads_limit(const struct rl_heads *heads, __u32 slot, struct rl_limit *out);

/* The cell in force in this slot. */
__u32 rl_heads_cell(const struct rl_heads *heads, __u32 slot);

/* The cell's limit, whoever it belongs to; in *room where cells aren't mapped. NULL for cell 0. */
const struct rl_limit *rl_cell_at(const struct rl_heads *heads, __u32 cell, struct rl_limit *room);

/* Likewise, a copy. False for cell 0. */
bool rl_cell_read(const struct rl_heads *heads, __u32 cell, struct rl_limit *out);

#endif

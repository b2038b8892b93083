// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "heads.h"

#include <bpf/bpf.h>
#include <string.h>

#include "../bpf/rl_ref.h"

#define TRIES 1000 /* a change takes longer than reading a cell does: far more than it ever takes */

void rl_heads_close(struct rl_heads *heads)
{
	rl_mapping_close(&heads->map);
	rl_mapping_close(&heads->settings);
	rl_mapping_close(&heads->index);
	rl_mapping_close(&heads->cells);
	rl_mapping_close(&heads->slots);
	rl_mapping_close(&heads->claims);
	rl_mapping_close(&heads->own);
}

int rl_heads_open(const struct rl_state *state, enum rl_heads_use use, struct rl_heads *out,
		  struct rl_error *err)
{
	bool writable = use == RL_HEADS_WRITE || use == RL_HEADS_REWRITE;
	bool most = use == RL_HEADS_SCAN || use == RL_HEADS_REWRITE;
	enum rl_mapping_how how = most ? RL_MAPPING_WHOLE : RL_MAPPING_PARTS;
	int rc = rl_mapping_open(state, RL_MAP_HEADS, sizeof(__u64), writable, how, &out->map, err);

	out->state = state;
	if (!rc)
		rc = rl_mapping_open(state, RL_MAP_SETTINGS, sizeof(struct rl_settings), writable,
				     RL_MAPPING_WHOLE, &out->settings, err);
	if (!rc)
		rc = rl_mapping_open(state, RL_MAP_INDEX, sizeof(__u64), writable, how, &out->index, err);
	if (!rc && most)
		rc = rl_mapping_open(state, RL_MAP_LIMITS, sizeof(struct rl_limit), writable,
				     RL_MAPPING_GROWING, &out->cells, err);
	if (!rc && writable)
		rc = rl_mapping_open(state, RL_MAP_SLOTS, sizeof(struct rl_claim), true, how, &out->slots,
				     err);
	if (!rc && writable)
		rc = rl_mapping_open(state, RL_MAP_CELLS, sizeof(struct rl_claim), true, how, &out->claims,
				     err);
	if (!rc && use == RL_HEADS_REWRITE)
		rc = rl_mapping_open(state, RL_MAP_OWN, sizeof(struct rl_source), true, RL_MAPPING_GROWING,
				     &out->own, err);
	if (rc)
		rl_heads_close(out);
	return rc;
}

__u64 rl_head_read(const struct rl_heads *heads, __u32 slot)
{
	return slot < heads->map.entries ? rl_word_read(rl_mapping_at(&heads->map, slot)) : 0;
}

void rl_head_write(const struct rl_heads *heads, __u32 slot, __u64 ref)
{
	/* The cell was written before. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (slot < heads->map.entries)
		rl_word_write(rl_mapping_at(&heads->map, slot), ref);
}

struct rl_settings *rl_heads_settings(const struct rl_heads *heads)
{
	return heads->settings.base;
}

__u32 rl_heads_epoch(const struct rl_heads *heads)
{
	return *(const volatile __u32 *)&rl_heads_settings(heads)->epoch;
}

void rl_heads_split(const struct rl_heads *heads, const struct rl_prefix *prefix)
{
	if (prefix->family == 6 && prefix->prefixlen > RL_PREFIX_FAMILY_BITS + 64)
		rl_setting_write(&rl_heads_settings(heads)->split, 1);
}

void rl_setting_write(__u32 *word, __u32 value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

__u32 rl_heads_cell(const struct rl_heads *heads, __u32 slot)
{
	return slot ? rl_ref_cell(rl_head_read(heads, slot), rl_heads_epoch(heads)) : 0;
}

const struct rl_limit *rl_cell_at(const struct rl_heads *heads, __u32 cell, struct rl_limit *room)
{
	if (!cell)
		return NULL;
	if (!heads->cells.entries)
		return bpf_map_lookup_elem(heads->state->map[RL_MAP_LIMITS], &cell, room) ? NULL : room;
	return cell < heads->cells.entries ? rl_mapping_at(&heads->cells, cell) : NULL;
}

bool rl_cell_read(const struct rl_heads *heads, __u32 cell, struct rl_limit *out)
{
	const struct rl_limit *limit = rl_cell_at(heads, cell, out);

	if (limit && limit != out)
		memcpy(out, limit, sizeof(*out));
	return limit;
}

/* A cell isn't written while it is in force: what was read of it is whole where it was so before and after. */
bool rl_heads_limit(const struct rl_heads *heads, __u32 slot, struct rl_limit *out)
{
	for (int try = 0; try < TRIES; try++) {
		__u64 ref = rl_head_read(heads, slot);
		__u32 epoch = rl_heads_epoch(heads);
		bool there;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		there = slot && rl_cell_read(heads, rl_ref_cell(ref, epoch), out);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (rl_head_read(heads, slot) == ref && rl_heads_epoch(heads) == epoch)
			return there;
	}
	return false;
}

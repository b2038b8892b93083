// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "room.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "cleanup.h"
#include "index.h"
#include "limit.h"
#include "names.h"
#include "target.h"
#include "walk.h"
#include "zero.h"

/* Who is in reach, by index: ids of limits, 0 where nobody is. */
struct reach {
	__u32 *slots, *cells;
	__u32 slot_count, cell_count;
	__u8 *named; /* by slot: a tenant that a prefix belongs to */
};

#define REACH __attribute__((cleanup(reach_free)))

static void reach_free(struct reach *reach)
{
	free(reach->slots);
	free(reach->cells);
	free(reach->named);
}

static int reach_make(const struct rl_heads *heads, struct reach *out, struct rl_error *err)
{
	out->slot_count = rl_claims_count(heads, RL_MAP_SLOTS);
	out->cell_count = rl_claims_count(heads, RL_MAP_CELLS);
	out->slots = calloc(out->slot_count + 1, sizeof(*out->slots));
	out->cells = calloc(out->cell_count + 1, sizeof(*out->cells));
	out->named = calloc(out->slot_count + 1, sizeof(*out->named));
	if (!out->slots || !out->cells || !out->named)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	return 0;
}

static void reach_add(struct reach *reach, const struct rl_heads *heads, __u32 slot, __u32 id)
{
	__u32 cell = rl_heads_cell(heads, slot);

	if (slot < reach->slot_count)
		reach->slots[slot] = id;
	if (cell < reach->cell_count)
		reach->cells[cell] = id;
}

static void reach_prefixes(struct reach *reach, const struct rl_heads *heads)
{
	for (__u32 slot = 1; slot < heads->map.entries; slot++) {
		struct rl_limit room, one;
		const struct rl_limit *limit = rl_index_in_force(heads, slot, &room);

		if (!limit)
			continue;
		reach_add(reach, heads, slot, limit->id);
		if (limit->tenant < reach->slot_count)
			reach->named[limit->tenant] = 1;
		for (__u32 k = 0; k < limit->class_count && k < RL_MAX_CLASSES; k++)
			if (rl_heads_limit(heads, limit->class[k].slot, &one))
				reach_add(reach, heads, limit->class[k].slot, one.id);
	}
}

/* A tenant that says nothing and that nobody names goes, and so does a name whose slot has no cell. */
static int reach_names(struct reach *reach, const struct rl_heads *heads, struct rl_error *err)
{
	RL_FREE struct rl_walk_name *entries = NULL;
	size_t count = 0;
	int rc = rl_walk_names(heads->state, &entries, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		__u32 slot = entries[i].slot;
		struct rl_limit limit;

		if (rl_names_find(heads, &entries[i].target, &limit) &&
		    (rl_limit_says(&limit) || (slot < reach->slot_count && reach->named[slot])))
			reach_add(reach, heads, slot, limit.id);
		else
			rc = rl_names_leave(heads, &entries[i].target, err);
	}
	return rc;
}

int rl_room_reclaim(const struct rl_heads *heads, struct rl_error *err)
{
	REACH struct reach reach = {};
	int rc = reach_make(heads, &reach, err);

	if (rc)
		return rc;
	reach_prefixes(&reach, heads);
	rc = reach_names(&reach, heads, err);
	if (rc)
		return rc;
	rl_claims_keep(heads, RL_MAP_SLOTS, reach.slots, reach.slot_count);
	rl_claims_keep(heads, RL_MAP_CELLS, reach.cells, reach.cell_count);
	return 0;
}

/*
 * Full bucket, no counts, no cell: what a new limit finds at its slot. The head first, since a head's cell may have got
 * another owner since the slot was given back.
 */
static int slot_empty(const struct rl_heads *heads, __u32 id, __u32 slot, struct rl_error *err)
{
	const struct rl_source fresh = {.key = id};
	RL_FREE struct rl_limit_count *zero = calloc((size_t)rl_possible_cpus(), sizeof(*zero));

	if (!zero)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rl_head_write(heads, slot, rl_ref(0));
	if (bpf_map_update_elem(heads->state->map[RL_MAP_OWN], &slot, &fresh, BPF_ANY) ||
	    bpf_map_update_elem(heads->state->map[RL_MAP_LIMIT_COUNT], &slot, zero, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't prepare a limit's slot: %s",
				    strerror(errno));
	return 0;
}

/* Nobody had the slot before: its counts are zero still. */
static bool slot_is_virgin(const struct rl_heads *heads, __u32 slot)
{
	return !((const struct rl_source *)rl_mapping_at(&heads->own, slot))->key;
}

/* Those of them that were somebody's. *out is allocated; the caller frees it. */
static int slots_used(const struct rl_heads *heads, const __u32 *slots, size_t count, __u32 **out,
		      size_t *found, struct rl_error *err)
{
	*out = calloc(count + 1, sizeof(**out));
	*found = 0;
	if (!*out)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		if (!slot_is_virgin(heads, slots[i]))
			(*out)[(*found)++] = slots[i];
	return 0;
}

int rl_room_empty(const struct rl_heads *heads, const __u32 *slots, const __u32 *ids, size_t count,
		  struct rl_error *err)
{
	RL_FREE __u32 *used = NULL;
	size_t found;
	int rc = slots_used(heads, slots, count, &used, &found, err);

	for (size_t i = 0; !rc && i < found; i++)
		rl_head_write(heads, used[i], rl_ref(0));
	if (!rc)
		rc = rl_zero_counts(heads->state, used, found, err);
	/* The counts before the key: killed in between, they are zeroed again. */
	for (size_t i = 0; !rc && i < count; i++) {
		rl_head_write(heads, slots[i], rl_ref(0));
		*(struct rl_source *)rl_mapping_at(&heads->own, slots[i]) = (struct rl_source){.key = ids[i]};
	}
	return rc;
}

int rl_room_slot(const struct rl_heads *heads, __u32 *id, __u32 *slot, struct rl_error *err)
{
	__u32 taken, at;
	int rc = rl_ids_take(heads->state, 1, &taken, err);

	if (!rc)
		rc = rl_claim_take(heads, RL_MAP_SLOTS, taken, taken, &at, err);
	if (rc == -ENOSPC)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, ENOSPC,
		    "the policy is full: %u limits; delete some with `rl-agent del-limit`, name wider "
		    "prefixes, or start anew with more room: `rl-agent detach --all`, then attach "
		    "with --max-limits",
		    heads->map.entries - 1);
	if (rc)
		return rc;
	rc = slot_empty(heads, taken, at, err);
	if (rc) {
		rl_claim_free(heads, RL_MAP_SLOTS, at);
		return rc;
	}
	*id = taken;
	*slot = at;
	return 0;
}

int rl_room_cell(const struct rl_heads *heads, const struct rl_limit *limit, __u32 from, __u32 *cell,
		 struct rl_error *err)
{
	__u32 at;
	int rc = rl_claim_take(heads, RL_MAP_CELLS, limit->id, from, &at, err);

	if (rc == -ENOSPC)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, ENOSPC,
		    "the change touches more limits at once than there is room to prepare (%u for all, old and new): "
		    "delete some, or give the prefixes inside a tenant of their own first",
		    RL_CELLS(heads->map.entries));
	if (rc)
		return rc;
	if (bpf_map_update_elem(heads->state->map[RL_MAP_LIMITS], &at, limit, BPF_ANY)) {
		rc = rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write a limit: %s", strerror(errno));
		rl_claim_free(heads, RL_MAP_CELLS, at);
		return rc;
	}
	*cell = at;
	return 0;
}

void rl_room_free(const struct rl_heads *heads, __u32 slot)
{
	__u32 cell = rl_heads_cell(heads, slot);

	/* A packet of an earlier epoch that is under way finds the limit still; to all others its buckets are nobody's. */
	rl_head_write(heads, slot, rl_ref_staged(cell, 0, rl_heads_epoch(heads)));
	rl_claim_free(heads, RL_MAP_CELLS, cell);
	rl_claim_free(heads, RL_MAP_SLOTS, slot);
}

int rl_room_replace(const struct rl_heads *heads, const struct rl_limit *limit, struct rl_error *err)
{
	__u32 before = rl_heads_cell(heads, limit->slot), after;
	int rc = rl_room_cell(heads, limit, before, &after, err);

	if (rc)
		return rc;
	rl_head_write(heads, limit->slot, rl_ref(after));
	rl_claim_free(heads, RL_MAP_CELLS, before);
	return 0;
}

int rl_room_place(const struct rl_heads *heads, struct rl_limit *limit, struct rl_error *err)
{
	__u32 cell;
	int rc = rl_room_slot(heads, &limit->id, &limit->slot, err);

	if (rc)
		return rc;
	rc = rl_room_cell(heads, limit, limit->id, &cell, err);
	if (rc)
		rl_claim_free(heads, RL_MAP_SLOTS, limit->slot);
	else
		rl_head_write(heads, limit->slot, rl_ref(cell));
	return rc;
}

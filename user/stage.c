// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stage.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "cleanup.h"
#include "index.h"
#include "names.h"
#include "room.h"

static int unfinished_write(const struct rl_heads *heads, __u32 value, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(heads->state, &meta, err);

	meta.unfinished = value;
	return rc ? rc : rl_state_meta_write(heads->state, &meta, err);
}

/* The cell's limit, if it is the slot's own, and not that of the limit around its prefix. Otherwise NULL. */
static const struct rl_limit *cell_own(const struct rl_heads *heads, __u32 slot, __u32 cell,
				       struct rl_limit *room)
{
	const struct rl_limit *limit = rl_cell_at(heads, cell, room);

	return limit && limit->slot == slot ? limit : NULL;
}

/*
 * Out of reach, whatever it is, while its head is staged still: killed in between, it is found again. Unless something else
 * leads elsewhere by now: an agent that was killed may have left a head that is staged since long ago.
 */
static int leave(struct rl_index *index, const struct rl_limit *limit, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	__u32 slot;

	if (limit->level == RL_LEVEL_SOURCE)
		return rl_index_leave(index, &limit->target.prefix, limit->slot, err);
	if (bpf_map_lookup_elem(heads->state->map[RL_MAP_NAMES], &limit->target, &slot) ||
	    slot != limit->slot)
		return 0;
	return rl_names_leave(heads, &limit->target, err);
}

static bool class_named(const struct rl_limit *general, __u32 slot)
{
	for (__u32 i = 0; i < general->class_count && i < RL_MAX_CLASSES; i++)
		if (general->class[i].slot == slot)
			return true;
	return false;
}

/* Give back the classes that the one which lost names, but for those of the one which won, NULL: there is none. */
static void classes_free(const struct rl_heads *heads, const struct rl_limit *loser,
			 const struct rl_limit *winner)
{
	for (__u32 i = 0; i < loser->class_count && i < RL_MAX_CLASSES; i++)
		if (!winner || !class_named(winner, loser->class[i].slot))
			rl_room_free(heads, loser->class[i].slot);
}

/* What a staged head came to. */
struct outcome {
	__u32 slot;
	__u32 won, lost;		       /* cells */
	const struct rl_limit *winner, *loser; /* the slot's own, or NULL */
	struct rl_limit winner_room, loser_room;
};

static void outcome_of(const struct rl_heads *heads, __u32 slot, __u64 ref, struct outcome *out)
{
	__u32 before = rl_ref_before(ref);

	out->slot = slot;
	out->won = rl_ref_cell(ref, rl_heads_epoch(heads));
	out->lost = out->won == before ? rl_ref_after(ref) : before;
	out->winner = cell_own(heads, slot, out->won, &out->winner_room);
	out->loser = cell_own(heads, slot, out->lost, &out->loser_room);
}

/* left: prefixes that go are out of reach already. */
static int settle(struct rl_index *index, const struct outcome *outcome, bool left, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	const struct rl_limit *loser = outcome->loser;

	if (!outcome->winner && loser && !(left && loser->level == RL_LEVEL_SOURCE)) {
		int rc = leave(index, loser, err);

		if (rc)
			return rc;
	}
	rl_head_write(heads, outcome->slot, rl_ref(outcome->won));
	if (loser) {
		rl_claim_free(heads, RL_MAP_CELLS, outcome->lost);
		classes_free(heads, loser, outcome->winner);
	}
	if (!outcome->winner)
		rl_claim_free(heads, RL_MAP_SLOTS, outcome->slot);
	return 0;
}

/*
 * Is the head staged by whom the slot belongs to? That of a limit that went may be staged still (settle_single, rl_room_free),
 * also where the slot has been claimed anew and its owner was killed before it wrote the head.
 */
static bool is_staged(const struct rl_heads *heads, const struct outcome *outcome)
{
	__u32 id = rl_claim_read(heads, RL_MAP_SLOTS, outcome->slot).id;

	return id && ((outcome->winner && outcome->winner->id == id) ||
		      (outcome->loser && outcome->loser->id == id));
}

/* Is there a staged head in this slot? */
static bool head_staged(const struct rl_heads *heads, __u32 slot, struct outcome *out)
{
	__u64 ref = rl_head_read(heads, slot);

	if (rl_ref_before(ref) == rl_ref_after(ref))
		return false;
	outcome_of(heads, slot, ref, out);
	return true;
}

/* Where many prefixes go, all of them at once, and *left. Fewer are settle()'s. */
static int leave_many(struct rl_index *index, bool *left, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	RL_FREE struct rl_ranges_prefix *gone = NULL;
	size_t count = 0, room = 0;
	struct outcome outcome;

	for (__u32 slot = 1; slot < heads->map.entries; slot++) {
		if (!head_staged(heads, slot, &outcome) || outcome.winner || !outcome.loser ||
		    outcome.loser->level != RL_LEVEL_SOURCE || !is_staged(heads, &outcome))
			continue;
		if (count == room) {
			void *grown =
			    reallocarray(gone, room = room ? 2 * room : RL_INDEX_MANY, sizeof(*gone));

			if (!grown)
				return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
			gone = grown;
		}
		gone[count++] =
		    (struct rl_ranges_prefix){.prefix = outcome.loser->target.prefix, .slot = slot};
	}
	*left = count >= RL_INDEX_MANY;
	return *left ? rl_index_leave_many(index, gone, count, err) : 0;
}

static int finish(struct rl_index *index, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	struct outcome outcome;
	bool left = false;
	int rc = rl_grace_wait(err);

	if (!rc)
		rc = leave_many(index, &left, err);
	for (__u32 slot = 1; !rc && slot < heads->map.entries; slot++) {
		if (!head_staged(heads, slot, &outcome))
			continue;
		if (is_staged(heads, &outcome))
			rc = settle(index, &outcome, left, err);
		else
			rl_head_write(heads, slot, rl_ref(0));
	}
	return rc ? rc : unfinished_write(heads, 0, err);
}

/*
 * One head alone, a prefix that came or went. No grace period is waited for: a packet of the old epoch that sees it settled
 * sees one policy all the same, the new one. The head of a prefix that went stays staged: such a packet, which found the
 * prefix before, still finds its limit there; and who has the slot next writes the head anew.
 */
static int settle_single(struct rl_index *index, const struct rl_staged *staged, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	struct rl_limit room;
	const struct rl_limit *limit;
	int rc;

	if (cell_own(heads, staged->slot, staged->after, &room)) {
		rl_head_write(heads, staged->slot, rl_ref(staged->after));
		return unfinished_write(heads, 0, err);
	}
	limit = cell_own(heads, staged->slot, staged->before, &room);
	rc = limit ? leave(index, limit, err) : 0;
	if (rc)
		return rc;
	if (limit) {
		rl_claim_free(heads, RL_MAP_CELLS, staged->before);
		classes_free(heads, limit, NULL);
		rl_claim_free(heads, RL_MAP_SLOTS, staged->slot);
	}
	return unfinished_write(heads, 0, err);
}

/* Prefixes that come, in reach, with heads that give as yet what was in force before. */
static int prefixes_enter(struct rl_index *index, const struct rl_ranges_prefix *come, size_t count,
			  struct rl_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		rl_heads_split(index->heads, &come[i].prefix);
	if (count >= RL_INDEX_MANY)
		return rl_index_enter_many(index, come, count, err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = rl_index_enter(index, &come[i].prefix, come[i].slot, err);
	return rc;
}

/* All that comes. */
static int enter(struct rl_index *index, const struct rl_staged *staged, size_t count, struct rl_error *err)
{
	RL_FREE struct rl_ranges_prefix *come = calloc(count + 1, sizeof(*come));
	size_t prefixes = 0;
	int rc = 0;

	if (!come)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < count; i++) {
		const struct rl_target *target = staged[i].enters;

		if (target && target->kind == RL_TARGET_PREFIX)
			come[prefixes++] =
			    (struct rl_ranges_prefix){.prefix = target->prefix, .slot = staged[i].slot};
		else if (target)
			rc = rl_names_enter(index->heads, target, staged[i].slot, err);
	}
	return rc ? rc : prefixes_enter(index, come, prefixes, err);
}

/* Is it one prefix that comes or goes, and nothing else? */
static bool is_single(const struct rl_heads *heads, const struct rl_staged *staged, size_t count)
{
	struct rl_limit before_room, after_room;
	const struct rl_limit *before, *after;

	if (count != 1)
		return false;
	before = cell_own(heads, staged->slot, staged->before, &before_room);
	after = cell_own(heads, staged->slot, staged->after, &after_room);
	return !before != !after && (before ? before : after)->level == RL_LEVEL_SOURCE;
}

static int run(struct rl_index *index, const struct rl_staged *staged, size_t count, struct rl_error *err)
{
	const struct rl_heads *heads = index->heads;
	__u32 next = rl_heads_epoch(heads) + 1;
	struct rl_error ignored;
	int rc = unfinished_write(heads, 1, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		rl_head_write(heads, staged[i].slot, rl_ref_staged(staged[i].before, staged[i].after, next));
	rc = enter(index, staged, count, err);
	if (rc) {
		finish(index, &ignored);
		return rc;
	}
	rl_setting_write(&rl_heads_settings(heads)->epoch, next);
	/* The change is made. Should this fail, the next change does it. */
	if (is_single(heads, staged, count))
		settle_single(index, staged, &ignored);
	else
		finish(index, &ignored);
	return 0;
}

int rl_stage_run(const struct rl_heads *heads, const struct rl_staged *staged, size_t count,
		 struct rl_error *err)
{
	RL_INDEX struct rl_index index = {.heads = heads};

	return run(&index, staged, count, err);
}

int rl_stage_mend(const struct rl_heads *heads, struct rl_error *err)
{
	RL_INDEX struct rl_index index = {.heads = heads};
	struct rl_meta meta;
	int rc = rl_state_meta(heads->state, &meta, err);

	return rc || !meta.unfinished ? rc : finish(&index, err);
}

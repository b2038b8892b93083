// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy_apply.h"

#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "class.h"
#include "cleanup.h"
#include "limit.h"
#include "policy_parts.h"
#include "room.h"
#include "stage.h"

int rl_policy_file_resolve(struct rl_policy_file *file, const struct rl_attached *attached, size_t count,
			   struct rl_error *err)
{
	for (size_t i = 0; i < file->count; i++) {
		struct rl_policy_line *line = &file->lines[i];
		int rc = 0;

		if (line->target.kind == RL_TARGET_DEVICE)
			rc = rl_attached_resolve(attached, count, &line->target, err);
		if (rc)
			return rl_policy_line_error(file->name, line->number, rc, err);
	}
	return rl_policy_file_order(file, err);
}

static bool is_class(const struct rl_step *step)
{
	return rl_class_is_set(step->class);
}

/* ---- room ---- */

/* Places and whose they are to be. */
struct places {
	enum rl_map map;
	size_t count; /* wanted */
	size_t found;
	__u32 *at, *id;
};

/* For the limits that come, and for those that change too. */
struct room {
	struct places slots, cells;
};

#define ROOM __attribute__((cleanup(room_free)))

static void room_free(struct room *room)
{
	free(room->slots.at);
	free(room->slots.id);
	free(room->cells.at);
	free(room->cells.id);
}

/* As the limits that get them are: who goes along the places meets prefixes, and memory, in order. */
static int places_order(const struct rl_heads *heads, struct places *places, struct rl_error *err)
{
	__u32 entries = rl_claims_count(heads, places->map);
	RL_FREE bool *taken = calloc(entries, sizeof(*taken));
	size_t count = 0;

	if (!taken)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < places->found; i++)
		taken[places->at[i]] = true;
	for (__u32 index = 0; index < entries; index++)
		if (taken[index])
			places->at[count++] = index;
	return 0;
}

static int places_find(const struct rl_heads *heads, struct places *places, __u32 from, struct rl_error *err)
{
	int rc;

	places->at = calloc(places->count + 1, sizeof(*places->at));
	places->id = calloc(places->count + 1, sizeof(*places->id));
	if (!places->at || !places->id)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	rc = rl_claims_find(heads, places->map, from, places->count, places->at, &places->found, err);
	if (rc == -ENOSPC)
		return 0;
	return rc ? rc : places_order(heads, places, err);
}

static size_t missing(const struct places *places)
{
	return places->count > places->found ? places->count - places->found : 0;
}

static int refuse_room(const struct rl_heads *heads, const struct rl_diff *diff, const struct room *room,
		       struct rl_error *err)
{
	size_t slots = missing(&room->slots), cells = missing(&room->cells);
	size_t most = slots > cells ? slots : cells, all = diff->said.limits;

	return rl_error_set(
	    err, RL_ERROR_KERNEL, ENOSPC,
	    "%s has %zu limits, %zu of them new and %zu changed, and %zu of all fit beside those in force, which stay "
	    "until the new ones are complete (there is room for %u, and for %u old and new versions of them): nothing "
	    "was changed; name wider prefixes, delete limits first, or start anew with more room: `rl-agent detach --all`, "
	    "then attach with --max-limits or with --policy",
	    diff->name, all, diff->said.come, diff->said.changed, all > most ? all - most : 0,
	    heads->map.entries - 1, heads->cells.entries - 1);
}

static int room_find(const struct rl_heads *heads, const struct rl_diff *diff, struct room *room,
		     struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(heads->state, &meta, err);

	room->slots = (struct places){.map = RL_MAP_SLOTS, .count = diff->fates[RL_FATE_COMES]};
	room->cells = (struct places){.map = RL_MAP_CELLS,
				      .count = diff->fates[RL_FATE_COMES] + diff->fates[RL_FATE_CHANGES]};
	if (!rc)
		rc = places_find(heads, &room->slots, meta.next_limit_id, err);
	if (!rc)
		rc = places_find(heads, &room->cells, meta.next_limit_id, err);
	if (!rc && (missing(&room->slots) || missing(&room->cells)))
		rc = refuse_room(heads, diff, room, err);
	return rc;
}

/* Each step that comes or changes gets its places. */
static void room_share(struct rl_diff *diff, struct room *room, __u32 next_id)
{
	size_t slot = 0, cell = 0;

	for (size_t i = 0; i < diff->count; i++) {
		struct rl_step *step = &diff->steps[i];

		if (step->fate == RL_FATE_COMES) {
			step->id = room->slots.id[slot] = next_id++;
			step->slot = room->slots.at[slot++];
		}
		if (step->fate == RL_FATE_COMES || step->fate == RL_FATE_CHANGES) {
			room->cells.id[cell] = step->id;
			step->cell = room->cells.at[cell++];
		}
	}
}

static void places_claim(const struct rl_heads *heads, const struct places *places)
{
	rl_claims_write(heads, places->map, places->at, places->id, places->count);
}

static void places_free(const struct rl_heads *heads, const struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		rl_claim_free(heads, places->map, places->at[i]);
}

static int room_claim(const struct rl_heads *heads, struct rl_diff *diff, struct room *room,
		      struct rl_error *err)
{
	__u32 next_id;
	int rc = rl_ids_take(heads->state, room->slots.count, &next_id, err);

	if (rc)
		return rc;
	room_share(diff, room, next_id);
	rc = rl_room_empty(heads, room->slots.at, room->slots.id, room->slots.count, err);
	if (rc)
		return rc;
	places_claim(heads, &room->slots);
	places_claim(heads, &room->cells);
	return 0;
}

/* ---- cells ---- */

/* Limits of another burst: what is owed under the old one is owed still. */
static void debt_note(const struct rl_step *step, const struct rl_limit *limit, struct rl_applied *applied)
{
	__u64 longest = rl_limit_overdrawn(limit);

	if (!longest || step->fate != RL_FATE_CHANGES || limit->gen == step->old->gen || limit->terms.shadow)
		return;
	applied->overdrawn++;
	if (longest > applied->longest)
		applied->longest = longest;
}

/* Those of all that comes and changes; computed where they are to be, since copies of a million take their time. */
static int cells_write(const struct rl_heads *heads, const struct rl_diff *diff, struct rl_applied *applied,
		       struct rl_error *err)
{
	const struct rl_limit *general = NULL;
	struct rl_limit unwritten;

	for (size_t i = 0; i < diff->count; i++) {
		const struct rl_step *step = &diff->steps[i];
		bool writes = step->fate == RL_FATE_COMES || step->fate == RL_FATE_CHANGES;
		struct rl_limit *limit = writes ? rl_mapping_at(&heads->cells, step->cell) : &unwritten;
		int rc;

		if (!step->wanted || (!writes && !step->classes))
			continue;
		rc = rl_diff_limit(diff, step, is_class(step) ? general : NULL, limit, err);
		if (rc)
			return rc;
		if (!is_class(step))
			general = limit;
		if (!writes)
			continue;
		/* Nothing leads to the slot of a new class but its prefix's new cell. */
		if (is_class(step) && step->fate == RL_FATE_COMES)
			rl_head_write(heads, step->slot, rl_ref(step->cell));
		debt_note(step, limit, applied);
	}
	return 0;
}

/* ---- stage ---- */

static __u32 cell_before(const struct rl_heads *heads, const struct rl_step *step)
{
	return step ? rl_heads_cell(heads, step->old->slot) : 0;
}

static __u32 cell_after(const struct rl_heads *heads, const struct rl_step *step)
{
	if (!step)
		return 0;
	return step->fate == RL_FATE_STAYS ? cell_before(heads, step) : step->cell;
}

static struct rl_staged staged_of(const struct rl_heads *heads, const struct rl_step *step)
{
	switch (step->fate) {
	case RL_FATE_COMES:
		return (struct rl_staged){.slot = step->slot,
					  .before = cell_before(heads, step->around_old),
					  .after = step->cell,
					  .enters = step->target};
	case RL_FATE_GOES:
		return (struct rl_staged){.slot = step->slot,
					  .before = cell_before(heads, step),
					  .after = cell_after(heads, step->around_new)};
	default:
		return (struct rl_staged){
		    .slot = step->slot, .before = cell_before(heads, step), .after = step->cell};
	}
}

/* Classes come and go with their prefix's cell. */
static bool is_staged(const struct rl_step *step)
{
	return step->fate == RL_FATE_CHANGES || (step->fate != RL_FATE_STAYS && !is_class(step));
}

static int stage(const struct rl_heads *heads, const struct rl_diff *diff, struct rl_error *err)
{
	RL_FREE struct rl_staged *staged = calloc(diff->count + 1, sizeof(*staged));
	size_t count = 0;

	if (!staged)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < diff->count; i++)
		if (is_staged(&diff->steps[i]))
			staged[count++] = staged_of(heads, &diff->steps[i]);
	return rl_stage_run(heads, staged, count, err);
}

/* ---- the whole ---- */

/* Nothing can be refused any more but by the kernel. */
static int diff_make_true(const struct rl_heads *heads, struct rl_diff *diff, struct room *room,
			  struct rl_applied *applied, struct rl_error *err)
{
	int rc = room_claim(heads, diff, room, err);

	if (!rc)
		rc = cells_write(heads, diff, applied, err);
	if (!rc) /* what the devices are called now is what the file means */
		rc = rl_attached_rename(heads->state, err);
	if (rc) {
		places_free(heads, &room->slots);
		places_free(heads, &room->cells);
		return rc;
	}
	return stage(heads, diff, err);
}

static int try_apply(const struct rl_heads *heads, const struct rl_policy_file *file, enum rl_apply_how how,
		     __u64 now, struct rl_applied *out, struct rl_error *err)
{
	RL_FREE const struct rl_limit **old = NULL;
	RL_DIFF struct rl_diff diff = {};
	ROOM struct room room = {};
	struct rl_applied applied = {};
	size_t count = 0;
	int rc = rl_policy_cells(heads, &old, &count, err);

	if (!rc)
		rc = rl_diff_make(old, count, file, now, &diff, err);
	if (!rc)
		rc = room_find(heads, &diff, &room, err);
	if (!rc && how == RL_APPLY && diff.fates[RL_FATE_STAYS] < diff.count)
		rc = diff_make_true(heads, &diff, &room, &applied, err);
	if (rc)
		return rc;
	applied.said = diff.said;
	*out = applied;
	return 0;
}

int rl_policy_apply(const struct rl_state *state, const struct rl_policy_file *file, enum rl_apply_how how,
		    __u64 now, struct rl_applied *out, struct rl_error *err)
{
	RL_HEADS struct rl_heads heads = {};
	int rc = rl_heads_open(state, RL_HEADS_REWRITE, &heads, err);

	if (!rc)
		rc = rl_stage_mend(&heads, err);
	if (!rc)
		rc = try_apply(&heads, file, how, now, out, err);
	if (rc != -ENOSPC || err->kind != RL_ERROR_KERNEL)
		return rc;
	/* Where there is no room, once more with what killed agents had claimed. */
	rc = rl_room_reclaim(&heads, err);
	return rc ? rc : try_apply(&heads, file, how, now, out, err);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stage.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "names.h"
#include "room.h"

static int unfinished_write(const struct rl_heads *heads, __u32 value, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(heads->state, &meta, err);

	meta.unfinished = value;
	return rc ? rc : rl_state_meta_write(heads->state, &meta, err);
}

/* Is it the slot's own, and not that of the limit around its prefix? */
static bool cell_own(const struct rl_heads *heads, __u32 slot, __u32 cell, struct rl_limit *out)
{
	return rl_cell_read(heads, cell, out) && out->slot == slot;
}

static int prefix_leave(const struct rl_heads *heads, const struct rl_limit *limit, struct rl_error *err)
{
	if (bpf_map_delete_elem(heads->state->map[RL_MAP_POLICY], &limit->target.prefix) && errno != ENOENT)
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "the kernel refused to delete a prefix from the policy: %s",
				    strerror(errno));
	return 0;
}

/*
 * Out of reach, whatever it is, while its head is staged still: killed in between, it is found again. Unless something else
 * leads elsewhere by now: an agent that was killed may have left a head that is staged since long ago.
 */
static int leave(const struct rl_heads *heads, const struct rl_limit *limit, struct rl_error *err)
{
	bool prefix = limit->level == RL_LEVEL_SOURCE;
	int map = heads->state->map[prefix ? RL_MAP_POLICY : RL_MAP_NAMES];
	const void *key = prefix ? (const void *)&limit->target.prefix : &limit->target;
	__u32 slot;

	/* Of prefixes, a shorter one may be found. */
	if (bpf_map_lookup_elem(map, key, &slot) || slot != limit->slot)
		return 0;
	return prefix ? prefix_leave(heads, limit, err) : rl_names_leave(heads, &limit->target, err);
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

static int settle(const struct rl_heads *heads, __u32 slot, __u64 ref, __u32 epoch, struct rl_error *err)
{
	__u32 won = rl_ref_cell(ref, epoch), before = rl_ref_before(ref);
	__u32 lost = won == before ? rl_ref_after(ref) : before;
	struct rl_limit winner, loser;
	bool stays = cell_own(heads, slot, won, &winner), goes = cell_own(heads, slot, lost, &loser);

	if (!stays && goes) {
		int rc = leave(heads, &loser, err);

		if (rc)
			return rc;
	}
	rl_head_write(heads, slot, rl_ref(won));
	if (goes) {
		rl_claim_free(heads->state, RL_MAP_CELLS, lost);
		classes_free(heads, &loser, stays ? &winner : NULL);
	}
	if (!stays)
		rl_claim_free(heads->state, RL_MAP_SLOTS, slot);
	return 0;
}

/*
 * Is the head staged by whom the slot belongs to? That of a limit that went may be staged still (settle_single, rl_room_free),
 * also where the slot has been claimed anew and its owner was killed before it wrote the head.
 */
static bool is_staged(const struct rl_heads *heads, __u32 slot, __u64 ref)
{
	struct rl_claim claim;
	struct rl_limit limit;

	if (bpf_map_lookup_elem(heads->state->map[RL_MAP_SLOTS], &slot, &claim) || !claim.id)
		return false;
	return (cell_own(heads, slot, rl_ref_before(ref), &limit) && limit.id == claim.id) ||
	       (cell_own(heads, slot, rl_ref_after(ref), &limit) && limit.id == claim.id);
}

static int finish(const struct rl_heads *heads, struct rl_error *err)
{
	int rc = rl_grace_wait(err);

	for (__u32 slot = 1; !rc && slot < heads->map.entries; slot++) {
		__u64 ref = rl_head_read(heads, slot);

		if (rl_ref_before(ref) == rl_ref_after(ref))
			continue;
		if (is_staged(heads, slot, ref))
			rc = settle(heads, slot, ref, rl_heads_epoch(heads), err);
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
static int settle_single(const struct rl_heads *heads, const struct rl_staged *staged, struct rl_error *err)
{
	struct rl_limit limit;
	int rc = 0;

	if (cell_own(heads, staged->slot, staged->after, &limit)) {
		rl_head_write(heads, staged->slot, rl_ref(staged->after));
	} else if (cell_own(heads, staged->slot, staged->before, &limit)) {
		rc = leave(heads, &limit, err);
		if (rc)
			return rc;
		rl_claim_free(heads->state, RL_MAP_CELLS, staged->before);
		classes_free(heads, &limit, NULL);
		rl_claim_free(heads->state, RL_MAP_SLOTS, staged->slot);
	}
	return unfinished_write(heads, 0, err);
}

/* In reach, with a head that gives as yet what was in force before. */
static int enter(const struct rl_heads *heads, const struct rl_staged *staged, struct rl_error *err)
{
	const struct rl_target *target = staged->enters;

	if (target->kind != RL_TARGET_PREFIX)
		return rl_names_enter(heads, target, staged->slot, err);
	rl_heads_split(heads, &target->prefix);
	if (bpf_map_update_elem(heads->state->map[RL_MAP_POLICY], &target->prefix, &staged->slot,
				BPF_NOEXIST))
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "the kernel refused to add a prefix to the policy: %s", strerror(errno));
	return 0;
}

/* Is it one prefix that comes or goes, and nothing else? */
static bool is_single(const struct rl_heads *heads, const struct rl_staged *staged, size_t count)
{
	struct rl_limit before, after;
	bool was = cell_own(heads, staged->slot, staged->before, &before);
	bool is = cell_own(heads, staged->slot, staged->after, &after);

	return count == 1 && was != is && (was ? &before : &after)->level == RL_LEVEL_SOURCE;
}

int rl_stage_run(const struct rl_heads *heads, const struct rl_staged *staged, size_t count,
		 struct rl_error *err)
{
	__u32 next = rl_heads_epoch(heads) + 1;
	struct rl_error ignored;
	int rc = unfinished_write(heads, 1, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		rl_head_write(heads, staged[i].slot, rl_ref_staged(staged[i].before, staged[i].after, next));
	for (size_t i = 0; !rc && i < count; i++)
		if (staged[i].enters)
			rc = enter(heads, &staged[i], err);
	if (rc) {
		finish(heads, &ignored);
		return rc;
	}
	rl_setting_write(&rl_heads_settings(heads)->epoch, next);
	/* The change is made. Should this fail, the next change does it. */
	if (is_single(heads, staged, count))
		settle_single(heads, staged, &ignored);
	else
		finish(heads, &ignored);
	return 0;
}

int rl_stage_mend(const struct rl_heads *heads, struct rl_error *err)
{
	struct rl_meta meta;
	int rc = rl_state_meta(heads->state, &meta, err);

	return rc || !meta.unfinished ? rc : finish(heads, err);
}

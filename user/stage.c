// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stage.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
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

/* The prefix leaves the trie while its head is staged still: killed in between, it is found again. */
static int prefix_leave(const struct rl_heads *heads, const struct rl_limit *limit, struct rl_error *err)
{
	if (bpf_map_delete_elem(heads->state->map[RL_MAP_POLICY], &limit->target.prefix) && errno != ENOENT)
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "the kernel refused to delete a prefix from the policy: %s",
				    strerror(errno));
	return 0;
}

static int settle(const struct rl_heads *heads, __u32 slot, __u64 ref, __u32 epoch, struct rl_error *err)
{
	__u32 won = rl_ref_cell(ref, epoch), before = rl_ref_before(ref);
	__u32 lost = won == before ? rl_ref_after(ref) : before;
	struct rl_limit winner, loser;
	bool stays = cell_own(heads, slot, won, &winner), goes = cell_own(heads, slot, lost, &loser);

	if (!stays && goes) {
		int rc = prefix_leave(heads, &loser, err);

		if (rc)
			return rc;
	}
	rl_head_write(heads, slot, rl_ref(won));
	if (goes)
		rl_claim_free(heads->state, RL_MAP_CELLS, lost);
	if (!stays) {
		rl_claim_free(heads->state, RL_MAP_SLOTS, slot);
		for (__u32 i = 0; goes && i < loser.class_count && i < RL_MAX_CLASSES; i++)
			rl_room_free(heads, loser.class[i].slot);
	}
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
		rc = prefix_leave(heads, &limit, err);
		if (rc)
			return rc;
		rl_claim_free(heads->state, RL_MAP_CELLS, staged->before);
		for (__u32 i = 0; i < limit.class_count && i < RL_MAX_CLASSES; i++)
			rl_room_free(heads, limit.class[i].slot);
		rl_claim_free(heads->state, RL_MAP_SLOTS, staged->slot);
	}
	return unfinished_write(heads, 0, err);
}

int rl_stage_run(const struct rl_heads *heads, const struct rl_staged *staged, size_t count,
		 const struct rl_prefix *inserted, struct rl_error *err)
{
	__u32 next = rl_heads_epoch(heads) + 1;
	struct rl_error ignored;
	int rc = unfinished_write(heads, 1, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		rl_head_write(heads, staged[i].slot, rl_ref_staged(staged[i].before, staged[i].after, next));
	if (inserted)
		rl_heads_split(heads, inserted);
	if (inserted &&
	    bpf_map_update_elem(heads->state->map[RL_MAP_POLICY], inserted, &staged[0].slot, BPF_NOEXIST)) {
		rc = rl_error_set(err, RL_ERROR_KERNEL, errno,
				  "the kernel refused to add a prefix to the policy: %s", strerror(errno));
		finish(heads, &ignored);
		return rc;
	}
	rl_setting_write(&rl_heads_settings(heads)->epoch, next);
	/* The change is made. Should this fail, the next change does it. */
	if (count == 1)
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "names.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "index.h"
#include "limit.h"
#include "policy_parts.h"
#include "room.h"
#include "target.h"

bool rl_names_find(const struct rl_heads *heads, const struct rl_target *target, struct rl_limit *out)
{
	struct rl_limit limit;
	__u32 slot;

	if (bpf_map_lookup_elem(heads->state->map[RL_MAP_NAMES], target, &slot) ||
	    !rl_heads_limit(heads, slot, &limit) || rl_target_compare(&limit.target, target))
		return false;
	*out = limit;
	return true;
}

/* The devices of that name, whose records only user space writes, and that under the lock. */
static int devices_follow(const struct rl_state *state, const char *name, __u32 slot, struct rl_error *err)
{
	for (__u32 i = 0; i < RL_MAX_DEVICES; i++) {
		struct rl_device device;

		if (bpf_map_lookup_elem(state->map[RL_MAP_DEVICES], &i, &device))
			continue;
		if (!(device.flags & RL_DEVICE_ATTACHED) ||
		    strncmp(device.name, name, sizeof(device.name)) != 0 || device.limit == slot)
			continue;
		device.limit = slot;
		if (bpf_map_update_elem(state->map[RL_MAP_DEVICES], &i, &device, BPF_ANY))
			return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the devices' map: %s",
					    strerror(errno));
	}
	return 0;
}

static int packets_follow(const struct rl_heads *heads, const struct rl_target *target, __u32 slot,
			  struct rl_error *err)
{
	if (target->kind == RL_TARGET_DEVICE)
		return devices_follow(heads->state, target->name, slot, err);
	if (target->kind == RL_TARGET_NEW)
		rl_setting_write(&rl_heads_settings(heads)->fresh, slot);
	return 0;
}

int rl_names_enter(const struct rl_heads *heads, const struct rl_target *target, __u32 slot,
		   struct rl_error *err)
{
	if (bpf_map_update_elem(heads->state->map[RL_MAP_NAMES], target, &slot, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "the kernel refused the name of a limit: %s",
				    strerror(errno));
	return packets_follow(heads, target, slot, err);
}

int rl_names_leave(const struct rl_heads *heads, const struct rl_target *target, struct rl_error *err)
{
	int rc = packets_follow(heads, target, 0, err);

	if (!rc && bpf_map_delete_elem(heads->state->map[RL_MAP_NAMES], target) && errno != ENOENT)
		rc = rl_error_set(err, RL_ERROR_KERNEL, errno,
				  "the kernel refused to delete the name of a limit: %s", strerror(errno));
	return rc;
}

/* Does a prefix belong to the tenant in this slot? */
static bool tenant_used_in(const struct rl_heads *scan, __u32 slot)
{
	for (__u32 i = 1; i < scan->map.entries; i++) {
		struct rl_limit room;
		const struct rl_limit *limit = rl_index_in_force(scan, i, &room);

		if (limit && limit->tenant == slot)
			return true;
	}
	return false;
}

/* A new name: entered for a slot without a cell, put in force by the head's store. */
static int named_enter(const struct rl_heads *heads, const struct rl_target *target, struct rl_limit *limit,
		       struct rl_error *err)
{
	struct rl_error ignored;
	__u32 cell;
	int rc = rl_names_leave(heads, target, err); /* what an agent that was killed left */

	if (!rc)
		rc = rl_room_slot(heads, &limit->id, &limit->slot, err);
	if (rc)
		return rc;
	rc = rl_room_cell(heads, limit, limit->id, &cell, err);
	if (!rc) {
		rc = rl_names_enter(heads, target, limit->slot, err);
		if (!rc) {
			rl_head_write(heads, limit->slot, rl_ref(cell));
			return 0;
		}
		rl_claim_free(heads, RL_MAP_CELLS, cell);
		if (rl_names_leave(heads, target, &ignored))
			return rc; /* the slot stays taken: the name may lead there still */
	}
	rl_claim_free(heads, RL_MAP_SLOTS, limit->slot);
	return rc;
}

int rl_names_set(const struct rl_heads *heads, const struct rl_target *target, const struct rl_terms *terms,
		 __u64 now, __u32 *slot, struct rl_error *err)
{
	struct rl_limit old, limit;
	bool there = rl_names_find(heads, target, &old);
	int rc = rl_limit_compute(target, terms, there ? &old : NULL, 0, 0, now, &limit, err);

	if (!rc)
		rc = there ? rl_room_replace(heads, &limit, err) : named_enter(heads, target, &limit, err);
	if (!rc)
		*slot = limit.slot;
	return rc;
}

static int tenant_is_used(const struct rl_state *state, __u32 slot, bool *used, struct rl_error *err)
{
	RL_HEADS struct rl_heads scan = {};
	int rc = rl_heads_open(state, RL_HEADS_SCAN, &scan, err);

	if (!rc)
		*used = tenant_used_in(&scan, slot);
	return rc;
}

/* A slot's own bucket is full: by a store a word, since packets work on it meanwhile. */
static void bucket_fill(const struct rl_mapping *own, __u32 slot)
{
	struct rl_source *bucket = slot < own->entries ? rl_mapping_at(own, slot) : NULL;

	for (int unit = 0; bucket && unit < RL_UNITS; unit++)
		rl_word_write(&bucket->buckets.word[unit], 0);
}

/*
 * Take a tenant's terms, and forgive what it owes, as every deletion does. In this order, for an agent that is killed on
 * the way:
 *   - the version without terms, by one store. It remembers no rate, so what is in the bucket can't be converted any more:
 *     under the next limit it starts empty. Less than granted, never more.
 *   - wait for packets that are still under the version before: one could charge a bucket that is full already, in a rate
 *     that nobody remembers, and it would start empty after all. Where the kernel can't, that is all that goes wrong.
 *   - fill the bucket, which nothing is charged to without terms. Between the two stores one unit is full, and the other
 *     starts empty.
 */
static int tenant_silence(const struct rl_heads *heads, const struct rl_limit *old, __u64 now,
			  struct rl_error *err)
{
	RL_MAPPING struct rl_mapping own = {};
	struct rl_error ignored;
	struct rl_limit limit;
	int rc = rl_mapping_open(heads->state, RL_MAP_OWN, sizeof(struct rl_source), true, RL_MAPPING_PARTS,
				 &own, err);

	if (!rc)
		rc = rl_limit_compute(&old->target, &rl_no_terms, old, 0, 0, now, &limit, err);
	if (rc)
		return rc;
	rl_limit_forgive(&limit, old);
	rc = rl_room_replace(heads, &limit, err);
	if (rc)
		return rc;
	rl_grace_wait(&ignored);
	bucket_fill(&own, limit.slot);
	return 0;
}

int rl_names_delete(const struct rl_heads *heads, const struct rl_target *target, __u64 now,
		    struct rl_error *err)
{
	struct rl_limit limit;
	bool used = false;
	__u32 cell;
	int rc = 0;

	if (!rl_names_find(heads, target, &limit) || !rl_limit_says(&limit))
		return rl_policy_absent(target, NULL, err);
	if (target->kind == RL_TARGET_TENANT)
		rc = tenant_is_used(heads->state, limit.slot, &used, err);
	if (!rc && used)
		return tenant_silence(heads, &limit, now, err);
	if (rc)
		return rc;
	cell = rl_heads_cell(heads, limit.slot);
	rl_head_write(heads, limit.slot, rl_ref(0));
	rl_claim_free(heads, RL_MAP_CELLS, cell);
	rc = rl_names_leave(heads, target, err);
	if (!rc)
		rl_claim_free(heads, RL_MAP_SLOTS, limit.slot);
	return rc;
}

int rl_names_tenant(const struct rl_heads *heads, const char *name, __u64 now, __u32 *out,
		    struct rl_error *err)
{
	struct rl_target target = {.kind = RL_TARGET_TENANT};
	struct rl_limit tenant;

	snprintf(target.name, sizeof(target.name), "%s", name);
	if (!rl_names_find(heads, &target, &tenant))
		return rl_names_set(heads, &target, &rl_no_terms, now, out, err);
	*out = tenant.slot;
	return 0;
}

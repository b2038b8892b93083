// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reset.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_reset.h"
#include "cleanup.h"
#include "mapping.h"
#include "pending.h"
#include "rl_reset.skel.h"
#include "snapshot.h"
#include "target.h"

#define ZERO_TRIES 4

/* Whose counters. */
struct chosen {
	const struct rl_snapshot *snapshot;
	const struct rl_target *target;	 /* NULL: all */
	struct rl_reset_request request; /* the ids of a prefix's limits */
};

static int write_failed(struct rl_error *err, enum rl_map map, int code)
{
	return rl_error_set(err, RL_ERROR_KERNEL, code, "can't zero counters in the map %s: %s",
			    rl_map_name(map), strerror(code));
}

static bool is_chosen(const struct chosen *chosen, const struct rl_limit *limit)
{
	return !chosen->target || rl_target_compare(chosen->target, &limit->target) == 0;
}

static bool id_is_chosen(const void *context, __u32 id)
{
	const struct chosen *chosen = context;

	for (__u32 i = 0; i < chosen->request.count; i++)
		if (chosen->request.id[i] == id)
			return true;
	return !chosen->target;
}

/*
 * A per-CPU element. A packet that is counted in the same instant puts back what it read before: where any word
 * isn't below what it was, once more.
 */
static int zero_element(const struct rl_state *state, enum rl_map map, __u32 slot, size_t size,
			struct rl_error *err)
{
	size_t words = size * (size_t)rl_possible_cpus() / sizeof(__u64);
	RL_FREE __u64 *before = calloc(words, sizeof(*before));
	RL_FREE __u64 *after = calloc(words, sizeof(*after));
	RL_FREE __u64 *zero = calloc(words, sizeof(*zero));

	if (!before || !after || !zero)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (int try = 0; try < ZERO_TRIES; try++) {
		bool undone = false;

		if (bpf_map_lookup_elem(state->map[map], &slot, before) ||
		    (memcmp(before, zero, words * sizeof(*zero)) &&
		     bpf_map_update_elem(state->map[map], &slot, zero, BPF_EXIST)) ||
		    bpf_map_lookup_elem(state->map[map], &slot, after))
			return write_failed(err, map, errno);
		for (size_t i = 0; i < words; i++)
			undone |= before[i] && after[i] >= before[i];
		if (!undone)
			break;
	}
	return 0;
}

/* Their tenants' too: those that say nothing have a slot, and no limit in the snapshot. */
static int zero_limits(const struct rl_state *state, const struct chosen *chosen, struct rl_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < chosen->snapshot->limit_count && !rc; i++) {
		const struct rl_limit *limit = &chosen->snapshot->limits[i].limit;

		if (!is_chosen(chosen, limit))
			continue;
		rc = zero_element(state, RL_MAP_LIMIT_COUNT, limit->slot, sizeof(struct rl_limit_count), err);
		if (!rc && !chosen->target && limit->tenant)
			rc = zero_element(state, RL_MAP_LIMIT_COUNT, limit->tenant,
					  sizeof(struct rl_limit_count), err);
	}
	return rc;
}

static bool device_is_chosen(const struct chosen *chosen, const struct rl_attached *device)
{
	return !chosen->target ||
	       (chosen->target->kind == RL_TARGET_DEVICE && !strcmp(chosen->target->name, device->name));
}

static int zero_devices(const struct rl_state *state, const struct chosen *chosen, struct rl_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < chosen->snapshot->device_count && !rc; i++) {
		const struct rl_attached *device = &chosen->snapshot->devices[i].attached;

		if (device_is_chosen(chosen, device))
			rc = zero_element(state, RL_MAP_DEVICE_COUNT, device->slot,
					  sizeof(struct rl_device_count), err);
	}
	return rc;
}

static void zero_count(struct rl_count *count)
{
	rl_word_write(&count->packets, 0);
	rl_word_write(&count->bytes, 0);
}

static void zero_tally(struct rl_tally *tally)
{
	zero_count(&tally->passed);
	zero_count(&tally->dropped);
	zero_count(&tally->shadow);
}

static void zero_place(struct rl_row *row, int at)
{
	zero_count(&row->at[at].passed);
	zero_count(&row->at[at].dropped);
	zero_count(&row->shadow[at]);
}

/* Beside the limits' own buckets. */
static int zero_own(const struct rl_state *state, const struct chosen *chosen, struct rl_error *err)
{
	RL_MAPPING struct rl_mapping map = {};
	int rc =
	    rl_mapping_open(state, RL_MAP_OWN, sizeof(struct rl_source), true, RL_MAPPING_WHOLE, &map, err);

	for (size_t i = 0; i < chosen->snapshot->limit_count && !rc; i++) {
		const struct rl_limit *limit = &chosen->snapshot->limits[i].limit;

		if (is_chosen(chosen, limit) && limit->slot < map.entries)
			zero_tally(&((struct rl_source *)map.base)[limit->slot].tally);
	}
	return rc;
}

/* Beside the table's places. */
static int zero_table(const struct rl_state *state, const struct chosen *chosen, struct rl_error *err)
{
	RL_MAPPING struct rl_mapping rows = {};
	int rc =
	    rl_mapping_open(state, RL_MAP_ROWS, sizeof(struct rl_row), true, RL_MAPPING_WHOLE, &rows, err);

	for (__u32 row = 0; !rc && row < rows.entries; row++) {
		struct rl_row *places = &((struct rl_row *)rows.base)[row];

		for (int at = 0; at < RL_ROW; at++) {
			__u64 key = rl_word_read(&places->key[at]);

			if (key && id_is_chosen(chosen, rl_key_id(key)))
				zero_place(places, at);
		}
	}
	return rc;
}

static void skeleton_destroy(struct rl_reset **skeleton)
{
	rl_reset__destroy(*skeleton);
}

/* The LRU map's values can't be mapped: a program does it (rl_reset.bpf.c). */
static int zero_lru(const struct rl_state *state, struct chosen *chosen, struct rl_error *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &chosen->request,
		    .ctx_size_in = sizeof(chosen->request));
	__attribute__((cleanup(skeleton_destroy))) struct rl_reset *skeleton = rl_reset__open();
	int rc = skeleton ? bpf_map__reuse_fd(skeleton->maps.rl_sources, state->map[RL_MAP_SOURCES]) : -errno;

	if (!rc)
		rc = rl_reset__load(skeleton);
	if (!rc)
		rc = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.rl_reset), &run);
	if (!rc)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_KERNEL, -rc,
	    "the kernel refused the program that zeroes the sources' counters: %s; those of limits and "
	    "devices are zero, the sources' as they were; it takes Linux 5.14 or later and CAP_BPF",
	    strerror(-rc));
}

static int forget_pending(const struct rl_state *state, const struct chosen *chosen, struct rl_error *err)
{
	RL_PENDINGS struct rl_pendings pendings = {};
	int rc = rl_pendings_open(state, true, &pendings, err);

	if (!rc)
		rl_pendings_forget(&pendings, id_is_chosen, chosen);
	return rc;
}

/* Tenants, devices and `new` have no sources. What is pending first: it may come home meanwhile. */
static int zero_sources(const struct rl_state *state, struct chosen *chosen, struct rl_error *err)
{
	int rc;

	if (chosen->target && chosen->target->kind != RL_TARGET_PREFIX)
		return 0;
	rc = forget_pending(state, chosen, err);
	if (!rc)
		rc = zero_own(state, chosen, err);
	if (!rc && chosen->snapshot->meta.store == RL_STORE_LRU)
		return zero_lru(state, chosen, err);
	if (!rc)
		rc = zero_table(state, chosen, err);
	return rc;
}

static int choose(struct chosen *chosen, struct rl_error *err)
{
	char text[RL_TARGET_TEXT];
	size_t found = 0;

	for (size_t i = 0; i < chosen->snapshot->limit_count; i++) {
		const struct rl_limit *limit = &chosen->snapshot->limits[i].limit;

		if (!chosen->target || !is_chosen(chosen, limit))
			continue;
		if (chosen->request.count < RL_RESET_IDS)
			chosen->request.id[chosen->request.count++] = limit->id;
		found++;
	}
	for (size_t i = 0; i < chosen->snapshot->device_count; i++)
		found += device_is_chosen(chosen, &chosen->snapshot->devices[i].attached);
	if (found || !chosen->target)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, ENOENT,
	    "%s has no limit of its own: nothing was zeroed; `rl-agent list` shows the limits",
	    rl_target_print(chosen->target, text));
}

int rl_reset_counters(const struct rl_state *state, const struct rl_target *target, struct rl_error *err)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	struct chosen chosen = {.snapshot = &snapshot, .target = target};
	int rc = rl_snapshot_take(state, RL_SNAPSHOT_DEVICES | RL_SNAPSHOT_LIMITS, &snapshot, err);

	if (!rc)
		rc = choose(&chosen, err);
	if (!rc)
		rc = zero_limits(state, &chosen, err);
	if (!rc)
		rc = zero_devices(state, &chosen, err);
	return rc ? rc : zero_sources(state, &chosen, err);
}

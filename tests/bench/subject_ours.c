// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* subject_ours.c - the packet program as attach loads it, but for the pins. Room for a million sources, or for all there are. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/cleanup.h"
#include "../../user/loader.h"
#include "bench/dropping.skel.h"
#include "policies.h"
#include "rl_path.skel.h"
#include "subject.h"

#define ROOM (1U << 20)

static int load(struct subject *subject, const struct rl_load_options *options, struct rl_error *err)
{
	int rc;

	subject->ours = rl_path__open();
	if (!subject->ours)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "the packet program doesn't open: %s",
				    strerror(errno));
	rc = rl_skeleton_prepare(subject->ours, options);
	rc = rc ?: rl_path__load(subject->ours);
	rc = rc ?: rl_skeleton_settle(subject->ours, options, 0, RL_FULL_AGGREGATE);
	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "the packet program doesn't load: %s",
				    strerror(-rc));
	subject->program = bpf_program__fd(subject->ours->progs.rl_xdp);
	return 0;
}

/* The map of the same name; that of a global variables' section is called OBJECT.SECTION. */
static const struct bpf_map *same_map(const struct bpf_object *object, const struct bpf_map *map)
{
	const char *section = strchr(bpf_map__name(map), '.');
	const struct bpf_map *other;

	bpf_object__for_each_map(other, object)
	{
		const char *name = bpf_map__name(other), *dot = strchr(name, '.');

		if (section ? dot && !strcmp(dot, section) : !strcmp(name, bpf_map__name(map)))
			return other;
	}
	return NULL;
}

static int share_maps(const struct subject *subject)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, subject->dropping->obj)
	{
		const struct bpf_map *same = same_map(subject->ours->obj, map);
		int rc = same ? bpf_map__reuse_fd(map, bpf_map__fd(same)) : -ENOENT;

		if (rc)
			return rc;
	}
	return 0;
}

/* The program that is attached to a device. */
static int load_dropping(struct subject *subject, struct rl_error *err)
{
	int rc;

	subject->dropping = dropping__open();
	if (!subject->dropping)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "the dropping program doesn't open: %s",
				    strerror(errno));
	bpf_program__set_autoload(subject->dropping->progs.rl_xdp, false);
	bpf_program__set_flags(subject->dropping->progs.dropping, BPF_F_XDP_HAS_FRAGS);
	rc = share_maps(subject);
	rc = rc ?: dropping__load(subject->dropping);
	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "the dropping program doesn't load: %s",
				    strerror(-rc));
	subject->program = bpf_program__fd(subject->dropping->progs.dropping);
	return 0;
}

static int open_ours(struct subject *subject, struct rl_error *err)
{
	__u32 sources = subject->scenario->sources;
	const struct rl_load_options options = {
	    .frags = true,
	    .store = subject->id == SUBJECT_LRU ? RL_STORE_LRU : RL_STORE_TABLE,
	    .max_sources = sources > ROOM ? sources : ROOM,
	    .max_limits =
		subject->scenario->prefixes + 4 > RL_DEFAULT_LIMITS ? subject->scenario->prefixes + 4 : 0,
	    .seed = {0x243f6a8885a308d3ULL, 1}};
	struct rl_state state = RL_STATE_INIT;
	int rc = load(subject, &options, err);

	if (!rc && subject->scenario->drive == DRIVE_VETH)
		rc = load_dropping(subject, err);
	if (rc)
		return rc;
	for (int i = 0; i < RL_MAPS; i++)
		state.map[i] =
		    bpf_object__find_map_fd_by_name(subject->ours->obj, rl_map_name((enum rl_map)i));
	return policies_load(&state, subject->scenario, &subject->prefixes, err);
}

static void close_ours(struct subject *subject)
{
	dropping__destroy(subject->dropping);
	rl_path__destroy(subject->ours);
}

static int dropped(const struct subject *subject, __u64 *out)
{
	RL_FREE struct rl_device_count *counts = calloc((size_t)rl_possible_cpus(), sizeof(*counts));
	__u64 sum = 0;
	__u32 slot = 0;

	if (!counts)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(subject->ours->maps.rl_device_count), &slot, counts))
		return -errno;
	for (int cpu = 0; cpu < rl_possible_cpus(); cpu++)
		for (int reason = RL_DROP_FIRST; reason < RL_REASONS; reason++)
			sum += counts[cpu].by_reason[reason].packets;
	*out = sum;
	return 0;
}

static struct bpf_object *object(const struct subject *subject)
{
	return subject->ours->obj;
}

const struct subject_kind subject_ours = {
    .open = open_ours, .close = close_ours, .dropped = dropped, .object = object};

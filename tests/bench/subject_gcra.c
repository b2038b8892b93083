// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* subject_gcra.c - gcra.bpf.c. Its map has a quarter more room than there are sources, at least for a million: its free entries are
 * kept by CPU, and one without any evicts. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/cleanup.h"
#include "../../user/state.h"
#include "bench/gcra.skel.h"
#include "subject.h"

#define ROOM (1U << 20)

static const struct {
	__u64 interval, burst; /* ns */
} limits[] = {
    [PASSING] = {1000000000 / 148800000, 67000000},	       /* 148.8 Mpps, 10 million packets */
    [REJECTED] = {3600ULL * 1000000000, 3600ULL * 1000000000}, /* one an hour, one packet */
};

static void prepare(struct gcra *gcra, const struct scenario *scenario)
{
	__u32 sources = scenario->sources > ROOM ? scenario->sources : ROOM;
	struct bpf_map *map = scenario->family == 4 ? gcra->maps.sources4 : gcra->maps.sources6;

	bpf_map__set_max_entries(map, sources + sources / 4);
	gcra->rodata->interval = limits[scenario->verdict].interval;
	gcra->rodata->burst = limits[scenario->verdict].burst;
	bpf_program__set_flags(gcra->progs.gcra, BPF_F_XDP_HAS_FRAGS);
	bpf_program__set_flags(gcra->progs.gcra_dropping, BPF_F_XDP_HAS_FRAGS);
}

static int open_gcra(struct subject *subject, struct rl_error *err)
{
	bool attached = subject->scenario->drive == DRIVE_VETH;
	const struct bpf_program *program;
	int rc;

	subject->gcra = gcra__open();
	if (!subject->gcra)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "gcra doesn't open: %s", strerror(errno));
	prepare(subject->gcra, subject->scenario);
	rc = gcra__load(subject->gcra);
	if (rc)
		return rl_error_set(err, RL_ERROR_KERNEL, -rc, "gcra doesn't load: %s", strerror(-rc));
	program = attached ? subject->gcra->progs.gcra_dropping : subject->gcra->progs.gcra;
	subject->program = bpf_program__fd(program);
	return 0;
}

static void close_gcra(struct subject *subject)
{
	gcra__destroy(subject->gcra);
}

static int dropped(const struct subject *subject, __u64 *out)
{
	RL_FREE __u64 *counts = calloc((size_t)rl_possible_cpus(), sizeof(*counts));
	__u64 sum = 0;
	__u32 passed = 0;

	if (!counts)
		return -ENOMEM;
	if (bpf_map_lookup_elem(bpf_map__fd(subject->gcra->maps.verdicts), &passed, counts))
		return -errno;
	for (int cpu = 0; cpu < rl_possible_cpus(); cpu++)
		sum += counts[cpu];
	*out = sum;
	return 0;
}

static struct bpf_object *object(const struct subject *subject)
{
	return subject->gcra->obj;
}

const struct subject_kind subject_gcra = {
    .open = open_gcra, .close = close_gcra, .dropped = dropped, .object = object};

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "zero.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "../bpf/rl_zero.h"
#include "batch.h"
#include "cleanup.h"
#include "rl_zero.skel.h"

#define BATCH	 1024  /* counters written at once: of many CPUs they take megabytes */
#define MANY	 16384 /* from here on it is worth while to load a program */
#define RUN_MOST 65536 /* slots of one run: so that a system call is done in a moment */
#define RUN_MEAN 16    /* slots of a run on average from which on a program is quicker */

/* ---- by a program ---- */

static void skeleton_destroy(struct rl_zero **skeleton)
{
	rl_zero__destroy(*skeleton);
}

/* Slots one behind the other, from the first of these on. */
static size_t run_length(const __u32 *slots, size_t count)
{
	size_t length = 1;

	while (length < count && length < RUN_MOST && slots[length] == slots[length - 1] + 1)
		length++;
	return length;
}

static bool runs_are_long(const __u32 *slots, size_t count)
{
	size_t runs = 0;

	for (size_t i = 0; i < count; i += run_length(slots + i, count - i))
		runs++;
	return runs * RUN_MEAN <= count;
}

static int runs_zero(int program, const __u32 *slots, size_t count)
{
	size_t length;

	for (size_t i = 0; i < count; i += length) {
		struct rl_zero_request request = {.from = slots[i]};
		LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &request, .ctx_size_in = sizeof(request));
		int rc;

		request.count = (__u32)(length = run_length(slots + i, count - i));
		rc = bpf_prog_test_run_opts(program, &run);
		if (rc)
			return rc;
	}
	return 0;
}

/* False: the kernel can't, or not all of them are zero. */
static bool program_zero(const struct rl_state *state, const __u32 *slots, size_t count)
{
	__attribute__((cleanup(skeleton_destroy))) struct rl_zero *skeleton = rl_zero__open();

	if (!skeleton)
		return false;
	skeleton->rodata->rl_cpus = (__u32)rl_possible_cpus();
	return !bpf_map__reuse_fd(skeleton->maps.rl_limit_count, state->map[RL_MAP_LIMIT_COUNT]) &&
	       !rl_zero__load(skeleton) && !runs_zero(bpf_program__fd(skeleton->progs.rl_zero), slots, count);
}

/* ---- by writing zeros ---- */

static int batches_zero(const struct rl_state *state, const __u32 *slots, size_t count, struct rl_error *err)
{
	size_t size = (size_t)rl_possible_cpus() * sizeof(struct rl_limit_count);
	RL_FREE void *zero = calloc(BATCH, size);
	int rc = 0;

	if (!zero)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < count; i += BATCH)
		rc = rl_batch_write(state, RL_MAP_LIMIT_COUNT, slots + i, zero, size,
				    count - i < BATCH ? count - i : BATCH, err);
	return rc;
}

int rl_zero_counts(const struct rl_state *state, const __u32 *slots, size_t count, struct rl_error *err)
{
	if (count >= MANY && runs_are_long(slots, count) && program_zero(state, slots, count))
		return 0;
	return batches_zero(state, slots, count, err);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of slots that are given to new limits: those are zero, and no others. */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/batch.h"
#include "../../user/cleanup.h"
#include "../../user/zero.h"
#include "maps.h"

#define SLOTS 50000

static bool chosen[SLOTS];

static size_t count_size(void)
{
	return (size_t)rl_possible_cpus() * sizeof(struct rl_limit_count);
}

/* Each byte of each slot's counters. */
static void counts_fill(void)
{
	RL_FREE void *values = malloc(SLOTS * count_size());
	RL_FREE __u32 *slots = calloc(SLOTS, sizeof(*slots));
	struct rl_error err;

	cr_assert(values && slots);
	memset(values, 0x55, SLOTS * count_size());
	for (__u32 slot = 0; slot < SLOTS; slot++)
		slots[slot] = slot;
	cr_assert_eq(rl_batch_write(&maps, RL_MAP_LIMIT_COUNT, slots, values, count_size(), SLOTS, &err), 0);
}

static void expect_zero_where_chosen(void)
{
	RL_FREE unsigned char *value = malloc(count_size());

	for (__u32 slot = 0; slot < SLOTS; slot++) {
		cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_LIMIT_COUNT], &slot, value), 0);
		for (size_t i = 0; i < count_size(); i++)
			cr_assert_eq(value[i], chosen[slot] ? 0 : 0x55, "slot %u, byte %zu", slot, i);
	}
}

static void choose(bool (*is_chosen)(__u32 slot))
{
	RL_FREE __u32 *slots = calloc(SLOTS, sizeof(*slots));
	struct rl_error err;
	size_t count = 0;

	for (__u32 slot = 0; slot < SLOTS; slot++) {
		chosen[slot] = is_chosen(slot);
		if (chosen[slot])
			slots[count++] = slot;
	}
	counts_fill();
	cr_assert_eq(rl_zero_counts(&maps, slots, count, &err), 0);
	expect_zero_where_chosen();
}

static bool in_long_runs(__u32 slot)
{
	return slot > 3 && slot % 1000;
}

static bool each_other(__u32 slot)
{
	return slot % 2;
}

static bool few(__u32 slot)
{
	return slot > 10 && slot < 2000;
}

Test(zero, slots_that_are_given_away_and_no_others, .fini = maps_end, .timeout = 120)
{
	maps_make(SLOTS, 8);
	choose(in_long_runs);
	choose(each_other);
	choose(few);
}

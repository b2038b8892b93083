// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets on other processors, while prefixes come and go: pairs of a prefix that stays, and one inside of it that doesn't. A
 * packet inside of both finds one of the two, whatever else is being changed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../lib/ranges.h"

#define READERS 2
#define MILLION (1U << 20)
#define PAIRS	1000
#define CHANGES 5000

static struct {
	struct rl_ranges ranges;
	struct rl_ranges_prefix pair[PAIRS][2];
	int done;
	__u64 rounds[READERS], wrong;
} shared;

static void pairs_make(__u64 *random)
{
	for (__u32 i = 0; i < PAIRS; i++) {
		__u8 address[16] = {0x20, 1, (__u8)(i >> 8), (__u8)i}, family = i % 2 ? 4 : 6;
		__u32 bits = family == 4 ? 20 : 32, most = family == 4 ? 32 : 128, inside;

		if (family == 4)
			memcpy(address, (__u8[]){10, (__u8)(i >> 4), (__u8)(i << 4)}, 3);
		shared.pair[i][0] =
		    (struct rl_ranges_prefix){lpm_cut(family, address, bits), policy_slot(2 * i)};
		for (__u32 bit = bits; bit < most; bit++)
			address[bit / 8] |= (__u8)((bit == bits || random_next(random) & 1) << (7 - bit % 8));
		inside = (__u32)random_between(random, bits + 1, most);
		shared.pair[i][1] =
		    (struct rl_ranges_prefix){lpm_cut(family, address, inside), policy_slot(2 * i + 1)};
	}
}

static void *reader(void *arg)
{
	__u64 *round = arg, random = SEED + (__u64)(round - shared.rounds);

	while (!__atomic_load_n(&shared.done, __ATOMIC_RELAXED)) {
		for (int i = 0; i < 50; i++) {
			const struct rl_ranges_prefix *pair =
			    shared.pair[random_between(&random, 0, PAIRS - 1)];
			__u32 stays = ranges_find(&shared.ranges, pair->prefix.family, pair->prefix.addr);
			__u32 comes = ranges_find(&shared.ranges, pair->prefix.family, pair[1].prefix.addr);

			if (stays != pair[0].slot || (comes != pair[0].slot && comes != pair[1].slot))
				__atomic_fetch_add(&shared.wrong, 1, __ATOMIC_RELAXED);
		}
		__atomic_fetch_add(round, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* All packets that are under way are done. */
static void grace(void)
{
	for (int i = 0; i < READERS; i++) {
		__u64 seen = __atomic_load_n(&shared.rounds[i], __ATOMIC_SEQ_CST);

		while (__atomic_load_n(&shared.rounds[i], __ATOMIC_SEQ_CST) < seen + 2)
			sched_yield();
	}
}

static void change_one(bool there[PAIRS], __u64 *random, struct rl_error *err)
{
	static const struct rl_prefix wide[] = {
	    {.prefixlen = 0}, {.prefixlen = 32, .family = 4}, {.prefixlen = 34, .family = 6}};
	static __u32 slots[3];
	size_t i = random_between(random, 0, PAIRS - 1), which = i % 3;
	const struct rl_ranges_prefix *pair = shared.pair[i];
	bool whole = random_next(random) % 200 == 0;
	__u32 slot = slots[which] ? 0 : policy_slot(MILLION + which), around = whole ? 0 : pair[0].slot;
	const struct rl_prefix *prefix = whole ? &wide[which] : &pair[1].prefix;
	__u32 from = whole ? slots[which] : there[i] ? pair[1].slot : around;
	__u32 to = whole ? slot : there[i] ? around : pair[1].slot;
	int rc = rl_ranges_patch(&shared.ranges, prefix, from, to, err);

	if (rc == -ENOSPC) {
		grace();
		cr_assert_eq(rl_ranges_compact(&shared.ranges, err), 0, "%s", err->text);
		rc = rl_ranges_patch(&shared.ranges, prefix, from, to, err);
	}
	cr_assert_eq(rc, 0, "%s", err->text);
	if (whole)
		slots[which] = slot;
	else
		there[i] = !there[i];
}

Test(ranges_patch, under_way)
{
	static bool there[PAIRS];
	struct rl_error err = {0};
	pthread_t threads[READERS];
	__u64 random = SEED;

	shared.ranges = ranges_make(12 * RL_RANGES_TABLES + 40000);
	pairs_make(&random);
	memset(there, true, sizeof(there));
	cr_assert_eq(rl_ranges_build(&shared.ranges, shared.pair[0], 2 * PAIRS, &err), 0, "%s", err.text);
	for (int i = 0; i < READERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, reader, &shared.rounds[i]), 0);
	for (int i = 0; i < CHANGES; i++)
		change_one(there, &random, &err);
	__atomic_store_n(&shared.done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(shared.wrong, 0, "%llu packets found what neither policy says", shared.wrong);
	ranges_free(&shared.ranges);
}

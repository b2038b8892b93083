// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Targets in order, whatever the order that they came in. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/order.h"
#include "random.h"

#define MOST 3000

static struct rl_ordered before[MOST], room[2 * MOST];
static __u64 state = 1;

static struct rl_ordered some(__u32 at)
{
	struct rl_prefix prefix = {.family = random_between(&state, 0, 1) ? 4 : 6};

	/* Few enough that some are equal. */
	prefix.prefixlen = RL_PREFIX_FAMILY_BITS + 24 + (__u32)random_between(&state, 0, 2);
	prefix.addr[0] = (__u8)random_between(&state, 0, 7);
	prefix.addr[2] = (__u8)random_between(&state, 0, 63);
	return rl_ordered_prefix(&prefix, at);
}

static int compare(const void *a, const void *b)
{
	const struct rl_ordered *one = a, *other = b;
	int order = memcmp(one->digits, other->digits, RL_ORDER_DIGITS);

	return order ? order : (one->at > other->at) - (one->at < other->at);
}

/* So many, in runs of which each is in order: more of them are than are merged, or fewer. */
static void expect_order(size_t count, size_t runs)
{
	const struct rl_ordered *sorted;

	for (size_t i = 0; i < count; i++)
		before[i] = some((__u32)i);
	for (size_t i = 0; i < runs; i++)
		qsort(before + count * i / runs, count * (i + 1) / runs - count * i / runs, sizeof(*before),
		      compare);
	for (size_t i = 0; i < count; i++)
		before[i].at = (__u32)i;
	memcpy(room, before, count * sizeof(*room));
	sorted = rl_order(room, room + count, count);
	qsort(before, count, sizeof(*before), compare);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(compare(&sorted[i], &before[i]), 0, "%zu of %zu in %zu runs", i, count, runs);
}

Test(order, whatever_was_in_order_before)
{
	for (size_t runs = 1; runs <= 12; runs++)
		for (int i = 0; i < 20; i++)
			expect_order(random_between(&state, runs, MOST), runs);
	expect_order(MOST, MOST);
}

Test(order, few)
{
	for (size_t count = 0; count < 5; count++)
		for (int i = 0; i < 50; i++)
			expect_order(count, 5);
}

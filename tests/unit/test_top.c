// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* top's rates, order and filter, and the tenants that they go by. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "../../user/top.h"
#include "snapshots.h"

#define SECOND	     1000000000ULL
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Two snapshots two seconds apart, of the same limits. */
struct pair {
	struct rl_snapshot before, now;
};

static struct rl_limit_stats limits[3];

static struct pair make_pair(struct rl_source_stats *before, size_t before_count, struct rl_source_stats *now,
			     size_t now_count)
{
	struct pair pair = {};

	limits[0] = test_limit("any", 1, "");
	limits[1] = test_limit("10.0.0.0/8", 2, "acme");
	limits[2] = test_limit("10.1.0.0/16", 3, "");
	rl_tenants_inherit(limits, COUNT(limits));
	pair.before = (struct rl_snapshot){
	    .time = 5 * SECOND, .sources_time = 6 * SECOND, .limits = limits, .limit_count = COUNT(limits)};
	pair.now = pair.before;
	pair.now.time = 7 * SECOND;
	pair.now.sources_time = 8 * SECOND;
	pair.before.sources = before;
	pair.before.source_count = before_count;
	pair.now.sources = now;
	pair.now.source_count = now_count;
	return pair;
}

static struct rl_top compute(const struct pair *pair, enum rl_top_by by, const char *filter, size_t rows)
{
	struct rl_top_query query = {.by = by, .rows = rows};
	struct rl_error err = {};
	struct rl_top top = {};

	cr_assert_eq(rl_top_filter_parse(filter, &query.filter, &err), 0, "%s", err.text);
	cr_assert_eq(rl_top_compute(&pair->before, &pair->now, &query, &top), 0);
	return top;
}

static void check_order(const struct rl_top *top, const char *const *sources, size_t count)
{
	cr_assert_eq(top->source_count, count, "%zu sources, not %zu", top->source_count, count);
	for (size_t i = 0; i < count; i++) {
		char text[RL_PREFIX_TEXT];

		cr_assert_str_eq(rl_prefix_print(&top->sources[i].stats->source, text), sources[i], "row %zu",
				 i);
	}
}

Test(top, rates_are_differences_over_the_time_between)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 1000, 10)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 1300, 50)};
	struct pair pair = make_pair(before, 1, now, 1);
	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.seconds, 2);
	cr_assert_eq(top.source_count, 1);
	cr_assert_eq(top.sources[0].rates.passed_pps, 150);
	cr_assert_eq(top.sources[0].rates.dropped_pps, 20);
	cr_assert_eq(top.sources[0].rates.passed_bits, 150 * 800);
	cr_assert_eq(top.sources[0].rates.dropped_bits, 20 * 800);
}

/* A large table takes a while to read, and the first time longer than the next. */
Test(top, a_source_has_a_time_of_its_own)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 1000, 0),
					   test_source("10.0.0.2", 1, 1000, 0)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 1300, 0),
					test_source("10.0.0.2", 1, 1300, 0),
					test_source("10.0.0.3", 1, 300, 0)};
	struct pair pair = make_pair(before, 2, now, 3);
	double expected[] = {300 / 1.5, 300 / 3.0, 300 / 2.0};

	before[0].after = SECOND;
	now[0].after = SECOND / 2;
	now[1].after = SECOND;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_PASSED, NULL, 10);

	cr_assert_eq(top.source_count, 3);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 3; k++)
			if (top.sources[k].stats == &now[i])
				cr_expect_float_eq(top.sources[k].rates.passed_pps, expected[i], 0.001,
						   "source %zu: %f", i, top.sources[k].rates.passed_pps);
}

/* Sources are read after devices, and not always as long after. */
Test(top, sources_have_a_time_of_their_own)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 1000, 0)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 1300, 0)};
	struct rl_device_stats devices[] = {test_device("eth0", 0, 100, 0), test_device("eth0", 0, 300, 0)};
	struct pair pair = make_pair(before, 1, now, 1);

	pair.now.sources_time = pair.before.sources_time + 3 * SECOND;
	pair.before.devices = &devices[0];
	pair.now.devices = &devices[1];
	pair.before.device_count = pair.now.device_count = 1;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.sources[0].rates.passed_pps, 100);
	cr_assert_eq(top.devices[0].rates.passed_pps, 100);
	cr_assert_eq(top.seconds, 2);
}

Test(top, device_rates)
{
	struct rl_device_stats before[] = {test_device("eth0", 0, 100, 0), test_device("eth1", 1, 50, 50)};
	struct rl_device_stats now[] = {test_device("eth0", 0, 300, 40), test_device("eth2", 2, 8, 0)};
	struct pair pair = make_pair(NULL, 0, NULL, 0);

	pair.before.devices = before;
	pair.now.devices = now;
	pair.before.device_count = pair.now.device_count = 2;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.device_count, 2);
	cr_assert_eq(top.devices[0].rates.passed_pps, 100);
	cr_assert_eq(top.devices[0].rates.dropped_pps, 20);
	cr_assert_eq(top.devices[0].rates.dropped_bits, 20 * 800);
	cr_assert_eq(top.devices[1].rates.passed_pps, 4, "a slot that wasn't there counts from 0");
}

/* What is in shadow passed too. */
Test(top, shadow_is_a_rate_of_its_own_and_ranks_as_dropped)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 1000, 0),
					   test_source("10.0.0.2", 1, 0, 10)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 1100, 0),
					test_source("10.0.0.2", 1, 0, 30)};
	struct pair pair = make_pair(before, 2, now, 2);

	before[0].tally.shadow = (struct rl_count){20, 2000};
	now[0].tally.shadow = (struct rl_count){80, 8000};

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	check_order(&top, (const char *[]){"10.0.0.1", "10.0.0.2"}, 2);
	cr_assert_eq(top.sources[0].rates.passed_pps, 50);
	cr_assert_eq(top.sources[0].rates.dropped_pps, 0);
	cr_assert_eq(top.sources[0].rates.shadow_pps, 30);
	cr_assert_eq(top.sources[0].rates.shadow_bits, 30 * 800);
	cr_assert_eq(top.sources[1].rates.shadow_pps, 0);
}

/* `reset` takes passed to 0 while shadow may stay below what it was. */
Test(top, any_counter_that_went_down_makes_all_count_from_zero)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 10, 0)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 14, 6)};
	struct pair pair = make_pair(before, 1, now, 1);

	before[0].tally.shadow.packets = 5;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.sources[0].rates.passed_pps, 7);
}

Test(top, a_new_source_counts_from_zero)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 10, 0),
					   test_source("10.0.0.3", 1, 30, 0)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 10, 0), test_source("10.0.0.2", 1, 6, 4),
					test_source("10.0.0.3", 1, 34, 0)};
	struct pair pair = make_pair(before, 2, now, 3);
	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_PASSED, NULL, 10);

	check_order(&top, (const char *[]){"10.0.0.2", "10.0.0.3", "10.0.0.1"}, 3);
	cr_assert_eq(top.sources[0].rates.passed_pps, 3);
	cr_assert_eq(top.sources[0].rates.dropped_pps, 2);
	cr_assert_eq(top.sources[1].rates.passed_pps, 2);
	cr_assert_eq(top.sources[2].rates.passed_pps, 0);
}

Test(top, counters_that_went_down_count_from_zero)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 1000000, 5)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 8, 6)};
	struct pair pair = make_pair(before, 1, now, 1);
	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.sources[0].rates.passed_pps, 4);
	cr_assert_eq(top.sources[0].rates.dropped_pps, 3, "dropped went up, but it is another entry's count");
}

Test(top, a_limit_made_anew_counts_from_zero)
{
	struct rl_source_stats before[] = {test_source("10.0.0.1", 1, 10, 0)};
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 30, 0)};
	struct pair pair = make_pair(before, 1, now, 1);
	struct rl_limit_stats renewed[COUNT(limits)];

	memcpy(renewed, limits, sizeof(limits));
	renewed[1].limit.id = 9;
	pair.now.limits = renewed;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.sources[0].rates.passed_pps, 15);
}

/* Between the snapshots a limit came that shifts the others' indexes; one source is under two limits. */
Test(top, sources_are_paired_by_target_not_by_index)
{
	struct rl_source_stats before[] = {test_source("10.1.0.1", 0, 100, 0),
					   test_source("10.1.0.1", 1, 500, 0)};
	struct rl_source_stats now[] = {test_source("10.1.0.1", 1, 102, 0),
					test_source("10.1.0.1", 2, 504, 0)};
	struct pair pair = make_pair(before, 2, now, 2);

	pair.before.limits = limits + 1;
	pair.before.limit_count = 2;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_PASSED, NULL, 10);

	cr_assert_eq(top.sources[0].stats->limit, 2);
	cr_assert_eq(top.sources[0].rates.passed_pps, 2);
	cr_assert_eq(top.sources[1].rates.passed_pps, 1);
}

Test(top, no_time_between_gives_no_rate)
{
	struct rl_source_stats now[] = {test_source("10.0.0.1", 1, 30, 0)};
	struct pair pair = make_pair(NULL, 0, now, 1);

	pair.now.time = pair.before.time;
	pair.now.sources_time = pair.before.sources_time;

	RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

	cr_assert_eq(top.sources[0].rates.passed_pps, 0);
}

Test(top, sorted_by_each_order_and_ties_by_target)
{
	struct rl_source_stats now[] = {
	    test_source("9.0.0.1", 0, 10, 5),	    test_source("9.0.0.2", 0, 90, 5),
	    test_source("10.0.0.1", 1, 10, 7),	    test_source("10.0.0.2", 1, 1, 30),
	    test_source("2001:db8::/64", 0, 10, 5),
	};
	struct pair pair = make_pair(NULL, 0, now, COUNT(now));

	now[0].tally.passed.bytes = 1000000;
	{
		RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, NULL, 10);

		check_order(
		    &top, (const char *[]){"10.0.0.2", "10.0.0.1", "9.0.0.1", "9.0.0.2", "2001:db8::/64"}, 5);
	}
	{
		RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_PASSED, NULL, 10);

		check_order(
		    &top, (const char *[]){"9.0.0.2", "9.0.0.1", "10.0.0.1", "2001:db8::/64", "10.0.0.2"}, 5);
	}
	{
		RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_BITS, NULL, 10);

		check_order(
		    &top, (const char *[]){"9.0.0.1", "9.0.0.2", "10.0.0.2", "10.0.0.1", "2001:db8::/64"}, 5);
	}
}

Test(top, fewer_rows_are_the_first_of_all)
{
	static struct rl_source_stats now[5000];
	struct pair pair;
	unsigned int seed = 1;

	for (size_t i = 0; i < COUNT(now); i++) {
		now[i] = (struct rl_source_stats){.source = {.prefixlen = 64, .family = 4}, .limit = 0};
		now[i].source.addr[2] = (__u8)(i >> 8);
		now[i].source.addr[3] = (__u8)i;
		seed = seed * 1103515245 + 12345;
		now[i].tally.dropped.packets = (seed >> 16) % 50;
	}
	pair = make_pair(NULL, 0, now, COUNT(now));

	RL_TOP struct rl_top all = compute(&pair, RL_TOP_BY_DROPS, NULL, SIZE_MAX);

	cr_assert_eq(all.source_count, COUNT(now));
	for (size_t i = 1; i < all.source_count; i++) {
		const struct rl_top_source *a = &all.sources[i - 1], *b = &all.sources[i];

		cr_assert(a->rank > b->rank || (a->rank == b->rank && a->stats < b->stats), "row %zu", i);
	}
	for (size_t rows = 0; rows < COUNT(now); rows = rows * 3 + 1) {
		RL_TOP struct rl_top some = compute(&pair, RL_TOP_BY_DROPS, NULL, rows);

		cr_assert_eq(some.source_count, rows);
		cr_assert_eq(some.matched, COUNT(now));
		for (size_t i = 0; i < rows; i++)
			cr_assert_eq(some.sources[i].stats, all.sources[i].stats);
	}
}

Test(top, filter_by_prefix_address_and_tenant)
{
	struct rl_source_stats now[] = {
	    test_source("9.0.0.1", 0, 0, 1),
	    test_source("10.0.0.1", 1, 0, 2),
	    test_source("10.1.0.1", 2, 0, 3),
	    test_source("2001:db8::/64", 0, 0, 4),
	};
	struct pair pair = make_pair(NULL, 0, now, COUNT(now));
	const struct {
		const char *filter, *sources[4];
		size_t count;
	} cases[] = {
	    {"10.1.0.0/16", {"10.1.0.1"}, 1},
	    {"10.0.0.0/8", {"10.1.0.1", "10.0.0.1"}, 2},
	    {"9.0.0.1", {"9.0.0.1"}, 1},
	    {"9.0.0.2", {NULL}, 0},
	    {"2001:db8::/32", {"2001:db8::/64"}, 1},
	    {"2001:db8::1234", {"2001:db8::/64"}, 1}, /* an address in it */
	    {"acme", {"10.1.0.1", "10.0.0.1"}, 2},    /* one of them inherits it */
	    {"acm", {NULL}, 0},
	    {"any", {"2001:db8::/64", "10.1.0.1", "10.0.0.1", "9.0.0.1"}, 4},
	    {"", {"2001:db8::/64", "10.1.0.1", "10.0.0.1", "9.0.0.1"}, 4},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		RL_TOP struct rl_top top = compute(&pair, RL_TOP_BY_DROPS, cases[i].filter, 10);

		check_order(&top, cases[i].sources, cases[i].count);
		cr_assert_eq(top.matched, cases[i].count);
		if (top.source_count)
			cr_assert_eq(top.sources[0].rates.dropped_pps,
				     (double)top.sources[0].stats->tally.dropped.packets / 2);
	}
}

Test(top, filter_refuses_what_is_no_address_and_no_name)
{
	static const char *const wrong[] = {"10.0.0.0/33",
					    "10.0.0.1/24",
					    "10.0.0",
					    "2001:db8::/200",
					    "::ffff:10.0.0.1",
					    "a-name-that-is-longer-than-31-bytes",
					    "a b",
					    "-x",
					    "none",
					    "acme*"};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct rl_top_filter filter = {.kind = RL_TOP_FILTER_TENANT, .tenant = "kept"};
		struct rl_error err = {};

		cr_assert_lt(rl_top_filter_parse(wrong[i], &filter, &err), 0, "%s", wrong[i]);
		cr_assert_eq(err.kind, RL_ERROR_USAGE);
		cr_assert_str_eq(filter.tenant, "kept");
	}
}

Test(top, orders_have_names)
{
	struct rl_error err = {};
	enum rl_top_by by;

	for (int i = 0; i < RL_TOP_BYS; i++) {
		cr_assert_eq(rl_top_by_parse(rl_top_by_name(i), &by, &err), 0);
		cr_assert_eq((int)by, i);
	}
	cr_assert_lt(rl_top_by_parse("rate", &by, &err), 0);
	cr_assert_eq(err.kind, RL_ERROR_USAGE);
}

Test(snapshot, tenants_are_those_of_the_nearest_prefix_around)
{
	struct rl_limit_stats all[] = {
	    test_limit("any", 1, "house"),	   test_limit("10.0.0.0/8", 2, "acme"),
	    test_limit("10.1.0.0/16", 3, ""),	   test_limit("10.1.2.0/24", 4, "lab"),
	    test_limit("10.1.2.3", 5, ""),	   test_limit("10.1.3.0/24", 6, ""),
	    test_limit("10.2.0.0/16", 7, ""),	   test_limit("11.0.0.0/8", 8, ""),
	    test_limit("2001:db8::/32", 9, "six"), test_limit("2001:db8::1", 10, ""),
	};
	static const char *const expected[] = {"house", "acme", "acme",	 "lab", "lab",
					       "acme",	"acme", "house", "six", "six"};

	for (size_t i = 1; i < COUNT(all); i++)
		cr_assert_lt(rl_target_compare(&all[i - 1].limit.target, &all[i].limit.target), 0);
	rl_tenants_inherit(all, COUNT(all));
	for (size_t i = 0; i < COUNT(all); i++)
		cr_assert_str_eq(all[i].tenant, expected[i], "limit %zu", i);

	all[0] = test_limit("10.0.0.0/8", 1, "");
	rl_tenants_inherit(all, 1);
	cr_assert_str_eq(all[0].tenant, "");
}

Test(snapshot, classes_have_their_target_s_tenant_and_other_targets_none)
{
	struct rl_limit_stats all[] = {
	    test_limit("10.0.0.0/8", 1, "acme"), test_class_limit("10.0.0.0/8", 2, "syn"),
	    test_limit("10.1.0.0/16", 3, ""),	 test_class_limit("10.1.0.0/16", 4, "syn"),
	    test_limit("11.0.0.0/8", 5, ""),	 test_limit("tenant:acme", 6, ""),
	    test_limit("dev:eth0", 7, ""),	 test_limit("new", 8, ""),
	};
	static const char *const expected[] = {"acme", "acme", "acme", "acme", "", "", "", ""};

	rl_tenants_inherit(all, COUNT(all));
	for (size_t i = 0; i < COUNT(all); i++)
		cr_assert_str_eq(all[i].tenant, expected[i], "limit %zu", i);
}

/* Every prefix length there is, each inside the one before it. */
Test(snapshot, tenants_pass_down_the_longest_chain)
{
	struct rl_limit_stats chain[RL_PREFIX_MAX_BITS - RL_PREFIX_FAMILY_BITS + 2] = {
	    test_limit("any", 1, "deep")};

	for (__u32 i = 1; i < COUNT(chain); i++)
		chain[i].limit.target.prefix =
		    (struct rl_prefix){.family = 6, .prefixlen = RL_PREFIX_FAMILY_BITS + i - 1};
	rl_tenants_inherit(chain, COUNT(chain));
	for (size_t i = 0; i < COUNT(chain); i++)
		cr_assert_str_eq(chain[i].tenant, "deep");
}

Test(snapshot, device_totals_are_the_sums_of_their_reasons)
{
	struct rl_device_count count;
	__u64 passed = 0, dropped = 0, shadow = 0;

	for (int i = 0; i < RL_REASONS; i++) {
		count.by_reason[i] = (struct rl_count){1ULL << i, 3ULL << i};
		*(rl_reason_drops(i) ? &dropped : &passed) += 1ULL << i;
		shadow += rl_reason_shadows(i) ? 1ULL << i : 0;
	}
	cr_assert_eq(rl_device_passed(&count).packets, passed);
	cr_assert_eq(rl_device_passed(&count).bytes, 3 * passed);
	cr_assert_eq(rl_device_dropped(&count).packets, dropped);
	cr_assert_eq(rl_device_dropped(&count).bytes, 3 * dropped);
	cr_assert_eq(rl_device_shadow(&count).packets, shadow);
	cr_assert_eq(rl_device_shadow(&count).bytes, 3 * shadow);
	cr_assert_eq(passed + dropped, (1ULL << RL_REASONS) - 1);
}

/* What drops and what would have dropped are called the same, but for the word in front. */
Test(snapshot, reasons_have_names_of_their_own)
{
	for (int i = 0; i < RL_REASONS; i++) {
		char shadow[64];

		for (int j = 0; j < i; j++)
			cr_assert_str_neq(rl_reason_name(i), rl_reason_name(j));
		if (!rl_reason_drops(i))
			continue;
		snprintf(shadow, sizeof(shadow), "shadow_%s", rl_reason_name(i));
		cr_assert_str_eq(rl_reason_name(rl_reason_shadow(i)), shadow);
	}
	cr_assert_str_eq(rl_reason_name(RL_REASONS), "unknown");
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain: which limits hold a packet and why, what is left in their buckets, and when it would pass. */
#include <criterion/criterion.h>

#include "explains.h"

Test(explain, the_longest_prefix_with_its_classes_tenant_and_device)
{
	struct rl_limit *prefix, *tenant;
	const struct rl_explain *found;

	begin_policy();
	add_rate("any", "10pps", NULL);
	add("10.0.0.0/8", terms_completed("10.0.0.0/8", terms_said("20pps", NULL)));
	snprintf(world.limits[1].limit.terms.tenant, RL_TENANT_LEN, "acme");
	prefix = add_rate("10.1.0.0/16", "30pps", NULL);
	add_class(prefix, "syn", "1pps", NULL);
	add_class(prefix, "tcp/443", "2pps", NULL);
	add_class(prefix, "udp", "3pps", NULL);
	add_rate("10.1.2.3", "40pps", NULL);
	tenant = add_rate("tenant:acme", "50pps", NULL);
	prefix->tenant = tenant->slot;
	world.devices[1].attached.device.limit = add_rate("dev:eth1", "60pps", NULL)->slot;

	found = explain_words(.address = "10.1.9.9", .syn = 1, .dport = "443", .proto = "tcp");
	cr_assert_eq(found->why, RL_EXPLAIN_LONGEST);
	cr_assert_eq(found->limit, &world.limits[2]);
	cr_assert_eq(found->wider_count, 2);
	cr_assert_eq(found->wider[0], &world.limits[0]);
	cr_assert_eq(found->wider[1], &world.limits[1]);
	cr_assert_eq(found->tenant_from, &world.limits[1]);
	check_levels_are("10.1.0.0/16", "class syn of 10.1.0.0/16", "class tcp/443 of 10.1.0.0/16",
			 "tenant:acme");
	cr_assert_eq(found->device_count, 2);
	cr_assert_null(found->device[0].level.limit);
	cr_assert_eq(found->device[1].level.limit->limit.level, RL_LEVEL_DEVICE);
	cr_assert_eq(found->device[1].reason, RL_PASS_LIMIT);
	cr_assert_eq(found->device[1].wait, 0);

	explain_words(.address = "10.1.9.9", .proto = "udp");
	check_levels_are("10.1.0.0/16", "class udp of 10.1.0.0/16", "tenant:acme");
	explain_words(.address = "10.1.2.3");
	check_levels_are("10.1.2.3");
	explain_words(.address = "11.0.0.1");
	check_levels_are("any");
	explain_words(.address = "2001:db8::1");
	check_levels_are("any");
}

Test(explain, a_source_is_what_has_one_bucket)
{
	struct rl_prefix expected;

	begin_policy();
	add_rate("any", "10pps", NULL);
	add_rate("10.1.2.3", "10pps", NULL);
	expected = test_prefix("2001:db8:1:2::/64");
	cr_assert_eq(rl_prefix_compare(&explain_words(.address = "2001:db8:1:2::7")->source, &expected), 0);
	expected = test_prefix("10.9.9.9");
	cr_assert_eq(rl_prefix_compare(&explain_words(.address = "10.9.9.9")->source, &expected), 0);
	expected = test_prefix("10.1.2.3");
	cr_assert_eq(rl_prefix_compare(&explain_words(.address = "10.1.2.3")->source, &expected), 0);
}

Test(explain, no_limit_allow_and_deny)
{
	struct rl_terms terms = RL_TERMS_INIT;
	const struct rl_explain *found;

	begin_policy();
	terms.action = RL_ACTION_ALLOW;
	add("10.0.0.0/8", terms);
	terms.action = RL_ACTION_DENY;
	add("11.0.0.0/8", terms);
	world.devices[1].attached.device.limit = add_rate("dev:eth1", "60pps", NULL)->slot;

	found = explain_words(.address = "9.9.9.9");
	cr_assert_eq(found->why, RL_EXPLAIN_NO_PREFIX);
	cr_assert_eq(found->device[0].reason, RL_PASS_NO_LIMIT);
	cr_assert_eq(found->device[1].reason, RL_PASS_LIMIT, "its device's");

	found = explain_words(.address = "10.9.9.9");
	cr_assert_eq(found->why, RL_EXPLAIN_ALLOWED);
	cr_assert_eq(found->level_count, 0);
	cr_assert_eq(found->device[1].reason, RL_PASS_ALLOWED);
	cr_assert_null(found->device[1].level.limit, "it is charged nowhere");

	found = explain_words(.address = "11.9.9.9");
	cr_assert_eq(found->why, RL_EXPLAIN_DENIED);
	cr_assert_eq(found->device[0].reason, RL_DROP_DENIED);
	cr_assert_null(found->device[1].level.limit, "it is charged nowhere");
	cr_assert_eq(found->device[0].wait, RL_EXPLAIN_NEVER);

	world.devices[0].attached.device.flags |= RL_DEVICE_SHADOW;
	world.devices[1].attached.device.flags |= RL_DEVICE_PAUSED;
	found = explain_words(.address = "11.9.9.9");
	cr_assert_eq(found->device[0].reason, RL_SHADOW_DENIED);
	cr_assert_eq(found->device[0].wait, 0);
	cr_assert_eq(found->device[1].reason, RL_PASS_PAUSED);
	cr_assert_eq(found->device[1].wait, 0);
}

Test(explain, tokens_left_and_the_time_until_there_are_enough)
{
	struct rl_explain_unit *packets, *bytes;

	begin_policy();
	add_rate("10.0.0.0/8", "100pps 8mbit", "200p 10kb");
	explain_words(.address = "10.0.0.1", .bytes = "1000");
	packets = &world.explain.level[0].unit[RL_PACKETS];
	bytes = &world.explain.level[0].unit[RL_BYTES];
	cr_assert_eq(packets->burst, 200);
	cr_assert_eq(packets->left, 200);
	cr_assert_eq(packets->wait, 0);
	cr_assert_eq(bytes->burst, 10000);
	cr_assert_eq(bytes->left, 10000);

	charge(&world.explain.level[0], 1000, 4, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(packets->left, 196);
	cr_assert(bytes->left >= 5990 && bytes->left <= 6000, "%llu", bytes->left);
	cr_assert_eq(world.explain.device[0].reason, RL_PASS_LIMIT);

	/* Ten packets of 1000 bytes are what the bytes hold; a millisecond later there is one more. */
	charge(&world.explain.level[0], 1000, 6, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(packets->left, 190);
	cr_assert_lt(bytes->left, 10);
	cr_assert_eq(packets->wait, 0);
	cr_assert(bytes->wait > 990000 && bytes->wait <= 1000300, "%llu ns", bytes->wait);
	cr_assert_eq(world.explain.level[0].wait, bytes->wait);
	cr_assert_eq(world.explain.device[0].reason, RL_DROP_SOURCE);
	cr_assert_eq(world.explain.device[0].wait, bytes->wait);

	rl_explain_finish(&world.explain, NOW + 3600 * SECOND);
	cr_assert_eq(packets->left, 200);
	cr_assert_eq(bytes->left, 10000);
	cr_assert_eq(world.explain.device[0].wait, 0);
}

/* What is waited for is the first nanosecond in which the packet path would admit the packet. */
Test(explain, the_wait_is_exact)
{
	static const char *const rates[] = {"1/h", "7pps", "333333pps", "148.8mpps"};
	__u64 random = SEED;

	for (size_t i = 0; i < COUNT(rates); i++) {
		struct rl_explain_level *level = &world.explain.level[0];
		const struct rl_limit *limit;

		begin_policy();
		add_rate("10.0.0.0/8", rates[i], "50p");
		explain_words(.address = "10.0.0.1");
		limit = &level->limit->limit;
		for (int try = 0; try < 200; try++) {
			__u64 now = random_between(&random, NOW, NOW + SECOND), wait;
			struct rl_bucket seen;

			memset(&level->buckets, 0, sizeof(level->buckets));
			charge(level, 60, 50, now);
			rl_explain_finish(&world.explain, now);
			wait = level->wait;
			cr_assert_gt(wait, 0);
			seen = rl_bucket_load(&level->buckets, RL_PACKETS);
			cr_assert_eq(rl_gcra_decide(limit, RL_PACKETS, &seen,
						    rl_gcra_cost(&limit->rate[RL_PACKETS], 1), 0, now + wait)
					 .verdict,
				     RL_GCRA_ADMIT);
			cr_assert_eq(rl_gcra_decide(limit, RL_PACKETS, &seen,
						    rl_gcra_cost(&limit->rate[RL_PACKETS], 1), 0,
						    now + wait - 1)
					 .verdict,
				     RL_GCRA_REJECT);
		}
	}
}

/* 1000 tokens at 1000/s, all taken; then 10/s: it owes 1000 still, and one is there after 100 ms. */
Test(explain, a_bucket_of_an_earlier_rate_owes_what_it_owed)
{
	struct rl_explain_level *level = &world.explain.level[0];
	struct rl_terms terms;
	struct rl_limit old;
	struct rl_error err = {};

	begin_policy();
	add_rate("10.0.0.0/8", "1000pps", "1000p");
	explain_words(.address = "10.0.0.1");
	charge(level, 60, 1000, NOW);
	old = world.limits[0].limit;
	terms = terms_completed("10.0.0.0/8", terms_said("10pps", "1000p"));
	cr_assert_eq(
	    rl_limit_compute(&old.target, &terms, &old, old.id, old.slot, NOW, &world.limits[0].limit, &err),
	    0);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(level->unit[RL_PACKETS].left, 0);
	cr_assert(level->wait >= 100 * MS && level->wait < 101 * MS, "%llu ns", level->wait);
	rl_explain_finish(&world.explain, NOW + 50 * SECOND);
	cr_assert(level->unit[RL_PACKETS].left >= 499 && level->unit[RL_PACKETS].left <= 500);
}

Test(explain, costs_are_taken_everywhere_but_in_classes)
{
	struct rl_limit *prefix, *tenant;
	const struct rl_explain *found;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "100pps", "50p");
	prefix->cost[0] = (struct rl_cost){.class = test_class("tcp"), .tokens = 2};
	prefix->cost[1] = (struct rl_cost){.class = test_class("syn"), .tokens = 10};
	prefix->cost_count = 2;
	add_class(prefix, "syn", "100pps", "16p");
	tenant = add_rate("tenant:acme", "100pps", "5p");
	prefix->tenant = tenant->slot;

	found = explain_words(.address = "10.0.0.1", .syn = 1);
	cr_assert_eq(found->cost, 10);
	cr_assert_eq(found->level[1].limit->limit.level, RL_LEVEL_CLASS);
	charge(&world.explain.level[1], 60, 15, NOW);
	charge(&world.explain.level[0], 60, 45, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->level[1].wait, 0, "it takes 1 there");
	cr_assert_eq(found->level[0].unit[RL_PACKETS].left, 5);
	cr_assert_gt(found->level[0].wait, 0, "and 10 here");
	cr_assert_eq(found->level[2].wait, RL_EXPLAIN_NEVER, "which the tenant's never holds");
	cr_assert_eq(found->device[0].reason, RL_DROP_SOURCE, "the first level has its say");
	cr_assert_eq(found->device[0].wait, RL_EXPLAIN_NEVER, "and the slowest");
	cr_assert_eq(explain_words(.address = "10.0.0.1", .proto = "tcp")->cost, 2);
	cr_assert_eq(explain_words(.address = "10.0.0.1", .proto = "udp")->cost, 1);
}

Test(explain, a_reserve_is_kept_from_lower_priorities)
{
	static const struct {
		__u8 limit, tenant;
		__u64 kept;
	} cases[] = {
	    {RL_PRIORITY_HIGH, RL_PRIORITY_LOW, 0},	{RL_PRIORITY_UNSET, RL_PRIORITY_UNSET, 20},
	    {RL_PRIORITY_NORMAL, RL_PRIORITY_HIGH, 20}, {RL_PRIORITY_UNSET, RL_PRIORITY_LOW, 25},
	    {RL_PRIORITY_LOW, RL_PRIORITY_HIGH, 25},
	};
	struct rl_terms terms = terms_said("100pps", "100p");

	terms.reserve[0] = 2000;
	terms.reserve[1] = 500;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct rl_explain_level *level = &world.explain.level[1];
		struct rl_limit *prefix, *tenant;

		begin_policy();
		prefix = add_rate("10.0.0.0/8", "1000pps", NULL);
		tenant = add("tenant:acme", terms_completed("tenant:acme", terms));
		prefix->tenant = tenant->slot;
		prefix->priority = cases[i].limit;
		tenant->priority = cases[i].tenant;
		explain_words(.address = "10.0.0.1");
		cr_assert_eq(level->unit[RL_PACKETS].left, 100);
		cr_assert_eq(level->unit[RL_PACKETS].kept, cases[i].kept, "case %zu: %llu", i,
			     level->unit[RL_PACKETS].kept);
		charge(&world.explain.level[1], 60, 100 - (__u32)cases[i].kept - 1, NOW);
		rl_explain_finish(&world.explain, NOW);
		cr_assert_eq(level->wait, 0);
		charge(&world.explain.level[1], 60, 1, NOW);
		rl_explain_finish(&world.explain, NOW);
		cr_assert_gt(level->wait, 0);
		cr_assert_eq(world.explain.device[0].reason, RL_DROP_TENANT);
	}
}

Test(explain, shadow_passes_unless_another_level_drops)
{
	struct rl_limit *prefix, *class;
	const struct rl_explain *found = &world.explain;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "100pps", "16p");
	class = add_class(prefix, "udp", "100pps", "16p");
	prefix->flags |= RL_LIMIT_SHADOW;
	explain_words(.address = "10.0.0.1", .proto = "udp");
	charge(&world.explain.level[0], 60, 16, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_SHADOW_SOURCE);
	cr_assert_eq(found->device[0].wait, 0);

	charge(&world.explain.level[1], 60, 16, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_DROP_CLASS);
	cr_assert_eq(found->device[0].wait, found->level[1].wait);

	class->flags |= RL_LIMIT_SHADOW;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_SHADOW_SOURCE, "the first that would have");

	class->flags = prefix->flags = 0;
	world.devices[0].attached.device.flags |= RL_DEVICE_SHADOW;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_SHADOW_SOURCE);
	cr_assert_eq(found->device[1].reason, RL_DROP_SOURCE);
}

Test(explain, a_limit_without_a_rate_holds_nothing_back)
{
	struct rl_terms none = RL_TERMS_INIT;

	begin_policy();
	add_class(add("10.0.0.0/8", none), "udp", "1pps", NULL);
	explain_words(.address = "10.0.0.1");
	check_levels_are("10.0.0.0/8");
	cr_assert_not(world.explain.level[0].unit[RL_PACKETS].limited);
	cr_assert_not(world.explain.level[0].unit[RL_BYTES].limited);
	cr_assert_eq(world.explain.device[0].reason, RL_PASS_LIMIT);
	cr_assert_eq(world.explain.device[0].wait, 0);
}

Test(explain, devices_that_are_gone_are_left_out_and_one_can_be_chosen)
{
	struct rl_explain_packet packet = packet_of((struct rl_explain_words){.address = "10.0.0.1"});

	begin_policy();
	rl_explain_begin(&world.snapshot, &packet, &world.devices[1], &world.explain);
	cr_assert_eq(world.explain.device_count, 1);
	cr_assert_eq(world.explain.device[0].device, &world.devices[1]);
	world.devices[1].attached.where = RL_GONE;
	rl_explain_begin(&world.snapshot, &packet, NULL, &world.explain);
	cr_assert_eq(world.explain.device_count, 1);
	cr_assert_eq(world.explain.device[0].device, &world.devices[0]);
}

Test(explain, packets_in_words)
{
	static const struct {
		struct rl_explain_words words;
		__u8 kinds;
		__u16 port;
		__u32 bytes;
	} cases[] = {
	    {{.address = "10.0.0.1"}, 0, 0, 60},
	    {{.address = "10.0.0.1", .bytes = "1514"}, 0, 0, 1514},
	    {{.address = "10.0.0.1", .proto = "tcp"}, RL_KIND_TCP, 0, 60},
	    {{.address = "10.0.0.1", .proto = "6", .dport = "443"}, RL_KIND_TCP | RL_KIND_PORTS, 443, 60},
	    {{.address = "10.0.0.1", .proto = "udp", .dport = "65535"},
	     RL_KIND_UDP | RL_KIND_PORTS,
	     65535,
	     60},
	    {{.address = "10.0.0.1", .syn = 1}, RL_KIND_TCP | RL_KIND_SYN, 0, 60},
	    {{.address = "10.0.0.1", .proto = "icmp"}, RL_KIND_ICMP, 0, 60},
	    {{.address = "2001:db8::1", .proto = "icmp"}, RL_KIND_ICMP, 0, 60},
	    {{.address = "2001:db8::1", .proto = "58"}, RL_KIND_ICMP, 0, 60},
	    {{.address = "2001:db8::1", .proto = "1"}, 0, 0, 60},
	    {{.address = "10.0.0.1", .proto = "47"}, 0, 0, 60},
	    {{.address = "10.0.0.1", .frag = 1}, RL_KIND_FRAG, 0, 60},
	    {{.address = "10.0.0.1", .frag = 1, .proto = "udp"}, RL_KIND_FRAG | RL_KIND_UDP, 0, 60},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_explain_packet packet = packet_of(cases[i].words);

		cr_assert_eq(packet.kinds, cases[i].kinds, "case %zu", i);
		cr_assert_eq(packet.port, cases[i].port, "case %zu", i);
		cr_assert_eq(packet.bytes, cases[i].bytes, "case %zu", i);
	}
}

Test(explain, what_no_packet_can_be_is_refused)
{
	static const struct rl_explain_words cases[] = {
	    {.address = "10.0.0.0/8"},
	    {.address = "2001:db8::/64"},
	    {.address = "any"},
	    {.address = "acme"},
	    {.address = "10.0.0.1", .proto = "tpc"},
	    {.address = "10.0.0.1", .proto = ""},
	    {.address = "10.0.0.1", .proto = "256"},
	    {.address = "10.0.0.1", .proto = "-6"},
	    {.address = "10.0.0.1", .proto = "99999999999999999999"},
	    {.address = "10.0.0.1", .dport = "443"},
	    {.address = "10.0.0.1", .proto = "icmp", .dport = "443"},
	    {.address = "10.0.0.1", .proto = "tcp", .dport = "0"},
	    {.address = "10.0.0.1", .proto = "tcp", .dport = "65536"},
	    {.address = "10.0.0.1", .proto = "udp", .syn = 1},
	    {.address = "10.0.0.1", .proto = "tcp", .syn = 1, .frag = 1},
	    {.address = "10.0.0.1", .proto = "tcp", .dport = "443", .frag = 1},
	    {.address = "10.0.0.1", .bytes = "0"},
	    {.address = "10.0.0.1", .bytes = "1m"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_explain_packet packet = {.bytes = 77};
		struct rl_error err = {};

		cr_assert_lt(rl_explain_parse(&cases[i], &packet, &err), 0, "case %zu", i);
		cr_assert_eq(err.kind, RL_ERROR_USAGE, "case %zu", i);
		cr_assert_gt(strlen(err.text), 20);
		cr_assert_eq(packet.bytes, 77);
	}
}

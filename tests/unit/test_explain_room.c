// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* explain: a source without a bucket, for which `new` has no token or the table no room. */
#include <criterion/criterion.h>

#include "explains.h"

/* A source that has a bucket isn't new. */
Test(explain_room, a_source_without_a_bucket_takes_one_from_new)
{
	const struct rl_explain *found = &world.explain;
	struct rl_explain_level *level;

	begin_policy();
	add_rate("10.0.0.0/8", "100pps", "16p");
	add_rate("10.1.2.3", "100pps", "16p");
	world.snapshot.settings.fresh = add_rate("new", "100pps", "20p")->slot;
	explain_words(.address = "10.0.0.1");
	check_levels_are("10.0.0.0/8");
	explain_words(.address = "10.1.2.3");
	check_levels_are("10.1.2.3");

	for (__u32 taken = 0; taken <= 20; taken += 20) {
		struct rl_explain_packet packet = packet_of((struct rl_explain_words){.address = "10.0.0.1"});

		rl_explain_begin(&world.snapshot, &packet, NULL, &world.explain);
		level = &world.explain.level[1];
		charge(level, 60, taken, NOW);
		rl_explain_finish(&world.explain, NOW);
		check_levels_are("10.0.0.0/8", "new");
		cr_assert_eq(found->level[0].unit[RL_PACKETS].left, 16,
			     "the one that it would be given is full");
		cr_assert_eq(level->unit[RL_PACKETS].left, 20 - taken);
		cr_assert_eq(found->device[0].reason, taken ? RL_DROP_NEW : RL_PASS_LIMIT);
	}
}

/* Both steps, with a source for whose levels `first` to `last` the table has no room. */
static const struct rl_explain *explain_homeless(struct rl_explain_words words, int first, int last,
						 enum rl_reason reason)
{
	explain(words);
	for (int i = first; i <= last; i++) {
		world.explain.level[i].found = false;
		world.explain.level[i].trial = (struct rl_trial){
		    .reason = reason, .group = test_prefix("10.0.0.0/24"), .room = 8 * SECOND};
	}
	rl_explain_finish(&world.explain, NOW);
	return &world.explain;
}

/* The neighbourhood's bucket stands in for the source's, until that has a place. */
Test(explain_room, without_room_the_neighbourhood_is_charged)
{
	const struct rl_explain_words words = {.address = "10.0.0.1"};
	struct rl_explain_level full = {}, *level = &world.explain.level[0];
	const struct rl_explain *found;
	struct rl_limit *prefix;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "1/h", "16p");
	found = explain_homeless(words, 0, 0, RL_PASS_AGGREGATE);
	cr_assert(rl_explain_no_room(level));
	cr_assert_eq(level->unit[RL_PACKETS].left, 16);
	cr_assert_eq(found->device[0].reason, RL_PASS_AGGREGATE);
	cr_assert_eq(found->device[0].wait, 0);

	full.limit = level->limit;
	charge(&full, 60, 16, NOW);
	level->trial.buckets = full.buckets;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(level->unit[RL_PACKETS].left, 0);
	cr_assert_eq(level->unit[RL_PACKETS].wait, 3600 * SECOND);
	cr_assert_eq(found->device[0].reason, RL_DROP_AGGREGATE);
	cr_assert_eq(found->device[0].wait, 8 * SECOND, "then there is room for a full one");
	level->trial.room = RL_TRIAL_NEVER;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].wait, 3600 * SECOND);

	prefix->flags |= RL_LIMIT_SHADOW;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_SHADOW_AGGREGATE);
	cr_assert_eq(found->device[0].wait, 0);
	prefix->flags = 0;

	/* A packet that no full bucket holds waits in vain for one. */
	prefix->cost[0] = (struct rl_cost){.class = test_class("udp"), .tokens = 17};
	prefix->cost_count = 1;
	explain_homeless((struct rl_explain_words){.address = "10.0.0.1", .proto = "udp"}, 0, 0,
			 RL_PASS_AGGREGATE);
	cr_assert_eq(found->device[0].wait, RL_EXPLAIN_NEVER);
	explain_homeless((struct rl_explain_words){.address = "10.0.0.1", .proto = "udp"}, 0, 0,
			 RL_DROP_FULL);
	cr_assert_eq(found->device[0].wait, RL_EXPLAIN_NEVER);
}

/* Open: the source's own limit has no say, and the others have theirs. */
Test(explain_room, without_room_it_passes_where_the_table_is_open)
{
	struct rl_limit *prefix, *tenant;
	const struct rl_explain *found;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "1/h", "16p");
	tenant = add_rate("tenant:acme", "1/h", "16p");
	prefix->tenant = tenant->slot;
	prefix->cost[0] = (struct rl_cost){.class = test_class("udp"), .tokens = 17};
	prefix->cost_count = 1;
	found = explain_homeless((struct rl_explain_words){.address = "10.0.0.1"}, 0, 0, RL_PASS_OPEN);
	cr_assert_eq(found->device[0].reason, RL_PASS_OPEN);
	cr_assert_eq(found->device[0].wait, 0);
	cr_assert_not(found->level[0].unit[RL_PACKETS].limited, "no bucket is shown");
	charge(&world.explain.level[1], 60, 16, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_DROP_TENANT);
	cr_assert_eq(found->device[0].wait, 3600 * SECOND);
	found = explain_homeless((struct rl_explain_words){.address = "10.0.0.1", .proto = "udp"}, 0, 0,
				 RL_PASS_OPEN);
	cr_assert_eq(found->level[0].wait, 0, "it costs more than a full one holds, but there is none");
}

/* Each must have its place before any bucket is looked at: the class without room drops, not the source that is over. */
Test(explain_room, without_room_it_drops_where_the_table_is_closed)
{
	const struct rl_explain_words words = {.address = "10.0.0.1", .proto = "udp"};
	struct rl_limit *prefix;
	const struct rl_explain *found;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "1/h", "16p");
	add_class(prefix, "udp", "1/h", "16p");
	found = explain_homeless(words, 0, 1, RL_DROP_FULL);
	cr_assert_eq(found->device[0].reason, RL_DROP_FULL);
	cr_assert_eq(found->device[0].wait, 8 * SECOND);
	cr_assert_not(found->level[0].unit[RL_PACKETS].limited);

	explain_homeless(words, 1, 1, RL_DROP_FULL);
	charge(&world.explain.level[0], 60, 16, NOW);
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_DROP_FULL);
	cr_assert_eq(found->device[0].wait, 3600 * SECOND, "the slower of both");

	world.devices[0].attached.device.flags |= RL_DEVICE_SHADOW;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_eq(found->device[0].reason, RL_SHADOW_FULL);
	cr_assert_eq(found->device[0].wait, 0);
	cr_assert_eq(found->device[1].reason, RL_DROP_FULL);
}

/* What is found meanwhile is looked at as it is. */
Test(explain_room, a_source_that_has_its_bucket_needs_no_room)
{
	const struct rl_explain *found;

	begin_policy();
	add_rate("10.0.0.0/8", "1/h", "16p");
	found = explain_homeless((struct rl_explain_words){.address = "10.0.0.1"}, 0, 0, RL_DROP_FULL);
	world.explain.level[0].found = true;
	rl_explain_finish(&world.explain, NOW);
	cr_assert_not(rl_explain_no_room(&found->level[0]));
	cr_assert_eq(found->device[0].reason, RL_PASS_LIMIT);
}

/* In shadow: the source passes without a bucket, so none of its own limits holds it, and those around it do. */
Test(explain_room, what_new_in_shadow_does_not_grant_is_held_by_no_limit_of_its_own)
{
	struct rl_explain_packet packet =
	    packet_of((struct rl_explain_words){.address = "10.0.0.1", .syn = 1});
	const struct rl_explain *found = &world.explain;
	struct rl_limit *prefix, *tenant, *fresh;

	begin_policy();
	prefix = add_rate("10.0.0.0/8", "100pps", "16p");
	prefix->cost[0] = (struct rl_cost){.class = test_class("syn"), .tokens = 17};
	prefix->cost_count = 1;
	add_class(prefix, "syn", "100pps", "16p");
	tenant = add_rate("tenant:acme", "1/h", "40p");
	prefix->tenant = tenant->slot;
	fresh = add_rate("new", "100pps", "20p");
	world.snapshot.settings.fresh = fresh->slot;
	for (int shadow = 0; shadow < 2; shadow++) {
		fresh->flags |= shadow ? RL_LIMIT_SHADOW : 0;
		rl_explain_begin(&world.snapshot, &packet, NULL, &world.explain);
		world.explain.level[1].trial = (struct rl_trial){.reason = RL_DROP_FULL, .room = 8 * SECOND};
		charge(&world.explain.level[3], 60, 20, NOW);
		rl_explain_finish(&world.explain, NOW);
		cr_assert_eq(rl_explain_new(found), &found->level[3]);
		cr_assert_eq(found->device[0].reason, shadow ? RL_SHADOW_NEW : RL_DROP_NEW);
		cr_assert_eq(found->device[0].wait, shadow ? 0 : RL_EXPLAIN_NEVER, "its cost is too high");
		charge(&world.explain.level[2], 60, 40, NOW);
		rl_explain_finish(&world.explain, NOW);
		cr_assert_eq(found->device[0].reason, shadow ? RL_DROP_TENANT : RL_DROP_NEW);
	}
}

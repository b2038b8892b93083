// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * full.c - sources for which the table has no room, and what becomes of their packets.
 */
#include <bpf/bpf.h>

#include "crowd.h"
#include "stories.h"

/* CASES.md 15: a neighbourhood without a place is held together to what one source may have. */
Test(full, aggregate)
{
	struct fixture fx = crowd_small(RL_FULL_AGGREGATE);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "10pps", "3", "tenant=acme", NULL);
	struct rl_limit tenant = fixture_limit(&fx, "tenant:acme", "10mpps", NULL);
	struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "10mpps", NULL);

	for (int f = 0; f < 2; f++) {
		const char *const *near = story_neighbours[f];
		struct ledger ledger;
		char text[CROWD_TEXT];
		const char *first =
		    crowd_fresh_text(families[f].family, crowd_fill(&crowd, families[f].family), text);

		ledger = ledger_open(&fx, first, &any, &tenant, &device, NULL);
		story_repeat(&fx, near[0], 2, RL_PASS_AGGREGATE, &any);
		story_expect(&fx, near[1], RL_PASS_AGGREGATE, &any);
		ledger_charged(&ledger, 0, 0, 0);
		ledger_charged(&ledger, 1, 3, 0);
		ledger_charged(&ledger, 2, 3, 0);
		ledger = ledger_open(&fx, first, &any, &tenant, &device, NULL);
		story_expect(&fx, near[0], RL_DROP_AGGREGATE, &any);
		story_expect(&fx, near[1], RL_DROP_AGGREGATE, &any);
		ledger_same(&ledger);
		cr_assert_not(story_has_bucket(&fx, &any, near[0]));
		story_repeat(&fx, near[2], 3, RL_PASS_AGGREGATE, &any);
		story_expect(&fx, near[2], RL_DROP_AGGREGATE, &any);
		fixture_advance(&fx, 100 * MS - 1);
		story_expect(&fx, near[1], RL_DROP_AGGREGATE, &any);
		fixture_advance(&fx, 1);
		story_expect(&fx, near[1], RL_PASS_AGGREGATE, &any);
		story_expect(&fx, near[0], RL_DROP_AGGREGATE, &any);
		/* Whoever has a place is held by itself, as before. */
		story_repeat(&fx, first, 3, RL_PASS_LIMIT, &any);
		story_expect(&fx, first, RL_DROP_SOURCE, &any);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* The neighbourhood's bucket has the limit's two units, and its packets their cost. */
Test(full, aggregate_in_both_units)
{
	struct fixture fx = crowd_small(RL_FULL_AGGREGATE);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "10", "1kbit", "3kb", "cost=syn=4", NULL);

	for (int f = 0; f < 2; f++) {
		struct rl_frame_spec syn = {.src = story_neighbours[f][0], .proto = 6, .len = STORY_LEN};
		struct rl_frame_spec large = {.src = story_neighbours[f][2], .len = 1000};

		crowd_fill(&crowd, families[f].family);
		fixture_expect(&fx, &syn, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &syn, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &syn, RL_DROP_AGGREGATE, &any);
		for (int i = 0; i < 3; i++)
			fixture_expect(&fx, &large, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &large, RL_DROP_AGGREGATE, &any);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* Sources that are larger than a neighbourhood: what is one source to its limit is one here too. */
Test(full, aggregate_of_a_source_that_is_larger)
{
	static const char *const target[2] = {"198.0.0.0/8", "2001:db9::/32"};
	static const char *const per[2] = {"per=/16", "per=/40"};
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	fixture_limit(&fx, "any", "1/h", "2", NULL);
	crowd_fill(&crowd, 4);
	fixture_when_full(&fx, RL_FULL_AGGREGATE);
	for (int f = 0; f < 2; f++) {
		struct rl_limit limit = fixture_limit(&fx, target[f], "1/h", "2", per[f], NULL);

		story_expect(&fx, story_neighbours[f][0], RL_PASS_AGGREGATE, &limit);
		story_expect(&fx, story_neighbours[f][2], RL_PASS_AGGREGATE, &limit);
		story_expect(&fx, story_neighbours[f][0], RL_DROP_AGGREGATE, &limit);
		story_expect(&fx, story_neighbours[f][2], RL_DROP_AGGREGATE, &limit);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* No room for the neighbourhood either: dropped, and in shadow not. */
Test(full, no_room_for_neighbourhoods)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct crowd_plan plan = {.packets = 10 * RL_GROUP_REGIONS * RL_REGION_ROWS * RL_ROW, .stride = 256};
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	crowd_fill(&crowd, 4);
	fixture_when_full(&fx, RL_FULL_AGGREGATE);
	crowd_run(&crowd, 4, &plan, &any);
	for (int f = 0; f < 2; f++) {
		story_repeat(&fx, story_neighbours[f][0], 3, RL_DROP_FULL, &any);
		fixture_shadow(&fx, true);
		story_expect(&fx, story_neighbours[f][0], RL_SHADOW_FULL, &any);
		fixture_shadow(&fx, false);
	}
	/* The stand-ins that owe nothing make room at once. */
	fixture_advance(&fx, 3603 * SEC);
	for (int f = 0; f < 2; f++)
		story_expect(&fx, story_neighbours[f][0], RL_PASS_LIMIT, &any);
	crowd_close(&crowd);
	fixture_close(&fx);
}

static void write_locks(struct fixture *fx, __u32 value)
{
	for (__u32 i = 0; i < fx->table.regions + RL_GROUP_REGIONS; i++)
		cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_LOCKS], &i, &value, BPF_ANY), 0);
}

/*
 * A new source that doesn't get its region's lock drops, or passes in shadow, and nobody is charged; known
 * ones need none.
 */
Test(full, a_lock_that_is_held)
{
	struct fixture fx = crowd_small(RL_FULL_AGGREGATE);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit limit = fixture_limit(&fx, family->target, "1/h", "3", NULL);
		struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "1/h", "100", NULL);
		struct ledger ledger;

		story_expect(&fx, family->source, RL_PASS_LIMIT, &limit);
		ledger = ledger_open(&fx, family->source, &limit, &device, NULL);
		write_locks(&fx, 1);
		story_expect(&fx, family->other, RL_DROP_CONTENDED, &limit);
		fixture_shadow(&fx, true);
		story_expect(&fx, family->other, RL_SHADOW_CONTENDED, &limit);
		fixture_shadow(&fx, false);
		ledger_same(&ledger);
		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &limit);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
		write_locks(&fx, 0);
		story_repeat(&fx, family->other, 3, RL_PASS_LIMIT, &limit);
		story_expect(&fx, family->other, RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, STORY_DEVICE);
	}
	fixture_close(&fx);
}

/* Open: no bucket of its own holds it, but tenant and device do. */
Test(full, open)
{
	struct fixture fx = crowd_small(RL_FULL_OPEN);
	struct crowd crowd = crowd_open(&fx);

	for (int f = 0; f < 2; f++) {
		const char *source = story_neighbours[f][0];
		struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", "tenant=acme", NULL), tenant,
				device;

		crowd_fill(&crowd, families[f].family);
		story_repeat(&fx, source, 20, RL_PASS_OPEN, &any);
		tenant = fixture_limit(&fx, "tenant:acme", "1/h", "3", NULL);
		story_repeat(&fx, source, 3, RL_PASS_OPEN, &tenant);
		story_expect(&fx, source, RL_DROP_TENANT, &tenant);
		fixture_limit(&fx, "tenant:acme", "1/h", "1000", NULL);
		device = fixture_limit(&fx, STORY_DEVICE, "1/h", "3", NULL);
		story_repeat(&fx, source, 3, RL_PASS_OPEN, &device);
		story_expect(&fx, source, RL_DROP_DEVICE, &device);
		fixture_unlimit(&fx, "any");
		fixture_unlimit(&fx, "tenant:acme");
		fixture_unlimit(&fx, STORY_DEVICE);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* Closed; and another answer from one packet to the next. */
Test(full, closed)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	for (int f = 0; f < 2; f++) {
		const char *source = story_neighbours[f][0];
		__u64 dropped;

		crowd_fill(&crowd, families[f].family);
		dropped = fixture_limit_count(&fx, &any).dropped.packets;
		story_repeat(&fx, source, 3, RL_DROP_FULL, &any);
		cr_assert_eq(fixture_limit_count(&fx, &any).dropped.packets, dropped + 3);
		fixture_when_full(&fx, RL_FULL_OPEN);
		story_expect(&fx, source, RL_PASS_OPEN, &any);
		fixture_when_full(&fx, RL_FULL_AGGREGATE);
		story_repeat(&fx, source, 2, RL_PASS_AGGREGATE, &any);
		story_expect(&fx, source, RL_DROP_AGGREGATE, &any);
		fixture_when_full(&fx, RL_FULL_CLOSED);
		story_expect(&fx, source, RL_DROP_FULL, &any);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* The table is full of one family's sources, and so it is for the other's; which get the room of those that owe nothing. */
Test(full, the_families_share_the_room)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	for (int f = 0; f < 2; f++) {
		struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);
		const char *other = story_neighbours[1 - f][0];
		char text[CROWD_TEXT];
		const char *first =
		    crowd_fresh_text(families[f].family, crowd_fill(&crowd, families[f].family), text);

		story_expect(&fx, story_neighbours[f][0], RL_DROP_FULL, &any);
		story_expect(&fx, other, RL_DROP_FULL, &any);
		story_expect(&fx, first, RL_PASS_LIMIT, &any);
		story_expect(&fx, first, RL_DROP_SOURCE, &any);
		fixture_advance(&fx, 3603 * SEC);
		story_repeat(&fx, other, 2, RL_PASS_LIMIT, &any);
		story_expect(&fx, other, RL_DROP_SOURCE, &any);
		fixture_expect_source(&fx, &any, other, 2, 1, STORY_LEN);
		cr_assert_eq(crowd_taken(&fx), crowd_places(&fx));
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* `new` counts the buckets that were given: a source for which there is no room got none. */
Test(full, no_room_is_no_bucket_given)
{
	static const enum rl_when_full policies[] = {RL_FULL_AGGREGATE, RL_FULL_OPEN, RL_FULL_CLOSED};
	static const enum rl_reason reasons[] = {RL_PASS_AGGREGATE, RL_PASS_OPEN, RL_DROP_FULL};
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	crowd_fill(&crowd, 4);
	for (int f = 0; f < 2; f++) {
		for (int i = 0; i < 3; i++) {
			struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "10", NULL);

			fixture_when_full(&fx, policies[i]);
			story_expect(&fx, story_neighbours[f][0], reasons[i], &any);
			story_counted(&fx, &fresh, 0, 0, 0);
			fixture_unlimit(&fx, "new");
		}
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* Limits with buckets of their own need no room. */
Test(full, explicit_targets_need_no_room)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	fixture_limit(&fx, "any", "1/h", "2", NULL);
	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit host = fixture_limit(&fx, family->host, "1/h", "2", NULL);

		crowd_fill(&crowd, family->family);
		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &host);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &host);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

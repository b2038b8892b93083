// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which places a full table gives away: none that owes anything, all of limits that are gone. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>

#include "../../bpf/rl_gcra.h"
#include "crowd.h"
#include "stories.h"

#define STAMP	  (1ULL << RL_GCRA_STAMP)
#define NEWCOMERS 512

/* A source of its own, that used up its burst. */
#define DEBTOR "203.0.113.9"

static void press(struct crowd *crowd, const struct rl_limit *limit)
{
	for (int i = 0; i < 4; i++)
		crowd_run(crowd, 4, &(struct crowd_plan){.packets = (__u32)crowd_places(crowd->fx)}, limit);
}

/* What is owed in bytes is kept through a time in which the limit has none. */
Test(given, not_while_it_owes_in_a_unit_that_is_off)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	const struct rl_frame_spec frame = {.src = DEBTOR, .len = 1000};
	struct rl_limit limit;

	fixture_limit(&fx, "any", "8kbit", "100kb", NULL); /* one frame a second */
	cr_assert_eq(fixture_flood(&fx, &frame, 300), 100);
	limit = fixture_limit(&fx, "any", "100pps", "10", NULL);
	fixture_advance(&fx, 13 * STAMP);
	crowd_fill(&crowd, 4);
	press(&crowd, &limit);
	fixture_limit(&fx, "any", "8kbit", "100kb", NULL);
	fixture_advance(&fx, 13 * STAMP);
	cr_assert_leq(fixture_flood(&fx, &frame, 300), 26 * STAMP / SEC + 1);
	crowd_close(&crowd);
	fixture_close(&fx);
}

static void hold_while(const char *action)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	const struct rl_frame_spec frame = {.src = DEBTOR};
	struct rl_limit any = fixture_limit(&fx, "any", "100pps", "10", NULL);

	fixture_limit(&fx, "203.0.113.0/24", "1/h", "100", NULL);
	cr_assert_eq(fixture_flood(&fx, &frame, 300), 100);
	fixture_limit(&fx, "203.0.113.0/24", action, NULL);
	fixture_advance(&fx, 13 * STAMP);
	crowd_fill(&crowd, 4);
	press(&crowd, &any);
	fixture_limit(&fx, "203.0.113.0/24", "1/h", "100", NULL);
	fixture_advance(&fx, 13 * STAMP);
	cr_assert_leq(fixture_flood(&fx, &frame, 300), 1, "after %s", action);
	crowd_close(&crowd);
	fixture_close(&fx);
}

Test(given, not_while_its_prefix_is_allowed)
{
	hold_while("allow");
}

Test(given, not_while_its_prefix_is_denied)
{
	hold_while("deny");
}

/* A table that was filled under limits that are gone: nearly every newcomer finds room. */
static void expect_room(struct fixture *fx, struct crowd *crowd, const struct rl_limit *limit)
{
	struct crowd_result got = crowd_run(crowd, 4, &(struct crowd_plan){.packets = NEWCOMERS}, limit);

	cr_assert_gt(got.passed, NEWCOMERS * 3 / 5, "%llu of %d found room", got.passed, NEWCOMERS);
	crowd_close(crowd);
	fixture_close(fx);
}

Test(given, when_its_class_limit_is_gone)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	fixture_limit(&fx, "any", "1/h", "2", "class=udp", NULL);
	crowd_fill(&crowd, 4);
	fixture_unclass(&fx, "any", "udp");
	fixture_advance(&fx, 4 * STAMP);
	expect_room(&fx, &crowd, &any);
}

Test(given, when_its_prefix_is_gone)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	fixture_limit(&fx, "any", "1/h", "2", "class=udp", NULL);
	crowd_fill(&crowd, 4);
	fixture_unlimit(&fx, "any");
	any = fixture_limit(&fx, "any", "1/h", "2", NULL);
	expect_room(&fx, &crowd, &any);
}

/* Ids that give one slot, and whose halves are each other's: the older limit's places aren't the newer one's. */
Test(given, when_a_later_limit_has_its_slot)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){
	    .max_sources = CROWD_SMALL, .when_full = RL_FULL_CLOSED, .all_limits = true});
	struct crowd crowd = crowd_open(&fx);
	const struct rl_claim none = {};
	struct rl_limit limit;
	struct rl_error err;
	struct rl_meta meta;

	/* Generations that the later limit doesn't have. */
	fixture_limit(&fx, "any", "1/h", "2", NULL);
	fixture_limit(&fx, "any", "1/h", "3", NULL);
	limit = fixture_limit(&fx, "any", "1/h", "4", NULL);
	crowd_fill(&crowd, 4);
	fixture_unlimit(&fx, "any");
	cr_assert_eq(bpf_map_update_elem(fx.state.map[RL_MAP_SLOTS], &limit.slot, &none, BPF_ANY), 0);
	cr_assert_eq(rl_state_meta(&fx.state, &meta, &err), 0);
	meta.next_limit_id = limit.id << 16;
	cr_assert_eq(rl_state_meta_write(&fx.state, &meta, &err), 0);
	meta.next_limit_id = limit.slot;
	limit = fixture_limit(&fx, "any", "1/h", "2", NULL);
	cr_assert_eq(limit.slot, meta.next_limit_id, "another slot: the test doesn't test what it says");
	fixture_advance(&fx, 10 * 3600 * SEC);
	expect_room(&fx, &crowd, &limit);
}

/* A source's places under limits that are gone stand in its own two rows, and are in the way of nobody else. */
Test(given, to_its_own_source_at_once)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < 40; i++) {
		struct rl_limit limit = fixture_limit(&fx, "10.0.0.0/8", "1/h", "5", NULL);

		fixture_expect(&fx, &(struct rl_frame_spec){.src = "10.0.0.1"}, RL_PASS_LIMIT, &limit);
		fixture_advance(&fx, 40 * MS);
		fixture_unlimit(&fx, "10.0.0.0/8");
	}
	fixture_close(&fx);
}

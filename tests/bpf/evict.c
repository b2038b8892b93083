// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * evict.c - who makes room for whom: nobody's debt is forgotten, and nobody who was talking is pushed out, however many come.
 */
#include <stdio.h>
#include <string.h>

#include "../../bpf/rl_gcra.h"
#include "crowd.h"
#include "stories.h"

#define GRACE 10 /* stamps, as rl_table.h has it: a change there must be meant */

/*
 * Let the clock stand at the beginning of a stamp, so that stamps can be counted from there. Returns which
 * one.
 */
static __u64 start_of_stamp(struct fixture *fx)
{
	__u64 stamp = (fx->now >> RL_GCRA_STAMP) + 1;

	fixture_clock(fx, stamp << RL_GCRA_STAMP);
	return stamp;
}

/*
 * A full bucket is kept for the grace time, to the nanosecond, and then given away; its next owner starts
 * full, and so does the one that it was taken from when that comes back.
 */
Test(evict, a_place_is_given_away_after_the_grace_time)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "100pps", "10", NULL);

	for (int f = 0; f < 2; f++) {
		__u8 family = families[f].family;
		const char *source = story_neighbours[f][0];
		__u64 stamp = start_of_stamp(&fx);
		__u32 first = crowd_fill(&crowd, family), gone = 0;
		char text[CROWD_TEXT];

		story_expect(&fx, source, RL_DROP_FULL, &any);
		fixture_clock(&fx, ((stamp + GRACE) << RL_GCRA_STAMP) - 1);
		story_expect(&fx, source, RL_DROP_FULL, &any);
		fixture_advance(&fx, 1);
		story_repeat(&fx, source, 10, RL_PASS_LIMIT, &any);
		story_expect(&fx, source, RL_DROP_SOURCE, &any);
		fixture_expect_source(&fx, &any, source, 10, 1, STORY_LEN);
		cr_assert_eq(crowd_taken(&fx), crowd_places(&fx));
		/* Of the first hundred, which all had places, one at most is gone. */
		for (__u32 i = 0; i < 100; i++) {
			const char *was = crowd_fresh_text(family, first + i, text);

			gone += !story_has_bucket(&fx, &any, was);
			if (story_has_bucket(&fx, &any, was))
				continue;
			story_repeat(&fx, was, 10, RL_PASS_LIMIT, &any);
			story_expect(&fx, was, RL_DROP_SOURCE, &any);
		}
		cr_assert_leq(gone, 1, "%u are gone", gone);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* A bucket in debt is kept until the debt is paid, however long its source is idle. */
Test(evict, a_debt_is_never_given_away)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	for (int f = 0; f < 2; f++) {
		const char *source = story_neighbours[f][0];
		__u64 paid, stamp = start_of_stamp(&fx);

		crowd_fill(&crowd, families[f].family);
		paid = (fx.now + 3600 * SEC) >> RL_GCRA_STAMP;
		story_expect(&fx, source, RL_DROP_FULL, &any);
		for (int i = 1; i < 100; i++) {
			fixture_clock(&fx, (stamp + (paid - stamp) * i / 100) << RL_GCRA_STAMP);
			story_expect(&fx, source, RL_DROP_FULL, &any);
		}
		fixture_clock(&fx, (paid << RL_GCRA_STAMP) - 1);
		story_expect(&fx, source, RL_DROP_FULL, &any);
		/* The stamp of a debt's end is rounded up by at most two. */
		fixture_clock(&fx, (paid + 2) << RL_GCRA_STAMP);
		story_repeat(&fx, source, 2, RL_PASS_LIMIT, &any);
		story_expect(&fx, source, RL_DROP_SOURCE, &any);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/*
 * After a change to a slower rate a debt takes longer than was reckoned when it was made. It is kept for as long as it now
 * takes; and a bucket that was full by the change is given away as before.
 */
Test(evict, a_debt_is_never_given_away_after_a_change)
{
	struct fixture fx = crowd_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	for (int f = 0; f < 2; f++) {
		const char *known = families[f].family == 4 ? "203.0.113.9" : "2001:db8:1:9::1";
		struct rl_limit any = fixture_limit(&fx, "any", "1kpps", "1000", NULL);
		__u64 left, gone;

		start_of_stamp(&fx);
		story_repeat(&fx, known, 1000, RL_PASS_LIMIT, &any);	/* it owes 1000 tokens: a second */
		any = fixture_limit(&fx, "any", "10pps", "1000", NULL); /* or 100 seconds */
		crowd_fill(&crowd, families[f].family);
		fixture_advance(&fx, (GRACE + 4) * (1ULL << RL_GCRA_STAMP));
		/* Who was full gives its place away. */
		gone = crowd_run(&crowd, families[f].family,
				 &(struct crowd_plan){.packets = 2 * (__u32)crowd_places(&fx)}, &any)
			   .passed;
		cr_assert_gt(gone, crowd_places(&fx) / 2, "%llu new ones were given a place", gone);
		/* And those by now: there is room for one that lost its place. */
		fixture_advance(&fx, (GRACE + 4) * (1ULL << RL_GCRA_STAMP));
		left = 2 * (GRACE + 4) * (1ULL << RL_GCRA_STAMP) / (100 * MS) + 1;
		cr_assert_leq(fixture_flood(&fx, &(struct rl_frame_spec){.src = known}, 1500), left,
			      "a debt was forgiven");
		fixture_unlimit(&fx, "any");
		fixture_advance(&fx, 3600 * SEC);
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

#define WATCHED 512 /* of the first that came, which nearly all have places */

/*
 * CASES.md 16: whoever owes something stays in a table that sixteen times its size runs against for an hour
 * less a bit.
 */
Test(evict, none_that_owes_is_evicted)
{
	static struct rl_source before[WATCHED];
	static bool there[WATCHED];
	struct fixture fx = crowd_small(RL_FULL_AGGREGATE);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "1", NULL), out;

	for (int f = 0; f < 2; f++) {
		__u8 family = families[f].family;
		struct crowd_plan plan = {.packets = (__u32)(16 * crowd_places(&fx))};
		__u32 first = crowd_fill(&crowd, family), count = 0;
		char text[CROWD_TEXT];
		struct rl_source now;

		for (__u32 i = 0; i < WATCHED; i++) {
			there[i] =
			    fixture_source(&fx, &any, crowd_fresh_text(family, first + i, text), &before[i]);
			count += there[i];
		}
		cr_assert_gt(count, 200);
		plan.step = 3500 * SEC / plan.packets;
		crowd_run(&crowd, family, &plan, &any);
		out = fixture_now(&fx, "any");
		for (__u32 i = 0; i < WATCHED; i++) {
			const char *source = crowd_fresh_text(family, first + i, text);

			if (!there[i])
				continue;
			cr_assert(fixture_source(&fx, &out, source, &now), "%s was evicted", source);
			cr_assert_eq(memcmp(&now, &before[i], sizeof(now)), 0, "%s was touched", source);
			story_expect(&fx, source, RL_DROP_SOURCE, &any);
		}
		crowd_empty(&fx);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* ---- floods ---- */

#define FLOOD_TABLE 4096
#define FLOOD_KNOWN 16

struct flood_case {
	const char *name;
	enum rl_when_full when_full;
	const char *rate, *burst; /* of `new` */
	__u64 per_second, tokens; /* the same as numbers */
	__u64 step;
	__u32 every;
};

/* Slower than the grace time, so that places change hands; or faster, so that the table is full. */
static const struct flood_case floods[] = {
    {"aggregate", RL_FULL_AGGREGATE, "1kpps", "100", 1000, 100, 100 * US, 100},
    {"open", RL_FULL_OPEN, "1kpps", "100", 1000, 100, 100 * US, 100},
    {"closed", RL_FULL_CLOSED, "1kpps", "100", 1000, 100, 100 * US, 100},
    {"aggregate, slow", RL_FULL_AGGREGATE, "200pps", "100", 200, 100, MS, 10},
    {"closed, full and slow", RL_FULL_CLOSED, "900pps", "100", 900, 100, 500 * US, 20},
};

/* Sixteen times the table's size, none of them twice, while 16 sources talk that had talked before. */
static void flood(const struct flood_case *at, __u8 family)
{
	struct fixture fx = fixture_open_with(
	    &(struct fixture_options){.max_sources = FLOOD_TABLE, .when_full = at->when_full});
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "100pps", "10", NULL);
	struct rl_limit fresh = fixture_limit(&fx, "new", at->rate, at->burst, NULL);
	struct crowd_plan talk = {
	    .packets = 4 * FLOOD_KNOWN, .step = 10 * MS, .every = 1, .known = FLOOD_KNOWN};
	struct crowd_plan all = {.step = at->step, .every = at->every, .known = FLOOD_KNOWN};
	struct crowd_result result;
	__u64 granted, taken;

	result = crowd_run(&crowd, family, &talk, &any);
	cr_assert_eq(result.known_passed, result.known);
	taken = fixture_limit_count(&fx, &fresh).passed.packets;
	cr_assert_eq(taken, FLOOD_KNOWN);
	all.packets = (__u32)(16 * crowd_places(&fx) * at->every / (at->every - 1) + 1);
	result = crowd_run(&crowd, family, &all, &any);
	cr_assert_geq(crowd.fresh, 16 * crowd_places(&fx));
	granted = at->tokens + at->per_second * (at->step * all.packets) / SEC + 1;
	printf(
	    "%s, IPv%u: of %llu new sources' packets %llu passed, %llu granted; of %llu of known sources %llu\n",
	    at->name, family, result.passed + result.dropped, result.passed, granted, result.known,
	    result.known_passed);
	cr_assert_leq(result.passed * 100, granted * 105, "%s, IPv%u: %llu passed, %llu were granted",
		      at->name, family, result.passed, granted);
	cr_assert_geq(result.known_passed * 100, result.known * 99, "%s, IPv%u: %llu of %llu passed",
		      at->name, family, result.known_passed, result.known);
	cr_assert_leq(fixture_limit_count(&fx, &fresh).passed.packets - taken, granted);
	cr_assert_gt(story_reason(&fx, RL_DROP_NEW), 0);
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* CASES.md 14. */
Test(evict, a_flood_gets_what_new_grants, .timeout = 60)
{
	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++)
		for (int f = 0; f < 2; f++)
			flood(&floods[i], families[f].family);
}

/*
 * Without `new`: no source of the flood reaches its own limit, but tenant and device hold, and those above it
 * keep theirs.
 */
Test(evict, a_spoofed_flood_is_held_by_tenant_and_device)
{
	struct fixture fx = fixture_open_with(
	    &(struct fixture_options){.max_sources = FLOOD_TABLE, .when_full = RL_FULL_OPEN});
	struct crowd crowd = crowd_open(&fx);
	static const char *const trusted[2] = {"203.0.113.0/24", "2001:db8:cb00::/48"};
	static const char *const target[2] = {"tenant:acme", STORY_DEVICE};

	for (int i = 0; i < 2; i++) {
		for (int f = 0; f < 2; f++) {
			struct crowd_plan plan = {
			    .packets = 100000, .step = 100 * US, .every = 100, .known = FLOOD_KNOWN};
			struct crowd_result result;
			struct rl_limit known;
			__u64 total;

			fixture_limit(&fx, "any", "100pps", "10", "tenant=acme", NULL);
			known = fixture_limit(&fx, trusted[f], "100pps", "10", "priority=high", NULL);
			fixture_limit(&fx, target[i], "1kpps", "100", "reserve=high=20%", NULL);
			result = crowd_run(&crowd, families[f].family, &plan, &known);
			total = result.passed + result.known_passed;
			cr_assert_eq(result.known_passed, result.known);
			cr_assert_leq(total, 100 + 10000, "%s: %llu passed", target[i], total);
			cr_assert_geq(total, 9990, "%s: %llu passed", target[i], total);
			fixture_unlimit(&fx, trusted[f]);
			fixture_unlimit(&fx, "any");
			fixture_unlimit(&fx, target[i]);
		}
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/*
 * Eight sources talk, each once in 400 ms, while a flood has more than all the places; each of them keeps its
 * own.
 */
static void talk_on(struct fixture *fx, struct crowd *crowd, __u8 family, const char *what)
{
	struct crowd_plan talk = {.packets = 8, .step = SEC, .every = 1, .known = 8};
	struct crowd_plan all = {.packets = 20000, .step = 5 * MS, .every = 10, .known = 8};
	struct rl_limit any = fixture_now(fx, "any");
	struct crowd_result result;

	crowd_run(crowd, family, &talk, &any);
	crowd_fill(crowd, family);
	fixture_limit(fx, "new", "50pps", "10", NULL);
	result = crowd_run(crowd, family, &all, &any);
	cr_assert_geq(result.known_passed * 100, result.known * 99, "%s, IPv%u: %llu of %llu passed", what,
		      family, result.known_passed, result.known);
	fixture_unlimit(fx, "new");
}

/* Under a limit without a rate of its own, such as a class makes. */
Test(evict, talking_keeps_a_place_without_a_rate)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = crowd_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "class=syn", "1pps", NULL);
		talk_on(&fx, &crowd, families[f].family, "without a rate");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

/* While another level in shadow would drop every packet, so that none is charged. */
Test(evict, talking_keeps_a_place_uncharged)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = crowd_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "100pps", NULL);
		fixture_limit(&fx, STORY_DEVICE, "1/h", "1", "shadow", NULL);
		talk_on(&fx, &crowd, families[f].family, "uncharged");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

/* With a rate, and charged. */
Test(evict, talking_keeps_a_place)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = crowd_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "100pps", NULL);
		talk_on(&fx, &crowd, families[f].family, "charged");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

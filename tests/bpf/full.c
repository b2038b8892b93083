// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * full.c - more sources than there is room for: how many new ones are given a bucket, what becomes of the
 * rest, and that nobody's debt is forgotten and nobody who was talking is pushed out.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "../../bpf/rl_gcra.h"
#include "crowd.h"
#include "stories.h"

#define GRACE 10 /* stamps, as rl_table.h has it: a change there must be meant */

static struct fixture open_small(enum rl_when_full when_full)
{
	return fixture_open_with(
	    &(struct fixture_options){.max_sources = CROWD_SMALL, .when_full = when_full});
}

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

/* ---- new ---- */

static bool has_bucket(const struct fixture *fx, const struct rl_limit *limit, const char *source)
{
	struct rl_source found;

	return fixture_source(fx, limit, source, &found);
}

/* As many sources as `new` grants get a bucket, and no more; those that have one need nobody's leave. */
StoreTest(full, new_grants_exactly)
{
	struct fixture fx = story_open(*store);
	char text[CROWD_TEXT];

	for (int f = 0; f < 2; f++) {
		__u8 family = families[f].family;
		struct rl_limit any = fixture_limit(&fx, "any", "1mpps", NULL);
		struct rl_limit fresh = fixture_limit(&fx, "new", "10pps", "20", NULL);

		for (__u32 i = 0; i < 40; i++) {
			const char *source = crowd_fresh_text(family, i, text);

			story_expect(&fx, source, i < 20 ? RL_PASS_LIMIT : RL_DROP_NEW,
				     i < 20 ? &any : &fresh);
			cr_assert_eq(has_bucket(&fx, &any, source), i < 20, "%s", source);
		}
		for (__u32 i = 0; i < 20; i++)
			story_repeat(&fx, crowd_fresh_text(family, i, text), 3, RL_PASS_LIMIT, &any);
		fixture_advance(&fx, 100 * MS - 1);
		story_expect(&fx, crowd_fresh_text(family, 20, text), RL_DROP_NEW, &fresh);
		fixture_advance(&fx, 1);
		story_repeat(&fx, crowd_fresh_text(family, 21, text), 3, RL_PASS_LIMIT, &any);
		story_expect(&fx, crowd_fresh_text(family, 20, text), RL_DROP_NEW, &fresh);
		story_counted(&fx, &fresh, 21, 22, 0);
		story_counted(&fx, &any, 20 + 60 + 3, 0, 0);
		fixture_unlimit(&fx, "new");
		story_repeat(&fx, crowd_fresh_text(family, 20, text), 2, RL_PASS_LIMIT, &any);
		fixture_unlimit(&fx, "any");
	}
	fixture_close(&fx);
}

/* Both families ask the same `new`. */
StoreTest(full, new_is_one_for_both_families)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any = fixture_limit(&fx, "any", "1mpps", NULL);
	struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "4", NULL);

	story_expect(&fx, "10.0.0.1", RL_PASS_LIMIT, &any);
	story_expect(&fx, "2001:db8:1::", RL_PASS_LIMIT, &any);
	story_expect(&fx, "10.0.0.2", RL_PASS_LIMIT, &any);
	story_expect(&fx, "2001:db8:2::", RL_PASS_LIMIT, &any);
	story_expect(&fx, "10.0.0.3", RL_DROP_NEW, &fresh);
	story_expect(&fx, "2001:db8:3::", RL_DROP_NEW, &fresh);
	fixture_close(&fx);
}

/* A known source's class buckets are free; a new source's don't let it in. */
StoreTest(full, classes_of_a_known_source_are_free)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec syn = {.src = family->source, .proto = 6, .len = STORY_LEN};
		struct rl_limit syns = fixture_limit(&fx, family->target, "class=syn", "1/h", "3", NULL);
		struct rl_limit tcp = fixture_limit(&fx, family->target, "class=tcp", "1/h", "100", NULL);
		struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "1", NULL);

		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &tcp); /* both, for the one token of a new source */
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns);
		syn.src = family->other;
		fixture_expect(&fx, &syn, RL_DROP_NEW, &fresh);
		cr_assert_not(has_bucket(&fx, &syns, family->other));
		syn.src = family->source;
		fixture_limit(&fx, family->target, "class=tcp/4001", "1/h", "1", NULL);
		fixture_expect(&fx, &syn, RL_PASS_LIMIT, &syns); /* a class that came later */
		fixture_expect(&fx, &syn, RL_DROP_CLASS, &syns);
		story_counted(&fx, &fresh, 1, 1, 0);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "new");
	}
	fixture_close(&fx);
}

/*
 * Whoever needs no bucket in the table isn't new: explicit targets, the trusted and the denied, those without
 * a limit.
 */
StoreTest(full, who_needs_no_bucket_is_not_new)
{
	struct fixture fx = story_open(*store);
	struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "1", NULL);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit host = fixture_limit(&fx, family->host, "1mpps", NULL), trust;

		story_repeat(&fx, family->source, 3, RL_PASS_LIMIT, &host);
		story_repeat(&fx, family->outside, 3, RL_PASS_NO_LIMIT, NULL);
		trust = fixture_limit(&fx, family->target, "allow", NULL);
		story_repeat(&fx, family->other, 3, RL_PASS_ALLOWED, &trust);
		trust = fixture_limit(&fx, family->target, "deny", NULL);
		story_repeat(&fx, family->other, 3, RL_DROP_DENIED, &trust);
		trust = fixture_limit(&fx, family->target, "1mpps", "shared", NULL);
		story_repeat(&fx, family->other, 3, RL_PASS_LIMIT, &trust);
	}
	story_counted(&fx, &fresh, 0, 0, 0);
	fixture_close(&fx);
}

/* A source whose packet drops further on has its bucket all the same, and asks only once. */
StoreTest(full, a_source_asks_once)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit any = fixture_limit(&fx, "any", "1mpps", NULL);
		struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "10pps", "1", NULL);
		struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "2", NULL);

		story_expect(&fx, family->source, RL_PASS_LIMIT, &any);
		story_repeat(&fx, family->other, 5, RL_DROP_DEVICE, &device);
		story_expect(&fx, family->outside, RL_DROP_NEW, &fresh);
		fixture_advance(&fx, 100 * MS);
		story_expect(&fx, family->other, RL_PASS_LIMIT, &any);
		story_counted(&fx, &fresh, 2, 1, 0);
		fixture_unlimit(&fx, "any");
		fixture_unlimit(&fx, STORY_DEVICE);
		fixture_unlimit(&fx, "new");
	}
	fixture_close(&fx);
}

/* ---- no room ---- */

/* Neighbours: two sources of one /24 or /48, and one of the next. */
static const char *const neighbours[2][3] = {
    {"198.51.100.1", "198.51.100.255", "198.51.101.1"},
    {"2001:db9:1:1::", "2001:db9:1:ffff::", "2001:db9:2:1::"},
};

/* CASES.md 15: a neighbourhood without a place is held together to what one source may have. */
Test(full, aggregate)
{
	struct fixture fx = open_small(RL_FULL_AGGREGATE);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "10pps", "3", "tenant=acme", NULL);
	struct rl_limit tenant = fixture_limit(&fx, "tenant:acme", "10mpps", NULL);
	struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "10mpps", NULL);

	for (int f = 0; f < 2; f++) {
		const char *const *near = neighbours[f];
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
		cr_assert_not(has_bucket(&fx, &any, near[0]));
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
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* The neighbourhood's bucket has the limit's two units, and its packets their cost. */
Test(full, aggregate_in_both_units)
{
	struct fixture fx = open_small(RL_FULL_AGGREGATE);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "10", "1kbit", "3kb", "cost=syn=4", NULL);

	for (int f = 0; f < 2; f++) {
		struct rl_frame_spec syn = {.src = neighbours[f][0], .proto = 6, .len = STORY_LEN};
		struct rl_frame_spec large = {.src = neighbours[f][2], .len = 1000};

		crowd_fill(&crowd, families[f].family);
		fixture_expect(&fx, &syn, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &syn, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &syn, RL_DROP_AGGREGATE, &any);
		for (int i = 0; i < 3; i++)
			fixture_expect(&fx, &large, RL_PASS_AGGREGATE, &any);
		fixture_expect(&fx, &large, RL_DROP_AGGREGATE, &any);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* Sources that are larger than a neighbourhood: what is one source to its limit is one here too. */
Test(full, aggregate_of_a_source_that_is_larger)
{
	static const char *const target[2] = {"198.0.0.0/8", "2001:db9::/32"};
	static const char *const per[2] = {"per=/16", "per=/40"};
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	fixture_limit(&fx, "any", "1/h", "2", NULL);
	crowd_fill(&crowd, 4);
	crowd_fill(&crowd, 6);
	fixture_when_full(&fx, RL_FULL_AGGREGATE);
	for (int f = 0; f < 2; f++) {
		struct rl_limit limit = fixture_limit(&fx, target[f], "1/h", "2", per[f], NULL);

		story_expect(&fx, neighbours[f][0], RL_PASS_AGGREGATE, &limit);
		story_expect(&fx, neighbours[f][2], RL_PASS_AGGREGATE, &limit);
		story_expect(&fx, neighbours[f][0], RL_DROP_AGGREGATE, &limit);
		story_expect(&fx, neighbours[f][2], RL_DROP_AGGREGATE, &limit);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* No room for the neighbourhood either: dropped, and in shadow not. */
Test(full, no_room_for_neighbourhoods)
{
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct crowd_plan plan = {.packets = 10 * RL_GROUP_REGIONS * RL_REGION_ROWS * RL_ROW, .stride = 256};
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	crowd_fill(&crowd, 4);
	crowd_fill(&crowd, 6);
	fixture_when_full(&fx, RL_FULL_AGGREGATE);
	crowd_run(&crowd, 4, &plan, &any);
	for (int f = 0; f < 2; f++) {
		story_repeat(&fx, neighbours[f][0], 3, RL_DROP_FULL, &any);
		fixture_shadow(&fx, true);
		story_expect(&fx, neighbours[f][0], RL_SHADOW_FULL, &any);
		fixture_shadow(&fx, false);
	}
	/* The stand-ins that owe nothing make room at once. */
	fixture_advance(&fx, 3603 * SEC);
	for (int f = 0; f < 2; f++)
		story_expect(&fx, neighbours[f][0], RL_PASS_LIMIT, &any);
	crowd_close(&crowd);
	fixture_close(&fx);
}

static void write_locks(struct fixture *fx, __u32 value)
{
	for (__u32 i = 0; i < 2 * fx->table.regions + RL_GROUP_REGIONS; i++)
		cr_assert_eq(bpf_map_update_elem(fx->state.map[RL_MAP_LOCKS], &i, &value, BPF_ANY), 0);
}

/*
 * A new source that doesn't get its region's lock drops, or passes in shadow, and nobody is charged; known
 * ones need none.
 */
Test(full, a_lock_that_is_held)
{
	struct fixture fx = open_small(RL_FULL_AGGREGATE);

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
	struct fixture fx = open_small(RL_FULL_OPEN);
	struct crowd crowd = crowd_open(&fx);

	for (int f = 0; f < 2; f++) {
		const char *source = neighbours[f][0];
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
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* Closed; and another answer from one packet to the next. */
Test(full, closed)
{
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	for (int f = 0; f < 2; f++) {
		const char *source = neighbours[f][0];
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
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* One family's table is full, the other's isn't. */
Test(full, the_families_are_apart)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = open_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);
		struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

		crowd_fill(&crowd, families[f].family);
		story_expect(&fx, neighbours[f][0], RL_DROP_FULL, &any);
		story_repeat(&fx, neighbours[1 - f][0], 2, RL_PASS_LIMIT, &any);
		story_expect(&fx, neighbours[1 - f][0], RL_DROP_SOURCE, &any);
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

/* `new` counts the buckets that were given: a source for which there is no room got none. */
Test(full, no_room_is_no_bucket_given)
{
	static const enum rl_when_full policies[] = {RL_FULL_AGGREGATE, RL_FULL_OPEN, RL_FULL_CLOSED};
	static const enum rl_reason reasons[] = {RL_PASS_AGGREGATE, RL_PASS_OPEN, RL_DROP_FULL};
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	crowd_fill(&crowd, 4);
	crowd_fill(&crowd, 6);
	for (int f = 0; f < 2; f++) {
		for (int i = 0; i < 3; i++) {
			struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "10", NULL);

			fixture_when_full(&fx, policies[i]);
			story_expect(&fx, neighbours[f][0], reasons[i], &any);
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
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);

	fixture_limit(&fx, "any", "1/h", "2", NULL);
	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit host = fixture_limit(&fx, family->host, "1/h", "2", NULL);

		crowd_fill(&crowd, family->family);
		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &host);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &host);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* ---- who makes room ---- */

/*
 * A full bucket is kept for the grace time, to the nanosecond, and then given away; its next owner starts
 * full, and so does the one that it was taken from when that comes back.
 */
Test(full, a_place_is_given_away_after_the_grace_time)
{
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "100pps", "10", NULL);

	for (int f = 0; f < 2; f++) {
		__u8 family = families[f].family;
		const char *source = neighbours[f][0];
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
		cr_assert_eq(crowd_taken(&fx, family), crowd_places(&fx));
		/* Of the first hundred, which all had places, one at most is gone. */
		for (__u32 i = 0; i < 100; i++) {
			const char *was = crowd_fresh_text(family, first + i, text);

			gone += !has_bucket(&fx, &any, was);
			if (has_bucket(&fx, &any, was))
				continue;
			story_repeat(&fx, was, 10, RL_PASS_LIMIT, &any);
			story_expect(&fx, was, RL_DROP_SOURCE, &any);
		}
		cr_assert_leq(gone, 1, "%u are gone", gone);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* A bucket in debt is kept until the debt is paid, however long its source is idle. */
Test(full, a_debt_is_never_given_away)
{
	struct fixture fx = open_small(RL_FULL_CLOSED);
	struct crowd crowd = crowd_open(&fx);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	for (int f = 0; f < 2; f++) {
		const char *source = neighbours[f][0];
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
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/*
 * After a change to a slower rate a debt takes longer than was reckoned when it was made. It is kept for as long as it now
 * takes; and a bucket that was full by the change is given away as before.
 */
Test(full, a_debt_is_never_given_away_after_a_change)
{
	struct fixture fx = open_small(RL_FULL_CLOSED);
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
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

#define WATCHED 512 /* of the first that came, which nearly all have places */

/*
 * CASES.md 16: whoever owes something stays in a table that sixteen times its size runs against for an hour
 * less a bit.
 */
Test(full, none_that_owes_is_evicted)
{
	static struct rl_source before[WATCHED];
	static bool there[WATCHED];
	struct fixture fx = open_small(RL_FULL_AGGREGATE);
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
Test(full, a_flood_gets_what_new_grants, .timeout = 60)
{
	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++)
		for (int f = 0; f < 2; f++)
			flood(&floods[i], families[f].family);
}

/*
 * Without `new`: no source of the flood reaches its own limit, but tenant and device hold, and those above it
 * keep theirs.
 */
Test(full, a_spoofed_flood_is_held_by_tenant_and_device)
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
Test(full, talking_keeps_a_place_without_a_rate)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = open_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "class=syn", "1pps", NULL);
		talk_on(&fx, &crowd, families[f].family, "without a rate");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

/* While another level in shadow would drop every packet, so that none is charged. */
Test(full, talking_keeps_a_place_uncharged)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = open_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "100pps", NULL);
		fixture_limit(&fx, STORY_DEVICE, "1/h", "1", "shadow", NULL);
		talk_on(&fx, &crowd, families[f].family, "uncharged");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

/* With a rate, and charged. */
Test(full, talking_keeps_a_place)
{
	for (int f = 0; f < 2; f++) {
		struct fixture fx = open_small(RL_FULL_CLOSED);
		struct crowd crowd = crowd_open(&fx);

		fixture_limit(&fx, "any", "100pps", NULL);
		talk_on(&fx, &crowd, families[f].family, "charged");
		crowd_close(&crowd);
		fixture_close(&fx);
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * priority.c - the last part of a tenant's or a device's bucket is kept for those above: low stops first,
 * then normal, and high has all of it.
 */
#include <stdio.h>
#include <string.h>

#include "stories.h"

/* One source of each priority, under prefixes of their own. */
struct ranks {
	const char *target[RL_PRIORITIES];
	const char *source[RL_PRIORITIES];
};

static const struct ranks ranks[2] = {
    {{"10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"}, {"10.0.0.7", "10.1.0.7", "10.2.0.7"}},
    {{"2001:db8::/48", "2001:db8:1::/48", "2001:db8:2::/48"},
     {"2001:db8:0:7::", "2001:db8:1:7::", "2001:db8:2:7::"}},
};

static const char *const words[RL_PRIORITIES] = {"priority=high", "priority=normal", "priority=low"};

static void ranks_set(struct fixture *fx, const struct ranks *rank, const char *tenant)
{
	for (int i = 0; i < RL_PRIORITIES; i++)
		fixture_limit(fx, rank->target[i], "10mpps", words[i], tenant, NULL);
}

static void ranks_clear(struct fixture *fx, const struct ranks *rank)
{
	for (int i = 0; i < RL_PRIORITIES; i++)
		fixture_unlimit(fx, rank->target[i]);
}

/* Whose bucket is shared, and what it says when it refuses. */
struct shared_case {
	const char *target;
	const char *tenant;
	enum rl_reason reason;
};

static const struct shared_case shared[] = {
    {"tenant:acme", "tenant=acme", RL_DROP_TENANT},
    {STORY_DEVICE, NULL, RL_DROP_DEVICE},
};

static __u64 flood(struct fixture *fx, const char *source, __u32 n)
{
	struct rl_frame_spec spec = {.src = source, .len = 100};

	return fixture_flood(fx, &spec, n);
}

/*
 * At the limit of each priority and one past it: 25 % are kept from low, 20 % from normal, nothing from high.
 */
static void stops(struct fixture *fx, const struct ranks *rank, const struct shared_case *at,
		  const char *rate, const char *burst)
{
	struct rl_limit limit =
	    fixture_limit(fx, at->target, rate, burst, "reserve=high=20%,normal=5%", NULL);
	const char *const *source = rank->source;

	cr_assert_eq(flood(fx, source[RL_PRIORITY_LOW], 749), 749);
	story_expect(fx, source[RL_PRIORITY_LOW], RL_PASS_LIMIT, &limit);
	story_expect(fx, source[RL_PRIORITY_LOW], at->reason, &limit);
	cr_assert_eq(flood(fx, source[RL_PRIORITY_NORMAL], 49), 49);
	story_expect(fx, source[RL_PRIORITY_NORMAL], RL_PASS_LIMIT, &limit);
	story_expect(fx, source[RL_PRIORITY_NORMAL], at->reason, &limit);
	cr_assert_eq(flood(fx, source[RL_PRIORITY_HIGH], 199), 199);
	story_expect(fx, source[RL_PRIORITY_HIGH], RL_PASS_LIMIT, &limit);
	for (int i = 0; i < RL_PRIORITIES; i++)
		story_expect(fx, source[i], at->reason, &limit);
}

StoreTest(priority, low_stops_first_then_normal)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		for (int i = 0; i < 2; i++) {
			fx.what = shared[i].target;
			ranks_set(&fx, &ranks[f], shared[i].tenant);
			stops(&fx, &ranks[f], &shared[i], "1/h", "1000");
			fx.what = NULL;
			ranks_clear(&fx, &ranks[f]);
			fixture_unlimit(&fx, shared[i].target);
		}
	}
	fixture_close(&fx);
}

/* Likewise in bytes, frame by frame. */
Test(priority, reserves_of_bytes)
{
	struct fixture fx = fixture_open();

	for (int f = 0; f < 2; f++) {
		for (int i = 0; i < 2; i++) {
			const char *const *source = ranks[f].source;

			fx.what = shared[i].target;
			ranks_set(&fx, &ranks[f], shared[i].tenant);
			fixture_limit(&fx, shared[i].target, "1kbit", "100kb", "reserve=high=20%,normal=5%",
				      NULL);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_LOW], 1000), 750);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_NORMAL], 1000), 50);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_LOW], 10), 0);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_HIGH], 1000), 200);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_NORMAL], 10), 0);
			fx.what = NULL;
			ranks_clear(&fx, &ranks[f]);
			fixture_unlimit(&fx, shared[i].target);
		}
	}
	fixture_close(&fx);
}

/* One reserve alone; and a bucket without one has no priorities. */
Test(priority, one_reserve_or_none)
{
	struct fixture fx = fixture_open();
	static const char *const reserve[] = {"reserve=high=20%", "reserve=normal=5%", NULL};
	static const __u64 passes[][RL_PRIORITIES] = {{200, 0, 800}, {0, 50, 950}, {0, 0, 1000}};

	ranks_set(&fx, &ranks[0], NULL);
	ranks_set(&fx, &ranks[1], NULL);
	for (int f = 0; f < 2; f++) {
		for (int i = 0; i < 3; i++) {
			const char *const *source = ranks[f].source;

			fixture_limit(&fx, STORY_DEVICE, "1/h", "1000", reserve[i], NULL);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_LOW], 2000), passes[i][RL_PRIORITY_LOW]);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_NORMAL], 300),
				     passes[i][RL_PRIORITY_NORMAL]);
			cr_assert_eq(flood(&fx, source[RL_PRIORITY_HIGH], 300), passes[i][RL_PRIORITY_HIGH]);
			fixture_unlimit(&fx, STORY_DEVICE);
		}
	}
	fixture_close(&fx);
}

/* The limit's priority, or else its tenant's, or else normal; of packets that no prefix names too. */
StoreTest(priority, the_limits_own_beats_its_tenants)
{
	struct fixture fx = story_open(*store);
	/* What of the device's bucket of 100 each may take: all, 80 or 75. */
	static const struct {
		const char *own, *tenant;
		__u64 passes;
	} cases[] = {
	    {"priority=high", "priority=low", 100},
	    {"priority=low", "priority=high", 75},
	    {"priority=normal", "priority=low", 80},
	    {NULL, "priority=low", 75},
	    {NULL, "priority=high", 100},
	    {NULL, NULL, 80},
	};

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			fixture_limit(&fx, family->target, "10mpps", "tenant=acme", cases[i].own, NULL);
			fixture_limit(&fx, "tenant:acme", "10mpps", cases[i].tenant, NULL);
			fixture_limit(&fx, STORY_DEVICE, "1/h", "100", "reserve=high=20%,normal=5%", NULL);
			cr_assert_eq(flood(&fx, family->source, 200), cases[i].passes, "case %zu", i);
			fixture_unlimit(&fx, STORY_DEVICE);
			fixture_unlimit(&fx, family->target);
			fixture_unlimit(&fx, "tenant:acme");
		}
		/* A tenant that has a priority and no rate. */
		fixture_limit(&fx, family->target, "10mpps", "tenant=acme", NULL);
		fixture_limit(&fx, "tenant:acme", "priority=low", NULL);
		fixture_limit(&fx, STORY_DEVICE, "1/h", "100", "reserve=high=20%,normal=5%", NULL);
		cr_assert_eq(flood(&fx, family->source, 200), 75);
		cr_assert_eq(flood(&fx, family->outside, 200), 5);
		fixture_unlimit(&fx, STORY_DEVICE);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
	}
	fixture_close(&fx);
}

/*
 * A reserve is of the bucket that states it: what the device keeps, the tenant doesn't, and a source's own
 * bucket has none.
 */
Test(priority, each_bucket_keeps_its_own)
{
	struct fixture fx = fixture_open();

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit tenant, device, source;

		fixture_limit(&fx, family->target, "1/h", "90", "priority=low", "tenant=acme", NULL);
		tenant = fixture_limit(&fx, "tenant:acme", "1/h", "100", "reserve=high=50%", NULL);
		device = fixture_limit(&fx, STORY_DEVICE, "1/h", "100", "reserve=high=30%", NULL);
		story_repeat(&fx, family->source, 50, RL_PASS_LIMIT, &tenant);
		story_expect(&fx, family->source, RL_DROP_TENANT, &tenant);
		fixture_limit(&fx, "tenant:acme", "1/h", "100", NULL);
		story_repeat(&fx, family->source, 20, RL_PASS_LIMIT, &tenant);
		story_expect(&fx, family->source, RL_DROP_DEVICE, &device);
		fixture_limit(&fx, STORY_DEVICE, "1/h", "100", NULL);
		story_repeat(&fx, family->source, 20, RL_PASS_LIMIT, &device);
		source = fixture_now(&fx, family->target);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &source);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, "tenant:acme");
		fixture_unlimit(&fx, STORY_DEVICE);
	}
	fixture_close(&fx);
}

#define OVERLOAD_STEPS 10000 /* of a millisecond */

/*
 * Ten seconds at a device limit of 1000 a second: high offers 400 a second, normal 1000 and low 3000. High
 * passes whole; normal gets nearly all of the rest, low what is left: next to nothing; together they get the
 * limit and no more.
 */
static void overload(struct fixture *fx, const struct ranks *rank)
{
	static const int every[RL_PRIORITIES] = {5, 1, 1}, each[RL_PRIORITIES] = {2, 1, 3};
	static uint8_t frame[RL_PRIORITIES][RL_FRAME_MAX];
	__u64 sent[RL_PRIORITIES] = {0}, passed[RL_PRIORITIES] = {0}, total;

	fixture_limit(fx, STORY_DEVICE, "1kpps", "100", "reserve=high=20%,normal=5%", NULL);
	for (int i = 0; i < RL_PRIORITIES; i++) {
		struct rl_frame_spec spec = {.src = rank->source[i], .len = STORY_LEN};

		rl_frame_build(&spec, frame[i], RL_FRAME_MAX);
	}
	for (int step = 0; step < OVERLOAD_STEPS; step++) {
		for (int i = RL_PRIORITIES - 1; i >= 0;
		     i--) { /* low comes first, and high finds what is left */
			for (int n = 0; step % every[i] == 0 && n < each[i]; n++) {
				passed[i] += fixture_run(fx, frame[i], STORY_LEN, 1) == 2;
				sent[i]++;
			}
		}
		fixture_advance(fx, MS);
	}
	total = sent[0] + sent[1] + sent[2];
	fixture_account(fx, total, total * STORY_LEN);
	total = passed[0] + passed[1] + passed[2];
	cr_assert_eq(passed[RL_PRIORITY_HIGH], sent[RL_PRIORITY_HIGH], "high lost %llu of %llu",
		     sent[RL_PRIORITY_HIGH] - passed[RL_PRIORITY_HIGH], sent[RL_PRIORITY_HIGH]);
	cr_assert_leq(passed[RL_PRIORITY_LOW], 75 + 5, "low passed %llu", passed[RL_PRIORITY_LOW]);
	cr_assert_leq(total, 100 + OVERLOAD_STEPS);
	cr_assert_geq(total, OVERLOAD_STEPS * 999 / 1000, "%llu passed in all", total);
	fixture_unlimit(fx, STORY_DEVICE);
}

Test(priority, high_keeps_its_traffic_whole)
{
	struct fixture fx = fixture_open();

	for (int f = 0; f < 2; f++) {
		ranks_set(&fx, &ranks[f], NULL);
		overload(&fx, &ranks[f]);
		ranks_clear(&fx, &ranks[f]);
	}
	fixture_close(&fx);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * shadow.c - what would be dropped is counted, and drops nothing: a limit's shadow, or the device's for all
 * of them.
 */
#include <stdio.h>
#include <string.h>

#include "crowd.h"
#include "stories.h"

enum { SOURCE, CLASS, TENANT, DEVICE, LEVELS };

static const enum rl_reason drops[LEVELS] = {RL_DROP_SOURCE, RL_DROP_CLASS, RL_DROP_TENANT, RL_DROP_DEVICE};
static const enum rl_reason shadows[LEVELS] = {RL_SHADOW_SOURCE, RL_SHADOW_CLASS, RL_SHADOW_TENANT,
					       RL_SHADOW_DEVICE};

/* `shadow` is "shadow" or NULL. */
static struct rl_limit level_set(struct fixture *fx, const struct family *family, int level,
				 const char *burst, const char *shadow)
{
	switch (level) {
	case SOURCE:
		return fixture_limit(fx, family->target, "1/h", burst, "tenant=acme", shadow, NULL);
	case CLASS:
		return fixture_limit(fx, family->target, "class=udp", "1/h", burst, shadow, NULL);
	case TENANT:
		return fixture_limit(fx, "tenant:acme", "1/h", burst, shadow, NULL);
	default:
		return fixture_limit(fx, STORY_DEVICE, "1/h", burst, shadow, NULL);
	}
}

static void levels_clear(struct fixture *fx, const struct family *family)
{
	fixture_unlimit(fx, family->target);
	fixture_unlimit(fx, "tenant:acme");
	fixture_unlimit(fx, STORY_DEVICE);
}

static struct ledger all_four(struct fixture *fx, const struct family *family, const struct rl_limit *limit)
{
	return ledger_open(fx, family->source, &limit[0], &limit[1], &limit[2], &limit[3], NULL);
}

/* How many limits would have dropped the source's next packet; it passes for this reason. */
static void expect_shadows(int line, struct fixture *fx, const char *source, enum rl_reason reason,
			   __u32 count)
{
	struct rl_frame_spec spec = {.src = source, .len = STORY_LEN};
	struct fixture_outcome outcome = fixture_send(fx, &spec);

	cr_assert_eq(outcome.reason, reason, "line %d, %s: reason %d, expected %d", line, source,
		     outcome.reason, reason);
	cr_assert_eq(outcome.shadowed, count, "line %d, %s: %u would have dropped it, expected %u", line,
		     source, outcome.shadowed, count);
}
#define expect_shadows(...) expect_shadows(__LINE__, __VA_ARGS__)

/*
 * A level in shadow, at its limit and past it: it drops nothing and charges nobody; then enforced in place,
 * and back.
 */
static void one_level(struct fixture *fx, const struct family *family, int level)
{
	struct rl_limit limit[LEVELS];
	struct ledger ledger;
	struct rl_source tally;

	for (int i = 0; i < LEVELS; i++)
		limit[i] = level_set(fx, family, i, i == level ? "2" : "100", i == level ? "shadow" : NULL);
	story_repeat(fx, family->source, 2, RL_PASS_LIMIT, &limit[level]);
	ledger = all_four(fx, family, limit);
	for (int n = 0; n < 3; n++)
		expect_shadows(fx, family->source, shadows[level], 1);
	ledger_same(&ledger);
	for (int i = 0; i < LEVELS; i++)
		story_counted(fx, &limit[i], 5, 0, i == level ? 3 : 0);
	cr_assert(fixture_source(fx, &limit[SOURCE], family->source, &tally));
	cr_assert_eq(tally.tally.passed.packets, 5);
	cr_assert_eq(tally.tally.shadow.packets, 3);
	cr_assert_eq(tally.tally.dropped.packets, 0);
	cr_assert_eq(tally.tally.shadow.bytes, 3 * STORY_LEN);

	/* Enforced, it drops at once, and goes on counting from where it was. */
	limit[level] = level_set(fx, family, level, "2", NULL);
	ledger = all_four(fx, family, limit);
	story_repeat(fx, family->source, 2, drops[level], &limit[level]);
	ledger_same(&ledger);
	story_counted(fx, &limit[level], 5, 2, 3);
	fixture_expect_source(fx, &limit[SOURCE], family->source, 5, 2, STORY_LEN);
	limit[level] = level_set(fx, family, level, "2", "shadow");
	expect_shadows(fx, family->source, shadows[level], 1);
	ledger_same(&ledger);
	story_counted(fx, &limit[level], 6, 2, 4);
	/* It charges again as soon as it has room. */
	fixture_advance(fx, 3600 * SEC);
	story_expect(fx, family->source, RL_PASS_LIMIT, &limit[level]);
	expect_shadows(fx, family->source, shadows[level], 1);
	levels_clear(fx, family);
}

StoreTest(shadow, of_each_level)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++)
		for (int level = 0; level < LEVELS; level++)
			one_level(&fx, &families[f], level);
	fixture_close(&fx);
}

/*
 * Of a level in shadow and one that isn't: whichever comes first, the one that isn't drops, and says so
 * alone.
 */
static void two_levels(struct fixture *fx, const struct family *family, int soft, int hard)
{
	struct rl_limit limit[LEVELS];
	struct ledger ledger;

	for (int i = 0; i < LEVELS; i++)
		limit[i] = level_set(fx, family, i,
				     i == soft	 ? "1"
				     : i == hard ? "2"
						 : "100",
				     i == soft ? "shadow" : NULL);
	story_expect(fx, family->source, RL_PASS_LIMIT, &limit[soft]);
	ledger = all_four(fx, family, limit);
	expect_shadows(fx, family->source, shadows[soft], 1);
	ledger_same(&ledger);
	limit[hard] = level_set(fx, family, hard, "1", NULL);
	story_expect(fx, family->source, drops[hard], &limit[hard]);
	ledger = all_four(fx, family, limit);
	story_expect(fx, family->source, drops[hard], &limit[hard]);
	ledger_same(&ledger);
	story_counted(fx, &limit[soft], 2, 0, 1);
	story_counted(fx, &limit[hard], 2, 2, 0);
	/* Both in shadow: both count it, and the first gives the reason. */
	limit[hard] = level_set(fx, family, hard, "1", "shadow");
	expect_shadows(fx, family->source, shadows[soft < hard ? soft : hard], 2);
	ledger_same(&ledger);
	story_counted(fx, &limit[soft], 3, 0, 2);
	story_counted(fx, &limit[hard], 3, 2, 1);
	levels_clear(fx, family);
}

StoreTest(shadow, another_level_that_drops_wins)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++)
		for (int soft = 0; soft < LEVELS; soft++)
			for (int hard = 0; hard < LEVELS; hard++)
				if (soft != hard)
					two_levels(&fx, &families[f], soft, hard);
	fixture_close(&fx);
}

/* The device's shadow is every level's, also where the limit itself says that it enforces. */
StoreTest(shadow, of_the_device_is_for_all_levels)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];

		for (int level = 0; level < LEVELS; level++) {
			struct rl_limit limit[LEVELS];
			struct ledger ledger;

			for (int i = 0; i < LEVELS; i++)
				limit[i] = level_set(&fx, family, i, i == level ? "1" : "100", NULL);
			fixture_shadow(&fx, true);
			story_expect(&fx, family->source, RL_PASS_LIMIT, &limit[level]);
			ledger = all_four(&fx, family, limit);
			expect_shadows(&fx, family->source, shadows[level], 1);
			story_counted(&fx, &limit[level], 2, 0, 1);
			fixture_shadow(&fx, false);
			story_expect(&fx, family->source, drops[level], &limit[level]);
			ledger_same(&ledger);
			levels_clear(&fx, family);
		}
	}
	fixture_close(&fx);
}

/* Denied in shadow: it passes, and is charged nowhere, as what is denied never is. */
StoreTest(shadow, of_deny)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "1/h", "1", NULL), deny;

		deny = fixture_limit(&fx, family->target, "deny", "shadow", NULL);
		for (int n = 0; n < 3; n++)
			expect_shadows(&fx, family->source, RL_SHADOW_DENIED, 1);
		story_counted(&fx, &deny, 3, 0, 3);
		story_counted(&fx, &device, 0, 0, 0);
		deny = fixture_limit(&fx, family->target, "deny", NULL);
		story_expect(&fx, family->source, RL_DROP_DENIED, &deny);
		fixture_shadow(&fx, true);
		expect_shadows(&fx, family->source, RL_SHADOW_DENIED, 1);
		fixture_shadow(&fx, false);
		story_counted(&fx, &deny, 4, 1, 4);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, STORY_DEVICE);
	}
	fixture_close(&fx);
}

/*
 * `new` in shadow, its own or the device's: whoever is one too many passes without a bucket, as often as it
 * comes.
 */
static void new_sources(struct fixture *fx, const struct family *family, bool by_device)
{
	struct rl_limit limit = fixture_limit(fx, family->target, "1/h", "2", "tenant=acme", NULL);
	struct rl_limit tenant = fixture_limit(fx, "tenant:acme", "1/h", "50", NULL);
	struct rl_limit device = fixture_limit(fx, STORY_DEVICE, "1/h", "50", NULL);
	struct rl_limit fresh = fixture_limit(fx, "new", "1/h", "1", by_device ? NULL : "shadow", NULL);
	struct rl_source none;
	struct ledger ledger;

	fixture_shadow(fx, by_device);
	story_expect(fx, family->source, RL_PASS_LIMIT, &limit);
	ledger = ledger_open(fx, family->source, &limit, &tenant, &device, NULL);
	for (int n = 0; n < 4; n++)
		expect_shadows(fx, family->other, RL_SHADOW_NEW, 1);
	ledger_same(&ledger);
	cr_assert_not(fixture_source(fx, &limit, family->other, &none));
	story_counted(fx, &fresh, 1, 0, 4);
	story_counted(fx, &limit, 5, 0, 0);
	fixture_shadow(fx, false);
	if (!by_device)
		fresh = fixture_limit(fx, "new", "1/h", "1", NULL);
	story_expect(fx, family->other, RL_DROP_NEW, &fresh);
	story_expect(fx, family->source, RL_PASS_LIMIT, &limit);
	levels_clear(fx, family);
	fixture_unlimit(fx, "new");
}

StoreTest(shadow, of_new)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		new_sources(&fx, &families[f], false);
		new_sources(&fx, &families[f], true);
	}
	fixture_close(&fx);
}

/* Likewise: another level that isn't in shadow drops, and then nobody's shadow counts. */
StoreTest(shadow, another_level_beats_new)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit limit = fixture_limit(&fx, family->target, "1/h", "100", NULL);
		struct rl_limit device = fixture_limit(&fx, STORY_DEVICE, "1/h", "1", NULL);
		struct rl_limit fresh = fixture_limit(&fx, "new", "1/h", "1", "shadow", NULL);

		story_expect(&fx, family->source, RL_PASS_LIMIT, &limit);
		story_expect(&fx, family->other, RL_DROP_DEVICE, &device);
		story_counted(&fx, &fresh, 1, 0, 0);
		fixture_unlimit(&fx, family->target);
		fixture_unlimit(&fx, STORY_DEVICE);
		fixture_unlimit(&fx, "new");
	}
	fixture_close(&fx);
}

/* No room in the table: closed, or an aggregate that is over its limit. */
static void no_room(struct fixture *fx, const struct family *family, bool by_device)
{
	struct rl_limit device = fixture_limit(fx, STORY_DEVICE, "1/h", "50", NULL), limit;
	struct ledger ledger;

	limit = fixture_limit(fx, "any", "1/h", "2", "tenant=acme", by_device ? NULL : "shadow", NULL);
	fixture_shadow(fx, by_device);
	fixture_when_full(fx, RL_FULL_OPEN);
	story_expect(fx, family->outside, RL_PASS_OPEN, &device);
	ledger = ledger_open(fx, family->outside, &device, NULL);
	fixture_when_full(fx, RL_FULL_CLOSED);
	for (int n = 0; n < 3; n++)
		expect_shadows(fx, family->outside, RL_SHADOW_FULL, 1);
	ledger_same(&ledger);
	fixture_when_full(fx, RL_FULL_AGGREGATE);
	story_repeat(fx, family->outside, 2, RL_PASS_AGGREGATE, &limit);
	ledger_charged(&ledger, 0, 2, 0);
	ledger = ledger_open(fx, family->outside, &device, NULL);
	for (int n = 0; n < 3; n++)
		expect_shadows(fx, family->outside, RL_SHADOW_AGGREGATE, 1);
	ledger_same(&ledger);
	story_counted(fx, &limit, 9, 0, 6);
	fixture_shadow(fx, false);
	limit = fixture_limit(fx, "any", "1/h", "2", "tenant=acme", NULL);
	story_expect(fx, family->outside, RL_DROP_AGGREGATE, &limit);
	fixture_when_full(fx, RL_FULL_CLOSED);
	story_expect(fx, family->outside, RL_DROP_FULL, &limit);
	story_counted(fx, &limit, 9, 2, 6);
	fixture_unlimit(fx, "any");
	fixture_unlimit(fx, STORY_DEVICE);
}

Test(shadow, of_a_full_table)
{
	struct fixture fx = fixture_open_with(
	    &(struct fixture_options){.max_sources = CROWD_SMALL, .when_full = RL_FULL_CLOSED});
	struct crowd crowd = crowd_open(&fx);

	/* Who fills the table owes for an hour under limits of its own. */
	fixture_limit(&fx, CROWD_PREFIX4, "1/h", "2", NULL);
	fixture_limit(&fx, CROWD_PREFIX6, "1/h", "2", NULL);
	crowd_fill(&crowd, 4);
	for (int f = 0; f < 2; f++) {
		no_room(&fx, &families[f], false);
		no_room(&fx, &families[f], true);
	}
	crowd_close(&crowd);
	fixture_close(&fx);
}

/* A CPU with an older policy than the bucket's admits nothing; in shadow that passes too. */
StoreTest(shadow, of_a_bucket_that_moved_on)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit before = fixture_limit(&fx, family->target, "10pps", "20", "shadow", NULL);
		__u64 old = fixture_head(&fx, before.slot, FIXTURE_HEAD_ASK), new;
		struct rl_limit after = fixture_limit(&fx, family->target, "20pps", "20", "shadow", NULL);

		story_expect(&fx, family->source, RL_PASS_LIMIT, &after);
		new = fixture_head(&fx, before.slot, old);
		expect_shadows(&fx, family->source, RL_SHADOW_CONTENDED, 1);
		fixture_head(&fx, before.slot, new);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &after);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

/* Under the device's shadow a flood passes whole, and both columns add up. */
StoreTest(shadow, a_flood_passes_whole)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_frame_spec spec = {.src = family->source, .len = STORY_LEN};
		struct rl_limit limit = fixture_limit(&fx, family->target, "1/h", "10", NULL);
		__u64 shadowed = story_reason(&fx, RL_SHADOW_SOURCE);

		fixture_shadow(&fx, true);
		cr_assert_eq(fixture_flood(&fx, &spec, 5000), 5000);
		story_counted(&fx, &limit, 5000, 0, 4990);
		cr_assert_eq(story_reason(&fx, RL_SHADOW_SOURCE) - shadowed, 4990);
		fixture_shadow(&fx, false);
		cr_assert_eq(fixture_flood(&fx, &spec, 100), 0);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

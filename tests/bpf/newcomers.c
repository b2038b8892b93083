// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * newcomers.c - `new`: how many sources are given a bucket, and who is no new one.
 */
#include "crowd.h"
#include "stories.h"

/* As many sources as `new` grants get a bucket, and no more; those that have one need nobody's leave. */
StoreTest(newcomers, new_grants_exactly)
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
			cr_assert_eq(story_has_bucket(&fx, &any, source), i < 20, "%s", source);
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
StoreTest(newcomers, new_is_one_for_both_families)
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
StoreTest(newcomers, classes_of_a_known_source_are_free)
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
		cr_assert_not(story_has_bucket(&fx, &syns, family->other));
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
StoreTest(newcomers, who_needs_no_bucket_is_not_new)
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
StoreTest(newcomers, a_source_asks_once)
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

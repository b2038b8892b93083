// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * grouped.c - which sources share a bucket: all of a target, those of one prefix inside it, or each by
 * itself.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "native.h"
#include "stories.h"

/*
 * A target, how its sources are grouped, and the first and last address of a group, of the one before and the
 * one behind.
 */
struct group_case {
	const char *target, *word;
	const char *first, *last, *before,
	    *behind; /* the last two may be NULL: there are none in the target */
	bool own;    /* it has one bucket, which is never evicted */
};

static const struct group_case groups[] = {
    {"203.0.113.0/24", NULL, "203.0.113.7", "203.0.113.7", "203.0.113.6", "203.0.113.8", false},
    {"203.0.113.0/24", "per=/32", "203.0.113.7", "203.0.113.7", "203.0.113.6", "203.0.113.8", false},
    {"203.0.113.0/24", "per=/28", "203.0.113.16", "203.0.113.31", "203.0.113.15", "203.0.113.32", false},
    {"203.0.113.0/24", "per=/31", "203.0.113.16", "203.0.113.17", "203.0.113.15", "203.0.113.18", false},
    {"203.0.0.0/16", "per=/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0", false},
    {"203.0.0.0/16", "per=/17", "203.0.128.0", "203.0.255.255", "203.0.127.255", NULL, false},
    {"0.0.0.0/0", "per=/1", "128.0.0.0", "255.255.255.255", "127.255.255.255", NULL, false},
    {"203.0.113.0/24", "per=/24", "203.0.113.0", "203.0.113.255", NULL, NULL, true},
    {"203.0.113.0/24", "shared", "203.0.113.0", "203.0.113.255", NULL, NULL, true},
    {"203.0.113.7", NULL, "203.0.113.7", "203.0.113.7", NULL, NULL, true},
    {"203.0.113.7", "shared", "203.0.113.7", "203.0.113.7", NULL, NULL, true},

    {"2001:db8::/32", NULL, "2001:db8:0:7::", "2001:db8:0:7:ffff:ffff:ffff:ffff",
     "2001:db8:0:6:ffff:ffff:ffff:ffff", "2001:db8:0:8::", false},
    {"2001:db8::/32", "per=/64", "2001:db8:0:7::", "2001:db8:0:7:ffff:ffff:ffff:ffff",
     "2001:db8:0:6:ffff:ffff:ffff:ffff", "2001:db8:0:8::", false},
    {"2001:db8::/32", "per=/48", "2001:db8:7::", "2001:db8:7:ffff:ffff:ffff:ffff:ffff",
     "2001:db8:6:ffff:ffff:ffff:ffff:ffff", "2001:db8:8::", false},
    {"2001:db8::/32", "per=/56", "2001:db8:7:100::", "2001:db8:7:1ff:ffff:ffff:ffff:ffff",
     "2001:db8:7:ff:ffff:ffff:ffff:ffff", "2001:db8:7:200::", false},
    {"2001:db8::/32", "per=/128", "2001:db8::7", "2001:db8::7", "2001:db8::6", "2001:db8::8", false},
    {"2001:db8::/32", "per=/127", "2001:db8::6", "2001:db8::7", "2001:db8::5", "2001:db8::8", false},
    {"2001:db8::/32", "per=/65", "2001:db8:0:7:8000::", "2001:db8:0:7:ffff:ffff:ffff:ffff",
     "2001:db8:0:7:7fff::", "2001:db8:0:8::", false},
    {"2001:db8::/32", "per=/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL, true},
    {"2001:db8::/32", "shared", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", NULL, NULL, true},
    {"2001:db8::/64", NULL, "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff", NULL, NULL, true},
    {"2001:db8::/64", "per=/128", "2001:db8::7", "2001:db8::7", "2001:db8::6", "2001:db8::8", false},
    /* Longer than a source by default: one bucket, unless it is said to be finer. */
    {"2001:db8::/96", NULL, "2001:db8::", "2001:db8::ffff:ffff", NULL, NULL, true},
    {"2001:db8::/96", "per=/112", "2001:db8::7:0", "2001:db8::7:ffff", "2001:db8::6:ffff", "2001:db8::8:0",
     false},
    {"2001:db8::7", NULL, "2001:db8::7", "2001:db8::7", NULL, NULL, true},
};

static void group(struct fixture *fx, const struct group_case *at)
{
	struct rl_limit limit = fixture_limit(fx, at->target, "1/h", "2", at->word, NULL);
	char what[128];

	snprintf(what, sizeof(what), "%s %s", at->target, at->word ? at->word : "");
	fx->what = what;
	cr_assert_eq(!!(limit.flags & RL_LIMIT_OWN_BUCKET), at->own, "%s", what);
	story_expect(fx, at->first, RL_PASS_LIMIT, &limit);
	story_expect(fx, at->last, RL_PASS_LIMIT, &limit);
	story_expect(fx, at->first, RL_DROP_SOURCE, &limit);
	story_expect(fx, at->last, RL_DROP_SOURCE, &limit);
	if (at->before) {
		story_repeat(fx, at->before, 2, RL_PASS_LIMIT, &limit);
		story_expect(fx, at->before, RL_DROP_SOURCE, &limit);
	}
	if (at->behind) {
		story_repeat(fx, at->behind, 2, RL_PASS_LIMIT, &limit);
		story_expect(fx, at->behind, RL_DROP_SOURCE, &limit);
	}
	fixture_expect_source(fx, &limit, at->first, 2, 2, STORY_LEN);
	fixture_expect_source(fx, &limit, at->last, 2, 2, STORY_LEN);
	fx->what = NULL;
	fixture_unlimit(fx, at->target);
}

StoreTest(grouped, a_group_shares_and_the_next_does_not)
{
	struct fixture fx = story_open(*store);

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		group(&fx, &groups[i]);
	fixture_close(&fx);
}

/* `any`, shared, is one bucket for both families; otherwise each source of either has its own. */
StoreTest(grouped, any)
{
	struct fixture fx = story_open(*store);
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "3", "shared", NULL);

	story_expect(&fx, "203.0.113.7", RL_PASS_LIMIT, &any);
	story_expect(&fx, "2001:db8::7", RL_PASS_LIMIT, &any);
	story_expect(&fx, "10.0.0.1", RL_PASS_LIMIT, &any);
	story_expect(&fx, "203.0.113.7", RL_DROP_SOURCE, &any);
	story_expect(&fx, "2001:db9::7", RL_DROP_SOURCE, &any);
	fixture_expect_source(&fx, &any, "203.0.113.7", 3, 2, STORY_LEN);
	fixture_close(&fx);
}

/* An IPv4 and an IPv6 source that stand side by side in the table, under one limit, and whose keys differ in the family alone. */
Test(grouped, families_apart)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.max_sources = 1});
	struct rl_limit any = fixture_limit(&fx, "any", "1/h", "2", NULL);

	for (__u32 n = 0; n < 8; n++) {
		char text[2][INET6_ADDRSTRLEN];
		__u8 six[16], four[4];

		native_twins(&fx.table, n, six, four);
		inet_ntop(AF_INET6, six, text[0], sizeof(text[0]));
		inet_ntop(AF_INET, four, text[1], sizeof(text[1]));
		for (__u32 i = 0; i < 2; i++)
			story_repeat(&fx, text[(n + i) % 2], 2, RL_PASS_LIMIT, &any);
		for (__u32 i = 0; i < 2; i++) {
			story_expect(&fx, text[i], RL_DROP_SOURCE, &any);
			fixture_expect_source(&fx, &any, text[i], 2, 1, STORY_LEN);
		}
	}
	fixture_close(&fx);
}

/* A shared bucket refills as one; and it is still the same when the limit was said anew. */
StoreTest(grouped, a_shared_bucket_is_exact)
{
	struct fixture fx = story_open(*store);

	for (int f = 0; f < 2; f++) {
		const struct family *family = &families[f];
		struct rl_limit limit = fixture_limit(&fx, family->target, "10pps", "4", "shared", NULL);

		story_repeat(&fx, family->source, 2, RL_PASS_LIMIT, &limit);
		story_repeat(&fx, family->other, 2, RL_PASS_LIMIT, &limit);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 100 * MS - 1);
		story_expect(&fx, family->other, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 1);
		story_expect(&fx, family->other, RL_PASS_LIMIT, &limit);
		story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
		limit = fixture_limit(&fx, family->target, "10pps", "5", "shared", NULL);
		story_expect(&fx, family->source, RL_PASS_LIMIT, &limit); /* what the burst has more */
		story_expect(&fx, family->source, RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, family->target);
	}
	fixture_close(&fx);
}

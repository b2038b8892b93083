// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * full_policy.c - packets under as many limits as there can be: each source is held to its own prefix's, one limit more is
 * refused and changes nothing, and one that is deleted makes room.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "stories.h"
#include "../../user/limit.h"
#include "../../user/policy.h"
#include "../../user/prefix.h"
#include "../../user/prefixes.h"
#include "../../user/target.h"
#include "../../user/units.h"
#include "../../user/view.h"

#define ALL (RL_DEFAULT_LIMITS - 1) /* slot 0 is nobody's */

/* Limit i, from 1 on, is of a /24 or a /48 in turn, and its burst tells it from its neighbours. */
static __u8 family_of(__u32 i)
{
	return i % 2 ? 4 : 6;
}

static __u64 burst_of(__u32 i)
{
	return 2 + i % 11;
}

static struct rl_target target_of(__u32 i)
{
	const __u8 addr4[4] = {10, (__u8)(i >> 8), (__u8)i},
		   addr6[16] = {0x20, 1, 0xd, 0xb8, (__u8)(i >> 8), (__u8)i};

	return (struct rl_target){
	    .kind = RL_TARGET_PREFIX,
	    .prefix =
		rl_prefix_cut(family_of(i), family_of(i) == 4 ? addr4 : addr6, family_of(i) == 4 ? 24 : 48),
	};
}

/* A source in the prefix. */
static const char *source_of(__u32 i, char text[RL_PREFIX_TEXT])
{
	struct rl_target target = target_of(i);

	target.prefix.addr[family_of(i) == 4 ? 3 : 15] = 7;
	target.prefix = rl_prefix_cut(family_of(i), target.prefix.addr, 128);
	return rl_prefix_print(&target.prefix, text);
}

static struct rl_terms terms_of(__u32 i)
{
	struct rl_terms terms = RL_TERMS_INIT;
	struct rl_target target = target_of(i);
	struct rl_error err = {};

	cr_assert_eq(rl_rate_parse("1/h", &terms, &err), 0, "%s", err.text);
	terms.burst_packets = burst_of(i);
	cr_assert_eq(rl_terms_complete(&target, &terms, &err), 0, "%s", err.text);
	return terms;
}

/* As rl_policy_set does it for each, with its maps opened once. */
static void fill(const struct fixture *fx)
{
	RL_HEADS struct rl_heads heads = {};
	struct rl_error err = {};

	cr_assert_eq(rl_heads_open(&fx->state, RL_HEADS_REWRITE, &heads, &err), 0, "%s", err.text);
	for (__u32 i = 1; i <= ALL; i++) {
		struct rl_target target = target_of(i);
		struct rl_terms terms = terms_of(i);

		cr_assert_eq(rl_prefixes_set(&heads, &target, &terms, fx->now, &err), 0, "%u: %s", i,
			     err.text);
	}
}

static int set(const struct fixture *fx, __u32 i, struct rl_error *err)
{
	struct rl_target target = target_of(i);
	struct rl_terms terms = terms_of(i);

	return rl_policy_set(&fx->state, &target, &terms, fx->now, err);
}

static struct rl_limit watch(struct fixture *fx, __u32 i)
{
	struct rl_target target = target_of(i);
	struct rl_limit limit;

	cr_assert(rl_policy_find(&fx->state, &target, NULL, &limit), "limit %u isn't there", i);
	fixture_watch(fx, &limit);
	return limit;
}

/* The whole burst of a source passes, and no packet more. */
static void expect_held(struct fixture *fx, __u32 i)
{
	struct rl_limit limit = watch(fx, i);
	char text[RL_PREFIX_TEXT];

	story_repeat(fx, source_of(i, text), (int)burst_of(i), RL_PASS_LIMIT, &limit);
	story_repeat(fx, text, 2, RL_DROP_SOURCE, &limit);
	story_counted(fx, &limit, burst_of(i), 2, 0);
}

/* Held as before: nothing was given back to it. */
static void expect_still_held(struct fixture *fx, __u32 i)
{
	struct rl_limit limit = watch(fx, i);
	char text[RL_PREFIX_TEXT];

	story_expect(fx, source_of(i, text), RL_DROP_SOURCE, &limit);
}

static size_t lines_of(int (*view)(const struct rl_snapshot *snapshot, FILE *out),
		       const struct rl_snapshot *snapshot)
{
	char *text = NULL;
	size_t size = 0, lines = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(view(snapshot, out), 0);
	fclose(out);
	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	free(text);
	return lines;
}

/* What list and stats read, and print: every limit once, each with its own counts. */
static void expect_all_read(const struct fixture *fx, const __u32 *held, size_t count)
{
	RL_SNAPSHOT struct rl_snapshot snapshot = {};
	struct rl_error err = {};
	__u64 passed = 0, expected = 0;

	cr_assert_eq(rl_snapshot_take(&fx->state, RL_SNAPSHOT_LIMITS | RL_SNAPSHOT_COUNTS, &snapshot, &err),
		     0, "%s", err.text);
	cr_assert_eq(snapshot.limit_count, ALL);
	for (size_t at = 0; at < ALL; at++) {
		/* In the order of their prefixes: IPv4's odd numbers, then IPv6's even ones. */
		__u32 i = (__u32)(at < (ALL + 1) / 2 ? 2 * at + 1 : 2 * (at - (ALL + 1) / 2) + 2);
		const struct rl_limit *limit = &snapshot.limits[at].limit;
		struct rl_target target = target_of(i);

		cr_assert_eq(rl_target_compare(&limit->target, &target), 0, "limit %zu isn't that of %u", at,
			     i);
		cr_assert_eq(limit->terms.burst_packets, burst_of(i));
		passed += snapshot.limits[at].count.passed.packets;
	}
	for (size_t i = 0; i < count; i++)
		expected += burst_of(held[i]);
	cr_assert_eq(passed, expected);
	cr_assert_eq(lines_of(rl_view_list_table, &snapshot), ALL + 1);
	cr_assert_eq(lines_of(rl_view_stats_table, &snapshot), ALL + 3);
}

Test(full_policy, each_source_is_held_to_its_own_limit, .timeout = 180)
{
	static const __u32 held[] = {1, 2, ALL / 2, ALL / 2 + 1, ALL - 1, ALL};
	const size_t count = sizeof(held) / sizeof(held[0]);
	const __u32 more = 0, gone = ALL / 3; /* one that there is no room for, and one that makes some */
	struct fixture fx = fixture_open_with(&(struct fixture_options){.all_limits = true});
	struct rl_target target = target_of(gone);
	char text[RL_PREFIX_TEXT], other[RL_PREFIX_TEXT];
	struct rl_error err = {};
	struct rl_limit limit;

	fill(&fx);
	for (size_t i = 0; i < count; i++)
		expect_held(&fx, held[i]);
	story_expect(&fx, source_of(more, text), RL_PASS_NO_LIMIT, NULL);
	expect_all_read(&fx, held, count);

	/* One more. */
	cr_assert_eq(set(&fx, more, &err), -ENOSPC);
	cr_assert_not_null(strstr(err.text, "the policy is full: 65535 limits; delete some"), "%s", err.text);
	story_expect(&fx, text, RL_PASS_NO_LIMIT, NULL);
	for (size_t i = 0; i < count; i++)
		expect_still_held(&fx, held[i]);

	/* Room for it. */
	limit = watch(&fx, gone);
	story_expect(&fx, source_of(gone, other), RL_PASS_LIMIT, &limit);
	cr_assert_eq(rl_policy_delete(&fx.state, &target, NULL, fx.now, &err), 0, "%s", err.text);
	story_expect(&fx, other, RL_PASS_NO_LIMIT, NULL);
	cr_assert_eq(set(&fx, more, &err), 0, "%s", err.text);
	expect_held(&fx, more);
	story_expect(&fx, other, RL_PASS_NO_LIMIT, NULL);
	cr_assert_eq(set(&fx, gone, &err), -ENOSPC);
	for (size_t i = 0; i < count; i++)
		expect_still_held(&fx, held[i]);
	fixture_close(&fx);
}

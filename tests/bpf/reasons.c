// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * reasons.c - every reason that a packet can be counted under, for IPv4 and IPv6, at the limit and one past
 * it; a reason that is added to enum rl_reason without a case here fails.
 */
#include <stdio.h>
#include <string.h>

#include "crowd.h"
#include "stories.h"

#define RULES 3
#define WORDS 4

/* One set-limit: a target and its words. */
struct rule {
	const char *target;
	const char *word[WORDS];
};

enum frame { PLAIN, MALFORMED, NOT_IP, UNPARSED, DISCOVERY, FRAMES };

/* `at` is the reason of the n-th packet, `past` of the next one. */
struct reason_case {
	const char *name;
	enum rl_reason at, past;
	struct rule rule[RULES];
	__u32 n; /* 0: 1 */
	enum frame frame;
	bool v6_only;
	bool other;  /* the one past it comes from another source */
	bool shadow; /* of the device */
	bool paused;
	bool full; /* the table is */
	enum rl_when_full when_full;
};

#define ANY(...)                                                                                             \
	{                                                                                                    \
		"any",                                                                                       \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}
#define ACME(...)                                                                                            \
	{                                                                                                    \
		"tenant:acme",                                                                               \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}
#define DEV(...)                                                                                             \
	{                                                                                                    \
		STORY_DEVICE,                                                                                \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}
#define NEW(...)                                                                                             \
	{                                                                                                    \
		"new",                                                                                       \
		{                                                                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

/* Those with a full table come last: it stays full. */
static const struct reason_case cases[] = {
    {"nothing", RL_PASS_NO_LIMIT, RL_PASS_NO_LIMIT, .n = 10},
    {"not IP", RL_PASS_NOT_IP, RL_PASS_NOT_IP, {ANY("1/h", "1")}, .n = 10, .frame = NOT_IP},
    {"unparsed", RL_PASS_UNPARSED, RL_PASS_UNPARSED, {ANY("1/h", "1")}, .n = 10, .frame = UNPARSED},
    {"paused", RL_PASS_PAUSED, RL_PASS_PAUSED, {ANY("1/h", "1")}, .n = 10, .paused = true},
    {"allowed", RL_PASS_ALLOWED, RL_PASS_ALLOWED, {ANY("allow"), DEV("1/h", "1")}, .n = 10},
    {"discovery", RL_PASS_ND, RL_DROP_DENIED, {ANY("deny")}, .n = 1000, .frame = DISCOVERY, .v6_only = true},
    {"malformed", RL_PASS_MALFORMED, RL_DROP_SOURCE, {ANY("1/h", "3")}, .n = 3, .frame = MALFORMED},

    {"source", RL_PASS_LIMIT, RL_DROP_SOURCE, {ANY("1/h", "3")}, .n = 3},
    {"class", RL_PASS_LIMIT, RL_DROP_CLASS, {ANY("class=udp", "1/h", "3")}, .n = 3},
    {"tenant", RL_PASS_LIMIT, RL_DROP_TENANT, {ANY("1mpps", "tenant=acme"), ACME("1/h", "3")}, .n = 3},
    {"device", RL_PASS_LIMIT, RL_DROP_DEVICE, {ANY("1mpps"), DEV("1/h", "3")}, .n = 3},
    {"new", RL_PASS_LIMIT, RL_DROP_NEW, {ANY("1mpps"), NEW("1/h", "1")}, .other = true},
    {"denied", RL_DROP_DENIED, RL_DROP_DENIED, {ANY("deny")}, .n = 2},

    {"source, shadow", RL_PASS_LIMIT, RL_SHADOW_SOURCE, {ANY("1/h", "3", "shadow")}, .n = 3},
    {"class, shadow", RL_PASS_LIMIT, RL_SHADOW_CLASS, {ANY("class=udp", "1/h", "3", "shadow")}, .n = 3},
    {"tenant, shadow",
     RL_PASS_LIMIT,
     RL_SHADOW_TENANT,
     {ANY("1mpps", "tenant=acme"), ACME("1/h", "3", "shadow")},
     .n = 3},
    {"device, shadow", RL_PASS_LIMIT, RL_SHADOW_DEVICE, {DEV("1/h", "3", "shadow")}, .n = 3},
    {"new, shadow", RL_PASS_LIMIT, RL_SHADOW_NEW, {ANY("1mpps"), NEW("1/h", "1", "shadow")}, .other = true},
    {"denied, shadow", RL_SHADOW_DENIED, RL_SHADOW_DENIED, {ANY("deny", "shadow")}, .n = 2},

    {"source, device's shadow", RL_PASS_LIMIT, RL_SHADOW_SOURCE, {ANY("1/h", "3")}, .n = 3, .shadow = true},
    {"new, device's shadow",
     RL_PASS_LIMIT,
     RL_SHADOW_NEW,
     {ANY("1mpps"), NEW("1/h", "1")},
     .other = true,
     .shadow = true},

    {"aggregate", RL_PASS_AGGREGATE, RL_DROP_AGGREGATE, {ANY("1/h", "3")}, .n = 3, .full = true},
    {"aggregate, shadow",
     RL_PASS_AGGREGATE,
     RL_SHADOW_AGGREGATE,
     {ANY("1/h", "3", "shadow")},
     .n = 3,
     .full = true},
    {"open", RL_PASS_OPEN, RL_PASS_OPEN, {ANY("1/h", "3")}, .n = 10, .full = true, .when_full = RL_FULL_OPEN},
    {"closed", RL_DROP_FULL, RL_DROP_FULL, {ANY("1/h", "3")}, .full = true, .when_full = RL_FULL_CLOSED},
    {"closed, shadow",
     RL_SHADOW_FULL,
     RL_SHADOW_FULL,
     {ANY("1/h", "3", "shadow")},
     .full = true,
     .when_full = RL_FULL_CLOSED},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void set_rule(struct fixture *fx, const struct rule *rule)
{
	const char *const *word = rule->word;

	fixture_limit(fx, rule->target, word[0], word[1], word[2], word[3], NULL);
}

static struct rl_frame_spec frame_of(const struct reason_case *at, const struct family *family)
{
	struct rl_frame_spec spec = {.src = family->source, .len = STORY_LEN};

	switch (at->frame) {
	case MALFORMED:
		spec.version = 7;
		break;
	case NOT_IP:
		spec.ethertype = family->family == 4 ? 0x0806 : 0x8847;
		break;
	case UNPARSED:
		spec.vlan[0] = spec.vlan[1] = spec.vlan[2] = 0x8100;
		break;
	case DISCOVERY:
		spec.proto = 58;
		spec.icmp_type = 135;
		spec.hop_limit = 255;
		break;
	default:
		break;
	}
	return spec;
}

/*
 * Who a packet's reason is due to, the device's counters apart, is looked at where the level has its own
 * tests.
 */
static void play(struct fixture *fx, const struct reason_case *at, const struct family *family)
{
	struct rl_frame_spec spec = frame_of(at, family);
	enum rl_reason reason;

	fx->what = at->name;
	for (int i = 0; i < RULES && at->rule[i].target; i++)
		set_rule(fx, &at->rule[i]);
	fixture_shadow(fx, at->shadow);
	fixture_pause(fx, at->paused);
	fixture_when_full(fx, at->when_full);
	if (at->n > 1)
		fixture_flood(fx, &spec, at->n - 1);
	reason = fixture_send(fx, &spec).reason;
	cr_assert_eq(reason, at->at, "%s, IPv%u: reason %d at the limit, expected %d", at->name,
		     family->family, reason, at->at);
	if (at->other)
		spec.src = family->other;
	reason = fixture_send(fx, &spec).reason;
	cr_assert_eq(reason, at->past, "%s, IPv%u: reason %d one past it, expected %d", at->name,
		     family->family, reason, at->past);
	for (int i = 0; i < RULES && at->rule[i].target; i++)
		fixture_unlimit(fx, at->rule[i].target);
	fx->what = NULL;
}

/* The table is filled under limits that no rule replaces: who fills it owes for an hour. */
static void fill(struct fixture *fx)
{
	struct crowd crowd = crowd_open(fx);

	fixture_when_full(fx, RL_FULL_CLOSED);
	fixture_limit(fx, CROWD_PREFIX4, "1/h", "2", NULL);
	fixture_limit(fx, CROWD_PREFIX6, "1/h", "2", NULL);
	crowd_fill(&crowd, 4);
	crowd_close(&crowd);
}

Test(reasons, each_in_both_families)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.max_sources = CROWD_SMALL});
	bool filled = false;

	for (size_t i = 0; i < CASES; i++) {
		if (cases[i].full && !filled)
			fill(&fx);
		filled = cases[i].full;
		for (int f = cases[i].v6_only; f < 2; f++)
			play(&fx, &cases[i], &families[f]);
	}
	fixture_close(&fx);
}

/*
 * Those that no policy and no packet can bring about: an error inside, and a lost race, whose tests are
 * verdicts/bucket_of_a_newer_generation, shadow/of_a_bucket_that_moved_on and full/a_lock_that_is_held.
 */
static bool is_exempt(int reason)
{
	return reason == RL_PASS_ERROR || reason == RL_DROP_CONTENDED || reason == RL_SHADOW_CONTENDED;
}

Test(reasons, none_is_without_a_case)
{
	bool covered[RL_REASONS][2] = {{false}};

	for (size_t i = 0; i < CASES; i++)
		for (int f = cases[i].v6_only; f < 2; f++)
			covered[cases[i].at][f] = covered[cases[i].past][f] = true;
	for (int reason = 0; reason < RL_REASONS; reason++)
		for (int f = reason == RL_PASS_ND; f < 2; f++)
			cr_assert(covered[reason][f] || is_exempt(reason), "reason %d has no case for IPv%u",
				  reason, families[f].family);
}

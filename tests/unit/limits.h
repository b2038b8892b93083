/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limits.h - limits for tests, from the text that an operator writes: "1000pps 10mbit" and "200p 64kib".
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../../user/limit.h"
#include "../../user/target.h"
#include "../../user/units.h"

static inline struct rl_target target_of(const char *text)
{
	struct rl_target target;
	struct rl_error err = {0};

	cr_assert_eq(rl_target_parse(text, &target, &err), 0, "%s", err.text);
	return target;
}

/* Incomplete terms; both may be NULL. */
static inline struct rl_terms terms_said(const char *rates, const char *bursts)
{
	struct rl_terms terms = RL_TERMS_INIT;
	struct rl_error err = {0};
	char copy[128], *save, *word;

	snprintf(copy, sizeof(copy), "%s", rates ? rates : "");
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		cr_assert_eq(rl_rate_parse(word, &terms, &err), 0, "%s", err.text);
	snprintf(copy, sizeof(copy), "%s", bursts ? bursts : "");
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		cr_assert_eq(rl_burst_parse(word, &terms, &err), 0, "%s", err.text);
	return terms;
}

static inline struct rl_terms terms_completed(const char *target, struct rl_terms terms)
{
	struct rl_target whose = target_of(target);
	struct rl_error err = {0};

	cr_assert_eq(rl_terms_complete(&whose, &terms, &err), 0, "%s", err.text);
	return terms;
}

/* Complete terms of a limit for `any`; bursts may be NULL for the defaults. */
static inline struct rl_terms terms_of(const char *rates, const char *bursts)
{
	return terms_completed("any", terms_said(rates, bursts));
}

#define LIMITS_START                                                                                         \
	1000000000000ULL /* ns: the time of a test's beginning, and of its changes if it says no other */
#define LIMITS_ID   7
#define LIMITS_SLOT 3

/* The limit of a target under these complete terms; `old` may be NULL. */
static inline struct rl_limit limit_under(const char *target, const struct rl_terms *terms,
					  const struct rl_limit *old, __u64 now)
{
	struct rl_target whose = target_of(target);
	struct rl_error err = {0};
	struct rl_limit limit;

	cr_assert_eq(rl_limit_compute(&whose, terms, old, LIMITS_ID, LIMITS_SLOT, now, &limit, &err), 0, "%s",
		     err.text);
	return limit;
}

static inline struct rl_limit limit_change_at(const struct rl_limit *old, const char *rates,
					      const char *bursts, __u64 now)
{
	struct rl_terms terms = terms_of(rates, bursts);

	return limit_under("any", &terms, old, now);
}

static inline struct rl_limit limit_change(const struct rl_limit *old, const char *rates, const char *bursts)
{
	return limit_change_at(old, rates, bursts, LIMITS_START);
}

static inline struct rl_limit limit_of(const char *rates, const char *bursts)
{
	return limit_change(NULL, rates, bursts);
}

#endif

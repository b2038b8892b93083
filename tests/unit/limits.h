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

/* Complete terms; bursts may be NULL for the defaults. */
static inline struct rl_terms terms_of(const char *rates, const char *bursts)
{
	struct rl_terms terms = {0};
	struct rl_error err = {0};
	char copy[128], *save, *word;

	snprintf(copy, sizeof(copy), "%s", rates);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		cr_assert_eq(rl_rate_parse(word, &terms, &err), 0, "%s", err.text);
	snprintf(copy, sizeof(copy), "%s", bursts ? bursts : "");
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		cr_assert_eq(rl_burst_parse(word, &terms, &err), 0, "%s", err.text);
	cr_assert_eq(rl_terms_complete(&terms, &err), 0, "%s", err.text);
	return terms;
}

#define LIMITS_START                                                                                         \
	1000000000000ULL /* ns: the time of a test's beginning, and of its changes if it says no other */

static inline struct rl_limit limit_change_at(const struct rl_limit *old, const char *rates,
					      const char *bursts, __u64 now)
{
	struct rl_terms terms = terms_of(rates, bursts);
	struct rl_prefix any = {0};
	struct rl_error err = {0};
	struct rl_limit limit;

	cr_assert_eq(rl_limit_compute(&any, &terms, old, 7, 3, now, &limit, &err), 0, "%s", err.text);
	return limit;
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

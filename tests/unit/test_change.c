// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits that change: what is owed at the change is carried over, and shrinks at the new rate from then on,
 * whether a packet came by at that moment or not.
 */
#include <criterion/criterion.h>
#include <linux/types.h>

#include "limits.h"
#include "random.h"

static inline __u64 rl_now(void)
{
	return LIMITS_START;
}

#include "../../bpf/rl_bucket.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEED	     20260711ULL
#define MS	     1000000ULL
#define SECOND	     (1000 * MS)
#define START	     LIMITS_START

typedef unsigned __int128 u128;

static __u64 flood(struct rl_source *source, const struct rl_limit *limit, __u64 now, __u64 count)
{
	__u64 passed = 0;

	while (count--)
		passed += rl_bucket_admit(source, limit, 1000, now) == RL_GCRA_ADMIT;
	return passed;
}

Test(change, old_rate_ends_at_the_change)
{
	struct rl_limit fast = limit_of("1kpps 8mbit", "1000 1mb");
	struct rl_limit slow = limit_change(&fast, "10pps 80kbit", "1000 1mb");
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &fast, START, 2000), 1000);
	/* Nobody came by at the change; a second at 10 pps refills 10, where the old rate would have refilled
	 * all. */
	cr_expect_eq(flood(&source, &slow, START + SECOND, 2000), 10);
	cr_expect_eq(flood(&source, &slow, START + 11 * SECOND, 2000), 100);
}

Test(change, untouched_through_several)
{
	struct rl_limit first = limit_of("1kpps", "1000");
	struct rl_limit second =
	    limit_change_at(&first, "10pps", "1000", START + 100 * MS); /* 100 refilled by then */
	struct rl_limit third = limit_change_at(&second, "100pps", "1000", START + 1100 * MS); /* 10 more */
	struct rl_limit fourth = limit_change_at(&third, "1pps", "1000", START + 3100 * MS);   /* 200 more */
	struct rl_source source = {0};
	__u64 passed;

	cr_assert_eq(flood(&source, &first, START, 2000), 1000);
	passed = flood(&source, &fourth, START + 8100 * MS, 2000); /* 5 more */
	cr_expect(passed == 315 || passed == 314, "%llu", passed);
}

Test(change, smaller_burst_holds_from_the_change_on)
{
	struct rl_limit large = limit_of("100pps", "1000");
	struct rl_limit small = limit_change_at(&large, "100pps", "50", START);
	struct rl_limit again = limit_change_at(&small, "100pps", "1000", START + 100 * MS);
	struct rl_source source = {0};
	__u64 passed;

	cr_assert_eq(flood(&source, &large, START, 900), 900);
	/* Owed 900, held to 50 by the smaller bucket, 10 paid back in 100 ms: 40 are owed of 1000. */
	passed = flood(&source, &again, START + 100 * MS, 2000);
	cr_expect(passed == 960 || passed == 959, "%llu", passed);
}

/* Tokens as 2^-40 of one, in whole numbers and rounded in the source's favour. Another arithmetic than the
 * bucket's. */
struct model {
	u128 level, burst;
	__u64 per_hour, last;
};
#define TOKEN ((u128)1 << 40)

static void model_refill(struct model *m, __u64 now)
{
	m->level += ((u128)m->per_hour * (now - m->last) * TOKEN + 3600 * SECOND - 1) / (3600 * SECOND);
	if (m->level > m->burst)
		m->level = m->burst;
	m->last = now;
}

/* What is owed stays owed, but for what a smaller bucket can't owe. */
static void model_change(struct model *m, const struct rl_terms *terms, __u64 now)
{
	u128 owed, burst = terms->burst_packets * TOKEN;

	model_refill(m, now);
	owed = m->burst - m->level;
	m->burst = burst;
	m->level = owed < burst ? burst - owed : 0;
	m->per_hour = terms->packets_per_hour;
}

/*
 * Random packets and changes. The bucket never admits what the model has no token for. It admits what the
 * model has one to spare for: it rounds each packet's cost up by at most 1/4096, and each change by a little.
 */
static __u64 check_random(__u64 state, int rounds, int changes_between, __u64 *offered)
{
	static const char *const rates[] = {"1kpps", "10pps", "333pps", "7/m", "50kpps"};
	static const char *const bursts[] = {"100", "1000", "17", "400"};
	struct rl_limit limit = limit_of(rates[0], bursts[0]);
	struct model m = {.level = 100 * TOKEN, .burst = 100 * TOKEN, .per_hour = 3600000, .last = START};
	struct rl_source source = {0};
	__u64 now = START, passed = 0;

	for (int i = 0; i < rounds; i++) {
		for (int n = (int)random_between(&state, 0, (__u64)changes_between); n > 0; n--) {
			now += random_magnitude(&state, 1, SECOND);
			limit = limit_change_at(&limit, rates[random_next(&state) % COUNT(rates)],
						bursts[random_next(&state) % COUNT(bursts)], now);
			model_change(&m, &limit.terms, now);
		}
		for (int n = 0; n < 400; n++) {
			u128 slack = m.burst / 2000 + TOKEN / 100;
			bool got;

			now += random_magnitude(&state, 1, 10 * MS) - 1;
			model_refill(&m, now);
			got = rl_bucket_admit(&source, &limit, 60, now) == RL_GCRA_ADMIT;
			(*offered)++;
			passed += got;
			if (got) {
				cr_assert(m.level >= TOKEN, "round %d: over-admitted, seed %llu", i, SEED);
				m.level -= TOKEN;
			} else {
				cr_assert(m.level < TOKEN + slack, "round %d: held back, seed %llu", i, SEED);
				/* Follow the bucket, so that roundings don't add up over the run. */
				if (m.level > TOKEN)
					m.level = TOKEN - 1;
			}
		}
	}
	return passed;
}

Test(change, random_against_a_model)
{
	__u64 passed = 0, offered = 0;

	cr_log_info("seed %llu", SEED);
	for (__u64 i = 0; i < 50; i++)
		passed += check_random(SEED + i, 50, (int)(i % (RL_PAST + 1)), &offered);
	cr_expect(passed > offered / 10 && passed < offered * 9 / 10, "%llu of %llu says little", passed,
		  offered);
}

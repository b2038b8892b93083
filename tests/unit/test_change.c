// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits that change: what is owed at the change is carried over, and shrinks at the new rate from then on,
 * whether a packet came by at that moment or not.
 */
#include <criterion/criterion.h>
#include <errno.h>
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

/* Shrinking and growing in turn must not be worth anything: what was taken stays owed. */
Test(change, burst_in_turn)
{
	struct rl_limit limit = limit_of("10pps 80kbit", "2000 2mb");
	struct rl_source source = {0};
	__u64 now = START, passed = flood(&source, &limit, now, 5000);

	for (int i = 0; i < 200; i++) {
		now += 50 * MS;
		limit = limit_change_at(&limit, "10pps 80kbit", i % 2 ? "2000 2mb" : "16 16kb", now);
		passed += flood(&source, &limit, now, 100);
	}
	cr_expect_leq(passed, 2000 + 100);
	cr_expect_geq(passed, 2000 + 99);
}

/* What a larger burst left is owed through any number of changes, also by a bucket that idles for most of that time. */
Test(change, inherited_debt_outlasts_the_generation)
{
	struct rl_limit large = limit_of("1pps", "1000"), small = limit_change(&large, "1pps", "16");
	struct rl_limit next = limit_change_at(&small, "1pps", "17", START + 600 * SECOND);
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &large, START, 2000), 1000);
	cr_expect_eq(flood(&source, &small, START, 10), 0);
	cr_expect_eq(flood(&source, &next, START + 600 * SECOND, 100), 0, "400 are owed still");
	cr_expect_eq(flood(&source, &next, START + 982 * SECOND, 100), 0);
	cr_expect_eq(flood(&source, &next, START + 1000 * SECOND, 100), 17);
}

/* A change after which a bucket couldn't remember what it owes is refused, and says how to get there. */
Test(change, debt_beyond_memory_is_refused)
{
	struct rl_limit fast = limit_of("1mpps", "1m"), slow;
	struct rl_terms terms = terms_of("1/h", "16");
	struct rl_prefix any = {0};
	struct rl_error err = {0};

	slow = fast;
	cr_expect_eq(rl_limit_compute(&any, &terms, &fast, 0, 0, START, &slow, &err), -ERANGE);
	cr_expect_not_null(strstr(err.text, "del-limit"), "%s", err.text);
	cr_expect(!memcmp(&slow, &fast, sizeof(slow)), "and leaves the output alone");
	/* The same by way of a smaller burst: what the larger one left is not forgotten, until it is paid back. */
	slow = limit_change(&fast, "1mpps", "16");
	cr_expect_eq(rl_limit_compute(&any, &terms, &slow, 0, 0, START + 1, &slow, &err), -ERANGE);
	cr_expect_eq(rl_limit_compute(&any, &terms, &slow, 0, 0, START + SECOND, &slow, &err), 0, "%s",
		     err.text);
}

/* Tokens as 2^-40 of one, in whole numbers and rounded in the source's favour. Another arithmetic than the
 * bucket's. */
struct model {
	__int128 level, burst; /* the level is negative where more is owed than the burst holds */
	__u64 per_hour, last;
};
#define TOKEN ((__int128)1 << 40)

static void model_refill(struct model *m, __u64 now)
{
	m->level += ((__int128)m->per_hour * (now - m->last) * TOKEN + 3600 * SECOND - 1) / (3600 * SECOND);
	if (m->level > m->burst)
		m->level = m->burst;
	m->last = now;
}

/* What is owed stays owed. */
static void model_change(struct model *m, const struct rl_terms *terms, __u64 now)
{
	__int128 owed;

	model_refill(m, now);
	owed = m->burst - m->level;
	m->burst = (__int128)terms->burst_packets * TOKEN;
	m->level = m->burst - owed;
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
			__int128 slack = 1000 * TOKEN / 2000 + TOKEN / 100;
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

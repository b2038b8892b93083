// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Limits that change: what is owed at the change is carried over, and shrinks at the new rate from then on,
 * whether a packet came by at that moment or not.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>

#include "buckets.h"

/* 1000/s just emptied, then 10/s with a burst of 1000: it owes 1000 tokens, not the 10 that a second of debt
 * would be. */
Test(change, change_converts_the_debt)
{
	struct rl_limit fast = limit_of("1kpps", "1000"), slow = limit_change(&fast, "10pps", "1000");
	struct rl_source source = {0};
	__u64 now = START;

	cr_assert_eq(flood(&source, &fast, 60, now, 1100), 1000);
	cr_expect_neq(offer(&source, &slow, 60, now), RL_GCRA_ADMIT, "it owes the whole burst");
	cr_expect_neq(offer(&source, &slow, 60, now + 99 * MS), RL_GCRA_ADMIT,
		      "the first packet settled the debt");
	cr_expect_eq(offer(&source, &slow, 60, now + 101 * MS), RL_GCRA_ADMIT);
	cr_expect_leq(stream(&source, &slow, 60, now + 101 * MS, now + 50 * SECOND, MS), 500);
	cr_expect_eq(generation(&source), 2);
}

/* A packet that one unit drops settles the other unit's debt too, whichever of them it is. */
Test(change, change_settles_both_units)
{
	struct rl_limit fast = limit_of("100pps 80mbit", "100 1mb"),
			slow = limit_change(&fast, "100pps 80kbit", "100 1mb");
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &fast, 5000, START, 200), 100);
	cr_expect_neq(offer(&source, &slow, 5000, START), RL_GCRA_ADMIT, "no packets left, but bytes");
	cr_expect_eq(generation(&source), 2);
	cr_expect_eq(flood(&source, &slow, 9000, START + SECOND, 200), 56,
		     "510 kB: half the burst, and a second's 10 kB");

	fast = limit_of("10kpps 800kbit", "100 100kb");
	slow = limit_change(&fast, "1pps 800kbit", "100 100kb");
	source = (struct rl_source){0};
	cr_assert_eq(flood(&source, &fast, 2000, START, 200), 50);
	cr_expect_neq(offer(&source, &slow, 2000, START), RL_GCRA_ADMIT, "no bytes left, but packets");
	cr_expect_eq(generation(&source), 2);
	cr_expect_eq(flood(&source, &slow, 1000, START + SECOND, 200), 51, "50 left, and a second's one");
	cr_expect_leq(flood(&source, &slow, 60, START + SECOND, 200), 1);
}

/* The other way round: 10 tokens short at 10/s is 10 tokens short at 1000/s. */
Test(change, change_to_faster)
{
	struct rl_limit slow = limit_of("10pps", "1000"), fast = limit_change(&slow, "1kpps", "1000");
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &slow, 60, START, 10), 10);
	cr_expect_eq(flood(&source, &fast, 60, START, 1100), 990, "all but ten");
}

/* The same in both units and over shifts that differ widely. */
Test(change, change_over_shifts)
{
	static const char *const rates[] = {"1/m", "100pps", "333333pps", "5mpps", "148.8mpps"};
	static const char *const bits[] = {"10kbit", "15mbit", "600mbit", "40gbit", "800gbit"};

	for (size_t i = 0; i < COUNT(rates); i++) {
		for (size_t j = 0; j < COUNT(rates); j++) {
			struct rl_limit was = limit_of(rates[i], "400"),
					is = limit_change(&was, rates[j], "400");
			struct rl_source source = {0};
			__u64 left;

			if (i == j)
				continue;
			cr_assert_eq(flood(&source, &was, 60, START, 150), 150);
			left = flood(&source, &is, 60, START, 500);
			cr_expect(left == 249 || left == 250, "%s to %s: %llu", rates[i], rates[j], left);

			was = limit_of(bits[i], "400kb");
			is = limit_change(&was, bits[j], "400kb");
			source = (struct rl_source){0};
			cr_assert_eq(flood(&source, &was, 1000, START, 150), 150);
			left = flood(&source, &is, 1000, START, 500);
			cr_expect(left == 249 || left == 250, "%s to %s: %llu", bits[i], bits[j], left);
		}
	}
}

/* rl_gcra_convert against 128 bits: never less than the exact debt, hardly more; beyond what is accepted it saturates. */
Test(change, convert_property)
{
	__u64 state = SEED;

	cr_log_info("seed %llu", SEED);
	for (int i = 0; i < 1000000; i++) {
		__u64 mult = random_magnitude(&state, 1 << 10, (1ULL << 54) - 1);
		__u64 old_mult = random_magnitude(&state, 1 << 10, (1ULL << 54) - 1);
		__u64 debt = random_magnitude(&state, 1, (1ULL << 63) - 1);
		u128 exact = ((u128)debt * mult + old_mult - 1) / old_mult;
		__u64 got = rl_gcra_convert(debt, old_mult, mult);
		u128 most = exact + mult / (1 << 22) + 2 + 256;

		cr_assert_eq(got & RL_GCRA_TAG, 0);
		if (got == RL_GCRA_BURST_MAX) {
			cr_assert(exact + mult >= RL_GCRA_BURST_MAX, "seed %llu round %d", SEED, i);
			continue;
		}
		cr_assert(got >= exact, "seed %llu round %d", SEED, i);
		cr_assert(got <= most, "seed %llu round %d: %llu", SEED, i, got);
	}
}

Test(change, burst_shrinks)
{
	struct rl_limit large = limit_of("100pps", "1000"), small = limit_change(&large, "100pps", "50");
	struct rl_limit huge = limit_change_at(&small, "100pps", "5000", START + 10 * SECOND);
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &large, 60, START, 30), 30);
	cr_expect_leq(flood(&source, &small, 60, START, 100), 20);
	source = (struct rl_source){0};
	cr_assert_eq(flood(&source, &large, 60, START, 900), 900);
	cr_expect_eq(flood(&source, &small, 60, START, 100), 0, "owes more than the new burst holds");
	cr_expect_eq(flood(&source, &small, 60, START + 8 * SECOND, 100), 0, "and is forgiven nothing");
	cr_expect_eq(flood(&source, &small, 60, START + 9 * SECOND, 100), 50, "but by time");
	cr_expect_eq(flood(&source, &huge, 60, START + 10 * SECOND, 6000), 5000);
}

/* A loop of changes under load: nothing that passes exceeds the burst and the fastest rate. */
Test(change, changes_under_load)
{
	struct rl_limit limit = limit_of("1kpps 8mbit", "100 100kb");
	struct rl_source source = {0};
	__u64 state = SEED, now = START, passed = 0;

	for (int i = 0; i < 2000; i++) {
		static const char *const rates[] = {"1kpps 8mbit", "10pps 80kbit", "500pps 4mbit",
						    "7/m 800kbit"};

		limit = limit_change_at(&limit, rates[i % COUNT(rates)], "100 100kb", now);
		for (int j = 0; j < 100; j++) {
			now += random_between(&state, 0, 200000);
			passed += offer(&source, &limit, 1000, now) == RL_GCRA_ADMIT;
		}
	}
	cr_expect_leq(passed, 100 + (now - START) / MS, "%llu in %llu ms", passed, (now - START) / MS);
	/* A fourth of the time at each rate, and each change rounds up by less than one packet. */
	cr_expect_geq(passed, (now - START) / MS / 4, "%llu in %llu ms", passed, (now - START) / MS);
}

static struct rl_limit change_times(struct rl_limit limit, int changes)
{
	for (int i = 0; i < changes; i++)
		limit = limit_change(&limit, "100pps 800kbit", i % 2 ? "200 200kb" : "201 201kb");
	return limit;
}

/*
 * A bucket that slept through changes. Up to RL_PAST of them it is converted; through more it was empty at the last,
 * never full, though its tag may have come round, and has filled since like any other.
 */
Test(change, missed_changes)
{
	static const int changes[] = {1,   3,	4,   5,	  6,   63,  64,	 65,  100, 119, 120, 126, 127,
				      128, 129, 246, 247, 253, 254, 255, 256, 257, 300, 510, 765};

	for (size_t i = 0; i < COUNT(changes); i++) {
		struct rl_limit first = limit_of("100pps 800kbit", "200 200kb");
		struct rl_limit last = change_times(first, changes[i]);
		struct rl_source source = {0};
		__u64 now = START, passed;

		cr_assert_eq(last.gen, 1U + (__u32)changes[i]);
		cr_assert_eq(flood(&source, &first, 1000, now, 50), 50);
		passed = flood(&source, &last, 1000, now, 300);
		if (changes[i] <= RL_PAST)
			cr_expect(passed >= 149 && passed <= 151, "%d changes: %llu", changes[i], passed);
		else
			cr_expect_eq(passed, 0, "%d changes: %llu", changes[i], passed);
		passed = flood(&source, &last, 1000, now + 1100 * MS, 300);
		cr_expect(passed >= 109 && passed <= 111, "%d changes, then 1.1 s: %llu", changes[i], passed);
		cr_expect_eq(flood(&source, &last, 1000, now + 4 * SECOND, 300), last.terms.burst_packets,
			     "%d changes, then full", changes[i]);
		cr_expect_eq(generation(&source), last.gen, "%d changes", changes[i]);
	}
}

/* What it can have owed is paid back by time like any debt: whoever comes by after that finds a full bucket. */
Test(change, missed_changes_and_idle)
{
	for (int changes = RL_PAST; changes <= 3 * RL_PAST; changes++) {
		struct rl_limit first = limit_of("100pps 800kbit", "200 200kb");
		struct rl_limit last = change_times(first, changes);
		struct rl_source source = {0};
		__u64 passed;

		cr_assert_eq(flood(&source, &first, 1000, START, 200), 200);
		passed =
		    flood(&source, &last, 1000, START + SECOND, 300); /* it can have owed the larger burst */
		cr_expect(passed == 99 || passed == 100, "%d changes, a second later: %llu", changes, passed);
		source = (struct rl_source){0};
		cr_assert_eq(flood(&source, &first, 1000, START, 200), 200);
		cr_expect_eq(flood(&source, &last, 1000, START + 4 * SECOND, 300), last.terms.burst_packets,
			     "%d changes, and full", changes);
	}
}

/* Another CPU's policy may be one change ahead of ours: what it wrote is not taken for an old word. */
Test(change, newer_word)
{
	struct rl_limit first = limit_of("100pps", "200"), second = limit_change(&first, "1pps", "200");
	struct rl_limit later = change_times(first, RL_GCRA_AHEAD);
	struct rl_source source = {0}, before;

	cr_assert_eq(flood(&source, &second, 60, START, 50), 50);
	before = source;
	cr_expect_eq(offer(&source, &first, 60, START), RL_GCRA_NEWER);
	cr_expect(!memcmp(&source, &before, sizeof(source)));
	cr_expect_eq(flood(&source, &second, 60, START, 300), 150, "and it goes on with the newer policy");

	source = (struct rl_source){0};
	flood(&source, &later, 60, START, 1);
	cr_expect_eq(offer(&source, &first, 60, START), RL_GCRA_NEWER);
}

/* Between a new bucket's first store and the store of its generation, another CPU must not take it for an old
 * one. */
Test(change, new_bucket_under_a_late_generation)
{
	struct rl_limit limit = change_times(limit_of("100pps", "200"), 140);
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &limit, 60, START, 1), 1);
	source.buckets.version = 0;
	cr_expect_eq(flood(&source, &limit, 60, START, 300), 199);
	cr_expect_eq(generation(&source), 141);
}

Test(change, unit_switched_off_and_on)
{
	struct rl_limit both = limit_of("1kpps 800kbit", "1000 100kb"),
			off = limit_change(&both, "1kpps", "1000");
	struct rl_limit on = limit_change(&off, "1kpps 800kbit", "1000 100kb");
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &both, 1000, START, 200), 100);
	cr_assert_eq(flood(&source, &off, 1000, START, 500), 500, "bytes are free meanwhile");
	cr_expect_eq(flood(&source, &on, 1000, START, 200), 0, "and owed as before");
	cr_expect_leq(flood(&source, &on, 1000, START + 100 * MS, 200), 10);

	/* Off for longer than is remembered: empty. */
	source = (struct rl_source){0};
	cr_assert_eq(flood(&source, &both, 1000, START, 50), 50);
	for (int i = 0; i < RL_PAST; i++)
		off = limit_change(&off, i % 2 ? "1kpps" : "999pps", "1000");
	on = limit_change(&off, "1kpps 800kbit", "1000 100kb");
	cr_expect_eq(flood(&source, &on, 1000, START, 200), 0);
	cr_expect_eq(flood(&source, &on, 1000, START + 2 * SECOND, 200), 100);
}

Test(change, old_rate_ends_at_the_change)
{
	struct rl_limit fast = limit_of("1kpps 8mbit", "1000 1mb");
	struct rl_limit slow = limit_change(&fast, "10pps 80kbit", "1000 1mb");
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &fast, 1000, START, 2000), 1000);
	/* Nobody came by at the change; a second at 10 pps refills 10, where the old rate would have refilled
	 * all. */
	cr_expect_eq(flood(&source, &slow, 1000, START + SECOND, 2000), 10);
	cr_expect_eq(flood(&source, &slow, 1000, START + 11 * SECOND, 2000), 100);
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

	cr_assert_eq(flood(&source, &first, 1000, START, 2000), 1000);
	passed = flood(&source, &fourth, 1000, START + 8100 * MS, 2000); /* 5 more */
	cr_expect(passed == 315 || passed == 314, "%llu", passed);
}

/* Shrinking and growing in turn must not be worth anything: what was taken stays owed. */
Test(change, burst_in_turn)
{
	struct rl_limit limit = limit_of("10pps 80kbit", "2000 2mb");
	struct rl_source source = {0};
	__u64 now = START, passed = flood(&source, &limit, 1000, now, 5000);

	for (int i = 0; i < 200; i++) {
		now += 50 * MS;
		limit = limit_change_at(&limit, "10pps 80kbit", i % 2 ? "2000 2mb" : "16 16kb", now);
		passed += flood(&source, &limit, 1000, now, 100);
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

	cr_assert_eq(flood(&source, &large, 1000, START, 2000), 1000);
	cr_expect_eq(flood(&source, &small, 1000, START, 10), 0);
	cr_expect_eq(flood(&source, &next, 1000, START + 600 * SECOND, 100), 0, "400 are owed still");
	cr_expect_eq(flood(&source, &next, 1000, START + 982 * SECOND, 100), 0);
	cr_expect_eq(flood(&source, &next, 1000, START + 1000 * SECOND, 100), 17);
}

/* A bucket that missed too many changes starts empty, and not above what it owed: not through bursts in turn ... */
Test(change, forgotten_debt_is_not_forgiven)
{
	struct rl_limit limit = limit_of("10pps", "5000");
	struct rl_source source = {0};
	__u64 passed = 0;

	for (int round = 0; round < 6; round++) {
		passed += flood(&source, &limit, 1000, START, 6000);
		for (int i = 0; i <= RL_PAST; i++)
			limit = limit_change(&limit, "10pps", i % 2 ? "17" : "16");
		passed += flood(&source, &limit, 1000, START, 20);
		limit = limit_change(&limit, "10pps", "5000");
	}
	cr_expect_eq(passed, 5000);
	cr_expect_eq(flood(&source, &limit, 1000, START + 500 * SECOND, 6000), 5000,
		     "and is paid back by time");
}

/* ... and not through leaving the unit out for as long. */
Test(change, forgotten_debt_of_a_unit_left_out)
{
	struct rl_limit limit = limit_of("80kbit", "1mb");
	struct rl_source source = {0};
	__u64 passed = 0;

	for (int round = 0; round < 6; round++) {
		passed += flood(&source, &limit, 1000, START, 2000);
		for (int i = 0; i <= RL_PAST; i++)
			limit = limit_change(&limit, i % 2 ? "1pps" : "2pps", "1");
		limit = limit_change(&limit, "80kbit", "16kb");
		passed += flood(&source, &limit, 1000, START, 20);
		limit = limit_change(&limit, "80kbit", "1mb");
	}
	cr_expect_eq(passed, 1000);
}

/* A CPU that was held up with a policy of long ago leaves newer buckets alone. */
Test(change, far_behind)
{
	struct rl_limit old = limit_of("1kpps", "1000"), newer = change_times(old, 3 * RL_GCRA_AHEAD);
	struct rl_source source = {0}, before;

	flood(&source, &newer, 60, START, 100);
	before = source;
	cr_expect_eq(offer(&source, &old, 60, START), RL_GCRA_NEWER);
	cr_expect(!memcmp(&source, &before, sizeof(source)));
}

/* The roundings of two rates must not be worth a packet. */
Test(change, large_bursts_at_uneven_rates)
{
	static const char *const rates[] = {"244081pps", "999983pps", "1mpps", "7pps", "148.8mpps"};

	for (size_t i = 0; i < COUNT(rates); i++) {
		struct rl_limit even = limit_of("1kpps", "1m"), uneven = limit_change(&even, rates[i], "1m");
		struct rl_source source = {0};

		cr_assert_eq(flood(&source, &even, 60, START, 1000001), 1000000);
		cr_expect_eq(flood(&source, &uneven, 60, START, 10), 0, "%s", rates[i]);
	}
}

/* A clock that was ahead when the limit was changed (another time namespace) forgives nothing. */
Test(change, said_to_be_to_come)
{
	struct rl_limit limit = limit_of("10pps", "1000");
	struct rl_limit next = limit_change_at(&limit, "11pps", "1000", START + 1000000 * SECOND);
	struct rl_source source = {0};

	cr_assert_eq(flood(&source, &limit, 60, START, 2000), 1000);
	cr_expect_eq(flood(&source, &next, 60, START, 2000), 0);
	cr_expect_leq(flood(&source, &next, 60, START + 10 * SECOND, 2000), 110);
}

/* A change after which a bucket couldn't remember what it owes is refused, and says how to get there. */
Test(change, debt_beyond_memory_is_refused)
{
	struct rl_limit fast = limit_of("1mpps", "1m"), slow;
	struct rl_terms terms = terms_of("1/h", "16");
	struct rl_target any = target_of("any");
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
			got = admit(&source, &limit, 60, now) == RL_GCRA_ADMIT;
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

/* A tenant that loses its terms owes nothing more, whatever it was; a bucket that nobody filled starts empty. */
Test(change, forgiven)
{
	static const struct rl_terms none = RL_TERMS_INIT;
	struct rl_limit fast = limit_of("1mpps 1gbit", "250k 1mb"),
			idle = limit_under("any", &none, &fast, START), slow;
	struct rl_source source = {0}, filled = {0};

	cr_assert_eq(flood(&source, &fast, 60, START, 10), 10);
	cr_assert_eq(flood(&filled, &fast, 60, START, 10), 10);
	rl_limit_forgive(&idle, &fast);
	cr_expect_eq(idle.gen, fast.gen + 1);
	cr_expect_eq(idle.rate[RL_PACKETS].owed + idle.rate[RL_BYTES].owed, 0);
	filled.buckets.word[RL_PACKETS] = filled.buckets.word[RL_BYTES] = 0;
	slow = limit_change(&idle, "1/h", "20");
	cr_expect_eq(slow.rate[RL_PACKETS].owed, slow.rate[RL_PACKETS].burst);
	cr_expect_eq(flood(&filled, &slow, 60, START + SECOND, 50), 20);
	cr_expect_eq(flood(&source, &slow, 60, START + SECOND, 50), 0, "killed before it was filled");
	/* The same where only a priority goes: no word of before may be converted. */
	idle = limit_under("any", &none, &slow, START);
	rl_limit_forgive(&idle, &idle);
	cr_expect_eq(idle.gen, slow.gen + 2);
	cr_expect_eq(idle.past[0].mult[RL_PACKETS], 0);
}

/* set-limit says for how long a source can be shut out. */
Test(change, overdrawn_is_as_long_as_a_flood_shuts_out)
{
	struct rl_limit wide = limit_of("1kpps", "20k"), narrow = limit_change(&wide, "2kpps", "500");
	struct rl_source source = {0};
	__u64 longest = rl_limit_overdrawn(&narrow);

	cr_expect_eq(rl_limit_overdrawn(&wide), 0);
	cr_assert_eq(flood(&source, &wide, 60, START, 21000), 20000);
	cr_expect_leq(longest, 9751 * MS);
	cr_expect_geq(longest, 9749 * MS, "19500 at 2000/s");
	cr_expect_neq(offer(&source, &narrow, 60, START + longest - MS), RL_GCRA_ADMIT);
	cr_expect_eq(offer(&source, &narrow, 60, START + longest + MS), RL_GCRA_ADMIT);

	narrow = limit_change(&wide, "2kpps", "20k");
	cr_expect_eq(rl_limit_overdrawn(&narrow), 0);
	narrow = limit_change(&wide, "10mbit", "64kib");
	cr_expect_eq(rl_limit_overdrawn(&narrow), 0, "no packets are limited any more");
}

/* Whatever byte differs, of one that remembers something and of one that doesn't. */
Test(change, limits_that_are_the_same)
{
	const struct rl_limit fresh = limit_of("1kpps 10mbit", "1000 1mb"),
			      changed = limit_change(&fresh, "2kpps 10mbit", "1000 1mb");
	size_t past = offsetof(struct rl_limit, past), target = offsetof(struct rl_limit, target),
	       cost = offsetof(struct rl_limit, terms.cost);

	cr_expect(rl_limit_same(&fresh, &fresh) && rl_limit_same(&changed, &changed));
	cr_expect_not(rl_limit_same(&fresh, &changed));
	for (size_t i = 0; i < sizeof(fresh); i++) {
		struct rl_limit other = fresh, another = changed;

		((unsigned char *)&other)[i] ^= 1;
		((unsigned char *)&another)[i] ^= 1;
		cr_expect_not(rl_limit_same(&changed, &another), "byte %zu", i);
		if (i < past || (i >= target && i < cost))
			cr_expect_not(rl_limit_same(&fresh, &other), "byte %zu", i);
	}
}

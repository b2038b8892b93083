// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rates.c - how much passes over time: the bound burst + rate * t from above, 99.9 % of it from below; over
 * the whole range of rates, across window edges, clocks that go backwards, and changes of the limit.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fixture.h"

typedef unsigned __int128 u128;

static const char *const targets[] = {"203.0.113.0/24", "203.0.113.7", "2001:db8::/32",
				      "2001:db8::7",	"any",	       "any"};
static const char *const sources[] = {"203.0.113.7", "203.0.113.7", "2001:db8::7",
				      "2001:db8::7", "203.0.113.7", "2001:db8::7"};
#define PAIRS ((int)(sizeof(targets) / sizeof(targets[0])))

/* The reference example: capacity 200, rate 100/s. */
Test(rates, reference_example)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < PAIRS; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "100pps", "200", NULL);
		struct rl_frame_spec spec = {.src = sources[i]};

		fx.what = targets[i];
		for (int n = 0; n < 200; n++)
			fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		for (int n = 0; n < 50; n++) {
			fixture_advance(&fx, 10 * MS - 1);
			fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
			fixture_advance(&fx, 1);
			fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
			fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		}
		fixture_advance(&fx, 2 * SEC - 1);
		cr_assert_eq(fixture_flood(&fx, &spec, 300), 199);
		fixture_advance(&fx, 2 * SEC + 1);
		cr_assert_eq(fixture_flood(&fx, &spec, 300), 200);
		fixture_advance(&fx, 3600 * SEC);
		cr_assert_eq(fixture_flood(&fx, &spec, 300), 200, "%s: more than its burst after an hour",
			     sources[i]);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

struct load {
	const char *rate;
	const char *burst;
	__u64 per_hour; /* packets an hour, or 0 */
	__u64 bits;	/* bits a second, or 0 */
	__u64 tokens;	/* of burst: packets or bytes */
	size_t len;	/* of the frames */
	__u64 step;	/* ns between floods */
	__u32 each;	/* frames in a flood: more than a step earns */
	__u32 steps;
};

#define HOUR 3600ULL
static const struct load packet_loads[] = {
    {"1/h", "1", 1, 0, 1, 60, 36 * SEC, 1, 150000},
    {"1/h", "16", 1, 0, 16, 60, 36 * SEC, 1, 150000},
    {"7/h", "3", 7, 0, 3, 60, 4 * SEC + 7, 1, 200000},
    {"7/m", "16", 7 * 60, 0, 16, 60, 86 * MS, 1, 200000},
    {"1pps", "16", HOUR, 0, 16, 60, 10 * MS, 1, 200000},
    {"3pps", "16", 3 * HOUR, 0, 16, 60, 3 * MS + 1, 1, 200000},
    {"999pps", "100", 999 * HOUR, 0, 100, 60, 100 * US, 2, 100000},
    {"123457pps", "1000", 123457 * HOUR, 0, 1000, 60, US, 1, 500000},
    {"244kpps", "1000", 244000 * HOUR, 0, 1000, 60, US, 1, 500000},
    {"245kpps", "1000", 245000 * HOUR, 0, 1000, 60, US, 1, 500000},
    {"14.880952mpps", "1000", 14880952 * HOUR, 0, 1000, 60, 10 * US, 200, 5000},
    {"148.8mpps", "2000", 148800000 * HOUR, 0, 2000, 60, 10 * US, 1600, 1000},
};
static const struct load byte_loads[] = {
    {"1kbit", "16kib", 0, 1000, 16384, 62, 100 * MS, 1, 200000},
    {"1kbit", "3kb", 0, 1000, 3000, 1514, SEC, 1, 200000},
    {"33.333kbit", "16kib", 0, 33333, 16384, 61, 10 * MS, 2, 100000},
    {"10mbit", "125kb", 0, 10000000, 125000, 1514, 500 * US, 1, 200000},
    {"29mbit", "64kib", 0, 29000000, 65536, 62, 10 * US, 2, 200000},
    {"1.234567gbit", "256kib", 0, 1234567000, 262144, 999, 10 * US, 3, 200000},
    {"100gbit", "1mb", 0, 100000000000, 1000000, 62, 10 * US, 2100, 500},
    {"800gbit", "1mb", 0, 800000000000, 1000000, 62, US, 1700, 600},
    {"800gbit", "1mb", 0, 800000000000, 1000000, 1514, US, 80, 10000},
    {"800gbit", "1mb", 0, 800000000000, 1000000, 9000, US, 16, 20000},
};
#define LOADS(table) (sizeof(table) / sizeof((table)[0]))

/* Tokens that burst + rate * t comes to, rounded down. */
static __u64 allowance(const struct load *load, u128 ns)
{
	u128 earned =
	    load->bits ? ns * load->bits / (8 * (u128)SEC) : ns * load->per_hour / (HOUR * (u128)SEC);

	return load->tokens + (__u64)earned;
}

/*
 * Offer more than the rate for a time and hold what passed against the allowance: never a packet above it,
 * and at least 99.9 % of it, short of one packet that was not whole yet.
 */
static void hold_to(const struct load *load, const char *target, const char *source)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit = fixture_limit(&fx, target, load->rate, load->burst, NULL);
	struct rl_frame_spec spec = {.src = source, .len = load->len};
	static uint8_t frame[RL_FRAME_MAX];
	size_t len = rl_frame_build(&spec, frame, sizeof(frame));
	__u64 offered = (__u64)load->each * load->steps, allowed, token = load->bits ? len : 1, burst, passed;
	struct rl_device_count device;
	struct rl_limit_count count;

	fx.what = load->rate;
	burst = load->tokens / token;
	passed = fixture_flood_bytes(&fx, frame, len, (__u32)burst + 1);
	/* Each frame's bytes are rounded up once, by less than a 4096th of the smallest frame's. */
	cr_assert(passed <= burst && passed >= burst - (load->bits ? burst / 1000 + 1 : 0),
		  "%s: %llu of %llu at once", load->rate, passed, burst);
	offered += burst + 1;
	fixture_offer(&fx, frame, len, load->step, load->each, load->steps);

	device = fixture_device(&fx);
	count = fixture_limit_count(&fx, &limit);
	allowed = allowance(load, (u128)load->step * load->steps);
	cr_assert_leq(count.passed.packets * token, allowed, "%s to %s: %llu passed, allowed %llu",
		      load->rate, source, count.passed.packets, allowed / token);
	cr_assert_geq((count.passed.packets + 1) * token, allowed - allowed / 1000,
		      "%s to %s: %llu passed of %llu", load->rate, source, count.passed.packets,
		      allowed / token);
	cr_assert_eq(count.passed.packets + count.dropped.packets, offered);
	cr_assert_eq(count.passed.bytes, count.passed.packets * len);
	cr_assert_eq(count.dropped.bytes, count.dropped.packets * len);
	cr_assert_eq(device.by_reason[RL_PASS_LIMIT].packets, count.passed.packets);
	cr_assert_eq(device.by_reason[RL_DROP_SOURCE].packets, count.dropped.packets);
	fixture_expect_source(&fx, &limit, source, count.passed.packets, count.dropped.packets, len);
	fixture_close(&fx);
}

Test(rates, packets_v4)
{
	for (size_t i = 0; i < LOADS(packet_loads); i++)
		hold_to(&packet_loads[i], targets[i % 2], sources[i % 2]);
}

Test(rates, packets_v6)
{
	for (size_t i = 0; i < LOADS(packet_loads); i++) {
		struct load load = packet_loads[i];

		load.len = 62; /* the shortest that holds UDP over IPv6 */
		hold_to(&load, targets[2 + i % 2], sources[2 + i % 2]);
	}
}

Test(rates, bytes_v4)
{
	for (size_t i = 0; i < LOADS(byte_loads); i++)
		hold_to(&byte_loads[i], targets[i % 2], sources[i % 2]);
}

Test(rates, bytes_v6)
{
	for (size_t i = 0; i < LOADS(byte_loads); i++) {
		struct load load = byte_loads[i];

		load.len = load.len < 62 ? 62 : load.len;
		hold_to(&load, targets[2 + i % 2], sources[2 + i % 2]);
	}
}

/*
 * No window of any length holds more than burst + rate * t: floods around edges of a second, pauses of odd
 * lengths. For a window from packet i to packet j, j - i + 1 <= burst + rate * (t_j - t_i); with rate in
 * packets a millisecond, value k = packets before k, minus time, may never rise above its lowest by more than
 * the burst.
 */
static void every_window(const char *target, const char *source)
{
	struct fixture fx = fixture_open();
	struct rl_limit limit = fixture_limit(&fx, target, "1kpps", "1000", NULL);
	struct rl_frame_spec spec = {.src = source};
	static const __u64 pauses[] = {SEC - 1, 2,	  SEC / 2, SEC / 2, 999 * MS, MS,
				       MS,	SEC - MS, 3 * SEC, 1,	    7,	      333333333};
	__s64 lowest = 0, taken = 0;

	fx.what = source;
	fixture_clock(&fx, FIXTURE_CLOCK - 1);
	for (int i = 0; i < 120; i++) {
		/* In millionths of a packet; taken: admitted so far, less what the rate has earned. */
		__s64 before = taken - (__s64)(fx.now - FIXTURE_CLOCK + 1);

		lowest = before < lowest ? before : lowest;
		taken += (__s64)(fixture_flood(&fx, &spec, 1500) * MS);
		cr_assert_leq(taken - (__s64)(fx.now - FIXTURE_CLOCK + 1) - lowest, 1000 * (__s64)MS,
			      "%s: a window with more than burst + rate * t", source);
		fixture_advance(&fx, pauses[i % 12]);
	}
	cr_assert_eq(fixture_limit_count(&fx, &limit).passed.packets, (__u64)taken / MS);
	fixture_close(&fx);
}

Test(rates, no_double_burst_at_a_window_edge)
{
	for (int i = 0; i < PAIRS; i++)
		every_window(targets[i], sources[i]);
}

/* Another CPU's clock may be behind the one that charged last: a negative difference is no refill. */
Test(rates, clock_goes_backwards)
{
	static const __u64 back[] = {1, 100, US, MS, SEC / 2, SEC};

	for (int i = 0; i < PAIRS; i++) {
		struct fixture fx = fixture_open();
		struct rl_limit limit = fixture_limit(&fx, targets[i], "10pps", "20", NULL);
		struct rl_frame_spec spec = {.src = sources[i]};
		__u64 start = fx.now;

		fx.what = targets[i];
		cr_assert_eq(fixture_flood(&fx, &spec, 30), 20);
		for (int n = 0; n < 6; n++) {
			fixture_clock(&fx, start - back[n]);
			cr_assert_eq(fixture_flood(&fx, &spec, 100), 0, "%s: refilled by %llu ns backwards",
				     targets[i], back[n]);
			fixture_clock(&fx, start);
			cr_assert_eq(fixture_flood(&fx, &spec, 100), 0);
		}
		/* Nothing was lost either. */
		fixture_clock(&fx, start + 100 * MS - 1);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_clock(&fx, start + 100 * MS);
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		/* A bucket in debt, part of it earned back, seen by two clocks in turn. */
		for (int n = 0; n < 1000; n++) {
			fixture_clock(&fx, start + 100 * MS + (__u64)n * MS);
			fixture_flood(&fx, &spec, 2);
			fixture_clock(&fx, start + 100 * MS + (__u64)n * MS - 900 * US);
			fixture_flood(&fx, &spec, 2);
		}
		cr_assert_eq(fixture_limit_count(&fx, &limit).passed.packets, 20 + 1 + 9);
		fixture_close(&fx);
	}
}

/* Idle for longer than half the wrap: at most one burst afterwards, as ever. */
Test(rates, idle_beyond_the_wrap)
{
	for (int i = 0; i < PAIRS; i++) {
		struct fixture fx = fixture_open();
		struct rl_frame_spec spec = {.src = sources[i]};

		fixture_limit(&fx, targets[i], "148.8mpps", "2000", NULL);
		cr_assert_eq(fixture_flood(&fx, &spec, 3000), 2000);
		for (__u64 hours = 1; hours < 40; hours++) {
			fixture_advance(&fx, hours * 1234567 * MS);
			cr_assert_leq(fixture_flood(&fx, &spec, 3000), 2000);
			fixture_advance(&fx, 100 * US);
			cr_assert_eq(fixture_flood(&fx, &spec, 3000), 2000, "%s: did not recover",
				     targets[i]);
		}
		fixture_close(&fx);
	}
}

/* 1000/s just emptied, then 10/s with the same burst: it owes 1000 tokens, not 10. And back. */
Test(rates, change_keeps_the_debt)
{
	for (int i = 0; i < PAIRS; i++) {
		struct fixture fx = fixture_open();
		struct rl_frame_spec spec = {.src = sources[i]};
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1kpps", "1000", NULL), changed;

		fx.what = targets[i];
		cr_assert_eq(fixture_flood(&fx, &spec, 1500), 1000);
		changed = fixture_limit(&fx, targets[i], "10pps", "1000", NULL);
		cr_assert_eq(changed.id, limit.id);
		cr_assert_eq(changed.slot, limit.slot);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 100 * MS - 1);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 100 * US); /* the conversion rounds up, by less */
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 50 * SEC);
		cr_assert_eq(fixture_flood(&fx, &spec, 1500), 500);

		fixture_limit(&fx, targets[i], "1kpps", "1000", NULL);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_advance(&fx, 500 * MS);
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		cr_assert_leq(fixture_flood(&fx, &spec, 1500), 500);
		fixture_close(&fx);
	}
}

/* The same for a source that is silent when the limit changes: its debt shrinks at the new rate from then on.
 */
Test(rates, change_keeps_the_debt_of_the_silent)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < PAIRS; i++) {
		struct rl_frame_spec spec = {.src = sources[i]};
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1kpps", "1000", NULL);

		fx.what = targets[i];
		cr_assert_eq(fixture_flood(&fx, &spec, 1500), 1000);
		fixture_advance(&fx, 500 * MS); /* owes 500 */
		fixture_limit(&fx, targets[i], "10pps", "1000", NULL);
		fixture_advance(&fx, 10 * SEC); /* owes 400 */
		fixture_limit(&fx, targets[i], "100pps", "1000", NULL);
		fixture_advance(&fx, SEC); /* owes 300 */
		fixture_limit(&fx, targets[i], "1/h", "1000", NULL);
		fixture_advance(&fx, 60 * SEC);
		cr_assert_eq(fixture_flood(&fx, &spec, 699), 699, "%s: lost tokens", targets[i]);
		fixture_advance(&fx, 100 * MS); /* makes up for rounding, which is upward */
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

Test(rates, change_keeps_the_debt_in_bytes)
{
	for (int i = 0; i < PAIRS; i++) {
		struct fixture fx = fixture_open();
		struct rl_frame_spec spec = {.src = sources[i], .len = 1000};

		fx.what = targets[i];
		fixture_limit(&fx, targets[i], "80mbit", "100kb", NULL);
		cr_assert_eq(fixture_flood(&fx, &spec, 150), 100);
		fixture_limit(&fx, targets[i], "80kbit", "100kb", NULL); /* ten frames a second */
		fixture_advance(&fx, 100 * MS - 1);
		cr_assert_eq(fixture_flood(&fx, &spec, 150), 0);
		fixture_advance(&fx, 100 * US);
		cr_assert_eq(fixture_flood(&fx, &spec, 150), 1);
		fixture_advance(&fx, 5 * SEC);
		cr_assert_eq(fixture_flood(&fx, &spec, 150), 50);
		fixture_close(&fx);
	}
}

/* Only what changes is a change: counters go on, and the same terms again do nothing at all. */
Test(rates, the_same_again_is_no_change)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < 4; i++) {
		struct rl_frame_spec spec = {.src = sources[i]};
		struct rl_limit limit = fixture_limit(&fx, targets[i], "10pps", "20", NULL), again;
		struct rl_source before, after;

		cr_assert_eq(fixture_flood(&fx, &spec, 30), 20);
		cr_assert(fixture_source(&fx, &limit, sources[i], &before));
		again = fixture_limit(&fx, targets[i], "600/m", "20", NULL);
		cr_assert_eq(again.gen, limit.gen);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		cr_assert(fixture_source(&fx, &limit, sources[i], &after));
		cr_assert_eq(after.buckets.word[RL_PACKETS], before.buckets.word[RL_PACKETS]);
		cr_assert_eq(fixture_limit_count(&fx, &limit).passed.packets, 20);
		cr_assert_eq(fixture_limit_count(&fx, &limit).dropped.packets, 11);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* A bucket that slept through more changes than are remembered was empty at the last of them, not full. */
Test(rates, forgotten_generations_start_empty)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < PAIRS; i++) {
		struct rl_frame_spec spec = {.src = sources[i]};

		for (int changes = 1; changes <= 600; changes += changes < 8 ? 1 : 37) {
			struct rl_limit limit = fixture_limit(&fx, targets[i], "10pps", "100", NULL);
			bool remembered = changes <= RL_PAST;

			cr_assert_eq(fixture_flood(&fx, &spec, 50), 50);
			for (int n = 0; n < changes; n++)
				fixture_limit(&fx, targets[i], n % 2 ? "10pps" : "20pps", "100", NULL);
			/* One token may go to rounding. */
			if (remembered)
				cr_assert_geq(fixture_flood(&fx, &spec, 200), 49);
			else
				cr_assert_eq(fixture_flood(&fx, &spec, 200), 0, "%s: %d changes", targets[i],
					     changes);
			cr_assert_leq(fixture_limit_count(&fx, &limit).passed.packets, 100);
			fixture_unlimit(&fx, targets[i]);
		}
	}
	fixture_close(&fx);
}

/* A source that seldom comes, under a limit that is adjusted again and again, owes nothing, and isn't shut out. */
Test(rates, who_seldom_comes_isnt_shut_out_by_changes)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < PAIRS; i++) {
		struct rl_frame_spec spec = {.src = sources[i]};

		for (int n = 0; n < 20; n++) {
			struct rl_limit limit;

			for (int change = 0; change <= RL_PAST; change++) {
				limit = fixture_limit(&fx, targets[i],
						      (n + change) % 2 ? "1001pps" : "1000pps", "1000", NULL);
				fixture_advance(&fx, 60 * SEC);
			}
			fx.what = targets[i];
			fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		}
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* A limit that never stops changing under load: the bound holds, with the rate of each moment, and so
 * does 99.9 %. */
static void loop_of_changes(const char *target, const char *source)
{
	static const char *const rates[] = {"10pps",  "1kpps",	 "100kpps", "7/s",
					    "333pps", "1.5mpps", "3600/h"};
	static const __u64 per_second[] = {10, 1000, 100000, 7, 333, 1500000, 1};
	struct fixture fx = fixture_open();
	struct rl_frame_spec spec = {.src = source};
	static uint8_t frame[RL_FRAME_MAX];
	size_t len = rl_frame_build(&spec, frame, sizeof(frame));
	u128 earned = 0; /* packets * 10^9 */
	__u64 passed, allowed;
	unsigned int seed = 7;
	struct rl_limit limit;

	fixture_limit(&fx, target, rates[0], "50", NULL);
	cr_assert_eq(fixture_flood(&fx, &spec, 60), 50);
	for (int change = 0; change < 1500; change++) {
		int pick = rand_r(&seed) % 7;

		/* A flood before each change and after it; a step earns less than the burst. */
		limit = fixture_limit(&fx, target, rates[pick], "50", NULL);
		for (int step = rand_r(&seed) % 4; step >= 0; step--) {
			__u64 ns = (__u64)rand_r(&seed) % (20 * SEC / per_second[pick]);

			cr_assert_geq(fixture_run(&fx, frame, len, 25), 0);
			fixture_advance(&fx, ns);
			earned += (u128)ns * per_second[pick];
			cr_assert_geq(fixture_run(&fx, frame, len, 25), 0);
			fixture_account(&fx, 50, 50 * len);
		}
	}
	allowed = 50 + (__u64)(earned / SEC);
	passed = fixture_limit_count(&fx, &limit).passed.packets;
	cr_assert_leq(passed, allowed, "%s: %llu passed, allowed %llu", source, passed, allowed);
	cr_assert_geq(passed + 1, allowed - allowed / 1000, "%s: %llu passed of %llu", source, passed,
		      allowed);
	fixture_close(&fx);
}

Test(rates, loop_of_changes)
{
	for (int i = 0; i < PAIRS; i++)
		loop_of_changes(targets[i], sources[i]);
}

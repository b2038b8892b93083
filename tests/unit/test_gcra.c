// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bucket under a clock that the test moves: what passes, against the bound burst + rate * t and exact
 * models.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "buckets.h"

static void check_reference(const struct rl_limit *limit)
{
	struct rl_source source = {0};
	__u64 now = START;

	cr_expect_eq(flood(&source, limit, 1000, now, 200), 200, "200 at once pass");
	cr_expect_eq(offer(&source, limit, 1000, now), RL_GCRA_REJECT, "the 201st drops");
	for (int i = 1; i <= 500; i++) {
		now += 10 * MS;
		cr_assert_eq(offer(&source, limit, 1000, now - 1), RL_GCRA_REJECT, "too early, %d", i);
		cr_assert_eq(offer(&source, limit, 1000, now), RL_GCRA_ADMIT, "one each 10 ms, %d", i);
		cr_assert_eq(offer(&source, limit, 1000, now), RL_GCRA_REJECT, "and no second one, %d", i);
	}
	cr_expect_eq(flood(&source, limit, 1000, now + 2 * SECOND - 1, 300), 199, "not full before 2 s");
	now += 2 * SECOND;
	flood(&source, limit, 1000, now, 300);
	now += 2 * SECOND;
	cr_expect_eq(flood(&source, limit, 1000, now, 300), 200, "full after 2 s");
	now += 20 * SECOND;
	cr_expect_eq(flood(&source, limit, 1000, now, 300), 200, "and never fuller");
}

Test(gcra, reference_packets)
{
	struct rl_limit limit = limit_of("100pps", "200");

	check_reference(&limit);
}

Test(gcra, reference_bytes)
{
	struct rl_limit limit = limit_of("800kbit", "200kb"); /* 100 frames of 1000 bytes a second */

	check_reference(&limit);
}

Test(gcra, reference_both)
{
	struct rl_limit packets = limit_of("100pps 800mbit", "200 20mb"),
			bytes = limit_of("100kpps 800kbit", "200k 200kb");

	check_reference(&packets);
	check_reference(&bytes);
}

/* The burst is exact at every rate, whatever the rounding of a packet's cost. */
Test(gcra, full_bucket_holds_exactly_its_burst)
{
	static const char *const rates[] = {"1/h",   "1pps",	 "7pps",     "333333pps",
					    "3mpps", "77.7mpps", "148.8mpps"};
	static const char *const bursts[] = {"1", "16", "17", "1000", "4999"};

	for (size_t i = 0; i < COUNT(rates); i++) {
		for (size_t j = 0; j < COUNT(bursts); j++) {
			struct rl_limit limit = limit_of(rates[i], bursts[j]);
			struct rl_source source = {0};

			cr_expect_eq(flood(&source, &limit, 60, START, 6000), limit.terms.burst_packets,
				     "%s %s", rates[i], bursts[j]);
		}
	}
}

/* A drop by one unit charges nothing in the other. */
Test(gcra, all_or_nothing)
{
	struct rl_limit limit = limit_of("10pps 8mbit", "10 10kb");
	struct rl_source source = {0}, before;

	cr_expect_eq(flood(&source, &limit, 5000, START, 2), 2);
	before = source;
	cr_expect_eq(flood(&source, &limit, 5000, START, 100), 0, "no bytes left");
	cr_expect(!memcmp(&source, &before, sizeof(source)), "a rejection writes nothing");
	cr_expect_eq(flood(&source, &limit, 60, START + SECOND, 100), 10, "the packets were not charged");
	before = source;
	cr_expect_eq(flood(&source, &limit, 60, START + SECOND, 100), 0, "no packets left");
	cr_expect(!memcmp(&source, &before, sizeof(source)), "nor the bytes");
}

/* The trick that doubles a fixed window's limit: a full burst just before the window ends and one just behind
 * it. */
Test(gcra, window_edge)
{
	static const __u64 gaps[] = {0, 1, MS, 10 * MS, 20 * MS, 999 * MS, SECOND};
	struct rl_limit limit = limit_of("100pps", "100");

	for (size_t i = 0; i < COUNT(gaps); i++) {
		struct rl_source source = {0};
		__u64 edge = START + 5 * SECOND, passed;

		passed = flood(&source, &limit, 60, edge - gaps[i] / 2, 500);
		passed += flood(&source, &limit, 60, edge + (gaps[i] + 1) / 2, 500);
		cr_expect_eq(passed, 100 + gaps[i] / (10 * MS), "gap %llu: %llu", gaps[i], passed);
	}
}

Test(gcra, clock_backwards)
{
	static const __u64 steps[] = {1, MS, 999 * MS, SECOND, 2 * SECOND, 900 * SECOND};
	static const char *const limits[][2] = {
	    {"100pps", "200"}, {"800kbit", "200kb"}, {"100pps 800kbit", "200 200kb"}};

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct rl_limit limit = limit_of(limits[i][0], limits[i][1]);

		for (size_t j = 0; j < COUNT(steps); j++) {
			struct rl_source source = {0};

			cr_assert_eq(flood(&source, &limit, 1000, START, 300), 200);
			cr_expect_eq(flood(&source, &limit, 1000, START - steps[j], 300), 0, "back by %llu",
				     steps[j]);
			/* Up to the slack it is a clock that lags; beyond, the bucket starts again, empty, by
			 * that clock. */
			cr_expect_leq(flood(&source, &limit, 1000, START, 300), steps[j] <= SECOND ? 0 : 200,
				      "and forward again by %llu", steps[j]);
		}
	}
}

/* Two clocks that differ by less than a second: what passes stays within the bound of the later one. */
Test(gcra, clocks_that_disagree)
{
	struct rl_limit limit = limit_of("1kpps", "50");
	struct rl_source source = {0};
	__u64 state = SEED, passed = 0, now = START;

	for (int i = 0; i < 200000; i++) {
		now += 100000;
		passed +=
		    offer(&source, &limit, 60, now - random_between(&state, 0, 900 * MS)) == RL_GCRA_ADMIT;
	}
	cr_expect_leq(passed, 50 + 20000, "%llu", passed);
}

/*
 * Idle for as long as one likes, short of the stamp's 73 years: a whole burst passes, and no more, whatever the
 * clock word's wrap makes of the time.
 */
static void check_idle(const char *rate, const char *burst, __u64 idle)
{
	struct rl_limit limit = limit_of(rate, burst);
	const struct rl_rate *r = &limit.rate[limit.rate[RL_PACKETS].mult ? RL_PACKETS : RL_BYTES];
	__u64 refill = (r->burst >> r->shift) + 1, now = START, passed;
	struct rl_source source = {0};
	__u64 full = flood(&source, &limit, 1000, now, 400);

	now += idle;
	passed = flood(&source, &limit, 1000, now, 400);
	cr_expect_leq(passed, full, "%s, idle %llu: %llu", rate, idle, passed);
	if (idle >= refill)
		cr_expect_eq(passed, full, "%s, idle %llu: %llu", rate, idle, passed);
	now += refill;
	cr_expect_eq(flood(&source, &limit, 1000, now, 400), full, "%s, idle %llu", rate, idle);
}

Test(gcra, idle)
{
	static const char *const limits[][2] = {
	    {"1/h", "20"},     {"100pps", "200"},    {"148.8mpps", "300"},
	    {"1kbit", "20kb"}, {"800kbit", "200kb"}, {"800gbit", "300kb"},
	};
	static const __u64 idles[] = {SECOND, DAY, 300 * DAY, 1000 * DAY, 70 * 365 * DAY};
	__u64 state = SEED;

	for (size_t i = 0; i < COUNT(limits); i++) {
		const char *rate = limits[i][0], *burst = limits[i][1];

		for (size_t j = 0; j < COUNT(idles); j++)
			check_idle(rate, burst, idles[j]);
		/* Around half the wrap, and a whole one, of each shift. */
		for (int shift = 8; shift <= 22; shift++) {
			for (int by = -2; by <= 2; by++) {
				__u64 half = 1ULL << (63 - shift), off = (__u64)((__s64)by * (__s64)SECOND);

				check_idle(rate, burst, half + off);
				check_idle(rate, burst, 2 * half + off + 1);
			}
		}
		for (int j = 0; j < 500; j++)
			check_idle(rate, burst, random_next(&state) >> random_between(&state, 4, 40));
	}
}

Test(gcra, refund)
{
	struct rl_limit limit = limit_of("100pps", "200");
	__u64 cost = rl_bucket_cost(&limit, RL_PACKETS, 1), left;
	struct rl_source source = {0};
	struct rl_place place = place_of(&source);

	/* In debt by more than the charge: given back. */
	flood(&source, &limit, 60, START, 199);
	left = rl_bucket_charge(&place, &limit, RL_PACKETS, cost, 0, START);
	cr_assert_eq(rl_bucket_verdict(left), RL_GCRA_ADMIT);
	cr_assert_eq(offer(&source, &limit, 60, START), RL_GCRA_REJECT);
	rl_bucket_refund(&place, &limit, RL_PACKETS, cost, left, 0);
	cr_expect_eq(flood(&source, &limit, 60, START, 10), 1);

	/* Full before the charge: forfeited, since a refund to a bucket that was full meanwhile would mint a
	 * token. */
	source = (struct rl_source){0};
	left = rl_bucket_charge(&place, &limit, RL_PACKETS, cost, 0, START);
	cr_assert_eq(rl_bucket_verdict(left), RL_GCRA_ADMIT);
	rl_bucket_refund(&place, &limit, RL_PACKETS, cost, left, 0);
	cr_expect_eq(flood(&source, &limit, 60, START, 300), 199);

	/* Full since, and emptied by others: not given back. */
	source = (struct rl_source){0};
	flood(&source, &limit, 60, START, 50);
	left = rl_bucket_charge(&place, &limit, RL_PACKETS, cost, 0, START);
	cr_assert_eq(rl_bucket_verdict(left), RL_GCRA_ADMIT);
	cr_assert_eq(flood(&source, &limit, 60, START + 10 * SECOND, 300), 200);
	rl_bucket_refund(&place, &limit, RL_PACKETS, cost, left, 0);
	cr_expect_eq(flood(&source, &limit, 60, START + 10 * SECOND, 10), 0);
}

/* An offer of `percent` of the rate for `seconds`: at least 99.9 % of the rate, and never more than the
 * bound. */
static void check_throughput(const char *rate, __u32 len, __u64 percent, __u64 packets)
{
	struct rl_limit limit = limit_of(rate, NULL);
	bool by_packets = limit.terms.packets_per_hour;
	/* Time of one offered packet as a fraction, so that the offer's own rate is exact. */
	u128 per_packet = (by_packets ? (u128)3600 : (u128)8 * len) * SECOND * 100;
	u128 divisor =
	    (u128)(by_packets ? limit.terms.packets_per_hour : limit.terms.bits_per_second) * percent;
	__u64 burst = by_packets ? limit.terms.burst_packets : limit.terms.burst_bytes;
	struct rl_source source = {0};
	u128 exact, passed = 0;
	__u64 now = START;

	flood(&source, &limit, len, now, by_packets ? burst + 1 : burst / len + 2);
	for (__u64 i = 1; i <= packets; i++) {
		now = START + (__u64)(per_packet * i / divisor);
		passed += offer(&source, &limit, len, now) == RL_GCRA_ADMIT;
	}
	if (!by_packets)
		passed *= len;
	exact = by_packets ? (u128)limit.terms.packets_per_hour * (now - START) / 3600 / SECOND
			   : (u128)limit.terms.bits_per_second * (now - START) / 8 / SECOND;
	/* The bucket was emptied before, down to less than one packet. */
	cr_expect(passed <= exact + (by_packets ? 0 : len), "%s, %u bytes: %llu of %llu", rate, len,
		  (__u64)passed, (__u64)exact);
	cr_expect((passed + (by_packets ? 1 : len)) * 1000 >= exact * 999, "%s, %u bytes: %llu of %llu", rate,
		  len, (__u64)passed, (__u64)exact);
}

Test(gcra, throughput)
{
	static const char *const packets[] = {"1/h", "1pps", "7pps", "333333pps", "148.8mpps"};
	static const char *const bits[] = {"1kbit", "15mbit", "600mbit", "1.2gbit", "40gbit", "800gbit"};
	static const __u32 sizes[] = {60, 577, 1514, 9014};

	for (size_t i = 0; i < COUNT(packets); i++)
		check_throughput(packets[i], 60, 200, 50000);
	for (size_t i = 0; i < COUNT(bits); i++)
		for (size_t j = 0; j < COUNT(sizes); j++)
			check_throughput(bits[i], sizes[j], 150, 50000);
}

/* A token bucket of whole bucket time units, kept as level and last time: the form that GCRA replaces. */
struct model {
	u128 level, last;
};

static void model_refill(struct model *m, const struct rl_rate *r, __u64 now)
{
	m->level += ((u128)now << r->shift) - m->last;
	m->last = (u128)now << r->shift;
	if (m->level > r->burst)
		m->level = r->burst;
}

/*
 * A token bucket with no rounding at all, in tokens * ns * seconds. `slack` is what the bucket's burst was
 * rounded up by at most, one coarse unit: the bound holds but for that, less than a byte.
 */
struct exact {
	u128 level, most, rate, per_token;
	__u64 last;
};

static void exact_refill(struct exact *e, __u64 now)
{
	e->level += e->rate * (now - e->last); /* < 2^40 * 2^45 */
	e->last = now;
	if (e->level > e->most)
		e->level = e->most;
}

static struct exact exact_of(__u64 rate, __u64 seconds, __u64 burst, u128 slack)
{
	struct exact e = {.rate = rate, .per_token = (u128)seconds * SECOND, .last = START};

	e.most = burst * e.per_token + slack;
	e.level = e.most;
	return e;
}

static void check_models(const char *rates, const char *bursts, __u64 state, int packets)
{
	struct rl_limit limit = limit_of(rates, bursts);
	const struct rl_rate *rp = &limit.rate[RL_PACKETS], *rb = &limit.rate[RL_BYTES];
	struct model mp = {.level = rp->burst, .last = (u128)START << rp->shift};
	struct model mb = {.level = rb->burst, .last = (u128)START << rb->shift};
	struct exact ep = exact_of(limit.terms.packets_per_hour, 3600, limit.terms.burst_packets, 0);
	struct exact eb =
	    exact_of(limit.terms.bits_per_second, 8, limit.terms.burst_bytes, limit.terms.bits_per_second);
	__u64 step = rp->mult ? rl_gcra_cost(rp, 1) >> rp->shift : rl_gcra_cost(rb, 700) >> rb->shift,
	      now = START;
	struct rl_source source = {0};
	__u64 passed = 0;

	for (int i = 0; i < packets; i++) {
		__u32 len = (__u32)random_between(&state, 60, random_next(&state) % 8 ? 1514 : 9014);
		u128 cp = cost_of(&limit, RL_PACKETS, len), cb = cost_of(&limit, RL_BYTES, len);
		bool want, got;

		switch (random_next(&state) % 64) {
		case 0: /* long enough to fill up, once in a while */
			now += random_between(&state, 0, 2 * step * (i % 16 ? 5 : 200));
			break;
		case 1 ... 30: /* back to back */
			break;
		default:
			now += random_between(&state, 0, 2 * step);
			break;
		}
		model_refill(&mp, rp, now);
		model_refill(&mb, rb, now);
		want = (!rp->mult || mp.level >= cp) && (!rb->mult || mb.level >= cb);
		got = offer(&source, &limit, len, now) == RL_GCRA_ADMIT;
		cr_assert_eq(got, want, "%s %s: packet %d, seed %llu", rates, bursts, i, SEED);
		if (!got)
			continue;
		passed++;
		mp.level -= cp;
		mb.level -= cb;
		exact_refill(&ep, now);
		exact_refill(&eb, now);
		if (rp->mult) {
			cr_assert(ep.level >= ep.per_token, "%s %s: packet %d, seed %llu", rates, bursts, i,
				  SEED);
			ep.level -= ep.per_token;
		}
		if (rb->mult) {
			cr_assert(eb.level >= len * eb.per_token, "%s %s: packet %d, seed %llu", rates,
				  bursts, i, SEED);
			eb.level -= len * eb.per_token;
		}
	}
	cr_expect(passed > (__u64)packets / 20 && passed < (__u64)packets * 99 / 100,
		  "%s %s: %llu of %d says little", rates, bursts, passed, packets);
}

Test(gcra, models)
{
	static const char *const limits[][2] = {
	    {"1/h", "16"},
	    {"7pps", "20"},
	    {"1kpps", "200"},
	    {"333333pps", "1"},
	    {"148.8mpps", "1000"},
	    {"1kbit", "16kib"},
	    {"15mbit", "64kib"},
	    {"1.2gbit", "100kb"},
	    {"800gbit", "100kb"},
	    {"1kpps 5mbit", "50 50kb"},
	    {"1mpps 8gbit", "100 100kb"},
	};

	cr_log_info("seed %llu", SEED);
	for (size_t i = 0; i < COUNT(limits); i++)
		check_models(limits[i][0], limits[i][1], SEED + i, 200000);
}

/* Two CPUs on one bucket. Each offered packet moves the shared clock, so that the offer is twice the rate. */
struct worker {
	struct rl_source *source;
	const struct rl_limit *limit;
	__u64 step, packets, passed, contended;
	__u32 len;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (__u64 i = 0; i < w->packets; i++) {
		__u64 now = __atomic_add_fetch(&test_clock, w->step, __ATOMIC_RELAXED);
		enum rl_gcra_verdict verdict = admit(w->source, w->limit, w->len, now);

		w->passed += verdict == RL_GCRA_ADMIT;
		w->contended += verdict == RL_GCRA_CONTENDED;
	}
	return NULL;
}

static void check_threads(const char *rates, const char *bursts, __u64 step, __u64 period, __u64 burst)
{
	struct rl_limit limit = limit_of(rates, bursts);
	struct rl_source source = {0};
	struct worker workers[2];
	pthread_t threads[2];
	__u64 passed, time, most;

	test_clock = START;
	for (int i = 0; i < 2; i++) {
		workers[i] = (struct worker){
		    .source = &source, .limit = &limit, .step = step, .packets = 1000000, .len = 1000};
		cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	passed = workers[0].passed + workers[1].passed;
	time = test_clock - START;
	most = burst + time / period;
	cr_expect_leq(passed, most, "%s: %llu of %llu", rates, passed, most);
	cr_expect_geq(passed * 1000, most * 999, "%s: %llu of %llu, %llu contended", rates, passed, most,
		      workers[0].contended + workers[1].contended);
}

Test(gcra, two_threads_packets)
{
	check_threads("1mpps", "1000", 500, 1000, 1000);
}

Test(gcra, two_threads_bytes)
{
	check_threads("8gbit", "1mb", 500, 1000, 1000);
}

Test(gcra, two_threads_both)
{
	check_threads("1mpps 8.1gbit", "1000 1.1mb", 500, 1000, 1000);
	check_threads("1.1mpps 8gbit", "1100 1mb", 500, 1000, 1000);
	check_threads("1mpps 8gbit", "1000 1mb", 500, 1000, 1000);
}

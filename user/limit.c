// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "limit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../bpf/rl_gcra.h"
#include "target.h"
#include "units.h"

#define SHIFT_MIN	8 /* the tag takes the lowest eight bits of every time */
#define SHIFT_MAX	22
#define PRECISION	4096 /* coarse units (2^8 bucket time units) that the smallest packet costs at least */
#define MULT_MAX	(1ULL << 54)
#define SMALLEST_PACKET 1
#define SMALLEST_FRAME	60 /* bytes: Ethernet's minimum without the frame check sequence */
#define NS_PER_SECOND	1000000000ULL
#define PER_HOUR	3600 /* packets_per_hour tokens in this many seconds */
#define PER_BYTES	8    /* bits_per_second bytes in this many seconds */

typedef unsigned __int128 u128;

static u128 divide_up(u128 a, u128 b)
{
	return (a + b - 1) / b;
}

/*
 * The smallest shift that makes the smallest packet cost PRECISION coarse units, so that rounding its cost up
 * adds at most one part in 4096. Bounds: smallest <= 2^6, per_seconds <= 2^12, 10^9 < 2^30, shift - 8 <= 14:
 * below 2^62.
 */
static int choose_shift(__u64 tokens, __u64 per_seconds, __u64 smallest)
{
	for (int shift = SHIFT_MIN; shift <= SHIFT_MAX; shift++)
		if (((u128)smallest * per_seconds * NS_PER_SECOND << (shift - SHIFT_MIN)) >=
		    (u128)PRECISION * tokens)
			return shift;
	return -ERANGE;
}

/* Bucket time that `burst` tokens take, as charged: packet by packet, or byte by byte with one rounding. */
static u128 burst_time(const struct rl_rate *rate, __u64 burst, __u64 smallest)
{
	if (smallest == SMALLEST_PACKET)
		return (u128)burst * rl_gcra_cost(rate, 1);
	return divide_up((u128)burst * rate->mult, 1ULL << RL_GCRA_FRAC)
	       << SHIFT_MIN; /* < 2^(64 + 54 - 12 + 8) */
}

/* Everything but the burst. */
static int compute_rate(__u64 tokens, __u64 per_seconds, __u64 smallest, struct rl_rate *out)
{
	struct rl_rate rate = {0};
	int shift = choose_shift(tokens, per_seconds, smallest);
	u128 mult;

	if (shift < 0)
		return shift;
	mult = divide_up((u128)per_seconds * NS_PER_SECOND << (shift - SHIFT_MIN) << RL_GCRA_FRAC, tokens);
	/* A packet costs a whole number of coarse units: then so many packets and so many tokens are the same time. */
	if (smallest == SMALLEST_PACKET)
		mult = divide_up(mult, 1 << RL_GCRA_FRAC) << RL_GCRA_FRAC;
	if (mult >= MULT_MAX)
		return -ERANGE;
	rate.shift = (__u32)shift;
	rate.mult = (__u64)mult;
	*out = rate;
	return 0;
}

int rl_rate_compute(__u64 tokens, __u64 per_seconds, __u64 burst, __u64 smallest, struct rl_rate *out)
{
	struct rl_rate rate;
	int ret = compute_rate(tokens, per_seconds, smallest, &rate);
	u128 time;

	if (ret)
		return ret;
	time = burst_time(&rate, burst, smallest);
	if (time >= RL_GCRA_BURST_MAX)
		return -ERANGE;
	rate.burst = (__u64)time;
	rate.owed = rate.burst;
	*out = rate;
	return 0;
}

/* The largest burst that rl_rate_compute accepts for this rate. */
static __u64 largest_burst(const struct rl_rate *rate, __u64 smallest)
{
	if (smallest == SMALLEST_PACKET)
		return (RL_GCRA_BURST_MAX - 1) / rl_gcra_cost(rate, 1);
	return (__u64)(((u128)((RL_GCRA_BURST_MAX - 1) >> SHIFT_MIN) << RL_GCRA_FRAC) / rate->mult);
}

static int refuse_burst(const struct rl_terms *terms, enum rl_unit unit, const struct rl_rate *rate,
			struct rl_error *err)
{
	char given[RL_UNIT_TEXT], least[RL_UNIT_TEXT], most[RL_UNIT_TEXT], per[RL_UNIT_TEXT];

	if (unit == RL_PACKETS) {
		rl_burst_print_packets(terms->burst_packets, given);
		rl_burst_print_packets(1, least);
		rl_burst_print_packets(largest_burst(rate, SMALLEST_PACKET), most);
		rl_rate_print_packets(terms->packets_per_hour, per);
	} else {
		rl_burst_print_bytes(terms->burst_bytes, given);
		rl_burst_print_bytes(RL_BURST_BYTES_MTU, least);
		rl_burst_print_bytes(largest_burst(rate, SMALLEST_FRAME), most);
		rl_rate_print_bits(terms->bits_per_second, per);
	}
	return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
			    "burst %s is out of range for the rate %s; expected %s to %s", given, per, least,
			    most);
}

static int refuse_rate(enum rl_unit unit, struct rl_error *err)
{
	char least[RL_UNIT_TEXT], most[RL_UNIT_TEXT];

	if (unit == RL_PACKETS) {
		rl_rate_print_packets(RL_PACKETS_PER_HOUR_MIN, least);
		rl_rate_print_packets(RL_PACKETS_PER_HOUR_MAX, most);
	} else {
		rl_rate_print_bits(RL_BITS_MIN, least);
		rl_rate_print_bits(RL_BITS_MAX, most);
	}
	return rl_error_set(err, RL_ERROR_USAGE, ERANGE, "the rate in %s is out of range; expected %s to %s",
			    unit == RL_PACKETS ? "packets" : "bits", least, most);
}

/* One unit of complete terms as a bucket's arithmetic; all zero where it isn't limited. */
static int compute_unit(const struct rl_terms *terms, enum rl_unit unit, struct rl_rate *out,
			struct rl_error *err)
{
	bool packets = unit == RL_PACKETS;
	__u64 tokens = packets ? terms->packets_per_hour : terms->bits_per_second;
	__u64 burst = packets ? terms->burst_packets : terms->burst_bytes;
	__u64 least = packets ? RL_PACKETS_PER_HOUR_MIN : RL_BITS_MIN;
	__u64 most = packets ? RL_PACKETS_PER_HOUR_MAX : RL_BITS_MAX;
	__u64 smallest = packets ? SMALLEST_PACKET : SMALLEST_FRAME;
	__u64 per_seconds = packets ? PER_HOUR : PER_BYTES;
	struct rl_rate rate = {0};

	if (!tokens) {
		*out = rate;
		return 0;
	}
	if (tokens < least || tokens > most || compute_rate(tokens, per_seconds, smallest, &rate))
		return refuse_rate(unit, err);
	if (burst < (packets ? 1 : RL_BURST_BYTES_MTU))
		return refuse_burst(terms, unit, &rate, err);
	if (rl_rate_compute(tokens, per_seconds, burst, smallest, &rate))
		return refuse_burst(terms, unit, &rate, err);
	*out = rate;
	return 0;
}

static __u64 larger(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* 100 ms of each rate: a tenth of a second is 1/36000 hour, and bits / 80 bytes. */
static void default_bursts(struct rl_terms *terms)
{
	if (terms->packets_per_hour && !terms->burst_packets)
		terms->burst_packets =
		    larger((__u64)divide_up(terms->packets_per_hour, 36000), RL_BURST_PACKETS_MIN);
	if (terms->bits_per_second && !terms->burst_bytes)
		terms->burst_bytes = larger((__u64)divide_up(terms->bits_per_second, 80), RL_BURST_BYTES_MIN);
}

/* What is missing in what was given. */
static int check_pairs(const struct rl_terms *terms, struct rl_error *err)
{
	char burst[RL_UNIT_TEXT];

	if (terms->burst_packets && !terms->packets_per_hour)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "burst %s is in packets, and there is no rate in packets; add one, such as 100pps, or "
		    "give the burst in bytes, such as 64kib",
		    rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->burst_bytes && !terms->bits_per_second)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "burst %s is in bytes, and there is no rate in bits; add one, such as 10mbit, or give "
		    "the burst in packets, such as 200p",
		    rl_burst_print_bytes(terms->burst_bytes, burst));
	if (!terms->packets_per_hour && !terms->bits_per_second)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "no rate was given; expected one in packets, such as 100pps, in bits, such as 10mbit, "
		    "or both");
	return 0;
}

/* A bucket that can't hold one full frame would drop every full frame for ever. */
static int check_frame(const struct rl_terms *terms, struct rl_error *err)
{
	char given[RL_UNIT_TEXT], least[RL_UNIT_TEXT];

	if (!terms->bits_per_second || terms->burst_bytes >= RL_BURST_BYTES_MTU)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "burst %s is less than one full frame and would starve TCP; expected at least %s, or leave it "
	    "out for the default",
	    rl_burst_print_bytes(terms->burst_bytes, given), rl_burst_print_bytes(RL_BURST_BYTES_MTU, least));
}

int rl_terms_complete(struct rl_terms *terms, struct rl_error *err)
{
	struct rl_terms complete = *terms;
	struct rl_rate unused;
	int ret = check_pairs(terms, err);

	if (ret)
		return ret;
	default_bursts(&complete);
	ret = check_frame(&complete, err);
	for (int unit = 0; unit < RL_UNITS && !ret; unit++)
		ret = compute_unit(&complete, (enum rl_unit)unit, &unused, err);
	if (ret)
		return ret;
	*terms = complete;
	return 0;
}

const char *rl_terms_print(const struct rl_terms *terms, char buf[RL_TERMS_TEXT])
{
	char rate[RL_UNIT_TEXT], burst[RL_UNIT_TEXT];
	int len = 0;

	buf[0] = '\0';
	if (terms->packets_per_hour)
		len = snprintf(buf, RL_TERMS_TEXT, "%s burst %s",
			       rl_rate_print_packets(terms->packets_per_hour, rate),
			       rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->bits_per_second)
		snprintf(buf + len, RL_TERMS_TEXT - (size_t)len, "%s%s burst %s", len ? " and " : "",
			 rl_rate_print_bits(terms->bits_per_second, rate),
			 rl_burst_print_bytes(terms->burst_bytes, burst));
	return buf;
}

/* `old` becomes the youngest remembered generation of `limit`. */
static void remember(struct rl_limit *limit, const struct rl_limit *old, __u64 now)
{
	memcpy(&limit->past[1], &old->past[0], sizeof(limit->past) - sizeof(limit->past[0]));
	for (int unit = 0; unit < RL_UNITS; unit++) {
		limit->past[0].mult[unit] = old->rate[unit].mult;
		limit->past[0].owed[unit] = old->rate[unit].owed;
		limit->past[0].shift[unit] = old->rate[unit].shift;
	}
	limit->past[0].until = now;
	limit->gen = old->gen + 1;
}

static int refuse_change(const struct rl_terms *terms, enum rl_unit unit, struct rl_error *err)
{
	char rate[RL_UNIT_TEXT];

	if (unit == RL_PACKETS)
		rl_rate_print_packets(terms->packets_per_hour, rate);
	else
		rl_rate_print_bits(terms->bits_per_second, rate);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "what sources may owe under the present limit would take longer to pay back at %s than a bucket can remember; "
	    "choose rate and burst nearer to the present ones, or forgive it: `rl-agent del-limit`, then set-limit",
	    rate);
}

/* Units to tokens and back, rounded up. A token takes mult * 2^8 / 2^RL_GCRA_FRAC units. */
static __u64 tokens_of(__u64 units, __u64 mult)
{
	return (__u64)divide_up((u128)units << RL_GCRA_FRAC >> 8, mult);
}

static u128 units_of(__u64 tokens, __u64 mult)
{
	return divide_up((u128)tokens * mult << 8, 1 << RL_GCRA_FRAC);
}

/*
 * The most that a bucket owes at the change: a whole burst of the old limit, or what is left by then of larger ones
 * before it. A generation without this unit hands it on in tokens.
 */
static int inherit_owed(struct rl_limit *limit, const struct rl_limit *old, enum rl_unit unit, __u64 now,
			struct rl_error *err)
{
	const struct rl_rate *was = &old->rate[unit];
	struct rl_rate *rate = &limit->rate[unit];
	__u64 since = old->gen > 1 ? old->past[0].until : now, tokens = was->owed;
	u128 owed;

	if (was->mult)
		tokens = tokens_of(larger(was->burst, rl_gcra_decay(was->owed, was->shift, since, now)),
				   was->mult);
	if (!rate->mult) {
		rate->owed = tokens;
		return 0;
	}
	owed = (units_of(tokens, rate->mult) + RL_GCRA_TAG) & ~(u128)RL_GCRA_TAG;
	if (owed >= RL_GCRA_BURST_MAX)
		return refuse_change(&limit->terms, unit, err);
	rate->owed = larger(rate->owed, (__u64)owed);
	return 0;
}

static bool same_arithmetic(const struct rl_limit *a, const struct rl_limit *b)
{
	for (int unit = 0; unit < RL_UNITS; unit++)
		if (a->rate[unit].mult != b->rate[unit].mult || a->rate[unit].burst != b->rate[unit].burst ||
		    a->rate[unit].shift != b->rate[unit].shift)
			return false;
	return true;
}

/* `limit` takes the place of `old`: identity, history, and what its buckets may owe. */
static int succeed(struct rl_limit *limit, const struct rl_limit *old, __u64 now, struct rl_error *err)
{
	int ret = 0;

	limit->id = old->id;
	limit->slot = old->slot;
	if (same_arithmetic(limit, old)) {
		limit->gen = old->gen;
		memcpy(limit->rate, old->rate, sizeof(limit->rate));
		memcpy(limit->past, old->past, sizeof(limit->past));
		return 0;
	}
	remember(limit, old, now);
	for (int unit = 0; unit < RL_UNITS && !ret; unit++)
		ret = inherit_owed(limit, old, (enum rl_unit)unit, now, err);
	return ret;
}

int rl_limit_compute(const struct rl_prefix *target, const struct rl_terms *terms, const struct rl_limit *old,
		     __u32 id, __u32 slot, __u64 now, struct rl_limit *out, struct rl_error *err)
{
	struct rl_limit limit = {
	    .id = id, .slot = slot, .gen = 1, .prefixlen = target->prefixlen, .terms = *terms};
	int ret = 0;

	for (int unit = 0; unit < RL_UNITS && !ret; unit++)
		ret = compute_unit(terms, (enum rl_unit)unit, &limit.rate[unit], err);
	if (rl_target_is_source(target))
		limit.flags |= RL_LIMIT_OWN_BUCKET;
	if (!ret && old)
		ret = succeed(&limit, old, now, err);
	if (!ret)
		*out = limit;
	return ret;
}

void rl_limit_nd(struct rl_limit *out)
{
	struct rl_limit limit = {.gen = 1,
				 .terms = {.packets_per_hour = 1000ULL * PER_HOUR, .burst_packets = 1000}};

	rl_rate_compute(limit.terms.packets_per_hour, PER_HOUR, limit.terms.burst_packets, SMALLEST_PACKET,
			&limit.rate[RL_PACKETS]);
	*out = limit;
}

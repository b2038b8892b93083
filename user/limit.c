// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "limit.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../bpf/rl_gcra.h"
#include "class.h"
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

/* What differs between the two units. */
static const struct {
	__u64 least, most; /* rate, in the terms' own unit */
	__u64 per_seconds; /* so many tokens take this long */
	__u64 smallest;	   /* tokens that a packet takes at least */
	__u64 burst_min;   /* of the default */
	__u64 quarters;	   /* of a second: packets an hour / 14400, and bits a second / 32 bytes */
} unit_of[RL_UNITS] = {
    [RL_PACKETS] = {RL_PACKETS_PER_HOUR_MIN, RL_PACKETS_PER_HOUR_MAX, PER_HOUR, SMALLEST_PACKET,
		    RL_BURST_PACKETS_MIN, 14400},
    [RL_BYTES] = {RL_BITS_MIN, RL_BITS_MAX, PER_BYTES, SMALLEST_FRAME, RL_BURST_BYTES_MIN, 32},
};

static __u64 rate_of(const struct rl_terms *terms, enum rl_unit unit)
{
	return unit == RL_PACKETS ? terms->packets_per_hour : terms->bits_per_second;
}

static __u64 *burst_of(struct rl_terms *terms, enum rl_unit unit)
{
	return unit == RL_PACKETS ? &terms->burst_packets : &terms->burst_bytes;
}

static const char *print_rate(enum rl_unit unit, __u64 rate, char buf[RL_UNIT_TEXT])
{
	return unit == RL_PACKETS ? rl_rate_print_packets(rate, buf) : rl_rate_print_bits(rate, buf);
}

static const char *print_burst(enum rl_unit unit, __u64 burst, char buf[RL_UNIT_TEXT])
{
	return unit == RL_PACKETS ? rl_burst_print_packets(burst, buf) : rl_burst_print_bytes(burst, buf);
}

static __u64 larger(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Most fit in 64 bits, where the processor divides; libgcc takes several times as long. */
static u128 divide_up(u128 a, u128 b)
{
	a += b - 1;
	return a >> 64 || b >> 64 ? a / b : (__u64)a / (__u64)b;
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

static int compute_burst(__u64 burst, __u64 smallest, struct rl_rate *rate)
{
	u128 time = burst_time(rate, burst, smallest);

	if (time >= RL_GCRA_BURST_MAX)
		return -ERANGE;
	rate->burst = (__u64)time;
	rate->owed = rate->burst;
	return 0;
}

int rl_rate_compute(__u64 tokens, __u64 per_seconds, __u64 burst, __u64 smallest, struct rl_rate *out)
{
	struct rl_rate rate;
	int ret = compute_rate(tokens, per_seconds, smallest, &rate);

	if (!ret)
		ret = compute_burst(burst, smallest, &rate);
	if (!ret)
		*out = rate;
	return ret;
}

/* The largest burst that rl_rate_compute accepts for this rate. */
static __u64 largest_burst(const struct rl_rate *rate, __u64 smallest)
{
	if (smallest == SMALLEST_PACKET)
		return (RL_GCRA_BURST_MAX - 1) / rl_gcra_cost(rate, 1);
	return (__u64)(((u128)((RL_GCRA_BURST_MAX - 1) >> SHIFT_MIN) << RL_GCRA_FRAC) / rate->mult);
}

/* Parts of RL_RESERVE_WHOLE that are kept from a priority. They nest. */
static __u32 reserved_from(const struct rl_terms *terms, enum rl_priority priority)
{
	return (priority > RL_PRIORITY_HIGH ? terms->reserve[RL_PRIORITY_HIGH] : 0U) +
	       (priority > RL_PRIORITY_NORMAL ? terms->reserve[RL_PRIORITY_NORMAL] : 0U);
}

/* From the lowest: all of them. */
static __u32 reserved(const struct rl_terms *terms)
{
	return reserved_from(terms, RL_PRIORITY_LOW);
}

/* What is kept of a burst: rounded up, so that who is kept from it never gets more than stated. At most the burst. */
static u128 kept_of(u128 burst, __u32 parts)
{
	if (!parts)
		return 0;
	return (divide_up(burst * parts, RL_RESERVE_WHOLE) + RL_GCRA_TAG) & ~(u128)RL_GCRA_TAG;
}

/* The rule of the dearest packet, or NULL where each takes one token. */
static const struct rl_cost *dearest_cost(const struct rl_terms *terms)
{
	const struct rl_cost *dearest = NULL;

	for (int i = 0; i < terms->cost_count && i < RL_MAX_COSTS; i++)
		if (terms->cost[i].tokens > (dearest ? dearest->tokens : 1))
			dearest = &terms->cost[i];
	return dearest;
}

/* Tokens that the dearest packet takes: what a bucket can't hold would never pass. */
static __u64 dearest_packet(const struct rl_terms *terms, enum rl_unit unit)
{
	const struct rl_cost *cost = dearest_cost(terms);

	if (unit == RL_BYTES)
		return RL_BURST_BYTES_MTU;
	return cost ? cost->tokens : SMALLEST_PACKET;
}

/*
 * The smallest burst that holds `tokens` beside what is kept of it, `parts` of RL_RESERVE_WHOLE and less than all of it. In
 * coarse units, as all of it is counted: first the time that leaves so much, by kept_of(), then the tokens that fill it,
 * by burst_time().
 */
static __u64 burst_beside(enum rl_unit unit, const struct rl_rate *rate, __u64 tokens, __u32 parts)
{
	u128 packet = burst_time(rate, tokens, unit_of[unit].smallest) >> SHIFT_MIN;
	u128 time = packet;

	if (parts)
		time = divide_up(packet * RL_RESERVE_WHOLE, RL_RESERVE_WHOLE - parts); /* < 2^(58 + 14) */
	if (unit == RL_PACKETS)
		return (__u64)divide_up(time, rl_gcra_cost(rate, 1) >> SHIFT_MIN);
	return (__u64)(((time - 1) << RL_GCRA_FRAC) / rate->mult + 1); /* the last unit is begun */
}

/* The smallest burst of which the lowest priority can still send the dearest packet. */
static __u64 least_burst(const struct rl_terms *terms, enum rl_unit unit, const struct rl_rate *rate)
{
	return burst_beside(unit, rate, dearest_packet(terms, unit), reserved(terms));
}

__u64 rl_burst_to_hold(const struct rl_terms *terms, enum rl_unit unit, __u32 tokens)
{
	struct rl_rate rate;

	if (!rate_of(terms, unit) ||
	    compute_rate(rate_of(terms, unit), unit_of[unit].per_seconds, unit_of[unit].smallest, &rate))
		return 0;
	return burst_beside(unit, &rate, tokens, reserved(terms));
}

static int refuse_rate(enum rl_unit unit, struct rl_error *err)
{
	char least[RL_UNIT_TEXT], most[RL_UNIT_TEXT];

	return rl_error_set(err, RL_ERROR_USAGE, ERANGE, "the rate in %s is out of range; expected %s to %s",
			    unit == RL_PACKETS ? "packets" : "bits",
			    print_rate(unit, unit_of[unit].least, least),
			    print_rate(unit, unit_of[unit].most, most));
}

/* No burst that the rate can have would do: the dearest packet, or the reserve, is too much for it. */
static int refuse_every_burst(const struct rl_terms *terms, enum rl_unit unit, __u64 most,
			      struct rl_error *err)
{
	char rate[RL_UNIT_TEXT], burst[RL_UNIT_TEXT], class[RL_CLASS_TEXT], reserve[RL_RESERVE_TEXT];
	const struct rl_cost *cost = dearest_cost(terms);

	print_rate(unit, rate_of(terms, unit), rate);
	if (cost && !reserved(terms))
		return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
				    "cost %s=%u is more than any bucket of the rate %s can hold; expected at "
				    "most %llu, or a higher rate",
				    rl_class_print(&cost->class, class), cost->tokens, rate, most);
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "reserve %s leaves the lowest priority less than one packet, even of the largest "
	    "burst that the rate %s can have, %s; expected a smaller reserve, or a higher rate",
	    rl_reserve_print(terms, reserve), rate, print_burst(unit, most, burst));
}

static int refuse_small_burst(const struct rl_terms *terms, enum rl_unit unit, __u64 burst, __u64 least,
			      struct rl_error *err)
{
	char given[RL_UNIT_TEXT], wanted[RL_UNIT_TEXT], class[RL_CLASS_TEXT], reserve[RL_RESERVE_TEXT];
	const struct rl_cost *cost = unit == RL_PACKETS ? dearest_cost(terms) : NULL;
	char why[RL_RESERVE_TEXT + 80];

	if (reserved(terms))
		snprintf(why, sizeof(why), "leaves the lowest priority less than one %s under reserve %s",
			 unit == RL_PACKETS ? "packet" : "full frame", rl_reserve_print(terms, reserve));
	else if (cost)
		snprintf(why, sizeof(why), "is less than one packet takes, by cost %s=%u",
			 rl_class_print(&cost->class, class), cost->tokens);
	else
		snprintf(why, sizeof(why), "is less than one %s",
			 unit == RL_PACKETS ? "packet" : "full frame and would starve TCP");
	return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
			    "burst %s %s; expected at least %s, or leave it out for the default",
			    print_burst(unit, burst, given), why, print_burst(unit, least, wanted));
}

static int check_burst(const struct rl_terms *terms, enum rl_unit unit, const struct rl_rate *rate,
		       __u64 burst, struct rl_error *err)
{
	__u64 least = least_burst(terms, unit, rate), most = largest_burst(rate, unit_of[unit].smallest);
	char given[RL_UNIT_TEXT], low[RL_UNIT_TEXT], high[RL_UNIT_TEXT], per[RL_UNIT_TEXT];

	if (least > most)
		return refuse_every_burst(terms, unit, most, err);
	if (burst < least)
		return refuse_small_burst(terms, unit, burst, least, err);
	if (burst <= most)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, ERANGE,
			    "burst %s is out of range for the rate %s; expected %s to %s",
			    print_burst(unit, burst, given), print_rate(unit, rate_of(terms, unit), per),
			    print_burst(unit, least, low), print_burst(unit, most, high));
}

/* One unit of complete terms as a bucket's arithmetic; all zero where it isn't limited. */
static int compute_unit(const struct rl_terms *terms, enum rl_unit unit, struct rl_rate *out,
			struct rl_error *err)
{
	__u64 tokens = rate_of(terms, unit);
	__u64 burst = unit == RL_PACKETS ? terms->burst_packets : terms->burst_bytes;
	struct rl_rate rate = {0};
	int ret;

	if (!tokens) {
		*out = rate;
		return 0;
	}
	if (tokens < unit_of[unit].least || tokens > unit_of[unit].most ||
	    compute_rate(tokens, unit_of[unit].per_seconds, unit_of[unit].smallest, &rate))
		return refuse_rate(unit, err);
	ret = check_burst(terms, unit, &rate, burst, err);
	if (!ret)
		ret = compute_burst(burst, unit_of[unit].smallest, &rate);
	if (ret)
		return ret;
	for (int priority = 0; priority < RL_PRIORITIES; priority++)
		rate.kept[priority] =
		    (__u64)kept_of(rate.burst, reserved_from(terms, (enum rl_priority)priority));
	*out = rate;
	return 0;
}

/*
 * 250 ms of the rate; never so little that it would be refused. A TCP sender that has lost all it sent waits for at least
 * 200 ms (Linux's TCP_RTO_MIN): what a bucket can't hold of that time is lost to the flow. With 100 ms one flow over a
 * short way gets half of its limit (tests/e2e/tcp.sh).
 */
static void default_burst(struct rl_terms *terms, enum rl_unit unit)
{
	__u64 tokens = rate_of(terms, unit), *burst = burst_of(terms, unit);
	struct rl_rate rate;

	if (!tokens || *burst ||
	    compute_rate(tokens, unit_of[unit].per_seconds, unit_of[unit].smallest, &rate))
		return;
	*burst = larger((__u64)divide_up(tokens, unit_of[unit].quarters), unit_of[unit].burst_min);
	*burst = larger(*burst, least_burst(terms, unit, &rate));
}

/* What is missing in what was given. */
static int check_pairs(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	char burst[RL_UNIT_TEXT], object[RL_OBJECT_TEXT];

	if (terms->burst_packets && !terms->packets_per_hour)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "burst %s is in packets, and there is no rate in packets; add one, such as 100pps, or "
		    "give the burst in bytes, such as 64kib; set-limit states the whole limit: repeat the rate that it has",
		    rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->burst_bytes && !terms->bits_per_second)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "burst %s is in bytes, and there is no rate in bits; add one, such as 10mbit, or give "
		    "the burst in packets, such as 200p; set-limit states the whole limit: repeat the rate that it has",
		    rl_burst_print_bytes(terms->burst_bytes, burst));
	if (terms->packets_per_hour || terms->bits_per_second)
		return 0;
	/* A tenant without a rate can have a priority to give to its prefixes; a reserve would be of nothing. */
	if (target->kind == RL_TARGET_TENANT && terms->priority < RL_PRIORITIES && !reserved(terms))
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, EINVAL,
	    "no rate was given for %s; expected one in packets, such as 100pps, in bits, such as "
	    "10mbit, or both",
	    rl_object_print(target, &terms->class, object));
}

/* `new` counts sources as packets. */
static int check_new(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	if (target->kind != RL_TARGET_NEW || !(terms->bits_per_second || terms->burst_bytes))
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, EINVAL,
	    "new counts sources, not bits or bytes; expected a rate such as 20kpps: sources that "
	    "are given a bucket a second, and a burst such as 2000");
}

static int check_reserve(const struct rl_target *target, const struct rl_terms *terms, struct rl_error *err)
{
	char text[RL_TARGET_TEXT], reserve[RL_RESERVE_TEXT];

	if (reserved(terms) < RL_RESERVE_WHOLE)
		return 0;
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "reserve %s of %s leaves nothing to the lowest priority; expected less than 100%% in all",
	    rl_reserve_print(terms, reserve), rl_target_print(target, text));
}

int rl_terms_complete(const struct rl_target *target, struct rl_terms *terms, struct rl_error *err)
{
	struct rl_terms complete = *terms;
	struct rl_rate unused;
	int ret = rl_words_check(target, terms, err);

	if (!ret)
		ret = check_new(target, terms, err);
	if (!ret)
		ret = check_reserve(target, terms, err);
	if (!ret && terms->action == RL_ACTION_LIMIT)
		ret = check_pairs(target, terms, err);
	for (int unit = 0; unit < RL_UNITS && !ret; unit++) {
		default_burst(&complete, (enum rl_unit)unit);
		ret = compute_unit(&complete, (enum rl_unit)unit, &unused, err);
	}
	if (ret)
		return ret;
	*terms = complete;
	return 0;
}

static int refuse_dear(const struct rl_stated *payer, const struct rl_cost *cost, enum rl_priority priority,
		       const struct rl_stated *shared, const struct rl_rate *rate, struct rl_error *err)
{
	const struct rl_terms *terms = shared->terms;
	__u64 most = (rate->burst - rate->kept[priority]) / rl_gcra_cost(rate, 1);
	__u64 least = burst_beside(RL_PACKETS, rate, cost->tokens, reserved_from(terms, priority));
	char class[RL_CLASS_TEXT], target[RL_TARGET_TEXT], whose[RL_TARGET_TEXT], reserve[RL_RESERVE_TEXT];
	char burst[RL_UNIT_TEXT], wanted[RL_UNIT_TEXT], way_out[RL_TARGET_TEXT + RL_UNIT_TEXT + 32] = "";

	rl_target_print(shared->target, whose);
	rl_reserve_print(terms, reserve);
	if (least <= largest_burst(rate, SMALLEST_PACKET)) /* or else it would be refused in its turn */
		snprintf(way_out, sizeof(way_out), ", or a burst of %s of at least %s", whose,
			 rl_burst_print_packets(least, wanted));
	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "cost %s=%u of %s is more than the bucket of %s ever holds for priority %s, %llu (burst %s%s%s): such "
	    "packets would never pass; expected a cost of at most %llu%s",
	    rl_class_print(&cost->class, class), cost->tokens, rl_target_print(payer->target, target), whose,
	    rl_priority_name(priority), most, rl_burst_print_packets(terms->burst_packets, burst),
	    *reserve ? ", reserve " : "", reserve, most, way_out);
}

int rl_cost_check(const struct rl_stated *payer, enum rl_priority priority, const struct rl_stated *shared,
		  struct rl_error *err)
{
	const struct rl_cost *cost = dearest_cost(payer->terms);
	struct rl_rate rate;
	int ret;

	if (!cost)
		return 0; /* one token is in every bucket, for every priority: rl_terms_complete() */
	ret = compute_unit(shared->terms, RL_PACKETS, &rate, err);
	if (ret || !rate.mult || rl_gcra_cost(&rate, cost->tokens) <= rate.burst - rate.kept[priority])
		return ret;
	return refuse_dear(payer, cost, priority, shared, &rate, err);
}

static const char *print_rates(const struct rl_terms *terms, char buf[RL_TERMS_TEXT])
{
	char rate[RL_UNIT_TEXT], burst[RL_UNIT_TEXT];
	int used = 0;

	if (!terms->packets_per_hour && !terms->bits_per_second)
		return strcpy(buf, "no rate");
	if (terms->packets_per_hour)
		used = snprintf(buf, RL_TERMS_TEXT, "%s burst %s",
				rl_rate_print_packets(terms->packets_per_hour, rate),
				rl_burst_print_packets(terms->burst_packets, burst));
	if (terms->bits_per_second)
		snprintf(buf + used, RL_TERMS_TEXT - (size_t)used, "%s%s burst %s", used ? " and " : "",
			 rl_rate_print_bits(terms->bits_per_second, rate),
			 rl_burst_print_bytes(terms->burst_bytes, burst));
	return buf;
}

const char *rl_terms_print(const struct rl_terms *terms, char buf[RL_TERMS_TEXT])
{
	char words[RL_WORDS_TEXT];
	size_t used;

	if (terms->action == RL_ACTION_LIMIT)
		print_rates(terms, buf);
	else
		strcpy(buf, rl_action_name(terms->action));
	used = strlen(buf);
	if (rl_words_print(terms, words)[0])
		snprintf(buf + used, RL_TERMS_TEXT - used, ", %s", words);
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

static int refuse_change(const struct rl_limit *limit, enum rl_unit unit, struct rl_error *err)
{
	char rate[RL_UNIT_TEXT], object[RL_OBJECT_TEXT], target[RL_TARGET_TEXT], class[RL_CLASS_TEXT];
	bool is_class = rl_class_is_set(&limit->terms.class);

	return rl_error_set(
	    err, RL_ERROR_USAGE, ERANGE,
	    "%s: what may be owed under the present limit would take longer to pay back at %s "
	    "than a bucket can remember; choose rate and burst nearer to the present ones, or "
	    "forgive it: `rl-agent del-limit %s%s%s`, then set-limit",
	    rl_object_print(&limit->target, &limit->terms.class, object),
	    print_rate(unit, rate_of(&limit->terms, unit), rate), rl_target_print(&limit->target, target),
	    is_class ? " --class " : "", is_class ? rl_class_print(&limit->terms.class, class) : "");
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
		return refuse_change(limit, unit, err);
	rate->owed = larger(rate->owed, (__u64)owed);
	return 0;
}

static bool has_past(const struct rl_limit *limit)
{
	return limit->gen > 1;
}

static bool same_arithmetic(const struct rl_limit *a, const struct rl_limit *b)
{
	for (int unit = 0; unit < RL_UNITS; unit++)
		if (a->rate[unit].mult != b->rate[unit].mult || a->rate[unit].burst != b->rate[unit].burst ||
		    a->rate[unit].shift != b->rate[unit].shift)
			return false;
	return true;
}

/* `limit` takes the place of `old`: identity, what hangs on it, history, and what its buckets may owe. */
static int succeed(struct rl_limit *limit, const struct rl_limit *old, __u64 now, struct rl_error *err)
{
	int ret = 0;

	limit->id = old->id;
	limit->slot = old->slot;
	limit->tenant = old->tenant;
	limit->class_count = old->class_count;
	if (old->class_count)
		memcpy(limit->class, old->class, sizeof(limit->class));
	if (same_arithmetic(limit, old)) {
		limit->gen = old->gen;
		if (has_past(old))
			memcpy(limit->past, old->past, sizeof(limit->past));
		for (int unit = 0; unit < RL_UNITS; unit++)
			limit->rate[unit].owed = old->rate[unit].owed;
		return 0;
	}
	remember(limit, old, now);
	for (int unit = 0; unit < RL_UNITS && !ret; unit++)
		ret = inherit_owed(limit, old, (enum rl_unit)unit, now, err);
	return ret;
}

static __u8 level_of(const struct rl_target *target, const struct rl_terms *terms)
{
	static const __u8 levels[RL_TARGETS] = {
	    [RL_TARGET_PREFIX] = RL_LEVEL_SOURCE,
	    [RL_TARGET_TENANT] = RL_LEVEL_TENANT,
	    [RL_TARGET_DEVICE] = RL_LEVEL_DEVICE,
	    [RL_TARGET_NEW] = RL_LEVEL_NEW,
	};

	if (target->kind == RL_TARGET_PREFIX && rl_class_is_set(&terms->class))
		return RL_LEVEL_CLASS;
	return levels[target->kind];
}

/* Which sources have a bucket each, and whether there is only one. */
static void set_granularity(const struct rl_target *target, const struct rl_terms *terms,
			    struct rl_limit *limit)
{
	const struct rl_prefix *prefix = &target->prefix;
	int family = prefix->family == 6;

	limit->bits[0] = RL_SOURCE_BITS(4);
	limit->bits[1] = RL_SOURCE_BITS(6);
	if (terms->per)
		limit->bits[family] = terms->per;
	if (target->kind != RL_TARGET_PREFIX || terms->shared ||
	    (prefix->family && prefix->prefixlen - RL_PREFIX_FAMILY_BITS >= limit->bits[family]))
		limit->flags |= RL_LIMIT_OWN_BUCKET;
}

int rl_limit_compute(const struct rl_target *target, const struct rl_terms *terms, const struct rl_limit *old,
		     __u32 id, __u32 slot, __u64 now, struct rl_limit *out, struct rl_error *err)
{
	struct rl_limit limit = {
	    .id = id,
	    .slot = slot,
	    .gen = 1,
	    .flags = terms->shadow ? RL_LIMIT_SHADOW : 0,
	    .level = level_of(target, terms),
	    .action = terms->action,
	    .priority = terms->priority,
	    .cost_count = terms->cost_count,
	    .target = *target,
	    .terms = *terms,
	};
	int ret = 0;

	memcpy(limit.cost, terms->cost, sizeof(limit.cost));
	set_granularity(target, terms, &limit);
	for (int unit = 0; unit < RL_UNITS && !ret; unit++)
		ret = compute_unit(terms, (enum rl_unit)unit, &limit.rate[unit], err);
	if (!ret && old)
		ret = succeed(&limit, old, now, err);
	if (!ret)
		*out = limit;
	return ret;
}

bool rl_limit_same(const struct rl_limit *a, const struct rl_limit *b)
{
	size_t past = offsetof(struct rl_limit, past), target = offsetof(struct rl_limit, target);
	size_t end = offsetof(struct rl_limit, terms) + offsetof(struct rl_terms, cost);

	if (memcmp(a, b, past) != 0 || memcmp(&a->target, &b->target, end - target) != 0)
		return false;
	/* Of most limits the rest is zero, which is half of their bytes. */
	if (!has_past(a) && !a->class_count && !a->cost_count)
		return true;
	return !memcmp(a, b, sizeof(*a));
}

bool rl_limit_follow(struct rl_limit *class, const struct rl_limit *general)
{
	const __u32 own = RL_LIMIT_OWN_BUCKET;

	if ((class->flags & own) == (general->flags & own) &&
	    !memcmp(class->bits, general->bits, sizeof(class->bits)))
		return false;
	class->flags = (class->flags & ~own) | (general->flags & own);
	memcpy(class->bits, general->bits, sizeof(class->bits));
	return true;
}

bool rl_limit_says(const struct rl_limit *limit)
{
	const struct rl_terms *terms = &limit->terms;

	if (terms->packets_per_hour || terms->bits_per_second || terms->action != RL_ACTION_LIMIT)
		return true;
	return limit->level == RL_LEVEL_TENANT && terms->priority != RL_PRIORITY_UNSET;
}

void rl_limit_forgive(struct rl_limit *limit, const struct rl_limit *old)
{
	limit->gen = old->gen + 1;
	memset(limit->past, 0, sizeof(limit->past));
	for (int unit = 0; unit < RL_UNITS; unit++)
		limit->rate[unit].owed = limit->rate[unit].burst;
}

__u64 rl_limit_overdrawn(const struct rl_limit *limit)
{
	__u64 longest = 0;

	for (int unit = 0; unit < RL_UNITS; unit++) {
		const struct rl_rate *rate = &limit->rate[unit];

		if (rate->mult && rate->owed > rate->burst)
			longest = larger(longest, (rate->owed - rate->burst) >> rate->shift);
	}
	return longest;
}

void rl_limit_nd(struct rl_limit *out)
{
	struct rl_limit limit = {.gen = 1,
				 .level = RL_LEVEL_DEVICE,
				 .priority = RL_PRIORITY_UNSET,
				 .terms = {.packets_per_hour = 1000ULL * PER_HOUR,
					   .burst_packets = 1000,
					   .priority = RL_PRIORITY_UNSET}};

	rl_rate_compute(limit.terms.packets_per_hour, PER_HOUR, limit.terms.burst_packets, SMALLEST_PACKET,
			&limit.rate[RL_PACKETS]);
	*out = limit;
}

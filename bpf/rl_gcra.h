/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_gcra.h - the token bucket as arithmetic on one 64-bit word. Pure: the clock is an argument, no memory is
 * touched.
 *
 * A bucket of `burst` tokens that refills at `rate` is kept as its theoretical arrival time, TAT: the time at
 * which it would be full again if nothing more came (the generic cell rate algorithm of ITU-T I.371, virtual
 * scheduling form). The debt, TAT - now, is what has been taken and not yet refilled. A packet is admitted
 * when, after it took its cost, the debt is still within the burst. TAT <= now is a full bucket.
 *
 * The word:    63                                        8 7        0
 *             | TAT, in bucket time units of 2^-shift ns   |  tag    |
 * Times wrap modulo 2^64 and all have eight zero bits below, so adding and comparing them needs no mask, and
 * the tag travels through one compare-and-swap with the time. The tag names the limit's generation, i.e. the
 * rate that the debt is counted in: its lowest seven bits beside a 1, never 0, so the word 0 is "never charged", and so is
 * RL_GCRA_FORGOTTEN no time.
 *
 * Bounds (limit.c refuses what breaks them):
 *   - shift in [8, 22]; burst < 2^62 units, half of what a signed difference can tell;
 *   - one token takes mult * 2^8 / 2^RL_GCRA_FRAC units; a packet's cost is rounded up once to a multiple of
 *     2^8: never in the source's favour, and by at most one part in 4096 of the smallest packet's cost;
 *   - half the wrap is 2^63 units: 1.1 years at shift 8 (up to 244 kpps or 117 mbit), 1.2 hours at shift 21
 *     (800 Gbit/s). A bucket that wasn't touched for longer than all that it can owe takes to pay back is full
 *     by its stamp, and its word isn't looked at, so no idle time is too long.
 */
#ifndef RL_GCRA_H
#define RL_GCRA_H

#include "rl_abi.h"

#define RL_GCRA_FRAC	  12	  /* fraction bits of rl_rate.mult */
#define RL_GCRA_TAG	  0xffULL /* the tag's bits of the word, and the lowest bits of every time */
#define RL_GCRA_BURST_MAX (1ULL << 62)
#define RL_GCRA_STAMP	  30	   /* a bucket's stamp counts 2^30 ns, about a second */
#define RL_GCRA_MISSED	  64	   /* generations; a word this old may carry a tag that came round again */
#define RL_GCRA_AHEAD	  8	   /* generations by which another CPU's policy may be newer than ours */
#define RL_GCRA_FORGOTTEN 0x100ULL /* a word without a tag: it owes all that can be owed */

enum rl_gcra_verdict {
	RL_GCRA_ADMIT,	/* store `next`, the packet is within the limit */
	RL_GCRA_REJECT, /* store nothing */
	RL_GCRA_REPAIR, /* store `next`, a bucket emptied or its debt converted to the present rate; reject */
	RL_GCRA_NEWER,	/* the word belongs to a newer generation than ours: reject, store nothing */
	RL_GCRA_CONTENDED, /* rl_bucket.h: other CPUs won every compare-and-swap: reject, nothing was stored */
};

/* One unit's bucket, as it was read. */
struct rl_bucket {
	__u64 word;
	__u32 gen;   /* of rl_buckets.version: the words' generation, or an earlier one; 0: never charged */
	__u32 stamp; /* when the word was last stored, ns >> RL_GCRA_STAMP */
};

struct rl_gcra_result {
	__u64 next; /* the word to store; meaningful for ADMIT and REPAIR */
	enum rl_gcra_verdict verdict;
};

RL_INLINE __u64 rl_gcra_tag(__u32 gen)
{
	return 0x80 | (gen & 0x7f);
}

/* The clock, ns, in the bucket's units. Wraps. */
RL_INLINE __u64 rl_gcra_time(const struct rl_rate *rate, __u64 now)
{
	return now << rate->shift;
}

/*
 * What `tokens` cost, in units; rounded up, and at most RL_GCRA_BURST_MAX, which no burst holds. By parts, since the
 * product of the dearest packet and the slowest rate takes 71 bits. Bounds: tokens < 2^21, mult < 2^54: the whole part
 * < 2^63, the fraction's < 2^33.
 */
RL_INLINE __u64 rl_gcra_cost(const struct rl_rate *rate, __u64 tokens)
{
	const __u64 fraction = (1ULL << RL_GCRA_FRAC) - 1;
	__u64 coarse = tokens * (rate->mult >> RL_GCRA_FRAC) +
		       ((tokens * (rate->mult & fraction) + fraction) >> RL_GCRA_FRAC);

	return coarse < RL_GCRA_BURST_MAX >> 8 ? coarse << 8 : RL_GCRA_BURST_MAX;
}

/*
 * A debt counted at `old_mult` per token, counted at `mult`: the same number of tokens, rounded up. Exact in 64 bits by
 * parts: whole multiples of old_mult first, then the remainder as a fraction of 2^-31. Bounds: debt < 2^63; 0 < old_mult,
 * mult < 2^54. The cut leaves the divisor at least 24 bits, so the fraction is too large by at most 2^-23.
 */
RL_INLINE __u64 rl_gcra_convert(__u64 debt, __u64 old_mult, __u64 mult)
{
	__u64 whole = debt / old_mult, rest = debt % old_mult, part;

	if (whole >= RL_GCRA_BURST_MAX / mult)
		return RL_GCRA_BURST_MAX; /* never so: set-limit refuses such a change */
	for (int i = 0; i < 3 && old_mult >> 32; i++) {
		old_mult >>= 8;
		rest = (rest + 255) >> 8;
	}
	part = ((rest << 31) + old_mult - 1) / old_mult; /* rest <= old_mult + 1 < 2^32 + 1, part < 2^32 */
	part = part * (mult >> 32) * 2 + ((part * (mult & 0xffffffff) + (1ULL << 31) - 1) >> 31);
	return (whole * mult + part + RL_GCRA_TAG) & ~RL_GCRA_TAG; /* < 2^62 + 2^55 + 2^8 */
}

/* What is left of a debt after the time from `since` to `until`, ns. */
RL_INLINE __u64 rl_gcra_decay(__u64 debt, __u32 shift, __u64 since, __u64 until)
{
	__u64 elapsed = (__s64)(until - since) > 0 ? until - since : 0;

	return debt >> shift < elapsed ? 0 : debt - (elapsed << shift);
}

/*
 * What a word owes at the time `at`, ns, in units of the given shift. `owed` is the most that it can have owed
 * when it was stored. The stamp is rounded down, and another CPU's may be a tick behind, hence two more; up to
 * there the difference can't have wrapped.
 */
RL_INLINE __u64 rl_gcra_debt(const struct rl_bucket *seen, __u32 shift, __u64 owed, __u64 at)
{
	__s64 idle = (__s32)((__u32)(at >> RL_GCRA_STAMP) - seen->stamp);
	__s64 debt = (__s64)((seen->word & ~RL_GCRA_TAG) - (at << shift));

	if (idle > (__s64)(owed >> shift >> RL_GCRA_STAMP) + 2)
		return 0;
	return debt > 0 ? (__u64)debt : 0;
}

/* Is the word so old that its tag may have come round again? A generation of 0 is a bucket's first moment. */
RL_INLINE int rl_gcra_missed(const struct rl_limit *limit, const struct rl_bucket *seen)
{
	return seen->gen && (__s32)(limit->gen - seen->gen) >= RL_GCRA_MISSED;
}

/*
 * A word whose tag isn't the limit's own: its debt, carried through every change since the generation it was
 * counted in. At each change what is owed then is converted, and shrinks from there on at the next rate: a
 * bucket that nobody touched owes what it would owe had it been touched at each change. A burst that shrinks
 * forgives nothing, or shrinking and growing it in turn would be worth a burst each time: a bucket may owe more
 * than it can hold, and admits nothing until it doesn't. Where a generation had no limit in this unit, the debt
 * goes on shrinking as before.
 *
 * Returns 0 and the debt; or NEWER; or REPAIR and the most that can be owed, for a bucket that missed more
 * changes than are remembered: it was empty at the last one, and below that where an earlier burst was larger, and has filled
 * since like any other. Or a source that comes seldom would be shut out by a limit that is adjusted often.
 */
RL_FUNCTION int rl_gcra_carry(const struct rl_limit *limit, enum rl_unit unit, const struct rl_bucket *seen,
			      __u64 now, __u64 *debt)
{
	__u64 tag, owed = 0, mult = 0;
	__u32 shift = 0;

	if (!limit || !seen || !debt || unit >= RL_UNITS)
		return RL_GCRA_REPAIR; /* never so: said for the verifier, who sees this function alone */
	/* What a bucket that can't be converted owes: all that it can. */
	*debt = rl_gcra_decay(limit->rate[unit].owed, limit->rate[unit].shift, limit->past[0].until, now) &
		~RL_GCRA_TAG;
	tag = seen->word & RL_GCRA_TAG;
	if (rl_gcra_missed(limit, seen) || seen->word == RL_GCRA_FORGOTTEN)
		return RL_GCRA_REPAIR;
	if (seen->gen && (__s32)(limit->gen - seen->gen) < 0)
		return RL_GCRA_NEWER;
	for (__u32 i = RL_PAST; i-- > 0;) {
		const struct rl_past *past = &limit->past[i], *next = i ? &limit->past[i - 1] : 0;
		__u64 next_mult = next ? next->mult[unit] : limit->rate[unit].mult;
		__u64 until =
		    (__s64)(now - past->until) > 0 ? past->until : now; /* a change isn't still to come */

		if (!mult && past->mult[unit] && tag == rl_gcra_tag(limit->gen - 1 - i)) {
			mult = past->mult[unit];
			shift = past->shift[unit];
			owed = rl_gcra_debt(seen, shift, past->owed[unit], until);
		}
		if (!mult)
			continue;
		if (next_mult) {
			owed = rl_gcra_convert(owed, mult, next_mult);
			mult = next_mult;
			shift = next ? next->shift[unit] : limit->rate[unit].shift;
		}
		owed = rl_gcra_decay(owed, shift, until, next ? next->until : now);
	}
	if (mult) {
		*debt = owed;
		return 0;
	}
	if (((tag - rl_gcra_tag(limit->gen)) & 0x7f) <= RL_GCRA_AHEAD)
		return RL_GCRA_NEWER;
	return RL_GCRA_REPAIR;
}

/* Is the word of the limit's present generation? Then its debt is rl_gcra_debt(), without a conversion. */
RL_INLINE int rl_gcra_present(const struct rl_limit *limit, const struct rl_bucket *seen)
{
	return !seen->word ||
	       ((seen->word & RL_GCRA_TAG) == rl_gcra_tag(limit->gen) && !rl_gcra_missed(limit, seen));
}

/*
 * The most that a bucket owes now, for who would give it to another source: 0 only where nothing is lost by that. One that
 * missed more changes than are remembered owed no more than could be owed when the present generation began. In a unit that
 * the limit doesn't have it goes on owing for a generation that has it again; what can't be converted then, for good.
 */
RL_INLINE __u64 rl_gcra_owes(const struct rl_limit *limit, enum rl_unit unit, const struct rl_bucket *seen,
			     __u64 now)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 debt;
	int verdict;

	if (!seen->word)
		return 0;
	if (rate->mult && rl_gcra_present(limit, seen))
		return rl_gcra_debt(seen, rate->shift, rate->owed, now);
	verdict = rl_gcra_carry(limit, unit, seen, now, &debt);
	if (verdict == RL_GCRA_NEWER || (verdict && !rate->mult))
		return RL_GCRA_BURST_MAX;
	return debt;
}

/* As below, of a bucket whose debt is known, at `t` in its units. */
RL_INLINE struct rl_gcra_result rl_gcra_weigh(const struct rl_rate *rate, __u64 tag, __u64 t, __u64 debt,
					      __u64 cost, __u64 kept)
{
	if (debt + cost > rate->burst - kept)
		return (struct rl_gcra_result){.next = (t + debt) | tag, .verdict = RL_GCRA_REJECT};
	return (struct rl_gcra_result){.next = (t + debt + cost) | tag, .verdict = RL_GCRA_ADMIT};
}

/*
 * Decide one packet that costs `cost` units against a copy of its bucket, whose last `kept` units it must leave alone (a
 * reserve for packets of a higher priority; at most the burst). `now` is the clock in ns. The caller stores `next` by
 * compare-and-swap against seen->word, or decides again where that fails.
 */
RL_INLINE struct rl_gcra_result rl_gcra_decide(const struct rl_limit *limit, enum rl_unit unit,
					       const struct rl_bucket *seen, __u64 cost, __u64 kept,
					       __u64 now)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 t = rl_gcra_time(rate, now), tag = rl_gcra_tag(limit->gen), debt = 0;
	struct rl_gcra_result result;
	int present = rl_gcra_present(limit, seen);

	if (!present) {
		int verdict = rl_gcra_carry(limit, unit, seen, now, &debt);

		if (verdict) {
			result.next = (t + debt) | tag;
			result.verdict = verdict;
			return result;
		}
	} else if (seen->word) {
		debt = rl_gcra_debt(seen, rate->shift, rate->owed, now);
	}
	result = rl_gcra_weigh(rate, tag, t, debt, cost, kept);
	/* A debt of an earlier rate is settled by the first packet, admitted or not. */
	if (!present && result.verdict == RL_GCRA_REJECT)
		result.verdict = RL_GCRA_REPAIR;
	return result;
}

#endif

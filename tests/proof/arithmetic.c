// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parts of rl_gcra.h one by one, each held to 128-bit arithmetic that can't overflow. */
#include "proof.h"

/*
 * Nothing wraps (cbmc looks at each operation), and the cost is exact but for one rounding up to 2^8; what
 * is more than any burst costs RL_GCRA_BURST_MAX. Whole and fraction of mult are chosen apart, in which
 * order the product is decided in time.
 */
void prove_cost(void)
{
	__u64 fraction = nondet_u64() & ((1 << RL_GCRA_FRAC) - 1);
	__u64 whole = nondet_u64() & ((MULT_MAX >> RL_GCRA_FRAC) - 1);
	__u64 tokens = 1 + (nondet_u64() & ((1 << 21) - 1)), cost;
	struct rl_rate rate = {.mult = whole << RL_GCRA_FRAC | fraction};
	u128 product = ((u128)(tokens * whole) << RL_GCRA_FRAC) + tokens * fraction; /* tokens * mult */
	u128 exact = product << 8; /* in units, with RL_GCRA_FRAC fraction bits */
	u128 unit = 1 << RL_GCRA_FRAC;

	__CPROVER_assume(rate.mult);
	cost = rl_gcra_cost(&rate, tokens);
	__CPROVER_assert(!(cost & RL_GCRA_TAG), "cost leaves the tag's bits alone");
	__CPROVER_assert(cost > 0 && cost <= RL_GCRA_BURST_MAX, "cost is in range");
	__CPROVER_assert(cost == RL_GCRA_BURST_MAX || cost * unit >= exact,
			 "cost is never in the source's favour");
	__CPROVER_assert(cost * unit < exact + (unit << 8), "cost is rounded once");
}

void prove_decay(void)
{
	__u64 debt = any_below(1ULL << 63), since = any_below(NOW_MAX), until = any_below(NOW_MAX);
	__u32 shift = any_shift();
	s128 exact = until > since ? exact_decay((s128)debt, shift, (__s64)(until - since)) : (s128)debt;

	__CPROVER_assert(rl_gcra_decay(debt, shift, since, until) == exact,
			 "decay is exact, however long it takes");
}

/*
 * A word owes what it owed when it was stored less the time since, whatever that time is: a tick before (a
 * clock that another CPU read earlier) up to decades, through any number of wraps.
 */
void prove_debt(void)
{
	__u32 shift = any_shift();
	__u64 at = any_below(NOW_MAX), owed = any_time(RL_GCRA_BURST_MAX - 1), debt = any_time(owed);
	__s64 elapsed = any_elapsed(at);
	struct rl_bucket seen = stored(nondet_u32(), shift, at, elapsed, debt);
	s128 exact = exact_decay((s128)debt, shift, elapsed);

	__CPROVER_assert(rl_gcra_debt(&seen, shift, owed, at) == exact, "debt is exact after any idle time");
	/* A stamp that was stored ahead of its word. */
	seen.stamp += (__u32)any_below(1ULL << 30);
	__CPROVER_assert(rl_gcra_debt(&seen, shift, owed, at) >= exact, "and never less by a newer stamp");
}

/* Nothing wraps (cbmc looks at each operation), for all debts and all pairs of rates. */
void prove_convert_range(void)
{
	__u64 debt = any_below(1ULL << 63), converted = rl_gcra_convert(debt, any_mult(), any_mult());

	__CPROVER_assert(!(converted & RL_GCRA_TAG), "convert leaves the tag's bits alone");
	__CPROVER_assert(converted < 1ULL << 63, "what it returns is a debt");
}

/*
 * As limit.c computes it: `tokens` each `per_seconds`, at the first shift that makes the smallest packet
 * dear enough.
 */
static __u64 mult_of(__u64 tokens, __u64 per_seconds, __u64 smallest)
{
	u128 ns = (u128)per_seconds * 1000000000;
	int shift = SHIFT_MIN;

	while (shift < SHIFT_MAX && (ns * smallest << (shift - SHIFT_MIN)) < (u128)4096 * tokens)
		shift++;
	return (__u64)(((ns << (shift - SHIFT_MIN) << RL_GCRA_FRAC) + tokens - 1) / tokens);
}

static __u64 packets(__u64 an_hour)
{
	__u64 mult = mult_of(an_hour, 3600, 1), whole = 1 << RL_GCRA_FRAC;

	return (mult + whole - 1) / whole * whole;
}

static __u64 bits(__u64 a_second)
{
	return mult_of(a_second, 8, 60);
}

/* The pair of rates, as scripts/proof gives it: packets(N) or bits(N). */
#ifndef OLD
#define OLD packets(1)
#define NEW bits(1000)
#endif

/*
 * One pair of rates, all debts below 2^62: never less than the exact debt, and more by at most 2^-23 of a
 * token and two roundings (to a unit, then to 2^8). With both rates free the products are beyond what can be
 * decided in time.
 */
void prove_convert_exact(void)
{
	__u64 debt = any_below(RL_GCRA_BURST_MAX), old = OLD, new = NEW, converted;
	u128 exact = (u128)debt * new; /* times `old` */

	__CPROVER_assume(exact < (u128)RL_GCRA_BURST_MAX * old); /* set-limit refuses the others */
	converted = rl_gcra_convert(debt, old, new);
	__CPROVER_assert((u128)converted * old >= exact, "convert never forgives");
	if (exact >= (u128)(RL_GCRA_BURST_MAX - new) * old)
		return; /* within a token of that, it is RL_GCRA_BURST_MAX */
	__CPROVER_assert((u128)converted * old <= exact + (u128)old * ((new >> 23) + 2 + RL_GCRA_TAG),
			 "convert adds at most 2^-23 of a token and two roundings");
}

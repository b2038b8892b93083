/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * proof.h - what the proofs about bpf/rl_gcra.h share. They are C functions for cbmc (scripts/proof), which
 * looks for inputs that break an assertion among all the inputs that the assumptions leave: every value of
 * every nondet_*() below.
 *
 * The assumptions are what user/limit.c lets through: shift in [8, 22]; 0 < mult < 2^54; 0 < burst <= owed <
 * 2^62; kept <= burst; and a cost of at most 2^62, which is more than any burst. Times and
 * costs are multiples of 2^8. The clock is below 2^60 ns, 36 years.
 */
#ifndef RL_PROOF_H
#define RL_PROOF_H

#include <stdbool.h>

#include "../../bpf/rl_gcra.h"

#define SHIFT_MIN 8
#define SHIFT_MAX 22
#define MULT_MAX  (1ULL << 54)
#define NOW_MAX	  (1ULL << 60)
#define TICK	  (1ULL << RL_GCRA_STAMP)
#define AHEAD	  8 /* generations by which a word may be newer */

typedef unsigned __int128 u128;
typedef __int128 s128;

/* cbmc knows these by name: what begins with nondet_ returns every value of its type. */
void __CPROVER_assume(bool condition);
void __CPROVER_assert(bool condition, const char *what);

__u64 nondet_u64(void);
__s64 nondet_s64(void);
__u32 nondet_u32(void);
_Bool nondet_bool(void);
struct rl_limit nondet_limit(void);

static inline __u64 any_below(__u64 end)
{
	__u64 value = nondet_u64();

	__CPROVER_assume(value < end);
	return value;
}

static inline __u64 any_time(__u64 most)
{
	__u64 units = nondet_u64();

	__CPROVER_assume(units <= most && !(units & RL_GCRA_TAG));
	return units;
}

static inline __u32 any_shift(void)
{
	__u32 shift = nondet_u32();

	__CPROVER_assume(shift >= SHIFT_MIN && shift <= SHIFT_MAX);
	return shift;
}

static inline __u64 any_mult(void)
{
	return 1 + any_below(MULT_MAX - 1);
}

/* A limit whose present generation limits packets as user space lets it; the rest is any. */
static inline struct rl_limit any_accepted(void)
{
	struct rl_limit limit = nondet_limit();
	struct rl_rate *rate = &limit.rate[RL_PACKETS];

	rate->shift = any_shift();
	rate->mult = any_mult();
	rate->burst = any_time(RL_GCRA_BURST_MAX - 1);
	rate->owed = any_time(RL_GCRA_BURST_MAX - 1);
	__CPROVER_assume(rate->burst && rate->owed >= rate->burst);
	/* A generation of 0 is a bucket that was never charged: there is none. */
	__CPROVER_assume(limit.gen >= 1 && limit.gen <= 0xffffffff - AHEAD);
	for (__u32 i = 0; i < RL_PAST; i++) {
		if (limit.gen <= 1 + i) /* there was no generation before the first */
			limit.past[i].mult[RL_PACKETS] = 0;
		__CPROVER_assume(limit.past[i].shift[RL_PACKETS] <= SHIFT_MAX);
		__CPROVER_assume(limit.past[i].owed[RL_PACKETS] < RL_GCRA_BURST_MAX);
	}
	return limit;
}

/* What is left of a debt after `elapsed` ns, exactly; before it was stored, where that is negative: more. */
static inline s128 exact_decay(s128 debt, __u32 shift, __s64 elapsed)
{
	s128 left = elapsed >= 0 ? debt - ((s128)elapsed << shift) : debt + (-(s128)elapsed << shift);

	return left > 0 ? left : 0;
}

/*
 * A word of generation `gen` that was stored `elapsed` ns before `at` and owed `debt` then. It holds
 * ((at - elapsed) << shift) + debt; written in another order, in which the proofs take seconds instead of hours.
 * Its stamp may be a tick behind: another CPU's, whose store of the word lost and whose store of the stamp
 * came last.
 */
static inline struct rl_bucket stored(__u32 gen, __u32 shift, __u64 at, __s64 elapsed, __u64 debt)
{
	struct rl_bucket seen = {.word =
				     ((at << shift) + (debt - ((__u64)elapsed << shift))) | rl_gcra_tag(gen),
				 .stamp = (__u32)((at - (__u64)elapsed) >> RL_GCRA_STAMP) - nondet_bool()};

	return seen;
}

/*
 * How long before `at` something happened: up to all of `at`, or at most a tick after it, by a clock read
 * earlier.
 */
static inline __s64 any_elapsed(__u64 at)
{
	__s64 elapsed = nondet_s64();

	__CPROVER_assume(elapsed >= -(__s64)TICK && elapsed <= (__s64)at);
	return elapsed;
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Decisions about one packet: what is admitted, what is stored, and what that means for a whole sequence of
 * packets.
 */
#include "proof.h"

/*
 * scripts/proof puts these in the place of the functions of rl_gcra.h that have proofs of their own in
 * arithmetic.c: each returns all that the real one can return, and remembers what it was asked.
 */
int model_carry(const struct rl_limit *limit, enum rl_unit unit, const struct rl_bucket *seen, __u64 now,
		__u64 *debt);
__u64 model_convert(__u64 debt, __u64 old_mult, __u64 mult);
__u64 model_debt(const struct rl_bucket *seen, __u32 shift, __u64 owed, __u64 at);
__u64 model_tag(__u32 gen);

static struct {
	__u32 times;
	int verdict;
	__u64 debt;
} carrying;

int model_carry(const struct rl_limit *limit, enum rl_unit unit, const struct rl_bucket *seen, __u64 now,
		__u64 *debt)
{
	(void)limit, (void)unit, (void)seen, (void)now;
	carrying.times++;
	carrying.verdict = nondet_bool() ? 0 : nondet_bool() ? RL_GCRA_REPAIR : RL_GCRA_NEWER;
	carrying.debt = any_below(1ULL << 63);
	*debt = carrying.debt;
	return carrying.verdict;
}

static struct {
	__u64 debt, old_mult, mult, answer;
	__u32 times;
} conversion;

__u64 model_convert(__u64 debt, __u64 old_mult, __u64 mult)
{
	conversion.debt = debt;
	conversion.old_mult = old_mult;
	conversion.mult = mult;
	conversion.times++;
	conversion.answer = any_time((1ULL << 63) - 1);
	return conversion.answer;
}

static struct {
	const struct rl_bucket *seen;
	__u32 shift;
	__u64 owed, at, answer;
} owing;

/* A clock read up to a tick before the bucket was stored sees more than it owed then. */
__u64 model_debt(const struct rl_bucket *seen, __u32 shift, __u64 owed, __u64 at)
{
	owing.seen = seen;
	owing.shift = shift;
	owing.owed = owed;
	owing.at = at;
	owing.answer = any_time(owed + (TICK << SHIFT_MAX));
	return owing.answer;
}

static struct {
	__u32 gen;
	__s32 tag;
} known;

/* One of 128 to 255, any for one generation, and counting up and coming round from there. */
__u64 model_tag(__u32 gen)
{
	__s32 distance, tag;

	if (!known.tag) {
		known.gen = gen;
		known.tag = (__s32)(128 + any_below(128));
	}
	distance = (__s32)(gen - known.gen);
	__CPROVER_assert(distance > -128 && distance < 128, "model_tag() knows the generation");
	tag = known.tag + distance;
	return (__u64)(tag < 128 ? tag + 128 : tag > 255 ? tag - 128 : tag);
}

/* As it is stored: a TAT that is `debt` and `cost` ahead of the clock. */
static __u64 word_of(const struct rl_limit *limit, __u64 debt, __u64 cost, __u64 now)
{
	return ((now << limit->rate[RL_PACKETS].shift) + debt + cost) | rl_gcra_tag(limit->gen);
}

static bool of_present(const struct rl_limit *limit, const struct rl_bucket *seen)
{
	return (seen->word & RL_GCRA_TAG) == rl_gcra_tag(limit->gen) &&
	       (!seen->gen || (__s32)(limit->gen - seen->gen) < RL_GCRA_MISSED);
}

/* What a bucket owes, by whom decide has to ask. */
static __u64 owed_by(const struct rl_limit *limit, const struct rl_bucket *seen, __u64 now)
{
	const struct rl_rate *rate = &limit->rate[RL_PACKETS];

	if (!seen->word)
		return 0;
	if (!of_present(limit, seen)) {
		__CPROVER_assert(carrying.times == 1, "another generation's debt is carried over");
		return carrying.debt;
	}
	__CPROVER_assert(!carrying.times && owing.seen == seen && owing.shift == rate->shift &&
			     owing.owed == rate->owed && owing.at == now,
			 "the present generation's debt is what it owes now");
	return owing.answer;
}

/*
 * Whatever a bucket's memory holds: a packet is admitted exactly where what is owed, its cost and what is
 * kept fit in the burst, and TAT is then what was owed and the cost ahead of the clock: never further than
 * the burst less what is kept. Of the present generation, any other packet is rejected, which stores
 * nothing.
 */
void prove_decide(void)
{
	const struct rl_limit limit = any_accepted();
	const struct rl_rate *rate = &limit.rate[RL_PACKETS];
	const struct rl_bucket seen = {.word = nondet_u64(), .gen = nondet_u32(), .stamp = nondet_u32()};
	__u64 now = any_below(NOW_MAX), cost = any_time(RL_GCRA_BURST_MAX), kept = any_time(rate->burst);
	struct rl_gcra_result result = rl_gcra_decide(&limit, RL_PACKETS, &seen, cost, kept, now);
	__u64 owed = owed_by(&limit, &seen, now);

	if (!carrying.verdict && (u128)owed + cost <= rate->burst - kept) {
		__CPROVER_assert(result.verdict == RL_GCRA_ADMIT, "what fits is admitted");
		__CPROVER_assert(result.next == word_of(&limit, owed, cost, now),
				 "TAT moves by the cost and not past the burst");
		return;
	}
	__CPROVER_assert(result.verdict == (carrying.verdict ? (enum rl_gcra_verdict)carrying.verdict
					    : carrying.times ? RL_GCRA_REPAIR
							     : RL_GCRA_REJECT),
			 "what doesn't fit isn't admitted");
	if (result.verdict == RL_GCRA_REPAIR)
		__CPROVER_assert(result.next == word_of(&limit, owed, 0, now), "a repair charges nothing");
}

/*
 * With the clock standing still, of packets of one cost exactly floor((burst - kept) / cost) are admitted.
 * By induction on the number n of those admitted: a full bucket owes 0 = 0 * cost; one that owes n * cost
 * admits the next exactly where (n + 1) * cost <= burst - kept, and then owes (n + 1) * cost, as
 * prove_debt() says of a word just stored. A rejected packet changes nothing, so all that follow are
 * rejected too. `debt` is n * cost.
 */
void prove_full_step(void)
{
	const struct rl_limit limit = any_accepted();
	const struct rl_rate *rate = &limit.rate[RL_PACKETS];
	__u64 now = any_below(NOW_MAX), cost = any_time(RL_GCRA_BURST_MAX), kept = any_time(rate->burst);
	__u64 debt = any_time(rate->burst - kept);
	struct rl_bucket seen = {
	    .word = word_of(&limit, debt, 0, now), .gen = limit.gen, .stamp = nondet_u32()};
	struct rl_gcra_result result;

	if (!debt && nondet_bool())
		seen.word = 0;
	result = rl_gcra_decide(&limit, RL_PACKETS, &seen, cost, kept, now);
	__CPROVER_assume(!seen.word || owing.answer == debt);
	__CPROVER_assert(!carrying.times, "nothing is carried over");
	if (debt + cost <= rate->burst - kept) {
		__CPROVER_assert(result.verdict == RL_GCRA_ADMIT, "while there is room, admitted");
		__CPROVER_assert(result.next == word_of(&limit, debt, cost, now), "and owes one more cost");
	} else {
		__CPROVER_assert(result.verdict == RL_GCRA_REJECT, "without room, rejected");
	}
}

/*
 * A word of up to eight generations ahead of ours rejects, nothing stored, and is never taken for one of
 * ours.
 */
void prove_newer(void)
{
	const struct rl_limit limit = any_accepted();
	struct rl_bucket seen = {.word = any_time(~0ULL), .gen = nondet_u32(), .stamp = nondet_u32()};
	__u32 ahead = nondet_u32();
	struct rl_gcra_result result;

	__CPROVER_assume(ahead >= 1 && ahead <= AHEAD);
	seen.word |= rl_gcra_tag(limit.gen + ahead);
	/* The word's own generation, or an earlier one where that store is still to come. */
	__CPROVER_assume(seen.gen <= limit.gen + ahead &&
			 (!seen.gen || limit.gen + ahead - seen.gen < RL_GCRA_MISSED));
	result =
	    rl_gcra_decide(&limit, RL_PACKETS, &seen, any_time(RL_GCRA_BURST_MAX - 1), 0, any_below(NOW_MAX));
	__CPROVER_assert(result.verdict == RL_GCRA_NEWER, "a newer word is known as newer");
}

/*
 * A word of fewer than RL_GCRA_MISSED generations behind ours is never taken for a newer one: that would reject until it is
 * gone.
 */
void prove_older(void)
{
	const struct rl_limit limit = any_accepted();
	struct rl_bucket seen = {.word = any_time(~0ULL), .stamp = nondet_u32()};
	__u32 behind = nondet_u32();
	struct rl_gcra_result result;

	__CPROVER_assume(behind >= 1 && behind < RL_GCRA_MISSED && behind < limit.gen);
	seen.word |= rl_gcra_tag(limit.gen - behind);
	seen.gen = nondet_bool() ? 0 : limit.gen - behind;
	result =
	    rl_gcra_decide(&limit, RL_PACKETS, &seen, any_time(RL_GCRA_BURST_MAX - 1), 0, any_below(NOW_MAX));
	__CPROVER_assert(result.verdict == RL_GCRA_ADMIT || result.verdict == RL_GCRA_REPAIR,
			 "an older word is carried over or repaired");
}

/*
 * A word of the generation before, after one change: what it owed at the change is converted, once, from the
 * old rate to the new, and shrinks at the new rate since then. Exactly so; with the conversion's own proof
 * (never less than exact), carry never returns less debt than the exact conversion. A packet that had read
 * the old limit may have stored the word up to a tick after the change, and a packet's clock may be read
 * before it.
 */
void prove_carry(void)
{
	struct rl_limit limit = any_accepted();
	const struct rl_rate *rate = &limit.rate[RL_PACKETS];
	struct rl_past *past = &limit.past[0];
	__u64 now = any_below(NOW_MAX), carried, change;
	struct rl_bucket seen = {.word = any_time(~0ULL), .stamp = nondet_u32()};

	past->shift[RL_PACKETS] = any_shift();
	past->mult[RL_PACKETS] = any_mult();
	past->owed[RL_PACKETS] = any_time(RL_GCRA_BURST_MAX - 1);
	past->until = any_below(NOW_MAX);
	__CPROVER_assume(limit.gen > RL_PAST);
	change = past->until < now ? past->until : now;
	seen.gen = nondet_bool() ? 0 : limit.gen - 1;
	seen.word |= rl_gcra_tag(limit.gen - 1);

	__CPROVER_assert(!rl_gcra_carry(&limit, RL_PACKETS, &seen, now, &carried), "it is carried over");
	__CPROVER_assert(conversion.times == 1 && conversion.old_mult == past->mult[RL_PACKETS] &&
			     conversion.mult == rate->mult,
			 "converted once, from the old rate to the new");
	__CPROVER_assert(owing.seen == &seen && owing.shift == past->shift[RL_PACKETS] &&
			     owing.owed == past->owed[RL_PACKETS] && owing.at == change &&
			     conversion.debt == owing.answer,
			 "what it owed at the change, by the old rate");
	__CPROVER_assert(carried == exact_decay((s128)conversion.answer, rate->shift, (__s64)(now - change)),
			 "and shrunk at the new rate since");
}

/*
 * A bucket that can't be converted owes all that could be owed at the last change, at least the burst, and less only as time has
 * paid that back since.
 */
void prove_repair(void)
{
	const struct rl_limit limit = any_accepted();
	const struct rl_bucket seen = {.word = nondet_u64(), .gen = nondet_u32(), .stamp = nondet_u32()};
	const struct rl_rate *rate = &limit.rate[RL_PACKETS];
	__u64 debt = 0, now = nondet_u64();
	int verdict = rl_gcra_carry(&limit, RL_PACKETS, &seen, now, &debt);
	__s64 since = (__s64)(now - limit.past[0].until);

	__CPROVER_assert(!verdict || verdict == RL_GCRA_REPAIR || verdict == RL_GCRA_NEWER, "one of three");
	if (verdict == RL_GCRA_REPAIR)
		__CPROVER_assert(debt == exact_decay((s128)rate->owed, rate->shift, since > 0 ? since : 0) &&
				     !(debt & RL_GCRA_TAG),
				 "it owes what could be owed, less what has flowed in");
}

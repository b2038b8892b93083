/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_bucket.h - buckets in shared memory: look, charge by compare-and-swap, refund. Compiles on both sides.
 *
 * Rule: all or nothing. A packet is looked at in both units first, then charged in both. Only a race can make
 * the second charge fail after the first went through; the first is then refunded, and the refund is
 * forfeited where the bucket may have been full since, because it would mint tokens.
 *
 * A lagging `now` is harmless in a retry: another CPU's charge left TAT ahead of its own, later clock, so no
 * refill is computed from ours.
 *
 * The includer defines `__u64 rl_now(void)`, the clock in ns; it is read only for a refund.
 */
#ifndef RL_BUCKET_H
#define RL_BUCKET_H

#include "rl_gcra.h"

#define RL_BUCKET_TRIES 16 /* lost compare-and-swaps before a packet gives up */
#define RL_REFUND_SLACK_NS                                                                                   \
	1000 /* clocks of two CPUs differ by less; a bucket this near to full may have been full */

/*
 * Read while other CPUs write: one load each, never repeated by the compiler, and in the order that rl_bucket_store()
 * relies on: the word before its stamp. (On x86 the processor keeps to that order too.)
 */
RL_INLINE struct rl_bucket rl_bucket_load(const struct rl_bucket *bucket)
{
	struct rl_bucket copy;

	copy.word = *(const volatile __u64 *)&bucket->word;
	copy.stamp = *(const volatile __u32 *)&bucket->stamp;
	copy.gen = *(const volatile __u32 *)&bucket->gen;
	return copy;
}

/*
 * Replace the word if it is still `seen`'s. Returns whether it was.
 *
 * The stamp goes before the word: another CPU that sees the new stamp with the old word may take an idle bucket for one
 * in debt and drop a packet; the other way round it would take a charged bucket for an idle one, and mint tokens.
 * The generation goes behind it, and whenever it differs, not only when the tag does: after 255 changes the tag is the
 * same again.
 */
RL_INLINE int rl_bucket_store(struct rl_bucket *bucket, const struct rl_limit *limit,
			      const struct rl_bucket *seen, __u64 next, __u64 now)
{
	__u32 stamp = (__u32)(now >> RL_GCRA_STAMP);

	if ((__s32)(stamp - seen->stamp) > 0)
		*(volatile __u32 *)&bucket->stamp = stamp;
	if (__sync_val_compare_and_swap(&bucket->word, seen->word, next) != seen->word)
		return 0;
	if (seen->gen != limit->gen)
		*(volatile __u32 *)&bucket->gen = limit->gen;
	return 1;
}

/* What one packet costs in one unit, in bucket time; 0 where the limit has no such unit. len: bytes on the
 * wire. */
RL_INLINE __u64 rl_bucket_cost(const struct rl_limit *limit, enum rl_unit unit, __u32 len)
{
	const struct rl_rate *rate = &limit->rate[unit];

	return rate->mult ? rl_gcra_cost(rate, unit == RL_BYTES ? len : 1) : 0;
}

/* One try to charge one unit. *stored is the word that it left, or 0: another CPU was faster, nothing is
 * changed. */
RL_INLINE enum rl_gcra_verdict rl_bucket_try(struct rl_bucket *bucket, const struct rl_limit *limit,
					     enum rl_unit unit, __u64 cost, __u64 now, __u64 *stored)
{
	struct rl_bucket seen = rl_bucket_load(bucket);
	struct rl_gcra_result result = rl_gcra_decide(limit, unit, &seen, cost, now);

	*stored = 0;
	if (result.verdict == RL_GCRA_REJECT || result.verdict == RL_GCRA_NEWER)
		return result.verdict;
	if (!rl_bucket_store(bucket, limit, &seen, result.next, now))
		return RL_GCRA_CONTENDED;
	*stored = result.next;
	return result.verdict;
}

/*
 * The tries after a lost one. Rare, and a function of its own, so that the packet's path stays short for the
 * processor and the verifier. Returns the word it left (never 0, its tag isn't), or the verdict << 8 where
 * nothing was charged.
 */
RL_FUNCTION __u64 rl_bucket_retry(struct rl_bucket *bucket, const struct rl_limit *limit, enum rl_unit unit,
				  __u64 cost, __u64 now)
{
	enum rl_gcra_verdict verdict = RL_GCRA_CONTENDED;
	__u64 stored;

	if (!bucket || !limit)
		return (__u64)RL_GCRA_CONTENDED << 8; /* never so: said for the verifier */
	unit &= RL_UNITS - 1;			      /* likewise */
	for (int try = 1; try < RL_BUCKET_TRIES && verdict == RL_GCRA_CONTENDED; try++)
		verdict = rl_bucket_try(bucket, limit, unit, cost, now, &stored);
	return verdict == RL_GCRA_ADMIT ? stored : (__u64)verdict << 8;
}

/* Charge one unit. On ADMIT, *stored is the word that this packet left. */
RL_INLINE enum rl_gcra_verdict rl_bucket_charge(struct rl_bucket *bucket, const struct rl_limit *limit,
						enum rl_unit unit, __u64 cost, __u64 now, __u64 *stored)
{
	enum rl_gcra_verdict verdict = rl_bucket_try(bucket, limit, unit, cost, now, stored);

	if (verdict != RL_GCRA_CONTENDED)
		return verdict;
	*stored = rl_bucket_retry(bucket, limit, unit, cost, now);
	return *stored & RL_GCRA_TAG ? RL_GCRA_ADMIT : (enum rl_gcra_verdict)(*stored >> 8);
}

/*
 * Give `cost` back, taken by the charge that left `stored`. Between that charge and now the bucket was full
 * at no time if the charge's own TAT is still ahead: TAT never moves back but for refunds. Rare: a function
 * of its own. Returns whether the tokens went back.
 */
RL_FUNCTION int rl_bucket_refund(struct rl_bucket *bucket, const struct rl_limit *limit, enum rl_unit unit,
				 __u64 cost, __u64 stored)
{
	__u64 now = rl_now(), t;

	if (!bucket || !limit)
		return 0;     /* never so: said for the verifier */
	unit &= RL_UNITS - 1; /* likewise */
	t = rl_gcra_time(&limit->rate[unit], now + RL_REFUND_SLACK_NS);
	if ((__s64)((stored & ~RL_GCRA_TAG) - t) <= (__s64)cost)
		return 0;
	for (int try = 0; try < RL_BUCKET_TRIES; try++) {
		struct rl_bucket seen = rl_bucket_load(bucket);

		if ((seen.word ^ stored) & RL_GCRA_TAG)
			return 0; /* converted to another rate since */
		if (rl_bucket_store(bucket, limit, &seen, seen.word - cost, now))
			return 1;
	}
	return 0;
}

/*
 * The unit that a rejected packet didn't reach converts its debt all the same, since that would go on
 * shrinking at the old rate: a charge of more than the burst stores nothing but that.
 */
RL_INLINE void rl_bucket_settle(struct rl_bucket *bucket, const struct rl_limit *limit, enum rl_unit unit,
				__u64 now)
{
	struct rl_bucket seen = rl_bucket_load(bucket);

	if (seen.word && seen.gen != limit->gen)
		rl_bucket_retry(bucket, limit, unit, limit->rate[unit].burst + 1, now);
}

/* Admit one packet of len bytes under the limit in every unit that it has, or charge nothing. */
RL_INLINE enum rl_gcra_verdict rl_bucket_admit(struct rl_source *source, const struct rl_limit *limit,
					       __u32 len, __u64 now)
{
	struct rl_bucket *packets = &source->bucket[RL_PACKETS], *bytes = &source->bucket[RL_BYTES];
	__u64 packet_cost = rl_bucket_cost(limit, RL_PACKETS, len),
	      byte_cost = rl_bucket_cost(limit, RL_BYTES, len);
	enum rl_gcra_verdict verdict;
	struct rl_gcra_result look;
	struct rl_bucket seen;
	__u64 stored = 0, last;

	if (!byte_cost)
		return rl_bucket_charge(packets, limit, RL_PACKETS, packet_cost, now, &stored);
	if (!packet_cost)
		return rl_bucket_charge(bytes, limit, RL_BYTES, byte_cost, now, &last);

	seen = rl_bucket_load(bytes);
	look = rl_gcra_decide(limit, RL_BYTES, &seen, byte_cost, now);
	if (look.verdict == RL_GCRA_REPAIR)
		rl_bucket_store(bytes, limit, &seen, look.next,
				now); /* where a race wins, the next packet repairs it */
	if (look.verdict != RL_GCRA_ADMIT) {
		rl_bucket_settle(packets, limit, RL_PACKETS, now);
		return look.verdict;
	}
	verdict = rl_bucket_charge(packets, limit, RL_PACKETS, packet_cost, now, &stored);
	if (verdict != RL_GCRA_ADMIT) {
		rl_bucket_settle(bytes, limit, RL_BYTES, now);
		return verdict;
	}
	verdict = rl_bucket_charge(bytes, limit, RL_BYTES, byte_cost, now, &last);
	if (verdict != RL_GCRA_ADMIT)
		rl_bucket_refund(packets, limit, RL_PACKETS, packet_cost, stored);
	return verdict;
}

#endif

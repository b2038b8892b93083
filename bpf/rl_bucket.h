/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_bucket.h - buckets in shared memory: bring up to date, look, charge by compare-and-swap, refund. Compiles on both
 * sides.
 *
 * Each change is one compare-and-swap of a word, so any number of CPUs may charge one bucket. A lagging `now` is harmless
 * in a retry: another CPU's charge left TAT ahead of its own, later clock, so no refill is computed from ours.
 *
 * A bucket in the table may change hands while a packet holds a pointer to it (rl_table.h). So a place is a pointer to
 * the buckets and one to the key beside them: the key is read again after the word and before the swap. The word was then
 * the old owner's, and the new owner's first act was to swap every word: one of the two swaps fails.
 *
 * The includer defines `__u64 rl_now(void)`, the clock in ns; it is read only for a refund.
 */
#ifndef RL_BUCKET_H
#define RL_BUCKET_H

#include "rl_gcra.h"

#define RL_BUCKET_TRIES 16 /* lost compare-and-swaps before a packet gives up */
#define RL_BUCKET_IDLE	3  /* stamps; buckets that were left alone for longer are brought up to date first */
/*
 * Stamps; where it needn't be, since the packet charges all words that its limit has. None that was touched since can have
 * wrapped: it is less than 2^10 stamps from now, and half the wrap at the largest shift is 2^11 (rl_gcra.h). A word in a unit
 * that the limit doesn't have is looked at as of the end of the generation that had it.
 */
#define RL_BUCKET_SAFE 512
#define RL_REFUND_SLACK_NS                                                                                   \
	1000 /* clocks of two CPUs differ by less; a bucket this near to full may have been full */

/* Where a limit's buckets are, and whose they must be. */
struct rl_place {
	struct rl_buckets *buckets;
	const __u64 *key;
	__u64 whose;
};

/*
 * rl_buckets.version: the slot, so that who would evict the buckets finds their limit; of the id, what tells it from that of
 * another limit in the slot: slots are given out by id, so those of one slot differ by multiples of the number of slots, and
 * then in the upper bits of this product; and the generation, 32 bits.
 */
#define RL_VERSION_SLOT (64 - RL_SLOT_BITS) /* where the slot begins */

RL_INLINE __u64 rl_bucket_version(const struct rl_limit *limit)
{
	return (__u64)limit->slot << RL_VERSION_SLOT |
	       (__u64)(limit->id * 0x9e3779b1U >> RL_SLOT_BITS) << 32 | limit->gen;
}

RL_INLINE __u32 rl_version_slot(__u64 version)
{
	return (__u32)(version >> RL_VERSION_SLOT);
}

/* Raise a stamp that other CPUs raise too, and never lower it. Returns 0 where they keep winning. */
RL_INLINE int rl_stamp_raise(__u32 *stamp, __u32 to)
{
	for (int try = 0; try < 4; try++) {
		__u32 seen = *(volatile __u32 *)stamp;

		if ((__s32)(to - seen) <= 0 || __sync_val_compare_and_swap(stamp, seen, to) == seen)
			return 1;
	}
	return 0;
}

/*
 * Read while other CPUs write: one load each, never repeated by the compiler, and in the order that rl_bucket_store()
 * relies on: the word before its stamp. (On x86 the processor keeps to that order too.)
 */
RL_INLINE struct rl_bucket rl_bucket_load(const struct rl_buckets *buckets, enum rl_unit unit)
{
	struct rl_bucket copy;

	copy.word = *(const volatile __u64 *)&buckets->word[unit];
	copy.stamp = *(const volatile __u32 *)&buckets->stamp;
	copy.gen = (__u32) * (const volatile __u64 *)&buckets->version;
	return copy;
}

/* Does the place still belong to whom it was found for? */
RL_INLINE int rl_place_holds(const struct rl_place *place)
{
	return *(const volatile __u64 *)place->key == place->whose;
}

/*
 * Replace the word if it is still `seen`. Returns whether it was.
 *
 * The stamp goes before the word: another CPU that sees the new stamp with the old word may take an idle bucket for one
 * in debt and drop a packet; the other way round it would take a charged bucket for an idle one, and mint tokens.
 */
RL_INLINE int rl_bucket_store(struct rl_buckets *buckets, enum rl_unit unit, __u64 seen, __u64 next,
			      __u64 now)
{
	if (!rl_stamp_raise(&buckets->stamp, (__u32)(now >> RL_GCRA_STAMP)))
		return 0;
	return __sync_val_compare_and_swap(&buckets->word[unit], seen, next) == seen;
}

/* What one packet costs in one unit, in bucket time; 0 where the limit has no such unit. tokens: packets or bytes. */
RL_INLINE __u64 rl_bucket_cost(const struct rl_limit *limit, enum rl_unit unit, __u32 tokens)
{
	return limit->rate[unit].mult ? rl_gcra_cost(&limit->rate[unit], tokens) : 0;
}

/*
 * What a word is, brought up to the limit's generation and to `now`: its debt converted; where there is none, full as of
 * now; in a unit that the limit doesn't have it keeps its debt for a later generation that has it, as long as the policy
 * remembers the rate that it is counted in. *verdict: 0 or RL_GCRA_NEWER.
 */
RL_INLINE __u64 rl_bucket_renewed(const struct rl_limit *limit, enum rl_unit unit,
				  const struct rl_bucket *seen, __u64 now, int *verdict)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 full = rate->mult ? rl_gcra_time(rate, now) | rl_gcra_tag(limit->gen) : 0, debt;

	*verdict = 0;
	if (!seen->word)
		return full;
	if (!rate->mult && seen->gen == limit->gen)
		return seen->word;
	if (rate->mult && rl_gcra_present(limit, seen))
		return rl_gcra_debt(seen, rate->shift, rate->owed, now) ? seen->word : full;
	*verdict = rl_gcra_carry(limit, unit, seen, now, &debt);
	if (*verdict == RL_GCRA_NEWER)
		return seen->word;
	if (rate->mult)
		full += debt;
	else if (*verdict == RL_GCRA_REPAIR)
		full = RL_GCRA_FORGOTTEN;
	else if (debt)
		full = seen->word;
	*verdict = 0;
	return full;
}

/* One word swapped for what it is now. 0, RL_GCRA_NEWER, or RL_GCRA_CONTENDED. */
RL_INLINE int rl_bucket_renew(const struct rl_place *place, const struct rl_limit *limit, enum rl_unit unit,
			      const struct rl_bucket *seen, __u64 now)
{
	int verdict;
	__u64 next = rl_bucket_renewed(limit, unit, seen, now, &verdict);

	if (verdict || next == seen->word)
		return verdict;
	if (!rl_place_holds(place))
		return RL_GCRA_CONTENDED;
	return __sync_val_compare_and_swap(&place->buckets->word[unit], seen->word, next) == seen->word
		   ? 0
		   : RL_GCRA_CONTENDED;
}

/*
 * Both words brought up to the limit's generation and to now, and then the stamp and the version, in this order:
 *   - both words are read before the stamp, and judged by it: one stamp tells how long both were idle, and it moves on only
 *     when neither has been idle for so long that its time has wrapped;
 *   - a word of the new generation is charged by nobody until the version says so, hence not under a stamp that is too old;
 *   - a word whose generation is older than its version says could be taken for one whose tag has come round again.
 * Rare: a function of its own. Returns 0, RL_GCRA_NEWER, or RL_GCRA_CONTENDED.
 */
RL_FUNCTION int rl_buckets_renew(struct rl_buckets *buckets, const __u64 *key, __u64 whose,
				 const struct rl_limit *limit, __u64 now)
{
	struct rl_place place = {.buckets = buckets, .key = key, .whose = whose};

	if (!buckets || !key || !limit)
		return RL_GCRA_CONTENDED; /* never so: said for the verifier */
	for (int try = 0; try < RL_BUCKET_TRIES; try++) {
		__u64 version = *(volatile __u64 *)&buckets->version;
		struct rl_bucket packets = rl_bucket_load(buckets, RL_PACKETS);
		struct rl_bucket bytes = rl_bucket_load(buckets, RL_BYTES);
		int verdict;

		packets.gen = bytes.gen = (__u32)version;
		packets.stamp = bytes.stamp;
		if (version && version >> 32 != rl_bucket_version(limit) >> 32)
			return RL_GCRA_CONTENDED; /* it has changed hands */
		if (version && (__s32)(limit->gen - (__u32)version) < 0)
			return RL_GCRA_NEWER;
		verdict = rl_bucket_renew(&place, limit, RL_PACKETS, &packets, now);
		if (!verdict)
			verdict = rl_bucket_renew(&place, limit, RL_BYTES, &bytes, now);
		if (verdict == RL_GCRA_CONTENDED)
			continue;
		if (verdict)
			return verdict;
		if (!rl_stamp_raise(&buckets->stamp, (__u32)(now >> RL_GCRA_STAMP)))
			continue;
		__sync_val_compare_and_swap(&buckets->version, version, rl_bucket_version(limit));
		return 0;
	}
	return RL_GCRA_CONTENDED;
}

/* Are the buckets up to date, as of the last so many stamps? */
RL_INLINE int rl_buckets_present(const struct rl_buckets *buckets, const struct rl_limit *limit, __u64 now,
				 __s32 stamps)
{
	__s32 idle = (__s32)((__u32)(now >> RL_GCRA_STAMP) - *(const volatile __u32 *)&buckets->stamp);

	return *(const volatile __u64 *)&buckets->version == rl_bucket_version(limit) && idle <= stamps;
}

/* Bring the buckets up to date where they aren't. 0, RL_GCRA_NEWER or RL_GCRA_CONTENDED. */
RL_INLINE int rl_place_renew(const struct rl_place *place, const struct rl_limit *limit, __u64 now)
{
	if (rl_buckets_present(place->buckets, limit, now, RL_BUCKET_IDLE))
		return 0;
	return rl_buckets_renew(place->buckets, place->key, place->whose, limit, now);
}

/*
 * Would one unit admit the packet? Stores nothing, unless the word is a CPU's that had an older policy: that is brought
 * up to date.
 */
RL_INLINE enum rl_gcra_verdict rl_bucket_look(const struct rl_place *place, const struct rl_limit *limit,
					      enum rl_unit unit, __u64 cost, __u64 kept, __u64 now)
{
	struct rl_bucket seen = rl_bucket_load(place->buckets, unit);

	if (!rl_gcra_present(limit, &seen)) {
		int verdict = rl_buckets_renew(place->buckets, place->key, place->whose, limit, now);

		if (verdict)
			return (enum rl_gcra_verdict)verdict;
		seen = rl_bucket_load(place->buckets, unit);
		if (!rl_gcra_present(limit, &seen))
			return RL_GCRA_CONTENDED;
	}
	return rl_gcra_decide(limit, unit, &seen, cost, kept, now).verdict;
}

/* One packet in one unit, offered to a place: in memory, since a function of BPF's takes five arguments. */
struct rl_offer {
	__u64 whose; /* as in struct rl_place */
	__u64 cost;  /* bucket time */
	__u64 kept;  /* likewise: what it must leave */
	__u64 now;   /* ns */
	__u64 left;  /* the word that a charge left, for a refund */
	__u32 unit;
	__u32 alone; /* 1: of a refund, as rl_bucket_refund() says */
};

/* rl_bucket_charge(), as a function of its own: the verifier then looks at its loop once. */
RL_FUNCTION __u64 rl_offer_charge(struct rl_buckets *buckets, const __u64 *key, const struct rl_limit *limit,
				  const struct rl_offer *offer)
{
	struct rl_place place = {.buckets = buckets, .key = key};
	enum rl_unit unit;

	if (!buckets || !key || !limit || !offer)
		return (__u64)RL_GCRA_CONTENDED << 8; /* never so: said for the verifier */
	place.whose = offer->whose;
	unit = (enum rl_unit)(offer->unit & (RL_UNITS - 1));
	for (int try = 0; try < RL_BUCKET_TRIES; try++) {
		struct rl_bucket seen = rl_bucket_load(buckets, unit);
		struct rl_gcra_result result;

		/* It has changed hands, or a CPU with another version of the policy was here since it was brought up to date. */
		if (!rl_place_holds(&place) || !rl_gcra_present(limit, &seen))
			break;
		result = rl_gcra_decide(limit, unit, &seen, offer->cost, offer->kept, offer->now);
		if (result.verdict != RL_GCRA_ADMIT)
			return (__u64)result.verdict << 8;
		if (rl_bucket_store(buckets, unit, seen.word, result.next, offer->now))
			return result.next;
	}
	return (__u64)RL_GCRA_CONTENDED << 8;
}

/*
 * Charge one unit of buckets that are up to date. Returns the word that this packet left (never 0, its tag isn't), or the
 * verdict << 8 where nothing was charged.
 */
RL_INLINE __u64 rl_bucket_charge(const struct rl_place *place, const struct rl_limit *limit,
				 enum rl_unit unit, __u64 cost, __u64 kept, __u64 now)
{
	const struct rl_offer offer = {
	    .whose = place->whose, .cost = cost, .kept = kept, .now = now, .unit = unit};

	return rl_offer_charge(place->buckets, place->key, limit, &offer);
}

/* What rl_bucket_charge() says: was it charged, and if not, why. */
RL_INLINE enum rl_gcra_verdict rl_bucket_verdict(__u64 left)
{
	return left & RL_GCRA_TAG ? RL_GCRA_ADMIT : (enum rl_gcra_verdict)(left >> 8);
}

/*
 * rl_bucket_refund(), as a function of its own. The clock is read after the word: if the swap succeeds, nobody charged the
 * bucket between them, however long this CPU is held up there, so that what was true by that clock still is.
 */
RL_FUNCTION int rl_offer_refund(struct rl_buckets *buckets, const __u64 *key, const struct rl_limit *limit,
				const struct rl_offer *offer)
{
	struct rl_place place = {.buckets = buckets, .key = key};
	enum rl_unit unit;

	if (!buckets || !key || !limit || !offer)
		return 0; /* never so: said for the verifier */
	place.whose = offer->whose;
	unit = (enum rl_unit)(offer->unit & (RL_UNITS - 1));
	for (int try = 0; try < RL_BUCKET_TRIES; try++) {
		struct rl_bucket seen = rl_bucket_load(buckets, unit);
		__u64 now = rl_now(), t = rl_gcra_time(&limit->rate[unit], now + RL_REFUND_SLACK_NS);

		if (!offer->alone && (__s64)((offer->left & ~RL_GCRA_TAG) - t) <= (__s64)offer->cost)
			return 0; /* it may have been full since */
		if (!rl_place_holds(&place) || ((seen.word ^ offer->left) & RL_GCRA_TAG))
			return 0; /* another's, or converted to another rate since */
		if (offer->alone && seen.word != offer->left)
			return 0;
		if (rl_bucket_store(buckets, unit, seen.word, seen.word - offer->cost, now))
			return 1;
	}
	return 0;
}

/*
 * Give `cost` back, taken by the charge that left `left`. Between that charge and now the bucket was full
 * at no time if the charge's own TAT is still ahead: TAT never moves back but for refunds. Otherwise the refund is
 * forfeited, since it would mint tokens. Returns whether the tokens went back.
 *
 * Refunds of others in between aren't seen. A CPU that is held up between its charge and its refund until the bucket would
 * have been full without all that was given back, though not without its packet alone, gives back what flowed in since
 * then: less than its packet's cost, and once until the bucket is full again (tests/interleave: refunds).
 *
 * alone: only if nobody has charged it since, whenever that was: where a slice that was taken since has its place in it
 * (rl_slice.h), what stands before it can't be moved, and what stands last can.
 */
RL_INLINE int rl_bucket_refund(const struct rl_place *place, const struct rl_limit *limit, enum rl_unit unit,
			       __u64 cost, __u64 left, int alone)
{
	const struct rl_offer offer = {
	    .whose = place->whose, .cost = cost, .left = left, .unit = unit, .alone = (__u32)alone};

	return rl_offer_refund(place->buckets, place->key, limit, &offer);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_tier.h - one level of a common packet (rl_fast.h): ask it, charge it, give that back. That of the source has its bucket in a
 * place of the table; those of tenant and device have limits' own, of which a CPU may have taken ahead (rl_slice.h). Compiles on
 * both sides.
 *
 * What a level would do and did stands in job->tier[i].
 *
 * The includer defines rl_now(), what rl_slice.h asks for, and
 *   const struct rl_limit *rl_limit_at(__u32 cell)    NULL for cell 0
 *   struct rl_source *rl_own_at(__u32 slot)
 */
#ifndef RL_TIER_H
#define RL_TIER_H

#include "rl_slice.h"

/* The packet's priority: its limit's, or its tenant's, or normal. */
RL_INLINE __u8 rl_priority_of(const struct rl_limit *limit, const struct rl_limit *tenant)
{
	if (limit && limit->priority < RL_PRIORITIES)
		return limit->priority;
	if (tenant && tenant->priority < RL_PRIORITIES)
		return tenant->priority;
	return RL_PRIORITY_NORMAL;
}

/* What a bucket keeps for packets of a higher priority. */
RL_INLINE __u64 rl_rate_kept(const struct rl_rate *rate, __u32 priority)
{
	switch (priority) {
	case RL_PRIORITY_NORMAL:
		return rate->kept[RL_PRIORITY_NORMAL];
	case RL_PRIORITY_LOW:
		return rate->kept[RL_PRIORITY_LOW];
	default:
		return 0;
	}
}

/* It holds nothing back: it is there to count, or for its priority, reserve or classes. */
RL_INLINE int rl_limit_unrated(const struct rl_limit *limit)
{
	return !limit->rate[RL_PACKETS].mult && !limit->rate[RL_BYTES].mult;
}

/* What the packet costs, in bucket time: plain limits have no costs of their own. */
RL_INLINE __u64 rl_tier_cost(const struct rl_job *job, const struct rl_rate *rate, enum rl_unit unit)
{
	return rl_gcra_cost(rate, unit == RL_BYTES ? job->len : 1);
}

/* Would one unit admit the packet? ADMIT, REJECT, or anything else: not for here. */
RL_INLINE enum rl_gcra_verdict rl_unit_ask(const struct rl_buckets *buckets, const struct rl_limit *limit,
					   const struct rl_job *job, struct rl_tier *tier, enum rl_unit unit)
{
	const struct rl_rate *rate = &limit->rate[unit];
	struct rl_gcra_result result;
	struct rl_bucket seen;

	tier->next[unit] = 0;
	if (!rate->mult)
		return RL_GCRA_ADMIT;
	seen = rl_bucket_load(buckets, unit);
	if (!seen.word || !rl_gcra_present(limit, &seen))
		return RL_GCRA_REPAIR;
	result = rl_gcra_weigh(rate, rl_gcra_tag(limit->gen), rl_gcra_time(rate, job->now),
			       rl_gcra_debt(&seen, rate->shift, rate->owed, job->now),
			       rl_tier_cost(job, rate, unit), rl_rate_kept(rate, job->priority));
	tier->seen[unit] = seen.word;
	tier->next[unit] = result.next;
	return result.verdict;
}

/* Nothing is planned yet, nor done. */
RL_INLINE void rl_tier_begin(struct rl_tier *tier, const struct rl_limit *limit)
{
	tier->slot = limit->slot;
	tier->next[RL_PACKETS] = tier->next[RL_BYTES] = 0;
	tier->left[RL_PACKETS] = tier->left[RL_BYTES] = 0;
	tier->ahead[RL_PACKETS] = tier->ahead[RL_BYTES] = 0;
}

/* Would the level admit the packet? As above. Buckets that have to be brought up to date first aren't for here. */
RL_INLINE enum rl_gcra_verdict rl_tier_ask(const struct rl_buckets *buckets, const struct rl_limit *limit,
					   const struct rl_job *job, struct rl_tier *tier)
{
	enum rl_gcra_verdict verdict;

	rl_tier_begin(tier, limit);
	if (rl_limit_unrated(limit))
		return RL_GCRA_ADMIT;
	if (!rl_buckets_present(buckets, limit, job->now, RL_BUCKET_SAFE))
		return RL_GCRA_REPAIR;
	verdict = rl_unit_ask(buckets, limit, job, tier, RL_PACKETS);
	return verdict == RL_GCRA_ADMIT ? rl_unit_ask(buckets, limit, job, tier, RL_BYTES) : verdict;
}

/* Charge one unit of a level that would admit the packet. Another CPU may have been faster: then it is decided anew. */
RL_INLINE enum rl_gcra_verdict rl_unit_charge(const struct rl_place *place, const struct rl_limit *limit,
					      const struct rl_job *job, struct rl_tier *tier,
					      enum rl_unit unit)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 left = tier->next[unit];

	if (!left)
		return RL_GCRA_ADMIT;
	if (!rl_place_holds(place) ||
	    !rl_bucket_store(place->buckets, unit, tier->seen[unit], left, job->now)) {
		tier->ahead[unit] = 0;
		left = rl_bucket_charge(place, limit, unit, rl_tier_cost(job, rate, unit),
					rl_rate_kept(rate, job->priority), job->now);
	}
	if (rl_bucket_verdict(left) == RL_GCRA_ADMIT)
		tier->left[unit] = left;
	return rl_bucket_verdict(left);
}

/* Charge a level, in all its units. */
RL_INLINE enum rl_gcra_verdict rl_tier_charge(const struct rl_place *place, const struct rl_limit *limit,
					      const struct rl_job *job, struct rl_tier *tier)
{
	enum rl_gcra_verdict verdict = rl_unit_charge(place, limit, job, tier, RL_PACKETS);

	return verdict == RL_GCRA_ADMIT ? rl_unit_charge(place, limit, job, tier, RL_BYTES) : verdict;
}

/* Give back what a level was charged. Rare, hence a function of its own. */
RL_FUNCTION int rl_tier_refund(struct rl_buckets *buckets, const __u64 *key, const struct rl_limit *limit,
			       const struct rl_job *job, __u32 i)
{
	struct rl_place place = {.buckets = buckets, .key = key};
	const struct rl_tier *tier;

	if (!buckets || !key || !limit || !job || i >= RL_TIERS)
		return 0; /* never so: said for the verifier */
	tier = &job->tier[i];
	place.whose = tier->whose;
	if (tier->left[RL_PACKETS])
		rl_bucket_refund(&place, limit, RL_PACKETS,
				 rl_tier_cost(job, &limit->rate[RL_PACKETS], RL_PACKETS),
				 tier->left[RL_PACKETS], rl_limit_sliced(limit));
	if (tier->left[RL_BYTES])
		rl_bucket_refund(&place, limit, RL_BYTES, rl_tier_cost(job, &limit->rate[RL_BYTES], RL_BYTES),
				 tier->left[RL_BYTES], rl_limit_sliced(limit));
	return 0;
}

/* Which units of the packet's cost this CPU's slice of the bucket could pay: all that the limit has, or none. */
RL_INLINE __u32 rl_own_pays(const struct rl_job *job, const struct rl_limit *limit)
{
	const struct rl_slice *slice = rl_slice_at(limit->slot);
	__u32 pays = 0;

	if (!slice || !rl_slice_of(slice, limit))
		return 0;
	for (__u32 unit = 0; unit < RL_UNITS; unit++) {
		const struct rl_rate *rate = &limit->rate[unit];

		if (!rate->mult)
			continue;
		if (!rl_slice_has(slice, rate, (enum rl_unit)unit,
				  rl_tier_cost(job, rate, (enum rl_unit)unit), job->now))
			return 0;
		pays |= 1U << unit;
	}
	return pays;
}

/* A tenant's or a device's level, whose bucket is the limit's own. Without a limit it admits all. */
RL_INLINE enum rl_gcra_verdict rl_own_ask(struct rl_job *job, __u32 i)
{
	const struct rl_limit *limit = rl_limit_at(job->tier[i].cell);
	struct rl_tier *tier = &job->tier[i];
	const struct rl_source *own;

	if (!limit)
		return RL_GCRA_ADMIT;
	own = rl_own_at(limit->slot);
	if (!own || (limit->flags & RL_LIMIT_SHADOW))
		return RL_GCRA_REPAIR;
	tier->whose = limit->id;
	tier->paid = 0;
	tier->pays = rl_own_pays(job, limit);
	if (!tier->pays)
		return rl_tier_ask(&own->buckets, limit, job, tier);
	rl_tier_begin(tier, limit);
	return RL_GCRA_ADMIT;
}

/* Pay, or get back, the packet's cost in each unit of tier->paid. */
RL_INLINE void rl_own_spend(const struct rl_job *job, const struct rl_tier *tier,
			    const struct rl_limit *limit, struct rl_slice *slice, int back)
{
	for (__u32 unit = 0; unit < RL_UNITS; unit++) {
		__u64 cost;

		if (!(tier->paid >> unit & 1))
			continue;
		cost = rl_tier_cost(job, &limit->rate[unit], (enum rl_unit)unit);
		slice->left[unit] += back ? cost : -cost;
	}
}

/*
 * Plan to take more ahead than the packet's own cost, in each unit of which the slice has too little; in all of them or in none,
 * since a packet is paid from the slice in all units of the limit, or in none. A single unit that isn't worth it ends it.
 */
RL_INLINE void rl_own_reach(const struct rl_job *job, struct rl_tier *tier, const struct rl_limit *limit,
			    const struct rl_slice *slice)
{
	for (__u32 unit = 0; unit < RL_UNITS; unit++) {
		const struct rl_rate *rate = &limit->rate[unit];
		__u64 cost;

		if (!tier->next[unit])
			continue;
		cost = rl_tier_cost(job, rate, (enum rl_unit)unit);
		if (rl_slice_of(slice, limit) &&
		    rl_slice_has(slice, rate, (enum rl_unit)unit, cost, job->now))
			continue;
		tier->ahead[unit] =
		    rl_slice_ahead(slice, limit, (enum rl_unit)unit, tier->next[unit], cost, job->now);
		if (!tier->ahead[unit]) {
			tier->ahead[RL_PACKETS] = 0;
			return;
		}
	}
	tier->next[RL_PACKETS] += tier->ahead[RL_PACKETS];
	tier->next[RL_BYTES] += tier->ahead[RL_BYTES];
}

/* Keep what was taken ahead. The packet's own cost stands right before it, and goes there if it is given back. */
RL_INLINE void rl_own_keep(const struct rl_job *job, struct rl_tier *tier, const struct rl_limit *limit,
			   struct rl_slice *slice)
{
	for (__u32 unit = 0; unit < RL_UNITS; unit++) {
		if (!tier->ahead[unit] || !tier->left[unit])
			continue;
		rl_slice_keep(slice, limit, (enum rl_unit)unit, tier->left[unit], tier->ahead[unit],
			      job->now);
		tier->left[unit] = 0;
		tier->paid |= 1U << unit;
	}
}

/* Charge a tenant's or a device's level that would admit the packet: its slice, or else its bucket. */
RL_INLINE enum rl_gcra_verdict rl_own_charge(struct rl_job *job, __u32 i)
{
	const struct rl_limit *limit = rl_limit_at(job->tier[i].cell);
	struct rl_tier *tier = &job->tier[i];
	enum rl_gcra_verdict verdict;
	struct rl_slice *slice;
	struct rl_source *own;
	struct rl_place place;

	if (!limit)
		return RL_GCRA_ADMIT;
	own = rl_own_at(limit->slot);
	slice = rl_slice_at(limit->slot);
	if (!own || !slice)
		return RL_GCRA_CONTENDED;
	if (tier->pays) {
		tier->paid = tier->pays;
		rl_own_spend(job, tier, limit, slice, 0);
		return RL_GCRA_ADMIT;
	}
	place = (struct rl_place){.buckets = &own->buckets, .key = &own->key, .whose = tier->whose};
	rl_own_reach(job, tier, limit, slice);
	verdict = rl_tier_charge(&place, limit, job, tier);
	rl_own_keep(job, tier, limit, slice);
	return verdict;
}

/* Give back what it was charged, to where it was taken from. */
RL_INLINE void rl_own_refund(const struct rl_job *job, __u32 i)
{
	const struct rl_limit *limit = rl_limit_at(job->tier[i].cell);
	struct rl_source *own = limit ? rl_own_at(limit->slot) : 0;
	struct rl_slice *slice = limit ? rl_slice_at(limit->slot) : 0;

	if (own)
		rl_tier_refund(&own->buckets, &own->key, limit, job, i);
	if (slice)
		rl_own_spend(job, &job->tier[i], limit, slice, 1);
}

#endif

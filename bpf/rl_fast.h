/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_fast.h - the common packet, in a few dozen nanoseconds: its source has a place in the table, and the limits on it, on
 * its tenant and on its device are plain. Everything else is left to rl_admit.h, untouched. Compiles on both sides.
 *
 * Three things make it fast:
 *   - the policy isn't asked. A place says which limit it belongs to (rl_buckets.version), and in which epoch of the policy a
 *     packet of its source was last found to be that limit's (rl_buckets.known). Which limit a source is under changes only
 *     with an epoch: who adds or removes a prefix starts one after it has done so;
 *   - no list of what the packet is held to goes through memory: one look at each of three levels, three swaps at most;
 *   - a source that is over its limit is mostly rejected by the clock of a tick ago (rl_fast_late).
 *
 * What is decided, charged and counted is what rl_admit.h would have decided, charged and counted, but that a source which is over
 * its limit may be admitted again up to a tick late, and that CPUs take ahead of tenants' and devices' buckets (rl_slice.h).
 *
 * The includer defines what rl_sources.h, rl_slice.h and rl_tally.h ask for.
 */
#ifndef RL_FAST_H
#define RL_FAST_H

#include "rl_sources.h"
#include "rl_tally.h"
#include "rl_tier.h"

#define RL_NOT_FAST  (-1) /* for rl_admit.h */
#define RL_NOT_KNOWN (-2) /* likewise, or for rl_fresh.h */
#define RL_NO_ROOM   (-3) /* for its neighbourhood */
#define RL_HELD	     (-4) /* for rl_fresh_settle() */

/*
 * Rejecting by a clock that lags is always within the bound. It costs nothing but a tick's delay where the bucket has room, beside
 * this packet, for what flows in meanwhile; a tick is 10 ms at most (CONFIG_HZ is 100 to 1000). And where it hasn't, but what a
 * packet takes flows in so slowly that a tick is a thousandth of it.
 */
#define RL_LATE_ROOM_NS	  40000000
#define RL_LATE_PACKET_NS 10000000000ULL
#define RL_LATES	  32 /* packets for which the clock isn't read; so that a flood isn't a whole tick late */

/*
 * The clock as this CPU read it last in the present tick, a few packets ago: reading it makes the processor wait for all that is
 * on its way.
 */
RL_INLINE __u64 rl_lately(struct rl_job *job)
{
	__u64 tick = rl_tick();

	if (tick != job->tick || job->lates++ >= RL_LATES) {
		job->tick = tick;
		job->ticked = rl_now();
		job->lates = 0;
	}
	return job->ticked;
}

/* The limit holds each address to a bucket of its own, and to nothing but that. */
RL_INLINE int rl_limit_plain(const struct rl_limit *limit, __u8 family)
{
	return limit->action == RL_ACTION_LIMIT && !limit->flags && !limit->class_count &&
	       !limit->cost_count && limit->bits[family == 6] == RL_SOURCE_BITS(family);
}

/* Is the source at this place known to be under the limit that the place belongs to, in this epoch? */
RL_INLINE int rl_fast_known(const struct rl_buckets *buckets, __u64 key, __u32 epoch)
{
	return *(const volatile __u32 *)&buckets->known == rl_known(epoch, key);
}

/*
 * The limit that the source at this place is known to be under; NULL: it isn't, or not any more. The version may be that of
 * another source's limit by now, hence the id; and it is read first, since who gives the place away writes `known` before it.
 */
RL_INLINE const struct rl_limit *rl_fast_limit(const struct rl_buckets *buckets, __u64 key, __u32 epoch)
{
	const struct rl_limit *limit =
	    rl_limit_in(epoch, rl_version_slot(*(const volatile __u64 *)&buckets->version));

	return limit && limit->id == rl_key_id(key) && rl_fast_known(buckets, key, epoch) ? limit : 0;
}

/*
 * The place of a known source, looked for by its address alone, by what of the key is the source's. It may have others, which
 * limits that it was under before left. RL_ROW: none. *whose: its key
 */
RL_INLINE __u32 rl_fast_find(const struct rl_row *row, __u64 source, __u32 epoch, __u32 home, __u64 *whose)
{
	for (__u32 n = 0; n < RL_ROW; n++) {
		__u32 i = (home + n) & (RL_ROW - 1);
		__u64 key = *(const volatile __u64 *)&row->key[i];

		if (rl_key_source(key) != source || !rl_fast_known(&row->at[i].buckets, key, epoch))
			continue;
		*whose = key;
		return i;
	}
	return RL_ROW;
}

/* The source's number (rl_table_number), of the default granularity. */
RL_INLINE __u64 rl_fast_number(const struct rl_packet *packet, enum rl_where where)
{
	__u8 cut[16] __attribute__((aligned(8))) = {};

	if (where == RL_AT_ROWS4)
		return rl_be32(packet->src);
	__builtin_memcpy(cut, packet->src, 8);
	return rl_table_number(rl_table_at(), 6, cut);
}

/* IPv6 is found by a hash: is it the very source? */
RL_INLINE int rl_fast_matches(const struct rl_packet *packet, __u32 row, __u32 at)
{
	const struct rl_row_address *address = rl_row_address_at(row);

	return address && rl_be64(address->addr[at]) == rl_be64(packet->src) &&
	       !rl_be64(address->addr[at] + 8);
}

/* Look for a known source in both of its rows: its row and that one's *index, its place *at in it, and its key *whose; or NULL. */
RL_INLINE struct rl_row *rl_fast_locate(const struct rl_packet *packet, enum rl_where where, __u32 epoch,
					__u32 *index, __u32 *at, __u64 *whose)
{
	__u64 number = rl_fast_number(packet, where),
	      source = rl_table_key(0, where == RL_AT_ROWS4 ? 4 : 6, number);
	struct rl_rows rows =
	    rl_table_rows(rl_table_at(), rl_table_at()->regions, rl_table_spot(RL_LEVEL_SOURCE, 0, number));
	struct rl_row *row = rl_row_at(where, rows.row[0]), *second = rl_row_at(where, rows.row[1]);

	*index = rows.row[0];
	if (!row || !second)
		return 0;
	/* So that their misses overlap that of the first row's keys. */
	(void)*(const volatile __u64 *)&row->at[rows.home & (RL_ROW - 1)].buckets.version;
	(void)*(const volatile __u64 *)&second->key[0];
	*at = rl_fast_find(row, source, epoch, rows.home, whose);
	if (*at >= RL_ROW) {
		row = second;
		*index = rows.row[1];
		*at = rl_fast_find(row, source, epoch, rows.home, whose);
	}
	if (*at >= RL_ROW || (where == RL_AT_ROWS6 && !rl_fast_matches(packet, *index, *at & (RL_ROW - 1))))
		return 0;
	*at &= RL_ROW - 1;
	return row;
}

/* A limit (NULL: none) let the packet pass, or dropped it. */
RL_INLINE void rl_fast_count(struct rl_limit_count *count, int drops, __u32 len)
{
	if (count)
		rl_count_local(drops ? &count->dropped : &count->passed, 1, len);
}

/* Would all three levels admit the packet? ADMIT; REJECT, and *refuses says which; or neither: not for here. */
RL_INLINE enum rl_gcra_verdict rl_fast_ask(struct rl_job *job, const struct rl_buckets *buckets,
					   const struct rl_limit *limit, __u32 *refuses)
{
	enum rl_gcra_verdict verdict = rl_tier_ask(buckets, limit, job, &job->tier[0]);

	*refuses = 0;
	for (__u32 i = 1; i < RL_TIERS && verdict == RL_GCRA_ADMIT; i++) {
		if (!job->tier[i].cell)
			continue;
		*refuses = i;
		verdict = rl_own_ask(job, i);
	}
	return verdict;
}

/* Give back what all levels were charged. Rare, hence a function of its own. */
RL_FUNCTION int rl_fast_refund(struct rl_job *job, struct rl_buckets *buckets, const __u64 *key,
			       const struct rl_limit *limit)
{
	if (!job || !buckets || !key || !limit)
		return 0; /* never so: said for the verifier */
	rl_tier_refund(buckets, key, limit, job, 0);
	for (__u32 i = 1; i < RL_TIERS; i++)
		rl_own_refund(job, i);
	return 0;
}

/* Charge all three, or none. As above. */
RL_INLINE enum rl_gcra_verdict rl_fast_charge(struct rl_job *job, struct rl_buckets *buckets,
					      const __u64 *key, const struct rl_limit *limit, __u32 *refuses)
{
	const struct rl_place place = {.buckets = buckets, .key = key, .whose = job->tier[0].whose};
	enum rl_gcra_verdict verdict = rl_tier_charge(&place, limit, job, &job->tier[0]);

	*refuses = 0;
	for (__u32 i = 1; i < RL_TIERS && verdict == RL_GCRA_ADMIT; i++) {
		if (!job->tier[i].cell)
			continue;
		*refuses = i;
		verdict = rl_own_charge(job, i);
	}
	if (verdict != RL_GCRA_ADMIT)
		rl_fast_refund(job, buckets, key, limit);
	return verdict;
}

/* The verdict's reason. refuses: the level, where it isn't ADMIT. */
RL_INLINE enum rl_reason rl_fast_reason(int verdict, __u32 refuses)
{
	if (verdict == RL_GCRA_ADMIT)
		return RL_PASS_LIMIT;
	if (verdict != RL_GCRA_REJECT)
		return RL_DROP_CONTENDED;
	return refuses == 0 ? RL_DROP_SOURCE : refuses == 1 ? RL_DROP_TENANT : RL_DROP_DEVICE;
}

/* The limits' counters: each that let the packet pass, or the one that dropped it. count: that of the source's; NULL: look for it */
RL_INLINE void rl_fast_count_all(const struct rl_job *job, struct rl_limit_count *count, int drops,
				 __u32 refuses)
{
	if (!drops || !refuses)
		rl_fast_count(count ?: rl_limit_count_at(job->tier[0].slot), drops, job->len);
	for (__u32 i = 1; i < RL_TIERS; i++)
		if (job->tier[i].slot && (!drops || i == refuses))
			rl_fast_count(rl_limit_count_at(job->tier[i].slot), drops, job->len);
}

/* The levels above the source's, and the packet's priority. */
RL_INLINE void rl_fast_levels(struct rl_job *job, const struct rl_limit *limit, __u32 device_limit)
{
	job->tier[1].cell = rl_cell_of(job->epoch, limit->tenant);
	job->tier[2].cell = rl_cell_of(job->epoch, device_limit);
	job->tier[1].slot = job->tier[2].slot = 0;
	job->priority = rl_priority_of(limit, rl_limit_at(job->tier[1].cell));
}

/*
 * Judge the packet once its levels are known, and what holds its source: this place of row `index`, under the limit. aggregate:
 * it is its neighbourhood's, which has no tally.
 */
RL_INLINE int rl_fast_settle(struct rl_job *job, struct rl_row *row, __u32 index, __u32 at,
			     const struct rl_limit *limit, struct rl_limit_count *count, int aggregate)
{
	struct rl_buckets *buckets = &row->at[at].buckets;
	enum rl_gcra_verdict verdict;
	enum rl_reason reason;
	__u32 refuses = 0;

	verdict = rl_fast_ask(job, buckets, limit, &refuses);
	/* What isn't charged has to be seen to talk all the same, or its place might be given away. */
	if ((verdict == RL_GCRA_REJECT || rl_limit_unrated(limit)) &&
	    !rl_buckets_present(buckets, limit, job->now, RL_BUCKET_IDLE))
		return RL_NOT_FAST;
	if (verdict == RL_GCRA_ADMIT)
		verdict = rl_fast_charge(job, buckets, &row->key[at], limit, &refuses);
	else if (verdict != RL_GCRA_REJECT)
		return RL_NOT_FAST;
	reason = rl_fast_reason(verdict, refuses);
	rl_fast_count_all(job, count, rl_reason_drops(reason), refuses);
	if (!aggregate)
		rl_tally_row(job, row, index, at, job->tier[0].whose, reason);
	else if (reason == RL_PASS_LIMIT)
		reason = RL_PASS_AGGREGATE;
	else if (reason == RL_DROP_SOURCE)
		reason = RL_DROP_AGGREGATE;
	return (int)reason;
}

/*
 * Does one unit reject the packet whatever the time is between job->now, which may lag by a tick, and the present? What flows in
 * meanwhile isn't lost where the bucket has room for it when the packet would just be admitted: it is admitted a tick late. What
 * is lost otherwise is a tick's, of ten seconds' or more.
 */
RL_INLINE int rl_unit_late(const struct rl_buckets *buckets, const struct rl_limit *limit,
			   const struct rl_job *job, enum rl_unit unit)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 word = *(const volatile __u64 *)&buckets->word[unit];
	__u64 debt = (word & ~RL_GCRA_TAG) - rl_gcra_time(rate, job->now),
	      most = rate->burst - rl_rate_kept(rate, job->priority), cost = rl_tier_cost(job, rate, unit);

	if (!rate->mult || (word & RL_GCRA_TAG) != rl_gcra_tag(limit->gen) || cost > most)
		return 0;
	return (__s64)debt > 0 && debt + cost > most &&
	       ((most - cost) >> rate->shift >= RL_LATE_ROOM_NS || cost >> rate->shift >= RL_LATE_PACKET_NS);
}

/* Does the source's bucket reject the packet, by the clock of a tick ago? Then the clock needn't be read. */
RL_INLINE int rl_fast_late(const struct rl_job *job, const struct rl_buckets *buckets,
			   const struct rl_limit *limit)
{
	return rl_buckets_present(buckets, limit, job->now, RL_BUCKET_IDLE) &&
	       (rl_unit_late(buckets, limit, job, RL_PACKETS) || rl_unit_late(buckets, limit, job, RL_BYTES));
}

/* rl_fast(), for one family, whose rows are there. */
RL_INLINE int rl_fast_judge(struct rl_job *job, enum rl_where where, __u32 device_limit)
{
	const struct rl_limit *limit;
	struct rl_limit_count *count;
	__u32 index = 0, at = 0;
	__u64 whose = 0;
	struct rl_row *row = rl_fast_locate(&job->packet, where, job->epoch, &index, &at, &whose);

	if (!row)
		return RL_NOT_KNOWN;
	job->tier[0].whose = whose;
	/* Of a million limits each has counters elsewhere: so that their miss overlaps that of the limit. */
	count = rl_limit_count_at(rl_version_slot(*(const volatile __u64 *)&row->at[at].buckets.version));
	if (count)
		(void)*(const volatile __u64 *)&count->passed.packets;
	limit = rl_fast_limit(&row->at[at].buckets, whose, job->epoch);
	if (!limit || !rl_limit_plain(limit, where == RL_AT_ROWS4 ? 4 : 6))
		return RL_NOT_FAST;
	rl_fast_levels(job, limit, device_limit);
	job->now = rl_lately(job);
	if (rl_fast_late(job, &row->at[at].buckets, limit)) {
		job->tier[0].slot = limit->slot;
		rl_fast_count(count, 1, job->len);
		rl_tally_row(job, row, index, at, whose, RL_DROP_SOURCE);
		return RL_DROP_SOURCE;
	}
	job->now = rl_now();
	return rl_fast_settle(job, row, index, at, limit, count, 0);
}

/*
 * Judge one well-formed IP packet that isn't neighbour discovery, on a device that is neither paused nor in shadow, and count
 * it, but for the device's own counters. device_limit: slot of the device's limit, or 0. The reason; or RL_NOT_FAST or
 * RL_NOT_KNOWN, and nothing was changed.
 *
 * All of it is inlined, once for each family: where the processor's returns are guarded (on AMD against Inception,
 * CVE-2023-20569), a call that comes back costs as much as a cache miss in the second level.
 */
RL_FUNCTION int rl_fast(struct rl_job *job, __u32 device_limit)
{
	if (!job || rl_lru_used())
		return RL_NOT_FAST;
	if (job->packet.family == 4)
		return rl_fast_judge(job, RL_AT_ROWS4, device_limit);
	return rl_fast_judge(job, RL_AT_ROWS6, device_limit);
}

#endif

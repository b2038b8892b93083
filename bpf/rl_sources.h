/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_sources.h - where the packet's source has its bucket under a limit: find its place, or give it one. Compiles on both
 * sides.
 *
 *   one bucket for the whole limit?     rl_own
 *   known?                              its place
 *   more new sources than `new` grants? dropped
 *   room?                               a place, full bucket
 *   otherwise, --when-full: aggregate   the bucket of its /24 or /48 under the same limit
 *                           open        no bucket, it passes
 *                           closed      dropped
 *
 * The includer defines, over its maps: rl_now() (rl_bucket.h) and
 *   const struct rl_limit *rl_limit_at(__u32 cell)              NULL for cell 0
 *   __u32 rl_cell_of(__u32 epoch, __u32 slot)                   in force in that epoch; 0 for slot 0
 *   const struct rl_settings *rl_settings_at(void)
 *   const struct rl_table *rl_table_at(void)
 *   struct rl_source *rl_own_at(__u32 slot)
 *   struct rl_row *rl_row_at(__u32 where, __u32 index)          of ROWS4, ROWS6, GROUPS
 *   struct rl_row_address *rl_row_address_at(__u32 index)       beside a row of ROWS6
 *   __u32 *rl_lock_at(__u32 index)
 *   struct rl_limit_count *rl_limit_count_at(__u32 slot)        this CPU's
 *   int rl_lru_used(void), struct rl_source *rl_lru_find(const struct rl_source_key *),
 *   int rl_lru_make(const struct rl_source_key *, const struct rl_source *fresh)    whether this packet made it
 */
#ifndef RL_SOURCES_H
#define RL_SOURCES_H

#include "rl_count.h"
#include "rl_job.h"
#include "rl_table.h"

/* The source cut to the limit's granularity. */
RL_INLINE struct rl_source_key rl_source_key(const struct rl_job *job, const struct rl_limit *limit)
{
	struct rl_source_key key = {.limit_id = limit->id, .family = job->packet.family};

	__builtin_memcpy(key.addr, job->packet.src, sizeof(key.addr));
	if (key.family == 4)
		rl_address_cut(key.addr, 4, limit->bits[0]);
	else
		rl_address_cut(key.addr, 16, limit->bits[1]);
	return key;
}

/* The limit in force in this slot; NULL: none. */
RL_INLINE const struct rl_limit *rl_limit_in(__u32 epoch, __u32 slot)
{
	return rl_limit_at(rl_cell_of(epoch, slot));
}

/* The rows that the hold's source may be in. */
RL_INLINE struct rl_rows rl_hold_rows(const struct rl_hold *hold)
{
	return rl_table_rows(rl_table_at(), rl_table_at()->regions, hold->spot);
}

/* The bucket of `new`, in this version of its limit; false where there is no such limit. */
RL_INLINE int rl_new_place(__u32 cell, const struct rl_limit **limit, struct rl_place *place)
{
	struct rl_source *own;

	*limit = rl_limit_at(cell);
	if (!*limit || !(*limit)->rate[RL_PACKETS].mult)
		return 0;
	own = rl_own_at((*limit)->slot);
	if (!own)
		return 0;
	place->buckets = &own->buckets;
	place->key = &own->key;
	place->whose = (*limit)->id;
	return 1;
}

/* Charge `new` with one more source: RL_PASS_LIMIT, or why it is one too many. */
RL_FUNCTION int rl_new_admit(struct rl_job *job)
{
	enum rl_gcra_verdict verdict;
	const struct rl_limit *limit;
	const struct rl_settings *settings = rl_settings_at();
	struct rl_place place;
	__u64 left;

	if (!job || !settings)
		return RL_PASS_LIMIT;
	job->new_cell = rl_cell_of(job->epoch, settings->fresh);
	if (!rl_new_place(job->new_cell, &limit, &place))
		return RL_PASS_LIMIT;
	verdict = (enum rl_gcra_verdict)rl_place_renew(&place, limit, job->now);
	if (!verdict) {
		left = rl_bucket_charge(&place, limit, RL_PACKETS, rl_gcra_cost(&limit->rate[RL_PACKETS], 1),
					0, job->now);
		verdict = rl_bucket_verdict(left);
		job->new_left = left;
	}
	if (verdict == RL_GCRA_ADMIT)
		return RL_PASS_LIMIT;
	job->new_left = 0;
	if (!job->shadow && !(limit->flags & RL_LIMIT_SHADOW)) {
		job->dropper = limit->slot;
		return verdict == RL_GCRA_REJECT ? RL_DROP_NEW : RL_DROP_CONTENDED;
	}
	job->new_shadowed = limit->slot;
	return RL_SHADOW_NEW;
}

/*
 * What `new` was charged, settled: counted where the source was given a place, given back where another CPU was faster, or
 * held the lock. It stays charged where there was no room: otherwise a flood against a full table would pass by `new`.
 */
RL_FUNCTION int rl_new_settle(struct rl_job *job, int reason)
{
	struct rl_limit_count *count;
	const struct rl_limit *limit;
	struct rl_place place;

	if (!job || !job->new_left || !rl_new_place(job->new_cell, &limit, &place))
		return 0;
	count = rl_limit_count_at(limit->slot);
	if (job->given && count)
		rl_count_local(&count->passed, job->segments, job->len);
	if (!job->given && reason != RL_DROP_FULL)
		rl_bucket_refund(&place, limit, RL_PACKETS, rl_gcra_cost(&limit->rate[RL_PACKETS], 1),
				 job->new_left, 0);
	job->new_left = 0;
	return 0;
}

/* The key's place in this row; of IPv6, that of this very source (NULL for IPv4). RL_ROW: none. */
RL_INLINE __u32 rl_row_search(__u32 where, __u32 index, __u32 home, __u64 key,
			      const struct rl_source_key *source)
{
	const struct rl_row *row = rl_row_at(where, index);

	if (!row)
		return RL_ROW;
	if (where != RL_AT_ROWS6)
		return rl_row_find(row, key, home);
	return rl_row_find6(row, rl_row_address_at(index), key, source);
}

/* The source's place in its rows; false where it has none. *row_found says which row, *place where in it. */
RL_INLINE int rl_rows_find(__u32 where, const struct rl_rows *rows, __u64 key,
			   const struct rl_source_key *source, __u32 *row_found, __u32 *place)
{
	for (int i = 0; i < 2; i++) {
		__u32 at = rl_row_search(where, rows->row[i], rows->home, key, source);

		if (at < RL_ROW) {
			*row_found = rows->row[i];
			*place = at;
			return 1;
		}
	}
	return 0;
}

/* The limit that the place's buckets are of; NULL where it was deleted: then there is no owner to lose them. */
RL_INLINE const struct rl_limit *rl_place_owner(const struct rl_job *job, __u64 version)
{
	const struct rl_limit *owner = rl_limit_in(job->epoch, rl_version_slot(version));

	return owner && rl_bucket_version(owner) >> 32 == version >> 32 ? owner : 0;
}

/*
 * Is it full, by the rate in force, and was left alone for the grace time? Or nobody's, since its limit was deleted? A packet
 * that sees the policy as it was doesn't know limits that have come since, but they are newer than the one that it is held
 * to: so where the place's limit is older, and else after longer than a packet takes.
 *
 * limit: who wants the place. Ids count up.
 */
RL_INLINE int rl_victim_spent(const struct rl_job *job, const struct rl_limit *limit,
			      const struct rl_victim *seen, __u32 grace)
{
	const struct rl_limit *owner = rl_place_owner(job, seen->version);

	if (!owner)
		return limit->id > rl_key_id(seen->key) || rl_victim_idle(seen, RL_TABLE_ORPHAN, job->now);
	return rl_victim_idle(seen, grace, job->now) && rl_victim_full(owner, seen, RL_PACKETS, job->now) &&
	       rl_victim_full(owner, seen, RL_BYTES, job->now);
}

/* A free place of the row, taken; the nearest to its home. RL_ROW: none. Under the region's lock. */
RL_FUNCTION __u32 rl_row_take_free(struct rl_job *job, struct rl_row *row, const struct rl_limit *limit,
				   __u32 home)
{
	if (!job || !row || !limit)
		return RL_ROW; /* never so: said for the verifier */
	for (__u32 n = 0; n < RL_ROW; n++) {
		__u32 i = (home + n) & (RL_ROW - 1);

		if (row->key[i])
			continue;
		rl_victim_read(row, i, &job->victim);
		if (!job->victim.key && rl_place_take(row, i, &job->victim, limit, job->now))
			return i;
	}
	return RL_ROW;
}

/* A place of the row that can be given away, taken. As above. */
RL_FUNCTION __u32 rl_row_take_spent(struct rl_job *job, struct rl_row *row, const struct rl_limit *limit,
				    __u32 grace)
{
	struct rl_victim *seen;

	if (!job || !row || !limit)
		return RL_ROW; /* never so: said for the verifier */
	seen = &job->victim;
	for (__u32 i = 0; i < RL_ROW; i++) {
		rl_victim_read(row, i, seen);
		if (rl_victim_spent(job, limit, seen, grace) && rl_place_take(row, i, seen, limit, job->now))
			return i;
	}
	return RL_ROW;
}

/* A free place in the emptier row, or one that can be given away in either; taken. */
RL_INLINE int rl_rows_take(struct rl_job *job, __u32 where, const struct rl_rows *rows,
			   const struct rl_limit *limit, __u32 grace, __u32 *row_taken, __u32 *place)
{
	struct rl_row *first = rl_row_at(where, rows->row[0]), *second = rl_row_at(where, rows->row[1]);
	__u32 vacant[2];
	int emptier;

	if (!first || !second)
		return 0;
	rl_row_vacant(first, &vacant[0]);
	rl_row_vacant(second, &vacant[1]);
	emptier = vacant[1] > vacant[0];
	*row_taken = emptier ? rows->row[1] : rows->row[0];
	*place = rl_row_take_free(job, emptier ? second : first, limit, rows->home);
	if (*place < RL_ROW)
		return 1;
	*row_taken = rows->row[0];
	*place = rl_row_take_spent(job, first, limit, grace);
	if (*place < RL_ROW)
		return 1;
	*row_taken = rows->row[1];
	*place = rl_row_take_spent(job, second, limit, grace);
	return *place < RL_ROW;
}

/* The whole address of who is given the place, where keys are hashes. Whose limit it is under, the key tells. */
RL_INLINE void rl_place_address(__u32 where, __u32 index, __u32 place, const struct rl_source_key *key)
{
	struct rl_row_address *address = where == RL_AT_ROWS6 ? rl_row_address_at(index) : 0;

	place &= RL_ROW - 1;
	if (address)
		__builtin_memcpy(address->addr[place], key->addr, sizeof(key->addr));
}

/* What stands beside a place that was taken: whose it is in full, and no packets yet. */
RL_INLINE void rl_place_prepare(struct rl_row *row, __u32 where, __u32 index, __u32 place,
				const struct rl_source_key *key)
{
	const struct rl_count none = {};

	place &= RL_ROW - 1;
	row->at[place].passed = none;
	row->at[place].dropped = none;
	if (row->shadow[place].packets) /* a line of its own, which is seldom written */
		row->shadow[place] = none;
	rl_place_address(where, index, place, key);
}

/*
 * Give the hold's source a place: RL_PASS_LIMIT, and job->given tells whether it was this packet that got it; or RL_DROP_FULL,
 * RL_DROP_CONTENDED.
 */
RL_FUNCTION int rl_place_give(struct rl_job *job, struct rl_hold *hold)
{
	const struct rl_limit *limit;
	int reason = RL_PASS_LIMIT;
	struct rl_rows rows;
	__u32 *lock;

	if (!job || !hold)
		return RL_DROP_CONTENDED; /* never so: said for the verifier */
	job->given = 0;
	limit = rl_limit_at(hold->cell);
	rows = rl_hold_rows(hold);
	lock = rl_lock_at(rows.row[0] / RL_REGION_ROWS);
	if (!limit || !lock || !rl_lock(lock))
		return RL_DROP_CONTENDED;
	if (!rl_rows_find(hold->where, &rows, hold->whose, &job->key, &hold->index, &hold->place)) {
		struct rl_row *row;

		if (!rl_rows_take(job, hold->where, &rows, limit, RL_TABLE_GRACE, &hold->index, &hold->place))
			reason = RL_DROP_FULL;
		row = rl_row_at(hold->where, hold->index);
		if (reason == RL_PASS_LIMIT && row) {
			rl_place_prepare(row, hold->where, hold->index, hold->place, &job->key);
			rl_place_publish(row, hold->place & (RL_ROW - 1), hold->whose);
			job->given = 1;
		}
	}
	rl_unlock(lock);
	return reason;
}

/* The hold's place is that of the source's /24 or /48: RL_PASS_AGGREGATE, or RL_DROP_FULL. */
RL_FUNCTION int rl_group_hold(struct rl_job *job, struct rl_hold *hold)
{
	const struct rl_limit *limit;
	struct rl_rows rows;
	int found;

	if (!job || !hold)
		return RL_DROP_FULL; /* never so: said for the verifier */
	limit = rl_limit_at(hold->cell);
	if (!limit)
		return RL_DROP_FULL;
	hold->where = RL_AT_GROUPS;
	hold->whose = rl_table_group(rl_table_at(), limit, job->packet.family, job->packet.src);
	rows = rl_table_rows(rl_table_at(), RL_GROUP_REGIONS, hold->whose);
	found = rl_rows_find(hold->where, &rows, hold->whose, 0, &hold->index, &hold->place);
	if (!found) {
		__u32 *lock = rl_lock_at(rl_table_at()->regions + rows.row[0] / RL_REGION_ROWS);

		if (!lock || !rl_lock(lock))
			return RL_DROP_CONTENDED;
		found = rl_rows_find(hold->where, &rows, hold->whose, 0, &hold->index, &hold->place);
		if (!found && rl_rows_take(job, hold->where, &rows, limit, 0, &hold->index, &hold->place)) {
			struct rl_row *row = rl_row_at(hold->where, hold->index);

			if (row)
				rl_place_publish(row, hold->place & (RL_ROW - 1), hold->whose);
			found = 1;
		}
		rl_unlock(lock);
	}
	return found ? RL_PASS_AGGREGATE : RL_DROP_FULL;
}

/* Does the hold's source have a bucket? */
RL_FUNCTION int rl_source_find(struct rl_job *job, struct rl_hold *hold)
{
	struct rl_rows rows;

	if (!job || !hold)
		return 0; /* never so: said for the verifier */
	if (hold->where == RL_AT_LRU)
		return rl_lru_find(&job->key) != 0;
	rows = rl_hold_rows(hold);
	return rl_rows_find(hold->where, &rows, hold->whose, &job->key, &hold->index, &hold->place);
}

/* Give it one in the LRU map, where the kernel makes room by itself. */
RL_INLINE int rl_lru_give(struct rl_job *job, const struct rl_hold *hold, const struct rl_limit *limit)
{
	const struct rl_source none = {};
	struct rl_source *fresh = &job->fresh;

	*fresh = none;
	fresh->key = hold->whose;
	fresh->buckets.version = rl_bucket_version(limit);
	fresh->buckets.word[RL_PACKETS] = rl_bucket_fresh(limit, RL_PACKETS, job->now, 0);
	fresh->buckets.word[RL_BYTES] = rl_bucket_fresh(limit, RL_BYTES, job->now, 0);
	fresh->buckets.stamp = (__u32)(job->now >> RL_GCRA_STAMP);
	job->given = rl_lru_make(&job->key, fresh);
	return job->given || rl_lru_find(&job->key) ? RL_PASS_LIMIT : RL_DROP_FULL;
}

/* A source that has no bucket yet. `admitted`: it has one under another limit of its prefix, so it isn't new. */
RL_INLINE int rl_source_new(struct rl_job *job, struct rl_hold *hold, const struct rl_limit *limit,
			    int admitted)
{
	int reason = RL_PASS_LIMIT;

	if (!admitted)
		reason = rl_new_admit(job);
	if (reason != RL_PASS_LIMIT)
		return reason;
	reason = hold->where == RL_AT_LRU ? rl_lru_give(job, hold, limit) : rl_place_give(job, hold);
	if (!admitted)
		rl_new_settle(job, reason);
	return reason;
}

/* The source was found to be this limit's: until the next epoch the policy needn't be asked (rl_fast.h). */
RL_INLINE void rl_hold_known(const struct rl_job *job, const struct rl_hold *hold)
{
	const struct rl_settings *settings = rl_settings_at();
	__u32 known = rl_known(job->epoch, hold->whose), *is;
	struct rl_row *row = rl_row_at(hold->where, hold->index);

	if (!row || !settings || (hold->where == RL_AT_ROWS6 && settings->split))
		return;
	is = &row->at[hold->place & (RL_ROW - 1)].buckets.known;
	if (*(volatile __u32 *)is != known)
		*(volatile __u32 *)is = known;
}

/* The hold's bucket in the store: as the head of this file says. */
RL_INLINE int rl_store_hold(struct rl_job *job, struct rl_hold *hold, const struct rl_limit *limit,
			    int admitted)
{
	int reason = RL_PASS_LIMIT;
	__u64 number;

	job->key = rl_source_key(job, limit);
	if (rl_lru_used())
		hold->where = RL_AT_LRU;
	else
		hold->where = job->key.family == 4 ? RL_AT_ROWS4 : RL_AT_ROWS6;
	number = rl_table_number(rl_table_at(), job->key.family, job->key.addr);
	hold->whose = rl_table_key(limit->id, job->key.family, number);
	hold->spot = rl_table_spot((enum rl_level)limit->level, limit->id, number);
	if (!rl_source_find(job, hold))
		reason = rl_source_new(job, hold, limit, admitted);
	if (reason == RL_PASS_LIMIT && !rl_lru_used() && limit->level == RL_LEVEL_SOURCE &&
	    limit->bits[job->key.family == 6] == RL_SOURCE_BITS(job->key.family))
		rl_hold_known(job, hold);
	return reason;
}

/*
 * Hold the packet to a limit on its source. `admitted`: the source has a bucket under its prefix's limit, so it is no new
 * one. Adds the hold, and returns RL_PASS_LIMIT, RL_PASS_AGGREGATE, RL_PASS_OPEN, or why the packet can't be held:
 * RL_SHADOW_NEW, RL_DROP_NEW, RL_DROP_FULL, RL_DROP_CONTENDED, RL_PASS_ERROR.
 */
RL_INLINE int rl_source_hold(struct rl_job *job, __u32 cell, int admitted)
{
	const struct rl_settings *settings = rl_settings_at();
	const struct rl_limit *limit = rl_limit_at(cell);
	__u32 count = job->count;
	struct rl_hold *hold;
	int reason;

	if (!limit || !settings || count >= RL_MAX_HOLDS)
		return RL_PASS_ERROR;
	job->count = count + 1;
	hold = &job->hold[count];
	hold->cell = cell;
	hold->slot = limit->slot;
	hold->shadowed = 0;
	hold->left[RL_PACKETS] = hold->left[RL_BYTES] = 0;
	if (limit->flags & RL_LIMIT_OWN_BUCKET) {
		hold->where = RL_AT_OWN;
		hold->index = limit->slot;
		hold->whose = limit->id;
		return RL_PASS_LIMIT;
	}
	reason = rl_store_hold(job, hold, limit, admitted);
	if (reason == RL_PASS_LIMIT)
		return reason;
	if (reason == RL_DROP_FULL && settings->when_full == RL_FULL_AGGREGATE)
		reason = rl_group_hold(job, hold);
	else if (reason == RL_DROP_FULL && settings->when_full == RL_FULL_OPEN)
		reason = RL_PASS_OPEN;
	if (reason != RL_PASS_AGGREGATE)
		hold->where = RL_AT_NONE;
	return reason;
}

#endif

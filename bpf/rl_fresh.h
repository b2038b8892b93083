/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_fresh.h - the common packet of a source that has no place yet, as in a flood of sources that never repeat: the limits on
 * it are plain, nothing limits new sources, and it can be given a place, or its neighbourhood's. Everything else is left to
 * rl_admit.h. Compiles on both sides.
 *
 * What takes time in a large table is memory. So little of it is touched, and what will be needed is asked for early: the keys
 * of both rows, then the place that was chosen by them, and while that is on its way the policy. The rows are looked at without
 * the lock first and once more under it; where another CPU has been faster, the packet is rl_admit.h's.
 *
 * What is decided, charged and counted is what rl_admit.h would have decided, charged and counted: a source has its place
 * before it is judged, and keeps it whatever the verdict is.
 *
 * The includer defines what rl_fast.h asks for, __u32 rl_slot_of(const struct rl_packet *) (rl_admit.h), and
 *   struct rl_kept *rl_kept_at(__u32 index)    of a row of ROWS4, ROWS6 (rl_table.h)
 */
#ifndef RL_FRESH_H
#define RL_FRESH_H

#include "rl_fast.h"

/* Where the source's place may be. */
struct rl_fresh {
	enum rl_where where;
	struct rl_rows rows;
	struct rl_row *first, *second;
	__u32 second_chosen; /* 1: the place is in the second row */
	__u32 at;	     /* in that; RL_ROW: none is free */
	__u32 used;	     /* 1: it was another source's */
};

enum rl_fresh_taken {
	RL_FRESH_TAKEN,
	RL_FRESH_FULL, /* no place can be given away */
	RL_FRESH_LOST, /* another CPU was faster */
};

RL_INLINE struct rl_row *rl_fresh_row(const struct rl_fresh *fresh)
{
	return fresh->second_chosen ? fresh->second : fresh->first;
}

RL_INLINE __u32 rl_fresh_index(const struct rl_fresh *fresh)
{
	return fresh->second_chosen ? fresh->rows.row[1] : fresh->rows.row[0];
}

/* Choose a free place as rl_rows_take() does, yet without the lock; and ask for its memory. */
RL_INLINE void rl_fresh_choose(struct rl_fresh *fresh)
{
	__u32 count, more, vacant = rl_row_vacant(fresh->first, &count),
			   others = rl_row_vacant(fresh->second, &more);

	fresh->second_chosen = more > count;
	if (fresh->second_chosen)
		vacant = others;
	fresh->at = vacant ? rl_row_nearest(vacant, fresh->rows.home) : RL_ROW;
	fresh->used = !vacant;
	if (vacant)
		(void)*(const volatile __u32 *)&rl_fresh_row(fresh)->at[fresh->at].buckets.stamp;
}

/* Has the source a place already? One of another IPv6 source that has the same key counts, too. */
RL_INLINE int rl_fresh_placed(const struct rl_fresh *fresh, __u64 whose)
{
	return rl_row_has(fresh->first, whose) || rl_row_has(fresh->second, whose);
}

/*
 * A place of the row that can be given away, taken; RL_ROW: none. As rl_row_take_spent() does it, but for those of which it is
 * remembered that they can't. Under the region's lock.
 */
RL_FUNCTION __u32 rl_fresh_spent(struct rl_job *job, const struct rl_limit *limit, __u32 where, __u32 index)
{
	struct rl_row *row = rl_row_at(where, index);
	struct rl_kept *kept = rl_kept_at(index);
	struct rl_victim *seen;
	__u32 others;

	if (!job || !row || !kept || !limit)
		return RL_ROW; /* never so: said for the verifier */
	seen = &job->victim;
	others = rl_kept_others(kept, job->epoch, job->now);
	for (__u32 i = 0; i < RL_ROW; i++) {
		if (!(others >> i & 1))
			continue;
		rl_victim_read(row, i, seen);
		if (rl_victim_spent(job, limit, seen, RL_TABLE_GRACE) &&
		    rl_place_take(row, i, seen, limit, job->now)) {
			rl_kept_note(kept, job->epoch, job->now, i, (__u32)(job->now >> RL_GCRA_STAMP));
			return i;
		}
		rl_kept_note(kept, job->epoch, job->now, i, seen->stamp);
	}
	return RL_ROW;
}

/* The place that was chosen, if it is still free, or one that can be given away. Under the region's lock. */
RL_INLINE enum rl_fresh_taken rl_fresh_take(struct rl_job *job, struct rl_fresh *fresh,
					    const struct rl_limit *limit)
{
	struct rl_row *row = rl_fresh_row(fresh);

	if (fresh->at < RL_ROW) {
		if (*(const volatile __u64 *)&row->key[fresh->at])
			return RL_FRESH_LOST;
		rl_place_fill(&row->at[fresh->at].buckets, limit, job->now);
		return RL_FRESH_TAKEN;
	}
	fresh->at = rl_fresh_spent(job, limit, fresh->where, fresh->rows.row[0]);
	if (fresh->at < RL_ROW)
		return RL_FRESH_TAKEN;
	fresh->second_chosen = 1;
	fresh->at = rl_fresh_spent(job, limit, fresh->where, fresh->rows.row[1]);
	return fresh->at < RL_ROW ? RL_FRESH_TAKEN : RL_FRESH_FULL;
}

/* What stands in the place that was taken and beside it, and whose it is: everybody finds it from then on. */
RL_INLINE void rl_fresh_publish(struct rl_job *job, const struct rl_fresh *fresh,
				const struct rl_limit *limit, __u64 whose, int split)
{
	struct rl_row *row = rl_fresh_row(fresh);
	__u32 at = fresh->at;

	asm volatile("" : "+r"(at)); /* the compiler knows its bounds, and the verifier has to be told */
	at &= RL_ROW - 1;
	if (fresh->where == RL_AT_ROWS6)
		job->key = rl_source_key(job, limit);
	if (fresh->used)
		rl_place_prepare(row, fresh->where, rl_fresh_index(fresh), at, &job->key);
	else
		rl_place_address(fresh->where, rl_fresh_index(fresh), at, &job->key);
	if (!split)
		*(volatile __u32 *)&row->at[at].buckets.known = rl_known(job->epoch, whose);
	rl_place_publish(row, at, whose);
}

/* Is it known that there is no room in either row? Then none of their places is looked at, nor the lock. */
RL_INLINE int rl_fresh_full(const struct rl_job *job, const struct rl_fresh *fresh)
{
	return fresh->at >= RL_ROW && !rl_kept_others(rl_kept_at(fresh->rows.row[0]), job->epoch, job->now) &&
	       !rl_kept_others(rl_kept_at(fresh->rows.row[1]), job->epoch, job->now);
}

/* Give the source a place. */
RL_INLINE enum rl_fresh_taken rl_fresh_give(struct rl_job *job, struct rl_fresh *fresh,
					    const struct rl_limit *limit, __u64 whose, int split)
{
	__u32 *lock = rl_lock_at(fresh->rows.row[0] / RL_REGION_ROWS);
	enum rl_fresh_taken taken = RL_FRESH_LOST;

	if (rl_fresh_full(job, fresh))
		return RL_FRESH_FULL;
	if (!lock || __sync_val_compare_and_swap(lock, 0, 1))
		return RL_FRESH_LOST; /* who waits for it is rl_admit.h */
	if (!rl_fresh_placed(fresh, whose))
		taken = rl_fresh_take(job, fresh, limit);
	if (taken == RL_FRESH_TAKEN)
		rl_fresh_publish(job, fresh, limit, whose, split);
	rl_unlock(lock);
	return taken;
}

/* The rows where the source's place would be. */
RL_INLINE int rl_fresh_locate(const struct rl_packet *packet, __u64 number, struct rl_fresh *out)
{
	out->where = packet->family == 4 ? RL_AT_ROWS4 : RL_AT_ROWS6;
	out->rows =
	    rl_table_rows(rl_table_at(), rl_table_at()->regions, rl_table_spot(RL_LEVEL_SOURCE, 0, number));
	out->first = rl_row_at(out->where, out->rows.row[0]);
	out->second = rl_row_at(out->where, out->rows.row[1]);
	return out->first && out->second;
}

/*
 * Find a place for the source of a packet that rl_fast() doesn't know: RL_HELD, and job->hold[0] says where; RL_NO_ROOM; or
 * RL_NOT_FAST, and nothing was changed.
 */
RL_FUNCTION int rl_fresh(struct rl_job *job, __u32 device_limit)
{
	const struct rl_settings *settings = rl_settings_at();
	const struct rl_limit *limit;
	struct rl_fresh fresh;
	__u64 number, whose;
	struct rl_hold *hold;

	if (!job || !settings || settings->fresh)
		return RL_NOT_FAST;
	number = rl_fast_number(&job->packet, job->packet.family == 4 ? RL_AT_ROWS4 : RL_AT_ROWS6);
	if (!rl_fresh_locate(&job->packet, number, &fresh))
		return RL_NOT_FAST;
	rl_fresh_choose(&fresh);
	hold = &job->hold[0];
	hold->cell = rl_cell_of(job->epoch, rl_slot_of(&job->packet));
	limit = rl_limit_at(hold->cell);
	if (!limit || !rl_limit_plain(limit, job->packet.family == 4 ? 4 : 6))
		return RL_NOT_FAST;
	whose = rl_table_key(limit->id, job->packet.family, number);
	if (rl_fresh_placed(&fresh, whose))
		return RL_NOT_FAST;
	rl_fast_levels(job, limit, device_limit);
	job->now = rl_now();
	switch (rl_fresh_give(job, &fresh, limit, whose, fresh.where == RL_AT_ROWS6 && settings->split)) {
	case RL_FRESH_TAKEN:
		hold->where = fresh.where;
		hold->index = rl_fresh_index(&fresh);
		hold->place = fresh.at;
		hold->whose = whose;
		return RL_HELD;
	case RL_FRESH_FULL:
		return settings->when_full == RL_FULL_AGGREGATE ? RL_NO_ROOM : RL_NOT_FAST;
	default:
		return RL_NOT_FAST;
	}
}

/*
 * Judge a packet whose source's place, or its neighbourhood's, is that of job->hold[0]. The reason; or RL_NOT_FAST, and nothing
 * was charged or counted: it is now a packet of a known source. Apart, since the stacks of functions that call each other add up.
 */
RL_FUNCTION int rl_fresh_settle(struct rl_job *job)
{
	const struct rl_limit *limit;
	const struct rl_hold *hold;
	struct rl_row *row;

	if (!job)
		return RL_NOT_FAST; /* never so: said for the verifier */
	hold = &job->hold[0];
	limit = rl_limit_at(hold->cell);
	row = rl_row_at(hold->where, hold->index);
	if (!limit || !row)
		return RL_NOT_FAST;
	job->tier[0].whose = hold->whose;
	return rl_fast_settle(job, row, hold->index, hold->place & (RL_ROW - 1), limit, 0,
			      hold->where == RL_AT_GROUPS);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_slice.h - what a CPU has taken ahead of a tenant's or a device's bucket, so that not every packet of every CPU has to win
 * the same word. Compiles on both sides.
 *
 * A slice is bucket time that one compare-and-swap has charged beside the cost of its packet: TAT went on to `end`, and the
 * last `left` units before it are this CPU's to spend, without a look at the bucket. At the time t it is worth something while
 *
 *     t <= end - left
 *
 * The bound holds, to the unit: each packet has a stretch of bucket time as long as its cost. One that is charged by itself has
 * that from max(TAT, t) on, one that is paid from a slice that from end - left on. No two overlap, since TAT has passed whatever was
 * handed out before. None begins before its packet came, nor ends later than a burst after it, since a slice was within the
 * burst when it was taken. So the packets of any window have their stretches within the window and one burst more.
 *
 * What isn't spent in time is worth nothing from then on, and the bucket has refilled by as much: nobody has to give it back.
 * What it costs: of each slice a rest that is smaller than the packet that comes next, which takes another; and once what other
 * CPUs hold, or didn't use in time (RL_SLICE_PARTS). Both together are up to a sixteenth of a burst, once: nothing is taken ahead of
 * a bucket that owes more than half its burst, where each token is where it is wanted, and who is over the limit gets all of its
 * rate. Small bursts have no slices, nor have buckets with a reserve, whose tokens aren't alike.
 *
 * The includer defines
 *   struct rl_slice *rl_slice_at(__u32 slot)    this CPU's, for the limit in this slot; several limits share one
 *   __u32 rl_slice_shift(void)                  a slice is at most burst >> so much; 0: none are taken
 */
#ifndef RL_SLICE_H
#define RL_SLICE_H

#include "rl_bucket.h"
#include "rl_job.h"

#define RL_SLICE_PACKETS 64 /* as large as the packet at hand; at most */
#define RL_SLICE_WORTH	 8  /* likewise; at least, or it isn't worth while */

/* May CPUs take ahead of this limit's bucket? */
RL_INLINE int rl_limit_sliced(const struct rl_limit *limit)
{
	return rl_slice_shift() && (limit->level == RL_LEVEL_TENANT || limit->level == RL_LEVEL_DEVICE);
}

/* May it be worth something still? Then none of its times has wrapped: half the wrap is more than a burst away. */
RL_INLINE int rl_slice_live(const struct rl_slice *slice, enum rl_unit unit, __u64 now)
{
	return (__s64)(slice->until[unit] - now) >= 0;
}

/* Is so much of it, in one unit of its limit, still to be had? */
RL_INLINE int rl_slice_has(const struct rl_slice *slice, const struct rl_rate *rate, enum rl_unit unit,
			   __u64 cost, __u64 now)
{
	return slice->left[unit] >= cost && rl_slice_live(slice, unit, now) &&
	       (__s64)((slice->end[unit] & ~RL_GCRA_TAG) - slice->left[unit] - rl_gcra_time(rate, now)) >= 0;
}

/* Is it of this version of the limit? */
RL_INLINE int rl_slice_of(const struct rl_slice *slice, const struct rl_limit *limit)
{
	return slice->id == limit->id && slice->gen == limit->gen;
}

/*
 * How much to take ahead in one unit beside a packet of this cost, which leaves the word `next` by itself; 0: nothing, as it is
 * not worth while, or would bring the bucket below half. What is left of an earlier slice is lost.
 */
RL_INLINE __u64 rl_slice_ahead(const struct rl_slice *slice, const struct rl_limit *limit, enum rl_unit unit,
			       __u64 next, __u64 cost, __u64 now)
{
	const struct rl_rate *rate = &limit->rate[unit];
	__u64 size = rate->burst >> rl_slice_shift(), debt = (next & ~RL_GCRA_TAG) - rl_gcra_time(rate, now);

	if (!rl_limit_sliced(limit) || rate->kept[RL_PRIORITY_LOW])
		return 0;
	if (size / RL_SLICE_PACKETS > cost)
		size = cost * RL_SLICE_PACKETS;
	size -= size % cost; /* or a rest that is no packet's would be lost each time */
	if (size / RL_SLICE_WORTH < cost || debt + size > rate->burst / 2)
		return 0;
	if (rl_slice_of(slice, limit))
		return size;
	/* Another limit's, which may still spend it: with each packet of the two, the other's would be lost. */
	return rl_slice_live(slice, RL_PACKETS, now) || rl_slice_live(slice, RL_BYTES, now) ? 0 : size;
}

/* Keep what was taken ahead: the charge left the word `end`, `size` beyond the packet's own cost. */
RL_INLINE void rl_slice_keep(struct rl_slice *slice, const struct rl_limit *limit, enum rl_unit unit,
			     __u64 end, __u64 size, __u64 now)
{
	const struct rl_rate *rate = &limit->rate[unit];

	if (!rl_slice_of(slice, limit)) {
		slice->id = limit->id;
		slice->gen = limit->gen;
		slice->left[RL_PACKETS] = slice->left[RL_BYTES] = 0;
	}
	slice->end[unit] = end;
	slice->left[unit] = size;
	slice->until[unit] = now + (((end & ~RL_GCRA_TAG) - rl_gcra_time(rate, now)) >> rate->shift);
}

#endif

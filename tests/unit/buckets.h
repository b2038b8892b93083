/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * buckets.h - the bucket's code as the packet path runs it, under a clock that the test moves, and ways to offer packets.
 */
#ifndef BUCKETS_H
#define BUCKETS_H

#include <linux/types.h>

#include "limits.h"
#include "random.h"

static __u64 test_clock; /* ns; shared by threads */

static inline __u64 rl_now(void)
{
	return __atomic_load_n(&test_clock, __ATOMIC_RELAXED);
}

#include "../../bpf/rl_bucket.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEED	     20240609ULL
#define MS	     1000000ULL
#define SECOND	     (1000 * MS)
#define DAY	     (86400 * SECOND)
#define START	     LIMITS_START

typedef unsigned __int128 u128;

static inline struct rl_place place_of(struct rl_source *source)
{
	return (struct rl_place){.buckets = &source->buckets, .key = &source->key, .whose = source->key};
}

static inline __u64 cost_of(const struct rl_limit *limit, enum rl_unit unit, __u32 len)
{
	return rl_bucket_cost(limit, unit, unit == RL_BYTES ? len : 1);
}

/* One packet against one limit, as rl_admit.h does it with all that a packet is held to: look, then charge. */
static inline enum rl_gcra_verdict admit(struct rl_source *source, const struct rl_limit *limit, __u32 len,
					 __u64 now)
{
	struct rl_place place = place_of(source);
	enum rl_gcra_verdict verdict;
	__u64 left[RL_UNITS] = {0};

	verdict = (enum rl_gcra_verdict)rl_place_renew(&place, limit, now);
	for (int unit = 0; unit < RL_UNITS && !verdict; unit++)
		if (limit->rate[unit].mult)
			verdict = rl_bucket_look(&place, limit, unit, cost_of(limit, unit, len), 0, now);
	for (int unit = 0; unit < RL_UNITS && !verdict; unit++) {
		if (!limit->rate[unit].mult)
			continue;
		left[unit] = rl_bucket_charge(&place, limit, unit, cost_of(limit, unit, len), 0, now);
		verdict = rl_bucket_verdict(left[unit]);
		if (verdict && unit && left[RL_PACKETS])
			rl_bucket_refund(&place, limit, RL_PACKETS, cost_of(limit, RL_PACKETS, len),
					 left[RL_PACKETS], 0);
	}
	return verdict;
}

static inline enum rl_gcra_verdict offer(struct rl_source *source, const struct rl_limit *limit, __u32 len,
					 __u64 now)
{
	__atomic_store_n(&test_clock, now, __ATOMIC_RELAXED);
	return admit(source, limit, len, now);
}

static inline __u32 generation(const struct rl_source *source)
{
	return (__u32)source->buckets.version;
}

/* How many of `count` packets offered at once pass. */
static inline __u64 flood(struct rl_source *source, const struct rl_limit *limit, __u32 len, __u64 now,
			  __u64 count)
{
	__u64 passed = 0;

	while (count--)
		passed += offer(source, limit, len, now) == RL_GCRA_ADMIT;
	return passed;
}

/* One packet each `step` in (from, to]; the last packet is at `to` or before. */
static inline __u64 stream(struct rl_source *source, const struct rl_limit *limit, __u32 len, __u64 from,
			   __u64 to, __u64 step)
{
	__u64 passed = 0;

	for (__u64 now = from + step; now <= to; now += step)
		passed += offer(source, limit, len, now) == RL_GCRA_ADMIT;
	return passed;
}

#endif

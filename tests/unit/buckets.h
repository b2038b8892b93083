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

static inline enum rl_gcra_verdict offer(struct rl_source *source, const struct rl_limit *limit, __u32 len,
					 __u64 now)
{
	__atomic_store_n(&test_clock, now, __ATOMIC_RELAXED);
	return rl_bucket_admit(source, limit, len, now);
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

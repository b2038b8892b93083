/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.h - CLOCK_MONOTONIC in ns: the clock that the packet path reads by bpf_ktime_get_ns.
 */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <linux/types.h>
#include <time.h>

static inline __u64 rl_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000ULL + (__u64)now.tv_nsec;
}

#endif

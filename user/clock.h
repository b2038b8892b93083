/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.h - CLOCK_MONOTONIC in ns: the clock that the packet path reads by bpf_ktime_get_ns.
 */
#ifndef RL_CLOCK_H
#define RL_CLOCK_H

#include <linux/types.h>

/* Also in a time namespace, whose processes see that clock shifted (Linux 5.6). */
__u64 rl_clock_ns(void);

/* The same clock in whole seconds, as of the last tick: a fraction of what the exact time costs. */
__u32 rl_clock_seconds(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clock.bpf.h - the packet path's clock, ns: CLOCK_MONOTONIC, or the time a test gives.
 */
#ifndef CLOCK_BPF_H
#define CLOCK_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "rl_abi.h"

const volatile bool
    rl_clock_given; /* set before load by tests only: the verifier then removes the other branch */
__u64 rl_clock_now; /* ns; meaningful with rl_clock_given */

const volatile __u32 rl_slices_shift; /* set before load: rl_slice_shift_of() the CPUs; 0: no slices */

RL_INLINE __u32 rl_slice_shift(void)
{
	return rl_slices_shift;
}

RL_INLINE __u64 rl_now(void)
{
	return rl_clock_given ? *(volatile __u64 *)&rl_clock_now : bpf_ktime_get_ns();
}

/* Another number in every tick of the kernel's; the verifier makes a load of it. (Linux 5.6) */
RL_INLINE __u64 rl_tick(void)
{
	return rl_clock_given ? *(volatile __u64 *)&rl_clock_now : bpf_jiffies64();
}

#endif

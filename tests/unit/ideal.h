/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ideal.h - an ideal bucket of each unit: its TAT, not cut to 64 bits, charged what passed, when it passed.
 */
#ifndef IDEAL_H
#define IDEAL_H

#include "../../bpf/rl_gcra.h"

struct ideal {
	unsigned __int128 full[RL_UNITS];
};

/* What it would owe in one unit with a packet of `len` bytes at that time, ns. */
static inline __u64 ideal_debt(const struct ideal *ideal, const struct rl_limit *limit, enum rl_unit unit,
			       __u32 len, __u64 now)
{
	const struct rl_rate *rate = &limit->rate[unit];
	unsigned __int128 t = (unsigned __int128)now << rate->shift,
			  full = ideal->full[unit] > t ? ideal->full[unit] : t;

	return (__u64)(full - t) + rl_gcra_cost(rate, unit == RL_BYTES ? len : 1);
}

static inline void ideal_charge(struct ideal *ideal, const struct rl_limit *limit, __u32 len, __u64 now)
{
	for (enum rl_unit unit = 0; unit < RL_UNITS; unit++)
		ideal->full[unit] = ((unsigned __int128)now << limit->rate[unit].shift) +
				    ideal_debt(ideal, limit, unit, len, now);
}

/* Would it let the packet pass? */
static inline int ideal_admits(const struct ideal *ideal, const struct rl_limit *limit, __u32 len, __u64 now)
{
	for (enum rl_unit unit = 0; unit < RL_UNITS; unit++)
		if (limit->rate[unit].mult &&
		    ideal_debt(ideal, limit, unit, len, now) > limit->rate[unit].burst)
			return 0;
	return 1;
}

#endif

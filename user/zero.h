/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* zero.h - the counters of many slots that nobody has any more: for room.h, before others are given them. */
#ifndef RL_ZERO_SLOTS_H
#define RL_ZERO_SLOTS_H

#include "state.h"

/* In rl_limit_count. slots: in order. On error some may be zero. */
int rl_zero_counts(const struct rl_state *state, const __u32 *slots, size_t count, struct rl_error *err);

#endif

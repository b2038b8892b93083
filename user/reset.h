/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reset.h - counters to zero, while packets count. Buckets stay as they are: what counts is written by single
 * words of its own, never together with a bucket.
 */
#ifndef RL_RESET_USER_H
#define RL_RESET_USER_H

#include "state.h"

/*
 * Zero everything that stats, top and explain count; or, of one target, the counters of its limit and its
 * classes', of its sources, and of the device where it is one. -ENOENT with RL_ERROR_USAGE where there is no
 * such limit or device. Needs the lock.
 */
int rl_reset_counters(const struct rl_state *state, const struct rl_target *target, struct rl_error *err);

#endif

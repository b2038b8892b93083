/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* batch.h - many elements of an array map written by few system calls. */
#ifndef RL_BATCH_H
#define RL_BATCH_H

#include "state.h"

/* values[i], each of `size` bytes (of a per-CPU map: of all CPUs), to keys[i]. On error some may be written. */
int rl_batch_write(const struct rl_state *state, enum rl_map map, const __u32 *keys, const void *values,
		   size_t size, size_t count, struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_zero.h - what user space asks of the program in rl_zero.bpf.c.
 */
#ifndef RL_ZERO_H
#define RL_ZERO_H

#include "rl_abi.h"

/* Slots from `from` on, so many; all of them nobody's. */
struct rl_zero_request {
	__u32 from;
	__u32 count;
};

_Static_assert(sizeof(struct rl_zero_request) == 8, "rl_zero_request");

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_reset.h - what user space asks of the program in rl_reset.bpf.c.
 */
#ifndef RL_RESET_H
#define RL_RESET_H

#include "rl_abi.h"

#define RL_RESET_IDS (RL_MAX_CLASSES + 1) /* a prefix's general limit and its classes' */

struct rl_reset_request {
	__u32 count;		/* of id; 0: every limit's sources */
	__u32 id[RL_RESET_IDS]; /* limits */
};

_Static_assert(sizeof(struct rl_reset_request) == 40, "rl_reset_request");

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps.h - the real maps without a program: for tests of what user space alone writes there, small enough to be filled, and
 * of an agent that is killed.
 */
#ifndef RL_TEST_MAPS_H
#define RL_TEST_MAPS_H

#include <stdbool.h>

#include "../../user/state.h"

extern struct rl_state maps;

void maps_make(__u32 slots, __u32 cells);

/* As many as most tests of policies want. */
#define MAPS_SLOTS 512
#define MAPS_CELLS 600
void maps_make_few(void);

void maps_end(void);

__u32 maps_claimed(enum rl_map which);

/* What is recorded of a device in this slot of rl_devices. */
void maps_attach(__u32 slot, const char *name);
__u32 maps_device_limit(__u32 slot);
struct rl_settings maps_settings(void);

/*
 * Run it in a process that is killed at its n-th stop at a system call, on the way in or out, or `further` instructions
 * behind that. False: it was done before.
 */
bool maps_killed_at(void (*act)(void), int n, int further);

#endif

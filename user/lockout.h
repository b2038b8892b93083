/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lockout.h - warn an operator whose own SSH session is limited, before the shell stalls.
 */
#ifndef RL_LOCKOUT_H
#define RL_LOCKOUT_H

#include "policy.h"

/*
 * To stderr, where a limit holds for the address that this SSH session comes from: which one, and how to undo it. With
 * `changed`, the target of a limit that was set or deleted, only where that changed what holds for the address.
 */
void rl_lockout_warn(const struct rl_state *state, const struct rl_prefix *changed);

#endif

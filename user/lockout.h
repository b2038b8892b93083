/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lockout.h - warn an operator whose own SSH session is limited or denied, before the shell stalls.
 */
#ifndef RL_LOCKOUT_H
#define RL_LOCKOUT_H

#include "policy.h"

/*
 * To stderr, where the address that this SSH session comes from is denied, or held to a limit: by its prefix, its classes,
 * its tenant. Which one, and how to undo it. With `changed`, the target of a limit that was set or deleted, only where that
 * changed what holds for the address; a device's limit counts for whoever arrives there. What is in shadow drops nothing.
 */
void rl_lockout_warn(const struct rl_state *state, const struct rl_target *changed);

#endif

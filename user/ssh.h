/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ssh.h - where this shell's SSH session comes from, so that a command can warn before its operator is cut
 * off.
 */
#ifndef RL_SSH_H
#define RL_SSH_H

#include <stdbool.h>
#include "../bpf/rl_abi.h"

/* The client's address, as a target of one host. sudo takes SSH_CONNECTION out of the environment, so the
 * parents' environments are looked at too (/proc/PID/environ). False: no SSH session, or it can't be told. */
bool rl_ssh_client(struct rl_prefix *out);

#endif

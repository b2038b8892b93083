/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * netns.h - network namespaces by their cookie.
 */
#ifndef RL_NETNS_H
#define RL_NETNS_H

#include <stdbool.h>
#include <stddef.h>
#include "error.h"

/*
 * The cookies of the network namespaces that a process runs in or that have a name under /run/netns. One that
 * is held by an open file alone isn't found. *out is allocated; the caller frees it. Visits each namespace
 * and comes back, which needs CAP_SYS_ADMIN; -errno where that fails.
 */
int rl_netns_cookies(unsigned long long **out, size_t *count, struct rl_error *err);

#endif

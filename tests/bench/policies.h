/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policies.h - the policy that a scenario takes: `any`, and prefixes of one length that tile the sources' space from its
 * beginning, each with a limit of its own; with all levels also a tenant's limit, which the prefixes inherit, and a device's.
 */
#ifndef BENCH_POLICIES_H
#define BENCH_POLICIES_H

#include "../../user/state.h"
#include "scenario.h"

#define POLICIES_DEVICE "bench0"

/* *prefixes: how many there are in the end, `any` included: as many as were asked for, or as the policy takes. */
int policies_load(const struct rl_state *state, const struct scenario *scenario, __u32 *prefixes,
		  struct rl_error *err);

#endif

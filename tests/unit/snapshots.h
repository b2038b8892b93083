/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snapshots.h - snapshots made by hand, for tests of what is computed from them and shown.
 */
#ifndef SNAPSHOTS_H
#define SNAPSHOTS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/snapshot.h"
#include "../../user/target.h"

static inline struct rl_prefix test_target(const char *text)
{
	struct rl_error err = {};
	struct rl_prefix target = {};

	cr_assert_eq(rl_target_parse(text, &target, &err), 0, "%s", err.text);
	return target;
}

static inline struct rl_limit_stats test_limit(const char *target, __u32 id, const char *tenant)
{
	struct rl_limit_stats limit = {.target = test_target(target),
				       .limit = {.id = id, .slot = id, .gen = 1}};

	limit.limit.terms.packets_per_hour = 3600000;
	limit.limit.terms.burst_packets = 100;
	snprintf(limit.limit.terms.tenant, sizeof(limit.limit.terms.tenant), "%s", tenant);
	return limit;
}

static inline struct rl_source_stats test_source(const char *source, __u32 limit, __u64 passed, __u64 dropped)
{
	return (struct rl_source_stats){
	    .source = test_target(source),
	    .limit = limit,
	    .passed = {passed, passed * 100},
	    .dropped = {dropped, dropped * 100},
	};
}

static inline struct rl_device_stats test_device(const char *name, __u32 slot, __u64 passed, __u64 dropped)
{
	struct rl_device_stats device = {
	    .attached = {.slot = slot,
			 .where = RL_HERE,
			 .link_id = 70 + slot,
			 .program_id = 80 + slot,
			 .ifindex = 2 + slot},
	};

	device.attached.device.flags = RL_DEVICE_ATTACHED;
	device.attached.device.since = 1709208000; /* 2024-02-29T12:00:00Z */
	snprintf(device.attached.name, sizeof(device.attached.name), "%s", name);
	device.count.by_reason[RL_PASS_LIMIT] = (struct rl_count){passed, passed * 100};
	device.count.by_reason[RL_DROP_SOURCE] = (struct rl_count){dropped, dropped * 100};
	return device;
}

#endif

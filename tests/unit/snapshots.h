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

#include "../../user/class.h"
#include "../../user/snapshot.h"
#include "../../user/prefix.h"
#include "../../user/target.h"

static inline struct rl_prefix test_prefix(const char *text)
{
	struct rl_error err = {};
	struct rl_prefix prefix = {};

	cr_assert_eq(rl_prefix_parse(text, &prefix, &err), 0, "%s", err.text);
	return prefix;
}

/* 1000 packets a second, burst 100: what is shown of a limit, without its arithmetic. */
static inline struct rl_limit_stats test_limit(const char *target, __u32 id, const char *tenant)
{
	static const enum rl_level levels[RL_TARGETS] = {
	    [RL_TARGET_PREFIX] = RL_LEVEL_SOURCE,
	    [RL_TARGET_TENANT] = RL_LEVEL_TENANT,
	    [RL_TARGET_DEVICE] = RL_LEVEL_DEVICE,
	    [RL_TARGET_NEW] = RL_LEVEL_NEW,
	};
	struct rl_limit_stats limit = {.limit = {.id = id, .slot = id, .gen = 1}};
	struct rl_terms *terms = &limit.limit.terms;
	struct rl_error err = {};

	cr_assert_eq(rl_target_parse(target, &limit.limit.target, &err), 0, "%s", err.text);
	limit.limit.level = (__u8)levels[limit.limit.target.kind];
	terms->packets_per_hour = 3600000;
	terms->burst_packets = 100;
	terms->priority = RL_PRIORITY_UNSET;
	snprintf(terms->tenant, sizeof(terms->tenant), "%s", tenant);
	return limit;
}

static inline struct rl_class test_class(const char *text)
{
	struct rl_error err = {};
	struct rl_class class = {};

	cr_assert_eq(rl_class_parse(text, &class, &err), 0, "%s", err.text);
	return class;
}

/* The same for a class of a prefix's packets. */
static inline struct rl_limit_stats test_class_limit(const char *target, __u32 id, const char *class)
{
	struct rl_limit_stats limit = test_limit(target, id, "");

	limit.limit.level = RL_LEVEL_CLASS;
	limit.limit.terms.class = test_class(class);
	return limit;
}

static inline struct rl_source_stats test_source(const char *source, __u32 limit, __u64 passed, __u64 dropped)
{
	return (struct rl_source_stats){
	    .source = test_prefix(source),
	    .limit = limit,
	    .tally = {.passed = {passed, passed * 100}, .dropped = {dropped, dropped * 100}},
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

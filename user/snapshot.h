/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * snapshot.h - the maps read once, as plain arrays: what stats, list, status and top show. Reading takes no
 * lock and changes nothing. Views (view.h) and top take a snapshot as a value.
 */
#ifndef RL_SNAPSHOT_H
#define RL_SNAPSHOT_H

#include "attached.h"
#include "policy.h"
#include "sources.h"

struct rl_device_stats {
	struct rl_attached attached;
	struct rl_device_count count; /* summed over CPUs */
};

struct rl_limit_stats {
	struct rl_limit limit;
	char tenant[RL_TENANT_LEN]; /* a prefix's own, or that of the nearest prefix around it; empty: none */
	struct rl_limit_count count; /* summed over CPUs */
};

struct rl_source_stats {
	struct rl_prefix source;
	__u32 limit; /* index in struct rl_snapshot's limits, of a prefix's general limit */
	struct rl_tally tally;
	__u64 after; /* ns from sources_time on when it was read */
};

enum rl_snapshot_parts {
	RL_SNAPSHOT_DEVICES = 1 << 0,
	RL_SNAPSHOT_LIMITS = 1 << 1,  /* targets, limits and tenants */
	RL_SNAPSHOT_COUNTS = 1 << 2,  /* the limits' counters too */
	RL_SNAPSHOT_SOURCES = 1 << 3, /* needs LIMITS; in the order of their targets, then limit */
};

struct rl_snapshot {
	__u64 time;	    /* CLOCK_MONOTONIC, ns */
	__u64 sources_time; /* likewise, when the sources were begun to be read; 0 where they weren't */
	struct rl_meta meta;
	struct rl_settings settings;
	struct rl_device_stats *devices;
	size_t device_count;
	struct rl_limit_stats *limits; /* in the order of rl_policy_read */
	size_t limit_count;
	struct rl_source_stats *sources; /* sources of deleted limits are left out */
	size_t source_count;
};

#define RL_SNAPSHOT __attribute__((cleanup(rl_snapshot_free)))

/* Read the parts asked for (enum rl_snapshot_parts, or'ed). Start from a zeroed snapshot; it stays so on
 * error. */
int rl_snapshot_take(const struct rl_state *state, unsigned int parts, struct rl_snapshot *out,
		     struct rl_error *err);

/* The same with its sources from a store that the caller keeps open. */
int rl_snapshot_take_from(struct rl_sources *sources, unsigned int parts, struct rl_snapshot *out,
			  struct rl_error *err);
void rl_snapshot_free(struct rl_snapshot *snapshot);

/* A device's totals, summed from its reasons. What shadow let pass is in `passed` too. */
struct rl_count rl_device_passed(const struct rl_device_count *count);
struct rl_count rl_device_dropped(const struct rl_device_count *count);
struct rl_count rl_device_shadow(const struct rl_device_count *count);

/* The limit that has this slot, or NULL. */
const struct rl_limit_stats *rl_snapshot_slot(const struct rl_snapshot *snapshot, __u32 slot);

/*
 * The reason's name in output: "no_limit", "within_limit", "allowed", "not_ip", "neighbour_discovery",
 * "paused", "unparsed", "malformed", "aggregated", "table_full_open", "internal_error"; what drops:
 * "source_limit", "class_limit", "tenant_limit", "device_limit", "new_source", "aggregate_limit", "table_full",
 * "denied", "contended"; and what would, in shadow: the same with "shadow_" in front.
 */
const char *rl_reason_name(enum rl_reason reason);
/* What it counts, in a phrase; of a shadow's, what the same without shadow counts. */
const char *rl_reason_about(enum rl_reason reason);
const char *rl_mode_name(enum rl_mode mode);		 /* "native", "generic", "tc" */
const char *rl_store_name(enum rl_store store);		 /* "table", "lru" */
const char *rl_when_full_name(enum rl_when_full policy); /* "aggregate", "open", "closed" */

/*
 * The tenants of prefixes' limits (own name in limit.terms.tenant) into `tenant`: inherited from the nearest
 * prefix around, and a class's from its target. limits must be in the order of rl_policy_read.
 */
void rl_tenants_inherit(struct rl_limit_stats *limits, size_t count);

#endif

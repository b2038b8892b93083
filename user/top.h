/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * top.h - who sends how much now: two snapshots to rates, the busiest sources first. Pure.
 *
 * Both snapshots hold their sources in one order, so one walk through both pairs them. A source that the
 * earlier one doesn't have, or whose counters went down since (evicted and made again), counts from 0: no
 * rate is negative.
 */
#ifndef RL_TOP_H
#define RL_TOP_H

#include "snapshot.h"

enum rl_top_by {
	RL_TOP_BY_DROPS,  /* dropped packets a second, and those that shadow let pass */
	RL_TOP_BY_PASSED, /* passed packets a second */
	RL_TOP_BY_BITS,	  /* received bits a second, passed and dropped */
	RL_TOP_BYS,
};

enum rl_top_filter_kind {
	RL_TOP_FILTER_NONE,
	RL_TOP_FILTER_PREFIX,
	RL_TOP_FILTER_TENANT,
};

struct rl_top_filter {
	enum rl_top_filter_kind kind;
	struct rl_prefix prefix;
	char tenant[RL_TENANT_LEN];
};

struct rl_top_query {
	enum rl_top_by by;
	struct rl_top_filter filter;
	size_t rows; /* at most this many sources */
};

/* A second, over the time between the two snapshots. */
struct rl_top_rates {
	double passed_pps;
	double dropped_pps;
	double shadow_pps; /* would have been dropped; in passed_pps too */
	double passed_bits;
	double dropped_bits;
	double shadow_bits;
};

struct rl_top_device {
	const struct rl_device_stats *stats;
	struct rl_top_rates rates;
};

struct rl_top_source {
	const struct rl_source_stats *stats;
	struct rl_top_rates rates;
	double rank; /* what it is sorted by, highest first; equal ones in the order of their targets */
};

/* Points into the later snapshot, which must outlive it. */
struct rl_top {
	const struct rl_snapshot *now;
	double seconds; /* between the two snapshots */
	struct rl_top_device *devices;
	size_t device_count;
	struct rl_top_source *sources;
	size_t source_count;
	size_t matched; /* sources that the filter lets through, shown or not */
};

#define RL_TOP __attribute__((cleanup(rl_top_free)))

/* Start from a zeroed *out. 0, or -ENOMEM with *out untouched. */
int rl_top_compute(const struct rl_snapshot *before, const struct rl_snapshot *now,
		   const struct rl_top_query *query, struct rl_top *out);
void rl_top_free(struct rl_top *top);

/* "drops", "passed", "bits". */
const char *rl_top_by_name(enum rl_top_by by);
int rl_top_by_parse(const char *text, enum rl_top_by *out, struct rl_error *err);

/*
 * A prefix or address, or else a tenant's name; NULL and "" are no filter. RL_ERROR_USAGE for what looks like
 * an address and is none, and for names that no tenant can have.
 */
int rl_top_filter_parse(const char *text, struct rl_top_filter *out, struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sources.h - the sources that have a bucket, whichever store they are in: all of them, or one. Reading takes
 * no lock and changes nothing; sources may come and go meanwhile. One that is there all the time is read
 * exactly once, and no source is given another's counts.
 */
#ifndef RL_USER_SOURCES_H
#define RL_USER_SOURCES_H /* bpf/rl_sources.h has the other name */

#include "pending.h"

/* The table, mapped. */
struct rl_source_table {
	struct rl_mapping rows;
	struct rl_mapping addresses; /* of IPv6 sources, by row */
};

/* The store, for as long as it is read: mapping a large table takes longer than reading it. */
struct rl_sources {
	const struct rl_state *state; /* outlives it */
	struct rl_meta meta;
	struct rl_source_table table; /* mapped when it is first wanted */
	struct rl_pendings pending;
};

#define RL_SOURCES __attribute__((cleanup(rl_sources_close)))

int rl_sources_open(const struct rl_state *state, struct rl_sources *out, struct rl_error *err);
void rl_sources_close(struct rl_sources *sources);

/* A source's place in the store. Its address is cut to the granularity of its limit. */
struct rl_source_place {
	__u32 limit_id;
	__u8 family;
	__u8 addr[16]; /* as in struct rl_prefix */
	struct rl_buckets buckets;
	struct rl_tally tally;
	__u64 time; /* CLOCK_MONOTONIC, ns: when it was read, within a millisecond */
};

/* What is done with each place. Other than 0 ends the reading, and is what that returns. */
typedef int (*rl_source_use)(void *context, const struct rl_source_place *place);

/* A limit's own bucket and counters; *found is false where what is there isn't this limit's. */
int rl_sources_own(const struct rl_sources *sources, const struct rl_limit *limit, struct rl_source *out,
		   bool *found, struct rl_error *err);

/* All places of the store, in no order. Buckets are of no meaning: they are rl_sources_find's. */
int rl_sources_read(struct rl_sources *sources, rl_source_use use, void *context, struct rl_error *err);

/*
 * The place that an address has under the limit: in the store, or the limit's own. *found is false where it has
 * none, or none yet: its buckets are full then, and *out is zero but for the name.
 */
int rl_sources_find(struct rl_sources *sources, const struct rl_limit *limit, const struct rl_prefix *source,
		    struct rl_source_place *out, bool *found, struct rl_error *err);

/* A copy of row `index` of ROWS4, ROWS6 or GROUPS (enum rl_where); *address is set for ROWS6 alone. For the store `table`. */
int rl_sources_row(struct rl_sources *sources, __u32 where, __u32 index, struct rl_row *row,
		   struct rl_row_address *address, struct rl_error *err);

/* Bits of an address that are one source under the limit. */
unsigned int rl_source_bits(const struct rl_limit *limit, __u8 family);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "trial.h"

#include <errno.h>
#include <string.h>

#include "prefix.h"

/* What rl_bucket.h asks of who includes it. */
static inline __u64 rl_now(void)
{
	return 0; /* nothing is refunded here */
}

#include "../bpf/rl_job.h"
#include "../bpf/rl_table.h"

#define COPIES 4	    /* two rows that the source may be in, and two of its neighbourhood */
#define YEARS  (1ULL << 58) /* ns; nine: a debt of a bucket is paid by then, and stamps haven't come round */

struct copy {
	__u32 where;
	__u32 index;
	struct rl_row row;
	struct rl_row_address address;
};

struct copies {
	size_t count;
	struct copy copy[COPIES];
};

/* What stands in the place of the maps. One at a time, since the packet path's functions are given no context. */
static struct {
	const struct rl_snapshot *snapshot;
	const struct rl_limit *limit; /* that is tried: mostly the one that is asked for */
	const struct rl_trial_rows *rows;
	struct rl_settings settings;
	struct rl_table table;
	struct copies copies;
	__u32 lock;
	int rc; /* of reading */
	struct rl_error *err;
} world;

/* ---- what the packet path asks its includer for ---- */

/* A slot's number is its cell's. */
static inline const struct rl_limit *rl_limit_at(__u32 cell)
{
	const struct rl_limit_stats *other;

	if (cell == world.limit->slot)
		return world.limit;
	other = rl_snapshot_slot(world.snapshot, cell);
	return other ? &other->limit : NULL;
}

static inline __u32 rl_cell_of(__u32 epoch, __u32 slot)
{
	(void)epoch;
	return slot;
}

static inline const struct rl_settings *rl_settings_at(void)
{
	return &world.settings;
}

static inline const struct rl_table *rl_table_at(void)
{
	return &world.table;
}

static struct copy *copy_of(__u32 where, __u32 index)
{
	struct copies *copies = &world.copies;
	struct copy *copy;

	for (size_t i = 0; i < copies->count; i++)
		if (copies->copy[i].where == where && copies->copy[i].index == index)
			return &copies->copy[i];
	if (world.rc || copies->count == COPIES)
		return NULL;
	copy = &copies->copy[copies->count];
	*copy = (struct copy){.where = where, .index = index};
	world.rc = world.rows->read(world.rows->context, where, index, &copy->row, &copy->address, world.err);
	if (world.rc)
		return NULL;
	copies->count++;
	return copy;
}

static inline struct rl_row *rl_row_at(__u32 where, __u32 index)
{
	struct copy *copy = copy_of(where, index);

	return copy ? &copy->row : NULL;
}

static inline struct rl_row_address *rl_row_address_at(__u32 index)
{
	struct copy *copy = copy_of(RL_AT_ROWS6, index);

	return copy ? &copy->address : NULL;
}

/* Free: nobody else is here. */
static inline __u32 *rl_lock_at(__u32 index)
{
	(void)index;
	return &world.lock;
}

/* Nothing is counted, no limit has a bucket of its own, and the store isn't `lru`. */
static inline struct rl_limit_count *rl_limit_count_at(__u32 slot)
{
	(void)slot;
	return NULL;
}

static inline struct rl_source *rl_own_at(__u32 slot)
{
	(void)slot;
	return NULL;
}

static inline int rl_lru_used(void)
{
	return 0;
}

static inline struct rl_source *rl_lru_find(const struct rl_source_key *key)
{
	(void)key;
	return NULL;
}

static inline int rl_lru_make(const struct rl_source_key *key, const struct rl_source *fresh)
{
	(void)key;
	(void)fresh;
	return 0;
}

#include "../bpf/rl_sources.h"

/* ---- the trial ---- */

/* Find the packet's bucket, or give it one, at this time. */
static enum rl_reason run(struct rl_job *job, const struct rl_limit *limit, __u64 now)
{
	job->now = now;
	job->count = 0;
	return (enum rl_reason)rl_source_hold(job, limit->slot, limit->level == RL_LEVEL_CLASS);
}

/* Would the packet fare better so many ns later? Leaves the copies as they are. */
static bool is_better(struct rl_job *job, const struct rl_limit *limit, __u64 now, __u64 wait,
		      enum rl_reason reason)
{
	const struct copies kept = world.copies;
	bool better = run(job, limit, now + wait) != reason;

	world.copies = kept;
	return better;
}

/* Time alone makes room, and doesn't take it away. */
static __u64 find_room(struct rl_job *job, const struct rl_limit *limit, __u64 now, enum rl_reason reason)
{
	__u64 less = 0, enough = 1;

	while (enough < YEARS && !is_better(job, limit, now, enough, reason)) {
		less = enough;
		enough *= 2;
	}
	if (enough >= YEARS)
		return RL_TRIAL_NEVER;
	while (enough - less > 1) {
		__u64 middle = less + (enough - less) / 2;

		if (is_better(job, limit, now, middle, reason))
			enough = middle;
		else
			less = middle;
	}
	return enough;
}

static void world_open(const struct rl_snapshot *snapshot, const struct rl_limit *limit,
		       const struct rl_trial_rows *rows, struct rl_error *err)
{
	memset(&world, 0, sizeof(world));
	world.snapshot = snapshot;
	world.limit = limit;
	world.rows = rows;
	world.err = err;
	world.settings = snapshot->settings;
	world.settings.fresh = 0;
	world.table = (struct rl_table){
	    .seed = {snapshot->meta.seed[0], snapshot->meta.seed[1]},
	    .regions = snapshot->meta.regions,
	};
}

int rl_trial_source(const struct rl_snapshot *snapshot, const struct rl_limit *limit,
		    const struct rl_prefix *source, const struct rl_trial_rows *rows, __u64 now,
		    struct rl_trial *out, struct rl_error *err)
{
	struct rl_job job = {.packet.family = source->family};
	struct rl_trial trial = {};
	const struct rl_hold *hold = &job.hold[0];

	memcpy(job.packet.src, source->addr, sizeof(job.packet.src));
	world_open(snapshot, limit, rows, err);
	trial.reason = run(&job, limit, now);
	if (!world.rc && trial.reason != RL_PASS_LIMIT) {
		trial.group =
		    rl_prefix_cut(source->family, source->addr, rl_table_group_bits(limit, source->family));
		if (trial.reason == RL_PASS_AGGREGATE)
			trial.buckets =
			    rl_row_at(hold->where, hold->index)->at[hold->place & (RL_ROW - 1)].buckets;
		trial.room = find_room(&job, limit, now, trial.reason);
	}
	if (!world.rc)
		*out = trial;
	return world.rc;
}

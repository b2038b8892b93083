// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the packet path would make of a source without a bucket, over tables made by hand. That it is what then happens is
 * for tests/e2e/explain.sh.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "limits.h"
#include "snapshots.h"
#include "../../user/trial.h"

static inline __u64 rl_now(void)
{
	return 0; /* read for refunds alone */
}

#include "../../bpf/rl_job.h"
#include "../../bpf/rl_table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND	     1000000000ULL
#define STAMP	     (1ULL << RL_GCRA_STAMP)
#define NOW	     (5000 * STAMP + 12345) /* within a stamp */
#define NOW_STAMP    5000U

/* A table of one region, all rows of one kind of place, and the limit that they are of. */
static struct {
	struct rl_row rows[RL_REGION_ROWS], groups[RL_GROUP_REGIONS * RL_REGION_ROWS];
	struct rl_row_address address[RL_REGION_ROWS];
	struct rl_limit_stats limits[2];
	struct rl_snapshot snapshot;
	int reads, fail;
} world;

static const struct rl_table shape = {.seed = {1, 2}, .regions = 1};

static int read_row(void *context, __u32 where, __u32 index, struct rl_row *row,
		    struct rl_row_address *address, struct rl_error *err)
{
	cr_assert_eq(context, &world);
	world.reads++;
	if (world.fail)
		return rl_error_set(err, RL_ERROR_KERNEL, world.fail, "can't read it");
	if (where == RL_AT_GROUPS) {
		cr_assert_lt(index, COUNT(world.groups));
		*row = world.groups[index];
		return 0;
	}
	cr_assert(where == RL_AT_ROWS4 || where == RL_AT_ROWS6);
	cr_assert_lt(index, RL_REGION_ROWS);
	*row = world.rows[index];
	if (where == RL_AT_ROWS6)
		*address = world.address[index];
	return 0;
}

static struct rl_limit *limit_at(int i)
{
	return &world.limits[i].limit;
}

/* A limit of id and slot 1 for all sources, and one of `new` that has no say here. */
static void begin(const char *rate, const char *burst, enum rl_when_full when_full)
{
	static const char *const targets[] = {"any", "new"};
	struct rl_error err = {};

	memset(&world, 0, sizeof(world));
	for (__u32 i = 0; i < 2; i++) {
		struct rl_target target = target_of(targets[i]);
		struct rl_terms terms = terms_completed(targets[i], terms_said(rate, burst));

		cr_assert_eq(rl_limit_compute(&target, &terms, NULL, i + 1, i + 1, 0, limit_at((int)i), &err),
			     0);
	}
	world.snapshot = (struct rl_snapshot){
	    .meta = {.seed = {shape.seed[0], shape.seed[1]}, .regions = shape.regions},
	    .settings = {.when_full = when_full, .fresh = 2},
	    .limits = world.limits,
	    .limit_count = 2,
	};
}

/* Buckets that were touched last at `stamp`, and are full from `full` on. */
static struct rl_buckets buckets_of(const struct rl_limit *limit, __u32 stamp, __u32 full)
{
	return (struct rl_buckets){
	    .word = {((__u64)full << RL_GCRA_STAMP << limit->rate[0].shift) | rl_gcra_tag(limit->gen)},
	    .version = rl_bucket_version(limit),
	    .stamp = stamp,
	};
}

static void fill(struct rl_row *rows, size_t count, struct rl_buckets buckets)
{
	for (size_t i = 0; i < count * RL_ROW; i++) {
		rows[i / RL_ROW].key[i % RL_ROW] = 0xffff000000000000 + i;
		rows[i / RL_ROW].at[i % RL_ROW].buckets = buckets;
	}
}

static void fill_all(__u32 stamp, __u32 full)
{
	fill(world.rows, RL_REGION_ROWS, buckets_of(limit_at(0), stamp, full));
}

/* The rows that the source may be in, under the limit of all. */
static struct rl_rows rows_of(const struct rl_prefix *source)
{
	struct rl_prefix cut = rl_prefix_cut(source->family, source->addr, source->family == 4 ? 32 : 64);

	return rl_table_rows(&shape, 1, rl_table_number(&shape, source->family, cut.addr));
}

static const char *const sources[] = {"198.51.100.7", "2001:db8:7:1::7"};
static const char *const groups[] = {"198.51.100.0/24", "2001:db8:7::/48"};

static struct rl_trial try_at(int family, __u64 now)
{
	const struct rl_trial_rows rows = {.read = read_row, .context = &world};
	struct rl_prefix source = test_prefix(sources[family]);
	struct rl_trial trial = {.reason = RL_REASONS};
	struct rl_error err = {};

	cr_assert_eq(rl_trial_source(&world.snapshot, limit_at(0), &source, &rows, now, &trial, &err), 0,
		     "%s", err.text);
	return trial;
}

#define expect(family, now, reason) expect_at(__LINE__, family, now, reason)
static struct rl_trial expect_at(int line, int family, __u64 now, enum rl_reason reason)
{
	struct rl_trial trial = try_at(family, now);

	cr_assert_eq(trial.reason, reason, "line %d, %s: %d", line, sources[family], trial.reason);
	return trial;
}

/* What is said of the time until there is room is exact. */
static void expect_room(int family, const struct rl_trial *trial, __u64 room)
{
	cr_assert_eq(trial->room, room, "%s: %llu, not %llu", sources[family], trial->room, room);
	expect(family, NOW + room - 1, trial->reason);
	expect(family, NOW + room, RL_PASS_LIMIT);
}

static const struct {
	enum rl_when_full when_full;
	enum rl_reason reason;
} fulls[] = {
    {RL_FULL_AGGREGATE, RL_PASS_AGGREGATE},
    {RL_FULL_OPEN, RL_PASS_OPEN},
    {RL_FULL_CLOSED, RL_DROP_FULL},
};

Test(trial, an_empty_table_has_room)
{
	begin("1/h", "20", RL_FULL_CLOSED);
	for (int family = 0; family < 2; family++)
		expect(family, NOW, RL_PASS_LIMIT);
}

/* It is the source's own two rows that count, however much room there is in the others. */
Test(trial, one_free_place_in_either_of_its_rows_is_room)
{
	for (int family = 0; family < 2; family++) {
		struct rl_prefix source = test_prefix(sources[family]);
		struct rl_rows rows = rows_of(&source);

		begin("1/h", "20", RL_FULL_CLOSED);
		fill_all(NOW_STAMP, NOW_STAMP + 100);
		expect(family, NOW, RL_DROP_FULL);
		for (int i = 0; i < 2; i++)
			for (int at = 0; at < RL_ROW; at += RL_ROW - 1) {
				__u64 *key = &world.rows[rows.row[i]].key[at], was = *key;

				*key = 0;
				expect(family, NOW, RL_PASS_LIMIT);
				*key = was;
			}
		memset(world.rows, 0, sizeof(world.rows));
		for (int i = 0; i < 2; i++)
			fill(&world.rows[rows.row[i]], 1,
			     buckets_of(limit_at(0), NOW_STAMP, NOW_STAMP + 100));
		expect(family, NOW, RL_DROP_FULL);
	}
}

/* A victim is full, and was idle for the grace time; both to the stamp. */
Test(trial, room_comes_when_a_bucket_is_full_and_idle_for_the_grace_time)
{
	static const struct {
		__u32 stamp, full, stamps; /* last touched, full, and so many from now on given away */
	} cases[] = {
	    {NOW_STAMP, NOW_STAMP, RL_TABLE_GRACE}, {NOW_STAMP - 9, NOW_STAMP - 9, 1},
	    {NOW_STAMP - 5, NOW_STAMP + 3, 5},	    {NOW_STAMP - 5, NOW_STAMP + 100, 100},
	    {NOW_STAMP - 50, NOW_STAMP + 1, 1},	    {NOW_STAMP - 50, NOW_STAMP + 60000, 60000},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		for (int family = 0; family < 2; family++)
			for (size_t full = 0; full < COUNT(fulls); full++) {
				struct rl_trial trial;

				begin("1/h", "20", fulls[full].when_full);
				fill_all(cases[i].stamp, cases[i].full);
				trial = expect(family, NOW, fulls[full].reason);
				expect_room(family, &trial,
					    ((__u64)(NOW_STAMP + cases[i].stamps) << RL_GCRA_STAMP) - NOW);
			}
	begin("1/h", "20", RL_FULL_CLOSED);
	fill_all(NOW_STAMP - RL_TABLE_GRACE, NOW_STAMP - 1);
	expect(0, NOW, RL_PASS_LIMIT);
	expect(1, NOW, RL_PASS_LIMIT);
}

/* Buckets of a version of the limit that is newer than what was read of the policy: what they owe isn't known. */
Test(trial, what_is_newer_than_the_policy_is_no_room_ever)
{
	struct rl_limit newer;

	begin("1/h", "20", RL_FULL_CLOSED);
	newer = *limit_at(0);
	newer.gen++;
	fill(world.rows, RL_REGION_ROWS, buckets_of(&newer, NOW_STAMP, NOW_STAMP));
	cr_assert_eq(expect(0, NOW, RL_DROP_FULL).room, RL_TRIAL_NEVER);
}

/* The neighbourhood's bucket as it is, a new one, or none where those have no room either. */
Test(trial, the_bucket_of_its_neighbourhood)
{
	for (int family = 0; family < 2; family++) {
		struct rl_prefix source = test_prefix(sources[family]), group = test_prefix(groups[family]);
		struct rl_buckets owed;
		struct rl_trial trial;
		struct rl_rows rows;
		__u64 key;

		begin("1/h", "20", RL_FULL_AGGREGATE);
		owed = buckets_of(limit_at(0), NOW_STAMP, NOW_STAMP + 7200);
		key = rl_table_group(&shape, limit_at(0), source.family, source.addr);
		rows = rl_table_rows(&shape, RL_GROUP_REGIONS, key);
		fill_all(NOW_STAMP, NOW_STAMP + 100000);
		trial = expect(family, NOW, RL_PASS_AGGREGATE);
		cr_assert_eq(rl_prefix_compare(&trial.group, &group), 0);
		cr_assert_eq(trial.buckets.stamp, NOW_STAMP, "given a full one");

		world.groups[rows.row[1]].key[5] = key;
		world.groups[rows.row[1]].at[5].buckets = owed;
		trial = expect(family, NOW, RL_PASS_AGGREGATE);
		cr_assert_eq(memcmp(&trial.buckets, &owed, sizeof(owed)), 0);

		/* Stand-ins make room without grace. */
		fill(world.groups, COUNT(world.groups), buckets_of(limit_at(0), NOW_STAMP, NOW_STAMP + 7200));
		trial = expect(family, NOW, RL_DROP_FULL);
		cr_assert_eq(rl_prefix_compare(&trial.group, &group), 0);
		cr_assert_eq(trial.room, ((__u64)(NOW_STAMP + 7200) << RL_GCRA_STAMP) - NOW);
		expect(family, NOW + trial.room - 1, RL_DROP_FULL);
		expect(family, NOW + trial.room, RL_PASS_AGGREGATE);
	}
}

/* What a bucket of before a change owed then is paid at the new rate: at half of it in twice the time. */
Test(trial, a_bucket_of_an_earlier_rate_is_judged_by_the_rate_in_force)
{
	static const struct {
		__u32 full, change; /* stamps: full by the rate before, changed then */
		enum rl_reason reason;
		__u32 room; /* stamps from now */
	} cases[] = {
	    {NOW_STAMP - 50, NOW_STAMP - 40, RL_PASS_LIMIT, 0},
	    {NOW_STAMP - 50, NOW_STAMP - 60, RL_PASS_LIMIT, 0},
	    {NOW_STAMP - 2, NOW_STAMP - 60, RL_DROP_FULL, 56},
	};
	struct rl_terms terms = terms_completed("any", terms_said("1/h", "20"));
	struct rl_error err = {};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rl_limit old;

		begin("2/h", "20", RL_FULL_CLOSED);
		fill_all(NOW_STAMP - 100, cases[i].full);
		old = *limit_at(0);
		cr_assert_eq(rl_limit_compute(&old.target, &terms, &old, old.id, old.slot,
					      cases[i].change * STAMP, limit_at(0), &err),
			     0);
		for (int family = 0; family < 2; family++) {
			struct rl_trial trial = expect(family, NOW, cases[i].reason);
			__u64 room = ((__u64)(NOW_STAMP + cases[i].room) << RL_GCRA_STAMP) - NOW;

			/* Converting a debt rounds it up. */
			if (cases[i].room)
				cr_assert(trial.room >= room && trial.room < room + 1000000, "%llu, not %llu",
					  trial.room, room);
		}
	}
}

/* Asking changes nothing, whatever the answer; and `new` isn't asked. */
Test(trial, nothing_is_changed)
{
	static struct rl_row rows[2][RL_REGION_ROWS], others[COUNT(world.groups)];
	static struct rl_snapshot snapshot;

	for (int idle = 0; idle < 2; idle++) {
		begin("1/h", "20", RL_FULL_AGGREGATE);
		fill_all(NOW_STAMP - 100, idle ? NOW_STAMP - 100 : NOW_STAMP + 100);
		memcpy(rows, world.rows, sizeof(rows));
		memcpy(others, world.groups, sizeof(others));
		snapshot = world.snapshot;
		for (int family = 0; family < 2; family++)
			expect(family, NOW, idle ? RL_PASS_LIMIT : RL_PASS_AGGREGATE);
		cr_assert_eq(memcmp(rows, world.rows, sizeof(rows)), 0);
		cr_assert_eq(memcmp(others, world.groups, sizeof(others)), 0);
		cr_assert_eq(memcmp(&snapshot, &world.snapshot, sizeof(snapshot)), 0);
		cr_assert_leq(world.reads, 8, "%d reads for two sources", world.reads);
	}
}

Test(trial, what_cannot_be_read_is_an_error)
{
	const struct rl_trial_rows rows = {.read = read_row, .context = &world};
	struct rl_prefix source = test_prefix(sources[0]);
	struct rl_trial trial = {.room = 77};
	struct rl_error err = {};

	begin("1/h", "20", RL_FULL_AGGREGATE);
	world.fail = ENOENT;
	cr_assert_eq(rl_trial_source(&world.snapshot, limit_at(0), &source, &rows, NOW, &trial, &err),
		     -ENOENT);
	cr_assert_eq(err.kind, RL_ERROR_KERNEL);
	cr_assert_eq(trial.room, 77);
	cr_assert_eq(world.reads, 1);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Rejecting by the clock of a tick ago (rl_fast_late): on several CPUs that read it at different times, an ideal bucket that is
 * charged what passed would have let it pass too; who is over the limit all the time is granted its rate; and small bursts are
 * judged by the clock itself.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../bpf/rl_job.h"
#include "ideal.h"
#include "limits.h"
#include "random.h"

#define SEED   20261201ULL
#define CPUS   3
#define SLOT   LIMITS_SLOT
#define EPOCH  5
#define SOURCE 0xcb007107U /* 203.0.113.7 */
#define MS     1000000ULL
#define SECOND (1000 * MS)

static struct {
	__u64 now;  /* ns */
	__u64 tick; /* likewise: how long one is */
	__u64 read; /* how often the clock was */
	__u32 cpu;
	struct rl_limit limit;
	struct rl_table table;
	struct rl_settings settings;
	struct rl_source own;
	struct rl_slice slice;
	struct rl_pending pending[CPUS];
	struct rl_limit_count count[CPUS];
	struct rl_row row[RL_REGION_ROWS];
	struct rl_row_address address;
	__u32 lock;
	struct rl_job job[CPUS];
} world;

/* --- what the packet path asks its includer for; a limit on sources in one slot, whose cell has its number --- */

static inline __u64 rl_now(void)
{
	world.read++;
	return world.now;
}

static inline __u64 rl_tick(void)
{
	return world.now / world.tick;
}

static inline __u32 rl_slice_shift(void)
{
	return 0;
}

static inline struct rl_slice *rl_slice_at(__u32 slot)
{
	(void)slot;
	return &world.slice;
}

static inline __u32 rl_cell_of(__u32 epoch, __u32 slot)
{
	(void)epoch;
	return slot;
}

static inline const struct rl_limit *rl_limit_at(__u32 cell)
{
	return cell == SLOT ? &world.limit : NULL;
}

static inline const struct rl_settings *rl_settings_at(void)
{
	return &world.settings;
}

static inline const struct rl_table *rl_table_at(void)
{
	return &world.table;
}

static inline struct rl_source *rl_own_at(__u32 slot)
{
	(void)slot;
	return &world.own;
}

static inline struct rl_pending *rl_pending_at(__u32 index)
{
	(void)index;
	return &world.pending[world.cpu];
}

static inline struct rl_row *rl_row_at(__u32 where, __u32 index)
{
	(void)where;
	return &world.row[index];
}

static inline struct rl_row_address *rl_row_address_at(__u32 index)
{
	(void)index;
	return &world.address;
}

static inline __u32 *rl_lock_at(__u32 index)
{
	(void)index;
	return &world.lock;
}

static inline struct rl_limit_count *rl_limit_count_at(__u32 slot)
{
	(void)slot;
	return &world.count[world.cpu];
}

#include "../lib/no_lru.h"
#include "../../bpf/rl_fast.h"

/* --- offering packets --- */

/* The source has a place, and is known. */
static void place_source(void)
{
	__u64 key = rl_table_key(world.limit.id, 4, SOURCE);
	struct rl_rows rows = rl_table_rows(&world.table, 1, rl_table_spot(RL_LEVEL_SOURCE, 0, SOURCE));
	struct rl_row *row = &world.row[rows.row[0]];

	rl_place_fill(&row->at[rows.home].buckets, &world.limit, world.now);
	row->at[rows.home].buckets.known = rl_known(EPOCH, key);
	rl_place_publish(row, rows.home, key);
}

/* A limit of these terms, and ticks of so many ms. */
static void begin(const char *rates, const char *bursts, __u64 tick)
{
	memset(&world, 0, sizeof(world));
	world.now = LIMITS_START;
	world.tick = tick * MS;
	world.table = (struct rl_table){.seed = {1, 2}, .regions = 1};
	world.limit = limit_of(rates, bursts);
	world.limit.level = RL_LEVEL_SOURCE;
	world.limit.flags = 0;
	world.limit.bits[0] = 32;
	place_source();
}

/* A packet on this CPU. */
static bool offer(__u32 cpu, __u32 len)
{
	struct rl_job *job = &world.job[cpu];
	__u32 source = __builtin_bswap32(SOURCE);
	int reason;

	world.cpu = cpu;
	job->packet.family = 4;
	memcpy(job->packet.src, &source, sizeof(source));
	job->epoch = EPOCH;
	job->len = len;
	reason = rl_fast(job, 0);
	if (reason == RL_NOT_FAST) {
		/* As rl_admit.h does, which leaves them so that they are for here again. */
		struct rl_rows rows =
		    rl_table_rows(&world.table, 1, rl_table_spot(RL_LEVEL_SOURCE, 0, SOURCE));
		struct rl_row *row = &world.row[rows.row[0]];

		cr_assert_eq(rl_buckets_renew(&row->at[rows.home].buckets, &row->key[rows.home],
					      row->key[rows.home], &world.limit, world.now),
			     0);
		reason = rl_fast(job, 0);
	}
	cr_assert(reason == RL_PASS_LIMIT || reason == RL_DROP_SOURCE, "reason %d", reason);
	return reason == RL_PASS_LIMIT;
}

/*
 * For 20 s packets of the source, each checked against an ideal bucket: it is admitted once there was room for `lag` ns, at the
 * latest. Returns how many pass.
 */
static __u64 overload(__u64 *random, __u64 gap, __u64 lag)
{
	struct ideal ideal = {.full = {0}};
	__u64 passed = 0, end = world.now + 20 * SECOND;

	while (world.now < end) {
		__u32 len = (__u32)random_between(random, 60, 1514);
		bool admitted = offer((__u32)random_between(random, 0, CPUS - 1), len);

		if (admitted)
			cr_assert(ideal_admits(&ideal, &world.limit, len, world.now),
				  "admitted, beyond the burst");
		else
			cr_assert(!ideal_admits(&ideal, &world.limit, len, world.now - lag),
				  "refused, and there was room");
		if (admitted)
			ideal_charge(&ideal, &world.limit, len, world.now);
		passed += admitted;
		world.now += random_between(random, 0, 2 * gap);
		/* Now and then nothing comes for a while: a tick, or many. */
		if (!random_between(random, 0, 20000))
			world.now += random_between(random, 0, 500 * MS);
	}
	return passed;
}

/* The bucket has room for what 40 ms bring, beside a packet, or a packet takes 10 s: a flood is mostly rejected without reading the
 * clock. */
Test(late, what_passes_is_what_an_ideal_bucket_lets_pass)
{
	static const struct {
		const char *rates, *bursts;
		__u64 gap; /* ns between packets, on the average */
	} cases[] = {
	    {"1000pps", "41p", 50000},
	    {"1000pps", "5000p", 50000},
	    {"20pps", "2p", 20000},
	    {"100000pps", "5000p", 2000},
	    {"10mbit", "60kb", 20000},
	    {"1mbit", "10kb", 50000},
	    {"1000pps 4mbit", "41p 25kb", 50000},
	    {"7pps 1gbit", "2p 10mb", 20000},
	    {"6/m", "1p", 50000},
	    {"1/h", "1p", 50000},
	};
	__u64 random = SEED;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (__u64 tick = 1; tick <= 10; tick += 3) {
			__u64 passed, offered, dropped = 0;

			begin(cases[i].rates, cases[i].bursts, tick);
			passed = overload(&random, cases[i].gap, world.tick);
			for (int cpu = 0; cpu < CPUS; cpu++)
				dropped += world.count[cpu].dropped.packets;
			offered = passed + dropped;
			cr_expect_lt(world.read, passed + offered / 4,
				     "%s: the clock was read %llu times for %llu packets, %llu passed",
				     cases[i].rates, world.read, offered, passed);
		}
	}
}

/* Nothing of its rate is lost to who is over the limit all the time. */
Test(late, who_is_over_the_limit_is_granted_its_rate)
{
	static const struct {
		const char *rate, *burst;
		__u64 granted; /* in 100 s */
	} cases[] = {{"1000pps", "41p", 100041},
		     {"1000pps", "5000p", 105000},
		     {"20pps", "2p", 2002},
		     {"24pps", "2p", 2402},
		     {"5pps", "2p", 502}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (__u64 tick = 1; tick <= 10; tick += 3) {
			__u64 passed = 0;

			begin(cases[i].rate, cases[i].burst, tick);
			for (; world.now < LIMITS_START + 100 * SECOND; world.now += 20000)
				passed += offer((__u32)(world.now / 20000 % CPUS), 60);
			cr_expect_leq(passed, cases[i].granted);
			cr_expect_geq(passed, cases[i].granted - 1, "%s: ticks of %llu ms: %llu passed",
				      cases[i].rate, tick, passed);
		}
	}
}

/* Where it doesn't, each packet is judged by the clock itself. */
Test(late, small_bursts_are_judged_by_the_clock)
{
	static const char *const cases[][2] = {
	    {"1000pps", "40p"}, {"1000pps", "1p"},	     {"20pps", "1p"}, {"24pps", "1p"}, {"1pps", "1p"},
	    {"10mbit", "49kb"}, {"1000pps 4mbit", "40p 5kb"}};
	__u64 random = SEED;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i][0], cases[i][1], 10);
		overload(&random, 100000, 0);
	}
}

/* A bucket that was charged at another rate is brought up to date before it is judged. */
Test(late, a_change_is_in_force_at_once)
{
	static const char *const rates[][2] = {{"1pps", "1000000pps"}, {"1000000pps", "1pps"}};

	for (int i = 0; i < 2; i++) {
		begin(rates[i][0], "100000p", 10);
		while (offer(0, 60))
			continue;
		world.limit = limit_change_at(&world.limit, rates[i][1], "200000p", world.now);
		cr_expect(offer(0, 60), "%s to %s", rates[i][0], rates[i][1]);
	}
}

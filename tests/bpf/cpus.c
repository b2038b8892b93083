// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cpus.c - one source on several CPUs: one bucket, exact, in turn and at the same time; and its counters likewise.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "../../user/prefix.h"
#include "../../user/reset.h"
#include "../../user/sources.h"
#include "fixture.h"
#include "native.h"

#define CPUS 2

static void move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		cr_skip_test("needs two CPUs");
}

static const char *const targets[] = {"203.0.113.0/24", "203.0.113.7", "2001:db8::/32", "2001:db8::7"};
static const char *const sources[] = {"203.0.113.7", "203.0.113.7", "2001:db8::7", "2001:db8::7"};

Test(cpus, in_turn)
{
	struct fixture fx = fixture_open();

	for (int i = 0; i < 4; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "10pps", "20", NULL);
		struct rl_frame_spec spec = {.src = sources[i]};

		fx.what = targets[i];
		for (int n = 0; n < 30; n++) {
			move_to(n % CPUS);
			fixture_expect(&fx, &spec, n < 20 ? RL_PASS_LIMIT : RL_DROP_SOURCE, &limit);
		}
		fixture_advance(&fx, 100 * MS);
		move_to(1);
		fixture_expect(&fx, &spec, RL_PASS_LIMIT, &limit);
		move_to(0);
		fixture_expect(&fx, &spec, RL_DROP_SOURCE, &limit);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* One CPU's part. Threads assert nothing: a failed assertion must be raised by the test's own thread. */
struct sender {
	const struct fixture *fx;
	pthread_barrier_t *barrier;
	uint8_t (*frames)[RL_FRAME_MAX];
	size_t len;
	int cpu;
	int runs;
	__u32 each;
	bool one_by_one; /* a frame of its own for each run, both CPUs' at the same time */
	bool failed;
};

static void *send_all(void *argument)
{
	struct sender *sender = argument;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sender->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		sender->failed = true;
	for (int run = 0; run < sender->runs; run++) {
		if (sender->one_by_one || !run)
			pthread_barrier_wait(sender->barrier);
		if (fixture_run(sender->fx, sender->frames[sender->one_by_one ? run : 0], sender->len,
				sender->each) < 0)
			sender->failed = true;
	}
	return NULL;
}

/*
 * Run a sender on each CPU; `clock` moves the clock on meanwhile, by that many ns at a time, and something is `watched` (or
 * NULL) each time. Returns the ns it moved.
 */
static __u64 send_and_watch(struct fixture *fx, const struct sender *pattern, __u64 clock,
			    void (*watch)(void *watched), void *watched)
{
	struct sender senders[CPUS];
	pthread_t threads[CPUS];
	pthread_barrier_t barrier;
	__u64 start = fx->now;

	move_to(1); /* skips the test where there is no second CPU */
	pthread_barrier_init(&barrier, NULL, CPUS);
	for (int cpu = 0; cpu < CPUS; cpu++) {
		senders[cpu] = *pattern;
		senders[cpu].fx = fx;
		senders[cpu].barrier = &barrier;
		senders[cpu].cpu = cpu;
		cr_assert_eq(pthread_create(&threads[cpu], NULL, send_all, &senders[cpu]), 0);
	}
	while (clock && pthread_tryjoin_np(threads[0], NULL)) {
		fixture_advance(fx, clock);
		if (watch)
			watch(watched);
	}
	for (int cpu = clock ? 1 : 0; cpu < CPUS; cpu++)
		pthread_join(threads[cpu], NULL);
	for (int cpu = 0; cpu < CPUS; cpu++)
		cr_assert_not(senders[cpu].failed);
	pthread_barrier_destroy(&barrier);
	fixture_account(fx, CPUS * (__u64)pattern->runs * pattern->each,
			CPUS * (__u64)pattern->runs * pattern->each * pattern->len);
	return fx->now - start;
}

static __u64 send_together(struct fixture *fx, const struct sender *pattern, __u64 clock)
{
	return send_and_watch(fx, pattern, clock, NULL, NULL);
}

/* With the clock standing still, exactly the burst passes. */
Test(cpus, together_exactly_the_burst)
{
	static uint8_t frame[1][RL_FRAME_MAX];
	struct fixture fx = fixture_open();
	__u64 contended = 0;

	for (int i = 0; i < 4; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "10pps", "100k", NULL);
		struct rl_frame_spec spec = {.src = sources[i]};
		size_t len = rl_frame_build(&spec, frame[0], RL_FRAME_MAX);
		struct rl_device_count device;
		struct rl_limit_count count;
		struct rl_source source;
		__u64 unplaced;

		send_together(&fx, &(struct sender){.frames = frame, .len = len, .runs = 1, .each = 1000000},
			      0);
		count = fixture_limit_count(&fx, &limit);
		cr_assert_eq(count.passed.packets, 100000, "%s: %llu passed", targets[i],
			     count.passed.packets);
		cr_assert_eq(count.passed.packets + count.dropped.packets, CPUS * 1000000);
		cr_assert(fixture_source(&fx, &limit, sources[i], &source));
		cr_assert_eq(source.tally.passed.packets, count.passed.packets);
		/* A CPU that is held up while it gives the source its place makes the other drop, without a place to count
		 * that at. */
		unplaced = count.dropped.packets - source.tally.dropped.packets;
		device = fixture_device(&fx);
		cr_assert_leq(unplaced, device.by_reason[RL_DROP_CONTENDED].packets - contended);
		contended = device.by_reason[RL_DROP_CONTENDED].packets;
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* With two units and two CPUs, the one that runs out first decides, and the other keeps what the refused
 * didn't take. */
Test(cpus, together_in_two_units)
{
	static uint8_t frame[1][RL_FRAME_MAX];
	struct fixture fx = fixture_open();

	for (int i = 0; i < 4; i++) {
		/* 50,000 frames of 100 bytes use up the bytes; 50,000 packets are left. */
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1pps", "100k", "1kbit", "5mb", NULL);
		struct rl_frame_spec spec = {.src = sources[i], .len = 100};
		size_t len = rl_frame_build(&spec, frame[0], RL_FRAME_MAX);

		send_together(&fx, &(struct sender){.frames = frame, .len = len, .runs = 1, .each = 500000},
			      0);
		cr_assert_eq(fixture_limit_count(&fx, &limit).passed.packets, 50000);
		fixture_limit(&fx, targets[i], "1pps", "100k", NULL);
		cr_assert_leq(fixture_flood(&fx, &spec, 60000), 50000);
		cr_assert_geq(fixture_limit_count(&fx, &limit).passed.packets, 99990,
			      "refused packets were charged");
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* With the clock moving while both send, never more than burst + rate * t. */
Test(cpus, together_while_time_passes)
{
	static uint8_t frame[1][RL_FRAME_MAX];
	struct fixture fx = fixture_open();

	for (int i = 0; i < 4; i++) {
		struct rl_limit limit = fixture_limit(&fx, targets[i], "1mpps", "1000", NULL);
		struct rl_frame_spec spec = {.src = sources[i]};
		size_t len = rl_frame_build(&spec, frame[0], RL_FRAME_MAX);
		struct rl_limit_count count;
		__u64 moved;

		moved = send_together(
		    &fx, &(struct sender){.frames = frame, .len = len, .runs = 1, .each = 1000000}, 500);
		count = fixture_limit_count(&fx, &limit);
		cr_assert_leq(count.passed.packets, 1000 + moved / US, "%s: %llu passed in %llu ns",
			      targets[i], count.passed.packets, moved);
		cr_assert_geq(count.passed.packets, 1000);
		fixture_unlimit(&fx, targets[i]);
	}
	fixture_close(&fx);
}

/* A source that is new on both CPUs at the same time gets one bucket, not two. */
Test(cpus, new_sources_together)
{
	enum { SOURCES = 1500 };
	static uint8_t frames[SOURCES][RL_FRAME_MAX];
	struct fixture fx = fixture_open();
	static const char *const formats[] = {"10.0.%d.%d", "2001:db8:%x:%x::1"};
	static const char *const wide[] = {"10.0.0.0/8", "2001:db8::/32"};

	for (int i = 0; i < 2; i++) {
		struct rl_limit limit = fixture_limit(&fx, wide[i], "1/h", "1", NULL);
		size_t len = 0;

		for (int n = 0; n < SOURCES; n++) {
			char source[48];

			snprintf(source, sizeof(source), formats[i], n / 256, n % 256);
			len = rl_frame_build(&(struct rl_frame_spec){.src = source}, frames[n], RL_FRAME_MAX);
		}
		send_together(
		    &fx,
		    &(struct sender){
			.frames = frames, .len = len, .runs = SOURCES, .each = 1, .one_by_one = true},
		    0);
		cr_assert_eq(fixture_limit_count(&fx, &limit).passed.packets, SOURCES);
		cr_assert_eq(fixture_limit_count(&fx, &limit).dropped.packets, SOURCES);
	}
	fixture_close(&fx);
}

/* --- drops that CPUs count for themselves (rl_tally.h) --- */

/* What is read of two sources meanwhile. */
struct watched {
	struct rl_sources sources;
	struct rl_limit limit;
	struct rl_prefix prefix[2];
	struct rl_count found[2]; /* as dropped, last time */
	__u64 all;		  /* packets of both, when all places were read */
	__u64 times;
};

static int add_dropped(void *context, const struct rl_source_place *place)
{
	*(__u64 *)context += place->tally.dropped.packets;
	return 0;
}

static void read_both(void *context)
{
	struct watched *watched = context;
	struct rl_error err;
	__u64 all = 0;

	cr_assert_eq(rl_sources_read(&watched->sources, add_dropped, &all, &err), 0, "%s", err.text);
	cr_assert_geq(all, watched->all, "of %llu dropped packets %llu are left", watched->all, all);
	watched->all = all;
	for (int i = 0; i < 2; i++) {
		struct rl_source_place place;
		bool found;

		cr_assert_eq(rl_sources_find(&watched->sources, &watched->limit, &watched->prefix[i], &place,
					     &found, &err),
			     0, "%s", err.text);
		cr_assert_geq(place.tally.dropped.packets, watched->found[i].packets);
		cr_assert_geq(place.tally.dropped.bytes, watched->found[i].bytes);
		watched->found[i] = place.tally.dropped;
	}
	watched->times++;
}

static struct rl_prefix prefix_of(const char *text)
{
	struct rl_prefix prefix;
	struct rl_error err;

	cr_assert_eq(rl_prefix_parse(text, &prefix, &err), 0);
	return prefix;
}

/* The number of the place that a source has. */
static __u64 place_of(const struct fixture *fx, const struct rl_limit *limit, const char *source)
{
	struct rl_prefix prefix = prefix_of(source);
	struct rl_source ignored;
	__u64 place;

	cr_assert(
	    native_find_at(&fx->state, &fx->table, limit, prefix.family, prefix.addr, &ignored, &place));
	return place;
}

/* Do the two sources' places share an element of each CPU? */
static bool shares_element(const struct fixture *fx, const struct rl_limit *limit, const char *one,
			   const char *other)
{
	return !((place_of(fx, limit, one) ^ place_of(fx, limit, other)) & (RL_CPU_PENDINGS - 1));
}

/*
 * Two sources that share the elements are dropped on both CPUs, while ticks pass, so that elements go back and forth between them,
 * and somebody reads: no drop is lost or counted twice, nor is one seen that isn't any more.
 */
Test(cpus, drops_are_counted_once)
{
	enum { RUNS = 14 * 1400, EACH = 20 };
	static uint8_t frames[RUNS][RL_FRAME_MAX];
	struct fixture fx = fixture_open();
	struct watched watched = {.limit = fixture_limit(&fx, "203.0.0.0/16", "1/h", "1", NULL),
				  .prefix[0] = prefix_of("203.0.113.7")};
	struct rl_frame_spec spec = {.src = "203.0.113.7"};
	struct rl_error err;
	bool found = false;
	char other[32];
	size_t len = 0;
	__u64 place;

	fixture_flood(&fx, &spec, 1);
	for (int i = 0; i < 65536 && !found; i++) {
		snprintf(other, sizeof(other), "203.0.%d.%d", i / 256, i % 256);
		fixture_flood(&fx, &(struct rl_frame_spec){.src = other}, 1);
		found = strcmp(other, spec.src) && shares_element(&fx, &watched.limit, spec.src, other);
	}
	cr_assert(found, "no source shares an element with %s", spec.src);
	watched.prefix[1] = prefix_of(other);
	for (int run = 0; run < RUNS; run++)
		len = rl_frame_build(&(struct rl_frame_spec){.src = run / 7 % 2 ? other : spec.src},
				     frames[run], RL_FRAME_MAX);
	cr_assert_eq(rl_sources_open(&fx.state, &watched.sources, &err), 0, "%s", err.text);
	read_both(&watched);
	send_and_watch(
	    &fx,
	    &(struct sender){.frames = frames, .len = len, .runs = RUNS, .each = EACH, .one_by_one = true},
	    US, read_both, &watched);
	read_both(&watched);
	cr_assert_gt(watched.times, 1000, "read %llu times", watched.times);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(watched.found[i].packets, CPUS * RUNS / 2 * EACH);
	cr_assert_eq(watched.found[0].bytes, watched.found[0].packets * len);
	/* Elements changed hands, and something is in one of them. */
	place = place_of(&fx, &watched.limit, other);
	cr_assert_gt(rl_pendings_begin(&watched.sources.pending, place).turns, 100);
	rl_pendings_look(&watched.sources.pending);
	cr_assert(rl_pendings_seen(&watched.sources.pending, place) ||
		  rl_pendings_seen(&watched.sources.pending, place_of(&fx, &watched.limit, spec.src)));
	cr_assert_eq(rl_reset_counters(&fx.state, NULL, &err), 0, "%s", err.text);
	watched.all = 0;
	memset(watched.found, 0, sizeof(watched.found));
	read_both(&watched);
	cr_assert_eq(watched.all, 0, "%llu after a reset", watched.all);
	rl_sources_close(&watched.sources);
	fixture_close(&fx);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * together.c - two CPUs at the same time, for seconds and by the real clock: the bound, and what is due, for every kind of
 * bucket; while limits change; and a million sources that arrive on both CPUs in the same instant.
 *
 * What is due is computed from the arrivals as they were, since a sender can be held up: an ideal token bucket is offered
 * the same packets at the same times.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../user/clock.h"
#include "fixture.h"
#include "native.h"

#define CPUS  2
#define PPS   10000ULL /* the limit; each CPU offers twice as much */
#define BURST 1000ULL
#define LEN   1000ULL /* bytes of a frame, of the limits in bytes */

static int seconds(void)
{
	return getenv("RL_LONG") ? 30 : 3;
}

static bool move_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

/* Leaves the test's own thread where the kernel likes. */
static void need_two_cpus(void)
{
	cpu_set_t all;

	sched_getaffinity(0, sizeof(all), &all);
	if (!move_to(1) || !move_to(0))
		cr_skip_test("needs two CPUs");
	sched_setaffinity(0, sizeof(all), &all);
}

/* Threads assert nothing: a failed assertion must be raised by the test's own thread. */
struct sender {
	const struct fixture *fx;
	const uint8_t *frame;
	size_t len;
	int cpu;
	__u64 start, end; /* ns */
	__u64 *arrivals;  /* ns, in order */
	size_t count, room;
	bool failed;
};

static void *send_paced(void *argument)
{
	struct sender *sender = argument;
	__u64 step = 1000000000ULL / (2 * PPS), next = sender->start, now;

	sender->failed = !move_to(sender->cpu);
	while ((now = rl_clock_ns()) < sender->end && sender->count < sender->room) {
		if (now < next)
			continue;
		sender->arrivals[sender->count++] = now;
		if (fixture_run(sender->fx, sender->frame, sender->len, 1) < 0)
			sender->failed = true;
		next += step; /* a sender that was held up makes up for it */
	}
	return NULL;
}

static int compare_times(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* All arrivals of both senders, in order. */
static __u64 *merge(const struct sender *senders, size_t *count)
{
	__u64 *all = malloc((senders[0].count + senders[1].count) * sizeof(*all));

	cr_assert_not_null(all);
	*count = 0;
	for (int cpu = 0; cpu < CPUS; cpu++) {
		memcpy(all + *count, senders[cpu].arrivals, senders[cpu].count * sizeof(*all));
		*count += senders[cpu].count;
	}
	qsort(all, *count, sizeof(*all), compare_times);
	return all;
}

/* The limit's rate from a time on. */
struct change {
	__u64 at; /* ns */
	__u64 pps;
};

/*
 * How many packets an ideal bucket of this burst admits whose rate changes at these times, the first of them before the first
 * arrival. A packet's time at 1 pps is 10^9, so in whole numbers; a change keeps the level.
 */
static __u64 ideal(const __u64 *arrivals, size_t count, __u64 burst, const struct change *changes,
		   size_t change_count)
{
	const __u64 cost = 1000000000ULL, most = burst * cost;
	__u64 level = most, last = changes[0].at, passed = 0;
	size_t c = 0;

	for (size_t i = 0; i < count; i++) {
		while (c + 1 < change_count && changes[c + 1].at <= arrivals[i]) {
			level += (changes[c + 1].at - last) * changes[c].pps;
			level = level > most ? most : level;
			last = changes[++c].at;
		}
		level += (arrivals[i] - last) * changes[c].pps;
		level = level > most ? most : level;
		last = arrivals[i];
		if (level >= cost) {
			level -= cost;
			passed++;
		}
	}
	return passed;
}

struct contest {
	const char *name;
	const char *limited; /* whose bucket is contended */
	bool bytes;
	enum rl_reason drop;
	bool sliced; /* the burst is so large that CPUs take ahead of it (rl_slice.h) */
};

static const struct contest contests[] = {
    {"source, packets", "203.0.113.0/24", false, RL_DROP_SOURCE, false},
    {"source, bytes", "2001:db8::/32", true, RL_DROP_SOURCE, false},
    {"tenant, packets", "tenant:acme", false, RL_DROP_TENANT, false},
    {"tenant, bytes", "tenant:acme", true, RL_DROP_TENANT, false},
    {"device, packets", "dev:fixture0", false, RL_DROP_DEVICE, false},
    {"device, bytes", "dev:fixture0", true, RL_DROP_DEVICE, false},
    {"tenant, packets, slices", "tenant:acme", false, RL_DROP_TENANT, true},
    {"device, bytes, slices", "dev:fixture0", true, RL_DROP_DEVICE, true},
};
#define CONTESTS ((int)(sizeof(contests) / sizeof(contests[0])))

/* 10 kpps of frames of 1000 bytes are 80 mbit. */
static struct rl_limit limit_contested(struct fixture *fx, const struct contest *contest, bool slower)
{
	const char *packets = slower ? "5kpps" : "10kpps", *bits = slower ? "40mbit" : "80mbit";

	if (contest->bytes)
		return fixture_limit(fx, contest->limited, bits, contest->sliced ? "10mb" : "1mb", NULL);
	return fixture_limit(fx, contest->limited, packets, contest->sliced ? "10k" : "1000", NULL);
}

/* Packets. */
static __u64 burst_of(const struct contest *contest)
{
	return contest->sliced ? 10 * BURST : BURST;
}

/* What other CPUs may have taken ahead of it and not used. */
static __u64 held_of(const struct contest *contest)
{
	return contest->sliced ? burst_of(contest) / 32 : 0;
}

/* Above it nothing holds the source back. */
static void limit_others(struct fixture *fx, const struct contest *contest)
{
	if (contest->drop == RL_DROP_SOURCE)
		return;
	fixture_limit(fx, "203.0.113.0/24", "10mpps", "100k", "tenant=acme", NULL);
	fixture_limit(fx, "2001:db8::/32", "10mpps", "100k", "tenant=acme", NULL);
}

static void start(struct fixture *fx, const struct contest *contest, struct sender *senders,
		  pthread_t *threads)
{
	static uint8_t frames[CPUS][RL_FRAME_MAX];
	struct rl_frame_spec spec = {.src = contest->bytes ? "2001:db8::7" : "203.0.113.7", .len = LEN};
	__u64 from = rl_clock_ns() + 2 * MS;

	for (int cpu = 0; cpu < CPUS; cpu++) {
		/* For a shared bucket the two CPUs may as well bring two sources. */
		if (cpu && contest->drop != RL_DROP_SOURCE)
			spec.src = contest->bytes ? "2001:db8:0:1::8" : "203.0.113.8";
		senders[cpu] = (struct sender){.fx = fx,
					       .frame = frames[cpu],
					       .len = rl_frame_build(&spec, frames[cpu], RL_FRAME_MAX),
					       .cpu = cpu,
					       .start = from,
					       .end = from + (__u64)seconds() * SEC,
					       .room = (size_t)seconds() * 3 * PPS};
		senders[cpu].arrivals = malloc(senders[cpu].room * sizeof(__u64));
		cr_assert_not_null(senders[cpu].arrivals);
		cr_assert_eq(pthread_create(&threads[cpu], NULL, send_paced, &senders[cpu]), 0);
	}
}

static void stop(struct fixture *fx, struct sender *senders, const pthread_t *threads)
{
	for (int cpu = 0; cpu < CPUS; cpu++) {
		pthread_join(threads[cpu], NULL);
		cr_assert_not(senders[cpu].failed);
		fixture_account(fx, senders[cpu].count, senders[cpu].count * senders[cpu].len);
	}
}

static void release(struct sender *senders)
{
	for (int cpu = 0; cpu < CPUS; cpu++)
		free(senders[cpu].arrivals);
}

static __u64 passed_by(const struct fixture *fx, const struct contest *contest)
{
	struct rl_limit limit = fixture_now(fx, contest->limited);

	return fixture_limit_count(fx, &limit).passed.packets;
}

Test(together, two_cpus_on_one_bucket)
{
	need_two_cpus();
	for (int i = 0; i < CONTESTS; i++) {
		struct fixture fx = fixture_open_with(&(struct fixture_options){.real_clock = true});
		struct sender senders[CPUS];
		pthread_t threads[CPUS];
		__u64 *arrivals, passed, due, most;
		size_t count;

		fx.what = contests[i].name;
		limit_others(&fx, &contests[i]);
		limit_contested(&fx, &contests[i], false);
		start(&fx, &contests[i], senders, threads);
		stop(&fx, senders, threads);
		arrivals = merge(senders, &count);
		passed = passed_by(&fx, &contests[i]);
		due = ideal(arrivals, count, burst_of(&contests[i]), &(struct change){arrivals[0], PPS}, 1);
		most = burst_of(&contests[i]) + (rl_clock_ns() - arrivals[0]) * PPS / SEC;
		printf("%s: %zu offered, %llu passed, %llu due (%.4f %%)\n", fx.what, count, passed, due,
		       100.0 * (double)passed / (double)due);
		cr_assert_gt(count * 4, due * 5, "%s: %zu offered of %llu due say little", fx.what, count,
			     due);
		cr_assert_leq(passed, most, "%s: %llu of %llu", fx.what, passed, most);
		cr_assert_geq((passed + held_of(&contests[i])) * 1000, due * 999, "%s: %llu of %llu", fx.what,
			      passed, due);
		cr_assert_eq(fixture_device(&fx).by_reason[contests[i].drop].packets +
				 fixture_device(&fx).by_reason[RL_DROP_CONTENDED].packets,
			     count - passed, "%s", fx.what);
		free(arrivals);
		release(senders);
		fixture_close(&fx);
	}
}

/*
 * Change the limit back and forth until the senders are done. A change counts from the time that it was given; *lag is the
 * longest that one took from then on, ns.
 */
static size_t change_until(struct fixture *fx, const struct contest *contest, __u64 end,
			   struct change *changes, size_t room, __u64 *lag)
{
	size_t count = 1;

	*lag = 0;
	changes[0] = (struct change){rl_clock_ns(), PPS};
	while (rl_clock_ns() < end && count < room) {
		bool slower = count % 2;

		usleep(3000);
		changes[count].at = limit_contested(fx, contest, slower).past[0].until;
		if (rl_clock_ns() - changes[count].at > *lag)
			*lag = rl_clock_ns() - changes[count].at;
		changes[count++].pps = slower ? PPS / 2 : PPS;
	}
	return count;
}

/*
 * No more than an ideal bucket whose rate changes so, but for what passes in the moment between a change's time and the
 * store that puts it in force: of that, what the last change let pass is still to be paid back. Half a packet is rounded
 * at each change.
 */
Test(together, two_cpus_while_the_limit_changes)
{
	enum { ROOM = 20000 };
	static struct change changes[ROOM];

	need_two_cpus();
	for (int i = 0; i < CONTESTS; i++) {
		struct fixture fx = fixture_open_with(&(struct fixture_options){.real_clock = true});
		struct sender senders[CPUS];
		pthread_t threads[CPUS];
		__u64 *arrivals, passed, due, lag;
		size_t count, changed;

		fx.what = contests[i].name;
		limit_others(&fx, &contests[i]);
		limit_contested(&fx, &contests[i], false);
		start(&fx, &contests[i], senders, threads);
		changed = change_until(&fx, &contests[i], senders[0].end, changes, ROOM, &lag);
		stop(&fx, senders, threads);
		arrivals = merge(senders, &count);
		passed = passed_by(&fx, &contests[i]);
		due = ideal(arrivals, count, burst_of(&contests[i]), changes, changed);
		printf("%s: %zu changes, %zu offered, %llu passed, %llu due (%.4f %%)\n", fx.what,
		       changed - 1, count, passed, due, 100.0 * (double)passed / (double)due);
		cr_assert_gt(changed, 20);
		cr_assert_gt(count * 4, due * 5, "%s: %zu offered of %llu due say little", fx.what, count,
			     due);
		cr_assert_leq(passed, due + changed / 2 + lag * PPS / 2 / SEC, "%s: %llu of %llu", fx.what,
			      passed, due);
		cr_assert_geq((passed + held_of(&contests[i])) * 1000, due * 999, "%s: %llu of %llu", fx.what,
			      passed, due);
		free(arrivals);
		release(senders);
		fixture_close(&fx);
	}
}

/* A meeting point that two threads pass together, closer than a system call would let them. */
struct gate {
	_Atomic unsigned int arrived;
};

static void gate_pass(struct gate *gate, unsigned int round)
{
	unsigned int spins = 0;

	atomic_fetch_add(&gate->arrived, 1);
	while (atomic_load(&gate->arrived) < CPUS * (round + 1))
		if (++spins % 10000 == 0)
			sched_yield();
}

struct newcomer {
	const struct fixture *fx;
	struct gate *gate;
	int cpu;
	bool v6;
	unsigned int sources;
	bool failed;
};

/* The same new source as on the other CPU, at the same time; `sources` times. */
static void *send_new(void *argument)
{
	struct newcomer *newcomer = argument;
	struct rl_frame_spec spec = {.src = newcomer->v6 ? "2001:db8::1" : "10.0.0.0"};
	uint8_t frame[RL_FRAME_MAX];
	size_t len = rl_frame_build(&spec, frame, sizeof(frame));

	newcomer->failed = !move_to(newcomer->cpu);
	for (unsigned int i = 0; i < newcomer->sources; i++) {
		uint8_t *at = frame + (newcomer->v6 ? 14 + 8 + 4 : 14 + 12);

		at[0] = newcomer->v6 ? (uint8_t)(i >> 24) : 10;
		at[1] = (uint8_t)(i >> 16);
		at[2] = (uint8_t)(i >> 8);
		at[3] = (uint8_t)i;
		gate_pass(newcomer->gate, i);
		if (fixture_run(newcomer->fx, frame, len, 1) < 0)
			newcomer->failed = true;
	}
	return NULL;
}

static void new_on_both(bool v6, unsigned int sources)
{
	struct fixture fx = fixture_open_with(&(struct fixture_options){.max_sources = sources});
	struct rl_limit limit = fixture_limit(&fx, v6 ? "2001:db8::/32" : "10.0.0.0/8", "1/h", "1", NULL);
	struct newcomer newcomers[CPUS];
	struct gate gate = {0};
	pthread_t threads[CPUS];
	struct rl_limit_count count;

	for (int cpu = 0; cpu < CPUS; cpu++) {
		newcomers[cpu] =
		    (struct newcomer){.fx = &fx, .gate = &gate, .cpu = cpu, .v6 = v6, .sources = sources};
		cr_assert_eq(pthread_create(&threads[cpu], NULL, send_new, &newcomers[cpu]), 0);
	}
	for (int cpu = 0; cpu < CPUS; cpu++) {
		pthread_join(threads[cpu], NULL);
		cr_assert_not(newcomers[cpu].failed);
	}
	fixture_account(&fx, 2ULL * sources, 2ULL * sources * (v6 ? 62 : 60));
	count = fixture_limit_count(&fx, &limit);
	printf("IPv%d: %u new sources on both CPUs, %llu passed, %llu places taken\n", v6 ? 6 : 4, sources,
	       count.passed.packets, native_taken(&fx.state, &fx.table, v6 ? 6 : 4));
	cr_assert_eq(count.passed.packets, sources, "a second bucket passes a second packet");
	cr_assert_eq(count.dropped.packets, sources);
	cr_assert_eq(native_taken(&fx.state, &fx.table, v6 ? 6 : 4), sources);
	fixture_close(&fx);
}

Test(together, a_million_new_sources)
{
	need_two_cpus();
	new_on_both(false, 1000000);
	new_on_both(true, getenv("RL_LONG") ? 1000000 : 200000);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Slices of a bucket that several CPUs hold at once (rl_slice.h), at any times, with packets of any length: an ideal bucket
 * that is charged what passed, when it passed, would have let it pass too; and what is refused is wanting but little.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../bpf/rl_job.h"
#include "ideal.h"
#include "limits.h"
#include "random.h"

#define SEED   20261201ULL
#define CPUS   4
#define SLOT   LIMITS_SLOT
#define LIMITS 100 /* so many random limits */
#define ROUNDS 16  /* on each: a few packets, a pause, and a flood */
#define SECOND 1000000000ULL

static struct {
	__u64 now; /* ns */
	__u32 cpus, cpu;
	__u32 lost; /* packets that weren't given back, as another CPU had charged the bucket meanwhile */
	bool backs; /* some packets are given back: some of what isn't given back hides what is minted */
	struct rl_limit limit;
	struct rl_source own;
	struct rl_slice slice[CPUS];
	struct rl_job job[CPUS];
} world;

/* --- what the packet path asks its includer for; a tenant's limit in one slot, whose cell has its number --- */

static inline __u64 rl_now(void)
{
	return world.now;
}

static inline __u32 rl_slice_shift(void)
{
	return rl_slice_shift_of(world.cpus);
}

static inline struct rl_slice *rl_slice_at(__u32 slot)
{
	return slot == SLOT ? &world.slice[world.cpu] : NULL;
}

static inline const struct rl_limit *rl_limit_at(__u32 cell)
{
	return cell == SLOT ? &world.limit : NULL;
}

static inline struct rl_source *rl_own_at(__u32 slot)
{
	return slot == SLOT ? &world.own : NULL;
}

#include "../../bpf/rl_tier.h"

/* --- offering packets --- */

/* A packet on this CPU. */
static enum rl_gcra_verdict offer(__u32 cpu, __u32 len)
{
	struct rl_job *job = &world.job[cpu];
	enum rl_gcra_verdict verdict;

	world.cpu = cpu;
	job->now = world.now;
	job->len = len;
	job->priority = RL_PRIORITY_NORMAL;
	job->tier[1].cell = SLOT;
	if (!rl_buckets_present(&world.own.buckets, &world.limit, world.now, RL_BUCKET_IDLE))
		cr_assert_eq(rl_buckets_renew(&world.own.buckets, &world.own.key, world.own.key, &world.limit,
					      world.now),
			     0);
	verdict = rl_own_ask(job, 1);
	return verdict == RL_GCRA_ADMIT ? rl_own_charge(job, 1) : verdict;
}

/* Another level refuses that packet. */
static void give_back(__u32 cpu)
{
	world.cpu = cpu;
	rl_own_refund(&world.job[cpu], 1);
}

/* A limit of so many packets in a second, or bits, or both, on so many CPUs; nothing has come yet. */
static void begin(const char *rates, const char *bursts, __u32 cpus)
{
	struct rl_terms terms = terms_completed("tenant:acme", terms_said(rates, bursts));

	memset(&world, 0, sizeof(world));
	world.cpus = cpus;
	world.now = LIMITS_START;
	world.limit = limit_under("tenant:acme", &terms, NULL, LIMITS_START);
	world.own.key = world.limit.id;
}

static void begin_any(__u64 *random)
{
	char packets[32], bits[32], rates[80], bursts[80];
	__u64 pps = random_magnitude(random, 1, 20000000), mbit = random_magnitude(random, 1, 100000);
	int units = (int)random_between(random, 1, 3);

	snprintf(packets, sizeof(packets), "%llupps", pps);
	snprintf(bits, sizeof(bits), "%llumbit", mbit);
	snprintf(rates, sizeof(rates), "%s %s", units & 1 ? packets : "", units & 2 ? bits : "");
	snprintf(packets, sizeof(packets), "%llup", random_between(random, 1500, 8000));
	snprintf(bits, sizeof(bits), "%llukb", random_between(random, 100, 2000));
	snprintf(bursts, sizeof(bursts), "%s %s", units & 1 ? packets : "", units & 2 ? bits : "");
	begin(rates, bursts, (__u32)random_between(random, 1, CPUS));
	world.backs = world.cpus > 1 && random_between(random, 0, 2) == 0;
}

/* ns that a packet takes to flow in. */
static __u64 packet_time(void)
{
	const struct rl_rate *rate = world.limit.rate;

	if (rate[RL_PACKETS].mult)
		return (rl_gcra_cost(&rate[RL_PACKETS], 1) >> rate[RL_PACKETS].shift) + 1;
	return (rl_gcra_cost(&rate[RL_BYTES], 800) >> rate[RL_BYTES].shift) + 1;
}

/* Time that passes before all CPUs are flooded: until slices are over, the bucket is full, or times have wrapped. */
static __u64 pause_any(__u64 *random)
{
	switch (random_between(random, 0, 5)) {
	case 0 ... 3:
		return random_between(random, 0, 150 * packet_time());
	case 4:
		return random_between(random, 0, 10000 * packet_time());
	default:
		return random_between(random, 1, SECOND << 16); /* 18 hours */
	}
}

/* The most that others may hold, or have let lapse: what rl_slice.h says it costs. */
static __u64 held(enum rl_unit unit)
{
	return world.cpus > 1 ? world.limit.rate[unit].burst / 16 : 0;
}

/* A packet on this CPU, checked. Returns whether it was admitted. */
static bool check_packet(const struct ideal *ideal, __u32 cpu, __u32 len)
{
	bool wanting = false, admitted = offer(cpu, len) == RL_GCRA_ADMIT;

	for (enum rl_unit unit = 0; unit < RL_UNITS; unit++) {
		const struct rl_rate *rate = &world.limit.rate[unit];
		__u64 debt = ideal_debt(ideal, &world.limit, unit, len, world.now);

		if (!rate->mult)
			continue;
		if (admitted)
			cr_assert_leq(debt, rate->burst, "admitted, beyond the burst");
		wanting = wanting ||
			  debt + held(unit) + rl_gcra_cost(rate, world.lost * (unit == RL_BYTES ? 1514 : 1)) >
			      rate->burst;
	}
	cr_assert(admitted || wanting, "refused, and there was room");
	return admitted;
}

/* A packet on this CPU; or, where there are several, one that is given back, with one of another CPU in between. */
static bool check_any(__u64 *random, struct ideal *ideal, __u32 cpu)
{
	__u32 len = (__u32)random_between(random, 60, 1514);
	bool back = world.backs && random_between(random, 0, 9) == 0, admitted;

	admitted = check_packet(ideal, cpu, len);
	if (admitted && back) {
		if (random_between(random, 0, 1)) {
			world.lost++;
			if (check_packet(ideal, (cpu + 1) % world.cpus, len))
				ideal_charge(ideal, &world.limit, len, world.now);
		}
		give_back(cpu);
	} else if (admitted) {
		ideal_charge(ideal, &world.limit, len, world.now);
	}
	return admitted;
}

/* The bucket fills up; a few packets on each CPU, so that they hold slices; a pause; and then at one time as many as pass on each. */
static void check_round(__u64 *random, struct ideal *ideal, __u64 *paid)
{
	for (enum rl_unit unit = 0; unit < RL_UNITS; unit++)
		world.now += world.limit.rate[unit].burst >> world.limit.rate[unit].shift;
	world.lost = 0;
	for (int i = 0; i < 40; i++) {
		__u32 cpu = (__u32)random_between(random, 0, world.cpus - 1);

		world.now += random_between(random, 0, 3) ? 0 : random_between(random, 0, 3 * packet_time());
		if (check_any(random, ideal, cpu))
			*paid += world.job[cpu].tier[1].pays != 0;
	}
	world.now += pause_any(random);
	for (__u32 cpu = 0; cpu < world.cpus; cpu++)
		for (int refused = 0; refused < 20;)
			refused = check_any(random, ideal, cpu) ? 0 : refused + 1;
}

Test(slice, what_passes_is_what_an_ideal_bucket_lets_pass)
{
	__u64 random = SEED, paid = 0;

	for (int limit = 0; limit < LIMITS; limit++) {
		struct ideal ideal = {.full = {0}};

		begin_any(&random);
		for (int round = 0; round < ROUNDS; round++)
			check_round(&random, &ideal, &paid);
	}
	cr_expect_gt(paid, 5 * LIMITS * ROUNDS, "%llu packets alone were paid from a slice", paid);
}

/* All at once on one CPU, then on the other: the burst and no more, and none of it is lost. */
Test(slice, a_burst_is_the_burst)
{
	for (__u32 first = 0; first <= 20000; first += 5000) {
		__u32 passed = 0;

		begin("1000pps", "20000p", 2);
		for (__u32 i = 0; i < 40000; i++)
			passed += offer(i >= first, 60) == RL_GCRA_ADMIT;
		for (__u32 i = 0; i < 1000; i++)
			passed += offer(0, 60) == RL_GCRA_ADMIT;
		cr_expect_eq(passed, 20000, "%u first: %u passed", first, passed);
	}
}

Test(slice, small_bursts_reserves_and_a_single_cpu_have_none)
{
	static const struct {
		const char *rates, *bursts;
		__u32 cpus;
		bool sliced;
	} cases[] = {
	    {"1000pps", "2047p", 2, false},   {"1000pps", "2048p", 2, true},
	    {"1000pps", "4095p", 4, false},   {"1000pps", "4096p", 4, true},
	    {"1000pps", "100000p", 1, false}, {"100mbit", "122kb", 2, false}, /* 7 frames of 60 bytes */
	    {"100mbit", "123kb", 2, true},    {"1000pps 100mbit", "2048p 123kb", 2, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i].rates, cases[i].bursts, cases[i].cpus);
		cr_expect_eq(offer(0, 60), RL_GCRA_ADMIT);
		cr_expect_eq(offer(0, 60), RL_GCRA_ADMIT);
		cr_expect_eq(world.job[0].tier[1].pays != 0, cases[i].sliced, "%s, %s", cases[i].rates,
			     cases[i].bursts);
	}
	begin("1000pps", "100000p", 2);
	world.limit.rate[RL_PACKETS].kept[RL_PRIORITY_LOW] = 256;
	offer(0, 60);
	offer(0, 60);
	cr_expect_eq(world.job[0].tier[1].pays, 0, "a reserve");
}

/* What a packet paid that took ahead is given back to the slice, before which it stands, and to that alone. */
Test(slice, what_took_ahead_is_given_back_once)
{
	__u64 cost, left, word;

	begin("1000pps", "20000p", 2);
	cost = rl_gcra_cost(&world.limit.rate[RL_PACKETS], 1);
	cr_assert_eq(offer(0, 60), RL_GCRA_ADMIT);
	left = world.slice[0].left[RL_PACKETS];
	word = world.own.buckets.word[RL_PACKETS];
	cr_assert_gt(left, 0);
	give_back(0);
	cr_expect_eq(world.slice[0].left[RL_PACKETS], left + cost);
	cr_expect_eq(world.own.buckets.word[RL_PACKETS], word);
}

/* What a packet paid by itself is given back to the bucket; but not from under a slice that was taken since. */
Test(slice, what_stands_before_a_slice_stays)
{
	__u64 before, word;

	begin("1000pps", "20000p", 2);
	world.slice[0] = (struct rl_slice){.id = 1, .until = {world.now + SECOND}}; /* another limit's */
	cr_assert_eq(offer(0, 60), RL_GCRA_ADMIT);
	give_back(0);
	before = world.own.buckets.word[RL_PACKETS];
	cr_assert_eq(offer(0, 60), RL_GCRA_ADMIT);
	cr_expect_neq(world.own.buckets.word[RL_PACKETS], before);
	give_back(0);
	cr_expect_eq(world.own.buckets.word[RL_PACKETS], before);
	cr_assert_eq(offer(0, 60), RL_GCRA_ADMIT);
	cr_assert_eq(offer(1, 60), RL_GCRA_ADMIT);
	cr_assert_gt(world.slice[1].left[RL_PACKETS], 0);
	word = world.own.buckets.word[RL_PACKETS];
	give_back(0);
	cr_expect_eq(world.own.buckets.word[RL_PACKETS], word);
}

/* A change of the limit leaves what was taken ahead behind: it was charged at the rate of then. */
Test(slice, a_change_ends_it)
{
	struct rl_terms terms;

	begin("1000pps", "20000p", 2);
	offer(0, 60);
	offer(0, 60);
	cr_assert(world.job[0].tier[1].pays);
	terms = terms_completed("tenant:acme", terms_said("1pps", "20000p"));
	world.limit = limit_under("tenant:acme", &terms, &world.limit, world.now);
	offer(0, 60);
	cr_expect_eq(world.job[0].tier[1].pays, 0);
}

/* The bits of a limit's id that its buckets' version has, and its slot, may be those of one that was deleted. */
static __u32 alike(const struct rl_limit *limit)
{
	struct rl_limit other = *limit;

	do
		other.id++;
	while (rl_bucket_version(&other) != rl_bucket_version(limit));
	return other.id;
}

/* What was taken ahead of a tenant's bucket that was deleted isn't for the one that has its slot now. */
Test(slice, what_was_a_deleted_limits_is_not_the_next_ones)
{
	struct rl_terms terms;
	__u32 passed = 0;

	begin("1pps", "100000p", 2);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(offer((__u32)i, 60), RL_GCRA_ADMIT);
	cr_assert_gt(world.slice[0].left[RL_PACKETS], 0);
	terms = terms_completed("tenant:beta", terms_said("1000pps", "3000p"));
	world.limit.id = alike(&world.limit);
	world.limit.rate[RL_PACKETS] = limit_under("tenant:beta", &terms, NULL, world.now).rate[RL_PACKETS];
	memset(&world.own, 0, sizeof(world.own));
	world.own.key = world.limit.id;
	for (__u32 i = 0; i < 40000; i++)
		passed += offer(i % 2, 60) == RL_GCRA_ADMIT;
	cr_expect_eq(passed, 3000, "%u passed", passed);
}

/* Two limits whose slots have one element in common: the second takes nothing ahead while the first one can spend it. */
Test(slice, another_limit_is_left_its_own)
{
	struct rl_slice first;

	begin("1000pps", "20000p", 2);
	offer(0, 60);
	first = world.slice[0];
	world.limit.id++; /* another one */
	memset(&world.own, 0, sizeof(world.own));
	world.own.key = world.limit.id;
	offer(0, 60);
	cr_expect_eq(memcmp(&first, &world.slice[0], sizeof(first)), 0);
	world.now = first.until[RL_PACKETS] + 1;
	offer(0, 60);
	cr_expect_neq(first.id, world.slice[0].id);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "../unit/random.h"

#define WORD	      4 /* bytes; what is told apart in shared memory */
#define WORDS	      (SCHEDULE_SHARED / WORD)
#define STACK	      65536
#define CHOICES	      4096
#define SPINS	      3	 /* points of one compare-and-swap that fails again and again */
#define RANDOM_ONE_IN 12 /* points, from one random preemption to the next */
#define TRACE	      64

/* At a point where several CPUs could go on: which did, of how many. 0 is the one that was running. */
struct choice {
	__u8 pick, options;
};

struct switched {
	int from, to;
	size_t offset; /* of the access that was still to come; SCHEDULE_SHARED: none, it was done */
};

static struct {
	const struct schedule_case *what;
	ucontext_t home, cpu[SCHEDULE_CPUS];
	char stack[SCHEDULE_CPUS][STACK];
	bool running; /* accesses of prepare() and check() are no points */
	bool done[SCHEDULE_CPUS];
	int now; /* the CPU that runs */

	/* Which words are points, in this exploration; and what was found out since it began. */
	bool point[WORDS], grown;
	__u8 touched[WORDS]; /* a bit for each CPU */
	bool written[WORDS];

	/* The order at hand. */
	struct choice choice[CHOICES];
	int chosen, at; /* so many are given; so many were met */
	int preemptions, most;
	__u32 points;
	bool random;
	__u64 state;

	/* The compare-and-swap that a CPU did last, and how often in a row it failed. */
	const volatile void *spin[SCHEDULE_CPUS];
	int spins[SCHEDULE_CPUS];

	struct switched trace[TRACE];
	int traced;
} self;

int schedule_cpu(void)
{
	return self.running ? self.now : 0;
}

/* --- one order --- */

static int choose(int options)
{
	struct choice *choice = &self.choice[self.at];

	if (options == 1)
		return 0;
	if (self.random)
		return random_between(&self.state, 1, RANDOM_ONE_IN) == 1
			   ? (int)random_between(&self.state, 0, (__u64)options - 1)
			   : 0;
	if (self.at == CHOICES) {
		fprintf(stderr, "interleave: more than %d points\n", CHOICES);
		exit(2);
	}
	if (self.at++ == self.chosen) {
		self.chosen++;
		*choice = (struct choice){.options = (__u8)options};
	}
	return choice->pick;
}

static void note_switch(int to, size_t offset)
{
	if (self.traced < TRACE)
		self.trace[self.traced++] = (struct switched){.from = self.now, .to = to, .offset = offset};
}

/*
 * Which CPU goes on? `offset`: of the access that the one that runs is about to make. `interrupts`: it could go on itself, so
 * another one in its place is a preemption. -1: all are done.
 */
static int next_cpu(size_t offset, bool interrupts)
{
	int able[SCHEDULE_CPUS], count = 0, pick;

	for (int i = 0; i < self.what->cpus; i++) {
		int cpu = (self.now + i) % self.what->cpus;

		if (!self.done[cpu])
			able[count++] = cpu;
	}
	if (!count)
		return -1;
	pick = choose(interrupts && !self.random && self.preemptions == self.most ? 1 : count);
	self.preemptions += interrupts && pick;
	if (able[pick] != self.now)
		note_switch(able[pick], offset);
	return able[pick];
}

static void point(size_t offset)
{
	int from = self.now, to;

	self.points++;
	to = next_cpu(offset, true);
	if (to == from)
		return;
	self.now = to;
	swapcontext(&self.cpu[from], &self.cpu[to]);
}

/* An access is about to be made. `again`: the very same one failed just before, too often to be of interest. */
static void access_shared(const volatile void *address, size_t size, bool writes, bool again)
{
	size_t offset = (size_t)((const volatile char *)address - (const volatile char *)self.what->shared);
	bool is_point = false;

	for (size_t word = offset / WORD; word <= (offset + size - 1) / WORD; word++) {
		self.touched[word] |= (__u8)(1 << self.now);
		self.written[word] |= writes;
		is_point |= self.point[word];
		if (!self.point[word] && self.written[word] &&
		    (self.touched[word] & (self.touched[word] - 1)))
			self.grown = true;
	}
	if (is_point && !again)
		point(offset);
}

static bool is_shared(const volatile void *address)
{
	__u64 offset = (__u64)address - (__u64)self.what->shared;

	return self.running && offset < self.what->size && !(self.what->apart && self.what->apart(offset));
}

static void access_plain(const volatile void *address, size_t size, bool writes)
{
	if (!is_shared(address))
		return;
	self.spin[self.now] = NULL;
	access_shared(address, size, writes, false);
}

static void access_swap(const volatile void *address, size_t size)
{
	int cpu = self.now;

	if (!is_shared(address))
		return;
	if (self.spin[cpu] != address)
		self.spins[cpu] = 0;
	self.spin[cpu] = address;
	access_shared(address, size, true, self.spins[cpu]++ >= SPINS);
}

void schedule_before_write(const void *address, size_t size)
{
	access_plain(address, size, true);
}

/* What runs on a CPU's stack. It never returns: there is nowhere to return to. */
static void cpu_main(int cpu)
{
	int to;

	self.what->run(cpu);
	self.done[cpu] = true;
	to = next_cpu(SCHEDULE_SHARED, false);
	if (to < 0)
		setcontext(&self.home);
	self.now = to;
	setcontext(&self.cpu[to]);
	abort();
}

/* makecontext() takes functions without a prototype; int arguments are what it passes. */
static void make_cpu(int cpu)
{
	getcontext(&self.cpu[cpu]);
	self.cpu[cpu].uc_stack.ss_sp = self.stack[cpu];
	self.cpu[cpu].uc_stack.ss_size = STACK;
	self.cpu[cpu].uc_link = NULL;
	makecontext(&self.cpu[cpu], (void (*)(void))cpu_main, 1, cpu);
}

/* False: broken. */
static bool run_order(struct schedule_result *result)
{
	self.at = self.preemptions = self.traced = 0;
	self.points = 0;
	memset(self.done, 0, sizeof(self.done));
	memset(self.spin, 0, sizeof(self.spin));
	self.what->prepare();
	for (int cpu = 0; cpu < self.what->cpus; cpu++)
		make_cpu(cpu);
	self.running = true;
	self.now = 0;
	self.now = next_cpu(SCHEDULE_SHARED, false);
	swapcontext(&self.home, &self.cpu[self.now]);
	self.running = false;
	result->runs++;
	if (self.points > result->points)
		result->points = self.points;
	result->broken = !self.what->check(result->text);
	return !result->broken;
}

/* --- all of them --- */

static bool next_order(void)
{
	while (self.chosen) {
		struct choice *last = &self.choice[self.chosen - 1];

		if (++last->pick < last->options)
			return true;
		self.chosen--;
	}
	return false;
}

/* What was found out becomes points. Returns whether there is anything new. */
static bool grow(void)
{
	bool grown = self.grown;

	for (size_t word = 0; word < WORDS && grown; word++)
		self.point[word] = self.written[word] && (self.touched[word] & (self.touched[word] - 1));
	self.grown = false;
	return grown;
}

static bool explore_all(int preemptions, struct schedule_result *result)
{
	self.random = false;
	self.most = preemptions;
	self.chosen = 0;
	do {
		if (!run_order(result))
			return false;
		if (grow())
			self.chosen = 0;
		else if (!next_order())
			return true;
	} while (true);
}

static bool explore_random(__u64 runs, __u64 seed, struct schedule_result *result)
{
	self.random = true;
	self.state = seed;
	for (__u64 i = 0; i < runs; i++) {
		if (!run_order(result))
			return false;
		grow();
	}
	return true;
}

static void print_order(const struct schedule_result *result)
{
	char text[SCHEDULE_TEXT] = "it was done";

	printf("    | %s\n", result->text);
	for (int i = 0; i < self.traced; i++) {
		const struct switched *one = &self.trace[i];

		if (one->offset < SCHEDULE_SHARED)
			self.what->describe(one->offset, text);
		else
			strcpy(text, "nothing");
		printf("    | CPU %d stops before %s; CPU %d goes on\n", one->from, text, one->to);
	}
}

struct schedule_result schedule_explore(const struct schedule_case *what, int preemptions, __u64 random_runs,
					__u64 seed, bool verbose)
{
	struct schedule_result result = {0};
	bool holds = true;

	self.what = what;
	self.grown = false;
	memset(self.point, 0, sizeof(self.point));
	memset(self.touched, 0, sizeof(self.touched));
	memset(self.written, 0, sizeof(self.written));
	for (int most = 0; most <= preemptions && holds; most++)
		holds = explore_all(most, &result);
	if (holds)
		holds = explore_random(random_runs, seed, &result);
	if (!holds && verbose)
		print_order(&result);
	return result;
}

/* --- what code compiled with -fsanitize=thread calls; the names are gcc's and clang's --- */

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */
#define ACCESS(name, size, writes)                                                                           \
	void __tsan_##name(void *address);                                                                   \
	void __tsan_##name(void *address)                                                                    \
	{                                                                                                    \
		access_plain(address, size, writes);                                                         \
	}
#define ACCESSES(size)                                                                                       \
	ACCESS(read##size, size, false)                                                                      \
	ACCESS(write##size, size, true)                                                                      \
	ACCESS(unaligned_read##size, size, false)                                                            \
	ACCESS(unaligned_write##size, size, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define ATOMICS(bits)                                                                                        \
	/* gcc's; in C's own words */                                                                        \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile __u##bits *at, __u##bits *expected,       \
							  __u##bits value, int order, int failed_order);     \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile __u##bits *at, __u##bits *expected,       \
							  __u##bits value, int order, int failed_order)      \
	{                                                                                                    \
		__u##bits seen, wanted = *expected;                                                          \
                                                                                                             \
		(void)order, (void)failed_order;                                                             \
		access_swap(at, sizeof(*at));                                                                \
		seen = *at;                                                                                  \
		if (seen == wanted)                                                                          \
			*at = value;                                                                         \
		*expected = seen;                                                                            \
		return seen == wanted;                                                                       \
	}                                                                                                    \
	/* clang's */                                                                                        \
	__u##bits __tsan_atomic##bits##_compare_exchange_val(volatile __u##bits *at, __u##bits expected,     \
							     __u##bits value, int order, int failed_order);  \
	__u##bits __tsan_atomic##bits##_compare_exchange_val(volatile __u##bits *at, __u##bits expected,     \
							     __u##bits value, int order, int failed_order)   \
	{                                                                                                    \
		__tsan_atomic##bits##_compare_exchange_strong(at, &expected, value, order, failed_order);    \
		return expected;                                                                             \
	}                                                                                                    \
	__u##bits __tsan_atomic##bits##_fetch_add(volatile __u##bits *at, __u##bits value, int order);       \
	__u##bits __tsan_atomic##bits##_fetch_add(volatile __u##bits *at, __u##bits value, int order)        \
	{                                                                                                    \
		__u##bits seen;                                                                              \
                                                                                                             \
		(void)order;                                                                                 \
		access_plain(at, sizeof(*at), true);                                                         \
		seen = *at;                                                                                  \
		*at = seen + value;                                                                          \
		return seen;                                                                                 \
	}
ATOMICS(32)
ATOMICS(64)

void __tsan_read_range(void *address, size_t size);
void __tsan_read_range(void *address, size_t size)
{
	access_plain(address, size, false);
}

void __tsan_write_range(void *address, size_t size);
void __tsan_write_range(void *address, size_t size)
{
	access_plain(address, size, true);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

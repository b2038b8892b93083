/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * schedule.h - simulated CPUs over shared memory, in every order.
 *
 * Each CPU is a coroutine. Code that is compiled with -fsanitize=thread calls a function before each of its accesses to
 * memory; schedule.c has these functions, in the place of the sanitizer's library, so the code under test is the packet
 * path as it stands. Before an access to a word of the shared memory that more than one CPU touches and any of them writes,
 * another CPU may be let go on: a point. Elsewhere that would change nothing that anybody could see. Which words these are is
 * found out on the way, and the exploration begun again whenever there is a new one.
 *
 * Explored are all orders in which CPUs are interrupted at points at most so many times (preemptions; the switch when a
 * CPU is done costs nothing), fewest first; and then random ones with any number of them. Most races take one or two: M.
 * Musuvathi, S. Qadeer, Iterative Context Bounding for Systematic Testing of Multithreaded Programs, 2007.
 *
 * Not explored: what a processor with weaker order than x86's may do, since each access is seen by all CPUs at once; and
 * every length of a wait, since a compare-and-swap that fails again and again is a point only three times.
 */
#ifndef INTERLEAVE_SCHEDULE_H
#define INTERLEAVE_SCHEDULE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define SCHEDULE_CPUS 3
#define SCHEDULE_TEXT 256

/* What is run. A run begins with prepare(), and ends, when every CPU is done, with check(). */
struct schedule_case {
	int cpus;
	void (*prepare)(void);
	void (*run)(int cpu);
	bool (*check)(char text[SCHEDULE_TEXT]);		   /* false: broken, and text says what */
	void (*describe)(size_t offset, char text[SCHEDULE_TEXT]); /* of the shared memory */
	void *shared;
	size_t size;		      /* at most SCHEDULE_SHARED */
	bool (*apart)(size_t offset); /* is this word of it no matter to the case? NULL: none is */
};
#define SCHEDULE_SHARED 8192

struct schedule_result {
	__u64 runs;
	__u32 points; /* of the longest run */
	bool broken;
	char text[SCHEDULE_TEXT];
};

/*
 * All orders with at most `preemptions`, then `random_runs` random ones from `seed`; up to the first that is broken. verbose:
 * print that one.
 */
struct schedule_result schedule_explore(const struct schedule_case *what, int preemptions, __u64 random_runs,
					__u64 seed, bool verbose);

/* The CPU that runs; 0 in prepare() and check(). */
int schedule_cpu(void);

/* A point of code that isn't compiled with -fsanitize=thread: before it writes this shared word. */
void schedule_before_write(const void *address, size_t size);

#endif

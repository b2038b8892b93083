/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * work.h - how long a CPU worked for us: what this thread ran, and what the kernel put off to the CPU's ksoftirqd. By perf's task
 * clock, which goes on in softirqs; a thread's CPU time leaves them out where the kernel accounts interrupts apart. What other
 * processes take is in neither.
 */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "../../user/error.h"

struct work {
	int thread;    /* perf events, -1 where there is none */
	int ksoftirqd; /* of the CPU that the thread stays on */
};

#define WORK_INIT                                                                                            \
	{                                                                                                    \
		.thread = -1, .ksoftirqd = -1                                                                \
	}

/* Keep this thread on the CPU, and begin to count. */
int work_open(struct work *work, int cpu, struct rl_error *err);
void work_close(struct work *work);

/* ns since work_open, of the thread alone, or of both. */
double work_of_thread(const struct work *work);
double work_of_both(const struct work *work);

/* The CPU that this thread runs on, and another one that it may run on, or -1. */
int work_cpu(void);
int work_cpu_beside(int cpu);

#endif

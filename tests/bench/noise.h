/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * noise.h - who else used the processors while something was measured: all their busy time (/proc/stat) less our own. In ticks of
 * 10 ms, so of no use below a second.
 */
#ifndef BENCH_NOISE_H
#define BENCH_NOISE_H

#include "work.h"

#define NOISE_OTHERS 0.05 /* of one CPU: above this figures are rough */
#define NOISE_SPREAD 0.10 /* of XDP_DROP's own times: the distance of the quartiles over the median */

/* Seconds, of different beginnings. */
struct noise_mark {
	double wall;
	double busy;	  /* all CPUs, and what was stolen from the machine */
	double process;	  /* ours and that of the programs that we ran */
	double thread;	  /* of the former, this thread's */
	double clock;	  /* this thread's by its work's clock, which has its softirqs on every kernel */
	double ksoftirqd; /* works for us */
};

struct noise_mark noise_begin(const struct work *work);

/* How much of one CPU others used since then: 0.05 is 5 % of one. */
double noise_others(const struct noise_mark *begin, const struct work *work);

/*
 * Wait until others are still: the kernel puts away large tables long after they were closed. On a machine that isn't, for five
 * seconds.
 */
void noise_settle(const struct work *work);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * spread.h - what is told of one figure over the rounds.
 */
#ifndef BENCH_SPREAD_H
#define BENCH_SPREAD_H

#define ROUNDS_MIN 7
#define ROUNDS_MAX 63

struct spread {
	double median, low, high; /* and the quartiles */
};

/* n: 1 to ROUNDS_MAX. */
struct spread spread_of(const double *values, int n);

#endif

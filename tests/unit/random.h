/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * random.h - random numbers for property tests: seeded, so that a failure is found again. splitmix64.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <linux/types.h>

static inline __u64 random_next(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Uniform in [min, max]. */
static inline __u64 random_between(__u64 *state, __u64 min, __u64 max)
{
	return min + (__u64)(((unsigned __int128)random_next(state) * (max - min + 1)) >> 64);
}

/* As many small numbers as large ones: the number of bits is uniform. In [min, max]; min >= 1, max < 2^63. */
static inline __u64 random_magnitude(__u64 *state, __u64 min, __u64 max)
{
	__u64 value = random_next(state) >> random_between(state, 0, 63);

	return value < min ? min : value > max ? random_between(state, min, max) : value;
}

#endif

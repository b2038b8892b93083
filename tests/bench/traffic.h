/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * traffic.h - whose packets the driver sends. Compiles on both sides.
 */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

enum traffic {
	TRAFFIC_KNOWN, /* random ones of so many sources */
	TRAFFIC_FILL,  /* each of them in turn */
	TRAFFIC_NEW,   /* sources that were never there and never come again, 2^32 of them */
};

/*
 * Source i of n is 10.0.0.0 + i * (2^24 / n), so that few sources are spread over all the prefixes of a policy, too. The same 32
 * bits stand behind 2001:db8 in an IPv6 source: one /64 each.
 */
#define TRAFFIC_FIRST	 0x0a000000U
#define TRAFFIC_BITS	 24
#define TRAFFIC_MAX	 (1U << TRAFFIC_BITS) /* sources */
#define TRAFFIC_PROGRAMS 32		      /* places for programs and for devices */

#endif

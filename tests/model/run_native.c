// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_native.c - the model against the packet path compiled natively.
 *
 *     model [SEED] [PACKETS]      10^6 packets, or 10^9 with RL_LONG=1 in the environment
 *
 * First it shows that it would see a difference: each mistake of native.h is made on purpose, and has to be found and
 * shrunk to a list that a person can read.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native.h"
#include "run.h"

#define PACKETS	     1000000ULL
#define PACKETS_LONG 1000000000ULL
#define EPISODE	     20000
#define COMPARE	     500
#define CALM_LONG    4 /* in the long run changes, which take longest, are so many times rarer */
#define SHRINKS	     4000
#define FAULT_WITHIN 2000000ULL /* packets that finding a mistake may take */
#define READABLE     40		/* operations: a page; mostly they are fewer than ten */

static struct run run_of(__u64 seed, __u64 packets)
{
	return (struct run){.seed = seed,
			    .packets = packets,
			    .episode = EPISODE,
			    .compare = COMPARE,
			    .calm = 1,
			    .shrinks = SHRINKS};
}

static bool finds(enum native_fault fault, __u64 seed)
{
	struct run run = run_of(seed, FAULT_WITHIN);
	struct backend backend = native_backend(fault % 2 ? RL_STORE_TABLE : RL_STORE_LRU, fault);

	run.quiet = !getenv("RL_VERBOSE");
	run_episodes(&run, &backend);
	if (!run.difference[0] || run.shrunk_count > READABLE) {
		printf("not found, or not shrunk: %s (%zu operations)\n", native_fault_name(fault),
		       run.shrunk_count);
		return false;
	}
	printf("found after %llu packets, shrunk to %zu operations: %s\n", run.played, run.shrunk_count,
	       native_fault_name(fault));
	fflush(stdout);
	return true;
}

static int self_test(__u64 seed)
{
	int failed = 0;

	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++)
		failed += !finds((enum native_fault)fault, seed);
	return failed;
}

int main(int argc, char **argv)
{
	const char *text = getenv("RL_LONG");
	bool is_long = text && !strcmp(text, "1");
	struct run run = run_of((__u64)time(NULL), is_long ? PACKETS_LONG : PACKETS);
	struct backend backend;
	__u64 all;
	int failed;

	if (is_long) {
		run.calm = CALM_LONG;
		run.episode *= CALM_LONG;
	}
	run_arguments(&run, argc, argv);
	printf("seed %llu\n", run.seed);
	failed = self_test(run.seed);
	all = run.packets;
	run.packets = all / 2;
	backend = native_backend(RL_STORE_TABLE, FAULT_NONE);
	failed += run_episodes(&run, &backend);
	run.packets = all;
	backend = native_backend(RL_STORE_LRU, FAULT_NONE);
	if (!run.difference[0])
		failed += run_episodes(&run, &backend);
	run_print(&run, "native");
	return failed != 0;
}

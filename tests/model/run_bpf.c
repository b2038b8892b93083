// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * run_bpf.c - the model against the real program in the kernel.
 *
 *     model-bpf [SEED] [PACKETS]      10^6 packets
 *
 * Changes are rarer than in the native run: many wait until the kernel has no packet under way any more.
 */
#include <time.h>
#include <unistd.h>

#include "bpf.h"
#include "run.h"

#define PACKETS 1000000ULL
#define EPISODE 200000
#define COMPARE 10000
#define CALM	10
#define SHRINKS 300

int main(int argc, char **argv)
{
	struct run run = {.seed = (__u64)time(NULL),
			  .packets = PACKETS,
			  .episode = EPISODE,
			  .compare = COMPARE,
			  .calm = CALM,
			  .shrinks = SHRINKS};
	struct backend backend;
	__u64 all;
	int failed;

	run_arguments(&run, argc, argv);
	if (geteuid()) {
		fprintf(stderr, "loading BPF programs takes root\n");
		return 2;
	}
	printf("seed %llu\n", run.seed);
	all = run.packets;
	run.packets = all / 2;
	backend = bpf_backend(RL_STORE_TABLE);
	failed = run_episodes(&run, &backend);
	run.packets = all;
	backend = bpf_backend(RL_STORE_LRU);
	if (!failed)
		failed = run_episodes(&run, &backend);
	run_print(&run, "BPF_PROG_TEST_RUN");
	return failed;
}

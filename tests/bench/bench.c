// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench.c - what the packet program costs over an empty XDP_DROP, ns per packet, by number of sources and
 * verdict.
 *
 * One `any` limit in packets, the precise clock as shipped, a store for a million sources, filled before
 * anything is measured by as many sources as are measured. Each round measures everything once, so that what
 * drifts hits all alike; the cost is the median over the rounds of the difference within a round. No device
 * is involved: BPF_PROG_TEST_RUN on one CPU.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <jansson.h>
#include <popt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../../user/clock.h"
#include "../../user/limit.h"
#include "../../user/loader.h"
#include "../../user/policy.h"
#include "../../user/units.h"
#include "../lib/frame.h"
#include "bench/bench.skel.h"
#include "rl_xdp.skel.h"

#define TABLE	   1000000
#define STRIDE	   7368787 /* prime */
#define ROUNDS	   9
#define ROUNDS_MIN 7
#define PACKETS	   4000000
#define QUICK	   200000
#define NOISY	   0.10 /* spread of the empty program's quartiles, over its median */

enum { EMPTY, PASSING, REJECTED, PROGRAMS };
static const char *const program_names[PROGRAMS] = {"empty", "passing", "rejected"};
static const __u32 source_counts[] = {1, 16384, TABLE};
#define COUNTS ((int)(sizeof(source_counts) / sizeof(source_counts[0])))

struct bench_run {
	struct bench *driver;
	struct rl_xdp *limiter[COUNTS][PROGRAMS]; /* each with its own table; NULL for EMPTY */
	__u32 slot[COUNTS][PROGRAMS];		  /* of its limit */
	enum rl_store store;
	uint8_t frame[RL_FRAME_MAX];
	size_t len;
	int rounds;
	__u32 packets;
	double ns[COUNTS][PROGRAMS][ROUNDS];
	double passed[COUNTS][PROGRAMS]; /* share of packets, over all rounds */
};

static int complain(const char *what, int error)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(-error));
	return error;
}

/* The one limit, of `any`; *slot is where its counters are. */
static int set_any_limit(const struct rl_xdp *skel, const char *rate, const char *burst, __u32 *slot)
{
	struct rl_state state = RL_STATE_INIT;
	struct rl_target any = {.kind = RL_TARGET_PREFIX};
	struct rl_terms terms = RL_TERMS_INIT;
	struct rl_error err = {};
	struct rl_limit limit;
	int error;

	for (int i = 0; i < RL_MAPS; i++)
		state.map[i] = bpf_object__find_map_fd_by_name(skel->obj, rl_map_name((enum rl_map)i));
	error = rl_rate_parse(rate, &terms, &err);
	error = error ? error : rl_burst_parse(burst, &terms, &err);
	error = error ? error : rl_terms_complete(&any, &terms, &err);
	error = error ? error : rl_policy_set(&state, &any, &terms, rl_clock_ns(), &err);
	if (error || !rl_policy_find(&state, &any, NULL, &limit)) {
		fprintf(stderr, "bench: %s\n", err.text);
		return error ? error : -ENOENT;
	}
	*slot = limit.slot;
	return 0;
}

/* The program as attach loads it, but for the pins. */
static struct rl_xdp *load_limiter(enum rl_store store, const char *rate, const char *burst, __u32 *slot)
{
	const struct rl_load_options options = {
	    .frags = true, .store = store, .max_sources = TABLE, .seed = {0x243f6a8885a308d3ULL, 1}};
	struct rl_xdp *skel = rl_xdp__open();

	if (!skel)
		return NULL;
	if (rl_skeleton_prepare(skel, &options) || rl_xdp__load(skel) ||
	    rl_skeleton_settle(skel, &options, 0, RL_FULL_AGGREGATE) ||
	    set_any_limit(skel, rate, burst, slot)) {
		rl_xdp__destroy(skel);
		return NULL;
	}
	return skel;
}

/* A program's index in the driver's array. */
static __u32 index_of(int count, int program)
{
	return (__u32)(count * PROGRAMS + program);
}

/* One program of the driver's array. */
static int load_program(struct bench_run *run, int count, int program)
{
	int fd = bpf_program__fd(run->driver->progs.empty), error;
	__u32 index = index_of(count, program);

	if (program != EMPTY) {
		__u32 *slot = &run->slot[count][program];
		struct rl_xdp *limiter = program == PASSING
					     ? load_limiter(run->store, "148.8mpps", "10m", slot)
					     : load_limiter(run->store, "1/h", "1", slot);

		if (!limiter)
			return complain("loading the packet program", -EPERM);
		run->limiter[count][program] = limiter;
		fd = bpf_program__fd(limiter->progs.rl_xdp);
	}
	error = bpf_map_update_elem(bpf_map__fd(run->driver->maps.programs), &index, &fd, BPF_ANY);
	return error ? complain("chaining the programs", error) : 0;
}

static int load(struct bench_run *run)
{
	run->driver = bench__open_and_load();
	if (!run->driver)
		return complain("loading the driver (this needs root)", -EPERM);
	for (int count = 0; count < COUNTS; count++) {
		for (int program = 0; program < PROGRAMS; program++) {
			int error = load_program(run, count, program);

			if (error)
				return error;
		}
	}
	run->len = rl_frame_build(&(struct rl_frame_spec){.src = "10.0.0.0"}, run->frame, sizeof(run->frame));
	return 0;
}

/* Nanoseconds of this thread's own time: what another process takes is no cost of the program. */
static double cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Send packets of random sources, or with a stride of each in turn. Returns ns per packet, or below 0. */
static double send_packets(const struct bench_run *run, int count, int program, __u32 stride, __u32 packets)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = run->frame, .data_size_in = (__u32)run->len,
		    .repeat = (int)packets);
	struct bench__bss *bss = run->driver->bss;
	double start = cpu_time();
	int error;

	bss->program = index_of(count, program);
	bss->sources = source_counts[count];
	bss->stride = stride;
	error = bpf_prog_test_run_opts(bpf_program__fd(run->driver->progs.bench), &opts);
	if (error || opts.retval == XDP_ABORTED)
		return complain("test run", error ? error : -EIO);
	return (cpu_time() - start) / packets;
}

static struct rl_limit_count count_limit(const struct rl_xdp *skel, __u32 slot)
{
	struct rl_limit_count per_cpu[256], sum = {};
	int cpus = libbpf_num_possible_cpus();

	if (cpus > 256 || bpf_map_lookup_elem(bpf_map__fd(skel->maps.rl_limit_count), &slot, per_cpu))
		return sum;
	for (int cpu = 0; cpu < cpus; cpu++) {
		sum.passed.packets += per_cpu[cpu].passed.packets;
		sum.dropped.packets += per_cpu[cpu].dropped.packets;
	}
	return sum;
}

/*
 * One measurement, and what became of its packets: a run that passed what it should reject measures something
 * else.
 */
static int measure(struct bench_run *run, int round, int count, int program)
{
	const struct rl_xdp *limiter = run->limiter[count][program];
	struct rl_limit_count before = {}, after = {};
	double ns;

	send_packets(run, count, program, 0, run->packets / 10); /* caches belong to the program before it */
	if (limiter)
		before = count_limit(limiter, run->slot[count][program]);
	ns = send_packets(run, count, program, 0, run->packets);
	if (ns < 0)
		return -EIO;
	if (limiter)
		after = count_limit(limiter, run->slot[count][program]);
	run->ns[count][program][round] = ns;
	run->passed[count][program] +=
	    (double)(after.passed.packets - before.passed.packets) / run->packets / run->rounds;
	return 0;
}

static int measure_all(struct bench_run *run)
{
	for (int count = 0; count < COUNTS; count++)
		for (int program = PASSING; program < PROGRAMS; program++)
			if (send_packets(run, count, program, STRIDE, 2 * source_counts[count]) < 0)
				return -EIO;
	for (int round = 0; round < run->rounds; round++)
		for (int count = 0; count < COUNTS; count++)
			for (int program = 0; program < PROGRAMS; program++)
				if (measure(run, round, count, program))
					return -EIO;
	return 0;
}

struct spread {
	double median, low, high; /* and the quartiles */
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct spread spread_of(const double *values, int n)
{
	double sorted[ROUNDS];

	memcpy(sorted, values, sizeof(*values) * (size_t)n);
	qsort(sorted, (size_t)n, sizeof(*sorted), compare);
	return (struct spread){.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2,
			       .low = sorted[n / 4],
			       .high = sorted[n - 1 - n / 4]};
}

/* A program's cost over the empty one, within each round. */
static struct spread cost(const struct bench_run *run, int count, int program)
{
	double over[ROUNDS];

	for (int round = 0; round < run->rounds; round++)
		over[round] = run->ns[count][program][round] - run->ns[count][EMPTY][round];
	return spread_of(over, run->rounds);
}

static bool noisy(const struct bench_run *run)
{
	for (int count = 0; count < COUNTS; count++) {
		struct spread empty = spread_of(run->ns[count][EMPTY], run->rounds);

		if (empty.high - empty.low > NOISY * empty.median)
			return true;
	}
	return false;
}

static void print(const struct bench_run *run)
{
	printf("%10s  %-9s %14s %22s  %s\n", "sources", "verdict", "ns per packet",
	       "over XDP_DROP (quartiles)", "passed");
	for (int count = 0; count < COUNTS; count++) {
		for (int program = 0; program < PROGRAMS; program++) {
			struct spread whole = spread_of(run->ns[count][program], run->rounds);
			struct spread over = cost(run, count, program);

			printf("%10u  %-9s %14.1f", source_counts[count], program_names[program],
			       whole.median);
			if (program != EMPTY)
				printf(" %9.1f (%.1f to %.1f)  %.2f %%", over.median, over.low, over.high,
				       100 * run->passed[count][program]);
			printf("\n");
		}
	}
	if (noisy(run))
		printf("warning: the empty program's own times spread by more than %.0f %%: the machine is "
		       "busy, and "
		       "these figures are rough\n",
		       100 * NOISY);
}

static double round_ns(double ns)
{
	return (double)(long long)(ns * 100 + (ns < 0 ? -0.5 : 0.5)) / 100;
}

static int write_json(const struct bench_run *run, const char *path)
{
	json_t *results = json_array(), *root;
	struct utsname kernel;
	int error;

	uname(&kernel);
	for (int count = 0; count < COUNTS; count++) {
		for (int program = PASSING; program < PROGRAMS; program++) {
			struct spread whole = spread_of(run->ns[count][program], run->rounds);
			struct spread over = cost(run, count, program);

			json_array_append_new(
			    results,
			    json_pack("{s:i, s:s, s:f, s:f, s:f, s:f, s:f}", "sources",
				      (int)source_counts[count], "verdict", program_names[program], "ns",
				      round_ns(whole.median), "over_drop_ns", round_ns(over.median),
				      "over_drop_ns_q1", round_ns(over.low), "over_drop_ns_q3",
				      round_ns(over.high), "passed_share", run->passed[count][program]));
		}
	}
	root = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:b, s:o}", "schema_version", 1, "kernel",
			 kernel.release, "clock", "precise", "store",
			 run->store == RL_STORE_LRU ? "lru" : "table", "table", TABLE, "rounds", run->rounds,
			 "packets", (int)run->packets, "noisy", noisy(run), "results", results);
	error = root ? json_dump_file(root, path, JSON_INDENT(2)) : -1;
	json_decref(root);
	return error ? complain(path, -EIO) : 0;
}

static int stay_on_this_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int main(int argc, const char **argv)
{
	static struct bench_run run = {.rounds = ROUNDS, .packets = PACKETS};
	const char *path = "build/bench.json";
	int quick = 0, lru = 0, error;
	struct poptOption options[] = {
	    {"json", 0, POPT_ARG_STRING, &path, 0, "where the figures go, build/bench.json", "FILE"},
	    {"quick", 0, POPT_ARG_NONE, &quick, 0, "few packets: to see that it works, not to compare", NULL},
	    {"lru", 0, POPT_ARG_NONE, &lru, 0, "the store `lru` instead of `table`", NULL},
	    POPT_AUTOHELP POPT_TABLEEND};
	poptContext context = poptGetContext("bench", argc, argv, options, 0);

	error = poptGetNextOpt(context);
	if (error < -1 || poptPeekArg(context)) {
		fprintf(stderr, "bench: %s\n",
			error < -1 ? poptStrerror(error)
				   : "takes no words, only --json FILE, --lru and --quick");
		poptFreeContext(context);
		return 1;
	}
	if (quick) {
		run.rounds = ROUNDS_MIN;
		run.packets = QUICK;
	}
	run.store = lru ? RL_STORE_LRU : RL_STORE_TABLE;
	error = stay_on_this_cpu();
	error = error ? error : load(&run);
	error = error ? error : measure_all(&run);
	if (!error) {
		print(&run);
		error = write_json(&run, path);
	}
	bench__destroy(run.driver);
	for (int count = 0; count < COUNTS; count++)
		for (int program = PASSING; program < PROGRAMS; program++)
			rl_xdp__destroy(run.limiter[count][program]);
	poptFreeContext(context);
	return error ? 2 : 0;
}

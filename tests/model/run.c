// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "generate.h"
#include "shrink.h"

#define PROGRESS 10000000 /* packets from one line to the next of a long run */

static __u64 read_number(const char *text)
{
	char *end;
	__u64 number;

	errno = 0;
	number = strtoull(text, &end, 0);
	if (errno || end == text || *end) {
		fprintf(stderr, "\"%s\" isn't a number; usage: [SEED] [PACKETS]\n", text);
		exit(2);
	}
	return number;
}

void run_arguments(struct run *run, int argc, char **argv)
{
	if (argc > 3) {
		fprintf(stderr, "usage: %s [SEED] [PACKETS]\n", argv[0]);
		exit(2);
	}
	if (argc > 1)
		run->seed = read_number(argv[1]);
	if (argc > 2)
		run->packets = read_number(argv[2]);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_difference(const struct run *run, const struct op *ops, size_t count, size_t was,
			     __u64 seed)
{
	printf("difference: %s\n", run->difference);
	printf("shrunk from %zu to %zu operations (seed %llu, this episode's %llu):\n", was, count, run->seed,
	       seed);
	for (size_t i = 0; i < count; i++) {
		printf("    ");
		ops_print(stdout, &ops[i]);
	}
	fflush(stdout);
}

static void found(struct run *run, struct backend *backend, struct op *ops, size_t count, __u64 seed)
{
	size_t shrunk;

	if (!run->quiet) {
		printf("difference at operation %zu of the episode with seed %llu: %s; shrinking\n", count,
		       seed, run->difference);
		fflush(stdout);
	}
	shrunk = shrink(backend, ops, count, run->shrinks, run->difference);
	if (!run->quiet)
		print_difference(run, ops, shrunk, count, seed);
	run->shrunk_count = shrunk;
}

static void account(struct run *run, const struct play *play)
{
	run->played += play->packets;
	run->changes += play->changes;
	run->clock += play->now - PLAY_CLOCK;
	for (int reason = 0; reason < RL_REASONS; reason++)
		run->reasons[reason] += play->reasons[reason];
	memcpy(run->difference, play->difference, PLAY_TEXT);
}

/* Plays into ops[]; returns how many of them when there is a difference, or 0. */
static size_t episode(struct run *run, struct backend *backend, struct op *ops, __u64 seed)
{
	struct generator generator = generate_open(seed, run->calm);
	struct play play;
	size_t i, count = 0;

	play_open(&play, backend);
	for (i = 0; i < run->episode && !count; i++) {
		generate(&generator, &play.model, play.now, &ops[i]);
		if (!play_op(&play, &ops[i]) ||
		    (i % run->compare == run->compare - 1 && !play_compare(&play)))
			count = i + 1;
	}
	if (!count && !play_compare(&play))
		count = i;
	account(run, &play);
	play_close(&play);
	return count;
}

static void progress(const struct run *run, const struct backend *backend, double began)
{
	double took = seconds() - began;

	if (run->quiet)
		return;
	printf("%llu of %llu packets, %s, %.0f s\n", run->played, run->packets, backend->name, took);
	fflush(stdout);
}

int run_episodes(struct run *run, struct backend *backend)
{
	struct op *ops = calloc(run->episode, sizeof(*ops));
	__u64 state = run->seed ^ run->played, told = run->played;
	double began = seconds();
	size_t count = 0;

	if (!ops) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	for (__u64 i = 0; run->played < run->packets && !count; i++) {
		__u64 seed = state + i * 0x9e3779b97f4a7c15ULL;

		count = episode(run, backend, ops, seed);
		if (count)
			found(run, backend, ops, count, seed);
		if (run->played - told >= PROGRESS) {
			told = run->played;
			progress(run, backend, began);
		}
	}
	free(ops);
	return count != 0;
}

void run_print(const struct run *run, const char *name)
{
	printf("%s: %llu packets, %llu changes, %.0f days of clock, seed %llu: %s\n", name, run->played,
	       run->changes, (double)run->clock / 86400e9, run->seed,
	       run->difference[0] ? run->difference : "no difference");
	for (int reason = 0; reason < RL_REASONS; reason++)
		if (run->reasons[reason])
			printf("    %-18s %llu\n", ops_reason_name((enum rl_reason)reason),
			       run->reasons[reason]);
	fflush(stdout);
}

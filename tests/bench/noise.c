// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "noise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_LOOKS 25
#define SETTLE_STILL 0.10 /* of one CPU: two ticks in a look */

static const struct timespec look = {.tv_nsec = 200000000};

/* The columns of /proc/stat's first line that aren't busy time, and the number of those that count; guests' is in user's. */
enum { IDLE = 3, IOWAIT = 4, COLUMNS = 8 };

static double busy_seconds(void)
{
	FILE *file = fopen("/proc/stat", "re");
	char line[512] = "", *at = line + strlen("cpu");
	unsigned long long ticks = 0;

	if (!file)
		return 0;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	if (strncmp(line, "cpu ", strlen("cpu ")) != 0)
		return 0;
	for (int column = 0; column < COLUMNS; column++) {
		unsigned long long value = strtoull(at, &at, 10);

		if (column != IDLE && column != IOWAIT)
			ticks += value;
	}
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double used_seconds(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage))
		return 0;
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

struct noise_mark noise_begin(const struct work *work)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (struct noise_mark){
	    .wall = (double)now.tv_sec + (double)now.tv_nsec / 1e9,
	    .busy = busy_seconds(),
	    .process = used_seconds(RUSAGE_SELF) + used_seconds(RUSAGE_CHILDREN),
	    .thread = used_seconds(RUSAGE_THREAD),
	    .clock = work_of_thread(work) / 1e9,
	    .ksoftirqd = (work_of_both(work) - work_of_thread(work)) / 1e9,
	};
}

double noise_others(const struct noise_mark *begin, const struct work *work)
{
	struct noise_mark end = noise_begin(work);
	double ours = end.process - begin->process + end.ksoftirqd - begin->ksoftirqd;
	double softirqs = (end.clock - begin->clock) - (end.thread - begin->thread);
	double others;

	if (softirqs > 0)
		ours += softirqs;
	others = (end.busy - begin->busy - ours) / (end.wall - begin->wall);
	return others > 0 ? others : 0;
}

void noise_settle(const struct work *work)
{
	for (int i = 0; i < SETTLE_LOOKS; i++) {
		struct noise_mark mark = noise_begin(work);

		nanosleep(&look, NULL);
		if (noise_others(&mark, work) <= SETTLE_STILL)
			return;
	}
}

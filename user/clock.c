// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND 1000000000LL

/* What this process's time namespace adds to the machine's monotonic clock, ns; 0 where there is none. The file has a
 * line "monotonic SECONDS NANOSECONDS" (time_namespaces(7)). */
static int64_t namespace_offset(void)
{
	static const char mark[] = "monotonic";
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	int64_t offset = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		char *end;

		if (strncmp(line, mark, strlen(mark)) != 0)
			continue;
		offset = strtoll(line + strlen(mark), &end, 10) * NS_PER_SECOND;
		offset += strtoll(end, NULL, 10);
	}
	if (file)
		fclose(file);
	return offset;
}

static __u64 clock_read(clockid_t clock)
{
	static _Thread_local bool known; /* no process changes its own time namespace */
	static _Thread_local int64_t offset;
	struct timespec now;

	if (!known)
		offset = namespace_offset();
	known = true;
	clock_gettime(clock, &now);
	return (__u64)(now.tv_sec * NS_PER_SECOND + now.tv_nsec - offset);
}

__u64 rl_clock_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

__u32 rl_clock_seconds(void)
{
	return (__u32)(clock_read(CLOCK_MONOTONIC_COARSE) / NS_PER_SECOND);
}

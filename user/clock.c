// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND 1000000000LL

/* What this process's time namespace adds to the machine's monotonic clock, ns; 0 where there is none. */
static int64_t namespace_offset(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	int64_t seconds, ns, offset = 0;
	char clock[32];

	while (file && fscanf(file, "%31s %" SCNd64 " %" SCNd64, clock, &seconds, &ns) ==
			   3) /* NOLINT(cert-err34-c) */
		if (!strcmp(clock, "monotonic"))
			offset = seconds * NS_PER_SECOND + ns;
	if (file)
		fclose(file);
	return offset;
}

__u64 rl_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)(now.tv_sec * NS_PER_SECOND + now.tv_nsec - namespace_offset());
}

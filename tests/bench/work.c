// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "work.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

static int task_clock(pid_t thread)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK};

	return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int is_named(const char *pid, const char *name)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = '\0';
	fclose(file);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

/* Its process id, or 0 where it can't be seen: in a process namespace of its own, say. */
static pid_t ksoftirqd_of(int cpu)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char name[32];
	pid_t pid = 0;

	snprintf(name, sizeof(name), "ksoftirqd/%d", cpu);
	while (dir && !pid && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_named(entry->d_name, name))
			pid = (pid_t)strtol(entry->d_name, NULL, 10);
	if (dir)
		closedir(dir);
	return pid;
}

int work_open(struct work *work, int cpu, struct rl_error *err)
{
	pid_t ksoftirqd = ksoftirqd_of(cpu);

	*work = (struct work)WORK_INIT;
	if (stay_on(cpu))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't stay on CPU %d: %s", cpu,
				    strerror(errno));
	work->thread = task_clock(0);
	if (work->thread < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "no clock of this thread's work: %s",
				    strerror(errno));
	work->ksoftirqd = ksoftirqd ? task_clock(ksoftirqd) : -1;
	return 0;
}

void work_close(struct work *work)
{
	if (work->thread >= 0)
		close(work->thread);
	if (work->ksoftirqd >= 0)
		close(work->ksoftirqd);
	*work = (struct work)WORK_INIT;
}

static double ns_of(int event)
{
	unsigned long long ns = 0;

	if (event < 0 || read(event, &ns, sizeof(ns)) != sizeof(ns))
		return 0;
	return (double)ns;
}

double work_of_thread(const struct work *work)
{
	return ns_of(work->thread);
}

double work_of_both(const struct work *work)
{
	return ns_of(work->thread) + ns_of(work->ksoftirqd);
}

int work_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : cpu;
}

int work_cpu_beside(int cpu)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (i != cpu && CPU_ISSET(i, &set))
			return i;
	return -1;
}

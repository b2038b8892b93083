// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * oldkernel.c - preloaded into the agent, makes this kernel answer as an older one would: RL_OLD=cookie knows no network
 * namespace cookies (before Linux 5.14), RL_OLD=tcx no TCX (before 6.6), RL_OLD=program refuses the packet program as its
 * verifier would.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TCX_INGRESS 46 /* BPF_TCX_INGRESS, missing from older headers */

static int is_old(const char *what)
{
	const char *old = getenv("RL_OLD");

	return old && !strcmp(old, what);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's own names are reserved to it. */
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
	if (level == SOL_SOCKET && name == 71 /* SO_NETNS_COOKIE */ && is_old("cookie")) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(SYS_getsockopt, fd, level, name, value,
								       len);
}

/* libbpf's way into the kernel: bpf(command, attributes, size). */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
long syscall(long number, ...)
{
	const union bpf_attr *attr;
	long first, rest[4];
	va_list args;

	va_start(args, number);
	first = va_arg(args, long);
	attr = va_arg(args, const union bpf_attr *);
	for (int i = 0; i < 4; i++)
		rest[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_bpf && is_old("tcx") &&
	    ((first == BPF_PROG_QUERY && attr->query.attach_type >= TCX_INGRESS) ||
	     (first == BPF_LINK_CREATE && attr->link_create.attach_type >= TCX_INGRESS))) {
		errno = EINVAL;
		return -1;
	}
	if (number == SYS_bpf && first == BPF_PROG_LOAD && is_old("program") &&
	    attr->prog_type == BPF_PROG_TYPE_XDP) {
		errno = EINVAL;
		return -1;
	}
	return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, first, attr, rest[0], rest[1],
								  rest[2], rest[3]);
}

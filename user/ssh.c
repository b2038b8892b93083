// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ssh.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "prefix.h"

#define PARENTS	    32 /* looked at before giving up */
#define ENVIRON_MAX (1 << 20)

static const char *const variables[] = {"SSH_CONNECTION=", "SSH_CLIENT="};

/* "203.0.113.9 40000 22 ..." to the address; a zone id ("fe80::1%eth0") is cut off. */
static bool client_parse(const char *value, struct rl_prefix *out)
{
	char address[64];
	struct rl_error ignored;

	snprintf(address, sizeof(address), "%.*s", (int)strcspn(value, " %"), value);
	return rl_prefix_parse(address, out, &ignored) == 0 && out->prefixlen != 0;
}

static bool environ_client(const char *block, size_t len, struct rl_prefix *out)
{
	for (size_t at = 0; at < len; at += strlen(block + at) + 1)
		for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
			if (!strncmp(block + at, variables[i], strlen(variables[i])))
				return client_parse(block + at + strlen(variables[i]), out);
	return false;
}

/* All of a file under /proc with a NUL behind it, or NULL. */
static char *proc_read(pid_t pid, const char *file, size_t *len)
{
	char path[64];
	RL_CLOSE int fd = -1;
	RL_FREE char *text = malloc(ENVIRON_MAX + 1);
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !text)
		return NULL;
	*len = 0;
	while (*len < ENVIRON_MAX && (got = read(fd, text + *len, ENVIRON_MAX - *len)) > 0)
		*len += (size_t)got;
	text[*len] = '\0';
	return RL_TAKE_PTR(text);
}

/* The parent's process id, from "pid (name) state ppid"; the name may hold anything but ends at the last
 * bracket. */
static pid_t parent_of(pid_t pid)
{
	size_t len;
	RL_FREE char *stat = proc_read(pid, "stat", &len);
	const char *end = stat ? strrchr(stat, ')') : NULL;
	char *next;
	long parent;

	if (!end || strlen(end) < 4)
		return 0;
	parent = strtol(end + 4, &next, 10);
	return next != end + 4 ? (pid_t)parent : 0;
}

bool rl_ssh_client(struct rl_prefix *out)
{
	pid_t pid = getpid();

	for (int i = 0; i < PARENTS && pid > 1; i++, pid = parent_of(pid)) {
		size_t len;
		RL_FREE char *block = proc_read(pid, "environ", &len);

		if (block && environ_client(block, len, out))
			return true;
	}
	return false;
}

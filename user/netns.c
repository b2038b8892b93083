// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "netns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "state.h"

struct found {
	ino_t *inodes; /* of /proc/PID/ns/net: most processes share a namespace, each is visited once */
	unsigned long long *cookies;
	size_t count;
};

static void found_free(struct found *found)
{
	free(found->inodes);
	free(found->cookies);
}

static bool found_has(const struct found *found, ino_t inode)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->inodes[i] == inode)
			return true;
	return false;
}

static int found_add(struct found *found, ino_t inode, __u64 cookie)
{
	ino_t *inodes = reallocarray(found->inodes, found->count + 1, sizeof(*inodes));
	unsigned long long *cookies;

	if (!inodes)
		return -ENOMEM;
	found->inodes = inodes;
	cookies = reallocarray(found->cookies, found->count + 1, sizeof(*cookies));
	if (!cookies)
		return -ENOMEM;
	found->cookies = cookies;
	found->inodes[found->count] = inode;
	found->cookies[found->count++] = cookie;
	return 0;
}

/* One namespace file. Such a file may vanish, or be no namespace at all: that is no error. */
static int visit(const char *path, int home, struct found *found, struct rl_error *err)
{
	RL_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	__u64 cookie;
	int rc;

	if (fd < 0 || fstat(fd, &st) || found_has(found, st.st_ino) || setns(fd, CLONE_NEWNET))
		return 0;
	rc = rl_state_cookie(&cookie, err);
	if (setns(home, CLONE_NEWNET))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't return to this network namespace: %s",
				    strerror(errno));
	if (!rc && found_add(found, st.st_ino, cookie))
		rc = rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	return rc;
}

/* Every entry of a folder, as folder/NAME/rest or folder/NAME. */
static int visit_all(const char *folder, const char *rest, int home, struct found *found,
		     struct rl_error *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];
	int rc = 0;

	while (dir && !rc && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", folder, entry->d_name, rest);
		rc = visit(path, home, found, err);
	}
	if (dir)
		closedir(dir);
	return rc;
}

int rl_netns_cookies(unsigned long long **out, size_t *count, struct rl_error *err)
{
	__attribute__((cleanup(found_free))) struct found found = {};
	RL_CLOSE int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int rc;

	if (home < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't open /proc/self/ns/net: %s",
				    strerror(errno));
	rc = visit("/proc/self/ns/net", home, &found, err);
	if (!rc)
		rc = visit_all("/proc", "/ns/net", home, &found, err);
	if (!rc)
		rc = visit_all("/run/netns", "", home, &found, err);
	if (rc)
		return rc;
	*out = RL_TAKE_PTR(found.cookies);
	*count = found.count;
	return 0;
}

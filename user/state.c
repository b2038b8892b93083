// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cap-ng.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>

#include "cleanup.h"
#include "hook.h"

#ifndef SO_NETNS_COOKIE /* Linux 5.14, missing from Debian 12's libc headers on some architectures */
#define SO_NETNS_COOKIE 71
#endif

#define LOCK_WAIT_MS 30000
#define LOCK_STEP_MS 20
#define LOCK_TRIES   1000

static const char *const map_names[] = {
    [RL_MAP_RANGES] = "rl_ranges",
    [RL_MAP_INDEX] = "rl_index",
    [RL_MAP_HEADS] = "rl_heads",
    [RL_MAP_LIMITS] = "rl_limits",
    [RL_MAP_OWN] = "rl_own",
    [RL_MAP_SLICES] = "rl_slices",
    [RL_MAP_SOURCES] = "rl_sources",
    [RL_MAP_ROWS] = "rl_rows",
    [RL_MAP_ADDRESS6] = "rl_address6",
    [RL_MAP_LOCKS] = "rl_locks",
    [RL_MAP_GROUPS] = "rl_groups",
    [RL_MAP_PENDING] = "rl_pending",
    [RL_MAP_LIMIT_COUNT] = "rl_limit_count",
    [RL_MAP_DEVICE_COUNT] = "rl_device_count",
    [RL_MAP_DEVICES] = "rl_devices",
    [RL_MAP_ND] = "rl_nd",
    [RL_MAP_SETTINGS] = "rl_settings",
    [RL_MAP_SLOTS] = "rl_slots",
    [RL_MAP_CELLS] = "rl_cells",
    [RL_MAP_NAMES] = "rl_names",
    [RL_MAP_META] = "rl_meta",
};
_Static_assert(sizeof(map_names) / sizeof(map_names[0]) == RL_MAPS, "a map without a name");

const char *rl_map_name(enum rl_map map)
{
	return map_names[map];
}

int rl_state_read_failed(struct rl_error *err, enum rl_map map, int code)
{
	return rl_error_set(err, RL_ERROR_KERNEL, code, "can't read the map %s: %s", rl_map_name(map),
			    strerror(code));
}

__u32 rl_map_entries(const struct rl_state *state, enum rl_map map)
{
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);

	return bpf_obj_get_info_by_fd(state->map[map], &info, &length) ? 0 : info.max_entries;
}

int rl_possible_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus > 0 ? cpus : 1;
}

int rl_privilege_check(const char *what, struct rl_error *err)
{
	if (capng_get_caps_process())
		return rl_error_set(err, RL_ERROR_KERNEL, EPERM, "can't read this process's capabilities");
	/* Root's, since what it makes in bpffs is trusted by its owner. CAP_PERFMON lets the verifier allow the pointer
	 * arithmetic that it forbids to the unprivileged. */
	if (geteuid() == 0 && (capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN) ||
			       (capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) &&
				capng_have_capability(CAPNG_EFFECTIVE, CAP_PERFMON) &&
				capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN))))
		return 0;
	return rl_error_set(
	    err, RL_ERROR_KERNEL, EPERM,
	    "%s must run as root, with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: run it with sudo",
	    what);
}

int rl_state_cookie(__u64 *out, struct rl_error *err)
{
	RL_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*out);
	struct utsname name;
	__u64 cookie;

	if (fd < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't make a socket: %s", strerror(errno));
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len)) {
		uname(&name);
		return rl_error_set(
		    err, RL_ERROR_KERNEL, ENOPROTOOPT,
		    "kernel %s is too old: it has no network namespace cookies; rl-agent needs Linux 6.1 or "
		    "later (`rl-agent probe` tells what is missing)",
		    name.release);
	}
	*out = cookie;
	return 0;
}

bool rl_state_bpffs_mounted(void)
{
	struct statfs fs;

	return statfs(RL_BPFFS, &fs) == 0 && (unsigned int)fs.f_type == BPF_FS_MAGIC;
}

bool rl_state_mounts_private(void)
{
	struct stat self, init;

	/* Not to be told means that it may be so. */
	return stat("/proc/self/ns/mnt", &self) || stat("/proc/1/ns/mnt", &init) ||
	       self.st_ino != init.st_ino;
}

/*
 * `ip netns exec NAME` mounts a sysfs of its own over /sys, with NAME for its source, and so hides bpffs. The last mount
 * on /sys is the one that is seen.
 */
static bool sys_is_of_ip_netns(char *name, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *entry;
	char path[128];

	snprintf(name, size, "sysfs");
	while (mounts && (entry = getmntent(mounts)))
		if (!strcmp(entry->mnt_dir, "/sys") && !strcmp(entry->mnt_type, "sysfs"))
			snprintf(name, size, "%s", entry->mnt_fsname);
	if (mounts)
		endmntent(mounts);
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	return strcmp(name, "sysfs") != 0 && access(path, F_OK) == 0;
}

static int bpffs_refuse_hidden(struct rl_error *err)
{
	char name[64];

	if (!sys_is_of_ip_netns(name, sizeof(name)))
		return 0;
	return rl_error_set(
	    err, RL_ERROR_KERNEL, ENOTSUP,
	    "%s is hidden here: `ip netns exec` mounts its own /sys, and what is pinned in there vanishes "
	    "when "
	    "its command ends; enter the network namespace with `nsenter --net=/run/netns/%s rl-agent ...`",
	    RL_BPFFS, name);
}

static int lock_wait(int fd, const char *path, struct rl_error *err)
{
	const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};

	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited += LOCK_STEP_MS) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't lock %s: %s", path,
					    strerror(errno));
		if (waited >= LOCK_WAIT_MS)
			return rl_error_set(err, RL_ERROR_KERNEL, EBUSY,
					    "another rl-agent has been at work for %d s and holds the lock "
					    "on %s: wait for it, or "
					    "find it with `fuser -v %s`",
					    LOCK_WAIT_MS / 1000, path, path);
		nanosleep(&step, NULL);
	}
	return 0;
}

/* Under a lock of its own: two that mount at once would hide the first one's pins under the second's mount. */
static int bpffs_mount(struct rl_error *err)
{
	RL_CLOSE int fd = -1;
	int rc;

	if (rl_state_bpffs_mounted())
		return 0;
	rc = bpffs_refuse_hidden(err);
	if (rc)
		return rc;
	fd = open(RL_BPFFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, errno,
		    "%s, where the BPF file system belongs, can't be opened: %s; is sysfs mounted on /sys, "
		    "and the kernel built with BPF?",
		    RL_BPFFS, strerror(errno));
	rc = lock_wait(fd, RL_BPFFS, err);
	if (rc || rl_state_bpffs_mounted())
		return rc;
	if (mount("bpf", RL_BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return rl_error_set(
		    err, RL_ERROR_KERNEL, errno,
		    "no BPF file system on %s, and mounting it failed: %s; try `mount -t bpf bpf %s`",
		    RL_BPFFS, strerror(errno), RL_BPFFS);
	return 0;
}

/* Open a folder of ours and make sure that nobody else can have put anything into it. */
static int folder_open(const char *path, int *out, struct rl_error *err)
{
	RL_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno == EACCES)
		return rl_error_set(err, RL_ERROR_KERNEL, EACCES, "%s can't be read: run rl-agent with sudo",
				    path);
	if (fd < 0)
		return rl_error_set(err, RL_ERROR_KERNEL, errno,
				    "%s isn't a folder that can be opened (%s): something else has taken the "
				    "name; move it away",
				    path, strerror(errno));
	if (fstat(fd, &st))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != 0 || (st.st_mode & 022))
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EPERM,
		    "%s belongs to user %u with mode %03o, expected root's and writable by root alone: it "
		    "may hold "
		    "somebody else's maps, so nothing in it is used; look at it, then remove it",
		    path, st.st_uid, st.st_mode & 0777);
	*out = RL_TAKE_FD(fd);
	return 0;
}

static int folder_make(const char *path, bool *created, struct rl_error *err)
{
	RL_CLOSE int fd = -1;

	if (mkdir(path, 0700) == 0)
		*created = true;
	else if (errno != EEXIST)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't make the folder %s: %s", path,
				    strerror(errno));
	return folder_open(path, &fd, err);
}

static int not_attached(struct rl_error *err)
{
	return rl_error_set(
	    err, RL_ERROR_NOT_ATTACHED, ENOENT,
	    "not attached to any device of this network namespace: `rl-agent attach DEV` does that");
}

static void state_path(struct rl_state *state, __u64 cookie)
{
	state->cookie = cookie;
	snprintf(state->path, sizeof(state->path), RL_BASE "/%" PRIu64, (uint64_t)cookie);
}

const char *rl_state_link_path(const struct rl_state *state, __u32 slot, char buf[RL_PATH_LEN])
{
	snprintf(buf, RL_PATH_LEN, "%.100s/device-%u", state->path, slot);
	return buf;
}

const char *rl_state_map_path(const struct rl_state *state, enum rl_map map, char buf[RL_PATH_LEN])
{
	snprintf(buf, RL_PATH_LEN, "%.100s/%s", state->path, map_names[map] + strlen("rl_"));
	return buf;
}

/* A detach takes the meta map first: without it one is at work, with it somebody took a map out of the state. */
static int map_missing(const struct rl_state *state, const char *missing, struct rl_error *err)
{
	char path[RL_PATH_LEN];

	if (access(rl_state_map_path(state, RL_MAP_META, path), F_OK))
		return not_attached(err);
	return rl_error_set(
	    err, RL_ERROR_KERNEL, EIO,
	    "the pinned map %s is missing, so the state is damaged, though what is attached goes on enforcing: "
	    "`rl-agent detach --all` in its network namespace ends that, and attach starts anew",
	    missing);
}

static int maps_open(struct rl_state *state, struct rl_error *err)
{
	char path[RL_PATH_LEN];

	for (int i = 0; i < RL_MAPS; i++) {
		rl_state_map_path(state, i, path);
		state->map[i] = bpf_obj_get(path);
		if (state->map[i] < 0 && errno == ENOENT)
			return map_missing(state, path, err);
		if (state->map[i] < 0)
			return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't open the pinned map %s: %s",
					    path, strerror(errno));
	}
	return 0;
}

/* The version is read before anything else is looked at: another version's maps may have any shape. */
static int abi_check(const struct rl_state *state, struct rl_error *err)
{
	char path[RL_PATH_LEN];
	RL_CLOSE int fd = -1;
	struct bpf_map_info info = {};
	__u32 len = sizeof(info), zero = 0;
	RL_FREE struct rl_meta *meta = NULL;

	rl_state_map_path(state, RL_MAP_META, path);
	fd = bpf_obj_get(path);
	if (fd < 0 && errno == ENOENT)
		return not_attached(err);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't open the pinned map %s: %s", path,
				    strerror(errno));
	meta = calloc(1, info.value_size > sizeof(*meta) ? info.value_size : sizeof(*meta));
	if (!meta || bpf_map_lookup_elem(fd, &zero, meta))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the pinned map %s: %s", path,
				    strerror(errno));
	if (meta->abi == RL_ABI_VERSION && info.value_size == sizeof(*meta))
		return 0;
	return rl_error_set(err, RL_ERROR_KERNEL, EPROTO,
			    "the state in %s was made by another release of rl-agent (layout %u, this one "
			    "speaks %u): use that "
			    "release, or give up its policy with `rl-agent detach --all` in its network "
			    "namespace, and attach again",
			    state->path, meta->abi, RL_ABI_VERSION);
}

int rl_state_open_cookie(__u64 cookie, struct rl_state *state, struct rl_error *err)
{
	RL_STATE struct rl_state opened = RL_STATE_INIT;
	RL_CLOSE int base = -1, folder = -1;
	int rc;

	if (!rl_state_bpffs_mounted()) {
		rc = bpffs_refuse_hidden(err);
		return rc ? rc : not_attached(err);
	}
	state_path(&opened, cookie);
	rc = folder_open(RL_BASE, &base, err);
	if (!rc)
		rc = folder_open(opened.path, &folder, err);
	if (rc == -ENOENT)
		return not_attached(err);
	if (!rc)
		rc = abi_check(&opened, err);
	if (!rc)
		rc = maps_open(&opened, err);
	if (rc)
		return rc;
	*state = opened;
	opened = (struct rl_state)RL_STATE_INIT;
	return 0;
}

int rl_state_open(struct rl_state *state, struct rl_error *err)
{
	__u64 cookie;
	int rc = rl_privilege_check("this", err);

	if (!rc)
		rc = rl_state_cookie(&cookie, err);
	return rc ? rc : rl_state_open_cookie(cookie, state, err);
}

int rl_state_meta(const struct rl_state *state, struct rl_meta *out, struct rl_error *err)
{
	struct rl_meta meta;
	__u32 only = 0;

	if (bpf_map_lookup_elem(state->map[RL_MAP_META], &only, &meta))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't read the state's settings: %s",
				    strerror(errno));
	*out = meta;
	return 0;
}

/* "memlock:\t4096", as the kernel tells it of a map's descriptor. */
static __u64 map_memory(int fd)
{
	static const char field[] = "memlock:";
	char path[RL_PATH_LEN], line[128];
	__u64 bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, field, strlen(field)))
			bytes = strtoull(line + strlen(field), NULL, 10);
	fclose(file);
	return bytes;
}

__u64 rl_state_memory(const struct rl_state *state)
{
	__u64 bytes = 0;

	for (int map = 0; map < RL_MAPS; map++)
		if (state->map[map] >= 0)
			bytes += map_memory(state->map[map]);
	return bytes;
}

int rl_state_meta_write(const struct rl_state *state, const struct rl_meta *meta, struct rl_error *err)
{
	__u32 only = 0;

	if (bpf_map_update_elem(state->map[RL_MAP_META], &only, meta, BPF_ANY))
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't write the state's settings: %s",
				    strerror(errno));
	return 0;
}

void rl_state_close(struct rl_state *state)
{
	for (int i = 0; i < RL_MAPS; i++) {
		rl_cleanup_close(&state->map[i]);
		state->map[i] = -1;
	}
}

int rl_state_list(__u64 **out, size_t *count, struct rl_error *err)
{
	RL_FREE __u64 *cookies = NULL;
	RL_CLOSE int fd = -1;
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;
	int rc = rl_state_bpffs_mounted() ? folder_open(RL_BASE, &fd, err) : bpffs_refuse_hidden(err);

	if (rc && rc != -ENOENT)
		return rc;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (dir)
		fd = -1; /* the stream owns it */
	while (dir && (entry = readdir(dir))) {
		char *end;
		__u64 cookie = strtoull(entry->d_name, &end, 10);
		__u64 *grown;

		if (*end || end == entry->d_name)
			continue;
		grown = reallocarray(cookies, n + 1, sizeof(*cookies));
		if (!grown) {
			closedir(dir);
			return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
		}
		cookies = grown;
		cookies[n++] = cookie;
	}
	if (dir)
		closedir(dir);
	*out = RL_TAKE_PTR(cookies);
	*count = n;
	return 0;
}

/* Unlink everything in the folder that has one of our names. Devices are detached first: dropping a link's last
 * reference alone lets the kernel do that later, and an attach right behind would find the device taken. */
static void state_clear(const struct rl_state *state)
{
	char path[RL_PATH_LEN];

	for (__u32 slot = 0; slot < RL_MAX_DEVICES; slot++)
		rl_hook_detach(rl_state_link_path(state, slot, path));
	for (int i = RL_MAPS - 1; i >= 0;
	     i--) { /* meta first: from here on the state is not a finished one */
		rl_state_map_path(state, i, path);
		unlink(path);
	}
}

static void folder_clear(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

int rl_state_remove(const struct rl_state *state, bool unknown, struct rl_error *err)
{
	state_clear(state);
	if (unknown)
		folder_clear(state->path);
	if (rmdir(state->path) && errno != ENOENT)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, errno,
		    "%s can't be removed (%s): something in it isn't rl-agent's; look at it, then remove it",
		    state->path, strerror(errno));
	return 0;
}

int rl_state_find(struct rl_state *state, struct rl_error *err)
{
	RL_CLOSE int base = -1, folder = -1;
	__u64 cookie;
	int rc = rl_state_cookie(&cookie, err);

	if (rc)
		return rc;
	state_path(state, cookie);
	rc = folder_open(RL_BASE, &base, err);
	if (!rc)
		rc = folder_open(state->path, &folder, err);
	return rc == -ENOENT ? not_attached(err) : rc;
}

void rl_state_tidy(void)
{
	rmdir(RL_BASE); /* fails where another namespace has state: as it should */
}

int rl_state_prepare(struct rl_state *state, bool *created, struct rl_error *err)
{
	char path[RL_PATH_LEN];
	RL_CLOSE int meta = -1;
	bool made = false;
	__u64 cookie;
	int rc = rl_state_cookie(&cookie, err);

	if (rc)
		return rc;
	state_path(state, cookie);
	rc = folder_make(state->path, &made, err);
	if (rc)
		return rc == -ENOENT ? rl_error_set(err, RL_ERROR_KERNEL, ENOENT, "%s vanished", state->path)
				     : rc;
	rl_state_map_path(state, RL_MAP_META, path);
	meta = bpf_obj_get(path);
	if (meta < 0 && errno != ENOENT)
		return rl_error_set(err, RL_ERROR_KERNEL, errno, "can't open the pinned map %s: %s", path,
				    strerror(errno));
	*created = meta < 0;
	if (*created)
		state_clear(state); /* what an attach that was killed left */
	return 0;
}

/* Open the base folder, made if it is missing and `create`. -ENOENT without a text: there is none. */
static int base_open(bool create, int *out, struct rl_error *err)
{
	bool made;
	int rc;

	if (create) {
		rc = bpffs_mount(err);
		if (rc)
			return rc == -ENOENT ? -ENODEV : rc;
		rc = folder_make(RL_BASE, &made, err);
		if (rc && rc != -ENOENT)
			return rc;
	} else if (!rl_state_bpffs_mounted()) {
		rc = bpffs_refuse_hidden(err);
		return rc ? rc : -ENOENT;
	}
	return folder_open(RL_BASE, out, err);
}

static bool same_folder(int fd, const char *path)
{
	struct stat mine, there;

	return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

int rl_state_lock(bool create, int *fd, struct rl_error *err)
{
	for (int try = 0; try < LOCK_TRIES; try++) {
		RL_CLOSE int held = -1;
		int rc = base_open(create, &held, err);

		if (rc == -ENOENT && create)
			continue; /* a detach removed it between making and opening */
		if (rc == -ENOENT)
			return not_attached(err);
		if (!rc)
			rc = lock_wait(held, RL_BASE, err);
		if (rc)
			return rc;
		/* The last detach removes the folder: a lock on the removed one guards nothing. */
		if (same_folder(held, RL_BASE)) {
			*fd = RL_TAKE_FD(held);
			return 0;
		}
	}
	return rl_error_set(
	    err, RL_ERROR_KERNEL, EBUSY,
	    "%s is made and removed by other rl-agents all the time: try again when they are done", RL_BASE);
}

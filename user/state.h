/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - the pinned state of a network namespace: where it is, whether it may be trusted, its maps and its
 * links.
 *
 *   /sys/fs/bpf/rl-agent/            0700, root's; the lock (flock on this folder)
 *       <netns cookie>/              one folder a network namespace: two eth0 in two namespaces never meet
 *           heads limits own ...     the maps (enum rl_map)
 *           meta                     pinned last: a folder without it is unfinished, the next attach clears it
 *           device-<slot>            the link of the device in that slot of rl_devices (attached.h)
 *
 * /sys/fs/bpf is writable by everybody, so owner and mode of the folders are checked before anything in them
 * is used.
 */
#ifndef RL_STATE_H
#define RL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include "../bpf/rl_abi.h"
#include "error.h"

#define RL_BPFFS    "/sys/fs/bpf"
#define RL_BASE	    RL_BPFFS "/rl-agent"
#define RL_PATH_LEN 128

enum rl_map {
	RL_MAP_RANGES,
	RL_MAP_INDEX,
	RL_MAP_HEADS,
	RL_MAP_LIMITS,
	RL_MAP_OWN,
	RL_MAP_SLICES,
	RL_MAP_SOURCES,
	RL_MAP_ROWS,
	RL_MAP_ADDRESS6,
	RL_MAP_LOCKS,
	RL_MAP_GROUPS,
	RL_MAP_PENDING,
	RL_MAP_LIMIT_COUNT,
	RL_MAP_DEVICE_COUNT,
	RL_MAP_DEVICES,
	RL_MAP_ND,
	RL_MAP_SETTINGS,
	RL_MAP_SLOTS,
	RL_MAP_CELLS,
	RL_MAP_NAMES,
	RL_MAP_META,
	RL_MAPS,
};

/* The map's name in the BPF object ("rl_heads"). */
const char *rl_map_name(enum rl_map map);

/* RL_ERROR_KERNEL, as rl_error_set() returns it. code: the kernel's errno, positive */
int rl_state_read_failed(struct rl_error *err, enum rl_map map, int code);

struct rl_state {
	__u64 cookie;		/* SO_NETNS_COOKIE */
	char path[RL_PATH_LEN]; /* its folder */
	int map[RL_MAPS];	/* file descriptors, -1 where not open */
};

#define RL_STATE_INIT                                                                                        \
	{                                                                                                    \
		.map = { [0 ... RL_MAPS - 1] = -1 }                                                          \
	}
#define RL_STATE __attribute__((cleanup(rl_state_close)))

/* The current network namespace's cookie. -ENOPROTOOPT with a text on kernels without it. */
int rl_state_cookie(__u64 *out, struct rl_error *err);

/*
 * Open the pinned state of the current network namespace. RL_ERROR_NOT_ATTACHED (-ENOENT) where there is
 * none, RL_ERROR_KERNEL for missing privilege, another ABI version, an untrusted owner, or a bpffs that `ip
 * netns exec` hides.
 */
int rl_state_open(struct rl_state *state, struct rl_error *err);

/* The same for a folder given by its cookie, for `status --all` and `detach --stale`. */
int rl_state_open_cookie(__u64 cookie, struct rl_state *state, struct rl_error *err);

void rl_state_close(struct rl_state *state);

/* What the state as a whole remembers. Written under the lock. */
int rl_state_meta(const struct rl_state *state, struct rl_meta *out, struct rl_error *err);
int rl_state_meta_write(const struct rl_state *state, const struct rl_meta *meta, struct rl_error *err);

/* Bytes that the kernel has set aside for the state's maps, by its own count; 0 where it doesn't tell. */
__u64 rl_state_memory(const struct rl_state *state);

/* The cookies of every namespace with state. *out is allocated; the caller frees it. No state at all: 0 of
 * them. */
int rl_state_list(__u64 **out, size_t *count, struct rl_error *err);

/* The folder alone, without opening anything in it: for removing a state that can't be opened. -ENOENT: there
 * is none. */
int rl_state_find(struct rl_state *state, struct rl_error *err);

/* Make what attach needs: bpffs, base folder, namespace folder (*created tells whether it is new or was
 * unfinished). */
int rl_state_prepare(struct rl_state *state, bool *created, struct rl_error *err);

/*
 * Remove the state's folder with everything of ours in it; a link that is still attached is detached by that.
 * With `unknown`, what has none of our names goes too: the way out of another release's state.
 */
int rl_state_remove(const struct rl_state *state, bool unknown, struct rl_error *err);

/* This process has a mount namespace that the machine's first process doesn't share: what it mounts ends with
 * it. */
bool rl_state_mounts_private(void);

/* Remove the base folder if nothing is left in it. */
void rl_state_tidy(void);

/*
 * One rl-agent at a time changes anything: wait up to 30 s for the lock. *fd is closed to let it go. Where
 * the base folder doesn't exist: -ENOENT and RL_ERROR_NOT_ATTACHED, or it is made if `create`.
 */
int rl_state_lock(bool create, int *fd, struct rl_error *err);

/* How many elements a map has room for; 0 where that can't be read. */
__u32 rl_map_entries(const struct rl_state *state, enum rl_map map);

/* How many values a per-CPU map's element has: possible CPUs, not those online. At least 1. */
int rl_possible_cpus(void);

/* Is the BPF file system mounted where it belongs? */
bool rl_state_bpffs_mounted(void);

/* Is this process root's, with what working on BPF takes (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or CAP_SYS_ADMIN)? `what` is who
 * needs it, for the text. */
int rl_privilege_check(const char *what, struct rl_error *err);

/* The path of a pinned map: its name without "rl_". Returns buf. */
const char *rl_state_map_path(const struct rl_state *state, enum rl_map map, char buf[RL_PATH_LEN]);

/* The path of a device slot's pinned link. Returns buf. */
const char *rl_state_link_path(const struct rl_state *state, __u32 slot, char buf[RL_PATH_LEN]);

#endif

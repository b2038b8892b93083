// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hook.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include "cleanup.h"

/* From Linux 6.6's linux/bpf.h, which Debian 12's is older than. */
#define TCX_INGRESS   ((enum bpf_attach_type)46) /* BPF_TCX_INGRESS */
#define LINK_TYPE_TCX 11 /* BPF_LINK_TYPE_TCX; its info begins with the ifindex, as XDP's does */

/* Ours among a device's filters: before all others, and "rl". */
#define FILTER_PRIORITY 1
#define FILTER_HANDLE	0x726c

#define MOST_PROGRAMS 64 /* TCX programs of a device: the kernel's limit */

const char *rl_hook_name(enum rl_hook hook)
{
	static const char *const names[] = {
	    [RL_HOOK_XDP] = "xdp", [RL_HOOK_TCX] = "tcx", [RL_HOOK_CLSACT] = "clsact"};

	return hook < RL_HOOKS ? names[hook] : "unknown";
}

/* There is no device -1: a kernel that knows the hook says so, another that it doesn't know it. */
bool rl_hook_has_tcx(void)
{
	__u32 ids[1], count = 1, flags;

	return bpf_prog_query(-1, TCX_INGRESS, 0, &flags, ids, &count) == -ENODEV;
}

/* ---- XDP and TCX ---- */

static int link_attach(int program_fd, const struct rl_device *device, const char *pin, bool *pinned)
{
	__u32 xdp = device->mode == RL_MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = device->hook == RL_HOOK_XDP ? xdp : 0);
	RL_CLOSE int link = bpf_link_create(program_fd, (int)device->ifindex,
					    device->hook == RL_HOOK_XDP ? BPF_XDP : TCX_INGRESS, &options);

	*pinned = true;
	if (link < 0)
		return link;
	*pinned = !bpf_obj_pin(link, pin);
	return *pinned ? 0 : -errno;
}

static bool runs_xdp(__u32 ifindex, __u32 program_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	return bpf_xdp_query((int)ifindex, 0, &query) == 0 &&
	       (query.drv_prog_id == program_id || query.skb_prog_id == program_id ||
		query.hw_prog_id == program_id || query.prog_id == program_id);
}

static bool runs_tcx(__u32 ifindex, __u32 program_id)
{
	__u32 ids[MOST_PROGRAMS], count = MOST_PROGRAMS, flags;

	if (bpf_prog_query((int)ifindex, TCX_INGRESS, 0, &flags, ids, &count))
		return false;
	for (__u32 i = 0; i < count; i++)
		if (ids[i] == program_id)
			return true;
	return false;
}

/* Its link says the index, but not whose namespace's: does the device of this index here run this program? */
static bool link_read(int fd, bool own, struct rl_attached *out)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	bool here;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) ||
	    (info.type != BPF_LINK_TYPE_XDP && info.type != LINK_TYPE_TCX))
		return false;
	out->link_id = info.id;
	out->program_id = info.prog_id;
	out->ifindex = info.xdp.ifindex; /* 0 once the device is gone */
	here = info.type == LINK_TYPE_TCX ? runs_tcx(out->ifindex, out->program_id)
					  : runs_xdp(out->ifindex, out->program_id);
	out->where = !out->ifindex ? RL_GONE : own && !here ? RL_MOVED : RL_HERE;
	return true;
}

/* ---- clsact ---- */

/* The id of the program in our place among the device's filters; 0: there is none. */
static __u32 filter_program(__u32 ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);

	return bpf_tc_query(&hook, &options) ? 0 : options.prog_id;
}

static int filter_put(int program_fd, __u32 ifindex, __u32 flags)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY,
		    .prog_fd = program_fd, .flags = flags);

	return bpf_tc_attach(&hook, &options);
}

static void filter_remove(__u32 ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = FILTER_HANDLE, .priority = FILTER_PRIORITY);

	bpf_tc_detach(&hook, &options);
}

/* A program's id; 0 where it is none. */
static __u32 program_id(int fd)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

/* The qdisc stays when the filter goes: others may have put filters there meanwhile. */
static int filter_attach(int program_fd, const struct rl_device *device, const char *pin, bool *pinned)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)device->ifindex, .attach_point = BPF_TC_INGRESS);
	int rc = bpf_tc_hook_create(&hook);

	*pinned = true;
	if (rc && rc != -EEXIST)
		return rc;
	*pinned = !bpf_obj_pin(program_fd, pin);
	if (!*pinned)
		return -errno;
	rc = filter_put(program_fd, device->ifindex, 0);
	if (rc)
		unlink(pin);
	return rc;
}

/* The pin of the program that comes next, while that isn't in its place yet. */
static void next_pin(const char *pin, char out[RL_PATH_LEN])
{
	snprintf(out, RL_PATH_LEN, "%s-next", pin);
}

/* Killed on the way, the filter's program is one of the two that are pinned. */
static int filter_replace(int program_fd, const struct rl_device *device, const char *pin)
{
	char next[RL_PATH_LEN];
	int rc;

	next_pin(pin, next);
	unlink(next);
	if (bpf_obj_pin(program_fd, next))
		return -errno;
	rc = filter_put(program_fd, device->ifindex, BPF_TC_F_REPLACE);
	if (!rc && rename(next, pin))
		rc = -errno;
	unlink(next);
	return rc;
}

/* The program that is pinned, or was about to be, runs on the device of the record, or no longer. */
static bool filter_read(const char *pin, int fd, bool own, struct rl_attached *out)
{
	char next[RL_PATH_LEN];
	RL_CLOSE int next_fd = -1;
	__u32 runs;

	out->link_id = 0;
	out->program_id = program_id(fd);
	out->ifindex = out->device.ifindex;
	out->where = RL_HERE;
	if (!own)
		return true; /* another namespace's filters can't be asked for */
	next_pin(pin, next);
	next_fd = bpf_obj_get(next);
	runs = filter_program(out->ifindex);
	if (runs && (runs == out->program_id || (next_fd >= 0 && runs == program_id(next_fd)))) {
		out->program_id = runs;
		return true;
	}
	out->where = RL_GONE;
	out->ifindex = 0;
	return true;
}

/* Wherever it runs: its id is nobody else's, in any namespace. */
static void filter_detach(int fd)
{
	struct if_nameindex *list = if_nameindex();
	__u32 id = program_id(fd);

	for (struct if_nameindex *i = list; id && i && i->if_index; i++)
		if (filter_program(i->if_index) == id)
			filter_remove(i->if_index);
	if_freenameindex(list);
}

/* ---- whichever ---- */

int rl_hook_attach(int program_fd, const struct rl_device *device, const char *pin, bool *pinned)
{
	if (device->hook == RL_HOOK_CLSACT)
		return filter_attach(program_fd, device, pin, pinned);
	return link_attach(program_fd, device, pin, pinned);
}

int rl_hook_replace(int program_fd, const struct rl_device *device, const char *pin)
{
	RL_CLOSE int link = -1;

	if (device->hook == RL_HOOK_CLSACT)
		return filter_replace(program_fd, device, pin);
	link = bpf_obj_get(pin);
	if (link < 0)
		return link;
	return bpf_link_update(link, program_fd, NULL) ? -errno : 0;
}

bool rl_hook_read(const char *pin, bool own, struct rl_attached *out)
{
	RL_CLOSE int fd = bpf_obj_get(pin);

	if (fd < 0)
		return false;
	if (out->device.hook == RL_HOOK_CLSACT)
		return filter_read(pin, fd, own, out);
	/* Twice, since an attach may replace the program between the two questions. */
	return link_read(fd, own, out) && (out->where != RL_MOVED || link_read(fd, own, out));
}

int rl_hook_detach(const char *pin)
{
	RL_CLOSE int fd = bpf_obj_get(pin), next_fd = -1;
	char next[RL_PATH_LEN];

	next_pin(pin, next);
	next_fd = bpf_obj_get(next);
	if (next_fd >= 0)
		filter_detach(next_fd);
	/* What is no link, or one whose device is gone, isn't detached by that. */
	if (fd >= 0 && bpf_link_detach(fd))
		filter_detach(fd);
	unlink(next);
	return unlink(pin) && errno != ENOENT ? -errno : 0;
}

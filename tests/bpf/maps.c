// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "maps.h"

#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/policy.h"
#include "../../user/ranges.h"
#include "rl_path.skel.h"

static struct rl_path *skel;
struct rl_state maps = RL_STATE_INIT;

void maps_make(__u32 slots, __u32 cells)
{
	struct rl_meta meta = {.abi = RL_ABI_VERSION, .next_limit_id = 1};
	struct rl_error err;

	if (geteuid())
		cr_skip_test("BPF maps need root");
	skel = rl_path__open();
	cr_assert_not_null(skel);
	bpf_program__set_autoload(skel->progs.rl_xdp, false);
	bpf_map__set_max_entries(skel->maps.rl_ranges, rl_ranges_blocks(slots));
	bpf_map__set_max_entries(skel->maps.rl_index, 2 * slots);
	bpf_map__set_max_entries(skel->maps.rl_heads, slots);
	bpf_map__set_max_entries(skel->maps.rl_own, slots);
	bpf_map__set_max_entries(skel->maps.rl_limit_count, slots);
	bpf_map__set_max_entries(skel->maps.rl_slots, slots);
	bpf_map__set_max_entries(skel->maps.rl_limits, cells);
	bpf_map__set_max_entries(skel->maps.rl_cells, cells);
	cr_assert_eq(rl_path__load(skel), 0);
	for (int i = 0; i < RL_MAPS; i++)
		maps.map[i] =
		    bpf_map__fd(bpf_object__find_map_by_name(skel->obj, rl_map_name((enum rl_map)i)));
	cr_assert_eq(rl_state_meta_write(&maps, &meta, &err), 0, "%s", err.text);
}

void maps_make_few(void)
{
	maps_make(MAPS_SLOTS, MAPS_CELLS);
}

void maps_end(void)
{
	rl_path__destroy(skel);
	skel = NULL;
}

__u32 maps_claimed(enum rl_map which)
{
	__u32 count = which == RL_MAP_SLOTS ? bpf_map__max_entries(skel->maps.rl_slots)
					    : bpf_map__max_entries(skel->maps.rl_cells);
	__u32 n = 0;

	for (__u32 i = 0; i < count; i++) {
		struct rl_claim claim;

		cr_assert_eq(bpf_map_lookup_elem(maps.map[which], &i, &claim), 0);
		n += claim.id != 0;
	}
	return n;
}

void maps_attach(__u32 slot, const char *name)
{
	struct rl_device device = {.flags = RL_DEVICE_ATTACHED};

	snprintf(device.name, sizeof(device.name), "%s", name);
	device.limit = rl_policy_device(&maps, name);
	cr_assert_eq(bpf_map_update_elem(maps.map[RL_MAP_DEVICES], &slot, &device, BPF_ANY), 0);
}

__u32 maps_device_limit(__u32 slot)
{
	struct rl_device device;

	cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_DEVICES], &slot, &device), 0);
	return device.limit;
}

struct rl_settings maps_settings(void)
{
	struct rl_settings out;
	__u32 only = 0;

	cr_assert_eq(bpf_map_lookup_elem(maps.map[RL_MAP_SETTINGS], &only, &out), 0);
	return out;
}

/* On to the next stop of this kind. False: the process is done. */
static bool go_on(pid_t pid, int request)
{
	int status;

	cr_assert_eq(ptrace(request, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return !WIFEXITED(status);
}

bool maps_killed_at(void (*act)(void), int n, int further)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		act();
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < n + further; i++)
		if (!go_on(pid, i < n ? PTRACE_SYSCALL : PTRACE_SINGLESTEP))
			return false;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return true;
}

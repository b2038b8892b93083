// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_zero.bpf.c - zero the counters of slots that are about to have a new owner.
 *
 * User space has to copy zeros for each CPU into the kernel, element by element: of a million slots, a quarter of a second;
 * a program takes a tenth of that. Run by `apply` for many slots (BPF_PROG_TYPE_SYSCALL: Linux 5.14; bpf_loop: 5.17;
 * bpf_map_lookup_percpu_elem: 5.19), attached nowhere.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rl_zero.h"

/* maps.bpf.h says what it is. The one that is pinned takes its place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rl_limit_count);
} rl_limit_count SEC(".maps");

const volatile __u32 rl_cpus = 1; /* possible ones */

static long zero_slot(__u32 i, const struct rl_zero_request *request)
{
	__u32 slot = request->from + i;

	for (__u32 cpu = 0; cpu < rl_cpus; cpu++) {
		struct rl_limit_count *count = bpf_map_lookup_percpu_elem(&rl_limit_count, &slot, cpu);

		if (count)
			*count = (struct rl_limit_count){};
	}
	return 0;
}

SEC("syscall")
int rl_zero(struct rl_zero_request *asked)
{
	struct rl_zero_request request = *asked; /* what a callback is given is on the stack */

	bpf_loop(request.count, zero_slot, &request, 0);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

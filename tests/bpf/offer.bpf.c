// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * offer.bpf.c - moves the packet program's clock between its packets: many steps of time in one test run,
 * which costs the kernel milliseconds to set up.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 clock_at; /* where rl_clock_now stands in the packet program's .bss */
__u64 step;		       /* ns between floods */
__u32 each;		       /* packets in a flood */
__u32 left;		       /* of this flood */

/* The packet program's .bss: its descriptor is put in place of this map. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} packet_bss SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

SEC("xdp.frags")
int offer(struct xdp_md *ctx)
{
	__u32 zero = 0;
	char *bss = bpf_map_lookup_elem(&packet_bss, &zero);

	if (!bss)
		return XDP_ABORTED;
	if (!left) {
		*(__u64 *)(bss + clock_at) += step;
		left = each;
	}
	left--;
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

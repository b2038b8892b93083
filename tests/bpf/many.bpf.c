// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * many.bpf.c - a crowd of sources before the packet program: each packet gets a source that was never there, but for one in
 * so many, which is a known source's; and a time of its own. A test run sends one buffer again and again.
 */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Four bytes of the source in a frame without tags: all of an IPv4 one, bits 32 to 63 of an IPv6 one. */
#define SOURCE_AT 26

const volatile __u32 clock_at; /* where rl_clock_now stands in the packet program's .bss */
__u64 step;		       /* ns before each packet */
__u32 fresh;		       /* the next source that was never there */
__u32 stride;		       /* from it to the one behind */
__u32 known;		       /* the first of those that were */
__u32 knowns;		       /* how many they are */
__u32 every;		       /* one packet in so many is theirs; 0: none */
__u32 sent;

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
int many(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;
	__u32 zero = 0, source;
	char *bss = bpf_map_lookup_elem(&packet_bss, &zero);

	if (!bss || data + SOURCE_AT + 4 > end)
		return XDP_ABORTED;
	*(__u64 *)(bss + clock_at) += step;
	sent++;
	if (every && knowns && sent % every == 0) {
		source = known + sent / every % knowns;
	} else {
		source = fresh;
		fresh += stride;
	}
	*(__u32 *)(data + SOURCE_AT) = bpf_htonl(source);
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench.bpf.c - gives each packet a source of its own and hands it to the program that is measured. A test
 * run sends one buffer again and again, so without this every map access would hit the cache.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define SOURCE_AT 26	     /* Ethernet, and the source's place in an IPv4 header */
#define FIRST	  0x0a000000 /* 10.0.0.0 */

__u32 sources; /* how many; 10.0.0.0 and up */
__u32 program; /* index in `programs` */
__u32
    stride; /* 0: pick at random; else visit all, this far apart, which must share no divisor with sources */
__u32 position; /* the last one visited */
__u64 random_state = 88172645463325252ULL;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

static __u32 pick(void)
{
	if (stride) {
		position = (__u32)(((__u64)position + stride) % sources);
		return position;
	}
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (__u32)((random_state >> 32) * sources >> 32);
}

SEC("xdp.frags")
int bench(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;

	if (data + SOURCE_AT + 4 > end || !sources)
		return XDP_ABORTED;
	*(__u32 *)(data + SOURCE_AT) = bpf_htonl(FIRST + pick());
	bpf_tail_call(ctx, &programs, program);
	return XDP_ABORTED;
}

/* What the rest is measured against. */
SEC("xdp.frags")
int empty(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

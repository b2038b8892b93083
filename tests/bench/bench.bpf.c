// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench.bpf.c - the driver: gives each packet a source of its own, and hands it to the program that is measured (`bench`), or
 * sends it out of a device (`generate`). A test run sends one buffer again and again, so without this every map access would hit
 * the cache.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "traffic.h"

/* Where it is in a frame without tags: all of an IPv4 source, bits 32 to 63 of an IPv6 one. */
#define SOURCE_AT	 26
#define IP4_CHECKSUM_AT	 24
#define UDP4_CHECKSUM_AT 40
#define UDP6_CHECKSUM_AT 60

#define FILL_STRIDE 7368787U	/* prime */
#define NEW_STRIDE  0x9e3779b9U /* odd, so that it takes 2^32 steps to come back */

const volatile char compiler[64] = "clang " __clang_version__;

__u32 traffic; /* enum traffic */
__u32 sources; /* how many; 0: nothing is sent */
__u32 sent;    /* by bench */
__u32 step;    /* from one source to the next */
__u32 family;
__u32 program;	/* index in `programs`, for bench */
__u32 port;	/* index in `ports`, for generate */
__u32 position; /* the source that TRAFFIC_FILL visited last */
__u32 fresh;	/* likewise TRAFFIC_NEW */
__u64 random_state = 88172645463325252ULL;

/* What is measured. Written by the benchmark, one place for each subject; read by bench. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TRAFFIC_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* Devices that frames are sent out of. Written by the benchmark, one place for each subject; read by generate. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, TRAFFIC_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

static __u32 next_new(void)
{
	fresh += NEW_STRIDE;
	if (fresh >> TRAFFIC_BITS == TRAFFIC_FIRST >> TRAFFIC_BITS)
		fresh += NEW_STRIDE; /* which leads out of it */
	return fresh;
}

static __u32 next_source(void)
{
	if (traffic == TRAFFIC_NEW)
		return next_new();
	if (traffic == TRAFFIC_FILL) {
		position = (__u32)(((__u64)position + FILL_STRIDE) % sources);
		return TRAFFIC_FIRST + position * step;
	}
	random_state ^= random_state << 13; /* xorshift64 (Marsaglia, Xorshift RNGs, 2003) */
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return TRAFFIC_FIRST + (__u32)((random_state >> 32) * sources >> 32) * step;
}

/* A checksum over a word that changed (RFC 1624, equation 3). */
static void checksum_change(__u16 *checksum, __u32 from, __u32 to)
{
	__u32 sum = (__u16) ~*checksum;

	sum += (__u16)~from + (__u16)(~from >> 16) + (__u16)to + (to >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*checksum = (__u16)~sum;
}

SEC("xdp.frags")
int bench(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;

	if (data + SOURCE_AT + 4 > end || !sources)
		return XDP_ABORTED;
	sent++;
	*(__u32 *)(data + SOURCE_AT) = bpf_htonl(next_source());
	bpf_tail_call(ctx, &programs, program);
	return XDP_ABORTED;
}

/* Frames come back as they were sent, so their checksums are brought up to date from source to source. */
SEC("xdp")
int generate(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;
	__u32 from, to;

	if (data + UDP4_CHECKSUM_AT + 2 > end || !sources)
		return XDP_ABORTED;
	from = *(__u32 *)(data + SOURCE_AT);
	to = bpf_htonl(next_source());
	*(__u32 *)(data + SOURCE_AT) = to;
	if (family == 4) {
		checksum_change((__u16 *)(data + IP4_CHECKSUM_AT), from, to);
		checksum_change((__u16 *)(data + UDP4_CHECKSUM_AT), from, to);
	} else {
		if (data + UDP6_CHECKSUM_AT + 2 > end)
			return XDP_ABORTED;
		checksum_change((__u16 *)(data + UDP6_CHECKSUM_AT), from, to);
	}
	return (int)bpf_redirect_map(&ports, port, XDP_ABORTED);
}

/* What the rest is measured against. */
SEC("xdp.frags")
int empty(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

/* Before whatever works behind the XDP hook: with a program, a veth takes frames in cheaper than without one. */
SEC("xdp.frags")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

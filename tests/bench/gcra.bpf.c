// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * gcra.bpf.c - the limiter that comes to mind first: the kernel's LRU hash of sources, and in it the time at which the source's
 * bucket is full again (GCRA). No lock and no compare-and-swap: two CPUs may admit a packet twice. An evicted source has a full
 * bucket. It is there to be compared with.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

const volatile __u64 interval; /* ns that a packet takes to refill; set before load */
const volatile __u64 burst;    /* ns that a full bucket holds */

/* Sources, and when their buckets will be full, ns. Written and read by the packet path alone. Full: the least recently used is
 * evicted. Sized before load. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sources4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct in6_addr);
	__type(value, __u64);
} sources6 SEC(".maps");

/* Packets that were dropped [0] and that passed [1]. Written by the packet path, read by the benchmark. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} verdicts SEC(".maps");

static int admit(void *sources, const void *key)
{
	__u64 now = bpf_ktime_get_ns(), full, *known = bpf_map_lookup_elem(sources, key);

	if (!known) {
		full = now + interval;
		bpf_map_update_elem(sources, key, &full, BPF_ANY);
		return 1;
	}
	full = (*known > now ? *known : now) + interval;
	if (full - now > burst)
		return 0;
	*known = full;
	return 1;
}

static int end_with(__u32 passed)
{
	__u64 *count = bpf_map_lookup_elem(&verdicts, &passed);

	if (count)
		(*count)++;
	return passed ? XDP_PASS : XDP_DROP;
}

SEC("xdp")
int gcra(struct xdp_md *ctx)
{
	char *data = (char *)(long)ctx->data, *end = (char *)(long)ctx->data_end;
	const struct ethhdr *eth = (const struct ethhdr *)data;

	if (data + sizeof(*eth) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		const struct iphdr *ip = (const struct iphdr *)(eth + 1);
		__u32 source;

		if ((const char *)(ip + 1) > end)
			return XDP_PASS;
		source = ip->saddr;
		return end_with((__u32)admit(&sources4, &source));
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		const struct ipv6hdr *ip = (const struct ipv6hdr *)(eth + 1);
		struct in6_addr source;

		if ((const char *)(ip + 1) > end)
			return XDP_PASS;
		source = ip->saddr;
		return end_with((__u32)admit(&sources6, &source));
	}
	return XDP_PASS;
}

/* A frame drops whatever its verdict, as in dropping.bpf.c. */
SEC("xdp")
__attribute__((flatten)) int gcra_dropping(struct xdp_md *ctx)
{
	gcra(ctx);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

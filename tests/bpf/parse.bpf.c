// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * parse.bpf.c - the whole parser in a program that keeps all it finds. What the packet program doesn't use of
 * it, the compiler removes there; here the verifier sees the walk to its end.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "rl_parse.h"

struct rl_packet parsed;
int parsed_result;

SEC("xdp.frags")
int parse(struct xdp_md *ctx)
{
	struct rl_packet packet = {};

	parsed_result = rl_parse((const void *)(long)ctx->data, (const void *)(long)ctx->data_end, &packet);
	parsed = packet;
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_xdp.bpf.c - the XDP entry point: one program for each attached device, over maps that all of them share.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "admit.bpf.h"

/* "frags": frames of several buffers (jumbo frames, LRO) reach it too; headers are in the first buffer. */
SEC("xdp.frags")
int rl_xdp(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *data_end = (const void *)(long)ctx->data_end;
	enum rl_reason reason = rl_handle(data, data_end, (__u32)bpf_xdp_get_buff_len(ctx));

	return rl_reason_drops(reason) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

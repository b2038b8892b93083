// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_xdp.bpf.c - the XDP entry point: one program for each attached device, over maps that all of them share.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "admit.bpf.h"

/*
 * Loaded with BPF_F_XDP_HAS_FRAGS (Linux 5.18), so that frames of several buffers (jumbo frames, LRO) reach it too; their
 * headers are in the first buffer. The flag is the loader's to set: a section named "xdp.frags" would force it, and
 * `attach --no-frags` is there for drivers that refuse it.
 */
SEC("xdp")
int rl_xdp(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *data_end = (const void *)(long)ctx->data_end;
	enum rl_reason reason = rl_handle(data, data_end, (__u32)bpf_xdp_get_buff_len(ctx));

	return rl_reason_drops(reason) ? XDP_DROP : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

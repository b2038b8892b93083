// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rl_xdp.bpf.c - the XDP entry point: one program for each attached device, over maps that all of them share.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "access.bpf.h"
#include "rl_admit.h"

const volatile __u32 rl_device_slot; /* the attached device's slot in the per-device maps; set before load */

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
	__u32 zero = 0;
	struct rl_job *job = bpf_map_lookup_elem(&rl_scratch, &zero);

	if (!job)
		return XDP_PASS; /* never so: said for the verifier */
	return rl_reason_drops(
		   rl_handle(job, data, data_end, rl_device_slot, (__u32)bpf_xdp_get_buff_len(ctx)))
		   ? XDP_DROP
		   : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

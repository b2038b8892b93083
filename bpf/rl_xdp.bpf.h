/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_xdp.bpf.h - the XDP entry point: packets as they come in, one program for each attached device.
 *
 * Loaded with BPF_F_XDP_HAS_FRAGS (Linux 5.18), so that frames of several buffers (jumbo frames, LRO) reach it too; their
 * headers are in the first buffer. The flag is the loader's to set: a section named "xdp.frags" would force it, and
 * `attach --no-frags` is there for drivers that refuse it.
 */
#ifndef RL_XDP_BPF_H
#define RL_XDP_BPF_H

SEC("xdp")
int rl_xdp(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *data_end = (const void *)(long)ctx->data_end;
	__u32 zero = 0;
	struct rl_job *job = bpf_map_lookup_elem(&rl_scratch, &zero);

	if (!job)
		return XDP_PASS; /* never so: said for the verifier */
	job->segments = 1;
	job->len = (__u32)bpf_xdp_get_buff_len(ctx);
	return rl_reason_drops(rl_handle(job, data, data_end, rl_device_slot)) ? XDP_DROP : XDP_PASS;
}

#endif

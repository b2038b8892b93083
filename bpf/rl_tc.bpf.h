/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_tc.bpf.h - the TC entry point: packets as they come in, on devices without native XDP. It works as a TCX program (Linux 6.6)
 * and as a classifier of clsact in direct-action mode; both understand the same verdicts: other programs behind it have their say.
 */
#ifndef RL_TC_BPF_H
#define RL_TC_BPF_H

#include <linux/pkt_cls.h>

#define RL_TC_HEADERS 256 /* bytes that have to be readable in one piece, where the packet has so many */
#define RL_TC_NEXT    TC_ACT_UNSPEC
#define RL_TC_DROP    TC_ACT_SHOT

/*
 * Bring headers that are in pages of their own to where they can be read, and say what the packet took on the wire. A function of
 * its own, since the stacks of those that call each other add up.
 */
RL_FUNCTION int rl_tc_measure(struct __sk_buff *skb, struct rl_job *job)
{
	__u32 wanted = skb->len < RL_TC_HEADERS ? skb->len : RL_TC_HEADERS, tag = skb->vlan_present ? 4 : 0,
	      headers;

	if (!job)
		return 0; /* never so: said for the verifier */
	if ((long)skb->data_end - (long)skb->data < wanted)
		bpf_skb_pull_data(skb, wanted);
	job->segments = 1;
	job->len = skb->len + tag; /* which the device took off */
	if (!skb->gso_size)
		return 0;
	headers = rl_merged_headers((const void *)(long)skb->data, (const void *)(long)skb->data_end);
	job->segments = rl_merged_segments(headers, skb->len, skb->gso_segs, skb->gso_size);
	job->len = rl_merged_len(headers + tag, job->len, job->segments);
	return 0;
}

SEC("?tc") /* loaded where it is asked for */
int rl_tc(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct rl_job *job = bpf_map_lookup_elem(&rl_scratch, &zero);

	if (!job)
		return RL_TC_NEXT; /* never so: said for the verifier */
	rl_tc_measure(skb, job);
	return rl_reason_drops(rl_handle(job, (const void *)(long)skb->data,
					 (const void *)(long)skb->data_end, rl_device_slot))
		   ? RL_TC_DROP
		   : RL_TC_NEXT;
}

#endif

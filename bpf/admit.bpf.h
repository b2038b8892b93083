/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * admit.bpf.h - the way of a packet: parse, classify, admit, count. Every entry point is a thin shell around
 * rl_handle(), which returns why the packet passes or drops.
 */
#ifndef ADMIT_BPF_H
#define ADMIT_BPF_H

#include "clock.bpf.h"
#include "maps.bpf.h"
#include "rl_parse.h"
#include "rl_bucket.h"
#include "classify.bpf.h"
#include "sources.bpf.h"
#include "count.bpf.h"

const volatile __u32 rl_device_slot; /* the attached device's slot in the per-device maps; set before load */
struct rl_limit rl_nd_limit;	     /* neighbour discovery's budget; set before load, then only read */

/* Is there room in the device's budget for neighbour discovery? Without it, such a packet is one like any
 * other. */
RL_INLINE bool rl_nd_admit(__u64 now)
{
	const struct rl_limit *budget = &rl_nd_limit;
	__u32 slot = rl_device_slot;
	struct rl_bucket *bucket = bpf_map_lookup_elem(&rl_nd, &slot);
	__u64 stored;

	if (!bucket)
		return true;
	return rl_bucket_charge(bucket, budget, RL_PACKETS, rl_bucket_cost(budget, RL_PACKETS, 0), now,
				&stored) == RL_GCRA_ADMIT;
}

/* The packet against its source's limit. */
RL_INLINE enum rl_reason rl_admit(const struct rl_packet *packet, __u32 len)
{
	const struct rl_limit *limit;
	struct rl_source *source;
	enum rl_reason reason;

	if ((packet->flags & RL_PACKET_ND) && rl_nd_admit(rl_now()))
		return RL_PASS_ND;
	limit = rl_classify(packet);
	if (!limit)
		return packet->flags & RL_PACKET_MALFORMED ? RL_PASS_MALFORMED : RL_PASS_NO_LIMIT;
	source = rl_source_get(packet, limit);
	if (!source) {
		rl_count_limit(limit, RL_PASS_NO_BUCKET, len);
		return RL_PASS_NO_BUCKET;
	}
	switch (rl_bucket_admit(source, limit, len, rl_now())) {
	case RL_GCRA_ADMIT:
		reason = packet->flags & RL_PACKET_MALFORMED ? RL_PASS_MALFORMED : RL_PASS_LIMIT;
		break;
	case RL_GCRA_REJECT:
	case RL_GCRA_REPAIR:
		reason = RL_DROP_SOURCE;
		break;
	default:
		reason = RL_DROP_CONTENDED;
		break;
	}
	rl_count_source(source, reason, len);
	rl_count_limit(limit, reason, len);
	return reason;
}

RL_INLINE enum rl_reason rl_judge(const void *data, const void *data_end, __u32 len)
{
	struct rl_packet packet = {};
	__u32 slot = rl_device_slot;
	const struct rl_device *device = bpf_map_lookup_elem(&rl_devices, &slot);

	if (device && (device->flags & RL_DEVICE_PAUSED))
		return RL_PASS_PAUSED;
	switch (rl_parse(data, data_end, &packet)) {
	case RL_PARSE_IP:
		return rl_admit(&packet, len);
	case RL_PARSE_NOT_IP:
		return RL_PASS_NOT_IP;
	default:
		return RL_PASS_UNPARSED;
	}
}

/* Judge and count one frame. [data, data_end) starts at the Ethernet header; len is its length on the wire.
 */
RL_INLINE enum rl_reason rl_handle(const void *data, const void *data_end, __u32 len)
{
	enum rl_reason reason = rl_judge(data, data_end, len);

	rl_count_device(rl_device_slot, reason, len);
	return reason;
}

#endif

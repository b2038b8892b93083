/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * classify.bpf.h - a packet's source to its limit: longest prefix match.
 */
#ifndef CLASSIFY_BPF_H
#define CLASSIFY_BPF_H

#include "maps.bpf.h"
#include "rl_parse.h"

/* The limit that applies to the packet's source, or NULL. It stays readable until the program returns (RCU).
 */
RL_INLINE const struct rl_limit *rl_classify(const struct rl_packet *packet)
{
	struct rl_prefix key = {
	    .prefixlen = packet->family == 4 ? RL_PREFIX_FAMILY_BITS + 32 : RL_PREFIX_FAMILY_BITS + 128,
	    .family = packet->family,
	};

	__builtin_memcpy(key.addr, packet->src, sizeof(key.addr));
	return bpf_map_lookup_elem(&rl_policy, &key);
}

#endif

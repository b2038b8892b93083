/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sources.bpf.h - the store of per-source buckets: find the packet's, or make it.
 */
#ifndef SOURCES_BPF_H
#define SOURCES_BPF_H

#include "maps.bpf.h"
#include "rl_parse.h"

/*
 * The buckets that the packet's source has under the limit, or NULL where the table gives none. Two CPUs that
 * meet the same new source make one entry: only one BPF_NOEXIST insert succeeds, and both then look up what
 * it made.
 */
RL_INLINE struct rl_source *rl_source_get(const struct rl_packet *packet, const struct rl_limit *limit)
{
	struct rl_source_key key = {.limit_id = limit->id, .family = packet->family};
	const struct rl_source fresh = {};
	struct rl_source *source;
	__u32 slot = limit->slot;

	if (limit->flags & RL_LIMIT_OWN_BUCKET)
		return bpf_map_lookup_elem(&rl_own, &slot);

	/* An IPv6 host owns its /64 and can pick any address in it: that prefix is the source. */
	__builtin_memcpy(key.addr, packet->src, 8);
	source = bpf_map_lookup_elem(&rl_sources, &key);
	if (source)
		return source;
	bpf_map_update_elem(&rl_sources, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rl_sources, &key);
}

#endif

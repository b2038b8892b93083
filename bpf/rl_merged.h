/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_merged.h - what several packets took on the wire that the kernel has merged into one (GRO), or will only cut into packets as
 * it sends it (GSO): each of them with headers of its own. Pure; compiles on both sides.
 *
 * Sources: RFC 791, RFC 8200, RFC 9293 (data offset), IEEE 802.1Q; Documentation/networking/segmentation-offloads.rst of Linux.
 */
#ifndef RL_MERGED_H
#define RL_MERGED_H

#include "rl_parse.h"

#define RL_MERGED_BYTES                                                                                      \
	((1U << 21) - 1)	 /* the most that rl_gcra_cost() takes; the kernel merges 512 KiB at most */
#define RL_MERGED_SEGMENTS 65535 /* likewise, by GSO_MAX_SEGS */

/* Bytes of TCP's or UDP's header at p; 0: it can't be read, or is another. */
RL_INLINE __u32 rl_merged_transport(__u8 proto, const __u8 *p, const __u8 *end)
{
	if (proto == 17)
		return 8;
	return proto == 6 && p + 13 <= end ? (__u32)(p[12] >> 4) * 4 : 0;
}

/*
 * Bytes of the headers that each packet has of its own, in the frame [data, end). Of a tunnel's the outer ones, and of IPv6's
 * extension headers none: some dozen bytes are missing then, of each packet.
 */
RL_INLINE __u32 rl_merged_headers(const void *data, const void *data_end)
{
	const __u8 *start = data, *p = start, *end = data_end;
	__u16 type;

	if (p + 14 > end)
		return 0;
	type = rl_be16(p + 12);
	p += 14;
	for (int i = 0; i < RL_VLAN_TAGS && (type == 0x8100 || type == 0x88a8) && p + 4 <= end; i++) {
		type = rl_be16(p + 2);
		p += 4;
	}
	if (type == 0x0800 && p + 20 <= end) {
		__u32 header = (__u32)(p[0] & 0x0f) * 4;

		return (__u32)(p - start) + header + rl_merged_transport(p[9], p + header, end);
	}
	if (type == 0x86dd && p + 40 <= end)
		return (__u32)(p - start) + 40 + rl_merged_transport(p[6], p + 40, end);
	return (__u32)(p - start);
}

/*
 * Packets on the wire. headers: rl_merged_headers(); len: bytes of the frame as it is; segments, size: the kernel's gso_segs, 0
 * where nobody has counted them (packets of a guest), and gso_size, bytes of payload in each; 0: not merged.
 */
RL_INLINE __u32 rl_merged_segments(__u32 headers, __u32 len, __u32 segments, __u32 size)
{
	if (!size || headers >= len)
		return 1;
	if (!segments)
		segments = (len - headers + size - 1) / size;
	if (segments > RL_MERGED_SEGMENTS)
		segments = RL_MERGED_SEGMENTS;
	return segments ? segments : 1;
}

/* Bytes on the wire, of all of them. headers: that each has of its own and the frame has once */
RL_INLINE __u32 rl_merged_len(__u32 headers, __u32 len, __u32 segments)
{
	len += (segments - 1) * headers;
	return len < RL_MERGED_BYTES ? len : RL_MERGED_BYTES;
}

#endif

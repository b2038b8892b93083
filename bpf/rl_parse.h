/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_parse.h - a frame's bytes to struct rl_packet. Pure; compiles on both sides, and is fuzzed natively.
 *
 * One rule decides what is read: a source address that can be read is limited, whatever else is wrong with
 * the packet. So the walk over IPv6 extension headers may give up at any point without changing the verdict;
 * it only finds out what the packet carries. It stops at the first header it doesn't know, which is then the
 * payload: GRE, SCTP and ESP are payload, not headers with a length to follow.
 *
 * Sources: RFC 791, RFC 8200 (extension headers), RFC 4302 (AH), RFC 4861 and RFC 6980 (neighbour discovery),
 * IEEE 802.1Q and 802.1ad.
 */
#ifndef RL_PARSE_H
#define RL_PARSE_H

#include <linux/types.h>

#include "rl_abi.h"
#include "rl_bytes.h"

#define RL_VLAN_TAGS   2 /* walked; one more and the frame is unparsed */
#define RL_EXT_HEADERS 8 /* walked; one more is taken for the payload */

enum rl_parse_result {
	RL_PARSE_IP,	   /* the source is known */
	RL_PARSE_NOT_IP,   /* neither IPv4 nor IPv6 */
	RL_PARSE_UNPARSED, /* truncated before the end of the source address, or too many VLAN tags */
};

enum rl_packet_flags {
	RL_PACKET_MALFORMED =
	    1 << 0, /* the fixed header contradicts itself (version, header length) or is cut */
	RL_PACKET_FRAGMENT = 1 << 1, /* any fragment, the first included */
	RL_PACKET_PORTS = 1 << 2,    /* sport and dport are set: TCP or UDP, not a fragment */
	RL_PACKET_ND = 1 << 3,	/* neighbour discovery that a router can't have forwarded: hop limit 255 */
	RL_PACKET_SYN = 1 << 4, /* TCP, not a fragment, with SYN and without ACK */
};

struct rl_packet {
	__u8 family; /* 4 or 6 */
	__u8 flags;  /* enum rl_packet_flags */
	__u8 proto;  /* IANA protocol number of the payload, after the extension headers that were walked */
	__u8 pad;
	__u16 sport; /* host byte order */
	__u16 dport;
	__u8 src[16]
	    __attribute__((aligned(8))); /* network byte order; IPv4 in the first four bytes, the rest zero */
};

/* The ports of TCP and UDP stand at the same place; their first four bytes are enough. SYN and ACK: RFC 9293, byte 13. */
RL_INLINE void rl_parse_ports(const __u8 *p, const __u8 *end, struct rl_packet *packet)
{
	if (packet->proto != 6 && packet->proto != 17)
		return;
	if ((packet->flags & (RL_PACKET_FRAGMENT | RL_PACKET_MALFORMED)) || p + 4 > end)
		return;
	packet->sport = rl_be16(p);
	packet->dport = rl_be16(p + 2);
	packet->flags |= RL_PACKET_PORTS;
	if (packet->proto == 6 && p + 14 <= end && (p[13] & 0x12) == 0x02)
		packet->flags |= RL_PACKET_SYN;
}

RL_INLINE enum rl_parse_result rl_parse_ipv4(const __u8 *p, const __u8 *end, struct rl_packet *packet)
{
	__u32 header;

	if (p + 16 > end)
		return RL_PARSE_UNPARSED;
	packet->family = 4;
	packet->proto = p[9];
	rl_copy4(packet->src, p + 12);
	header = (__u32)(p[0] & 0x0f) * 4;
	if (p[0] >> 4 != 4 || header < 20 || p + 20 > end) {
		packet->flags |= RL_PACKET_MALFORMED;
		return RL_PARSE_IP;
	}
	if (rl_be16(p + 6) & 0x3fff) /* more fragments, or an offset */
		packet->flags |= RL_PACKET_FRAGMENT;
	rl_parse_ports(p + header, end, packet);
	return RL_PARSE_IP;
}

/*
 * The extension headers that are walked, by their type: RL_EXT and the unit, in bytes, that their length field counts in; 0:
 * any other header (RFC 8200 section 4; a fragment header has no length field, AH's counts in four bytes, RFC 4302). A table,
 * since a verifier follows each case of a switch through all of the headers that may come behind it.
 */
#define RL_EXT	    0x80
#define RL_EXT_UNIT 0x0f
static const __u8 rl_ext[256] = {
    [0] = RL_EXT | 8,	/* hop-by-hop options */
    [43] = RL_EXT | 8,	/* routing */
    [44] = RL_EXT | 0,	/* fragment */
    [51] = RL_EXT | 4,	/* authentication */
    [60] = RL_EXT | 8,	/* destination options */
    [135] = RL_EXT | 8, /* mobility */
    [139] = RL_EXT | 8, /* host identity protocol */
    [140] = RL_EXT | 8, /* shim6 */
};

RL_INLINE enum rl_parse_result rl_parse_ipv6(const __u8 *p, const __u8 *end, struct rl_packet *packet)
{
	__u8 hop_limit;

	if (p + 24 > end)
		return RL_PARSE_UNPARSED;
	packet->family = 6;
	rl_copy16(packet->src, p + 8);
	if (p[0] >> 4 != 6) {
		packet->flags |= RL_PACKET_MALFORMED;
		return RL_PARSE_IP;
	}
	packet->proto = p[6];
	hop_limit = p[7];
	if (p + 40 > end) {
		packet->flags |= RL_PACKET_MALFORMED;
		return RL_PARSE_IP;
	}
	p += 40;
	/* Only directly behind the header: a fragmented one must be ignored by its receiver anyway (RFC
	 * 6980). */
	if (packet->proto == 58 && hop_limit == 255 && p + 2 <= end && p[0] >= 133 && p[0] <= 137 &&
	    p[1] == 0)
		packet->flags |= RL_PACKET_ND;
	for (int i = 0; i < RL_EXT_HEADERS; i++) {
		__u32 ext = rl_ext[packet->proto];

		if (!ext || p + 8 > end)
			break;
		if (packet->proto == 44 && (rl_be16(p + 2) & 0xfff9)) /* an offset, or more fragments */
			packet->flags |= RL_PACKET_FRAGMENT;
		packet->proto = p[0];
		p += 8 + p[1] * (ext & RL_EXT_UNIT);
		if (packet->flags & RL_PACKET_FRAGMENT)
			break; /* what follows may belong to another fragment's headers */
	}
	rl_parse_ports(p, end, packet);
	return RL_PARSE_IP;
}

/*
 * Parse the frame [data, end), which begins with its Ethernet header. *packet is zeroed by the caller; it is
 * filled in for RL_PARSE_IP and of no meaning otherwise.
 */
RL_INLINE enum rl_parse_result rl_parse(const void *data, const void *data_end, struct rl_packet *packet)
{
	const __u8 *p = data, *end = data_end;
	__u16 type;

	if (p + 14 > end)
		return RL_PARSE_UNPARSED;
	type = rl_be16(p + 12);
	p += 14;
	for (int i = 0; i < RL_VLAN_TAGS && (type == 0x8100 || type == 0x88a8); i++) {
		if (p + 4 > end)
			return RL_PARSE_UNPARSED;
		type = rl_be16(p + 2);
		p += 4;
	}
	if (type == 0x0800)
		return rl_parse_ipv4(p, end, packet);
	if (type == 0x86dd)
		return rl_parse_ipv6(p, end, packet);
	if (type == 0x8100 || type == 0x88a8)
		return RL_PARSE_UNPARSED;
	return RL_PARSE_NOT_IP;
}

#endif

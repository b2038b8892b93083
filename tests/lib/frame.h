/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.h - build frames for tests: start from rl_frame_spec's defaults and name only what matters.
 *
 *   struct rl_frame_spec spec = {.src = "203.0.113.7", .dport = 53};
 *   size_t len = rl_frame_build(&spec, buf, sizeof(buf));
 *
 * What is 0 or NULL takes a default that makes a plain valid frame: IPv4 or IPv6 by the form of src, UDP, 60 bytes.
 */
#ifndef RL_FRAME_H
#define RL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RL_FRAME_MAX 9200
#define RL_FRAME_EXT 12

struct rl_frame_ext {
	uint8_t type;	   /* the extension header's own protocol number: 0, 43, 44, 51, 60 ... */
	uint8_t len;	   /* its length byte, as on the wire; the bytes that follow are zero */
	uint16_t fragment; /* type 44: offset and flags, host byte order (offset << 3 | more) */
};

struct rl_frame_spec {
	const char *src;		/* default 192.0.2.1 */
	const char *dst;		/* default 192.0.2.2 or 2001:db8::2 */
	uint8_t dst_mac[6], src_mac[6]; /* defaults 02:00:00:00:00:02, ...:01 */
	uint16_t vlan[4];   /* tag protocol ids, outermost first, until the first 0: 0x8100, 0x88a8 */
	uint16_t ethertype; /* default by family */
	uint8_t version;    /* default 4 or 6 */
	uint8_t ihl;	    /* IPv4 header length in 4-byte words; default 5 + options */
	uint8_t options;    /* IPv4 options, in 4-byte words of zero */
	bool ihl_zero;	    /* write an ihl of 0 */
	uint16_t fragment;  /* IPv4 fragment field, host byte order */
	uint8_t proto;	    /* payload; default 17; ICMPv6 is 58 */
	bool proto_zero;    /* IPv6: a next header of 0 with no extension header behind it */
	uint8_t hop_limit;  /* default 64 */
	struct rl_frame_ext ext[RL_FRAME_EXT]; /* IPv6 */
	int ext_count;
	uint16_t sport, dport;	      /* defaults 4000, 4001 */
	uint8_t tcp_flags;	      /* RFC 9293, byte 13; default SYN */
	uint8_t icmp_type, icmp_code; /* proto 1 and 58; default echo request */
	size_t
	    len; /* of the whole frame; default 60, or what the headers take; more is zero payload, less cuts it off */
};

/* Build into buf (size >= RL_FRAME_MAX) and return the frame's length. Aborts on a spec that doesn't parse. IPv4 header,
 * UDP, TCP and ICMP checksums are right. */
size_t rl_frame_build(const struct rl_frame_spec *spec, uint8_t *buf, size_t size);

#endif

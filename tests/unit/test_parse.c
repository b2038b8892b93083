// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every kind of frame, cut at every length: what the parser says of each cut. A frame is copied into memory
 * of exactly its size, so that the sanitizer sees the first byte that is read beyond it.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/rl_parse.h"
#include "../lib/frame.h"

#define MALFORMED RL_PACKET_MALFORMED
#define FRAGMENT  RL_PACKET_FRAGMENT
#define PORTS	  RL_PACKET_PORTS
#define ND	  RL_PACKET_ND

#define V4 "192.0.2.1"
#define V6 "2001:db8::1"

enum {
	HOP_BY_HOP = 0,
	ICMP = 1,
	TCP = 6,
	UDP = 17,
	ROUTING = 43,
	FRAG = 44,
	GRE = 47,
	ESP = 50,
	AH = 51,
	ICMPV6 = 58,
	NO_NEXT = 59,
	DEST = 60,
	SCTP = 132,
	MOBILITY = 135,
	HIP = 139,
	SHIM6 = 140,
};

#define STEPS 16

/* What a frame cut to `from` bytes or more is, up to the next step. */
struct step {
	size_t from;
	enum rl_parse_result result;
	__u8 proto;
	__u8 flags;
};

struct parse_case {
	const char *name;
	struct rl_frame_spec spec;
	struct step steps[STEPS]; /* the first is at 0, implied: unparsed */
};

/* Initializers, which no function can make. */
// clang-format off
#define IP(from, proto, flags) {from, RL_PARSE_IP, proto, flags}
#define NOT_IP(from)	       {from, RL_PARSE_NOT_IP, 0, 0}
// clang-format on

static const struct parse_case cases[] = {
    {"IPv4 UDP", {.src = V4}, {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(38, UDP, PORTS)}},
    {"IPv4 TCP",
     {.src = V4, .proto = TCP, .tcp_flags = 0x10, .sport = 1, .dport = 65535},
     {IP(30, TCP, MALFORMED), IP(34, TCP, 0), IP(38, TCP, PORTS)}},
    {"IPv4 ICMP", {.src = V4, .proto = ICMP}, {IP(30, ICMP, MALFORMED), IP(34, ICMP, 0)}},
    {"IPv4 SCTP", {.src = V4, .proto = SCTP}, {IP(30, SCTP, MALFORMED), IP(34, SCTP, 0)}},
    {"IPv4 protocol 58 is no neighbour discovery",
     {.src = V4, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 135},
     {IP(30, ICMPV6, MALFORMED), IP(34, ICMPV6, 0)}},
    {"IPv4 from 255.255.255.255",
     {.src = "255.255.255.255"},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(38, UDP, PORTS)}},
    {"IPv4, one word of options",
     {.src = V4, .options = 1},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(42, UDP, PORTS)}},
    {"IPv4, all options",
     {.src = V4, .options = 10},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(78, UDP, PORTS)}},
    {"IPv4, the header ends behind the frame",
     {.src = V4, .ihl = 15},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0)}},
    {"IPv4, ihl 4", {.src = V4, .ihl = 4}, {IP(30, UDP, MALFORMED)}},
    {"IPv4, ihl 0", {.src = V4, .ihl_zero = true}, {IP(30, UDP, MALFORMED)}},
    {"IPv4, version 5", {.src = V4, .version = 5}, {IP(30, UDP, MALFORMED)}},
    {"IPv4, version 6", {.src = V4, .version = 6}, {IP(30, UDP, MALFORMED)}},
    {"IPv4, don't fragment",
     {.src = V4, .fragment = 0x4000},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(38, UDP, PORTS)}},
    {"IPv4, reserved bit",
     {.src = V4, .fragment = 0x8000},
     {IP(30, UDP, MALFORMED), IP(34, UDP, 0), IP(38, UDP, PORTS)}},
    {"IPv4, first fragment",
     {.src = V4, .fragment = 0x2000},
     {IP(30, UDP, MALFORMED), IP(34, UDP, FRAGMENT)}},
    {"IPv4, middle fragment",
     {.src = V4, .fragment = 0x2001},
     {IP(30, UDP, MALFORMED), IP(34, UDP, FRAGMENT)}},
    {"IPv4, last fragment", {.src = V4, .fragment = 0x1fff}, {IP(30, UDP, MALFORMED), IP(34, UDP, FRAGMENT)}},
    {"IPv4 fragment with options",
     {.src = V4, .fragment = 1, .options = 3, .proto = TCP, .tcp_flags = 0x10},
     {IP(30, TCP, MALFORMED), IP(34, TCP, FRAGMENT)}},

    {"IPv4, one tag",
     {.src = V4, .vlan = {0x8100}},
     {IP(34, UDP, MALFORMED), IP(38, UDP, 0), IP(42, UDP, PORTS)}},
    {"IPv4, one service tag",
     {.src = V4, .vlan = {0x88a8}},
     {IP(34, UDP, MALFORMED), IP(38, UDP, 0), IP(42, UDP, PORTS)}},
    {"IPv4, two tags",
     {.src = V4, .vlan = {0x88a8, 0x8100}},
     {IP(38, UDP, MALFORMED), IP(42, UDP, 0), IP(46, UDP, PORTS)}},
    {"IPv4, three tags", {.src = V4, .vlan = {0x88a8, 0x8100, 0x8100}}, {{0}}},
    {"IPv6, one tag",
     {.src = V6, .vlan = {0x8100}},
     {IP(42, UDP, MALFORMED), IP(58, UDP, 0), IP(62, UDP, PORTS)}},
    {"IPv6, two tags",
     {.src = V6, .vlan = {0x8100, 0x8100}},
     {IP(46, UDP, MALFORMED), IP(62, UDP, 0), IP(66, UDP, PORTS)}},
    {"IPv6, three tags", {.src = V6, .vlan = {0x8100, 0x8100, 0x88a8}}, {{0}}},
    {"IPv6, four tags", {.src = V6, .vlan = {0x8100, 0x8100, 0x8100, 0x8100}}, {{0}}},

    {"ARP", {.src = V4, .ethertype = 0x0806}, {NOT_IP(14)}},
    {"tagged ARP", {.src = V4, .ethertype = 0x0806, .vlan = {0x8100}}, {NOT_IP(18)}},
    {"twice tagged ARP", {.src = V4, .ethertype = 0x0806, .vlan = {0x88a8, 0x8100}}, {NOT_IP(22)}},
    {"LLDP", {.src = V4, .ethertype = 0x88cc}, {NOT_IP(14)}},
    {"802.3 with a length", {.src = V4, .ethertype = 46}, {NOT_IP(14)}},
    {"MPLS", {.src = V4, .ethertype = 0x8847}, {NOT_IP(14)}},

    {"IPv6 UDP", {.src = V6}, {IP(38, UDP, MALFORMED), IP(54, UDP, 0), IP(58, UDP, PORTS)}},
    {"IPv6 TCP",
     {.src = V6, .proto = TCP, .tcp_flags = 0x10, .sport = 65535, .dport = 1},
     {IP(38, TCP, MALFORMED), IP(54, TCP, 0), IP(58, TCP, PORTS)}},
    {"IPv6 version 4", {.src = V6, .version = 4}, {IP(38, 0, MALFORMED)}},
    {"IPv6 version 15", {.src = V6, .version = 15}, {IP(38, 0, MALFORMED)}},
    {"IPv6 GRE", {.src = V6, .proto = GRE, .len = 200}, {IP(38, GRE, MALFORMED), IP(54, GRE, 0)}},
    {"IPv6 SCTP", {.src = V6, .proto = SCTP, .len = 200}, {IP(38, SCTP, MALFORMED), IP(54, SCTP, 0)}},
    {"IPv6 ESP", {.src = V6, .proto = ESP, .len = 200}, {IP(38, ESP, MALFORMED), IP(54, ESP, 0)}},
    {"IPv6, nothing follows",
     {.src = V6, .proto = NO_NEXT, .len = 200},
     {IP(38, NO_NEXT, MALFORMED), IP(54, NO_NEXT, 0)}},
    {"IPv6, an unknown header is not walked to what would look like UDP",
     {.src = V6, .ext = {{GRE, 0, 0}}, .ext_count = 1},
     {IP(38, GRE, MALFORMED), IP(54, GRE, 0)}},
    {"IPv6, an unknown header behind a known one",
     {.src = V6, .ext = {{DEST, 0, 0}, {SCTP, 1, 0}}, .ext_count = 2},
     {IP(38, DEST, MALFORMED), IP(54, DEST, 0), IP(62, SCTP, 0)}},
    {"IPv6, next header 0 and zeros",
     {.src = V6, .proto_zero = true, .len = 200},
     {IP(38, 0, MALFORMED), IP(54, 0, 0)}},

    {"IPv6 hop-by-hop",
     {.src = V6, .ext = {{HOP_BY_HOP, 0, 0}}, .ext_count = 1},
     {IP(38, HOP_BY_HOP, MALFORMED), IP(54, HOP_BY_HOP, 0), IP(62, UDP, 0), IP(66, UDP, PORTS)}},
    {"IPv6 routing, 24 bytes",
     {.src = V6, .proto = TCP, .tcp_flags = 0x10, .ext = {{ROUTING, 2, 0}}, .ext_count = 1},
     {IP(38, ROUTING, MALFORMED), IP(54, ROUTING, 0), IP(62, TCP, 0), IP(82, TCP, PORTS)}},
    {"IPv6 destination options, longest",
     {.src = V6, .ext = {{DEST, 255, 0}}, .ext_count = 1},
     {IP(38, DEST, MALFORMED), IP(54, DEST, 0), IP(62, UDP, 0), IP(54 + 2048 + 4, UDP, PORTS)}},
    {"IPv6 authentication, longest",
     {.src = V6, .ext = {{AH, 255, 0}}, .ext_count = 1},
     {IP(38, AH, MALFORMED), IP(54, AH, 0), IP(62, UDP, 0), IP(54 + 1028 + 4, UDP, PORTS)}},
    {"IPv6 authentication, shortest",
     {.src = V6, .ext = {{AH, 0, 0}}, .ext_count = 1},
     {IP(38, AH, MALFORMED), IP(54, AH, 0), IP(62, UDP, 0), IP(66, UDP, PORTS)}},
    {"IPv6, an odd number of four bytes in authentication",
     {.src = V6, .ext = {{AH, 1, 0}}, .ext_count = 1},
     {IP(38, AH, MALFORMED), IP(54, AH, 0), IP(62, UDP, 0), IP(70, UDP, PORTS)}},
    {"IPv6 mobility, HIP, shim6",
     {.src = V6, .ext = {{MOBILITY, 0, 0}, {HIP, 1, 0}, {SHIM6, 0, 0}}, .ext_count = 3},
     {IP(38, MOBILITY, MALFORMED), IP(54, MOBILITY, 0), IP(62, HIP, 0), IP(70, SHIM6, 0), IP(86, UDP, 0),
      IP(90, UDP, PORTS)}},
    {"IPv6, every extension header",
     {.src = V6,
      .ext = {{HOP_BY_HOP, 0, 0},
	      {DEST, 0, 0},
	      {ROUTING, 0, 0},
	      {FRAG, 0, 0},
	      {AH, 4, 0},
	      {MOBILITY, 0, 0},
	      {HIP, 0, 0},
	      {SHIM6, 0, 0}},
      .ext_count = 8},
     {IP(38, HOP_BY_HOP, MALFORMED), IP(54, HOP_BY_HOP, 0), IP(62, DEST, 0), IP(70, ROUTING, 0),
      IP(78, FRAG, 0), IP(86, AH, 0), IP(94, MOBILITY, 0), IP(118, HIP, 0), IP(126, SHIM6, 0),
      IP(134, UDP, 0), IP(138, UDP, PORTS)}},
    {"IPv6, one extension header too many",
     {.src = V6,
      .ext = {{HOP_BY_HOP, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {DEST, 0, 0},
	      {ROUTING, 0, 0}},
      .ext_count = 9},
     {IP(38, HOP_BY_HOP, MALFORMED), IP(54, HOP_BY_HOP, 0), IP(62, DEST, 0), IP(118, ROUTING, 0)}},

    {"IPv6, first fragment",
     {.src = V6, .ext = {{FRAG, 0, 0x0001}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, UDP, FRAGMENT)}},
    {"IPv6, later fragment",
     {.src = V6, .ext = {{FRAG, 0, 8}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, UDP, FRAGMENT)}},
    {"IPv6, last offset",
     {.src = V6, .ext = {{FRAG, 0, 0xfff8}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, UDP, FRAGMENT)}},
    {"IPv6, atomic fragment",
     {.src = V6, .ext = {{FRAG, 0, 0}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, UDP, 0), IP(66, UDP, PORTS)}},
    {"IPv6, atomic fragment with reserved bits and length",
     {.src = V6, .ext = {{FRAG, 255, 0x0006}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, UDP, 0), IP(66, UDP, PORTS)}},
    {"IPv6, headers of a later fragment are not read",
     {.src = V6, .ext = {{DEST, 0, 0}, {FRAG, 0, 16}, {DEST, 0, 0}}, .ext_count = 3},
     {IP(38, DEST, MALFORMED), IP(54, DEST, 0), IP(62, FRAG, 0), IP(70, DEST, FRAGMENT)}},

    {"neighbour solicitation",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 135},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0), IP(56, ICMPV6, ND)}},
    {"neighbour advertisement",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 136},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0), IP(56, ICMPV6, ND)}},
    {"router solicitation from ::",
     {.src = "::", .proto = ICMPV6, .hop_limit = 255, .icmp_type = 133},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0), IP(56, ICMPV6, ND)}},
    {"router advertisement",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 134},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0), IP(56, ICMPV6, ND)}},
    {"redirect",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 137},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0), IP(56, ICMPV6, ND)}},
    {"tagged neighbour solicitation",
     {.src = V6, .vlan = {0x8100}, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 135},
     {IP(42, ICMPV6, MALFORMED), IP(58, ICMPV6, 0), IP(60, ICMPV6, ND)}},
    {"forwarded neighbour solicitation",
     {.src = V6, .proto = ICMPV6, .hop_limit = 254, .icmp_type = 135},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0)}},
    {"neighbour solicitation, wrong code",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 135, .icmp_code = 1},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0)}},
    {"echo request with hop limit 255",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0)}},
    {"ICMPv6 type 132",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 132},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0)}},
    {"ICMPv6 type 138",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 138},
     {IP(38, ICMPV6, MALFORMED), IP(54, ICMPV6, 0)}},
    {"neighbour solicitation behind an extension header",
     {.src = V6,
      .proto = ICMPV6,
      .hop_limit = 255,
      .icmp_type = 135,
      .ext = {{HOP_BY_HOP, 0, 0}},
      .ext_count = 1},
     {IP(38, HOP_BY_HOP, MALFORMED), IP(54, HOP_BY_HOP, 0), IP(62, ICMPV6, 0)}},
    {"fragmented neighbour solicitation",
     {.src = V6, .proto = ICMPV6, .hop_limit = 255, .icmp_type = 135, .ext = {{FRAG, 0, 1}}, .ext_count = 1},
     {IP(38, FRAG, MALFORMED), IP(54, FRAG, 0), IP(62, ICMPV6, FRAGMENT)}},
};

static const struct step *step_of(const struct parse_case *c, size_t len)
{
	static const struct step unparsed = {.result = RL_PARSE_UNPARSED};
	const struct step *step = &unparsed;

	for (int i = 0; i < STEPS && c->steps[i].from && c->steps[i].from <= len; i++)
		step = &c->steps[i];
	return step;
}

/* The frame's first len bytes, parsed where nothing lies behind them. */
static enum rl_parse_result parse_cut(const uint8_t *frame, size_t len, struct rl_packet *packet)
{
	uint8_t *exact = malloc(len ? len : 1);
	enum rl_parse_result result;

	memcpy(exact, frame, len);
	memset(packet, 0, sizeof(*packet));
	result = rl_parse(exact, exact + len, packet);
	free(exact);
	return result;
}

static void check_cut(const struct parse_case *c, const uint8_t *frame, size_t len)
{
	const struct step *want = step_of(c, len);
	int family = strchr(c->spec.src, ':') ? 6 : 4;
	bool ports = want->flags & PORTS;
	uint8_t src[16] = {0};
	struct rl_packet packet;

	cr_assert_eq(parse_cut(frame, len, &packet), want->result, "%s, %zu bytes", c->name, len);
	if (want->result != RL_PARSE_IP)
		return;
	inet_pton(family == 6 ? AF_INET6 : AF_INET, c->spec.src, src);
	cr_assert_eq(packet.family, family, "%s, %zu bytes", c->name, len);
	cr_assert(!memcmp(packet.src, src, sizeof(src)), "%s, %zu bytes", c->name, len);
	cr_assert_eq(packet.flags, want->flags, "%s, %zu bytes: flags %#x", c->name, len, packet.flags);
	cr_assert_eq(packet.proto, want->proto, "%s, %zu bytes: proto %u", c->name, len, packet.proto);
	cr_assert_eq(packet.sport,
		     !ports	     ? 0
		     : c->spec.sport ? c->spec.sport
				     : 4000,
		     "%s, %zu bytes", c->name, len);
	cr_assert_eq(packet.dport,
		     !ports	     ? 0
		     : c->spec.dport ? c->spec.dport
				     : 4001,
		     "%s, %zu bytes", c->name, len);
}

Test(parse, every_cut_of_every_frame)
{
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = rl_frame_build(&cases[i].spec, frame, sizeof(frame));

		cr_assert_geq(len, 60, "%s", cases[i].name);
		for (size_t cut = 0; cut <= len; cut++)
			check_cut(&cases[i], frame, cut);
	}
}

/* The header's family goes by the ethertype; what is then read as the source is limited all the same. */
Test(parse, ethertype_and_version_disagree)
{
	static uint8_t frame[RL_FRAME_MAX];
	struct rl_frame_spec v6 = {.src = V6, .ethertype = 0x0800}, v4 = {.src = V4, .ethertype = 0x86dd};
	struct rl_packet packet;
	size_t len = rl_frame_build(&v6, frame, sizeof(frame));

	cr_expect_eq(parse_cut(frame, len, &packet), RL_PARSE_IP);
	cr_expect_eq(packet.family, 4);
	cr_expect_eq(packet.flags, MALFORMED);
	len = rl_frame_build(&v4, frame, sizeof(frame));
	cr_expect_eq(parse_cut(frame, len, &packet), RL_PARSE_IP);
	cr_expect_eq(packet.family, 6);
	cr_expect_eq(packet.flags, MALFORMED);
	cr_expect_eq(packet.proto, 0);
}

/* The builder itself: the checksums verify, the lengths are those of the frame. */
static uint16_t checksum(uint64_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? p[i] : (uint64_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

Test(parse, frames_are_valid)
{
	static const uint8_t protos[] = {UDP, TCP, ICMP};
	static const size_t lengths[] = {0, 75, 1514, 1515, 9000};
	static uint8_t frame[RL_FRAME_MAX];

	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < 5; j++) {
			struct rl_frame_spec v4 = {
			    .src = V4, .proto = protos[i], .options = (uint8_t)j, .len = lengths[j]};
			struct rl_frame_spec v6 = {
			    .src = V6, .proto = protos[i] == ICMP ? ICMPV6 : protos[i], .len = lengths[j]};
			size_t len = rl_frame_build(&v4, frame, sizeof(frame)), header = 20 + 4 * j;

			cr_expect_eq(len, lengths[j] ? lengths[j] : 60);
			cr_expect_eq(rl_be16(frame + 16), len - 14);
			cr_expect_eq(checksum(0, frame + 14, header), 0);
			len -= 14 + header;
			cr_expect_eq(checksum(protos[i] == ICMP
						  ? 0
						  : protos[i] + len + (uint16_t)~checksum(0, frame + 26, 8),
					      frame + 14 + header, len),
				     0, "IPv4 %u", protos[i]);

			len = rl_frame_build(&v6, frame, sizeof(frame));
			cr_expect_eq(len, lengths[j] ? lengths[j] : protos[i] == TCP ? 74 : 62);
			cr_expect_eq(rl_be16(frame + 18), len - 54);
			len -= 54;
			cr_expect_eq(checksum(v6.proto + len + (uint16_t)~checksum(0, frame + 22, 32),
					      frame + 54, len),
				     0, "IPv6 %u", v6.proto);
		}
	}
}

Test(parse, an_address_is_cut_to_any_length)
{
	for (__u32 size = 4; size <= 16; size += 12)
		for (__u32 bits = 0; bits <= 8 * size; bits++) {
			__u8 addr[16];

			memset(addr, 0xff, sizeof(addr));
			rl_address_cut(addr, size, bits);
			for (__u32 i = 0; i < 8 * size; i++)
				cr_expect_eq(addr[i / 8] >> (7 - i % 8) & 1, i < bits,
					     "bit %u of %u, cut to %u", i, 8 * size, bits);
		}
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "kinds.h"

/* Macros, since they stand inside initialisers. */
#define V4	 .src = KIND_SOURCE4
#define V6	 .src = KIND_SOURCE6
#define IP(f, p) .result = RL_PARSE_IP, .flags = (f), .proto = (p)
#define PORTS	 RL_PACKET_PORTS
#define FRAGMENT RL_PACKET_FRAGMENT
#define BAD	 RL_PACKET_MALFORMED
#define ND	 RL_PACKET_ND
#define SYN	 RL_PACKET_SYN
#define EXT(n)	 .ext_count = (n), .ext
#define X(t, n)                                                                                              \
	{                                                                                                    \
		.type = (t), .len = (n)                                                                      \
	}
#define F(field)                                                                                             \
	{                                                                                                    \
		.type = FRAG, .fragment = (field)                                                            \
	}

enum {
	HOP = 0,
	TCP = 6,
	UDP = 17,
	ROUTING = 43,
	FRAG = 44,
	GRE = 47,
	ESP = 50,
	AH = 51,
	ICMP6 = 58,
	NONE = 59,
	DEST = 60,
	SCTP = 132,
	MOBILITY = 135,
	HIP = 139,
	SHIM6 = 140
};

const struct kind kinds[] = {
    {"v4 udp", {V4}, IP(PORTS, UDP)},
    {"v4 tcp", {V4, .proto = TCP, .tcp_flags = 0x10}, IP(PORTS, TCP)},
    {"v4 syn", {V4, .proto = TCP}, IP(PORTS | SYN, TCP)},
    {"v4 syn and fin", {V4, .proto = TCP, .tcp_flags = 0x03}, IP(PORTS | SYN, TCP)},
    {"v4 syn and ack", {V4, .proto = TCP, .tcp_flags = 0x12}, IP(PORTS, TCP)},
    {"v4 syn behind options", {V4, .proto = TCP, .options = 10, .len = 98}, IP(PORTS | SYN, TCP)},
    {"v4 tcp cut before its flags", {V4, .proto = TCP}, .cut = 47, IP(PORTS, TCP)},
    {"v4 tcp cut behind its flags", {V4, .proto = TCP}, .cut = 48, IP(PORTS | SYN, TCP)},
    {"v4 icmp", {V4, .proto = 1, .icmp_type = 8}, IP(0, 1)},
    {"v4 gre", {V4, .proto = GRE}, IP(0, GRE)},
    {"v4 sctp", {V4, .proto = SCTP}, IP(0, SCTP)},
    {"v4 esp", {V4, .proto = ESP}, IP(0, ESP)},
    {"v4 unknown protocol", {V4, .proto = 253}, IP(0, 253)},
    {"v4 vlan", {V4, .vlan = {0x8100}}, IP(PORTS, UDP)},
    {"v4 service tag", {V4, .vlan = {0x88a8}}, IP(PORTS, UDP)},
    {"v4 qinq", {V4, .vlan = {0x88a8, 0x8100}}, IP(PORTS, UDP)},
    {"v4 two customer tags", {V4, .vlan = {0x8100, 0x8100}}, IP(PORTS, UDP)},
    {"v4 three tags", {V4, .vlan = {0x88a8, 0x8100, 0x8100}}, .result = RL_PARSE_UNPARSED},
    {"v4 four tags", {V4, .vlan = {0x8100, 0x8100, 0x8100, 0x8100}}, .result = RL_PARSE_UNPARSED},
    {"v4 do not fragment", {V4, .fragment = 0x4000}, IP(PORTS, UDP)},
    {"v4 first fragment", {V4, .fragment = 0x2000, .len = 1514}, IP(FRAGMENT, UDP)},
    {"v4 tiny first fragment", {V4, .fragment = 0x2000, .proto = TCP}, .cut = 42, IP(FRAGMENT, TCP)},
    {"v4 middle fragment", {V4, .fragment = 0x2000 | 185, .len = 1514}, IP(FRAGMENT, UDP)},
    {"v4 last fragment", {V4, .fragment = 370}, IP(FRAGMENT, UDP)},
    {"v4 one option", {V4, .options = 1}, IP(PORTS, UDP)},
    {"v4 ten options", {V4, .options = 10}, IP(PORTS, UDP)},
    {"v4 ihl beyond the frame", {V4, .ihl = 15}, .cut = 34, IP(0, UDP)},
    {"v4 ihl 4", {V4, .ihl = 4}, IP(BAD, UDP)},
    {"v4 ihl 0", {V4, .ihl_zero = true}, IP(BAD, UDP)},
    {"v4 version 5", {V4, .version = 5}, IP(BAD, UDP)},
    {"v4 version 6", {V4, .version = 6}, IP(BAD, UDP)},
    {"v4 no payload", {V4}, .cut = 34, IP(0, UDP)},
    {"v4 half its ports", {V4}, .cut = 37, IP(0, UDP)},
    {"v4 cut in the source", {V4}, .cut = 29, .result = RL_PARSE_UNPARSED},
    {"v4 cut behind the source", {V4}, .cut = 30, IP(BAD, UDP)},
    {"v4 cut in the destination", {V4}, .cut = 33, IP(BAD, UDP)},
    {"v4 cut behind ethernet", {V4}, .cut = 14, .result = RL_PARSE_UNPARSED},
    {"v4 cut in the tag", {V4, .vlan = {0x8100}}, .cut = 17, .result = RL_PARSE_UNPARSED},
    {"v4 jumbo", {V4, .len = 9014}, IP(PORTS, UDP)},

    {"v6 udp", {V6}, IP(PORTS, UDP)},
    {"v6 tcp", {V6, .proto = TCP, .tcp_flags = 0x10}, IP(PORTS, TCP)},
    {"v6 syn", {V6, .proto = TCP}, IP(PORTS | SYN, TCP)},
    {"v6 syn and fin", {V6, .proto = TCP, .tcp_flags = 0x03}, IP(PORTS | SYN, TCP)},
    {"v6 syn and ack", {V6, .proto = TCP, .tcp_flags = 0x12}, IP(PORTS, TCP)},
    {"v6 tcp cut before its flags", {V6, .proto = TCP}, .cut = 67, IP(PORTS, TCP)},
    {"v6 tcp cut behind its flags", {V6, .proto = TCP}, .cut = 68, IP(PORTS | SYN, TCP)},
    {"v6 echo request", {V6, .proto = ICMP6, .icmp_type = 128}, IP(0, ICMP6)},
    {"v6 gre", {V6, .proto = GRE}, IP(0, GRE)},
    {"v6 sctp", {V6, .proto = SCTP}, IP(0, SCTP)},
    {"v6 esp", {V6, .proto = ESP}, IP(0, ESP)},
    {"v6 no next header", {V6, .proto = NONE}, IP(0, NONE)},
    {"v6 unknown protocol", {V6, .proto = 253}, IP(0, 253)},
    {"v6 vlan", {V6, .vlan = {0x8100}}, IP(PORTS, UDP)},
    {"v6 service tag", {V6, .vlan = {0x88a8}}, IP(PORTS, UDP)},
    {"v6 qinq", {V6, .vlan = {0x88a8, 0x8100}}, IP(PORTS, UDP)},
    {"v6 two customer tags", {V6, .vlan = {0x8100, 0x8100}}, IP(PORTS, UDP)},
    {"v6 three tags", {V6, .vlan = {0x88a8, 0x8100, 0x8100}}, .result = RL_PARSE_UNPARSED},
    {"v6 four tags", {V6, .vlan = {0x8100, 0x8100, 0x8100, 0x8100}}, .result = RL_PARSE_UNPARSED},
    {"v6 hop-by-hop", {V6, EXT(1) = {X(HOP, 0)}}, IP(PORTS, UDP)},
    {"v6 routing", {V6, EXT(1) = {X(ROUTING, 2)}}, IP(PORTS, UDP)},
    {"v6 destination", {V6, EXT(1) = {X(DEST, 1)}}, IP(PORTS, UDP)},
    {"v6 authentication", {V6, EXT(1) = {X(AH, 4)}}, IP(PORTS, UDP)},
    {"v6 mobility", {V6, EXT(1) = {X(MOBILITY, 0)}}, IP(PORTS, UDP)},
    {"v6 host identity", {V6, EXT(1) = {X(HIP, 0)}}, IP(PORTS, UDP)},
    {"v6 shim6", {V6, EXT(1) = {X(SHIM6, 0)}}, IP(PORTS, UDP)},
    {"v6 chain",
     {V6, .proto = TCP, EXT(4) = {X(HOP, 1), X(ROUTING, 2), X(DEST, 0), X(AH, 4)}},
     IP(PORTS | SYN, TCP)},
    {"v6 chain to esp", {V6, .proto = ESP, EXT(2) = {X(HOP, 0), X(DEST, 0)}}, IP(0, ESP)},
    {"v6 eight headers",
     {V6, EXT(8) = {X(HOP, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0),
		    X(DEST, 0)}},
     IP(PORTS, UDP)},
    {"v6 nine headers",
     {V6, EXT(9) = {X(HOP, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0),
		    X(DEST, 0), X(DEST, 0)}},
     IP(0, DEST)},
    {"v6 twelve headers",
     {V6, EXT(12) = {X(HOP, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0),
		     X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0), X(DEST, 0)}},
     IP(0, DEST)},
    {"v6 longest header", {V6, EXT(1) = {X(DEST, 255)}}, IP(PORTS, UDP)},
    {"v6 longest authentication", {V6, EXT(1) = {X(AH, 255)}}, IP(PORTS, UDP)},
    {"v6 longest header, cut", {V6, EXT(1) = {X(DEST, 255)}}, .cut = 70, IP(0, UDP)},
    {"v6 header cut short", {V6, EXT(1) = {X(DEST, 0)}}, .cut = 61, IP(0, DEST)},
    {"v6 hop-by-hop, cut off", {V6, .proto_zero = true}, .cut = 54, IP(0, HOP)},
    {"v6 atomic fragment", {V6, EXT(1) = {X(FRAG, 0)}}, IP(PORTS, UDP)},
    {"v6 first fragment", {V6, EXT(1) = {F(1)}, .len = 1514}, IP(FRAGMENT, UDP)},
    {"v6 tiny first fragment", {V6, EXT(2) = {X(DEST, 0), F(1)}}, .cut = 70, IP(FRAGMENT, UDP)},
    {"v6 middle fragment", {V6, EXT(1) = {F(181 << 3 | 1)}, .len = 1514}, IP(FRAGMENT, UDP)},
    {"v6 last fragment", {V6, EXT(1) = {F(362 << 3)}}, IP(FRAGMENT, UDP)},
    {"v6 fragment before a header", {V6, EXT(2) = {F(1), X(DEST, 0)}}, IP(FRAGMENT, DEST)},
    {"v6 version 4", {V6, .version = 4}, IP(BAD, 0)},
    {"v6 version 7", {V6, .version = 7}, IP(BAD, 0)},
    {"v6 cut in the destination", {V6}, .cut = 53, IP(BAD, UDP)},
    {"v6 cut behind the source", {V6}, .cut = 38, IP(BAD, UDP)},
    {"v6 cut in the source", {V6}, .cut = 37, .result = RL_PARSE_UNPARSED},
    {"v6 cut behind ethernet", {V6}, .cut = 14, .result = RL_PARSE_UNPARSED},
    {"v6 no payload", {V6}, .cut = 54, IP(0, UDP)},
    {"v6 router solicitation", {V6, .proto = ICMP6, .icmp_type = 133, .hop_limit = 255}, IP(ND, ICMP6)},
    {"v6 router advertisement", {V6, .proto = ICMP6, .icmp_type = 134, .hop_limit = 255}, IP(ND, ICMP6)},
    {"v6 neighbour solicitation", {V6, .proto = ICMP6, .icmp_type = 135, .hop_limit = 255}, IP(ND, ICMP6)},
    {"v6 neighbour advertisement", {V6, .proto = ICMP6, .icmp_type = 136, .hop_limit = 255}, IP(ND, ICMP6)},
    {"v6 redirect", {V6, .proto = ICMP6, .icmp_type = 137, .hop_limit = 255}, IP(ND, ICMP6)},
    {"v6 tagged solicitation",
     {V6, .vlan = {0x8100}, .proto = ICMP6, .icmp_type = 135, .hop_limit = 255},
     IP(ND, ICMP6)},
    {"v6 type below discovery", {V6, .proto = ICMP6, .icmp_type = 132, .hop_limit = 255}, IP(0, ICMP6)},
    {"v6 type above discovery", {V6, .proto = ICMP6, .icmp_type = 138, .hop_limit = 255}, IP(0, ICMP6)},
    {"v6 forwarded solicitation", {V6, .proto = ICMP6, .icmp_type = 135, .hop_limit = 254}, IP(0, ICMP6)},
    {"v6 solicitation of code 1",
     {V6, .proto = ICMP6, .icmp_type = 135, .icmp_code = 1, .hop_limit = 255},
     IP(0, ICMP6)},
    {"v6 solicitation behind a header",
     {V6, .proto = ICMP6, .icmp_type = 135, .hop_limit = 255, EXT(1) = {X(DEST, 0)}},
     IP(0, ICMP6)},
    {"v6 jumbo", {V6, .len = 9014}, IP(PORTS, UDP)},

    {"arp", {V4, .ethertype = 0x0806}, .result = RL_PARSE_NOT_IP},
    {"lldp", {V4, .ethertype = 0x88cc}, .result = RL_PARSE_NOT_IP},
    {"mpls", {V4, .ethertype = 0x8847}, .result = RL_PARSE_NOT_IP},
    {"pppoe", {V6, .ethertype = 0x8864}, .result = RL_PARSE_NOT_IP},
    {"802.3 length", {V6, .ethertype = 46}, .result = RL_PARSE_NOT_IP},
    {"tagged arp", {V4, .vlan = {0x88a8, 0x8100}, .ethertype = 0x0806}, .result = RL_PARSE_NOT_IP},
};

const size_t kind_count = sizeof(kinds) / sizeof(kinds[0]);

size_t kind_build(const struct kind *kind, uint8_t buf[RL_FRAME_MAX])
{
	size_t len = rl_frame_build(&kind->spec, buf, RL_FRAME_MAX);

	return kind->cut ? kind->cut : len;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rl_class.h - what kind of packet: which classes it belongs to, and what it costs. Pure; compiles on both sides.
 *
 * A packet is of every class that it matches. A fragment is `frag` and what its header says that it carries (tcp, udp,
 * icmp), but has no port: a first fragment that shows its ports isn't told apart from one that hides them.
 */
#ifndef RL_CLASS_H
#define RL_CLASS_H

#include "rl_parse.h"

/* enum rl_kind, or'ed. */
RL_INLINE __u8 rl_packet_kinds(const struct rl_packet *packet)
{
	__u8 kinds = 0;

	if (packet->proto == 6)
		kinds |= RL_KIND_TCP;
	if (packet->proto == 17)
		kinds |= RL_KIND_UDP;
	if (packet->proto == (packet->family == 4 ? 1 : 58))
		kinds |= RL_KIND_ICMP;
	if (packet->flags & RL_PACKET_SYN)
		kinds |= RL_KIND_SYN;
	if (packet->flags & RL_PACKET_FRAGMENT)
		kinds |= RL_KIND_FRAG;
	if (packet->flags & RL_PACKET_PORTS)
		kinds |= RL_KIND_PORTS;
	return kinds;
}

/* Is a packet of these kinds, for this port of the service (0: none), of the class? A class without kinds has none. */
RL_INLINE int rl_class_matches(const struct rl_class *class, __u8 kinds, __u16 port)
{
	return class->kinds && (kinds & class->kinds) == class->kinds && port >= class->from &&
	       port <= class->to;
}

/* Tokens that the packet takes from a packet bucket: the highest cost that matches, or 1. */
RL_INLINE __u32 rl_packet_cost(const struct rl_limit *limit, __u8 kinds, __u16 port)
{
	__u32 cost = 0;

	for (int i = 0; i < RL_MAX_COSTS && i < limit->cost_count; i++)
		if (rl_class_matches(&limit->cost[i].class, kinds, port) && limit->cost[i].tokens > cost)
			cost = limit->cost[i].tokens;
	return cost ? cost : 1;
}

#endif

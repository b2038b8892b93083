/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kinds.h - one frame of every kind that the parser tells apart, and what it must make of it. Their sources
 * are KIND_SOURCE4 and KIND_SOURCE6.
 */
#ifndef RL_KINDS_H
#define RL_KINDS_H

#include "../../bpf/rl_parse.h"
#include "../lib/frame.h"

#define KIND_SOURCE4 "203.0.113.7"
#define KIND_TARGET4 "203.0.113.0/24"
#define KIND_SOURCE6 "2001:db8:1::7"
#define KIND_TARGET6 "2001:db8:1::/48"

struct kind {
	const char *name;
	struct rl_frame_spec spec;
	size_t cut; /* the frame is truncated to this; 0: it is whole */
	enum rl_parse_result result;
	__u8 flags; /* enum rl_packet_flags; for RL_PARSE_IP, like proto */
	__u8 proto;
};

extern const struct kind kinds[];
extern const size_t kind_count;

/* Build the frame into buf and return its length. */
size_t kind_build(const struct kind *kind, uint8_t buf[RL_FRAME_MAX]);

#endif

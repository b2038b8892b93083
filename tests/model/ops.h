/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ops.h - what happens to a limiter, one operation after the other: packets from a small pool of sources and kinds, so
 * that they meet in the same buckets often, commands, and steps of the clock.
 */
#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model.h"

enum op_kind {
	OP_PACKET,
	OP_CLOCK,  /* later by `step` ns */
	OP_SET,	   /* set-limit, allow, deny */
	OP_DELETE, /* with terms.class set, of that class alone */
	OP_PAUSE,  /* of a device, by `on` */
	OP_SHADOW, /* likewise */
	OP_RESET,
	OP_KINDS,
};

struct op {
	__u8 kind;   /* enum op_kind */
	__u8 source; /* index of the pool of sources */
	__u8 what;   /* index of the pool of packet kinds */
	__u8 device;
	__u8 on;
	__u16 len; /* of the frame; ops_packet() makes it long enough for its headers */
	__u64 step;
	struct rl_target target;
	struct rl_terms terms; /* complete (user/limit.h) */
};

int ops_sources(void);
int ops_whats(void);

/* The packet of an OP_PACKET as the model sees it, and its frame; valid until the next call. */
struct model_packet ops_packet(const struct op *op);
const uint8_t *ops_frame(const struct op *op);

/* The source's address, as the packets of it have it. */
struct rl_prefix ops_source(int source);

extern const char *const ops_device_names[MODEL_DEVICES];

/* A line such as "set 10.0.0.0/24 3pps burst 2" or "packet 10.0.0.1 tcp/443 syn, 60 bytes, on eth0". */
void ops_print(FILE *file, const struct op *op);

const char *ops_reason_name(enum rl_reason reason);

#endif

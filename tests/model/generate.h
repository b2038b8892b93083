/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * generate.h - random operations, seeded. The clock is moved by preference to the last instant at which some packet must
 * still drop and the first at which it must pass, as the model says; rates, bursts and idle times cover the whole range.
 */
#ifndef MODEL_GENERATE_H
#define MODEL_GENERATE_H

#include "model.h"
#include "ops.h"

struct generator {
	__u64 state; /* of tests/unit/random.h */
	unsigned int calm;
	__u8 hot; /* most packets come from this source and the next two, of this kind, to this device */
	__u8 hot_what;
	__u8 hot_device;
	struct op next;		  /* the packet that the clock was just moved for; OP_KINDS: none */
	struct rl_target changed; /* by the last set */
	__u8 again;		  /* so many more changes of it follow, with little in between */
	bool probe;		  /* a limit was just changed: what it did is to be looked at closely */
};

/* calm: changes are so many times rarer than what is natural where they cost nothing. */
struct generator generate_open(__u64 seed, unsigned int calm);

/* The next operation, where the model and the clock are like this. */
void generate(struct generator *generator, struct model *model, __u64 now, struct op *out);

#endif

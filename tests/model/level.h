/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * level.h - the model's token bucket: a level, and when it was that. Refilled by elapsed time and capped at the burst;
 * exact integers of 128 bits, so that nothing wraps and nothing is lost.
 *
 * Levels are counted in the units of struct rl_rate, 2^-shift ns, as user/limit.c quantised rate and burst; that is what
 * makes them comparable to the program's without tolerance. Quantising is tested by itself (tests/unit/test_gcra.c).
 */
#ifndef MODEL_LEVEL_H
#define MODEL_LEVEL_H

#include <stdbool.h>

#include "../../bpf/rl_abi.h"

typedef __int128 model_units;

/* One unit (packets or bytes) of one bucket. All zero: never charged, hence full at any rate. */
struct model_level {
	bool charged;
	bool forgotten; /* it missed more changes than are remembered, while the limit hadn't this unit */
	__u64 mult; /* the rate that it is counted in: the limit's, or the last that it had in this unit */
	__u32 shift;
	model_units burst, level; /* level <= burst; below 0 more is owed than the bucket holds */
	__u64 at;		  /* ns */
	__u32 gen;		  /* the limit's generation that a packet last brought it up to */
	__u32 looked;		  /* the generation without this unit in which a packet last came by */
};

/* The rule for the cost of `tokens`: a whole number of 2^8 units, rounded up. */
model_units model_cost(const struct rl_rate *rate, __u64 tokens);

/* The limit changes at `now`: what is owed by then is owed in tokens at the new rate. */
void model_level_change(struct model_level *level, const struct rl_rate *rate, __u64 now);

/*
 * A packet comes by: a level of an earlier generation is of the limit's present one from now on. A level that missed more
 * than RL_PAST changes has forgotten what it owed, and owed all that can be owed at the last one.
 */
void model_level_touch(struct model_level *level, const struct rl_limit *quantum, enum rl_unit unit,
		       __u64 now);

/* How much is missing for a packet that costs so much and must leave `kept`; 0 or less: nothing is. */
model_units model_level_lack(struct model_level *level, const struct rl_rate *rate, model_units cost,
			     model_units kept, __u64 now);

void model_level_take(struct model_level *level, model_units cost);

/*
 * The number of tokens that `debt` is at `from` units per token (the same scale as rl_rate.mult), in units at `to`: the
 * exact quotient rounded up as the program's documentation says. Aborts where that is less than the exact one, or
 * more by more than is documented: 2^-23 of a token, and the rounding up to 2^8 units.
 */
model_units model_convert(model_units debt, __u64 from, __u64 to);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "level.h"

#include <stdio.h>
#include <stdlib.h>

#define COARSE	 256  /* units; costs, bursts and debts are whole multiples */
#define FRACTION 4096 /* parts of a coarse unit that rl_rate.mult counts */

static model_units divide_up(model_units a, model_units b)
{
	return (a + b - 1) / b;
}

static model_units larger(model_units a, model_units b)
{
	return a > b ? a : b;
}

static model_units smaller(model_units a, model_units b)
{
	return a < b ? a : b;
}

model_units model_cost(const struct rl_rate *rate, __u64 tokens)
{
	return divide_up((model_units)tokens * rate->mult, FRACTION) * COARSE;
}

/* Units that flow in from `since` to `until`. */
static model_units refill(__u32 shift, __u64 since, __u64 until)
{
	return (model_units)(until - since) << shift;
}

static void level_update(struct model_level *level, __u64 now)
{
	level->level = smaller(level->burst, level->level + refill(level->shift, level->at, now));
	level->at = now;
}

model_units model_convert(model_units debt, __u64 from, __u64 to)
{
	model_units exact = divide_up(debt * to, from), whole = debt / from, rest = debt % from;
	model_units divisor = from, part, rounded;

	/* The program's fraction of a token: of the rest and the divisor the highest bits, 2^-31 parts, all upward. */
	while (divisor >= (model_units)1 << 32) {
		divisor /= 256;
		rest = divide_up(rest, 256);
	}
	part = divide_up(rest << 31, divisor);
	rounded = divide_up(whole * to + divide_up(part * to, (model_units)1 << 31), COARSE) * COARSE;
	if (rounded < exact || rounded > exact + to / (1 << 23) + 2 + COARSE) {
		fprintf(stderr, "model_convert: %llu at %llu to %llu isn't rounded as documented\n",
			(unsigned long long)debt, from, to);
		abort();
	}
	return rounded;
}

void model_level_change(struct model_level *level, const struct rl_rate *rate, __u64 now)
{
	model_units debt;

	if (!level->charged || level->forgotten || !rate->mult)
		return; /* a generation without this unit: the debt goes on shrinking at the rate it had */
	level_update(level, now);
	debt = model_convert(level->burst - level->level, level->mult, rate->mult);
	level->mult = rate->mult;
	level->shift = rate->shift;
	level->burst = rate->burst;
	level->level = level->burst - debt;
}

/* All that can be owed: a burst at the last change, or what was left of larger ones then; less what flowed in since. */
static void level_forget(struct model_level *level, const struct rl_limit *quantum,
			 const struct rl_rate *rate, __u64 now)
{
	model_units owed = (model_units)rate->owed - refill(rate->shift, quantum->past[0].until, now);

	level->forgotten = false;
	level->mult = rate->mult;
	level->shift = rate->shift;
	level->burst = rate->burst;
	level->level = level->burst - larger(owed / COARSE * COARSE, 0);
	level->at = now;
}

void model_level_touch(struct model_level *level, const struct rl_limit *quantum, enum rl_unit unit,
		       __u64 now)
{
	const struct rl_rate *rate = &quantum->rate[unit];
	bool missed = level->forgotten || quantum->gen - level->gen > RL_PAST;

	if (!level->charged) {
		if (!rate->mult)
			return;
		*level = (struct model_level){.charged = true,
					      .mult = rate->mult,
					      .shift = rate->shift,
					      .burst = rate->burst,
					      .level = rate->burst,
					      .at = now};
	} else if (missed && rate->mult) {
		level_forget(level, quantum, rate, now);
	} else if (!rate->mult) {
		if (level->looked == quantum->gen)
			return;
		level->looked = quantum->gen;
		level_update(level, now);
		if (missed)
			level->forgotten = true;
		else if (level->level == level->burst)
			level->charged = false; /* it owes nothing: there is nothing to be kept for later */
		return;
	}
	level->gen = quantum->gen;
}

model_units model_level_lack(struct model_level *level, const struct rl_rate *rate, model_units cost,
			     model_units kept, __u64 now)
{
	if (!rate->mult)
		return 0;
	level_update(level, now);
	return cost + kept - level->level;
}

void model_level_take(struct model_level *level, model_units cost)
{
	level->level -= cost;
}

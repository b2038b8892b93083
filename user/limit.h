/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit.h - what the operator said (struct rl_terms) to the arithmetic of a bucket (struct rl_limit). Pure.
 */
#ifndef RL_LIMIT_H
#define RL_LIMIT_H

#include <stdbool.h>

#include "../bpf/rl_abi.h"
#include "error.h"

/* Terms of which nothing was said. A zero priority would be RL_PRIORITY_HIGH. */
#define RL_TERMS_INIT                                                                                        \
	{                                                                                                    \
		.priority = RL_PRIORITY_UNSET                                                                \
	}

/* Default burst: 250 ms of the rate, but at least this, and at least what the dearest packet takes (see below). */
#define RL_BURST_PACKETS_MIN 16
#define RL_BURST_BYTES_MIN   16384
#define RL_BURST_BYTES_MTU   1522 /* a full frame with two VLAN tags: a smaller byte burst would starve TCP */

/*
 * Fill in the defaults and check the whole, for this target: what contradicts itself or the target is refused with the
 * reason (RL_ERROR_USAGE). Default bursts; at least one rate (but for a tenant that only states a priority, and for allow
 * and deny, which have none); no burst without its rate; a byte burst of at least one full frame, and a packet burst of
 * at least the dearest packet's cost, both also in what a reserve leaves to the lowest priority; a burst that takes less
 * than half the clock's wrap to refill; `new` counts sources, so its rate is in packets alone. What a target can have:
 *
 *              tenant  class  shared, per  cost  priority  reserve  shadow
 *   prefix       x       x        x         x       x                 x
 *   its class            x                                            x     one bucket where the target has one
 *   tenant                                          x        x        x
 *   device                                                   x        x
 *   new                                                               x
 *
 * `per` lies between the target's own length and 32 or 128, and not with shared; not on `any`, which has two families.
 * Allow and deny are of prefixes alone, without rates; they may have a tenant, and deny shadow.
 * On error *terms is untouched.
 */
int rl_terms_complete(const struct rl_target *target, struct rl_terms *terms, struct rl_error *err);

/* What was said of whom, as far as limits bear on each other. */
struct rl_stated {
	const struct rl_target *target;
	const struct rl_terms *terms; /* complete */
};

/*
 * Can a prefix's dearest packet ever pass a bucket that it shares with others, a tenant's or a device's, of which a reserve
 * may keep some from its priority? RL_ERROR_USAGE where it can't.
 */
int rl_cost_check(const struct rl_stated *payer, enum rl_priority priority, const struct rl_stated *shared,
		  struct rl_error *err);

/*
 * The least burst under which even the lowest priority can send what takes so many tokens (at most 2^17), by complete terms; 0
 * without a rate in this unit.
 */
__u64 rl_burst_to_hold(const struct rl_terms *terms, enum rl_unit unit, __u32 tokens);

/* "1kpps burst 2000p and 10mbit burst 256kb, tenant acme, shadow", "allow", for people: all that was said but target and
 * class. Returns buf. */
#define RL_TERMS_TEXT 560
const char *rl_terms_print(const struct rl_terms *terms, char buf[RL_TERMS_TEXT]);

/* One unit's arithmetic. `tokens` per `per_seconds` seconds (both > 0), `burst` tokens, and the smallest
 * number of tokens that a packet takes. -ERANGE where the burst takes too long to refill. */
int rl_rate_compute(__u64 tokens, __u64 per_seconds, __u64 burst, __u64 smallest, struct rl_rate *out);

/*
 * The limit for `target` under complete terms. `old` is the limit it replaces in place (its id, slot, classes, tenant and
 * history carry over, and its generation goes up where rate or burst changed), or NULL for a new one with the
 * given id and slot. `now` is CLOCK_MONOTONIC, ns: from then on debts shrink at the new rate. The slots of a new one's
 * classes and tenant are the caller's to fill in; so is a class's granularity (bits, RL_LIMIT_OWN_BUCKET), which its own
 * terms don't say: it is its target's general limit's.
 */
int rl_limit_compute(const struct rl_target *target, const struct rl_terms *terms, const struct rl_limit *old,
		     __u32 id, __u32 slot, __u64 now, struct rl_limit *out, struct rl_error *err);

/* Are they one limit in all that they say and remember? */
bool rl_limit_same(const struct rl_limit *a, const struct rl_limit *b);

/* A class has its buckets where its target as a whole has them: one for all of it, or one for each of its sources. Whether
 * that is another place than before. */
bool rl_limit_follow(struct rl_limit *class, const struct rl_limit *general);

/* Does the limit say anything? A tenant's may only be there for the prefixes that name it, and a prefix's for its classes. */
bool rl_limit_says(const struct rl_limit *limit);

/*
 * Make of a limit that was computed in the place of `old` one that remembers nothing of it: another generation, under which
 * no word of an earlier one can be converted. A bucket that isn't set to full besides starts empty.
 */
void rl_limit_forgive(struct rl_limit *limit, const struct rl_limit *old);

/*
 * A change keeps debts, so a bucket may owe more than the limit's burst: ns, at most, that such a one passes nothing; 0 where
 * none can owe so much.
 */
__u64 rl_limit_overdrawn(const struct rl_limit *limit);

/* Neighbour discovery's budget: 1000 packets a second, burst 1000. */
void rl_limit_nd(struct rl_limit *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit.h - what the operator said (struct rl_terms) to the arithmetic of a bucket (struct rl_limit). Pure.
 */
#ifndef RL_LIMIT_H
#define RL_LIMIT_H

#include "../bpf/rl_abi.h"
#include "error.h"

#define RL_BURST_PACKETS_MIN 16	   /* default burst: 100 ms of the rate, but at least this */
#define RL_BURST_BYTES_MIN   16384 /* likewise */
#define RL_BURST_BYTES_MTU   1522 /* a full frame with two VLAN tags: a smaller byte burst would starve TCP */

/*
 * Fill in the default bursts and check the whole: at least one rate; no burst without its rate; a byte burst
 * of at least one full frame; a burst that takes less than half the clock's wrap to refill. On error *terms
 * is untouched.
 */
int rl_terms_complete(struct rl_terms *terms, struct rl_error *err);

/* "1kpps burst 2000p and 10mbit burst 256kb", for people. Returns buf. */
#define RL_TERMS_TEXT 200
const char *rl_terms_print(const struct rl_terms *terms, char buf[RL_TERMS_TEXT]);

/* One unit's arithmetic. `tokens` per `per_seconds` seconds (both > 0), `burst` tokens, and the smallest
 * number of tokens that a packet takes. -ERANGE where the burst takes too long to refill. */
int rl_rate_compute(__u64 tokens, __u64 per_seconds, __u64 burst, __u64 smallest, struct rl_rate *out);

/*
 * The limit for `target` under complete terms. `old` is the limit it replaces in place (its id, slot and
 * history carry over, and its generation goes up where rate or burst changed), or NULL for a new one with the
 * given id and slot. `now` is CLOCK_MONOTONIC, ns: from then on debts shrink at the new rate.
 */
int rl_limit_compute(const struct rl_prefix *target, const struct rl_terms *terms, const struct rl_limit *old,
		     __u32 id, __u32 slot, __u64 now, struct rl_limit *out, struct rl_error *err);

/* Neighbour discovery's budget: 1000 packets a second, burst 1000. */
void rl_limit_nd(struct rl_limit *out);

#endif

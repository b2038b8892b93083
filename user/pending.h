/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pending.h - drops that CPUs have counted and that aren't in their sources' tallies yet (bpf/rl_tally.h): read by who reads those
 * (sources.h), forgotten by who zeroes them (reset.h).
 *
 * What is pending may be brought home while it is read, and would then be missing, or counted twice. So read like this:
 *
 *     struct rl_pendings_reading reading = rl_pendings_begin(pendings, place);
 *
 *     do {
 *             the tally at the place, and rl_pendings_add(pendings, place, key, &it)
 *     } while (rl_pendings_again(pendings, &reading));
 */
#ifndef RL_USER_PENDING_H
#define RL_USER_PENDING_H

#include "mapping.h"

#define RL_PENDINGS_NUMBERS 65536 /* of places that are told apart at a glance; a power of two */

struct rl_pendings {
	struct rl_mapping map;
	__u64 seen[RL_PENDINGS_NUMBERS /
		   64]; /* bits of the places that had something pending at the last look */
};

#define RL_PENDINGS __attribute__((cleanup(rl_pendings_close)))

/* Start from a zeroed one. */
int rl_pendings_open(const struct rl_state *state, bool writable, struct rl_pendings *out,
		     struct rl_error *err);
void rl_pendings_close(struct rl_pendings *pendings);

/* See for which places something is pending: before many of them are read. */
void rl_pendings_look(struct rl_pendings *pendings);

/* Was something pending for this place at the last look? Seldom true where it wasn't. place: rl_place_number(), or RL_PLACE_OWN */
static inline bool rl_pendings_seen(const struct rl_pendings *pendings, __u64 place)
{
	place &= RL_PENDINGS_NUMBERS - 1;
	return pendings->seen[place / 64] >> (place % 64) & 1;
}

/* How often the elements that may hold something of a place had changed hands, when it was begun to be read. */
struct rl_pendings_reading {
	__u64 place, turns;
	int tries;
};

struct rl_pendings_reading rl_pendings_begin(const struct rl_pendings *pendings, __u64 place);

/* Did one of them change hands meanwhile? Then what was read is worth nothing. It ends, if they never hold still: after so many
 * tries that none of the CPUs can have been at work on one all the time. */
bool rl_pendings_again(const struct rl_pendings *pendings, struct rl_pendings_reading *reading);

/* Add to the tally's drops what is pending for the source `key` at this place, on all CPUs. */
void rl_pendings_add(const struct rl_pendings *pendings, __u64 place, __u64 key, struct rl_tally *tally);

/* Forget what is pending for sources under limits that `chosen` says yes to. */
void rl_pendings_forget(struct rl_pendings *pendings, bool (*chosen)(const void *context, __u32 id),
			const void *context);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stage.h - several limits changed at once: for packets all at the same time, and whole or not at all where the agent is
 * killed on the way (policy.h, bpf/rl_ref.h).
 *
 *     unfinished = 1       whoever finds it so calls rl_stage_mend first
 *     heads                staged: the present cell before the next epoch, the new one from it on
 *     trie                 a new prefix is inserted, a head under it that gives the limit around it until the epoch
 *     epoch + 1            the change, by one store
 *     (grace period)       no packet is in the old epoch any more
 *     trie                 a deleted prefix goes, whose head gives the limit around it from the epoch on
 *     heads                settled, what lost is given back
 *     unfinished = 0
 *
 * Prefixes come and go like this too, one head alone, so that all sources are asked for anew which limit they are under
 * (bpf/rl_fast.h) in the moment when that changes; but for the grace period.
 *
 * Finishing does the same whether the epoch's store came before the kill or not: what is in force stays, the other cell
 * goes. A prefix whose cell in force isn't its own goes with it.
 */
#ifndef RL_STAGE_H
#define RL_STAGE_H

#include "heads.h"

/* One head of the change. */
struct rl_staged {
	__u32 slot;
	__u32 before; /* cell in force now; 0, or that of the limit around it, where the prefix is new */
	__u32 after;  /* likewise where it is deleted */
};

/* Make the change. `inserted`: the prefix that is new, or NULL; its slot is the first one's. On error nothing changed. */
int rl_stage_run(const struct rl_heads *heads, const struct rl_staged *staged, size_t count,
		 const struct rl_prefix *inserted, struct rl_error *err);

/* Finish a change that was interrupted, if one was. Before anything else is changed. */
int rl_stage_mend(const struct rl_heads *heads, struct rl_error *err);

#endif

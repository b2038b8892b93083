/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stage.h - several limits changed at once: for packets all at the same time, and whole or not at all where the agent is
 * killed on the way (policy.h, bpf/rl_ref.h).
 *
 *     unfinished = 1       whoever finds it so calls rl_stage_mend first
 *     heads                staged: the present cell before the next epoch, the new one from it on
 *     index                new prefixes are entered, each with a head that gives the limit around it until the epoch
 *     names                new ones are entered, each for a head that gives none until the epoch
 *     epoch + 1            the change, by one store
 *     (grace period)       no packet is in the old epoch any more
 *     index, names         deleted ones go, whose heads give the limit around them, or none, from the epoch on
 *     heads                settled, what lost is given back, with the classes that only it named
 *     unfinished = 0
 *
 * What a prefix is around is meant as of the policy before for new prefixes, and as of the policy afterwards for deleted ones.
 * Class limits that come or go need no head of the change: they are in reach by their prefix's cell alone.
 *
 * A prefix that comes or goes alone does so like this too, so that all sources are asked for anew which limit they are under
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
	__u32 before; /* cell in force now; 0, or that of the limit around it, where it is new */
	__u32 after;  /* likewise where it is deleted */
	const struct rl_target *enters; /* of a new prefix or name: not in reach yet. Otherwise NULL */
};

/* Make the change. On error nothing changed. */
int rl_stage_run(const struct rl_heads *heads, const struct rl_staged *staged, size_t count,
		 struct rl_error *err);

/* Finish a change that was interrupted, if one was. Before anything else is changed. */
int rl_stage_mend(const struct rl_heads *heads, struct rl_error *err);

#endif

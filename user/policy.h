/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policy.h - the pinned policy as limits: read all of it, set one, delete one.
 *
 * A limit is found by its target: a prefix by the index, which gives its slot (index.h); tenants, devices and `new` by
 * rl_names. The slot's head says which cell is in force (rl_ref.h), and a prefix's cell names the slots of its class limits
 * and of its tenant. A tenant has a slot as soon as a prefix names it, with no rate until it is given one.
 *
 * Every change is whole or not at all, for packets and for an agent that is killed:
 *   - a new limit: claim slot and cell, zero the slot's bucket and counters, write the cell, set the head, then make it
 *     reachable by one system call (name, or its prefix's new cell); a prefix, with an epoch (stage.h);
 *   - a changed one: write a free cell, then one store of the head;
 *   - a deleted one: take it out of reach by one system call, or, of a name, by one store of the head (names.h). Of a
 *     tenant that prefixes belong to, that store puts a version without terms in force; then its bucket is filled;
 *   - where more than one head changes (a prefix's tenant, inherited by the prefixes inside it): stage all of them for
 *     the next epoch with meta.unfinished set, put them in force by one store of rl_settings.epoch, wait until no packet
 *     is in the old epoch, settle them, and clear meta.unfinished. Whoever finds it set settles or unstages first.
 *
 * A slot or cell that was freed may still be read by packets that came before: it is taken again as late as can be, and
 * within RL_POLICY_QUARANTINE seconds only after a grace period of the kernel's (claims.h). What a killed agent had
 * claimed is found again when free ones run out.
 *
 * All that change anything need the lock. `now` is CLOCK_MONOTONIC as packets read it, ns.
 */
#ifndef RL_POLICY_H
#define RL_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "state.h"

#define RL_POLICY_QUARANTINE 60

/*
 * Every limit in force, in the order of rl_target_compare, a target's general limit first and then its classes. Tenants
 * that have a slot and no terms of their own are left out. *out is allocated; the caller frees it.
 */
int rl_policy_read(const struct rl_state *state, struct rl_limit **out, size_t *count, struct rl_error *err);

/*
 * Give `target` (terms->class: that class of it) these complete terms: a new limit, or the one it has changed in place. A
 * class of a prefix that has no general limit makes one without a rate. Whether others contradict it, rl_policy_check
 * tells, and whether a device is attached, the devices' map (attached.h).
 */
int rl_policy_set(const struct rl_state *state, const struct rl_target *target, const struct rl_terms *terms,
		  __u64 now, struct rl_error *err);

/* Delete one class limit, or with NULL all that the target has. -ENOENT with RL_ERROR_USAGE where there is none. */
int rl_policy_delete(const struct rl_state *state, const struct rl_target *target,
		     const struct rl_class *class, __u64 now, struct rl_error *err);

/*
 * Would limits contradict each other if this one had these terms, or with NULL none? RL_ERROR_USAGE, with the reason, where
 * a packet would cost more than its tenant's bucket or any device's, attached or not, can ever hold for its priority.
 * Commands ask before they change anything, under the lock. Takes long only where there are costs at all.
 */
int rl_policy_check(const struct rl_state *state, const struct rl_target *target,
		    const struct rl_class *class, const struct rl_terms *terms, struct rl_error *err);

/* The limit of this very target (class NULL: the general one). False where there is none. */
bool rl_policy_find(const struct rl_state *state, const struct rl_target *target,
		    const struct rl_class *class, struct rl_limit *out);

/* The limit in force in this slot; false for slot 0, or none. */
bool rl_policy_slot(const struct rl_state *state, __u32 slot, struct rl_limit *out);

/* The general limit that holds for this source at present: the longest match. False where there is none. */
bool rl_policy_match(const struct rl_state *state, const struct rl_prefix *source, struct rl_limit *out);

/* attach's: the slot of the limit of "dev:NAME", or 0. */
__u32 rl_policy_device(const struct rl_state *state, const char *name);

#endif

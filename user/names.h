/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * names.h - limits that are found by name and not by prefix: tenants, devices, `new`.
 *
 * A name is entered before its slot has a cell in force, and taken out after it has none any more: so it is the head's
 * store, or the epoch's (stage.h), that puts the limit in force or ends it. A name without a cell was left by an agent that was
 * killed; it means nothing, and goes when it is in the way.
 *
 * Packets find a device's limit by rl_devices[].limit and that of `new` by rl_settings.fresh. Those words follow the name.
 */
#ifndef RL_NAMES_H
#define RL_NAMES_H

#include "heads.h"

/* The limit in force under this name. False: none. */
bool rl_names_find(const struct rl_heads *heads, const struct rl_target *target, struct rl_limit *out);

/* rl_policy_set for a name; its slot. */
int rl_names_set(const struct rl_heads *heads, const struct rl_target *target, const struct rl_terms *terms,
		 __u64 now, __u32 *slot, struct rl_error *err);

/* rl_policy_delete. A tenant that prefixes belong to keeps its slot, without terms; what it owes is forgiven. */
int rl_names_delete(const struct rl_heads *heads, const struct rl_target *target, __u64 now,
		    struct rl_error *err);

/* The slot of a tenant, which is made if it isn't there. */
int rl_names_tenant(const struct rl_heads *heads, const char *name, __u64 now, __u32 *out,
		    struct rl_error *err);

/* Lead a name to its slot, where it isn't there, or leads to one that gives no cell; packets look for it there as well. */
int rl_names_enter(const struct rl_heads *heads, const struct rl_target *target, __u32 slot,
		   struct rl_error *err);

/* Take a name out whose slot gives no cell, from where packets look for it as well. */
int rl_names_leave(const struct rl_heads *heads, const struct rl_target *target, struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefixes.h - limits of prefixes and of their classes: found by the index, whose slot's limit names the classes' slots and
 * the tenant's. The tenant is the prefix's own, or that of the nearest prefix around it that has one.
 */
#ifndef RL_PREFIXES_H
#define RL_PREFIXES_H

#include "heads.h"

/* The slot's limit, if it is this very prefix's: while a change is under way it may be that of the prefix around. */
bool rl_prefixes_general(const struct rl_heads *heads, __u32 slot, const struct rl_prefix *prefix,
			 struct rl_limit *out);

/* Is it a class limit that this general limit names so? NULL is none. */
bool rl_prefixes_class_is(const struct rl_limit *class, const struct rl_class_ref *ref,
			  const struct rl_limit *general);

/* A class limit that a general limit names. */
bool rl_prefixes_class(const struct rl_heads *heads, const struct rl_class_ref *ref,
		       const struct rl_limit *general, struct rl_limit *out);

/* The general limit of this very prefix. */
bool rl_prefixes_find(const struct rl_heads *heads, const struct rl_prefix *prefix, struct rl_limit *out);

/* rl_policy_set and rl_policy_delete for a prefix. */
int rl_prefixes_set(const struct rl_heads *heads, const struct rl_target *target,
		    const struct rl_terms *terms, __u64 now, struct rl_error *err);
int rl_prefixes_delete(const struct rl_heads *heads, const struct rl_target *target,
		       const struct rl_class *class, struct rl_error *err);

#endif

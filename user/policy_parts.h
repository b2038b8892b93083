/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy_parts.h - what the files behind policy.h share. */
#ifndef RL_POLICY_PARTS_H
#define RL_POLICY_PARTS_H

#include "heads.h"

/* Without a word of its own: what a tenant has that is only named, and a prefix that only has classes. */
extern const struct rl_terms rl_no_terms;

/* -ENOENT: there is no such limit to delete. */
int rl_policy_absent(const struct rl_target *target, const struct rl_class *class, struct rl_error *err);

/*
 * rl_policy_read, with the tenants that are only named, and without copying: under the lock, with cells that are mapped. What
 * they point to stays as it is until the next change has been made.
 */
int rl_policy_cells(const struct rl_heads *heads, const struct rl_limit ***out, size_t *count,
		    struct rl_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * diff.h - from the policy in force to the one that a file states: what becomes of each limit. Pure.
 *
 * A step is a limit of either: what stays has the same cell before and after, what changes another one, what comes has none
 * before, what goes none after. Besides what the file says there is what follows from it: a tenant that prefixes name has
 * a limit without a rate, and so has a prefix of which only classes are said; a prefix without a tenant has that of the
 * nearest prefix around it. All of it as set-limit would have made it, whatever the order.
 *
 * Steps are in the order of rl_target_compare, a prefix's general limit first and then its classes as they are, then as the
 * file names them. Both policies are in this order, so that one walk along both makes them.
 */
#ifndef RL_DIFF_H
#define RL_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "policy_file.h"

enum rl_fate { RL_FATE_STAYS, RL_FATE_CHANGES, RL_FATE_COMES, RL_FATE_GOES, RL_FATES };

#define RL_SLOT_UNCLAIMED (~0U)

struct rl_step {
	const struct rl_target *target;
	const struct rl_class *class;	   /* not set: of the target as a whole */
	const struct rl_limit *old;	   /* in force; NULL: none */
	const struct rl_policy_line *line; /* what the file says; NULL: nothing */
	enum rl_fate fate;
	bool wanted;	/* it is in the new policy, by its line or by what follows from others */
	__u8 classes;	/* of a general limit: steps behind it that are of its classes */
	__u32 id, slot; /* of what comes: claimed by who makes it, until then 0 and RL_SLOT_UNCLAIMED */
	__u32 cell;	/* in force afterwards; likewise, also of what changes */
	/* Of a prefix: its tenant, said or inherited, and the nearest prefix around it in the old policy and in the new one. */
	struct rl_step *tenant, *around_old, *around_new;
};

/* What an operator is told: of what was said before, and what is said now. */
struct rl_diff_counts {
	size_t limits, come, changed, gone, same; /* limits = come + changed + same */
};

/* A tenant that lines name. */
struct rl_diff_tenant {
	struct rl_target target;
	struct rl_step *step;
};

struct rl_diff {
	struct rl_step *steps;
	size_t count;
	size_t fates[RL_FATES]; /* steps of each */
	struct rl_diff_counts said;
	__u64 now;
	const char *name;		/* of the file, for errors */
	struct rl_diff_tenant *tenants; /* in order */
	size_t tenant_count;
};

#define RL_DIFF __attribute__((cleanup(rl_diff_free)))

/*
 * `old`: the policy in force, in the order of rl_policy_read, with tenants that are only named. The limits and the file have to
 * outlive the diff. RL_ERROR_USAGE, with the line, where a limit can't follow upon its old one (rl_limit_compute). Start from a
 * zeroed *out; it stays so on error.
 */
int rl_diff_make(const struct rl_limit *const *old, size_t count, const struct rl_policy_file *file,
		 __u64 now, struct rl_diff *out, struct rl_error *err);
void rl_diff_free(struct rl_diff *diff);

/*
 * The limit that a step that is wanted has in the new policy. `general` is its prefix's, for a class; otherwise NULL. Once
 * all slots are claimed it is complete.
 */
int rl_diff_limit(const struct rl_diff *diff, const struct rl_step *step, const struct rl_limit *general,
		  struct rl_limit *out, struct rl_error *err);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * policy_check.c - what limits say of each other: the policy as a change would make it, in which no packet may cost more
 * than a bucket that its prefix shares can ever hold for it.
 */
#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "class.h"
#include "cleanup.h"
#include "heads.h"
#include "limit.h"
#include "policy_apply.h"
#include "target.h"

/* A change: to which limit, and its terms; NULL: deleted. */
struct change {
	const struct rl_target *target;
	const struct rl_terms *terms;
};

/* A whole policy, in the order of rl_policy_read. */
struct plan {
	struct rl_stated *at;
	size_t count;
};

/* What the change makes of it. There is room for one more. */
static void plan_change(struct plan *plan, const struct change *change)
{
	struct rl_stated *at = plan->at;
	size_t i = 0;
	bool there;

	while (i < plan->count && rl_target_compare(at[i].target, change->target) < 0)
		i++;
	there = i < plan->count && !rl_target_compare(at[i].target, change->target);
	if (!change->terms) {
		if (there)
			memmove(&at[i], &at[i + 1], (--plan->count - i) * sizeof(*at));
		return;
	}
	if (!there)
		memmove(&at[i + 1], &at[i], (plan->count++ - i) * sizeof(*at));
	at[i] = (struct rl_stated){.target = change->target, .terms = change->terms};
}

static int plan_compare(const void *a, const void *b)
{
	const struct rl_stated *one = a, *other = b;

	return rl_target_compare(one->target, other->target);
}

/* NULL where the tenant says nothing, or nobody is named. */
static const struct rl_stated *plan_tenant(const struct plan *plan, const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_TENANT};
	const struct rl_stated key = {.target = &target};

	if (!*name)
		return NULL;
	snprintf(target.name, sizeof(target.name), "%s", name);
	return bsearch(&key, plan->at, plan->count, sizeof(key), plan_compare);
}

/* Where the limits of devices begin. */
static size_t plan_devices(const struct plan *plan)
{
	size_t i = 0;

	while (i < plan->count && plan->at[i].target->kind < RL_TARGET_DEVICE)
		i++;
	return i;
}

static int prefix_check(const struct plan *plan, const struct rl_stated *limit, const char *tenant_name,
			size_t devices, struct rl_error *err)
{
	const struct rl_stated *tenant = plan_tenant(plan, tenant_name);
	__u8 priority = limit->terms->priority;
	int rc = 0;

	if (priority == RL_PRIORITY_UNSET && tenant)
		priority = tenant->terms->priority;
	if (priority == RL_PRIORITY_UNSET)
		priority = RL_PRIORITY_NORMAL;
	if (tenant)
		rc = rl_cost_check(limit, priority, tenant, err);
	for (size_t i = devices; !rc && i < plan->count; i++)
		if (plan->at[i].target->kind == RL_TARGET_DEVICE)
			rc = rl_cost_check(limit, priority, &plan->at[i], err);
	return rc;
}

/* Every prefix that has costs, under its own tenant or that of the nearest prefix around it that has one. *at: which it is. */
static int plan_check(const struct plan *plan, size_t *at, struct rl_error *err)
{
	struct {
		const struct rl_prefix *prefix;
		const char *tenant;
	} around[RL_PREFIX_MAX_BITS + 1]; /* each inside the one before: no two are of one length */
	size_t devices = plan_devices(plan), depth = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < plan->count; i++) {
		const struct rl_stated *limit = &plan->at[i];
		const char *tenant = limit->terms->tenant;

		if (limit->target->kind != RL_TARGET_PREFIX || rl_class_is_set(&limit->terms->class))
			continue;
		while (depth && !rl_prefix_covers(around[depth - 1].prefix, &limit->target->prefix))
			depth--;
		if (!*tenant && depth)
			tenant = around[depth - 1].tenant;
		around[depth].prefix = &limit->target->prefix;
		around[depth++].tenant = tenant;
		*at = i;
		if (limit->terms->cost_count)
			rc = prefix_check(plan, limit, tenant, devices, err);
	}
	return rc;
}

/* Does any limit in force say a cost? Far quicker than to read them all. */
static int costs_find(const struct rl_state *state, bool *found, struct rl_error *err)
{
	RL_HEADS struct rl_heads scan = {};
	int rc = rl_heads_open(state, RL_HEADS_SCAN, &scan, err);

	*found = false;
	for (__u32 slot = 1; !rc && slot < scan.map.entries && !*found; slot++) {
		const struct rl_limit *limit = rl_cell_at(&scan, rl_heads_cell(&scan, slot), NULL);

		*found = limit && limit->cost_count;
	}
	return rc;
}

/* A prefix without costs, whose tenant it and those inside it keep: most changes of a large policy are such. */
static bool is_harmless(const struct rl_state *state, const struct change *change)
{
	const char *after = change->terms ? change->terms->tenant : "", *before = "";
	struct rl_limit old;

	if (change->target->kind != RL_TARGET_PREFIX || (change->terms && change->terms->cost_count))
		return false;
	if (rl_policy_find(state, change->target, NULL, &old))
		before = old.terms.tenant;
	return !strncmp(before, after, RL_TENANT_LEN);
}

/* With room for one more. */
static int plan_make(struct plan *plan, const struct rl_limit *limits, size_t count, struct rl_error *err)
{
	plan->at = calloc(count + 1, sizeof(*plan->at));
	if (!plan->at)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		plan->at[i] = (struct rl_stated){.target = &limits[i].target, .terms = &limits[i].terms};
	plan->count = count;
	return 0;
}

/* One that contradicts itself already, as an older rl-agent may have left it, is to be changed, one limit at a time. */
static int change_check(const struct rl_state *state, const struct change *change, struct rl_error *err)
{
	RL_FREE struct rl_limit *limits = NULL;
	struct rl_error ignored;
	struct plan plan = {};
	size_t at, count = 0;
	int rc = rl_policy_read(state, &limits, &count, err);

	if (!rc)
		rc = plan_make(&plan, limits, count, err);
	if (!rc && !plan_check(&plan, &at, &ignored)) {
		plan_change(&plan, change);
		rc = plan_check(&plan, &at, err);
	}
	free(plan.at);
	return rc;
}

int rl_policy_check(const struct rl_state *state, const struct rl_target *target,
		    const struct rl_class *class, const struct rl_terms *terms, struct rl_error *err)
{
	const struct change change = {.target = target, .terms = terms};
	bool costs = terms && terms->cost_count;
	int rc = 0;

	/* A class has no cost: each of its packets takes one token of its bucket. */
	if ((class && rl_class_is_set(class)) || is_harmless(state, &change))
		return 0;
	if (!costs)
		rc = costs_find(state, &costs, err);
	return rc || !costs ? rc : change_check(state, &change, err);
}

static bool file_has_costs(const struct rl_policy_file *file)
{
	for (const struct rl_phrase *phrase = file->phrases.last; phrase; phrase = phrase->before)
		if (phrase->terms.cost_count)
			return true;
	return false;
}

int rl_policy_file_check(const struct rl_policy_file *file, struct rl_error *err)
{
	struct plan plan = {.count = file->count};
	size_t at = 0;
	int rc;

	if (!file_has_costs(file))
		return 0;
	plan.at = calloc(file->count, sizeof(*plan.at));
	if (!plan.at)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < file->count; i++)
		plan.at[i] =
		    (struct rl_stated){.target = &file->lines[i].target, .terms = file->lines[i].terms};
	rc = plan_check(&plan, &at, err);
	free(plan.at);
	return rc ? rl_policy_line_error(file->name, file->lines[at].number, rc, err) : 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy_read.c - the reading half of policy.h: all of the policy, or one limit. Takes no lock. */
#include "policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "class.h"
#include "cleanup.h"
#include "heads.h"
#include "index.h"
#include "large.h"
#include "limit.h"
#include "names.h"
#include "policy_parts.h"
#include "prefixes.h"
#include "target.h"
#include "walk.h"

struct limits {
	struct rl_limit *at;
	size_t count;
	size_t room;
};

static int limits_add(struct limits *limits, const struct rl_limit *limit, struct rl_error *err)
{
	if (limits->count == limits->room) {
		size_t room = limits->room ? limits->room * 2 : 64;
		struct rl_limit *grown = rl_large_grow(limits->at, limits->count, room, sizeof(*grown));

		if (!grown)
			return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM,
					    "out of memory while reading the policy");
		limits->at = grown;
		limits->room = room;
	}
	limits->at[limits->count++] = *limit;
	return 0;
}

static int read_prefixes(const struct rl_heads *heads, struct limits *limits, struct rl_error *err)
{
	RL_FREE struct rl_ranges_prefix *entries = NULL;
	size_t count = 0;
	int rc = rl_index_list(heads, &entries, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct rl_limit general, class;

		if (!rl_prefixes_general(heads, entries[i].slot, &entries[i].prefix, &general))
			continue; /* deleted since */
		rc = limits_add(limits, &general, err);
		for (__u32 k = 0; !rc && k < general.class_count && k < RL_MAX_CLASSES; k++)
			if (rl_prefixes_class(heads, &general.class[k], &general, &class))
				rc = limits_add(limits, &class, err);
	}
	return rc;
}

static int read_names(const struct rl_heads *heads, struct limits *limits, struct rl_error *err)
{
	RL_FREE struct rl_walk_name *entries = NULL;
	size_t count = 0;
	int rc = rl_walk_names(heads->state, &entries, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct rl_limit limit;

		if (rl_heads_limit(heads, entries[i].slot, &limit) &&
		    !rl_target_compare(&limit.target, &entries[i].target) && rl_limit_says(&limit))
			rc = limits_add(limits, &limit, err);
	}
	return rc;
}

int rl_policy_read(const struct rl_state *state, struct rl_limit **out, size_t *count, struct rl_error *err)
{
	RL_HEADS struct rl_heads heads = {};
	struct limits limits = {};
	int rc = rl_heads_open(state, RL_HEADS_SCAN, &heads, err);

	if (!rc)
		rc = read_prefixes(&heads, &limits, err);
	if (!rc)
		rc = read_names(&heads, &limits, err);
	if (rc) {
		free(limits.at);
		return rc;
	}
	*out = limits.at;
	*count = limits.count;
	return 0;
}

/* ---- without copying ---- */

static const struct rl_limit *in_force(const struct rl_heads *heads, __u32 slot)
{
	return rl_cell_at(heads, rl_heads_cell(heads, slot), NULL);
}

static size_t cells_of_prefix(const struct rl_heads *heads, __u32 slot, const struct rl_limit **out)
{
	const struct rl_limit *general = in_force(heads, slot);
	size_t count = 0;

	out[count++] = general;
	for (__u32 k = 0; k < general->class_count && k < RL_MAX_CLASSES; k++) {
		const struct rl_limit *class = in_force(heads, general->class[k].slot);

		if (rl_prefixes_class_is(class, &general->class[k], general))
			out[count++] = class;
	}
	return count;
}

static size_t cells_of_names(const struct rl_heads *heads, const struct rl_walk_name *names, size_t count,
			     const struct rl_limit **out)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rl_limit *limit = in_force(heads, names[i].slot);

		if (limit && !rl_target_compare(&limit->target, &names[i].target))
			out[found++] = limit;
	}
	return found;
}

int rl_policy_cells(const struct rl_heads *heads, const struct rl_limit ***out, size_t *count,
		    struct rl_error *err)
{
	RL_FREE struct rl_ranges_prefix *prefixes = NULL;
	RL_FREE struct rl_walk_name *names = NULL;
	size_t prefix_count = 0, name_count = 0;
	const struct rl_limit **cells;
	int rc = rl_index_list(heads, &prefixes, &prefix_count, err);

	if (!rc)
		rc = rl_walk_names(heads->state, &names, &name_count, err);
	if (rc)
		return rc;
	/* What isn't needed is never touched. */
	cells = rl_large_alloc(prefix_count * (1 + RL_MAX_CLASSES) + name_count + 1, sizeof(void *));
	if (!cells)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading the policy");
	*count = 0;
	for (size_t i = 0; i < prefix_count; i++)
		*count += cells_of_prefix(heads, prefixes[i].slot, cells + *count);
	*count += cells_of_names(heads, names, name_count, cells + *count);
	*out = cells;
	return 0;
}

/* ---- one limit ---- */

static bool prefix_find(const struct rl_heads *heads, const struct rl_prefix *prefix,
			const struct rl_class *class, struct rl_limit *out)
{
	struct rl_limit general, one;

	if (!rl_prefixes_find(heads, prefix, &general))
		return false;
	if (!class || !rl_class_is_set(class)) {
		*out = general;
		return true;
	}
	for (__u32 k = 0; k < general.class_count && k < RL_MAX_CLASSES; k++)
		if (rl_class_same(&general.class[k].class, class) &&
		    rl_prefixes_class(heads, &general.class[k], &general, &one)) {
			*out = one;
			return true;
		}
	return false;
}

bool rl_policy_find(const struct rl_state *state, const struct rl_target *target,
		    const struct rl_class *class, struct rl_limit *out)
{
	RL_HEADS struct rl_heads heads = {};
	struct rl_limit limit;
	struct rl_error ignored;

	if (rl_heads_open(state, RL_HEADS_READ, &heads, &ignored))
		return false;
	if (target->kind == RL_TARGET_PREFIX)
		return prefix_find(&heads, &target->prefix, class, out);
	if ((class && rl_class_is_set(class)) || !rl_names_find(&heads, target, &limit) ||
	    !rl_limit_says(&limit))
		return false;
	*out = limit;
	return true;
}

bool rl_policy_slot(const struct rl_state *state, __u32 slot, struct rl_limit *out)
{
	RL_HEADS struct rl_heads heads = {};
	struct rl_limit limit;
	struct rl_error ignored;

	if (rl_heads_open(state, RL_HEADS_READ, &heads, &ignored) || !rl_heads_limit(&heads, slot, &limit))
		return false;
	*out = limit;
	return true;
}

bool rl_policy_match(const struct rl_state *state, const struct rl_prefix *source, struct rl_limit *out)
{
	RL_HEADS struct rl_heads heads = {};
	struct rl_limit limit;
	struct rl_error ignored;

	if (rl_heads_open(state, RL_HEADS_READ, &heads, &ignored) ||
	    !rl_heads_limit(&heads, rl_index_match(&heads, source), &limit))
		return false;
	*out = limit;
	return true;
}

__u32 rl_policy_device(const struct rl_state *state, const char *name)
{
	struct rl_target target = {.kind = RL_TARGET_DEVICE};
	struct rl_limit limit;

	snprintf(target.name, sizeof(target.name), "%s", name);
	return rl_policy_find(state, &target, NULL, &limit) ? limit.slot : 0;
}

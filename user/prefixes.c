// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "prefixes.h"

#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "class.h"
#include "cleanup.h"
#include "index.h"
#include "limit.h"
#include "names.h"
#include "policy.h"
#include "policy_parts.h"
#include "prefix.h"
#include "room.h"
#include "stage.h"
#include "target.h"

bool rl_prefixes_general(const struct rl_heads *heads, __u32 slot, const struct rl_prefix *prefix,
			 struct rl_limit *out)
{
	return rl_heads_limit(heads, slot, out) && out->level == RL_LEVEL_SOURCE &&
	       !rl_prefix_compare(&out->target.prefix, prefix);
}

bool rl_prefixes_class_is(const struct rl_limit *class, const struct rl_class_ref *ref,
			  const struct rl_limit *general)
{
	return class && class->level == RL_LEVEL_CLASS && rl_class_same(&class->terms.class, &ref->class) &&
	       !rl_target_compare(&class->target, &general->target);
}

bool rl_prefixes_class(const struct rl_heads *heads, const struct rl_class_ref *ref,
		       const struct rl_limit *general, struct rl_limit *out)
{
	return rl_heads_limit(heads, ref->slot, out) && rl_prefixes_class_is(out, ref, general);
}

bool rl_prefixes_find(const struct rl_heads *heads, const struct rl_prefix *prefix, struct rl_limit *out)
{
	return rl_prefixes_general(heads, rl_index_find(heads, prefix), prefix, out);
}

/* Heads that change at once, and what they change to. */
struct change {
	struct rl_staged *staged;
	size_t count;
	size_t room;
};

#define CHANGE __attribute__((cleanup(change_free)))

static void change_free(struct change *change)
{
	free(change->staged);
}

static int change_add(struct change *change, const struct rl_staged *staged, struct rl_error *err)
{
	if (change->count == change->room) {
		size_t room = change->room ? change->room * 2 : 16;
		struct rl_staged *grown = reallocarray(change->staged, room, sizeof(*grown));

		if (!grown)
			return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
		change->staged = grown;
		change->room = room;
	}
	change->staged[change->count++] = *staged;
	return 0;
}

/* One more limit that exists and changes: written into a cell of its own. */
static int change_limit(struct change *change, const struct rl_heads *heads, const struct rl_limit *limit,
			struct rl_error *err)
{
	struct rl_staged staged = {.slot = limit->slot, .before = rl_heads_cell(heads, limit->slot)};
	__u32 from = change->count ? change->staged[change->count - 1].after : staged.before;
	int rc = rl_room_cell(heads, limit, from, &staged.after, err);

	if (rc)
		return rc;
	rc = change_add(change, &staged, err);
	if (rc)
		rl_claim_free(heads, RL_MAP_CELLS, staged.after);
	return rc;
}

/* Give back the new cells of a change that isn't made. */
static void change_drop(const struct change *change, const struct rl_heads *heads)
{
	for (size_t i = 0; i < change->count; i++)
		rl_claim_free(heads, RL_MAP_CELLS, change->staged[i].after);
}

/* The general limit of the nearest prefix around this one, and its cell in force; 0 where there is none. */
static __u32 around_find(const struct rl_heads *heads, const struct rl_prefix *prefix, struct rl_limit *out)
{
	__u32 slot = rl_index_around(heads, prefix);

	*out = (struct rl_limit){};
	return rl_heads_limit(heads, slot, out) ? rl_heads_cell(heads, slot) : 0;
}

/* Into the policy, with a slot, an id and a cell of its own. around: the cell of the limit around it, or 0. */
static int prefix_enter(const struct rl_heads *heads, struct rl_limit *general, __u32 around,
			struct rl_error *err)
{
	struct rl_staged enters = {.before = around, .enters = &general->target};
	int rc = rl_room_slot(heads, &general->id, &general->slot, err);

	if (rc)
		return rc;
	enters.slot = general->slot;
	rc = rl_room_cell(heads, general, general->id, &enters.after, err);
	if (rc) {
		rl_claim_free(heads, RL_MAP_SLOTS, general->slot);
		return rc;
	}
	return rl_stage_run(heads, &enters, 1, err);
}

/*
 * The prefixes inside this one that inherit its tenant get another: from the prefix itself, or from what is around it. In
 * order, whatever covers a prefix stands before it.
 */
static int heirs_add(struct change *change, const struct rl_heads *heads, const struct rl_prefix *prefix,
		     __u32 tenant, struct rl_error *err)
{
	RL_FREE struct rl_limit *limits = NULL;
	const struct rl_prefix *apart = NULL; /* has a tenant of its own */
	size_t count = 0;
	int rc = rl_policy_read(heads->state, &limits, &count, err);

	for (size_t i = 0; !rc && i < count; i++) {
		struct rl_limit *limit = &limits[i];
		const struct rl_prefix *inner = &limit->target.prefix;

		if (limit->level != RL_LEVEL_SOURCE || !rl_prefix_compare(prefix, inner) ||
		    !rl_prefix_covers(prefix, inner) || (apart && rl_prefix_covers(apart, inner)))
			continue;
		if (limit->terms.tenant[0]) {
			apart = inner;
		} else if (limit->tenant != tenant) {
			limit->tenant = tenant;
			rc = change_limit(change, heads, limit, err);
		}
	}
	return rc;
}

static int classes_add(struct change *change, const struct rl_heads *heads, const struct rl_limit *general,
		       struct rl_error *err)
{
	int rc = 0;

	for (__u32 i = 0; !rc && i < general->class_count && i < RL_MAX_CLASSES; i++) {
		struct rl_limit class;

		if (rl_heads_limit(heads, general->class[i].slot, &class) && rl_limit_follow(&class, general))
			rc = change_limit(change, heads, &class, err);
	}
	return rc;
}

/* What a general limit was, and is to be. */
struct succession {
	struct rl_limit old, new, around;
	__u32 around_cell;
	bool there; /* there is an old one */
};

/* A new one whose tenant those inside it inherit: all at once. */
static int general_enter_staged(const struct rl_heads *heads, struct succession *next, struct change *heirs,
				struct rl_error *err)
{
	struct rl_staged enters = {.before = next->around_cell, .enters = &next->new.target};
	CHANGE struct change change = {};
	int rc = rl_room_slot(heads, &next->new.id, &next->new.slot, err);

	if (rc)
		return rc;
	enters.slot = next->new.slot;
	rc = rl_room_cell(heads, &next->new, next->new.id, &enters.after, err);
	if (rc) {
		rl_claim_free(heads, RL_MAP_SLOTS, next->new.slot);
		return rc;
	}
	rc = change_add(&change, &enters, err);
	for (size_t i = 0; !rc && i < heirs->count; i++)
		rc = change_add(&change, &heirs->staged[i], err);
	if (rc) {
		rl_claim_free(heads, RL_MAP_CELLS, enters.after);
		rl_claim_free(heads, RL_MAP_SLOTS, next->new.slot);
		return rc;
	}
	heirs->count = 0; /* from here on they are given back with the rest */
	return rl_stage_run(heads, change.staged, change.count, err);
}

/* Put the new one in force, with all that changes by it. */
static int general_put(const struct rl_heads *heads, struct succession *next, struct rl_error *err)
{
	const char *was = next->there ? next->old.terms.tenant : "";
	CHANGE struct change change = {};
	int rc = 0;

	if (strncmp(was, next->new.terms.tenant, RL_TENANT_LEN) != 0)
		rc = heirs_add(&change, heads, &next->new.target.prefix, next->new.tenant, err);
	if (!rc)
		rc = classes_add(&change, heads, &next->new, err);
	if (!rc && !next->there && change.count)
		rc = general_enter_staged(heads, next, &change, err);
	else if (!rc && !next->there)
		rc = prefix_enter(heads, &next->new, next->around_cell, err);
	else if (!rc && !change.count)
		rc = rl_room_replace(heads, &next->new, err);
	else if (!rc) {
		rc = change_limit(&change, heads, &next->new, err);
		if (!rc)
			return rl_stage_run(heads, change.staged, change.count, err);
	}
	if (rc)
		change_drop(&change, heads);
	return rc;
}

static int general_set(const struct rl_heads *heads, const struct rl_target *target,
		       const struct rl_terms *terms, __u64 now, struct rl_error *err)
{
	struct succession next = {};
	int rc;

	next.there = rl_prefixes_find(heads, &target->prefix, &next.old);
	next.around_cell = around_find(heads, &target->prefix, &next.around);
	/* What can't be is refused before anything is claimed. */
	rc = rl_limit_compute(target, terms, next.there ? &next.old : NULL, 0, 0, now, &next.new, err);
	if (!rc)
		next.new.tenant = next.around.tenant;
	if (!rc && terms->tenant[0])
		rc = rl_names_tenant(heads, terms->tenant, now, &next.new.tenant, err);
	if (rc)
		return rc;
	if (terms->action != RL_ACTION_LIMIT) {
		next.new.class_count = 0;
		memset(next.new.class, 0, sizeof(next.new.class));
	}
	rc = general_put(heads, &next, err);
	if (rc || !next.there)
		return rc;
	for (__u32 i = next.new.class_count; i < next.old.class_count; i++)
		rl_room_free(heads, next.old.class[i].slot);
	return 0;
}

static int class_find(const struct rl_limit *general, const struct rl_class *class)
{
	for (int i = 0; i < general->class_count && i < RL_MAX_CLASSES; i++)
		if (rl_class_same(&general->class[i].class, class))
			return i;
	return -ENOENT;
}

/* Can this limit get one more class? */
static int class_check(const struct rl_limit *general, struct rl_error *err)
{
	char text[RL_PREFIX_TEXT];

	rl_prefix_print(&general->target.prefix, text);
	if (general->action != RL_ACTION_LIMIT)
		return rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "%s is %s, whatever class a packet is of: `rl-agent set-limit %s --rate ...` "
		    "or `rl-agent del-limit %s` first",
		    text, general->action == RL_ACTION_ALLOW ? "allowed" : "denied", text, text);
	if (general->class_count >= RL_MAX_CLASSES)
		return rl_error_set(
		    err, RL_ERROR_KERNEL, E2BIG,
		    "%s has %d classes with limits of their own already, and that is the most: delete one "
		    "with `rl-agent del-limit %s --class CLASS`",
		    text, RL_MAX_CLASSES, text);
	return 0;
}

/* A class that the target has no limit for yet: made, then put in reach with the general limit that names it. */
static int class_enter(const struct rl_heads *heads, struct rl_limit *general, bool there, __u32 around,
		       struct rl_limit *class, struct rl_error *err)
{
	int rc = class_check(general, err);

	if (rc)
		return rc;
	rc = rl_room_place(heads, class, err);
	if (rc)
		return rc;
	general->class[general->class_count++] =
	    (struct rl_class_ref){.class = class->terms.class, .slot = class->slot};
	if (there)
		rc = rl_room_replace(heads, general, err);
	else
		rc = prefix_enter(heads, general, around, err);
	if (rc)
		rl_room_free(heads, class->slot);
	return rc;
}

static int class_set(const struct rl_heads *heads, const struct rl_target *target,
		     const struct rl_terms *terms, __u64 now, struct rl_error *err)
{
	struct rl_limit general, around, old, class;
	bool there = rl_prefixes_find(heads, &target->prefix, &general);
	__u32 around_cell = 0;
	int at, rc = 0;

	if (!there) {
		rc = rl_limit_compute(target, &rl_no_terms, NULL, 0, 0, now, &general, err);
		around_cell = around_find(heads, &target->prefix, &around);
		general.tenant = around.tenant;
	}
	if (rc)
		return rc;
	at = class_find(&general, &terms->class);
	if (at >= 0 && !rl_heads_limit(heads, general.class[at].slot, &old))
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EIO,
		    "the policy names a class limit that isn't there: delete the whole target "
		    "with `rl-agent del-limit`, and set it anew");
	rc = rl_limit_compute(target, terms, at >= 0 ? &old : NULL, 0, 0, now, &class, err);
	if (rc)
		return rc;
	rl_limit_follow(&class, &general);
	return at >= 0 ? rl_room_replace(heads, &class, err)
		       : class_enter(heads, &general, there, around_cell, &class, err);
}

/* With a tenant of its own that those inside inherit: they get that of what is around, in the same moment. */
static int general_delete(const struct rl_heads *heads, const struct rl_limit *general, struct rl_error *err)
{
	CHANGE struct change change = {};
	struct rl_limit around;
	const struct rl_staged leaves = {.slot = general->slot,
					 .before = rl_heads_cell(heads, general->slot),
					 .after = around_find(heads, &general->target.prefix, &around)};
	int rc = 0;

	if (general->terms.tenant[0])
		rc = heirs_add(&change, heads, &general->target.prefix, around.tenant, err);
	if (!rc)
		rc = change_add(&change, &leaves, err);
	if (!rc)
		return rl_stage_run(heads, change.staged, change.count, err);
	change_drop(&change, heads);
	return rc;
}

static int class_delete(const struct rl_heads *heads, const struct rl_limit *general, int at,
			struct rl_error *err)
{
	__u32 slot = general->class[at].slot;
	struct rl_limit limit = *general;
	int rc;

	limit.class_count--;
	memmove(&limit.class[at], &limit.class[at + 1],
		(size_t)(RL_MAX_CLASSES - 1 - at) * sizeof(limit.class[0]));
	limit.class[RL_MAX_CLASSES - 1] = (struct rl_class_ref){};
	if (!limit.class_count && !rl_limit_says(&limit)) /* it was made for its classes alone */
		return general_delete(heads, general, err);
	rc = rl_room_replace(heads, &limit, err);
	if (!rc)
		rl_room_free(heads, slot);
	return rc;
}

int rl_prefixes_delete(const struct rl_heads *heads, const struct rl_target *target,
		       const struct rl_class *class, struct rl_error *err)
{
	struct rl_limit general;
	int at;

	if (!rl_prefixes_find(heads, &target->prefix, &general))
		return rl_policy_absent(target, class, err);
	if (!class || !rl_class_is_set(class))
		return general_delete(heads, &general, err);
	at = class_find(&general, class);
	return at < 0 ? rl_policy_absent(target, class, err) : class_delete(heads, &general, at, err);
}

int rl_prefixes_set(const struct rl_heads *heads, const struct rl_target *target,
		    const struct rl_terms *terms, __u64 now, struct rl_error *err)
{
	return rl_class_is_set(&terms->class) ? class_set(heads, target, terms, now, err)
					      : general_set(heads, target, terms, now, err);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ranges_build.c - ranges out of prefixes. Sorted, whatever covers a prefix stands before it; so one pass with a stack of
 * the prefixes that are open tells where each range begins, in the order of addresses, and trees are written as it goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "large.h"
#include "order.h"
#include "prefix.h"
#include "ranges.h"
#include "ranges_table.h"

#define OPEN_MOST 129 /* prefixes each in the other: of each length */

/* One family's ranges on their way into trees. */
struct build {
	const struct rl_ranges *ranges;
	const struct rl_ranges_family *family;
	struct rl_space *space;
	__u32 tables;
	__u32 entry; /* the one that is open, or else the first one that isn't written */
	bool open;   /* `list` is its */
	bool inside; /* `inner` is the tree's at `key` in it */
	__u64 key;
	__u32 value; /* of the last range */
	struct rl_range_list list, inner;
};

/* The tree in the entry's tree is complete: what follows has the last range's value. */
static int inner_close(struct build *build)
{
	__u32 value;
	int rc;

	if (!build->inside)
		return 0;
	rc = rl_tree_write(build->space, build->family->tree->below, &build->inner, &value);
	if (!rc)
		rc = rl_range_add(&build->list, build->key, value);
	if (!rc && build->key < build->family->tree->last)
		rc = rl_range_add(&build->list, build->key + 1, build->value);
	build->inside = false;
	build->inner.count = 0;
	return rc;
}

static int entry_close(struct build *build)
{
	__u32 value;
	int rc = inner_close(build);

	if (rc || !build->open)
		return rc;
	rc = rl_tree_write(build->space, build->family->tree, &build->list, &value);
	if (rc)
		return rc;
	*rl_ranges_entry_at(build->ranges, build->tables, build->family, build->entry++) = value;
	build->open = false;
	build->list.count = 0;
	return 0;
}

/* Entries before this one in which no range begins. */
static void entries_fill(struct build *build, __u32 end)
{
	for (; build->entry < end; build->entry++)
		*rl_ranges_entry_at(build->ranges, build->tables, build->family, build->entry) = build->value;
}

/* A range begins, behind the one before; or in its place, where both begin at one address. */
static int range_begin(struct build *build, rl_address address, __u32 value)
{
	__u32 entry = rl_ranges_entry_of(build->family, address);
	__u64 key = rl_ranges_key_of(build->family, address),
	      rest = rl_ranges_rest_of(build->family, address);
	int rc = 0;

	if (value == build->value)
		return 0;
	if (build->open && build->entry != entry)
		rc = entry_close(build);
	if (!rc && !build->open) {
		entries_fill(build, entry);
		build->open = true;
		rc = rl_range_add(&build->list, 0, build->value);
	}
	if (!rc && build->inside && build->key != key)
		rc = inner_close(build);
	if (!rc && rest && !build->inside) {
		build->inside = true;
		build->key = key;
		rc = rl_range_add(&build->inner, 0, build->value);
	}
	if (!rc)
		rc = build->inside ? rl_range_add(&build->inner, rest, value)
				   : rl_range_add(&build->list, key, value);
	build->value = value;
	return rc;
}

struct span {
	rl_address first, last;
	__u32 slot;
};

static struct span span_of(const struct rl_ordered *ordered)
{
	struct rl_prefix prefix = rl_ordered_prefix_of(ordered);
	struct span span = {.slot = ordered->at};

	rl_ranges_span(&prefix, &span.first, &span.last); /* as it has been before */
	return span;
}

/* The ranges of sorted prefixes. */
static int prefixes_sweep(struct build *build, const struct rl_ordered *sorted, size_t count)
{
	struct span open[OPEN_MOST + 1] = {0}, next = {0};
	__u32 depth = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i <= count; i++) {
		if (i < count)
			next = span_of(&sorted[i]);
		/* Close those that end before the next one, or all; nothing begins where addresses end. */
		while (!rc && depth && (i == count || open[depth].last < next.first)) {
			rl_address behind = open[depth--].last + 1;

			if (behind)
				rc = range_begin(build, behind, open[depth].slot);
		}
		if (rc || i == count)
			break;
		open[++depth] = next;
		rc = range_begin(build, next.first, next.slot);
	}
	return rc;
}

static int twice(const struct rl_prefix *prefix, struct rl_error *err)
{
	char text[RL_PREFIX_TEXT];

	return rl_error_set(err, RL_ERROR_KERNEL, EEXIST, "%s is there twice", rl_prefix_print(prefix, text));
}

static int family_build(struct build *build, const struct rl_ordered *sorted, size_t count)
{
	int rc = prefixes_sweep(build, sorted, count);

	if (!rc)
		rc = entry_close(build);
	if (!rc)
		entries_fill(build, 1U << build->family->bits);
	rl_range_list_free(&build->list);
	rl_range_list_free(&build->inner);
	return rc;
}

/* What can be told of a prefix by itself. */
static int prefix_check(const struct rl_ranges_prefix *one, size_t number, struct rl_error *err)
{
	const struct rl_prefix *prefix = &one->prefix;
	rl_address first, last;

	if (!one->slot || one->slot > RL_RANGES_SLOT_MAX)
		return rl_error_set(err, RL_ERROR_KERNEL, EINVAL,
				    "number %zu of the prefixes has the slot %u; expected 1 to %u", number,
				    one->slot, RL_RANGES_SLOT_MAX);
	if (!prefix->prefixlen)
		return 0;
	if (prefix->family != 4 && prefix->family != 6)
		return rl_error_set(err, RL_ERROR_KERNEL, EINVAL,
				    "number %zu of the prefixes is of the family %u; expected 4 or 6", number,
				    prefix->family);
	if (rl_ranges_span(prefix, &first, &last))
		return rl_error_set(
		    err, RL_ERROR_KERNEL, EINVAL,
		    "number %zu of the prefixes is none: its length is %u, or it has host bits", number,
		    prefix->prefixlen);
	return 0;
}

/* The slot of `any`, and all others, unsorted. */
static int prefixes_take(const struct rl_ranges_prefix *prefixes, size_t count, __u32 *any,
			 struct rl_ordered *out, size_t *found, struct rl_error *err)
{
	*any = 0;
	*found = 0;
	for (size_t i = 0; i < count; i++) {
		int rc = prefix_check(&prefixes[i], i, err);

		if (rc)
			return rc;
		if (prefixes[i].prefix.prefixlen)
			out[(*found)++] = rl_ordered_prefix(&prefixes[i].prefix, prefixes[i].slot);
		else if (*any)
			return twice(&prefixes[i].prefix, err);
		else
			*any = prefixes[i].slot;
	}
	return 0;
}

static int each_once(const struct rl_ordered *sorted, size_t count, struct rl_error *err)
{
	for (size_t i = 1; i < count; i++)
		if (!memcmp(sorted[i - 1].digits, sorted[i].digits, RL_ORDER_DIGITS)) {
			struct rl_prefix prefix = rl_ordered_prefix_of(&sorted[i]);

			return twice(&prefix, err);
		}
	return 0;
}

static size_t count_of_family(const struct rl_ordered *sorted, size_t count, __u8 family)
{
	size_t n = 0;

	while (n < count && rl_ordered_prefix_of(&sorted[n]).family == family)
		n++;
	return n;
}

int rl_ranges_build(const struct rl_ranges *ranges, const struct rl_ranges_prefix *prefixes, size_t count,
		    struct rl_error *err)
{
	RL_FREE struct rl_ordered *room = rl_large_alloc(count, 2 * sizeof(*room));
	const struct rl_ordered *sorted;
	struct rl_space space;
	__u32 tables, any;
	size_t found;
	int rc = rl_ranges_space_other(ranges, &space, &tables);

	if (rc || !room)
		return rl_ranges_failed(rc ? rc : -ENOMEM, err);
	rc = prefixes_take(prefixes, count, &any, room, &found, err);
	if (rc)
		return rc;
	sorted = rl_order(room, room + count, found);
	rc = each_once(sorted, found, err);
	for (__u8 family = 4; !rc && family <= 6; family += 2) {
		struct build build = {.ranges = ranges, .space = &space, .tables = tables};
		size_t of_family = count_of_family(sorted, found, family);

		build.family = family == 4 ? &rl_ranges_family4 : &rl_ranges_family6;
		rc = rl_ranges_failed(family_build(&build, sorted, of_family), err);
		sorted += of_family;
		found -= of_family;
	}
	if (rc)
		return rc;
	rl_ranges_commit(ranges, &space);
	rl_ranges_switch(ranges, tables, any);
	return 0;
}

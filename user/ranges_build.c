// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ranges_build.c - ranges out of prefixes. Sorted, whatever covers a prefix stands before it; so one pass with a stack of
 * the prefixes that are open tells where each range begins, in the order of addresses, and trees are written as it goes.
 */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
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
	rl_address first;
	__u32 bits;
	__u32 slot;
};

static rl_address span_last(const struct span *span)
{
	return span->bits == 128 ? span->first : span->first | ~(rl_address)0 >> span->bits;
}

/* What they are sorted by, a byte at a time: the last one first. */
#define SPAN_BYTES 17

static __u8 span_byte(const struct span *span, int i)
{
	return i ? (__u8)(span->first >> (8 * (i - 1))) : (__u8)span->bits;
}

/* By address, the shorter prefix first. A radix sort: it takes as many passes as there are bytes in which they differ. */
static void spans_sort(struct span **spans, struct span **spare, size_t count)
{
	struct span differ = {0};

	for (size_t j = 1; j < count; j++) {
		differ.first |= (*spans)[j].first ^ (*spans)[0].first;
		differ.bits |= (*spans)[j].bits ^ (*spans)[0].bits;
	}
	for (int i = 0; i < SPAN_BYTES; i++) {
		size_t place[256] = {0}, sum = 0;
		struct span *from = *spans;

		if (!span_byte(&differ, i))
			continue;
		for (size_t j = 0; j < count; j++)
			place[span_byte(&from[j], i)]++;
		for (int j = 0; j < 256; j++) {
			size_t here = place[j];

			place[j] = sum;
			sum += here;
		}
		for (size_t j = 0; j < count; j++)
			(*spare)[place[span_byte(&from[j], i)]++] = from[j];
		*spans = *spare;
		*spare = from;
	}
}

/* The ranges of sorted prefixes. */
static int spans_sweep(struct build *build, const struct span *spans, size_t count)
{
	struct {
		rl_address last;
		__u32 slot;
	} open[OPEN_MOST + 1] = {0};
	__u32 depth = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i <= count; i++) {
		/* Close those that end before the next one, or all; nothing begins where addresses end. */
		while (!rc && depth && (i == count || open[depth].last < spans[i].first)) {
			rl_address next = open[depth--].last + 1;

			if (next)
				rc = range_begin(build, next, open[depth].slot);
		}
		if (rc || i == count)
			break;
		open[++depth].last = span_last(&spans[i]);
		open[depth].slot = spans[i].slot;
		rc = range_begin(build, spans[i].first, spans[i].slot);
	}
	return rc;
}

static int twice(const struct rl_prefix *prefix, struct rl_error *err)
{
	char text[RL_PREFIX_TEXT];

	return rl_error_set(err, RL_ERROR_KERNEL, EEXIST, "%s is there twice", rl_prefix_print(prefix, text));
}

static int span_twice(const struct span *span, __u8 family, struct rl_error *err)
{
	struct rl_prefix prefix = {.prefixlen = RL_PREFIX_FAMILY_BITS + span->bits, .family = family};

	for (int i = 0; i < 16; i++)
		prefix.addr[i] = (__u8)(span->first >> (120 - 8 * i));
	return twice(&prefix, err);
}

/* One family's prefixes, sorted; each of them once. */
static int spans_make(const struct rl_ranges_prefix *prefixes, size_t count, __u8 family, struct span **spans,
		      struct span **spare, size_t *found, struct rl_error *err)
{
	rl_address last;

	*found = 0;
	for (size_t i = 0; i < count; i++) {
		const struct rl_prefix *prefix = &prefixes[i].prefix;
		struct span *span = &(*spans)[*found];

		if (prefix->family != family || !prefix->prefixlen)
			continue;
		if (rl_ranges_span(prefix, &span->first, &last))
			return rl_error_set(
			    err, RL_ERROR_KERNEL, EINVAL,
			    "number %zu of the prefixes is none: its length is %u, or it has host bits", i,
			    prefix->prefixlen);
		span->bits = prefix->prefixlen - RL_PREFIX_FAMILY_BITS;
		span->slot = prefixes[i].slot;
		(*found)++;
	}
	spans_sort(spans, spare, *found);
	for (size_t i = 1; i < *found; i++)
		if ((*spans)[i - 1].first == (*spans)[i].first && (*spans)[i - 1].bits == (*spans)[i].bits)
			return span_twice(&(*spans)[i], family, err);
	return 0;
}

static int family_build(struct build *build, const struct span *spans, size_t count)
{
	int rc = spans_sweep(build, spans, count);

	if (!rc)
		rc = entry_close(build);
	if (!rc)
		entries_fill(build, 1U << build->family->bits);
	rl_range_list_free(&build->list);
	rl_range_list_free(&build->inner);
	return rc;
}

/* The slot of `any`, and what can be told of each prefix by itself. */
static int any_find(const struct rl_ranges_prefix *prefixes, size_t count, __u32 *any, struct rl_error *err)
{
	*any = 0;
	for (size_t i = 0; i < count; i++) {
		const struct rl_prefix *prefix = &prefixes[i].prefix;

		if (!prefixes[i].slot || prefixes[i].slot > RL_RANGES_SLOT_MAX)
			return rl_error_set(err, RL_ERROR_KERNEL, EINVAL,
					    "number %zu of the prefixes has the slot %u; expected 1 to %u", i,
					    prefixes[i].slot, RL_RANGES_SLOT_MAX);
		if (prefix->prefixlen && prefix->family != 4 && prefix->family != 6)
			return rl_error_set(err, RL_ERROR_KERNEL, EINVAL,
					    "number %zu of the prefixes is of the family %u; expected 4 or 6",
					    i, prefix->family);
		if (!prefix->prefixlen && *any)
			return twice(prefix, err);
		if (!prefix->prefixlen)
			*any = prefixes[i].slot;
	}
	return 0;
}

int rl_ranges_build(const struct rl_ranges *ranges, const struct rl_ranges_prefix *prefixes, size_t count,
		    struct rl_error *err)
{
	RL_FREE struct span *spans = malloc((count + 1) * sizeof(*spans));
	RL_FREE struct span *spare = malloc((count + 1) * sizeof(*spare));
	struct rl_space space;
	__u32 tables, any;
	size_t found;
	int rc = rl_ranges_space_other(ranges, &space, &tables);

	if (rc || !spans || !spare)
		return rl_ranges_failed(rc ? rc : -ENOMEM, err);
	rc = any_find(prefixes, count, &any, err);
	for (__u8 family = 4; !rc && family <= 6; family += 2) {
		struct build build = {.ranges = ranges, .space = &space, .tables = tables};

		build.family = family == 4 ? &rl_ranges_family4 : &rl_ranges_family6;
		rc = spans_make(prefixes, count, family, &spans, &spare, &found, err);
		if (!rc)
			rc = rl_ranges_failed(family_build(&build, spans, found), err);
	}
	if (rc)
		return rc;
	rl_ranges_commit(ranges, &space);
	rl_ranges_switch(ranges, tables, any);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ranges.h"

#include <errno.h>
#include <string.h>

#include "prefix.h"
#include "ranges_table.h"

#define PATCH_BLOCKS 4096 /* for patches of small policies: 256 KiB */

/*
 * What the worst prefixes take, in blocks. IPv6, each of them longer than /72: a block for each one's own tree (at most one
 * for each prefix that is in such a tree), two fifths of one for its ranges in the tree above, and four for each of those;
 * for the first prefixes in a tree, one each is enough. IPv4 takes less: two sevenths of a block, and one for each tree.
 */
__u32 rl_ranges_blocks(__u32 prefixes)
{
	__u64 few = 2ULL * prefixes, many = prefixes + prefixes * 2ULL / 5 + 4 * (1ULL << RL_RANGES_TABLE6);
	__u64 need = few < many ? few : many;
	__u64 half = 2ULL * RL_RANGES_TABLES + need + need / 8 + PATCH_BLOCKS;

	return half < RL_RANGES_MOST / 2 ? (__u32)(2 * half) : RL_RANGES_MOST;
}

/* A patch that was prepared: room is taken for it first, then its one store. */
static void patch_publish(const struct rl_ranges *ranges, const struct rl_space *space,
			  const struct rl_tree_store *store)
{
	rl_ranges_commit(ranges, space);
	__atomic_store_n(store->where, store->value, __ATOMIC_RELEASE);
}

/* What is the prefix's alone, in the value of its entry: store->value is that value where nothing changes. */
static int value_patch(struct rl_space *space, const struct rl_ranges_family *family, __u32 value,
		       rl_address first, rl_address last, struct rl_tree_edit edit,
		       struct rl_tree_store *store)
{
	const struct rl_tree_shape *below = family->tree->below;
	__u64 key = rl_ranges_key_of(family, first), rest = rl_ranges_rest_of(family, last);
	__u32 inner;
	int rc;

	edit.first = key;
	edit.last = rl_ranges_key_of(family, last);
	if (!below || (!rl_ranges_rest_of(family, first) && rest == below->last))
		return rl_tree_edit(space, family->tree, value, &edit, store);
	rc = rl_tree_find(space, family->tree, value, key, &inner);
	edit.first = rl_ranges_rest_of(family, first);
	edit.last = rest;
	if (!rc)
		rc = rl_tree_edit(space, below, inner, &edit, store);
	if (rc || store->where)
		return rc;
	edit = (struct rl_tree_edit){.first = key, .last = key, .from = inner, .to = store->value};
	return rl_tree_edit(space, family->tree, value, &edit, store);
}

static int entry_patch(const struct rl_ranges *ranges, const struct rl_ranges_family *family,
		       rl_address first, rl_address last, const struct rl_tree_edit *edit)
{
	__u32 tables = rl_ranges_tables(rl_ranges_word_now(ranges));
	__u32 *entry = rl_ranges_entry_at(ranges, tables, family, rl_ranges_entry_of(family, first));
	struct rl_space space = rl_ranges_space(ranges);
	struct rl_tree_store store;
	int rc = value_patch(&space, family, *entry, first, last, *edit, &store);

	if (rc)
		return rc;
	if (!store.where && store.value != *entry)
		store.where = entry;
	if (store.where)
		patch_publish(ranges, &space, &store);
	return 0;
}

/* A prefix of several entries: tables of its own. */
static int tables_patch(const struct rl_ranges *ranges, const struct rl_ranges_family *family,
			rl_address first, rl_address last, const struct rl_tree_edit *edit)
{
	__u64 word = rl_ranges_word_now(ranges);
	__u32 end = rl_ranges_entry_of(family, last), tables;
	struct rl_space space = rl_ranges_space(ranges);
	bool changed = false;
	int rc = rl_space_take(&space, RL_RANGES_TABLES, &tables);

	if (rc)
		return rc;
	memcpy(&ranges->block[tables], &ranges->block[rl_ranges_tables(word)],
	       RL_RANGES_TABLES * sizeof(*ranges->block));
	for (__u32 i = rl_ranges_entry_of(family, first); !rc && i <= end; i++) {
		__u32 *entry = rl_ranges_entry_at(ranges, tables, family, i), before = *entry;

		rc = rl_value_edit(&space, family->tree, edit->from, edit->to, entry);
		changed |= *entry != before;
	}
	if (rc || !changed)
		return rc;
	rl_ranges_commit(ranges, &space);
	rl_ranges_switch(ranges, tables, rl_ranges_any(word));
	return 0;
}

static int any_patch(const struct rl_ranges *ranges, __u32 from, __u32 to, struct rl_error *err)
{
	__u64 word = rl_ranges_word_now(ranges);

	if (rl_ranges_any(word) == to)
		return 0;
	if (rl_ranges_any(word) != from)
		return rl_error_set(err, RL_ERROR_KERNEL, EINVAL,
				    "any has the slot %u among the ranges, not %u", rl_ranges_any(word),
				    from);
	rl_ranges_switch(ranges, rl_ranges_tables(word), to);
	return 0;
}

int rl_ranges_patch(const struct rl_ranges *ranges, const struct rl_prefix *prefix, __u32 from, __u32 to,
		    struct rl_error *err)
{
	__u32 any = rl_ranges_any(rl_ranges_word_now(ranges));
	/* Where nothing but `any` is around, the ranges have 0. */
	const struct rl_tree_edit edit = {.from = from == any ? 0 : from, .to = to == any ? 0 : to};
	const struct rl_ranges_family *family = rl_ranges_family_of(prefix);
	rl_address first, last;

	if (from > RL_RANGES_SLOT_MAX || to > RL_RANGES_SLOT_MAX)
		return rl_error_set(err, RL_ERROR_KERNEL, EINVAL, "slots are at most %u, not %u and %u",
				    RL_RANGES_SLOT_MAX, from, to);
	if (!rl_ranges_usable(ranges))
		return rl_ranges_failed(-ENOSPC, err);
	if (!prefix->prefixlen)
		return any_patch(ranges, from, to, err);
	if (rl_ranges_span(prefix, &first, &last))
		return rl_error_set(err, RL_ERROR_KERNEL, EINVAL, "not a prefix: length %u, family %u",
				    prefix->prefixlen, prefix->family);
	if (rl_ranges_entry_of(family, first) == rl_ranges_entry_of(family, last))
		return rl_ranges_failed(entry_patch(ranges, family, first, last, &edit), err);
	return rl_ranges_failed(tables_patch(ranges, family, first, last, &edit), err);
}

static int family_copy(const struct rl_ranges *ranges, struct rl_space *space, __u32 tables,
		       const struct rl_ranges_family *family)
{
	__u32 now = rl_ranges_tables(rl_ranges_word_now(ranges));
	int rc = 0;

	for (__u32 i = 0; !rc && i < 1U << family->bits; i++)
		rc = rl_tree_copy(space, family->tree, *rl_ranges_entry_at(ranges, now, family, i),
				  rl_ranges_entry_at(ranges, tables, family, i));
	return rc;
}

int rl_ranges_compact(const struct rl_ranges *ranges, struct rl_error *err)
{
	struct rl_space space;
	__u32 tables;
	int rc = rl_ranges_space_other(ranges, &space, &tables);

	if (!rc)
		rc = family_copy(ranges, &space, tables, &rl_ranges_family4);
	if (!rc)
		rc = family_copy(ranges, &space, tables, &rl_ranges_family6);
	if (rc)
		return rl_ranges_failed(rc, err);
	rl_ranges_commit(ranges, &space);
	rl_ranges_switch(ranges, tables, rl_ranges_any(rl_ranges_word_now(ranges)));
	return 0;
}

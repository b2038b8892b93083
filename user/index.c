// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "index.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "../bpf/rl_bytes.h"
#include "../bpf/rl_ref.h"
#include "claims.h"
#include "cleanup.h"
#include "large.h"
#include "order.h"

/* ---- rl_index ---- */

#define GONE UINT32_MAX /* where a slot was: what is behind it is looked for further */

static __u64 prefix_hash(const struct rl_prefix *prefix)
{
	__u64 words[3], hash = 0;

	_Static_assert(sizeof(words) == sizeof(*prefix), "all of it");
	memcpy(words, prefix, sizeof(words));
	for (int i = 0; i < 3; i++)
		hash = rl_mix(hash ^ words[i]);
	return hash;
}

static __u64 entry_of(const struct rl_prefix *prefix, __u32 slot)
{
	return prefix_hash(prefix) << 32 | slot;
}

/* Where to look for a prefix, one entry after the other. */
struct probe {
	const struct rl_mapping *entries;
	__u32 count, at, left;
	__u32 mark; /* of its hash, in its entry */
};

static struct probe probe_begin(const struct rl_heads *heads, const struct rl_prefix *prefix)
{
	__u64 hash = prefix_hash(prefix);
	__u32 count = heads->index.entries;

	return (struct probe){
	    .entries = &heads->index,
	    .count = count,
	    .at = (__u32)((hash >> 32) * count >> 32),
	    .left = count,
	    .mark = (__u32)hash,
	};
}

static __u64 probe_entry(const struct probe *probe)
{
	return rl_word_read(rl_mapping_at(probe->entries, probe->at));
}

static void probe_write(const struct probe *probe, __u32 slot)
{
	rl_word_write(rl_mapping_at(probe->entries, probe->at), slot ? (__u64)probe->mark << 32 | slot : 0);
}

static void probe_next(struct probe *probe)
{
	probe->at = probe->at + 1 < probe->count ? probe->at + 1 : 0;
	probe->left--;
}

/* The next slot whose prefix has the same hash; 0: there is none any more. */
static __u32 probe_slot(struct probe *probe)
{
	for (; probe->left; probe_next(probe)) {
		__u64 entry = probe_entry(probe);

		if (!entry)
			return 0;
		if ((__u32)entry != GONE && entry >> 32 == probe->mark)
			return (__u32)entry;
	}
	return 0;
}

static bool cell_is_of(const struct rl_heads *heads, __u32 cell, __u32 slot, const struct rl_prefix *prefix)
{
	struct rl_limit room;
	const struct rl_limit *limit = rl_cell_at(heads, cell, &room);

	return limit && limit->slot == slot && limit->level == RL_LEVEL_SOURCE &&
	       !memcmp(&limit->target.prefix, prefix, sizeof(*prefix));
}

__u32 rl_index_find(const struct rl_heads *heads, const struct rl_prefix *prefix)
{
	struct probe probe = probe_begin(heads, prefix);
	__u32 slot;

	for (; (slot = probe_slot(&probe)); probe_next(&probe)) {
		__u64 ref = rl_head_read(heads, slot);

		if (cell_is_of(heads, rl_ref_after(ref), slot, prefix) ||
		    cell_is_of(heads, rl_ref_before(ref), slot, prefix))
			return slot;
	}
	return 0;
}

bool rl_index_has(const struct rl_heads *heads, const struct rl_prefix *prefix, __u32 slot)
{
	struct probe probe = probe_begin(heads, prefix);
	__u32 found;

	while ((found = probe_slot(&probe)) && found != slot)
		probe_next(&probe);
	return found;
}

static void index_add(const struct rl_heads *heads, const struct rl_prefix *prefix, __u32 slot)
{
	struct probe probe = probe_begin(heads, prefix);

	while (probe.left && probe_entry(&probe) && (__u32)probe_entry(&probe) != GONE)
		probe_next(&probe);
	probe_write(&probe, slot);
}

/* Entries that say to look further where nothing follows are free again: so they don't add up. */
static void gone_free(struct probe probe)
{
	struct probe next = probe;

	probe_next(&next);
	if (probe_entry(&next))
		return;
	while ((__u32)probe_entry(&probe) == GONE) {
		probe_write(&probe, 0);
		probe.at = probe.at ? probe.at - 1 : probe.count - 1;
	}
}

static void index_remove(const struct rl_heads *heads, const struct rl_prefix *prefix, __u32 slot)
{
	struct probe probe = probe_begin(heads, prefix);
	__u32 found;

	while ((found = probe_slot(&probe)) && found != slot)
		probe_next(&probe);
	if (!found)
		return;
	probe_write(&probe, GONE);
	gone_free(probe);
}

/*
 * The entries of slots that leave, out: leaves[slot] is the slot's entry, or 0. Backwards, so that what follows an entry is
 * known, and none says to look further where nothing does.
 */
static void index_sweep(const struct rl_heads *heads, const __u64 *leaves)
{
	struct probe probe = {.entries = &heads->index, .count = heads->index.entries};
	bool ends = !probe_entry(&probe);

	for (probe.at = probe.count; probe.at--;) {
		__u64 entry = probe_entry(&probe);
		__u32 slot = (__u32)entry;

		if (slot == GONE || (slot && slot < heads->map.entries && leaves[slot] == entry))
			probe_write(&probe, entry = ends ? 0 : GONE);
		ends = !entry;
	}
}

#define AHEAD 16 /* entries that are on their way from memory at a time */

static void index_add_many(const struct rl_heads *heads, const struct rl_ranges_prefix *prefixes,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (heads->index.base && i + AHEAD < count)
			__builtin_prefetch((const __u64 *)heads->index.base +
					   probe_begin(heads, &prefixes[i + AHEAD].prefix).at);
		index_add(heads, &prefixes[i].prefix, prefixes[i].slot);
	}
}

/* One bit shorter; of an address's first none, that is `any`. False for `any`. */
static bool widen(struct rl_prefix *prefix)
{
	__u32 bit;

	if (!prefix->prefixlen)
		return false;
	if (prefix->prefixlen <= RL_PREFIX_FAMILY_BITS) {
		*prefix = (struct rl_prefix){};
		return true;
	}
	bit = --prefix->prefixlen - RL_PREFIX_FAMILY_BITS;
	prefix->addr[bit / 8] &= (__u8) ~(0x80 >> bit % 8);
	return true;
}

__u32 rl_index_around(const struct rl_heads *heads, const struct rl_prefix *prefix)
{
	struct rl_prefix wider = *prefix;

	return widen(&wider) ? rl_index_match(heads, &wider) : 0;
}

__u32 rl_index_match(const struct rl_heads *heads, const struct rl_prefix *prefix)
{
	struct rl_prefix wider = *prefix;
	__u32 slot;

	do {
		slot = rl_index_find(heads, &wider);
	} while (!slot && widen(&wider));
	return slot;
}

/* The general limit of a prefix that is in force in this slot, whether or not the prefix has it still. */
static const struct rl_limit *general_in(const struct rl_heads *heads, __u32 slot, struct rl_limit *room)
{
	const struct rl_limit *limit = rl_cell_at(heads, rl_heads_cell(heads, slot), room);

	return limit && limit->slot == slot && limit->level == RL_LEVEL_SOURCE ? limit : NULL;
}

const struct rl_limit *rl_index_in_force(const struct rl_heads *heads, __u32 slot, struct rl_limit *room)
{
	const struct rl_limit *limit = general_in(heads, slot, room);

	return limit && rl_index_has(heads, &limit->target.prefix, slot) ? limit : NULL;
}

/* By slot, its entry, or 0, by one pass along rl_index: to look for each prefix would go all over it. Of several, which those
 * who are killed may leave behind, one. */
static __u64 *entries_by_slot(const struct rl_heads *heads)
{
	struct probe probe = {.entries = &heads->index};
	__u32 slots = heads->map.entries;
	__u64 *by_slot = rl_large_alloc(slots, sizeof(*by_slot));

	if (!by_slot)
		return NULL;
	memset(by_slot, 0, slots * sizeof(*by_slot));
	for (; probe.at < heads->index.entries; probe.at++) {
		__u64 entry = probe_entry(&probe);

		if ((__u32)entry < slots)
			by_slot[(__u32)entry] = entry;
	}
	return by_slot;
}

static bool has_entry(const struct rl_heads *heads, __u64 entry, const struct rl_prefix *prefix, __u32 slot)
{
	return entry && (entry == entry_of(prefix, slot) || rl_index_has(heads, prefix, slot));
}

int rl_index_list(const struct rl_heads *heads, struct rl_ranges_prefix **out, size_t *count,
		  struct rl_error *err)
{
	__u32 slots = heads->map.entries;
	RL_FREE struct rl_ordered *room = rl_large_alloc(slots, 2 * sizeof(*room));
	RL_FREE struct rl_ranges_prefix *found = rl_large_alloc(slots, sizeof(*found));
	RL_FREE __u64 *entries = entries_by_slot(heads);
	struct rl_ordered *ordered;
	size_t all = 0;

	if (!found || !room || !entries)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading the policy");
	for (__u32 slot = 1; slot < slots; slot++) {
		struct rl_limit copy;
		const struct rl_limit *limit = general_in(heads, slot, &copy);

		if (limit && has_entry(heads, entries[slot], &limit->target.prefix, slot))
			room[all++] = rl_ordered_prefix(&limit->target.prefix, slot);
	}
	ordered = rl_order(room, room + slots, all);
	for (size_t i = 0; i < all; i++)
		found[i] = (struct rl_ranges_prefix){.prefix = rl_ordered_prefix_of(&ordered[i]),
						     .slot = ordered[i].at};
	*out = RL_TAKE_PTR(found);
	*count = all;
	return 0;
}

/* ---- rl_index and rl_ranges ---- */

void rl_index_close(struct rl_index *index)
{
	rl_mapping_close(&index->blocks);
}

#define PATCH_BLOCKS 4096 /* 256 KiB: more than a patch takes that isn't of a very short prefix */

/* Map all blocks, or what patches touch: to map all of a large policy takes longer than everything else that a command does. */
static int ranges_open(struct rl_index *index, bool all, struct rl_error *err)
{
	const struct rl_state *state = index->heads->state;
	struct rl_ranges *ranges = &index->ranges;
	__u32 from = 0, count;
	int rc;

	rl_mapping_close(&index->blocks);
	ranges->head = &rl_heads_settings(index->heads)->ranges;
	ranges->blocks = count = rl_map_entries(state, RL_MAP_RANGES);
	if (!all)
		count = rl_ranges_touched(ranges, PATCH_BLOCKS, &from);
	ranges->end = all ? 0 : from + count;
	rc = rl_mapping_open_part(state, RL_MAP_RANGES, sizeof(*ranges->block), from, count, &index->blocks,
				  err);
	ranges->block = index->blocks.base;
	return rc;
}

/* What single changes left behind is in the way: move together what is in force. */
static int ranges_compact(struct rl_index *index, struct rl_error *err)
{
	int rc = rl_grace_wait(err);

	return rc ? rc : rl_ranges_compact(&index->ranges, err);
}

static int ranges_patch(struct rl_index *index, const struct rl_prefix *prefix, __u32 from, __u32 to,
			struct rl_error *err)
{
	int rc = index->blocks.base ? 0 : ranges_open(index, false, err);

	if (!rc)
		rc = rl_ranges_patch(&index->ranges, prefix, from, to, err);
	if (rc == -ENOSPC && index->ranges.end) {
		rc = ranges_open(index, true, err);
		if (!rc)
			rc = rl_ranges_patch(&index->ranges, prefix, from, to, err);
	}
	if (rc != -ENOSPC)
		return rc;
	rc = ranges_compact(index, err);
	return rc ? rc : rl_ranges_patch(&index->ranges, prefix, from, to, err);
}

int rl_index_enter(struct rl_index *index, const struct rl_prefix *prefix, __u32 slot, struct rl_error *err)
{
	int rc;

	index_add(index->heads, prefix, slot);
	rc = ranges_patch(index, prefix, rl_index_around(index->heads, prefix), slot, err);
	if (rc)
		index_remove(index->heads, prefix, slot);
	return rc;
}

int rl_index_leave(struct rl_index *index, const struct rl_prefix *prefix, __u32 slot, struct rl_error *err)
{
	int rc;

	/* The ranges first: as long as it is in rl_index, who finds this killed takes it out of them again. */
	if (!rl_index_has(index->heads, prefix, slot))
		return 0;
	rc = ranges_patch(index, prefix, slot, rl_index_around(index->heads, prefix), err);
	if (!rc)
		index_remove(index->heads, prefix, slot);
	return rc;
}

/* The prefix whose slot this is, in force or about to be; NULL: none. */
static const struct rl_prefix *slot_prefix(const struct rl_heads *heads, __u32 slot, struct rl_limit *room)
{
	__u32 id = rl_claim_read(heads, RL_MAP_SLOTS, slot).id;
	__u64 ref = id ? rl_head_read(heads, slot) : 0;

	for (int i = 0; i < 2; i++) {
		const struct rl_limit *limit =
		    rl_cell_at(heads, i ? rl_ref_before(ref) : rl_ref_after(ref), room);

		if (limit && limit->id == id && limit->level == RL_LEVEL_SOURCE)
			return &limit->target.prefix;
	}
	return NULL;
}

/* The ranges of all prefixes, but for those that are about to go: leaves[slot] isn't 0. NULL: none does. */
static int rebuild(struct rl_index *index, const __u64 *leaves, struct rl_error *err)
{
	__u32 slots = index->heads->map.entries;
	RL_FREE struct rl_ranges_prefix *prefixes = rl_large_alloc(slots, sizeof(*prefixes));
	size_t stay = 0;
	int rc;

	if (!prefixes)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (__u32 slot = 1; slot < slots; slot++) {
		struct rl_limit room;
		const struct rl_prefix *prefix =
		    leaves && leaves[slot] ? NULL : slot_prefix(index->heads, slot, &room);

		if (prefix)
			prefixes[stay++] = (struct rl_ranges_prefix){.prefix = *prefix, .slot = slot};
	}
	rc = ranges_open(index, true, err);
	if (!rc)
		rc = rl_grace_wait(err);
	return rc ? rc : rl_ranges_build(&index->ranges, prefixes, stay, err);
}

int rl_index_enter_many(struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err)
{
	index_add_many(index->heads, prefixes, count);
	return rebuild(index, NULL, err);
}

int rl_index_leave_many(struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err)
{
	RL_FREE __u64 *leaves = calloc(index->heads->map.entries, sizeof(*leaves));
	int rc;

	if (!leaves)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		leaves[prefixes[i].slot] = entry_of(&prefixes[i].prefix, prefixes[i].slot);
	rc = rebuild(index, leaves, err);
	if (!rc)
		index_sweep(index->heads, leaves);
	return rc;
}

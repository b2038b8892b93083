// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "index.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "../bpf/rl_ref.h"
#include "claims.h"
#include "cleanup.h"

void rl_index_close(struct rl_index *index)
{
	rl_mapping_close(&index->blocks);
}

int rl_index_open(const struct rl_heads *heads, struct rl_index *out, struct rl_error *err)
{
	int rc = rl_mapping_open(heads->state, RL_MAP_RANGES, sizeof(union rl_ranges_block), true,
				 &out->blocks, err);

	out->heads = heads;
	out->ranges = (struct rl_ranges){
	    .block = out->blocks.base,
	    .blocks = out->blocks.entries,
	    .head = &rl_heads_settings(heads)->ranges,
	};
	return rc;
}

static int prefixes_map(const struct rl_state *state)
{
	return state->map[RL_MAP_PREFIXES];
}

__u32 rl_index_find(const struct rl_state *state, const struct rl_prefix *prefix)
{
	__u32 slot;

	return bpf_map_lookup_elem(prefixes_map(state), prefix, &slot) ? 0 : slot;
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

__u32 rl_index_around(const struct rl_state *state, const struct rl_prefix *prefix)
{
	struct rl_prefix wider = *prefix;

	return widen(&wider) ? rl_index_match(state, &wider) : 0;
}

__u32 rl_index_match(const struct rl_state *state, const struct rl_prefix *prefix)
{
	struct rl_prefix wider = *prefix;
	__u32 slot;

	do {
		slot = rl_index_find(state, &wider);
	} while (!slot && widen(&wider));
	return slot;
}

/* What single changes left behind is in the way: move together what is in force, and once more. */
static int ranges_patch(const struct rl_index *index, const struct rl_prefix *prefix, __u32 from, __u32 to,
			struct rl_error *err)
{
	int rc = rl_ranges_patch(&index->ranges, prefix, from, to, err);

	if (rc != -ENOSPC)
		return rc;
	rc = rl_grace_wait(err);
	if (!rc)
		rc = rl_ranges_compact(&index->ranges, err);
	return rc ? rc : rl_ranges_patch(&index->ranges, prefix, from, to, err);
}

static int failed(const char *what, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, errno, "the kernel refused to %s: %s", what,
			    strerror(errno));
}

int rl_index_enter(const struct rl_index *index, const struct rl_prefix *prefix, __u32 slot,
		   struct rl_error *err)
{
	const struct rl_state *state = index->heads->state;
	int rc;

	if (bpf_map_update_elem(prefixes_map(state), prefix, &slot, BPF_NOEXIST))
		return failed("add a prefix to the policy", err);
	rc = ranges_patch(index, prefix, rl_index_around(state, prefix), slot, err);
	if (rc)
		bpf_map_delete_elem(prefixes_map(state), prefix);
	return rc;
}

int rl_index_leave(const struct rl_index *index, const struct rl_prefix *prefix, __u32 slot,
		   struct rl_error *err)
{
	const struct rl_state *state = index->heads->state;
	int rc;

	/* The ranges first: as long as it is in rl_prefixes, who finds this killed takes it out of them again. */
	if (rl_index_find(state, prefix) != slot)
		return 0;
	rc = ranges_patch(index, prefix, slot, rl_index_around(state, prefix), err);
	if (!rc && bpf_map_delete_elem(prefixes_map(state), prefix) && errno != ENOENT)
		return failed("delete a prefix from the policy", err);
	return rc;
}

/* The prefix whose slot this is, in force or about to be; NULL: none. */
static const struct rl_prefix *slot_prefix(const struct rl_heads *heads, __u32 slot, struct rl_limit *room)
{
	__u32 id = rl_claim_read(heads, RL_MAP_SLOTS, slot).id;
	__u64 ref = id ? rl_head_read(heads, slot) : 0;
	const struct rl_limit *limit;

	for (int i = 0; i < 2; i++) {
		limit = rl_cell_at(heads, i ? rl_ref_before(ref) : rl_ref_after(ref), room);
		if (limit && limit->id == id && limit->level == RL_LEVEL_SOURCE)
			return &limit->target.prefix;
	}
	return NULL;
}

/* The ranges of all prefixes, but for those that are about to go. */
static int rebuild(const struct rl_index *index, const struct rl_ranges_prefix *leaving, size_t count,
		   struct rl_error *err)
{
	__u32 slots = index->heads->map.entries;
	RL_FREE bool *leaves = calloc(slots, sizeof(*leaves));
	RL_FREE struct rl_ranges_prefix *prefixes = calloc(slots, sizeof(*prefixes));
	size_t stay = 0;
	int rc;

	if (!leaves || !prefixes)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		leaves[leaving[i].slot] = true;
	for (__u32 slot = 1; slot < slots; slot++) {
		struct rl_limit room;
		const struct rl_prefix *prefix = leaves[slot] ? NULL : slot_prefix(index->heads, slot, &room);

		if (prefix)
			prefixes[stay++] = (struct rl_ranges_prefix){.prefix = *prefix, .slot = slot};
	}
	rc = rl_grace_wait(err);
	return rc ? rc : rl_ranges_build(&index->ranges, prefixes, stay, err);
}

#define CHUNK 4096 /* prefixes to a system call */

struct chunk {
	struct rl_prefix prefix[CHUNK];
	__u32 slot[CHUNK];
};

/* Into rl_prefixes, or out of it. */
static int prefixes_write(const struct rl_state *state, const struct rl_ranges_prefix *prefixes, size_t count,
			  bool in, struct rl_error *err)
{
	RL_FREE struct chunk *chunk = malloc(sizeof(*chunk));

	if (!chunk)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	for (size_t done = 0; done < count;) {
		__u32 now = (__u32)(count - done < CHUNK ? count - done : CHUNK);

		for (__u32 i = 0; i < now; i++) {
			chunk->prefix[i] = prefixes[done + i].prefix;
			chunk->slot[i] = prefixes[done + i].slot;
		}
		done += now;
		if (in && bpf_map_update_batch(prefixes_map(state), chunk->prefix, chunk->slot, &now, NULL))
			return failed("add prefixes to the policy", err);
		if (!in && bpf_map_delete_batch(prefixes_map(state), chunk->prefix, &now, NULL))
			return failed("delete prefixes from the policy", err);
	}
	return 0;
}

int rl_index_enter_many(const struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err)
{
	int rc = prefixes_write(index->heads->state, prefixes, count, true, err);

	return rc ? rc : rebuild(index, NULL, 0, err);
}

/* As above, the ranges first. */
int rl_index_leave_many(const struct rl_index *index, const struct rl_ranges_prefix *prefixes, size_t count,
			struct rl_error *err)
{
	int rc = rebuild(index, prefixes, count, err);

	return rc ? rc : prefixes_write(index->heads->state, prefixes, count, false, err);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cleanup.h"
#include "target.h"

#define CHUNK 4096
#define TRIES 16

/* Keys and slots as the kernel gives them; a key may come several times. */
struct pairs {
	char *keys;
	__u32 *slots;
	size_t count;
	size_t room;
};

#define PAIRS __attribute__((cleanup(pairs_free)))

static void pairs_free(struct pairs *pairs)
{
	free(pairs->keys);
	free(pairs->slots);
}

static int out_of_memory(struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading the policy");
}

static int pairs_reserve(struct pairs *pairs, size_t key_size, struct rl_error *err)
{
	size_t room = pairs->room ? pairs->room * 2 : CHUNK;
	void *grown;

	if (pairs->count + CHUNK <= pairs->room)
		return 0;
	grown = reallocarray(pairs->keys, room, key_size);
	if (!grown)
		return out_of_memory(err);
	pairs->keys = grown;
	grown = reallocarray(pairs->slots, room, sizeof(*pairs->slots));
	if (!grown)
		return out_of_memory(err);
	pairs->slots = grown;
	pairs->room = room;
	return 0;
}

/*
 * In batches. Where the key that a batch ended at is deleted, the kernel begins again, and the same keys come again; where
 * the one that it is at is, or it has no memory at hand, the batch ends early.
 */
static int walk(const struct rl_state *state, enum rl_map map, size_t key_size, struct pairs *out,
		struct rl_error *err)
{
	char batch[sizeof(struct rl_target)]; /* holds any key */
	bool first = true;
	int tries = 0;

	while (out->count < 4UL * rl_map_entries(state, map) && tries < TRIES) {
		__u32 count = CHUNK;
		int rc = pairs_reserve(out, key_size, err);

		if (rc)
			return rc;
		rc = bpf_map_lookup_batch(state->map[map], first ? NULL : batch, batch,
					  out->keys + out->count * key_size, out->slots + out->count, &count,
					  NULL);
		if (rc && rc != -ENOENT && rc != -EINTR && rc != -ENOMEM && rc != -EAGAIN)
			return rl_error_set(err, RL_ERROR_KERNEL, -rc, "can't read the map %s: %s",
					    rl_map_name(map), strerror(-rc));
		out->count += count;
		if (rc == -ENOENT)
			return 0;
		first &= !count;
		tries = count ? 0 : tries + 1;
	}
	return rl_error_set(err, RL_ERROR_KERNEL, EAGAIN,
			    "the policy changes faster than it can be read: try again");
}

/* Each kind of entry is a key with its slot behind it. */
_Static_assert(offsetof(struct rl_walk_name, slot) == sizeof(struct rl_target), "the slot is behind the key");

typedef int (*compare)(const void *, const void *);

static int names_compare(const void *a, const void *b)
{
	return rl_target_compare(&((const struct rl_walk_name *)a)->target,
				 &((const struct rl_walk_name *)b)->target);
}

/* Sorted, each key once. */
static size_t entries_order(char *entries, size_t count, size_t size, compare order)
{
	size_t kept = 0;

	qsort(entries, count, size, order);
	for (size_t i = 0; i < count; i++)
		if (!kept || order(entries + (kept - 1) * size, entries + i * size))
			memmove(entries + kept++ * size, entries + i * size, size);
	return kept;
}

static int entries_read(const struct rl_state *state, enum rl_map map, size_t size, compare order, void **out,
			size_t *count, struct rl_error *err)
{
	size_t key_size = size - sizeof(__u32);
	PAIRS struct pairs pairs = {};
	RL_FREE char *entries = NULL;
	int rc = walk(state, map, key_size, &pairs, err);

	if (rc)
		return rc;
	entries = calloc(pairs.count + 1, size);
	if (!entries)
		return out_of_memory(err);
	for (size_t i = 0; pairs.keys && pairs.slots && i < pairs.count; i++) {
		memcpy(entries + i * size, pairs.keys + i * key_size, key_size);
		memcpy(entries + i * size + key_size, &pairs.slots[i], sizeof(pairs.slots[i]));
	}
	*count = entries_order(entries, pairs.count, size, order);
	*out = RL_TAKE_PTR(entries);
	return 0;
}

int rl_walk_names(const struct rl_state *state, struct rl_walk_name **out, size_t *count,
		  struct rl_error *err)
{
	void *entries = NULL;
	int rc = entries_read(state, RL_MAP_NAMES, sizeof(**out), names_compare, &entries, count, err);

	if (!rc)
		*out = entries;
	return rc;
}

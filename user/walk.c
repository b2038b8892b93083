// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "target.h"

#define CHUNK 4096
#define TRIES 16

/* Names and slots as the kernel gives them; a name may come several times. */
struct pairs {
	struct rl_target *names;
	__u32 *slots;
	size_t count;
	size_t room;
};

#define PAIRS __attribute__((cleanup(pairs_free)))

static void pairs_free(struct pairs *pairs)
{
	free(pairs->names);
	free(pairs->slots);
}

static int out_of_memory(struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading the policy");
}

static int pairs_reserve(struct pairs *pairs, struct rl_error *err)
{
	size_t room = pairs->room ? pairs->room * 2 : CHUNK;
	void *grown;

	if (pairs->count + CHUNK <= pairs->room)
		return 0;
	grown = reallocarray(pairs->names, room, sizeof(*pairs->names));
	if (!grown)
		return out_of_memory(err);
	pairs->names = grown;
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
static int walk(const struct rl_state *state, struct pairs *out, struct rl_error *err)
{
	struct rl_target batch; /* as much as the kernel may write of where it is */
	bool first = true;
	int tries = 0;

	while (out->count < 4UL * rl_map_entries(state, RL_MAP_NAMES) && tries < TRIES) {
		__u32 count = CHUNK;
		int rc = pairs_reserve(out, err);

		if (rc)
			return rc;
		rc = bpf_map_lookup_batch(state->map[RL_MAP_NAMES], first ? NULL : &batch, &batch,
					  out->names + out->count, out->slots + out->count, &count, NULL);
		if (rc && rc != -ENOENT && rc != -EINTR && rc != -ENOMEM && rc != -EAGAIN)
			return rl_state_read_failed(err, RL_MAP_NAMES, -rc);
		out->count += count;
		if (rc == -ENOENT)
			return 0;
		first &= !count;
		tries = count ? 0 : tries + 1;
	}
	return rl_error_set(err, RL_ERROR_KERNEL, EAGAIN,
			    "the policy changes faster than it can be read: try again");
}

static int compare(const void *a, const void *b)
{
	return rl_target_compare(&((const struct rl_walk_name *)a)->target,
				 &((const struct rl_walk_name *)b)->target);
}

/* Sorted, each name once. */
static size_t names_order(struct rl_walk_name *names, size_t count)
{
	size_t kept = 0;

	qsort(names, count, sizeof(*names), compare);
	for (size_t i = 0; i < count; i++)
		if (!kept || compare(&names[kept - 1], &names[i]))
			names[kept++] = names[i];
	return kept;
}

int rl_walk_names(const struct rl_state *state, struct rl_walk_name **out, size_t *count,
		  struct rl_error *err)
{
	PAIRS struct pairs pairs = {};
	struct rl_walk_name *names;
	int rc = walk(state, &pairs, err);

	if (rc)
		return rc;
	names = calloc(pairs.count + 1, sizeof(*names));
	if (!names)
		return out_of_memory(err);
	for (size_t i = 0; pairs.names && pairs.slots && i < pairs.count; i++)
		names[i] = (struct rl_walk_name){.target = pairs.names[i], .slot = pairs.slots[i]};
	*count = names_order(names, pairs.count);
	*out = names;
	return 0;
}

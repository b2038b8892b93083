// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pending.h"

#include <string.h>

int rl_pendings_open(const struct rl_state *state, bool writable, struct rl_pendings *out,
		     struct rl_error *err)
{
	return rl_mapping_open(state, RL_MAP_PENDING, sizeof(struct rl_pending), writable, RL_MAPPING_WHOLE,
			       &out->map, err);
}

void rl_pendings_close(struct rl_pendings *pendings)
{
	rl_mapping_close(&pendings->map);
}

static struct rl_pending *element(const struct rl_pendings *pendings, __u32 index)
{
	return &((struct rl_pending *)pendings->map.base)[index];
}

void rl_pendings_look(struct rl_pendings *pendings)
{
	memset(pendings->seen, 0, sizeof(pendings->seen));
	for (__u32 i = 0; i < pendings->map.entries; i++) {
		__u64 place = rl_word_read(&element(pendings, i)->place) & (RL_PENDINGS_NUMBERS - 1);

		if (rl_word_read(&element(pendings, i)->key))
			pendings->seen[place / 64] |= 1ULL << (place % 64);
	}
}

/* All CPUs' elements of this place: from the first, each RL_PENDINGS on. */
static __u32 first_of(__u64 place)
{
	return place & (RL_PENDINGS - 1);
}

__u64 rl_pendings_turns(const struct rl_pendings *pendings, __u64 place)
{
	__u64 sum = 0;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* after what was read before, and before what follows */
	for (__u32 i = first_of(place); i < pendings->map.entries; i += RL_PENDINGS) {
		const __u64 *turns = &element(pendings, i)->turns;

		for (int try = 0; rl_word_read(turns) & 1 && try < RL_PENDINGS_TRIES; try++)
			continue;
		sum += rl_word_read(turns);
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return sum;
}

struct rl_count rl_pendings_sum(const struct rl_pendings *pendings, __u64 place, __u64 key)
{
	struct rl_count sum = {};

	for (__u32 i = first_of(place); i < pendings->map.entries; i += RL_PENDINGS) {
		const struct rl_pending *pending = element(pendings, i);

		if (rl_word_read(&pending->key) != key || rl_word_read(&pending->place) != place)
			continue;
		sum.packets += rl_word_read(&pending->dropped.packets);
		sum.bytes += rl_word_read(&pending->dropped.bytes);
	}
	return sum;
}

static __u32 id_of(__u64 place, __u64 key)
{
	return place & RL_PLACE_OWN ? (__u32)key : rl_key_id(key);
}

void rl_pendings_forget(struct rl_pendings *pendings, bool (*chosen)(const void *context, __u32 id),
			const void *context)
{
	for (__u32 i = 0; i < pendings->map.entries; i++) {
		struct rl_pending *pending = element(pendings, i);
		__u64 key = rl_word_read(&pending->key);

		/* Another source's by now: then what was pending is at home, and its reader zeroes that next. */
		if (key && chosen(context, id_of(rl_word_read(&pending->place), key)))
			__atomic_compare_exchange_n(&pending->key, &key, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
}

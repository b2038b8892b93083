// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pending.h"

#include <sched.h>
#include <string.h>

#define TRIES 1000

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

/* All CPUs' elements of this place: from the first, each RL_CPU_PENDINGS on. */
static __u32 first_of(__u64 place)
{
	return place & (RL_CPU_PENDINGS - 1);
}

/* False where one of them changes hands at present. */
static bool turns_read(const struct rl_pendings *pendings, __u64 place, __u64 *out)
{
	__u64 sum = 0, odd = 0;

	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* after what was read before, and before what follows */
	for (__u32 i = first_of(place); i < pendings->map.entries; i += RL_CPU_PENDINGS) {
		__u64 turns = rl_word_read(&element(pendings, i)->turns);

		sum += turns;
		odd |= turns & 1;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*out = sum;
	return !odd;
}

/* Once none of them does. */
static void reading_start(const struct rl_pendings *pendings, struct rl_pendings_reading *reading)
{
	while (!turns_read(pendings, reading->place, &reading->turns) && reading->tries++ < TRIES)
		sched_yield(); /* a hypervisor may have taken the processor that is at it */
}

struct rl_pendings_reading rl_pendings_begin(const struct rl_pendings *pendings, __u64 place)
{
	struct rl_pendings_reading reading = {.place = place};

	reading_start(pendings, &reading);
	return reading;
}

bool rl_pendings_again(const struct rl_pendings *pendings, struct rl_pendings_reading *reading)
{
	__u64 turns;

	if ((turns_read(pendings, reading->place, &turns) && turns == reading->turns) ||
	    reading->tries >= TRIES)
		return false;
	reading->tries++;
	reading_start(pendings, reading);
	return true;
}

void rl_pendings_add(const struct rl_pendings *pendings, __u64 place, __u64 key, struct rl_tally *tally)
{
	for (__u32 i = first_of(place); i < pendings->map.entries; i += RL_CPU_PENDINGS) {
		const struct rl_pending *pending = element(pendings, i);

		if (rl_word_read(&pending->key) != key || rl_word_read(&pending->place) != place)
			continue;
		tally->dropped.packets += rl_word_read(&pending->dropped.packets);
		tally->dropped.bytes += rl_word_read(&pending->dropped.bytes);
	}
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

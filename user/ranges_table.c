// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ranges_table.h"

#include <errno.h>
#include <string.h>

#include "prefix.h"

const struct rl_ranges_family rl_ranges_family4 = {
    .tree = &rl_tree4,
    .block = 0,
    .bits = RL_RANGES_TABLE4,
    .keys = RL_RANGES_KEY4,
};
const struct rl_ranges_family rl_ranges_family6 = {
    .tree = &rl_tree6,
    .block = RL_RANGES_BLOCKS4,
    .bits = RL_RANGES_TABLE6,
    .keys = RL_RANGES_KEY6,
};

const struct rl_ranges_family *rl_ranges_family_of(const struct rl_prefix *prefix)
{
	return prefix->family == 4 ? &rl_ranges_family4 : &rl_ranges_family6;
}

int rl_ranges_span(const struct rl_prefix *prefix, rl_address *first, rl_address *last)
{
	__u32 most = prefix->family == 4 ? 32 : 128, bits = prefix->prefixlen - RL_PREFIX_FAMILY_BITS;
	rl_address address = 0, inside;

	if ((prefix->family != 4 && prefix->family != 6) || bits > most)
		return -EINVAL;
	for (__u32 i = 0; i < most / 8; i++)
		address |= (rl_address)prefix->addr[i] << (120 - 8 * i);
	inside = bits == 128 ? 0 : ~(rl_address)0 >> bits;
	if (address & inside)
		return -EINVAL;
	*first = address;
	*last = address | inside;
	return 0;
}

__u64 rl_ranges_word_now(const struct rl_ranges *ranges)
{
	return *(const volatile __u64 *)&ranges->head->word;
}

static __u32 half_size(const struct rl_ranges *ranges)
{
	return ranges->blocks / 2;
}

bool rl_ranges_usable(const struct rl_ranges *ranges)
{
	return ranges->blocks <= RL_RANGES_MOST && half_size(ranges) >= RL_RANGES_TABLES;
}

/* Which half is in force. */
static __u32 half_now(const struct rl_ranges *ranges)
{
	return rl_ranges_tables(rl_ranges_word_now(ranges)) >= half_size(ranges);
}

__u32 rl_ranges_touched(const struct rl_ranges *ranges, __u32 room, __u32 *from)
{
	__u32 half = half_now(ranges), most = half_size(ranges);
	__u32 count = RL_RANGES_TABLES + ranges->head->used[half] + room;

	*from = half * most;
	return count < most ? count : most;
}

struct rl_space rl_ranges_space(const struct rl_ranges *ranges)
{
	__u32 half = half_now(ranges), begin = half * half_size(ranges), end = begin + half_size(ranges);

	return (struct rl_space){
	    .block = ranges->block,
	    .blocks = ranges->blocks,
	    .next = begin + RL_RANGES_TABLES + ranges->head->used[half],
	    .end = ranges->end && ranges->end < end ? ranges->end : end,
	};
}

int rl_ranges_space_other(const struct rl_ranges *ranges, struct rl_space *space, __u32 *tables)
{
	__u32 begin = half_now(ranges) ? 0 : half_size(ranges);

	if (!rl_ranges_usable(ranges))
		return -ENOSPC;
	*tables = begin;
	*space = (struct rl_space){
	    .block = ranges->block,
	    .blocks = ranges->blocks,
	    .next = begin + RL_RANGES_TABLES,
	    .end = begin + half_size(ranges),
	};
	return 0;
}

void rl_ranges_commit(const struct rl_ranges *ranges, const struct rl_space *space)
{
	__u32 half = space->end > half_size(ranges);

	ranges->head->used[half] = space->next - half * half_size(ranges) - RL_RANGES_TABLES;
}

void rl_ranges_switch(const struct rl_ranges *ranges, __u32 tables, __u32 any)
{
	__atomic_store_n(&ranges->head->word, rl_ranges_word(tables, any), __ATOMIC_RELEASE);
}

int rl_ranges_failed(int rc, struct rl_error *err)
{
	switch (rc) {
	case 0:
		return 0;
	case -ENOMEM:
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory");
	case -ENOSPC:
		return rl_error_set(err, RL_ERROR_KERNEL, ENOSPC, "there is no room for these prefixes");
	default:
		return rl_error_set(err, RL_ERROR_KERNEL, -rc,
				    "the ranges of prefixes make no sense: %s; the next build mends that",
				    strerror(-rc));
	}
}

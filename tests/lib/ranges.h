/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ranges.h - policies for tests of the ranges: prefixes in many shapes, and the comparison with lpm.h.
 */
#ifndef RANGES_H
#define RANGES_H

#include <criterion/criterion.h>

#include "../../user/prefix.h"
#include "../../user/ranges.h"
#include "../unit/random.h"
#include "lpm.h"

#define SEED 20240610ULL

/* scripts/test --long */
static inline size_t longer(size_t count)
{
	return getenv("RL_LONG") ? 4 * count : count;
}

static __thread const struct rl_ranges *ranges_read;

static inline const union rl_ranges_block *rl_ranges_block_at(__u32 index)
{
	return index < ranges_read->blocks ? &ranges_read->block[index] : NULL;
}

#include "../../bpf/rl_ranges.h"

static inline __u64 ranges_number(const __u8 *p, int bytes)
{
	__u64 number = 0;

	for (int i = 0; i < bytes; i++)
		number = number << 8 | p[i];
	return number;
}

/* As a packet does it. */
static inline __u32 ranges_find(const struct rl_ranges *ranges, __u8 family, const __u8 *address)
{
	__u64 word = __atomic_load_n(&ranges->head->word, __ATOMIC_ACQUIRE);

	ranges_read = ranges;
	if (family == 4)
		return rl_ranges_find4(word, (__u32)ranges_number(address, 4));
	return rl_ranges_find6(word, ranges_number(address, 8), ranges_number(address + 8, 8));
}

static inline struct rl_ranges ranges_make(__u32 blocks)
{
	struct rl_ranges ranges = {.blocks = blocks, .head = calloc(1, sizeof(*ranges.head))};

	ranges.block = aligned_alloc(RL_RANGES_BLOCK, (size_t)blocks * RL_RANGES_BLOCK);
	cr_assert(ranges.block && ranges.head);
	memset(ranges.block, 0, (size_t)blocks * RL_RANGES_BLOCK);
	return ranges;
}

static inline void ranges_free(struct rl_ranges *ranges)
{
	free(ranges->block);
	free(ranges->head);
}

/* Prefixes, each once, with slots that use all 24 bits. */
struct policy {
	struct lpm lpm;
	struct rl_ranges_prefix *list;
	size_t count, room;
	__u64 random;
};

static inline struct policy policy_make(size_t room, __u64 seed)
{
	return (struct policy){.lpm = lpm_make(room),
			       .list = calloc(room, sizeof(struct rl_ranges_prefix)),
			       .room = room,
			       .random = seed};
}

static inline void policy_free(struct policy *policy)
{
	lpm_free(&policy->lpm);
	free(policy->list);
}

static inline __u32 policy_slot(size_t number)
{
	return (__u32)((number + 1) * 0x9e3779) & RL_RANGES_SLOT_MAX;
}

/* False where it was there already, or there is no room. */
static inline bool policy_add(struct policy *policy, const struct rl_prefix *prefix)
{
	__u32 slot = policy_slot(policy->count);

	if (policy->count == policy->room || lpm_get(&policy->lpm, prefix))
		return false;
	lpm_set(&policy->lpm, prefix, slot);
	policy->list[policy->count++] = (struct rl_ranges_prefix){.prefix = *prefix, .slot = slot};
	return true;
}

static inline bool policy_cut(struct policy *policy, __u8 family, const __u8 *address, __u32 bits)
{
	struct rl_prefix prefix = lpm_cut(family, address, bits);

	return policy_add(policy, &prefix);
}

static inline void policy_text(struct policy *policy, const char *text)
{
	struct rl_prefix prefix;
	struct rl_error err = {0};

	cr_assert_eq(rl_prefix_parse(text, &prefix, &err), 0, "%s", err.text);
	cr_assert(policy_add(policy, &prefix), "%s", text);
}

static inline void random_address(__u64 *state, __u8 address[16])
{
	for (int i = 0; i < 16; i += 8) {
		__u64 word = random_next(state);

		memcpy(address + i, &word, 8);
	}
}

static inline void policy_shuffle(struct policy *policy)
{
	for (size_t i = policy->count; i > 1; i--) {
		size_t j = random_between(&policy->random, 0, i - 1);
		struct rl_ranges_prefix swap = policy->list[i - 1];

		policy->list[i - 1] = policy->list[j];
		policy->list[j] = swap;
	}
}

static inline void check_address(const struct rl_ranges *ranges, const struct lpm *lpm, __u8 family,
				 const __u8 *address, const char *where)
{
	__u32 found = ranges_find(ranges, family, address), right = lpm_find(lpm, family, address, LPM_ANY);
	struct rl_prefix whole = lpm_cut(family, address, family == 4 ? 32 : 128);
	char text[RL_PREFIX_TEXT];

	cr_assert_eq(found, right, "%s: %s has the slot %#x, expected %#x", where,
		     rl_prefix_print(&whole, text), found, right);
}

/* The address before or behind; around the ends. */
static inline void address_step(__u8 *address, int bytes, int step)
{
	for (int i = bytes - 1; i >= 0; i--) {
		address[i] = (__u8)(address[i] + step);
		if (address[i] != (step > 0 ? 0 : 255))
			break;
	}
}

/* Both ends of a prefix, what is next to them, and addresses inside. */
static inline void check_prefix(const struct rl_ranges *ranges, const struct lpm *lpm,
				const struct rl_prefix *prefix, __u64 *random, const char *where)
{
	__u32 bits = prefix->prefixlen ? prefix->prefixlen - RL_PREFIX_FAMILY_BITS : 0;
	__u8 family = prefix->family ? prefix->family : random_next(random) & 1 ? 4 : 6, inside[16], last[16];
	int bytes = family == 4 ? 4 : 16;

	memcpy(last, prefix->addr, 16);
	random_address(random, inside);
	for (__u32 i = bits; i < (__u32)bytes * 8; i++)
		last[i / 8] |= (__u8)(0x80 >> i % 8);
	for (int i = 0; i < bytes; i++)
		inside[i] = prefix->addr[i] | (inside[i] & (last[i] ^ prefix->addr[i]));
	check_address(ranges, lpm, family, prefix->addr, where);
	check_address(ranges, lpm, family, last, where);
	check_address(ranges, lpm, family, inside, where);
	address_step(last, bytes, 1);
	check_address(ranges, lpm, family, last, where);
	memcpy(inside, prefix->addr, 16);
	address_step(inside, bytes, -1);
	check_address(ranges, lpm, family, inside, where);
}

/* Every prefix that was ever in the policy, and so many random addresses of each family. */
static inline void check_policy(const struct rl_ranges *ranges, struct policy *policy, size_t random,
				const char *where)
{
	for (size_t i = 0; i < policy->count; i++)
		check_prefix(ranges, &policy->lpm, &policy->list[i].prefix, &policy->random, where);
	for (size_t i = 0; i < random; i++) {
		__u8 address[16];

		random_address(&policy->random, address);
		check_address(ranges, &policy->lpm, 4, address, where);
		check_address(ranges, &policy->lpm, 6, address, where);
	}
}

static inline void build(const struct rl_ranges *ranges, const struct policy *policy)
{
	struct rl_error err = {0};

	cr_assert_eq(rl_ranges_build(ranges, policy->list, policy->count, &err), 0, "%s", err.text);
}

/* Ways to fill a policy. */
struct shape {
	const char *name;
	void (*fill)(struct policy *policy);
	size_t count;
};

extern const struct shape shapes[];
extern const size_t shape_count;

#endif

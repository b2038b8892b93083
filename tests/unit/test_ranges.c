// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "../lib/ranges.h"

#define MILLION	  (1U << 20)
#define ADDRESSES 10000 /* random ones, of each family */

static struct policy filled(const struct shape *shape, __u64 seed)
{
	struct policy policy = policy_make(shape->count, seed);

	shape->fill(&policy);
	policy_shuffle(&policy);
	return policy;
}

/* Blocks in use of the half in force, beside the tables. */
static __u32 used(const struct rl_ranges *ranges)
{
	return ranges->head->used[rl_ranges_tables(ranges->head->word) != 0];
}

/* What the ranges are compared to is itself compared, to what takes no thought at all. */
Test(ranges, reference)
{
	for (size_t i = 0; i < shape_count; i++) {
		const struct shape shape = {
		    .fill = shapes[i].fill,
		    .count = shapes[i].count < 300 ? shapes[i].count : 300,
		};
		struct policy policy = filled(&shape, SEED);

		for (size_t j = 0; j < 2000 && policy.count; j++) {
			struct rl_prefix whole = policy.list[j % policy.count].prefix;
			__u32 longest = 0, slot = 0;

			if (!whole.family || j % 2)
				random_address(&policy.random, whole.addr);
			whole = lpm_cut(j % 4 < 2 ? 4 : 6, whole.addr, j % 4 < 2 ? 32 : 128);
			for (size_t k = 0; k < policy.count; k++) {
				const struct rl_prefix *prefix = &policy.list[k].prefix;

				if (rl_prefix_covers(prefix, &whole) && prefix->prefixlen >= longest) {
					longest = prefix->prefixlen;
					slot = policy.list[k].slot;
				}
			}
			cr_assert_eq(lpm_find(&policy.lpm, whole.family, whole.addr, LPM_ANY), slot, "%s",
				     shapes[i].name);
		}
		policy_free(&policy);
	}
}

/* Memory that nobody has written is a policy without prefixes. */
Test(ranges, untouched)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(1));
	struct policy policy = policy_make(1, SEED);

	check_policy(&ranges, &policy, longer(ADDRESSES), "untouched");
	policy_free(&policy);
	ranges_free(&ranges);
}

/* Each shape is built over the one before, so in both halves, in what others left there. */
Test(ranges, shapes)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(20000));

	for (size_t i = 0; i < longer(shape_count); i++) {
		const struct shape *shape = &shapes[i % shape_count];
		struct policy policy = filled(shape, SEED + i);

		build(&ranges, &policy);
		check_policy(&ranges, &policy, longer(ADDRESSES), shape->name);
		policy_free(&policy);
	}
	ranges_free(&ranges);
}

/* The same prefixes in another order make the same blocks. */
Test(ranges, order)
{
	struct rl_ranges ranges[2] = {ranges_make(rl_ranges_blocks(20000)),
				      ranges_make(rl_ranges_blocks(20000))};

	for (size_t i = 0; i < shape_count; i++) {
		struct policy policy = filled(&shapes[i], SEED);

		build(&ranges[0], &policy);
		policy_shuffle(&policy);
		build(&ranges[1], &policy);
		cr_assert(!memcmp(ranges[0].head, ranges[1].head, sizeof(*ranges[0].head)), "%s",
			  shapes[i].name);
		cr_assert(
		    !memcmp(ranges[0].block, ranges[1].block, ranges[0].blocks * sizeof(*ranges[0].block)),
		    "%s", shapes[i].name);
		policy_free(&policy);
	}
	ranges_free(&ranges[0]);
	ranges_free(&ranges[1]);
}

/* As many of both families as there may be, of the lengths that are common. */
static void fill_million(struct policy *policy)
{
	static const __u8 lengths6[] = {32, 40, 44, 48, 56, 56, 64, 64, 64, 128};

	while (policy->count < policy->room) {
		__u8 address[16], family = random_next(&policy->random) & 1 ? 4 : 6;

		random_address(&policy->random, address);
		if (family == 6) {
			address[0] = 0x20 | (address[0] & 0xf);
			address[1] &= 3;
			policy_cut(policy, 6, address, lengths6[address[15] % sizeof(lengths6)]);
		} else {
			policy_cut(policy, 4, address, (__u32)random_between(&policy->random, 20, 32));
		}
	}
}

Test(ranges, million)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(MILLION));
	struct policy policy = filled(&(struct shape){.fill = fill_million, .count = MILLION}, SEED);

	build(&ranges, &policy);
	for (size_t i = 0; i < policy.count; i += 32 / longer(1))
		check_prefix(&ranges, &policy.lpm, &policy.list[i].prefix, &policy.random, "million");
	policy.count = 0;
	check_policy(&ranges, &policy, longer(50000), "million");
	policy_free(&policy);
	ranges_free(&ranges);
}

/* A refused build changes nothing. */
static void refused(struct rl_ranges *ranges, struct policy *policy, struct rl_prefix prefix, __u32 slot,
		    int rc)
{
	struct rl_ranges_prefix *list = calloc(policy->count + 1, sizeof(*list));
	const struct rl_ranges_head before = *ranges->head;
	struct rl_error err = {0};

	memcpy(list, policy->list, policy->count * sizeof(*list));
	list[policy->count] = list[0];
	list[0] = (struct rl_ranges_prefix){.prefix = prefix, .slot = slot};
	cr_assert_eq(rl_ranges_build(ranges, list, policy->count + 1, &err), rc, "%s", err.text);
	cr_assert(err.kind == RL_ERROR_KERNEL && err.text[0]);
	cr_assert(!memcmp(&before, ranges->head, sizeof(before)));
	check_policy(ranges, policy, 100, "refused");
	free(list);
}

Test(ranges, refused)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(1000));
	struct policy policy = filled(&(struct shape){.fill = shapes[6].fill, .count = 999}, SEED);
	struct rl_prefix prefix = {.prefixlen = 32 + 24, .family = 4, .addr = {192, 0, 2}};

	build(&ranges, &policy);
	for (size_t i = 1; i < policy.count; i += 100)
		refused(&ranges, &policy, policy.list[i].prefix, 7, -EEXIST);
	refused(&ranges, &policy, prefix, 0, -EINVAL);
	refused(&ranges, &policy, prefix, RL_RANGES_SLOT_MAX + 1, -EINVAL);
	prefix.addr[3] = 1; /* a host bit */
	refused(&ranges, &policy, prefix, 7, -EINVAL);
	prefix.prefixlen = 32 + 33;
	refused(&ranges, &policy, prefix, 7, -EINVAL);
	prefix.prefixlen = 31;
	refused(&ranges, &policy, prefix, 7, -EINVAL);
	prefix.prefixlen = 32 + 129;
	prefix.family = 6;
	refused(&ranges, &policy, prefix, 7, -EINVAL);
	prefix = (struct rl_prefix){.prefixlen = 32 + 8, .family = 5, .addr = {10}};
	refused(&ranges, &policy, prefix, 7, -EINVAL);
	policy.room++;
	policy.list = reallocarray(policy.list, policy.room, sizeof(*policy.list));
	policy_text(&policy, "any");
	build(&ranges, &policy);
	refused(&ranges, &policy, (struct rl_prefix){.prefixlen = 0}, 7, -EEXIST);
	policy_free(&policy);
	ranges_free(&ranges);
}

/* Nor does one that doesn't fit. */
Test(ranges, no_room)
{
	struct rl_ranges ranges = ranges_make(2 * RL_RANGES_TABLES + 200);
	struct policy policy = filled(&(struct shape){.fill = shapes[6].fill, .count = 1000}, SEED);
	struct rl_error err = {0};

	cr_assert_eq(rl_ranges_build(&ranges, policy.list, policy.count, &err), -ENOSPC);
	for (size_t i = 30; i < policy.count; i++)
		lpm_set(&policy.lpm, &policy.list[i].prefix, 0);
	policy.count = 30;
	build(&ranges, &policy);
	cr_assert_eq(rl_ranges_build(&ranges, policy.list, 0, &err), 0);
	build(&ranges, &policy);
	check_policy(&ranges, &policy, 100, "no room");
	for (int i = 0; i < 2; i++) { /* as many blocks as there can't be */
		ranges.blocks = i ? RL_RANGES_MOST + 2 : 2 * RL_RANGES_TABLES - 2;
		cr_assert_eq(rl_ranges_build(&ranges, policy.list, 1, &err), -ENOSPC);
		cr_assert_eq(rl_ranges_patch(&ranges, &policy.list[0].prefix, 0, 1, &err), -ENOSPC);
		cr_assert_eq(rl_ranges_compact(&ranges, &err), -ENOSPC);
	}
	policy_free(&policy);
	ranges_free(&ranges);
}

/* So many prefixes in each of so many trees, each alone in its /72 or all in one. */
static void fill_trees(struct policy *policy, __u8 family, __u32 each, bool apart)
{
	for (__u32 tree = 0; policy->count < policy->room; tree++) {
		for (__u32 i = 0; i < each && policy->count < policy->room; i++) {
			__u8 address[16] = {(__u8)(tree >> 8), (__u8)tree};

			if (family == 4) {
				memcpy(address,
				       (__u8[]){(__u8)(tree >> 10), (__u8)(tree >> 2), (__u8)(tree << 6)}, 3);
				address[2] |= (__u8)(2 * i + 1) >> 8;
				address[3] = (__u8)(2 * i + 1);
			} else {
				int at = apart ? 6 : 14;

				address[15] = 1;
				address[at] = (__u8)(i >> 7);
				address[at + 1] |= (__u8)(2 * i + 1);
			}
			policy_cut(policy, family, address, family == 4 ? 32 : 128);
		}
	}
}

/* Whatever the prefixes are, they fit: also those that fill their nodes worst. A tenth is left for patches. */
Test(ranges, room)
{
	static const __u32 each[] = {1, 2, 3, 4, 6, 7, 12, 13, 18, 32, 96, 97, 250, 1000};

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		for (int kind = 0; kind < 3; kind++) {
			struct policy policy = policy_make(kind ? 20000 : 40000, SEED);
			struct rl_ranges ranges = ranges_make(rl_ranges_blocks((__u32)policy.room));

			if (!kind && each[i] > 250)
				policy.room = 1000; /* a tree of IPv4 has no more places for these */
			fill_trees(&policy, kind ? 6 : 4, each[i], kind == 1);
			build(&ranges, &policy);
			cr_assert_lt(2 * RL_RANGES_TABLES + used(&ranges) + used(&ranges) / 10,
				     ranges.blocks / 2, "%u in each tree, kind %d", each[i], kind);
			policy.count /= 100;
			check_policy(&ranges, &policy, 100, "room");
			policy_free(&policy);
			ranges_free(&ranges);
		}
	}
}

/* Packets and the writer read whatever there is without leaving the blocks, and come to an end. */
Test(ranges, nonsense)
{
	struct rl_ranges ranges = ranges_make(2 * RL_RANGES_TABLES + 4000);
	__u64 random = SEED;

	for (int round = 0; round < 20; round++) {
		for (__u32 i = 0; i < ranges.blocks; i++) {
			for (int j = 0; j < 8; j++)
				ranges.block[i].keys[j] = random_next(&random);
			if (i < RL_RANGES_TABLES)
				for (int j = 0; j < RL_RANGES_ENTRIES; j++)
					ranges.block[i].entry[j] %= RL_RANGES_TREE + ranges.blocks;
			else
				ranges.block[i].inner.child %= ranges.blocks + 50;
			if (round % 2)
				ranges.block[i].inner.ranges %= 14;
			if (round % 4 > 1)
				ranges.block[i].inner.children %= 17;
		}
		*ranges.head =
		    (struct rl_ranges_head){.word = rl_ranges_word(round ? 0 : ranges.blocks - 100, 0)};
		for (int i = 0; i < 20000; i++) {
			__u8 address[16];

			random_address(&random, address);
			ranges_find(&ranges, 4, address);
			ranges_find(&ranges, 6, address);
		}
	}
	ranges_free(&ranges);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "../lib/ranges.h"

#define MILLION (1U << 20)

/* What is in use of the half in force, tables included: [begin, end). */
static void reach(const struct rl_ranges *ranges, __u32 *begin, __u32 *end)
{
	__u32 half = rl_ranges_tables(ranges->head->word) >= ranges->blocks / 2;

	*begin = half * (ranges->blocks / 2);
	*end = *begin + RL_RANGES_TABLES + ranges->head->used[half];
}

/* Everything, as it was. */
struct snapshot {
	struct rl_ranges_head head;
	union rl_ranges_block *block;
	__u32 begin, end;
};

static struct snapshot snapshot_take(const struct rl_ranges *ranges)
{
	struct snapshot snapshot = {.head = *ranges->head};
	size_t size;

	reach(ranges, &snapshot.begin, &snapshot.end);
	size = (snapshot.end - snapshot.begin) * sizeof(*snapshot.block);
	snapshot.block = malloc(size);
	cr_assert_not_null(snapshot.block);
	memcpy(snapshot.block, &ranges->block[snapshot.begin], size);
	return snapshot;
}

/* Of all that packets could reach, how many words differ; *where is a 32-bit one of them, NULL if that is the head's. */
static size_t snapshot_compare(const struct rl_ranges *ranges, const struct snapshot *snapshot, __u32 **where,
			       __u32 *was)
{
	size_t changed = ranges->head->word != snapshot->head.word;

	*where = NULL;
	for (__u32 i = snapshot->begin; i < snapshot->end; i++) {
		const __u32 *old = snapshot->block[i - snapshot->begin].entry;
		__u32 chunk = snapshot->end - i < 4096 ? snapshot->end - i : 4096;

		if (!(i % 4096) && !memcmp(old, &ranges->block[i], chunk * sizeof(*ranges->block))) {
			i += chunk - 1;
			continue;
		}
		if (!memcmp(old, &ranges->block[i], sizeof(*ranges->block)))
			continue;
		for (int j = 0; j < RL_RANGES_ENTRIES; j++) {
			if (old[j] == ranges->block[i].entry[j])
				continue;
			*where = &ranges->block[i].entry[j];
			*was = old[j];
			changed++;
		}
	}
	return changed;
}

static int patch_try(const struct rl_ranges *ranges, struct policy *policy, const struct rl_prefix *prefix,
		     __u32 slot)
{
	__u32 old = lpm_get(&policy->lpm, prefix), around = lpm_around(&policy->lpm, prefix);
	struct rl_error err = {0};
	int rc = rl_ranges_patch(ranges, prefix, old ? old : around, slot ? slot : around, &err);

	cr_assert(rc == 0 || (rc == -ENOSPC && err.text[0]), "%s", err.text);
	if (!rc)
		lpm_set(&policy->lpm, prefix, slot);
	return rc;
}

/* Give a prefix a slot, or 0 to remove it; tells how many compactions it took. */
static int patch(const struct rl_ranges *ranges, struct policy *policy, const struct rl_prefix *prefix,
		 __u32 slot)
{
	struct rl_error err = {0};

	if (!patch_try(ranges, policy, prefix, slot))
		return 0;
	cr_assert_eq(rl_ranges_compact(ranges, &err), 0, "%s", err.text);
	cr_assert_eq(patch_try(ranges, policy, prefix, slot), 0, "no room behind a compaction");
	return 1;
}

/*
 * One patch under a magnifying glass: of what packets could reach it changes one word and nothing else; with that word as it
 * was, as a writer leaves it that is killed before the store, the policy is as it was.
 */
static void patch_watched(const struct rl_ranges *ranges, struct policy *policy,
			  const struct rl_prefix *prefix, __u32 slot)
{
	struct snapshot before = snapshot_take(ranges);
	__u32 old = lpm_get(&policy->lpm, prefix), *where, was = 0, is;
	__u64 word;

	cr_assert_eq(patch_try(ranges, policy, prefix, slot), 0);
	cr_assert_leq(snapshot_compare(ranges, &before, &where, &was), 1);
	check_prefix(ranges, &policy->lpm, prefix, &policy->random, "patched");
	lpm_set(&policy->lpm, prefix, old);
	word = ranges->head->word;
	ranges->head->word = before.head.word;
	is = where ? *where : 0;
	if (where)
		*where = was;
	check_prefix(ranges, &policy->lpm, prefix, &policy->random, "killed");
	ranges->head->word = word;
	if (where)
		*where = is;
	lpm_set(&policy->lpm, prefix, slot);
	free(before.block);
}

/* A prefix of the policy's list, near one, or another: or `any`. */
static struct rl_prefix pick(struct policy *policy)
{
	const struct rl_prefix *near =
	    &policy->list[random_between(&policy->random, 0, policy->count - 1)].prefix;
	__u32 most = near->family == 4 ? 32 : 128;

	switch (random_between(&policy->random, 0, 15)) {
	case 0:
		return (struct rl_prefix){.prefixlen = 0};
	case 1:
	case 2:
		if (near->prefixlen)
			return lpm_cut(near->family, near->addr,
				       (__u32)random_between(&policy->random, 0, most));
		/* fallthrough */
	default:
		return *near;
	}
}

/* The policies that changes begin from, and take prefixes of. */
Test(ranges_patch, shapes)
{
	struct rl_ranges ranges = ranges_make(42 * RL_RANGES_TABLES + 60000);

	for (size_t i = 0; i < shape_count; i++) {
		struct policy policy;
		__u32 slot = 1;

		if (!strcmp(shapes[i].name, "none"))
			continue;
		policy = policy_make(shapes[i].count < 1000 ? shapes[i].count : 1000, SEED + i);
		shapes[i].fill(&policy);
		policy_shuffle(&policy);
		lpm_free(&policy.lpm);
		policy.lpm = lpm_make(10000);
		cr_assert_eq(rl_ranges_build(&ranges, NULL, 0, &(struct rl_error){0}), 0);
		for (size_t change = 0; change < longer(400); change++) {
			struct rl_prefix prefix = pick(&policy);
			bool there = lpm_get(&policy.lpm, &prefix);

			patch(&ranges, &policy, &prefix,
			      there && random_next(&policy.random) % 3 ? 0 : slot++);
			check_prefix(&ranges, &policy.lpm, &prefix, &policy.random, shapes[i].name);
			if (change % 200 == 199)
				check_policy(&ranges, &policy, 1000, shapes[i].name);
		}
		policy_free(&policy);
	}
	ranges_free(&ranges);
}

/* From a full policy down to none, of which nothing is left, and up again. */
Test(ranges_patch, all_of_them)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(1000) + 50 * RL_RANGES_TABLES);
	struct rl_error err = {0};
	__u32 begin, end;

	for (size_t i = 0; i < shape_count; i++) {
		struct policy policy = policy_make(shapes[i].count < 1000 ? shapes[i].count : 1000, SEED + i);

		shapes[i].fill(&policy);
		build(&ranges, &policy);
		for (size_t j = 0; j < policy.count; j++) {
			if (j % 300 == 299)
				check_policy(&ranges, &policy, 100, shapes[i].name);
			patch(&ranges, &policy, &policy.list[j].prefix, 0);
		}
		check_policy(&ranges, &policy, 1000, shapes[i].name);
		cr_assert_eq(rl_ranges_compact(&ranges, &err), 0, "%s", err.text);
		reach(&ranges, &begin, &end);
		cr_assert_eq(end - begin, RL_RANGES_TABLES, "%s: a tree without prefixes", shapes[i].name);
		policy_shuffle(&policy);
		for (size_t j = 0; j < policy.count; j++)
			patch(&ranges, &policy, &policy.list[j].prefix, policy.list[j].slot);
		check_policy(&ranges, &policy, 1000, shapes[i].name);
		policy_free(&policy);
	}
	ranges_free(&ranges);
}

/* Each change is one store. */
Test(ranges_patch, one_store)
{
	struct rl_ranges ranges = ranges_make(2 * RL_RANGES_TABLES + 1000000);

	for (size_t i = 3; i < shape_count; i++) {
		struct policy policy = policy_make(shapes[i].count < 1000 ? shapes[i].count : 1000, SEED + i);
		__u32 slot = 0;

		shapes[i].fill(&policy);
		lpm_free(&policy.lpm);
		policy.lpm = lpm_make(10000);
		for (size_t j = 0; j < policy.count; j++)
			lpm_set(&policy.lpm, &policy.list[j].prefix, policy.list[j].slot);
		build(&ranges, &policy);
		for (int change = 0; change < 60; change++) {
			struct rl_prefix prefix = pick(&policy);

			patch_watched(&ranges, &policy, &prefix,
				      lpm_get(&policy.lpm, &prefix) ? 0 : policy_slot(MILLION + slot++));
		}
		check_policy(&ranges, &policy, 100, shapes[i].name);
		policy_free(&policy);
	}
	ranges_free(&ranges);
}

/* Trees that grow at one end become no deeper than packets go, and then are written anew from further up. */
Test(ranges_patch, growth)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(6000));
	int compactions = 0;

	for (size_t i = 0; i < shape_count; i++) {
		struct policy policy;

		if (strcmp(shapes[i].name, "full") && strcmp(shapes[i].name, "adjacent"))
			continue;
		policy = policy_make(6000, SEED);
		shapes[i].fill(&policy);
		lpm_free(&policy.lpm);
		policy.lpm = lpm_make(policy.room);
		cr_assert_eq(rl_ranges_build(&ranges, NULL, 0, &(struct rl_error){0}), 0);
		for (size_t j = 0; j < policy.count; j++) {
			compactions += patch(&ranges, &policy, &policy.list[j].prefix, policy.list[j].slot);
			if (j % 2000 == 1999)
				check_policy(&ranges, &policy, 0, shapes[i].name);
		}
		check_policy(&ranges, &policy, 0, shapes[i].name);
		policy_free(&policy);
	}
	cr_assert(compactions > 0 && compactions < 100, "%d compactions", compactions);
	ranges_free(&ranges);
}

/* Prefixes that hold many others, and those of whole families. */
Test(ranges_patch, wide)
{
	static const char *const texts[] = {
	    "0.0.0.0/0",   "::/0",	  "any",       "128.0.0.0/1", "8000::/1", "10.0.0.0/8",	 "2000::/3",
	    "10.0.0.0/17", "10.0.0.0/18", "2002::/15", "2001::/16",   "::/127",	  "240.0.0.0/4", "ff00::/8"};
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(40000) + 20 * RL_RANGES_TABLES);

	for (size_t i = 0; i < shape_count; i++) {
		struct policy policy = policy_make(shapes[i].count + 100, SEED + i);

		policy.room -= 99;
		shapes[i].fill(&policy);
		policy.room += 99;
		build(&ranges, &policy);
		for (size_t j = 0; j < longer(20); j++) {
			struct rl_prefix prefix;
			struct rl_error err;

			cr_assert_eq(
			    rl_prefix_parse(texts[j % (sizeof(texts) / sizeof(texts[0]))], &prefix, &err), 0);
			patch(&ranges, &policy, &prefix,
			      lpm_get(&policy.lpm, &prefix) ? 0 : policy_slot(MILLION + j));
			check_prefix(&ranges, &policy.lpm, &prefix, &policy.random, shapes[i].name);
			if (j % 10 == 9)
				check_policy(&ranges, &policy, 1000, shapes[i].name);
		}
		policy_free(&policy);
	}
	ranges_free(&ranges);
}

/* In a policy of a million, one prefix more or less takes a few blocks. */
Test(ranges_patch, million)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(MILLION));
	struct policy policy = policy_make(MILLION, SEED);
	__u32 begin, before, after;

	while (policy.count < MILLION) {
		__u8 address[16] = {0x20, 1, 0xd, 0xb8};
		__u64 word = random_next(&policy.random);

		memcpy(address + (word & 1 ? 0 : 3), (__u8 *)&word + 1, 5);
		policy_cut(&policy, word & 1 ? 4 : 6, address, word & 1 ? 32 : word & 6 ? 60 : 128);
	}
	build(&ranges, &policy);
	reach(&ranges, &begin, &before);
	for (size_t i = 0; i < 10000; i++) {
		struct rl_ranges_prefix *own = &policy.list[i / 2 * 7];

		cr_assert_eq(patch(&ranges, &policy, &own->prefix, i % 2 ? own->slot : 0), 0, "a compaction");
		check_prefix(&ranges, &policy.lpm, &own->prefix, &policy.random, "million");
	}
	reach(&ranges, &begin, &after);
	cr_assert_lt(after - before, 10000 * 40, "%u blocks", after - before);
	policy_free(&policy);
	ranges_free(&ranges);
}

/* Nothing has the slot that would be changed: nothing is taken or stored. */
Test(ranges_patch, nothing_to_change)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(400));
	struct policy policy = policy_make(400, SEED);
	struct rl_error err = {0};
	struct snapshot before;
	__u32 *where, was;

	shapes[6].fill(&policy);
	build(&ranges, &policy);
	before = snapshot_take(&ranges);
	for (size_t i = 0; i < policy.count; i++)
		cr_assert_eq(rl_ranges_patch(&ranges, &policy.list[i].prefix, 1234567, 7654321, &err), 0);
	cr_assert_eq(snapshot_compare(&ranges, &before, &where, &was), 0);
	cr_assert(!memcmp(&before.head, ranges.head, sizeof(before.head)));
	free(before.block);
	policy_free(&policy);
	ranges_free(&ranges);
}

Test(ranges_patch, refused)
{
	struct rl_ranges ranges = ranges_make(rl_ranges_blocks(10));
	struct rl_prefix any = {.prefixlen = 0},
			 prefix = {.prefixlen = 32 + 24, .family = 4, .addr = {192, 0, 2}};
	struct rl_ranges_head before;
	struct rl_error err;

	cr_assert_eq(rl_ranges_patch(&ranges, &any, 0, 5, &err), 0);
	before = *ranges.head;
	cr_assert_eq(rl_ranges_patch(&ranges, &any, 6, 0, &err), -EINVAL);
	cr_assert_eq(rl_ranges_patch(&ranges, &any, 5, RL_RANGES_SLOT_MAX + 1, &err), -EINVAL);
	cr_assert_eq(rl_ranges_patch(&ranges, &prefix, RL_RANGES_TREE, 1, &err), -EINVAL);
	prefix.addr[3] = 1;
	cr_assert_eq(rl_ranges_patch(&ranges, &prefix, 5, 1, &err), -EINVAL);
	prefix.prefixlen = 32 + 40;
	cr_assert_eq(rl_ranges_patch(&ranges, &prefix, 5, 1, &err), -EINVAL);
	prefix.prefixlen = 5;
	cr_assert_eq(rl_ranges_patch(&ranges, &prefix, 5, 1, &err), -EINVAL);
	cr_assert(!memcmp(&before, ranges.head, sizeof(before)));
	ranges_free(&ranges);
}

/* Words at random among what is in use. */
static void spoil(const struct rl_ranges *ranges, __u64 *random)
{
	__u32 begin, end;

	reach(ranges, &begin, &end);
	for (int i = 0; i < 300; i++)
		ranges->block[random_between(random, begin, end - 1)].entry[random_next(random) % 16] =
		    (__u32)random_next(random) % (RL_RANGES_TREE + ranges->blocks);
}

/* An inner node whose first children are the last blocks that there are, so that the others would be beyond the end. */
static void spoil_end(const struct rl_ranges *ranges, __u64 *random)
{
	__u32 begin, end, tries = 10000;

	reach(ranges, &begin, &end);
	while (tries--) {
		__u32 at = (__u32)random_between(random, begin + RL_RANGES_TABLES, end - 1);
		__u32 some = ranges->block[at].inner.children / 2 & ~1U;

		if (ranges->block[at].inner.ranges || some < 2 ||
		    ranges->block[at].inner.children > RL_RANGES_INNER4 ||
		    ranges->block[at].inner.child > end - 2 * RL_RANGES_INNER6)
			continue;
		memcpy(&ranges->block[ranges->blocks - some], &ranges->block[ranges->block[at].inner.child],
		       some * sizeof(*ranges->block));
		ranges->block[at].inner.child = ranges->blocks - some;
		return;
	}
}

/* The writer meets blocks that make no sense: it refuses or does something, within the blocks. */
Test(ranges_patch, nonsense)
{
	struct rl_ranges ranges = ranges_make(2 * RL_RANGES_TABLES + 4000);
	int refused = 0;

	for (size_t round = 0; round < 5 * shape_count; round++) {
		const struct shape *shape = &shapes[round % shape_count];
		struct policy policy = policy_make(shape->count < 500 ? shape->count : 500, SEED + round);
		struct rl_error err = {0};

		shape->fill(&policy);
		build(&ranges, &policy);
		if (ranges.head->used[rl_ranges_tables(ranges.head->word) != 0])
			(round % 2 ? spoil : spoil_end)(&ranges, &policy.random);
		for (size_t i = 0; i < policy.count; i++)
			refused +=
			    !!rl_ranges_patch(&ranges, &policy.list[i].prefix, policy.list[i].slot, 0, &err);
		refused += !!rl_ranges_compact(&ranges, &err);
		memset(ranges.block, 0, (size_t)ranges.blocks * sizeof(*ranges.block));
		policy_free(&policy);
	}
	cr_assert_gt(refused, 0);
	ranges_free(&ranges);
}

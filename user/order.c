// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "order.h"

#include <stdbool.h>
#include <string.h>

#define WORDS 3
_Static_assert(sizeof(struct rl_ordered) == 24, "rl_ordered");
_Static_assert(RL_PREFIX_MAX_BITS < 256 && RL_TARGETS <= 16, "in one digit");

static struct rl_ordered ordered(__u32 kind, const struct rl_prefix *prefix, const void *first16, __u32 at)
{
	struct rl_ordered one = {.at = at};

	one.digits[0] = (__u8)(kind << 4 | prefix->family);
	memcpy(one.digits + 1, first16, sizeof(prefix->addr));
	one.digits[RL_ORDER_DIGITS - 1] = (__u8)prefix->prefixlen;
	return one;
}

struct rl_ordered rl_ordered_target(const struct rl_target *target, __u32 at)
{
	bool named = target->kind == RL_TARGET_TENANT || target->kind == RL_TARGET_DEVICE;

	return ordered(target->kind, &target->prefix,
		       named ? (const void *)target->name : target->prefix.addr, at);
}

struct rl_ordered rl_ordered_prefix(const struct rl_prefix *prefix, __u32 at)
{
	return ordered(RL_TARGET_PREFIX, prefix, prefix->addr, at);
}

struct rl_prefix rl_ordered_prefix_of(const struct rl_ordered *ordered)
{
	struct rl_prefix prefix = {.family = ordered->digits[0] & 0xf,
				   .prefixlen = ordered->digits[RL_ORDER_DIGITS - 1]};

	memcpy(prefix.addr, ordered->digits + 1, sizeof(prefix.addr));
	return prefix;
}

/* By one digit; what is equal in it stays in its order. */
static void digit_sort(const struct rl_ordered *from, struct rl_ordered *to, size_t count, int digit)
{
	size_t starts[256] = {0}, sum = 0;

	for (size_t i = 0; i < count; i++)
		starts[from[i].digits[digit]]++;
	for (int value = 0; value < 256; value++) {
		size_t many = starts[value];

		starts[value] = sum;
		sum += many;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[from[i].digits[digit]]++] = from[i];
}

/* Digits that aren't the same in all of them: where two differ, the byte isn't zero. */
static struct rl_ordered differing(const struct rl_ordered *ordered, size_t count)
{
	struct rl_ordered differs = {};

	for (size_t i = 1; i < count; i++)
		for (int word = 0; word < WORDS; word++)
			differs.words[word] |= ordered[i].words[word] ^ ordered[0].words[word];
	return differs;
}

/* From the last digit to the first. */
static struct rl_ordered *digits_sort(struct rl_ordered *ordered, struct rl_ordered *room, size_t count)
{
	const struct rl_ordered differs = differing(ordered, count);

	for (int digit = RL_ORDER_DIGITS - 1; digit >= 0; digit--)
		if (differs.digits[digit]) {
			struct rl_ordered *last = ordered;

			digit_sort(ordered, room, count, digit);
			ordered = room;
			room = last;
		}
	return ordered;
}

static bool is_less(const struct rl_ordered *a, const struct rl_ordered *b)
{
	return memcmp(a->digits, b->digits, RL_ORDER_DIGITS) < 0;
}

#define RUNS 8 /* of what is in order already, from which on merging them takes longer than sorting does */

/* Where runs begin, and behind the last one where they end. How many there are; 0: more than RUNS. */
static int runs_find(const struct rl_ordered *ordered, size_t count, size_t starts[RUNS + 1])
{
	int runs = 1;

	starts[0] = 0;
	for (size_t i = 1; i < count; i++)
		if (is_less(&ordered[i], &ordered[i - 1])) {
			if (runs == RUNS)
				return 0;
			starts[runs++] = i;
		}
	starts[runs] = count;
	return runs;
}

/* from[begin..middle) and from[middle..end). */
static void runs_merge(const struct rl_ordered *from, struct rl_ordered *to, size_t begin, size_t middle,
		       size_t end)
{
	size_t one = begin, other = middle;

	for (size_t i = begin; i < end; i++)
		to[i] = other == end || (one < middle && !is_less(&from[other], &from[one])) ? from[one++]
											     : from[other++];
}

static struct rl_ordered *runs_sort(struct rl_ordered *ordered, struct rl_ordered *room, size_t *starts,
				    int runs)
{
	while (runs > 1) {
		struct rl_ordered *last = ordered;
		size_t end = starts[runs];
		int merged = 0;

		for (int i = 0; i < runs; i += 2, merged++) {
			runs_merge(ordered, room, starts[i], starts[i + 1],
				   i + 2 <= runs ? starts[i + 2] : starts[i + 1]);
			starts[merged] = starts[i];
		}
		starts[runs = merged] = end;
		ordered = room;
		room = last;
	}
	return ordered;
}

struct rl_ordered *rl_order(struct rl_ordered *ordered, struct rl_ordered *room, size_t count)
{
	size_t starts[RUNS + 1];
	int runs = runs_find(ordered, count, starts);

	return runs ? runs_sort(ordered, room, starts, runs) : digits_sort(ordered, room, count);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any sequence of changes of a policy's prefixes: what the ranges say stays what longest-prefix match says. Six bytes are a
 * change: what to do, a length, and which bits of an address differ from one of a few addresses that prefixes are near to.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/ranges.h"
#include "../lib/lpm.h"

#define BLOCKS	(6 * RL_RANGES_TABLES + 8000)
#define CHANGES 48
#define BYTES	6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union rl_ranges_block blocks[BLOCKS] __attribute__((aligned(RL_RANGES_BLOCK)));
static struct rl_ranges_head head;
static const struct rl_ranges ranges = {.block = blocks, .blocks = BLOCKS, .head = &head};

static inline const union rl_ranges_block *rl_ranges_block_at(__u32 index)
{
	return index < BLOCKS ? &blocks[index] : NULL;
}

#include "../../bpf/rl_ranges.h"

static void require(int condition)
{
	if (!condition)
		abort();
}

static __u64 number(const __u8 *p, int bytes)
{
	__u64 value = 0;

	for (int i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	return value;
}

static void check_address(const struct lpm *lpm, __u8 family, const __u8 *address)
{
	__u32 slot = family == 4 ? rl_ranges_find4(head.word, (__u32)number(address, 4))
				 : rl_ranges_find6(head.word, number(address, 8), number(address + 8, 8));

	require(slot == lpm_find(lpm, family, address, LPM_ANY));
}

/* The first and the last address of a prefix, and those next to them. */
static void check_prefix(const struct lpm *lpm, const struct rl_prefix *prefix)
{
	int bytes = prefix->family == 6 ? 16 : 4;
	__u8 family = prefix->family == 6 ? 6 : 4, first[16], last[16];

	memcpy(first, prefix->addr, 16);
	memcpy(last, prefix->addr, 16);
	for (__u32 i = prefix->prefixlen ? prefix->prefixlen - RL_PREFIX_FAMILY_BITS : 0;
	     i < (__u32)bytes * 8; i++)
		last[i / 8] |= (__u8)(0x80 >> i % 8);
	check_address(lpm, family, first);
	check_address(lpm, family, last);
	for (int i = bytes - 1; i >= 0 && first[i]-- == 0; i--)
		;
	for (int i = bytes - 1; i >= 0 && ++last[i] == 0; i--)
		;
	check_address(lpm, family, first);
	check_address(lpm, family, last);
}

/* Near one of these, by a few bits. */
static struct rl_prefix prefix_of(const uint8_t *data)
{
	static const __u8 near[4][16] = {
	    {10, 1, 2, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
	    {0},
	    {0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	};
	__u8 address[16], family = data[0] & 4 ? 6 : 4;
	/* Short ones are seldom: the tables that they are given take time. */
	__u32 shortest = data[1] < 250 ? family == 4 ? RL_RANGES_TABLE4 : RL_RANGES_TABLE6 : 0;
	__u32 bits = shortest + data[1] % ((family == 4 ? 33 : 129) - shortest);

	memcpy(address, near[data[0] >> 3 & 3], sizeof(address));
	if (data[0] >> 4 == 15)
		return (struct rl_prefix){.prefixlen = 0};
	address[bits ? (bits - 1) / 8 : 0] ^= data[2];
	address[data[3] % 16] ^= data[4];
	address[data[5] % 16] ^= (__u8)(1 << (data[5] >> 5));
	return lpm_cut(family, address, bits);
}

/* All prefixes that are there, built anew. */
static void build(const struct lpm *lpm, const struct rl_prefix *prefix, size_t count)
{
	struct rl_ranges_prefix list[CHANGES];
	struct rl_error err;
	size_t there = 0;

	for (size_t i = 0; i < count; i++) {
		__u32 slot = lpm_get(lpm, &prefix[i]);
		size_t j = 0;

		while (j < there && memcmp(&list[j].prefix, &prefix[i], sizeof(*prefix)))
			j++;
		if (slot && j == there)
			list[there++] = (struct rl_ranges_prefix){.prefix = prefix[i], .slot = slot};
	}
	require(!rl_ranges_build(&ranges, list, there, &err));
}

static void change(struct lpm *lpm, const struct rl_prefix *prefix, __u32 slot)
{
	__u32 old = lpm_get(lpm, prefix), around = lpm_around(lpm, prefix);
	struct rl_error err;
	int rc = rl_ranges_patch(&ranges, prefix, old ? old : around, slot ? slot : around, &err);

	if (rc == -ENOSPC)
		require(!rl_ranges_compact(&ranges, &err));
	if (rc == -ENOSPC)
		rc = rl_ranges_patch(&ranges, prefix, old ? old : around, slot ? slot : around, &err);
	if (rc == -ENOSPC) /* a table of its own doesn't fit */
		return;
	require(!rc);
	lpm_set(lpm, prefix, slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rl_prefix prefix[CHANGES];
	struct lpm lpm = lpm_make(CHANGES);
	size_t count = 0;

	memset(blocks, 0, RL_RANGES_TABLES * sizeof(*blocks));
	head = (struct rl_ranges_head){0};
	for (; size >= BYTES && count < CHANGES; data += BYTES, size -= BYTES) {
		prefix[count] = prefix_of(data);
		change(&lpm, &prefix[count], data[0] & 1 ? 0 : (__u32)count + 1);
		check_prefix(&lpm, &prefix[count++]);
		if ((data[0] & 3) == 3 && count % 16 == 0)
			build(&lpm, prefix, count);
	}
	for (size_t i = 0; i < count; i++)
		check_prefix(&lpm, &prefix[i]);
	lpm_free(&lpm);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lpm.h - longest-prefix match as its definition says, to compare the ranges with: a hash table of prefixes, asked for each
 * length from the longest one down. It shares no idea with what it is compared to.
 */
#ifndef LPM_H
#define LPM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/rl_abi.h"

#define LPM_ANY 129 /* lengths of a family, and so none of it */

struct lpm_entry {
	struct rl_prefix prefix;
	__u32 slot; /* 0: was removed */
	__u32 used;
};

struct lpm {
	struct lpm_entry *entry;
	size_t room;		 /* a power of two, more than the prefixes that there ever are */
	__u32 count[2][LPM_ANY]; /* of each length, by family */
	__u32 any;
};

static inline struct lpm lpm_make(size_t prefixes)
{
	struct lpm lpm = {.room = 64};

	while (lpm.room < 2 * prefixes)
		lpm.room *= 2;
	lpm.entry = calloc(lpm.room, sizeof(*lpm.entry));
	return lpm;
}

static inline void lpm_free(struct lpm *lpm)
{
	free(lpm->entry);
	*lpm = (struct lpm){0};
}

/* An address of a family cut to so many bits. */
static inline struct rl_prefix lpm_cut(__u8 family, const __u8 *address, __u32 bits)
{
	struct rl_prefix prefix = {.prefixlen = RL_PREFIX_FAMILY_BITS + bits, .family = family};

	memcpy(prefix.addr, address, bits / 8);
	if (bits % 8)
		prefix.addr[bits / 8] = address[bits / 8] & (__u8)(0xff00 >> bits % 8);
	return prefix;
}

static inline struct lpm_entry *lpm_at(const struct lpm *lpm, const struct rl_prefix *prefix)
{
	__u64 word[3], hash = 0;
	size_t at;

	memcpy(word, prefix, sizeof(word));
	for (int i = 0; i < 3; i++)
		hash = (hash ^ word[i] ^ hash >> 29) * 0x9e3779b97f4a7c15ULL;
	for (at = (hash ^ hash >> 32) & (lpm->room - 1); lpm->entry[at].used; at = (at + 1) & (lpm->room - 1))
		if (!memcmp(&lpm->entry[at].prefix, prefix, sizeof(*prefix)))
			break;
	return &lpm->entry[at];
}

/* The prefix's own slot; 0: it isn't there. */
static inline __u32 lpm_get(const struct lpm *lpm, const struct rl_prefix *prefix)
{
	return prefix->prefixlen ? lpm_at(lpm, prefix)->slot : lpm->any;
}

/* Give a prefix this slot; 0 removes it. */
static inline void lpm_set(struct lpm *lpm, const struct rl_prefix *prefix, __u32 slot)
{
	struct lpm_entry *entry;

	if (!prefix->prefixlen) {
		lpm->any = slot;
		return;
	}
	entry = lpm_at(lpm, prefix);
	lpm->count[prefix->family == 6][prefix->prefixlen - RL_PREFIX_FAMILY_BITS] += !!slot - !!entry->slot;
	*entry = (struct lpm_entry){.prefix = *prefix, .slot = slot, .used = 1};
}

/* The slot of the longest prefix of less than `bits` bits that an address is in; 0: of none. */
static inline __u32 lpm_find(const struct lpm *lpm, __u8 family, const __u8 *address, __u32 bits)
{
	while (bits--) {
		struct rl_prefix prefix;
		__u32 slot;

		if (!lpm->count[family == 6][bits])
			continue;
		prefix = lpm_cut(family, address, bits);
		slot = lpm_get(lpm, &prefix);
		if (slot)
			return slot;
	}
	return lpm->any;
}

/* The slot of the longest prefix around this one; 0: there is none. */
static inline __u32 lpm_around(const struct lpm *lpm, const struct rl_prefix *prefix)
{
	if (!prefix->prefixlen)
		return 0;
	return lpm_find(lpm, prefix->family, prefix->addr, prefix->prefixlen - RL_PREFIX_FAMILY_BITS);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ranges.h - the writer of what bpf/rl_ranges.h reads: build it from prefixes, add or remove one, under the packets' eyes.
 *
 * It works on memory: the blocks and the head, as mapped from their maps. All that it needs to know is in there, so that
 * each command goes on where the one before it left off. Writers hold the policy's lock: there is one at a time.
 *
 * The blocks are two halves. One has the tables and trees that are in force; the word tells which, by where the tables are.
 *
 *     rl_ranges_build    all prefixes       into the other half, then one 64-bit store of the word
 *     rl_ranges_compact  what is in force   likewise
 *     rl_ranges_patch    one prefix         behind what this half has in use, then one store:
 *
 *         `any`                             the word (64 bits), which has its slot
 *         a prefix in one table entry       `child` (32 bits) of the lowest inner node whose children hold all of the
 *           (IPv4 from /18, IPv6 from /16)  prefix; the table's entry (32 bits) where there is none, or where the tree would
 *                                           become too deep. Of a prefix longer than /72, in the tree for these bits; where
 *                                           that has to be another one, in the tree above
 *         a shorter one                     a copy of the tables, then the word (64 bits)
 *
 * So a packet finds the policy before a change or after it, never a mixture. What is in use is raised before the store: a
 * writer that is killed has changed nothing, or everything, and the next one doesn't write over it.
 *
 * Blocks that a patch let go are not used again in their half: a packet that still reads them reads what was true when it
 * came, however late it is. So patches use a half up, tens of thousands of them where prefixes are many; then they say
 * -ENOSPC, and rl_ranges_compact moves what is in force to the other half. That one must have no packets in it any more when
 * it is written: before a build or a compaction there must be a grace period since the word was stored last (rl_grace_wait
 * in claims.h). A patch needs none.
 *
 * Memory, in each half: 1.25 MiB of tables and, for each prefix,
 *     IPv4    16 to 20 bytes with 2^20 prefixes anywhere, 5 where one is beside the other; at most 64 for the first in each
 *             /18, and 28 for each one more
 *     IPv6    24 bytes; 88 for each that is alone in its /72 and longer than that; at most 128
 *
 * Time, with 2^20 prefixes (tests/bench/ranges.c, on a busy machine): a build 0.2 to 0.6 s, a compaction 0.03 to 0.14 s; a
 * patch 1 to 3 us; 17 us on average, 3 ms at the most, where prefixes are added to one tree in their order. It is more where
 * many prefixes are inside of the one that changes; and about 1 ms for one that takes a copy of the tables.
 *
 * A slot is one prefix's own: rl_ranges_patch tells prefixes from each other by it.
 */
#ifndef RL_RANGES_USER_H
#define RL_RANGES_USER_H

#include <stddef.h>

#include "../bpf/rl_ranges_abi.h"
#include "error.h"

struct rl_ranges {
	union rl_ranges_block *block; /* aligned to 64 bytes */
	__u32 blocks;		      /* both halves; 2 * RL_RANGES_TABLES to RL_RANGES_MOST */
	struct rl_ranges_head *head;
	__u32 end; /* of the blocks of the half in force that a patch may touch; 0: all of them */
};

/* What a patch touches: the half in force as far as it is used, from block *from on, and `room` blocks more. */
__u32 rl_ranges_touched(const struct rl_ranges *ranges, __u32 room, __u32 *from);

#define RL_RANGES_MOST (1U << 24) /* blocks: IPv6's trees of trees are told by 24 bits */

struct rl_ranges_prefix {
	struct rl_prefix prefix;
	__u32 slot; /* 1 to RL_RANGES_SLOT_MAX */
};

/* Blocks that are enough for so many prefixes, whichever they are, and for some thousand patches before each compaction. */
__u32 rl_ranges_blocks(__u32 prefixes);

/*
 * Put these prefixes, in any order, in place of all that there are. Needs a grace period before. On error nothing has
 * changed: -EEXIST for a prefix that is there twice, -EINVAL for one that can't be, -ENOSPC, -ENOMEM.
 */
int rl_ranges_build(const struct rl_ranges *ranges, const struct rl_ranges_prefix *prefixes, size_t count,
		    struct rl_error *err);

/*
 * Add or remove one prefix: what is in it and has the slot `from` gets `to`. To add one, `from` is the slot of the longest
 * prefix around it, 0 if there is none; to remove one, `to` is. -ENOSPC: rl_ranges_compact, then again; if it still doesn't
 * fit, the policy has no room for it. On error nothing has changed.
 */
int rl_ranges_patch(const struct rl_ranges *ranges, const struct rl_prefix *prefix, __u32 from, __u32 to,
		    struct rl_error *err);

/* Make room for patches. Needs a grace period before; packets don't notice. */
int rl_ranges_compact(const struct rl_ranges *ranges, struct rl_error *err);

#endif

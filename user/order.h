/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * order.h - many targets in the order of rl_target_compare, by a radix sort: a million in any order take a fraction of what
 * qsort() takes to compare them. What is in order but for a few places takes a fraction of that.
 */
#ifndef RL_ORDER_H
#define RL_ORDER_H

#include <stddef.h>

#include "../bpf/rl_abi.h"

/*
 * One of them: its place among the others, with what a target is ordered by, as bytes of which the first goes first. Of names,
 * the first 16 bytes: those that are alike in them are for the caller to tell apart.
 */
#define RL_ORDER_DIGITS 18
struct rl_ordered {
	union {
		__u8 digits[RL_ORDER_DIGITS];
		__u64 words[3];
		struct {
			__u8 unused[20];
			__u32 at;
		};
	};
};

struct rl_ordered rl_ordered_target(const struct rl_target *target, __u32 at);
struct rl_ordered rl_ordered_prefix(const struct rl_prefix *prefix, __u32 at);

/* The prefix that it was made of. */
struct rl_prefix rl_ordered_prefix_of(const struct rl_ordered *ordered);

/* Sort them; those of the same digits stay in the order that they are in. `room`: for as many. Returns where they are then: in
 * one or the other. */
struct rl_ordered *rl_order(struct rl_ordered *ordered, struct rl_ordered *room, size_t count);

#endif

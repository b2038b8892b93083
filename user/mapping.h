/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.h - an array map as memory: read, or written word by word, without a system call for each element.
 * What is in it may change under the reader's eyes at any time.
 */
#ifndef RL_MAPPING_H
#define RL_MAPPING_H

#include "state.h"

struct rl_mapping {
	void *base; /* the elements, one behind the other; NULL: not mapped */
	size_t size;
	__u32 entries;
};

#define RL_MAPPING __attribute__((cleanup(rl_mapping_close)))

/*
 * Start from a zeroed mapping. `element` is the size that each has, a multiple of eight; -EPROTO for a map of
 * another.
 */
int rl_mapping_open(const struct rl_state *state, enum rl_map map, size_t element, bool writable,
		    struct rl_mapping *out, struct rl_error *err);
void rl_mapping_close(struct rl_mapping *mapping);

/* One load or store of a word that packets work on meanwhile. */
static inline __u64 rl_word_read(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

static inline void rl_word_write(__u64 *word, __u64 value)
{
	*(volatile __u64 *)word = value;
}

#endif

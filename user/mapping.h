/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.h - an array map as memory: read, or written word by word, without a system call for each element.
 * What is in it may change under the reader's eyes at any time.
 */
#ifndef RL_MAPPING_H
#define RL_MAPPING_H

#include "state.h"

struct rl_mapping {
	void *base; /* of RL_MAPPING_WHOLE: the elements, one behind the other; otherwise NULL */
	size_t size;
	size_t element;		  /* bytes */
	__u32 entries;		  /* 0: not open */
	struct rl_window *window; /* of RL_MAPPING_PARTS: what is mapped at present */
	struct rl_pieces *pieces; /* of RL_MAPPING_GROWING: what is mapped already */
};

#define RL_MAPPING __attribute__((cleanup(rl_mapping_close)))

/* Mapping a page takes about as long as a system call for one element. */
enum rl_mapping_how {
	RL_MAPPING_WHOLE,
	RL_MAPPING_PARTS, /* where few elements are wanted of many: as much as is in use at a time */
	RL_MAPPING_GROWING, /* where many are, but not all that there is room for: what was asked for, and its surroundings */
};

/*
 * Start from a zeroed mapping. `element` is the size that each has, a multiple of eight; -EPROTO for a map of
 * another.
 */
int rl_mapping_open(const struct rl_state *state, enum rl_map map, size_t element, bool writable,
		    enum rl_mapping_how how, struct rl_mapping *out, struct rl_error *err);

/* A map as a whole, of which only elements from `from` on, `count` of them, may be touched: where the rest isn't wanted. */
int rl_mapping_open_part(const struct rl_state *state, enum rl_map map, size_t element, __u32 from,
			 __u32 count, struct rl_mapping *out, struct rl_error *err);
void rl_mapping_close(struct rl_mapping *mapping);

/* rl_mapping_at of what isn't mapped as a whole. */
void *rl_mapping_part_at(const struct rl_mapping *mapping, __u32 index);

/* Where an element is: until the next one is asked for, in parts. index: below `entries`. Never NULL: what can't be mapped ends
 * the process, which is as if it were killed. */
static inline void *rl_mapping_at(const struct rl_mapping *mapping, __u32 index)
{
	return mapping->base ? (char *)mapping->base + mapping->element * index
			     : rl_mapping_part_at(mapping, index);
}

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

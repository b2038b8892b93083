/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * phrases.h - what a policy file's lines say of their targets, each once. A phrase is a line without its target: a file
 * of a million lines has as many targets and a few hundred phrases. So a phrase is parsed (statement.h) where it comes
 * first, and found again by its text after that. Pure.
 */
#ifndef RL_PHRASES_H
#define RL_PHRASES_H

#include <stddef.h>

#include "../bpf/rl_abi.h"

struct rl_phrase {
	struct rl_phrase *before; /* the one that was added before it */
	struct rl_terms terms;	  /* complete */
	size_t length;
	char text[];
};

/* A place of the table: the hash is beside the phrase, so that another phrase need not be looked at. */
struct rl_phrase_place {
	__u64 hash;
	struct rl_phrase *phrase; /* NULL: free */
};

/* Start from a zeroed one. */
struct rl_phrases {
	struct rl_phrase *last;	       /* of all */
	struct rl_phrase_place *table; /* those that have a text; a power of two, at least half of it free */
	size_t count, room;	       /* of the table */
};

/* The phrase of this text, or NULL. */
const struct rl_phrase *rl_phrases_find(const struct rl_phrases *phrases, const char *text, size_t length);

/* One that isn't there. Without a text (a length of 0) it is kept and never found. NULL: out of memory. */
const struct rl_phrase *rl_phrases_add(struct rl_phrases *phrases, const char *text, size_t length,
				       const struct rl_terms *terms);
void rl_phrases_free(struct rl_phrases *phrases);

#endif

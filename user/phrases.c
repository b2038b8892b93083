// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "phrases.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 256

static __u64 mix(__u64 hash, const char *text)
{
	__u64 word;

	memcpy(&word, text, sizeof(word));
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL; /* 2^64 / the golden ratio */
	return hash ^ hash >> 32;
}

/*
 * Of eight bytes at a time, the last eight overlapping others; what is shorter, as "allow" is, by its length alone. Nobody
 * gains by collisions: who writes the file waits for it.
 */
static __u64 hash_of(const char *text, size_t length)
{
	const char *end = text + length;
	__u64 hash = length;

	for (; end - text >= 8; text += 8)
		hash = mix(hash, text);
	return length < 8 ? hash : mix(hash, end - 8);
}

/* Where a phrase is, or the free place where it would be. */
static struct rl_phrase_place *place_find(const struct rl_phrases *phrases, __u64 hash, const char *text,
					  size_t length)
{
	for (size_t i = hash;; i++) {
		struct rl_phrase_place *place = &phrases->table[i & (phrases->room - 1)];
		const struct rl_phrase *phrase = place->phrase;

		if (!phrase ||
		    (place->hash == hash && phrase->length == length && !memcmp(phrase->text, text, length)))
			return place;
	}
}

const struct rl_phrase *rl_phrases_find(const struct rl_phrases *phrases, const char *text, size_t length)
{
	return phrases->room && length ? place_find(phrases, hash_of(text, length), text, length)->phrase
				       : NULL;
}

static int table_grow(struct rl_phrases *phrases)
{
	struct rl_phrases grown = *phrases;

	grown.room = phrases->room ? 2 * phrases->room : ROOM_MIN;
	grown.table = calloc(grown.room, sizeof(*grown.table));
	if (!grown.table)
		return -ENOMEM;
	for (size_t i = 0; i < phrases->room; i++) {
		const struct rl_phrase_place *place = &phrases->table[i];

		if (place->phrase)
			*place_find(&grown, place->hash, place->phrase->text, place->phrase->length) = *place;
	}
	free(phrases->table);
	*phrases = grown;
	return 0;
}

static void table_add(struct rl_phrases *phrases, struct rl_phrase *phrase)
{
	__u64 hash = hash_of(phrase->text, phrase->length);

	*place_find(phrases, hash, phrase->text, phrase->length) =
	    (struct rl_phrase_place){.hash = hash, .phrase = phrase};
	phrases->count++;
}

const struct rl_phrase *rl_phrases_add(struct rl_phrases *phrases, const char *text, size_t length,
				       const struct rl_terms *terms)
{
	struct rl_phrase *phrase;

	if (length && 2 * phrases->count >= phrases->room && table_grow(phrases))
		return NULL;
	phrase = malloc(sizeof(*phrase) + length);
	if (!phrase)
		return NULL;
	*phrase = (struct rl_phrase){.before = phrases->last, .terms = *terms, .length = length};
	memcpy(phrase->text, text, length);
	phrases->last = phrase;
	if (length)
		table_add(phrases, phrase);
	return phrase;
}

void rl_phrases_free(struct rl_phrases *phrases)
{
	for (struct rl_phrase *phrase = phrases->last, *before; phrase; phrase = before) {
		before = phrase->before;
		free(phrase);
	}
	free(phrases->table);
	*phrases = (struct rl_phrases){};
}

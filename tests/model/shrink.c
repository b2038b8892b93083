// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shrink.h"

#include <stdlib.h>
#include <string.h>

#include "../../user/limit.h"

struct shrinking {
	struct backend *backend;
	struct op *ops;
	size_t count;
	struct op *attempt; /* room for as many */
	size_t tries;
	char *difference;
};

/*
 * Does this list still show a difference? Then it takes the other's place, without what came behind the difference.
 * `list` is s->attempt, or s->ops itself.
 */
static bool still_differs(struct shrinking *s, const struct op *list, size_t count)
{
	struct play play;
	bool differs = false;
	size_t i;

	if (!s->tries)
		return false;
	s->tries--;
	play_open(&play, s->backend);
	for (i = 0; i < count && !differs; i++)
		differs = !play_op(&play, &list[i]);
	if (!differs)
		differs = !play_compare(&play);
	if (differs) {
		memcpy(s->difference, play.difference, PLAY_TEXT);
		memmove(s->ops, list, i * sizeof(*list));
		s->count = i;
	}
	play_close(&play);
	return differs;
}

/* Without `length` operations from `from` on. */
static bool try_without(struct shrinking *s, size_t from, size_t length)
{
	size_t rest = s->count - from - length;

	memcpy(s->attempt, s->ops, from * sizeof(*s->ops));
	memcpy(s->attempt + from, s->ops + from + length, rest * sizeof(*s->ops));
	return still_differs(s, s->attempt, from + rest);
}

/* Pieces of all sizes, from halves down to single operations; the last ones first, since they matter least to others. */
static bool remove_pieces(struct shrinking *s)
{
	bool removed = false;

	for (size_t length = s->count / 2; length; length /= 2) {
		for (size_t end = s->count; end >= length && s->tries;) {
			size_t from = end - length;

			if (try_without(s, from, length)) {
				removed = true;
				end = s->count < from ? s->count : from;
			} else {
				end = from;
			}
		}
	}
	return removed;
}

/* Another operation in its place. Bytes of padding that differ make it another one, which costs an attempt. */
static bool try_instead(struct shrinking *s, size_t at, const struct op *op)
{
	if (!memcmp((const char *)&s->ops[at], (const char *)op, sizeof(*op)))
		return false;
	memcpy(s->attempt, s->ops, s->count * sizeof(*s->ops));
	s->attempt[at] = *op;
	return still_differs(s, s->attempt, s->count);
}

/* Two steps of the clock are one. */
static bool join_clocks(struct shrinking *s, size_t at)
{
	if (at + 1 >= s->count || s->ops[at].kind != OP_CLOCK || s->ops[at + 1].kind != OP_CLOCK)
		return false;
	memcpy(s->attempt, s->ops, at * sizeof(*s->ops));
	memcpy(s->attempt + at, s->ops + at + 1, (s->count - at - 1) * sizeof(*s->ops));
	s->attempt[at].step += s->ops[at].step;
	return still_differs(s, s->attempt, s->count - 1);
}

static bool simplify_clock(struct shrinking *s, size_t at)
{
	__u64 step = s->ops[at].step;
	bool simpler = false;

	/* As round as can be, and then as short. */
	for (__u64 round = 1000000000000000000ULL; round > 1 && !simpler; round /= 10) {
		struct op op = s->ops[at];

		op.step = step / round * round;
		if (op.step)
			simpler = try_instead(s, at, &op);
		op.step += round;
		if (!simpler && step > round && op.step < step * 2)
			simpler = try_instead(s, at, &op);
	}
	for (bool shorter = true; shorter && at < s->count;) {
		struct op op = s->ops[at];

		op.step /= 2;
		shorter = try_instead(s, at, &op);
		simpler |= shorter;
	}
	return simpler;
}

static bool simplify_packet(struct shrinking *s, size_t at)
{
	const struct op was = s->ops[at];
	struct op op = was;
	bool simpler = false;

	op.len = 60;
	simpler |= try_instead(s, at, &op);
	op = at < s->count ? s->ops[at] : was;
	op.what = 0;
	simpler |= at < s->count && try_instead(s, at, &op);
	op = at < s->count ? s->ops[at] : was;
	op.device = 0;
	simpler |= at < s->count && try_instead(s, at, &op);
	op = at < s->count ? s->ops[at] : was;
	op.source = 0;
	simpler |= at < s->count && try_instead(s, at, &op);
	return simpler;
}

/* One part of a limit left out, or rounder. Returns false where there is no such way. */
static bool simpler_terms(int way, struct rl_terms *terms)
{
	switch (way) {
	case 0:
		memset(terms->tenant, 0, sizeof(terms->tenant));
		return true;
	case 1:
		terms->shadow = 0;
		return true;
	case 2:
		terms->shared = 0;
		return true;
	case 3:
		terms->per = 0;
		return true;
	case 4:
		terms->priority = RL_PRIORITY_UNSET;
		return true;
	case 5:
		terms->cost_count = 0;
		memset(terms->cost, 0, sizeof(terms->cost));
		return true;
	case 6:
		memset(terms->reserve, 0, sizeof(terms->reserve));
		return true;
	case 7:
		terms->bits_per_second = terms->burst_bytes = 0;
		return true;
	case 8:
		terms->packets_per_hour = terms->burst_packets = 0;
		return true;
	case 9:
		terms->packets_per_hour = terms->packets_per_hour ? 3600 : 0;
		return true;
	case 10:
		terms->burst_packets = terms->burst_packets ? 1 : 0;
		return true;
	case 11:
		terms->burst_packets /= 2;
		return true;
	case 12:
		terms->bits_per_second = terms->bits_per_second ? 1000000 : 0;
		return true;
	case 13:
		terms->burst_bytes = terms->burst_bytes ? RL_BURST_BYTES_MTU : 0;
		return true;
	default:
		return false;
	}
}

static bool simplify_set(struct shrinking *s, size_t at)
{
	bool simpler = false;

	for (int way = 0; at < s->count; way++) {
		struct op op = s->ops[at];
		struct rl_error err = {0};

		if (!simpler_terms(way, &op.terms))
			break;
		if (!rl_terms_complete(&op.target, &op.terms, &err))
			simpler |= try_instead(s, at, &op);
	}
	return simpler;
}

static bool simplify(struct shrinking *s)
{
	bool simpler = false;

	for (size_t at = 0; at < s->count && s->tries; at++) {
		simpler |= join_clocks(s, at);
		if (at >= s->count)
			break;
		if (s->ops[at].kind == OP_CLOCK)
			simpler |= simplify_clock(s, at);
		else if (s->ops[at].kind == OP_PACKET)
			simpler |= simplify_packet(s, at);
		else if (s->ops[at].kind == OP_SET)
			simpler |= simplify_set(s, at);
	}
	return simpler;
}

size_t shrink(struct backend *backend, struct op *ops, size_t count, size_t tries, char difference[PLAY_TEXT])
{
	struct shrinking s = {
	    .backend = backend, .ops = ops, .count = count, .tries = tries, .difference = difference};

	s.attempt = calloc(count, sizeof(*ops));
	if (!s.attempt)
		return count;
	for (bool smaller = true; smaller;) {
		smaller = remove_pieces(&s);
		smaller |= simplify(&s);
	}
	free(s.attempt);
	return s.count;
}

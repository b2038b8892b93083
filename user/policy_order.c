// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* policy_order.c - a policy file's lines by their targets, and those that can't stand beside each other. */
#include "policy_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "cleanup.h"
#include "large.h"
#include "statement.h"
#include "target.h"

static bool is_class(const struct rl_policy_line *line)
{
	return rl_class_is_set(&line->terms->class);
}

/* Of lines of which each has a number of its own. */
static int lines_compare(const struct rl_policy_line *one, const struct rl_policy_line *other)
{
	int order = rl_target_compare(&one->target, &other->target);

	if (!order)
		order = is_class(one) - is_class(other);
	return order ? order : (one->number > other->number) - (one->number < other->number);
}

/* ---- sorting ---- */

/*
 * A line's place, with what its target is ordered by: bytes, the first one first. Targets of the same digits are told apart
 * by lines_compare().
 */
#define DIGITS 18
#define WORDS  3 /* that hold them */
struct place {
	union {
		__u8 digits[DIGITS];
		__u64 words[WORDS];
		struct {
			__u8 unused[20];
			__u32 at; /* in the file's lines */
		};
	};
};
_Static_assert(sizeof(struct place) == 24, "place");

static struct place place_of(const struct rl_policy_line *line, size_t at)
{
	const struct rl_target *target = &line->target;
	const struct rl_prefix *prefix = &target->prefix;
	bool named = target->kind == RL_TARGET_TENANT || target->kind == RL_TARGET_DEVICE;
	struct place place = {.at = (__u32)at};

	place.digits[0] = (__u8)(target->kind << 4 | prefix->family);
	memcpy(place.digits + 1, named ? (const void *)target->name : prefix->addr, sizeof(prefix->addr));
	place.digits[DIGITS - 1] = (__u8)prefix->prefixlen;
	return place;
}
_Static_assert(RL_PREFIX_MAX_BITS < 256 && RL_TARGETS <= 16, "in one digit");

/* By one digit; what is equal in it stays in its order. */
static void digit_sort(const struct place *from, struct place *to, size_t count, int digit)
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

static int places_compare(const void *a, const void *b, void *lines)
{
	const struct rl_policy_line *at = lines;

	return lines_compare(&at[((const struct place *)a)->at], &at[((const struct place *)b)->at]);
}

/* The places of equal digits by all that lines are ordered by. */
static void equals_sort(struct place *places, size_t count, struct rl_policy_line *lines)
{
	size_t end;

	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && !memcmp(places[i].digits, places[end].digits, DIGITS);)
			end++;
		if (end > i + 1)
			qsort_r(&places[i], end - i, sizeof(*places), places_compare, lines);
	}
}

/* The lines' places as they are. Where two differ in a digit, its byte of *differs isn't zero. */
static void places_make(const struct rl_policy_file *file, struct place *places, struct place *differs)
{
	*differs = (struct place){};
	for (size_t i = 0; i < file->count; i++) {
		places[i] = place_of(&file->lines[i], i);
		for (int word = 0; word < WORDS; word++)
			differs->words[word] |= places[i].words[word] ^ places[0].words[word];
	}
}

/*
 * From the last digit to the first: a radix sort. A million lines in any order take a fraction of what qsort() takes to
 * compare them. `places` and `spare`: of as many places as there are lines; `sorted`: of as many lines.
 */
static void lines_sort(const struct rl_policy_file *file, struct place *places, struct place *spare,
		       struct rl_policy_line *sorted)
{
	struct place differs;

	places_make(file, places, &differs);
	for (int digit = DIGITS - 1; digit >= 0; digit--)
		if (differs.digits[digit]) {
			struct place *last = places;

			digit_sort(places, spare, file->count, digit);
			places = spare;
			spare = last;
		}
	equals_sort(places, file->count, file->lines);
	for (size_t i = 0; i < file->count; i++)
		sorted[i] = file->lines[places[i].at];
}

static int lines_order(struct rl_policy_file *file, struct rl_error *err)
{
	RL_FREE struct place *places = rl_large_alloc(file->count, 2 * sizeof(*places));
	struct rl_policy_line *sorted = rl_large_alloc(file->count, sizeof(*sorted));

	if (!places || !sorted) {
		free(sorted);
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading %s",
				    file->name);
	}
	lines_sort(file, places, places + file->count, sorted);
	free(file->lines);
	file->lines = sorted;
	return 0;
}

/* How far the lines are in order as they are: most files are written by programs that sort. */
enum sorted { SORTED_NOT, SORTED, SORTED_AND_EACH_ONCE };

static enum sorted sorted_find(const struct rl_policy_file *file)
{
	enum sorted sorted = SORTED_AND_EACH_ONCE;

	for (size_t i = 1; i < file->count; i++) {
		const struct rl_policy_line *line = &file->lines[i];

		if (rl_target_compare(&line[-1].target, &line->target) < 0)
			continue;
		if (lines_compare(line - 1, line) > 0)
			return SORTED_NOT;
		sorted = SORTED;
	}
	return sorted;
}

/* ---- clashes ---- */

/* Two lines that can't stand beside each other. */
struct clash {
	const struct rl_policy_line *line, *other;
};

/* What the lines of one target have named. */
struct named {
	const struct rl_policy_line *general, *class[RL_MAX_CLASSES];
	int class_count;
};

/* The line is named beside those; or the one of them that it clashes with. */
static const struct rl_policy_line *name(struct named *named, const struct rl_policy_line *line)
{
	if (!is_class(line) && named->general)
		return named->general;
	if (!is_class(line)) {
		named->general = line;
		return NULL;
	}
	if (named->general && named->general->terms->action != RL_ACTION_LIMIT)
		return named->general;
	for (int i = 0; i < named->class_count; i++)
		if (rl_class_same(&named->class[i] -> terms -> class, &line -> terms -> class))
			return named->class[i];
	if (named->class_count == RL_MAX_CLASSES)
		return named->class[0];
	named->class[named->class_count++] = line;
	return NULL;
}

/* A general limit is before its classes in order, wherever it stands in the file. */
static __u32 later(const struct clash *clash)
{
	return clash->line->number > clash->other->number ? clash->line->number : clash->other->number;
}

/* Of all of them, the one that shows first when the file is read from its beginning. */
static struct clash clash_find(const struct rl_policy_file *file)
{
	struct clash first = {};
	struct named named = {};

	for (size_t i = 0; i < file->count; i++) {
		struct clash clash = {.line = &file->lines[i]};

		if (i && rl_target_compare(&clash.line[-1].target, &clash.line->target) != 0)
			named = (struct named){};
		clash.other = name(&named, clash.line);
		if (clash.other && (!first.line || later(&clash) < later(&first)))
			first = clash;
	}
	return first;
}

static int clash_refuse(const struct rl_policy_file *file, const struct clash *clash, struct rl_error *err)
{
	const struct rl_policy_line *line = clash->line, *other = clash->other;
	__u32 earlier = line->number < other->number ? line->number : other->number;
	char object[RL_OBJECT_TEXT], target[RL_TARGET_TEXT];
	int rc;

	rl_object_print(&line->target, &line->terms->class, object);
	rl_target_print(&line->target, target);
	if (rl_class_same(&other->terms->class, &line->terms->class))
		rc =
		    rl_error_set(err, RL_ERROR_USAGE, EEXIST,
				 "%s is in line %u already; expected each target, and each class of it, once",
				 object, earlier);
	else if (!is_class(other))
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "it contradicts line %u: by %s, %s is treated alike whatever class a packet is of; "
		    "expected one of the two",
		    earlier, other->terms->action == RL_ACTION_ALLOW ? RL_ALLOW : RL_DENY, target);
	else
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, E2BIG,
		    "%s is one too many: there are %d classes of it from line %u on, and that is the most",
		    object, RL_MAX_CLASSES, earlier);
	return rl_policy_line_error(file->name, later(clash), rc, err);
}

int rl_policy_file_order(struct rl_policy_file *file, struct rl_error *err)
{
	enum sorted sorted = sorted_find(file);
	struct clash clash;
	int rc = sorted == SORTED_NOT ? lines_order(file, err) : 0;

	if (rc || sorted == SORTED_AND_EACH_ONCE)
		return rc;
	clash = clash_find(file);
	return clash.line ? clash_refuse(file, &clash, err) : 0;
}

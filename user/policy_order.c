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
#include "order.h"
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

static int places_compare(const void *a, const void *b, void *lines)
{
	const struct rl_policy_line *at = lines;

	return lines_compare(&at[((const struct rl_ordered *)a)->at],
			     &at[((const struct rl_ordered *)b)->at]);
}

/* The places of equal digits by all that lines are ordered by. */
static void equals_sort(struct rl_ordered *places, size_t count, struct rl_policy_line *lines)
{
	size_t end;

	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1;
		     end < count && !memcmp(places[i].digits, places[end].digits, RL_ORDER_DIGITS);)
			end++;
		if (end > i + 1)
			qsort_r(&places[i], end - i, sizeof(*places), places_compare, lines);
	}
}

/*
 * The places, and room to sort them, are the end of what the sorted lines fill at last: memory that is new costs more than
 * sorting does. Each place is read before a line is written over it.
 */
static void lines_sort(const struct rl_policy_file *file, struct rl_policy_line *sorted)
{
	struct rl_ordered *places = (struct rl_ordered *)(sorted + file->count) - file->count;
	struct rl_ordered *room = places - file->count, *ordered;

	_Static_assert(sizeof(*sorted) >= 2 * sizeof(*places), "both fit");
	for (size_t i = 0; i < file->count; i++)
		places[i] = rl_ordered_target(&file->lines[i].target, (__u32)i);
	ordered = rl_order(places, room, file->count);
	if (ordered != places)
		memcpy(places, ordered, file->count * sizeof(*places));
	equals_sort(places, file->count, file->lines);
	for (size_t i = 0; i < file->count; i++)
		sorted[i] = file->lines[places[i].at];
}

static int lines_order(struct rl_policy_file *file, struct rl_error *err)
{
	struct rl_policy_line *sorted = rl_large_alloc(file->count, sizeof(*sorted));

	if (!sorted)
		return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading %s",
				    file->name);
	lines_sort(file, sorted);
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

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "statement.h"
#include "target.h"

#define WORDS_MAX 64 /* of a line: each option once and each rate and burst twice are fewer */
#define BLANKS	  " \t"

/* What is read, and how far. */
struct reader {
	FILE *in;
	struct rl_policy_file file;
	size_t room;
	__u32 number; /* of the line at hand */
	char line[RL_POLICY_LINE_BYTES];
	size_t length;
};

int rl_policy_line_error(const char *name, __u32 number, int rc, struct rl_error *err)
{
	const struct rl_error what = *err;

	return rl_error_set(err, what.kind, -rc, "%s:%u: %s", name, number, what.text);
}

static int refuse(const struct reader *reader, const char *text, struct rl_error *err)
{
	int rc = rl_error_set(err, RL_ERROR_USAGE, EINVAL, "%s", text);

	return rl_policy_line_error(reader->file.name, reader->number, rc, err);
}

/* The next line without its end. -ENODATA: there is none. */
static int line_read(struct reader *reader, struct rl_error *err)
{
	int c;

	reader->length = 0;
	while ((c = getc_unlocked(reader->in)) != EOF && c != '\n') {
		if (reader->length + 1 == sizeof(reader->line)) {
			reader->number++;
			return refuse(reader, "the line is longer than 4095 bytes, which no limit needs",
				      err);
		}
		reader->line[reader->length++] = (char)c;
	}
	if (ferror(reader->in))
		return rl_error_set(err, RL_ERROR_USAGE, EIO, "can't read %s: %s", reader->file.name,
				    strerror(errno));
	if (c == EOF && !reader->length)
		return -ENODATA;
	reader->number++;
	if (reader->length && reader->line[reader->length - 1] == '\r')
		reader->length--;
	reader->line[reader->length] = '\0';
	if (strlen(reader->line) != reader->length)
		return refuse(reader, "the line has a NUL byte in it; expected text", err);
	return 0;
}

/* The line's words, NULL behind the last. */
static int words_split(struct reader *reader, const char *words[WORDS_MAX + 1], int *count,
		       struct rl_error *err)
{
	char *rest = reader->line, *word;
	int n = 0;

	while ((word = strtok_r(rest, BLANKS, &rest))) {
		if (*word == '#' && !n)
			break;
		if (*word == '#')
			return refuse(
			    reader,
			    "there is a # behind other words; expected a comment to have a line of its own",
			    err);
		if (n == WORDS_MAX)
			return refuse(
			    reader,
			    "there are more than 64 words, which no limit takes; expected one limit a line",
			    err);
		words[n++] = word;
	}
	words[n] = NULL;
	*count = n;
	return 0;
}

static int first_word_check(const char *word, struct rl_error *err)
{
	if (rl_statement_begins(word))
		return 0;
	if (!strcmp(word, "rl-agent"))
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "a line begins with " RL_SET_LIMIT ", " RL_ALLOW " or " RL_DENY
				    ": leave out rl-agent");
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "\"%.64s\" states no limit; expected " RL_SET_LIMIT ", " RL_ALLOW " or " RL_DENY
			    ", as on the command line",
			    word);
}

static int line_parse(const char *const *words, int count, struct rl_policy_line *out, struct rl_error *err)
{
	struct rl_statement statement;
	int rc = first_word_check(words[0], err);

	if (!rc)
		rc = rl_statement_parse(count, (const char **)words, &statement, err);
	if (!rc && statement.bare)
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "--%s alone changes a limit that is there, and a line states all of one; expected --rate "
		    "with it",
		    statement.terms.shadow ? "shadow" : "enforce");
	if (rc)
		return rc;
	out->target = statement.target;
	out->terms = statement.terms;
	return 0;
}

static struct rl_policy_line *line_add(struct reader *reader, struct rl_error *err)
{
	struct rl_policy_file *file = &reader->file;

	if (file->count == reader->room) {
		size_t room = reader->room ? reader->room * 2 : 64;
		struct rl_policy_line *grown = reallocarray(file->lines, room, sizeof(*grown));

		if (!grown) {
			rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading %s",
				     file->name);
			return NULL;
		}
		file->lines = grown;
		reader->room = room;
	}
	return &file->lines[file->count++];
}

static int line_take(struct reader *reader, struct rl_error *err)
{
	const char *words[WORDS_MAX + 1];
	struct rl_policy_line *line;
	int count = 0, rc = words_split(reader, words, &count, err);

	if (rc || !count)
		return rc;
	line = line_add(reader, err);
	if (!line)
		return -ENOMEM;
	line->number = reader->number;
	rc = line_parse(words, count, line, err);
	return rc ? rl_policy_line_error(reader->file.name, reader->number, rc, err) : 0;
}

/* ---- order ---- */

static bool is_class(const struct rl_policy_line *line)
{
	return rl_class_is_set(&line->terms.class);
}

static int lines_compare(const void *a, const void *b)
{
	const struct rl_policy_line *one = a, *other = b;
	int order = rl_target_compare(&one->target, &other->target);

	if (!order)
		order = is_class(one) - is_class(other);
	return order ? order : (one->number > other->number) - (one->number < other->number);
}

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
	if (named->general && named->general->terms.action != RL_ACTION_LIMIT)
		return named->general;
	for (int i = 0; i < named->class_count; i++)
		if (rl_class_same(&named->class[i] -> terms.class, &line->terms.class))
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

	rl_object_print(&line->target, &line->terms.class, object);
	rl_target_print(&line->target, target);
	if (rl_class_same(&other->terms.class, &line->terms.class))
		rc =
		    rl_error_set(err, RL_ERROR_USAGE, EEXIST,
				 "%s is in line %u already; expected each target, and each class of it, once",
				 object, earlier);
	else if (!is_class(other))
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "it contradicts line %u: by %s, %s is treated alike whatever class a packet is of; "
		    "expected one of the two",
		    earlier, other->terms.action == RL_ACTION_ALLOW ? RL_ALLOW : RL_DENY, target);
	else
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, E2BIG,
		    "%s is one too many: there are %d classes of it from line %u on, and that is the most",
		    object, RL_MAX_CLASSES, earlier);
	return rl_policy_line_error(file->name, later(clash), rc, err);
}

int rl_policy_file_order(struct rl_policy_file *file, struct rl_error *err)
{
	struct clash clash;

	if (file->count)
		qsort(file->lines, file->count, sizeof(*file->lines), lines_compare);
	clash = clash_find(file);
	return clash.line ? clash_refuse(file, &clash, err) : 0;
}

/* ---- the whole ---- */

int rl_policy_file_read(FILE *in, const char *name, struct rl_policy_file *out, struct rl_error *err)
{
	struct reader reader = {.in = in, .file.name = name};
	int rc;

	do
		rc = line_read(&reader, err);
	while (!rc && !(rc = line_take(&reader, err)));
	if (rc == -ENODATA)
		rc = rl_policy_file_order(&reader.file, err);
	if (rc)
		rl_policy_file_free(&reader.file);
	else
		*out = reader.file;
	return rc;
}

int rl_policy_file_open(const char *path, struct rl_policy_file *out, struct rl_error *err)
{
	FILE *in;
	int rc;

	if (!strcmp(path, "-"))
		return rl_policy_file_read(stdin, "standard input", out, err);
	in = fopen(path, "re");
	if (!in)
		return rl_error_set(
		    err, RL_ERROR_USAGE, errno,
		    "can't open %s: %s; expected a file of set-limit, allow and deny lines, or - "
		    "for standard input",
		    path, strerror(errno));
	rc = rl_policy_file_read(in, path, out, err);
	fclose(in);
	return rc;
}

void rl_policy_file_free(struct rl_policy_file *file)
{
	free(file->lines);
	*file = (struct rl_policy_file){};
}

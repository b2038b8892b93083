// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "policy_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "large.h"
#include "prefix.h"
#include "statement.h"
#include "target.h"

#define WORDS_MAX 64 /* of a line: each option once and each rate and burst twice are fewer */
#define BLANKS	  " \t"

#define BUFFER	     65536
#define PHRASE_BYTES 256 /* of the phrases that are found again */

/* What is read, and how far. */
struct reader {
	FILE *in;
	struct rl_policy_file file;
	size_t room;
	__u32 number; /* of the line at hand */
	char *line;
	size_t length;
	/* Of the file: what was read and is still to be taken, and whether it ends there, or an error does it. */
	char buffer[BUFFER + 1], *at;
	size_t have;
	bool ended;
	int failure;
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

static void buffer_fill(struct reader *reader)
{
	size_t read;

	memmove(reader->buffer, reader->at, reader->have);
	reader->at = reader->buffer;
	read = fread(reader->buffer + reader->have, 1, BUFFER - reader->have, reader->in);
	reader->have += read;
	reader->ended = reader->have < BUFFER;
	reader->failure = ferror(reader->in) ? errno : 0;
}

/* The end of the line at hand, or NULL: the file's end, or too far away for a line. */
static char *end_find(struct reader *reader)
{
	char *end = memchr(reader->at, '\n', reader->have);

	if (end || reader->ended)
		return end;
	buffer_fill(reader);
	return memchr(reader->at, '\n', reader->have);
}

/* The next line without its end. -ENODATA: there is none. */
static int line_read(struct reader *reader, struct rl_error *err)
{
	char *end = end_find(reader);

	reader->line = reader->at;
	reader->length = end ? (size_t)(end - reader->at) : reader->have;
	if (reader->length < RL_POLICY_LINE_BYTES && !end && reader->failure)
		return rl_error_set(err, RL_ERROR_USAGE, EIO, "can't read %s: %s", reader->file.name,
				    strerror(reader->failure));
	if (!end && !reader->length)
		return -ENODATA;
	reader->number++;
	if (reader->length >= RL_POLICY_LINE_BYTES)
		return refuse(reader, "the line is longer than 4095 bytes, which no limit needs", err);
	reader->at += reader->length + (end != NULL);
	reader->have -= reader->length + (end != NULL);
	if (reader->length && reader->line[reader->length - 1] == '\r')
		reader->length--;
	reader->line[reader->length] = '\0';
	if (memchr(reader->line, '\0', reader->length))
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

static int words_parse(const char *const *words, int count, struct rl_statement *out, struct rl_error *err)
{
	int rc = first_word_check(words[0], err);

	if (!rc)
		rc = rl_statement_parse(count, (const char **)words, out, err);
	if (!rc && out->bare)
		rc = rl_error_set(
		    err, RL_ERROR_USAGE, EINVAL,
		    "--%s alone changes a limit that is there, and a line states all of one; expected --rate "
		    "with it",
		    out->terms.shadow ? "shadow" : "enforce");
	return rc;
}

static int refuse_memory(const struct reader *reader, struct rl_error *err)
{
	return rl_error_set(err, RL_ERROR_KERNEL, ENOMEM, "out of memory while reading %s",
			    reader->file.name);
}

static int line_add(struct reader *reader, const struct rl_target *target, const struct rl_phrase *phrase,
		    struct rl_error *err)
{
	struct rl_policy_file *file = &reader->file;

	if (file->count == reader->room) {
		size_t room = reader->room ? reader->room * 8 : 64; /* what isn't used costs nothing */
		struct rl_policy_line *grown = rl_large_grow(file->lines, file->count, room, sizeof(*grown));

		if (!grown)
			return refuse_memory(reader, err);
		file->lines = grown;
		reader->room = room;
	}
	file->lines[file->count++] =
	    (struct rl_policy_line){.target = *target, .terms = &phrase->terms, .number = reader->number};
	return 0;
}

/* A line as its target and its phrase: how it would be told from others by its bytes. */
struct sentence {
	char target[RL_PREFIX_TEXT];
	char phrase[PHRASE_BYTES];
	size_t length; /* of the phrase; 0: the line is no sentence of this kind */
};

/*
 * The line in two. The second word is the target unless it looks like an option: put another one in its place, and what is
 * said of it is the same.
 */
static void line_split(const struct reader *reader, struct sentence *out)
{
	const char *line = reader->line + strspn(reader->line, BLANKS), *end = reader->line + reader->length;
	size_t command = strcspn(line, BLANKS);
	const char *target = line + command + strspn(line + command, BLANKS);
	size_t length = strcspn(target, BLANKS);
	const char *rest = target + length;

	out->length = 0;
	if (*line == '#' || *target == '#' || *target == '-' || !length || length >= sizeof(out->target) ||
	    command + (size_t)(end - rest) > sizeof(out->phrase))
		return;
	memcpy(out->target, target, length);
	out->target[length] = '\0';
	memcpy(out->phrase, line, command);
	memcpy(out->phrase + command, rest, (size_t)(end - rest));
	out->length = command + (size_t)(end - rest);
}

/* Does the phrase say the same of any other prefix? One of --per has to be looked at anew. */
static bool is_of_any(const struct rl_target *target, const struct rl_terms *terms)
{
	return target->kind == RL_TARGET_PREFIX && !terms->per;
}

/* A line whose phrase came before. False: it isn't, or its target isn't right. */
static bool line_known(const struct reader *reader, const struct sentence *sentence, struct rl_target *target,
		       const struct rl_phrase **phrase)
{
	struct rl_error ignored;

	*phrase = rl_phrases_find(&reader->file.phrases, sentence->phrase, sentence->length);
	return *phrase && !rl_target_parse(sentence->target, target, &ignored) &&
	       is_of_any(target, &(*phrase)->terms);
}

/* The line word by word. `sentence`: as which its phrase is to be known. */
static int line_parse(struct reader *reader, const struct sentence *sentence, struct rl_error *err)
{
	const char *words[WORDS_MAX + 1];
	const struct rl_phrase *phrase;
	struct rl_statement statement;
	int count = 0, rc = words_split(reader, words, &count, err);
	bool any;

	if (rc || !count)
		return rc;
	rc = words_parse(words, count, &statement, err);
	if (rc)
		return rl_policy_line_error(reader->file.name, reader->number, rc, err);
	any = is_of_any(&statement.target, &statement.terms);
	phrase = rl_phrases_add(&reader->file.phrases, sentence->phrase, any ? sentence->length : 0,
				&statement.terms);
	return phrase ? line_add(reader, &statement.target, phrase, err) : refuse_memory(reader, err);
}

static int line_take(struct reader *reader, struct rl_error *err)
{
	const struct rl_phrase *phrase;
	struct sentence sentence;
	struct rl_target target;

	line_split(reader, &sentence);
	if (line_known(reader, &sentence, &target, &phrase))
		return line_add(reader, &target, phrase, err);
	return line_parse(reader, &sentence, err);
}

/* But for the buffer, which is large. */
static void reader_begin(struct reader *reader, FILE *in, const char *name)
{
	reader->in = in;
	reader->file = (struct rl_policy_file){.name = name};
	reader->room = 0;
	reader->number = 0;
	reader->at = reader->buffer;
	reader->have = 0;
	reader->ended = false;
	reader->failure = 0;
}

int rl_policy_file_read(FILE *in, const char *name, struct rl_policy_file *out, struct rl_error *err)
{
	struct reader reader;
	int rc;

	reader_begin(&reader, in, name);
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
	rl_phrases_free(&file->phrases);
	*file = (struct rl_policy_file){};
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "device.h"
#include "target.h"

#define OPTIONS_MAX 16 /* of one command */
#define EMPTY_HINT  ", as an unset variable is in a shell: give it a value"

int rl_cmd_json, rl_cmd_answered;

__attribute__((format(printf, 3, 4))) static int usage_error(const struct rl_command *command,
							     struct rl_error *err, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "%s: %s; usage: rl-agent %s %s (`rl-agent help %s` tells more)", command->name,
			    what, command->name, command->arguments, command->name);
}

static bool is_kind(const struct poptOption *option, unsigned int kind)
{
	return (option->argInfo & POPT_ARG_MASK) == kind;
}

/*
 * The command's options for popt, each with its place + 1 as what poptGetNextOpt() returns for it. Strings are left to
 * option_take(): popt would lose the first of two.
 */
static void options_copy(const struct rl_command *command, struct poptOption copy[OPTIONS_MAX + 1])
{
	const struct poptOption *option = command->options;
	int count = 0;

	for (; option && (option->longName || option->shortName) && count < OPTIONS_MAX; option++, count++) {
		copy[count] = *option;
		copy[count].val = count + 1;
		if (is_kind(option, POPT_ARG_STRING))
			copy[count].arg = NULL;
	}
	copy[count] = (struct poptOption)POPT_TABLEEND;
}

static int option_take(poptContext context, const struct rl_command *command, const struct poptOption *option,
		       bool *given, struct rl_error *err)
{
	RL_FREE char *value = poptGetOptArg(context);

	if (*given && !is_kind(option, POPT_ARG_ARGV))
		return usage_error(command, err, "--%s is given twice: give it once", option->longName);
	if (value && !*value)
		return usage_error(command, err, "--%s is empty" EMPTY_HINT ", or leave it out",
				   option->longName);
	*given = true;
	if (is_kind(option, POPT_ARG_STRING))
		*(const char **)option->arg = RL_TAKE_PTR(value);
	return 0;
}

static int options_take(poptContext context, const struct rl_command *command, struct rl_error *err)
{
	bool given[OPTIONS_MAX] = {false};
	int next, rc = 0;

	while (!rc && (next = poptGetNextOpt(context)) > 0)
		rc = option_take(context, command, &command->options[next - 1], &given[next - 1], err);
	if (!rc && next < -1)
		rc = usage_error(command, err, "%s: %s", poptBadOption(context, POPT_BADOPTION_NOALIAS),
				 poptStrerror(next));
	return rc;
}

/* The word as it stands in argv, which outlives the parser's copy of it. `from` says where to go on looking.
 */
static const char *word_in_argv(int argc, const char **argv, const char *word, int *from)
{
	for (int i = *from; i < argc; i++)
		if (!strcmp(argv[i], word)) {
			*from = i + 1;
			return argv[i];
		}
	return NULL;
}

/* How many there are; of those beyond max the first is given as *surplus. */
static int words_take(poptContext context, int argc, const char **argv, int max, const char **words,
		      const char **surplus)
{
	int count = 0, from = 1;

	for (const char *word; (word = poptGetArg(context)); count++) {
		word = word_in_argv(argc, argv, word, &from);
		if (count < max)
			words[count] = word;
		else if (count == max)
			*surplus = word;
	}
	return count;
}

/* What the usage line calls the command's word: its first one in capitals. */
static const char *word_name(const struct rl_command *command, int *length)
{
	const char *name = command->arguments + (command->arguments[0] == '[');

	*length = (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return name;
}

static int words_check(const struct rl_command *command, int given, int min, const char *const *words,
		       struct rl_error *err)
{
	int length;
	const char *name = word_name(command, &length);

	if (given < min)
		return usage_error(command, err, "an argument is missing: %.*s", length, name);
	for (int i = 0; i < given; i++)
		if (!*words[i])
			return usage_error(command, err, "%.*s is empty" EMPTY_HINT "%s", length, name,
					   min ? "" : ", or leave it out");
	return 0;
}

int rl_cmd_parse(const struct rl_command *command, int argc, const char **argv, int min, int max,
		 const char **words, int *count, struct rl_error *err)
{
	struct poptOption options[OPTIONS_MAX + 1];
	poptContext context;
	const char *surplus = NULL;
	int rc, given = 0;

	options_copy(command, options);
	context = poptGetContext(command->name, argc, argv, options, 0);
	rc = options_take(context, command, err);
	if (!rc) {
		given = words_take(context, argc, argv, max, words, &surplus);
		rc = surplus
			 ? usage_error(command, err, "too many arguments: \"%.64s\" has no place", surplus)
			 : words_check(command, given, min, words, err);
	}
	if (!rc)
		*count = given;
	poptFreeContext(context);
	return rc;
}

int rl_cmd_target(const char *word, struct rl_target *out, struct rl_error *err)
{
	const char *device =
	    strncmp(word, RL_TARGET_DEV, strlen(RL_TARGET_DEV)) ? "" : word + strlen(RL_TARGET_DEV);
	char name[RL_NAME_LEN], text[sizeof(RL_TARGET_DEV) + RL_NAME_LEN];
	int rc;

	if (strlen(device) < RL_NAME_LEN)
		return rl_target_parse(word, out, err);
	rc = rl_device_name(device, name, err);
	if (rc)
		return rc;
	snprintf(text, sizeof(text), RL_TARGET_DEV "%s", name);
	return rl_target_parse(text, out, err);
}

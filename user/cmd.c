// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int rl_cmd_json;

static const struct poptOption no_options[] = {POPT_TABLEEND};

static int usage_error(const struct rl_command *command, struct rl_error *err, const char *what,
		       const char *word)
{
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "%s: %s%s; usage: rl-agent %s %s (`rl-agent help %s` tells more)", command->name,
			    what, word, command->name, command->arguments, command->name);
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

static int words_take(poptContext context, int argc, const char **argv, int max, const char **words)
{
	int count = 0, from = 1;

	for (const char *word; (word = poptGetArg(context)); count++)
		if (count < max)
			words[count] = word_in_argv(argc, argv, word, &from);
	return count;
}

int rl_cmd_parse(const struct rl_command *command, int argc, const char **argv, int min, int max,
		 const char **words, int *count, struct rl_error *err)
{
	const struct poptOption *options = command->options ? command->options : no_options;
	poptContext context = poptGetContext(command->name, argc, argv, options, 0);
	int rc = 0, next, given;
	char text[160];

	while ((next = poptGetNextOpt(context)) > 0)
		;
	if (next < -1) {
		snprintf(text, sizeof(text), "%s: ", poptBadOption(context, POPT_BADOPTION_NOALIAS));
		rc = usage_error(command, err, text, poptStrerror(next));
	} else {
		given = words_take(context, argc, argv, max, words);
		if (given < min)
			rc = usage_error(command, err, "an argument is missing", "");
		else if (given > max)
			rc = usage_error(command, err, "too many arguments", "");
		else
			*count = given;
	}
	poptFreeContext(context);
	return rc;
}

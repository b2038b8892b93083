// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Every command's option table: complete, and parsed as its usage line says. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/cmd.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS	     2 /* the most that any command takes is one */

static const struct {
	const struct rl_command *command;
	int min, max; /* words */
} commands[] = {
    {&rl_cmd_attach, 1, 1}, {&rl_cmd_detach, 0, 1}, {&rl_cmd_set_limit, 1, 1}, {&rl_cmd_del_limit, 1, 1},
    {&rl_cmd_list, 0, 0},   {&rl_cmd_stats, 0, 0},  {&rl_cmd_status, 0, 0},    {&rl_cmd_top, 0, 0},
    {&rl_cmd_pause, 0, 1},  {&rl_cmd_resume, 0, 1}, {&rl_cmd_probe, 0, 1},     {&rl_cmd_allow, 1, 1},
    {&rl_cmd_deny, 1, 1},   {&rl_cmd_reset, 0, 1},  {&rl_cmd_explain, 1, 1},
};

struct outcome {
	int rc, count;
	const char *words[WORDS];
	struct rl_error err;
};

/* As a process begins: nothing is given yet. */
static void forget(const struct rl_command *command)
{
	for (const struct poptOption *option = command->options;
	     option && (option->longName || option->shortName); option++) {
		char **text = option->arg, ***texts = option->arg;

		switch (option->argInfo & POPT_ARG_MASK) {
		case POPT_ARG_NONE:
			*(int *)option->arg = 0;
			break;
		case POPT_ARG_STRING:
			free(*text);
			*text = NULL;
			break;
		case POPT_ARG_ARGV:
			for (char **one = *texts; one && *one; one++)
				free(*one);
			free(*texts);
			*texts = NULL;
			break;
		}
	}
}

/* Parse the command with these words behind its name, up to a NULL. */
static struct outcome parse(size_t which, const char *const *arguments)
{
	const struct rl_command *command = commands[which].command;
	struct outcome out = {.count = -1};
	const char *argv[16] = {command->name};
	int argc = 1;

	forget(command);
	while (arguments[argc - 1]) {
		argv[argc] = arguments[argc - 1];
		argc++;
	}
	out.rc = rl_cmd_parse(command, argc, argv, commands[which].min, commands[which].max, out.words,
			      &out.count, &out.err);
	return out;
}
#define parse_words(which, ...) parse(which, (const char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void check_refused(size_t which, const struct outcome *out, const char *text)
{
	const char *name = commands[which].command->name;

	cr_expect_eq(out->rc, -EINVAL, "%s: %d", name, out->rc);
	cr_expect_eq(out->err.kind, RL_ERROR_USAGE, "%s", name);
	cr_expect_eq(out->count, -1, "%s: outputs are untouched", name);
	cr_expect_not_null(strstr(out->err.text, text), "%s: no \"%s\" in: %s", name, text, out->err.text);
	cr_expect_not_null(strstr(out->err.text, commands[which].command->arguments), "%s: no usage in: %s",
			   name, out->err.text);
	cr_expect_not_null(strstr(out->err.text, "rl-agent help "), "%s", name);
}

static bool is_end(const struct poptOption *option)
{
	return !option->longName && !option->shortName;
}

Test(options, each_command_is_described)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct rl_command *command = commands[i].command;

		cr_assert_not_null(command->name);
		cr_expect_not_null(command->run, "%s", command->name);
		cr_assert_not_null(command->arguments, "%s", command->name);
		cr_assert_not_null(command->summary, "%s", command->name);
		cr_expect_gt(strlen(command->summary), 10, "%s", command->name);
		cr_expect_not_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ", command->summary[0]), "%s",
				   command->name);
		cr_expect_neq(command->summary[strlen(command->summary) - 1], '.', "%s", command->name);
		if (command->help)
			cr_expect_eq(command->help[strlen(command->help) - 1], '\n', "%s", command->name);
	}
}

Test(options, each_option_is_described)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct rl_command *command = commands[i].command;

		for (const struct poptOption *option = command->options; option && !is_end(option);
		     option++) {
			bool takes_value = (option->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE;

			cr_assert_not_null(option->longName, "%s: -%c has no name", command->name,
					   option->shortName);
			cr_assert_not_null(option->descrip, "%s --%s", command->name, option->longName);
			cr_expect_gt(strlen(option->descrip), 5, "%s --%s", command->name, option->longName);
			cr_expect_not_null(option->arg, "%s --%s", command->name, option->longName);
			cr_expect_eq(option->argDescrip != NULL, takes_value, "%s --%s", command->name,
				     option->longName);
		}
	}
}

/* The usage line has a place for the word, where the command takes one, and each option by one of its names. */
Test(options, each_usage_line_is_whole)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct rl_command *command = commands[i].command;
		const char *first = command->arguments + (command->arguments[0] == '[');
		bool has_word = isupper((unsigned char)first[0]);

		cr_expect_eq(has_word, commands[i].max > 0, "%s: %s", command->name, command->arguments);
		for (const struct poptOption *option = command->options; option && !is_end(option);
		     option++) {
			char whole[64], brief[] = {'-', option->shortName, '\0'};

			snprintf(whole, sizeof(whole), "--%s", option->longName);
			cr_expect(strstr(command->arguments, whole) ||
				      (option->shortName && strstr(command->arguments, brief)),
				  "%s: no %s in: %s", command->name, whole, command->arguments);
		}
	}
}

Test(options, no_two_share_a_letter_or_a_name)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct rl_command *command = commands[i].command;

		for (const struct poptOption *a = command->options; a && !is_end(a); a++)
			for (const struct poptOption *b = a + 1; !is_end(b); b++) {
				cr_expect_str_neq(a->longName, b->longName, "%s", command->name);
				cr_expect(!a->shortName || a->shortName != b->shortName,
					  "%s: --%s and --%s share -%c", command->name, a->longName,
					  b->longName, a->shortName);
			}
	}
	for (size_t i = 0; i < COUNT(commands); i++)
		for (size_t k = i + 1; k < COUNT(commands); k++)
			cr_expect_str_neq(commands[i].command->name, commands[k].command->name);
}

/* A letter is short for the same name wherever it is. */
Test(options, one_letter_means_one_thing)
{
	const char *names[256] = {};

	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			const char **name = &names[(unsigned char)option->shortName];

			if (!option->shortName)
				continue;
			if (*name)
				cr_expect_str_eq(option->longName, *name, "-%c of %s", option->shortName,
						 commands[i].command->name);
			*name = option->longName;
		}
}

Test(options, missing_words)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct outcome out = parse_words(i);

		if (commands[i].min) {
			check_refused(i, &out, "an argument is missing");
			continue;
		}
		cr_expect_eq(out.rc, 0, "%s: %s", commands[i].command->name, out.err.text);
		cr_expect_eq(out.count, 0, "%s", commands[i].command->name);
	}
}

Test(options, words_as_many_as_it_takes)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const char *words[] = {"one", NULL};
		struct outcome out = parse(i, words);

		if (!commands[i].max) {
			check_refused(i, &out, "too many arguments");
			continue;
		}
		cr_expect_eq(out.rc, 0, "%s: %s", commands[i].command->name, out.err.text);
		cr_expect_eq(out.count, 1, "%s", commands[i].command->name);
		cr_expect_eq(out.words[0], words[0], "%s: the word isn't the caller's own",
			     commands[i].command->name);
	}
}

Test(options, too_many_words)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct outcome out = parse_words(i, "one", "two"),
			       many = parse_words(i, "one", "one", "one", "one", "one", "one");

		check_refused(i, &out, "too many arguments");
		check_refused(i, &many, "too many arguments");
	}
}

Test(options, unknown_options)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		struct outcome whole = parse_words(i, "one", "--no-such-option"),
			       first = parse_words(i, "--no-such-option=1", "one"),
			       brief = parse_words(i, "-Z");

		check_refused(i, &whole, "--no-such-option: unknown option");
		check_refused(i, &first, "--no-such-option");
		check_refused(i, &brief, "-Z: unknown option");
	}
}

Test(options, options_without_their_value)
{
	size_t tried = 0;

	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			char whole[64], brief[] = {'-', option->shortName, '\0'};
			struct outcome out;

			if ((option->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE)
				continue;
			snprintf(whole, sizeof(whole), "--%s", option->longName);
			out = commands[i].max ? parse_words(i, "one", whole) : parse_words(i, whole);
			check_refused(i, &out, whole);
			cr_expect_not_null(strstr(out.err.text, "missing argument"), "%s", out.err.text);
			tried++;
			if (!option->shortName)
				continue;
			out = commands[i].max ? parse_words(i, "one", brief) : parse_words(i, brief);
			check_refused(i, &out, brief);
		}
	cr_expect_geq(tried, 9);
}

Test(options, values_that_options_do_not_take)
{
	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			char word[64];
			struct outcome out;

			if ((option->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE)
				continue;
			snprintf(word, sizeof(word), "--%s=1", option->longName);
			out = commands[i].max ? parse_words(i, "one", word) : parse_words(i, word);
			snprintf(word, sizeof(word), "--%s", option->longName);
			check_refused(i, &out, word);
		}
}

/* Parse with an option given once by each of two ways of writing it. */
static void check_given_twice(size_t which, const struct poptOption *option, const char *first,
			      const char *second)
{
	bool takes_value = (option->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE;
	const char *words[6] = {NULL};
	struct outcome out;
	char text[64];
	int count = 0;

	if (commands[which].max)
		words[count++] = "one";
	words[count++] = first;
	if (takes_value)
		words[count++] = "1";
	words[count++] = second;
	if (takes_value)
		words[count++] = "1";
	out = parse(which, words);
	snprintf(text, sizeof(text), "--%s is given twice", option->longName);
	check_refused(which, &out, text);
}

static bool is_collected(const struct poptOption *option)
{
	return (option->argInfo & POPT_ARG_MASK) == POPT_ARG_ARGV;
}

/* Also where both say the same. */
Test(options, given_twice)
{
	size_t tried = 0;

	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			char whole[64], brief[] = {'-', option->shortName, '\0'};

			if (is_collected(option))
				continue;
			snprintf(whole, sizeof(whole), "--%s", option->longName);
			check_given_twice(i, option, whole, whole);
			tried++;
			if (!option->shortName)
				continue;
			check_given_twice(i, option, brief, whole);
			check_given_twice(i, option, brief, brief);
		}
	cr_expect_geq(tried, 30);
}

/* A rate in packets and one in bits, with their bursts, are the only ones that can be; and both are kept. */
Test(options, what_can_be_given_twice)
{
	struct outcome out = parse_words(2, "one", "--rate", "1pps", "-r", "1kbit", "-b", "5", "--burst=2kb");
	size_t found = 0;

	cr_expect_eq(out.rc, 0, "%s", out.err.text);
	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			const char **values;

			if (!is_collected(option))
				continue;
			found++;
			cr_expect_not_null(strstr(option->descrip, "twice"), "--%s", option->longName);
			values = *(const char ***)option->arg;
			cr_assert_not_null(values, "--%s", option->longName);
			cr_expect_str_eq(values[0], strcmp(option->longName, "rate") ? "5" : "1pps");
			cr_expect_str_eq(values[1], strcmp(option->longName, "rate") ? "2kb" : "1kbit");
			cr_expect_null(values[2]);
		}
	cr_expect_eq(found, 2);
}

/* As a shell writes it whose variable isn't set. */
Test(options, empty_values)
{
	for (size_t i = 0; i < COUNT(commands); i++)
		for (const struct poptOption *option = commands[i].command->options;
		     option && !is_end(option); option++) {
			char whole[64], joined[66], text[80];
			struct outcome out;

			if ((option->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE)
				continue;
			snprintf(whole, sizeof(whole), "--%s", option->longName);
			snprintf(joined, sizeof(joined), "%s=", whole);
			snprintf(text, sizeof(text), "%s is empty", whole);
			out = commands[i].max ? parse_words(i, "one", whole, "") : parse_words(i, whole, "");
			check_refused(i, &out, text);
			out = commands[i].max ? parse_words(i, joined, "one") : parse_words(i, joined);
			check_refused(i, &out, text);
		}
}

Test(options, empty_words)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const char *arguments =
		    commands[i].command->arguments + (commands[i].command->arguments[0] == '[');
		struct outcome out = parse_words(i, "");
		char text[64];

		if (!commands[i].max)
			continue;
		snprintf(text, sizeof(text), "%.*s is empty",
			 (int)strspn(arguments, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), arguments);
		check_refused(i, &out, text);
	}
}

/* Options may stand before or behind the word, and end at "--", behind which a word may begin with a dash. */
Test(options, order_and_the_end_of_options)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct poptOption *option = commands[i].command->options;
		const char *dashed[] = {"--", "--json", NULL};
		struct outcome out;
		char word[64];

		for (; option && !is_end(option); option++)
			if ((option->argInfo & POPT_ARG_MASK) == POPT_ARG_NONE)
				break;
		if (!commands[i].max)
			continue;
		out = parse(i, dashed);
		cr_expect_eq(out.rc, 0, "%s: %s", commands[i].command->name, out.err.text);
		cr_expect_eq(out.words[0], dashed[1], "%s", commands[i].command->name);
		if (!option || is_end(option))
			continue;
		snprintf(word, sizeof(word), "--%s", option->longName);
		out = parse_words(i, word, "one");
		cr_expect_eq(out.rc, 0, "%s: %s", commands[i].command->name, out.err.text);
		cr_expect_str_eq(out.words[0], "one");
		cr_expect_eq(*(int *)option->arg, 1, "%s %s", commands[i].command->name, word);
		out = parse_words(i, "one", word);
		cr_expect_eq(out.rc, 0, "%s: %s", commands[i].command->name, out.err.text);
		cr_expect_str_eq(out.words[0], "one");
		cr_expect_eq(*(int *)option->arg, 1, "%s %s", commands[i].command->name, word);
	}
}

/* An option's value that is the same as the word isn't taken for it. */
Test(options, a_word_that_is_said_twice)
{
	const char *words[] = {"--mode", "native", "native", NULL};
	struct outcome out = parse(0, words);

	cr_expect_eq(out.rc, 0, "%s", out.err.text);
	cr_expect_str_eq(out.words[0], "native");
}

/* Whatever is in an unknown option, the text is fit for a terminal and for JSON. */
Test(options, a_text_is_printable)
{
	struct outcome out = parse_words(4, "--\x1b[31m\xff\n");

	check_refused(4, &out, "unknown option");
	for (const char *c = out.err.text; *c; c++)
		cr_expect(*c >= ' ' && *c <= '~', "%#x", (unsigned char)*c);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * main.c - the table of commands, dispatch, and what the shell sees of the outcome: the error's text and the
 * exit code.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "loader.h"
#include "view.h"

static const struct rl_command *const commands[] = {
    &rl_cmd_attach, &rl_cmd_detach, &rl_cmd_set_limit, &rl_cmd_del_limit, &rl_cmd_allow, &rl_cmd_deny,
    &rl_cmd_apply,  &rl_cmd_list,   &rl_cmd_stats,     &rl_cmd_explain,	  &rl_cmd_top,	 &rl_cmd_reset,
    &rl_cmd_status, &rl_cmd_pause,  &rl_cmd_resume,    &rl_cmd_probe,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct rl_command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void help_print(void)
{
	printf("rl-agent holds every source to its token bucket in the network device's receive path.\n\n"
	       "Usage: rl-agent COMMAND [ARGUMENTS]\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-10s %s\n  %-10s %s\n\n", "help", "this text; `help COMMAND` tells more of one",
	       "--version", "the version");
	printf(
	    "Exit codes: 0 done, 1 wrong usage, 2 the kernel refused or there is no room left, 3 not attached.\n");
}

static void command_help_print(const struct rl_command *command)
{
	printf("Usage: rl-agent %s %s\n\n%s.\n", command->name, command->arguments, command->summary);
	if (command->help)
		printf("\n%s", command->help);
	if (command->help_more)
		command->help_more();
	if (!command->options)
		return;
	printf("\nOptions:\n");
	for (const struct poptOption *option = command->options; option->longName || option->shortName;
	     option++) {
		char name[64];

		snprintf(name, sizeof(name), "%c%c%s--%s%s%s", option->shortName ? '-' : ' ',
			 option->shortName ? option->shortName : ' ', option->shortName ? ", " : "  ",
			 option->longName, option->argDescrip ? " " : "",
			 option->argDescrip ? option->argDescrip : "");
		printf("  %-26s %s\n", name, option->descrip);
	}
}

/* Words behind the last that has a place. */
static int surplus_check(int argc, const char **argv, int max, const char *usage, struct rl_error *err)
{
	if (argc <= max)
		return 0;
	return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
			    "too many arguments: \"%.64s\" has no place; usage: rl-agent %s", argv[max],
			    usage);
}

static int help_run(int argc, const char **argv, struct rl_error *err)
{
	const char *name = argc > 2 ? argv[2] : NULL;
	bool general = !name || !strcmp(name, "help") || !strcmp(name, "--help");
	const struct rl_command *command = general ? NULL : command_find(name);
	int rc = surplus_check(argc, argv, 3, "help [COMMAND]", err);

	if (rc)
		return rc;
	if (!general && !command)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "there is no command \"%s\": `rl-agent help` lists them", name);
	if (command)
		command_help_print(command);
	else
		help_print();
	return 0;
}

static int version_run(int argc, const char **argv, struct rl_error *err)
{
	int rc = surplus_check(argc, argv, 2, "--version", err);

	if (!rc)
		printf("rl-agent %s\n", RL_VERSION);
	return rc;
}

/* Is there a -c among the short options, or the long one? Also where parsing stopped before it got there. */
static bool has_option(int argc, const char **argv, char brief, const char *whole)
{
	for (int i = 1; i < argc; i++) {
		bool is_short = argv[i][0] == '-' && argv[i][1] != '-';

		if (is_short ? strchr(argv[i], brief) != NULL : !strncmp(argv[i], whole, strlen(whole)))
			return true;
	}
	return false;
}

static int dispatch(int argc, const char **argv, struct rl_error *err)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct rl_command *command;
	int rc;

	if (!name) {
		help_print();
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL, "a command is missing");
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		return version_run(argc, argv, err);
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return help_run(argc, argv, err);
	command = command_find(name);
	if (!command)
		return rl_error_set(err, RL_ERROR_USAGE, EINVAL,
				    "there is no command \"%s\": `rl-agent help` lists them", name);
	if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		rc = surplus_check(argc, argv, 3, "COMMAND --help", err);
		if (!rc)
			command_help_print(command);
		return rc;
	}
	return command->run(argc - 1, argv + 1, err);
}

static int exit_code(const struct rl_error *err)
{
	switch (err->kind) {
	case RL_ERROR_NONE:
		return 0;
	case RL_ERROR_USAGE:
		return 1;
	case RL_ERROR_KERNEL:
		return 2;
	case RL_ERROR_NOT_ATTACHED:
		return 3;
	}
	return 2;
}

static void error_print(const struct rl_error *err, bool json)
{
	json_t *object;

	fprintf(stderr, "rl-agent: %s\n", err->text);
	if (!json)
		return;
	object = json_pack("{s:i, s:{s:i, s:s}}", "schema_version", RL_VIEW_SCHEMA_VERSION, "error", "code",
			   exit_code(err), "message", err->text);
	if (object) {
		json_dumpf(object, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(object);
	}
}

int main(int argc, char **argv)
{
	const char **words = (const char **)argv;
	struct rl_error err = {};
	int rc;

	rl_loader_log(false);
	rc = dispatch(argc, words, &err);

	if (rc && err.kind == RL_ERROR_NONE)
		rl_error_set(&err, RL_ERROR_KERNEL, -rc, "%s failed: %s", argv[1], strerror(-rc));
	if (rc)
		error_print(&err,
			    !rl_cmd_answered && (rl_cmd_json || has_option(argc, words, 'j', "--json")));
	if ((fflush(stdout) || ferror(stdout)) && !rc) {
		rc = rl_error_set(&err, RL_ERROR_KERNEL, EIO,
				  "it is done, but its output can't be written: %s", strerror(errno));
		error_print(&err, false);
	}
	return rc ? exit_code(&err) : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cmd.h - a command: one row of main.c's table, one file cmd_*.c. A command parses its arguments, calls the
 * modules and prints its result; on failure it fills the error and main.c prints that, and chooses the exit
 * code.
 */
#ifndef RL_CMD_H
#define RL_CMD_H

#include <popt.h>
#include <stdbool.h>
#include "../bpf/rl_abi.h"
#include "error.h"

struct rl_command {
	const char *name;
	const char *arguments;		  /* "TARGET --rate RATE", for the usage line */
	const char *summary;		  /* one line */
	const char *help;		  /* more, or NULL; ends with a newline */
	void (*help_more)(void);	  /* prints what follows from a table; or NULL */
	const struct poptOption *options; /* ends with POPT_TABLEEND; NULL: none */
	int (*run)(int argc, const char **argv, struct rl_error *err); /* argv[0] is the command's name */
};

/*
 * Parse argv by the command's option table into the variables that the table points to, and give the other
 * words. At least min and at most max of those; they are valid as long as argv. An option is given once, but for
 * POPT_ARG_ARGV, which collects; no word and no value is empty. -EINVAL and RL_ERROR_USAGE otherwise.
 */
int rl_cmd_parse(const struct rl_command *command, int argc, const char **argv, int min, int max,
		 const char **words, int *count, struct rl_error *err);

/* rl_target_parse(), for a word of the command line: a device's alternative name may be longer than its own. */
int rl_cmd_target(const char *word, struct rl_target *out, struct rl_error *err);

/* A command that fails has printed its JSON object all the same: main.c prints no other. */
extern int rl_cmd_answered;

/* The --json option, shared by every command that has it; main.c prints errors accordingly. */
extern int rl_cmd_json;
#define RL_CMD_OPTION_JSON                                                                                   \
	{                                                                                                    \
		"json", 'j', POPT_ARG_NONE, &rl_cmd_json, 0, "print one JSON object", NULL                   \
	}

extern const struct rl_command rl_cmd_attach, rl_cmd_detach, rl_cmd_set_limit, rl_cmd_del_limit, rl_cmd_allow,
    rl_cmd_deny, rl_cmd_apply, rl_cmd_list, rl_cmd_stats, rl_cmd_explain, rl_cmd_reset, rl_cmd_status,
    rl_cmd_top, rl_cmd_pause, rl_cmd_resume, rl_cmd_probe;

#endif

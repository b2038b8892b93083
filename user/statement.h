/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * statement.h - what set-limit, allow and deny say, in words: on the command line, in a policy file's lines (policy_file.h),
 * and in what is printed to be said again. One grammar and one printer: parse(print(x)) = x.
 */
#ifndef RL_STATEMENT_H
#define RL_STATEMENT_H

#include <popt.h>
#include <stdbool.h>

#include "../bpf/rl_abi.h"
#include "error.h"

#define RL_SET_LIMIT "set-limit"
#define RL_ALLOW     "allow"
#define RL_DENY	     "deny"

struct rl_statement {
	struct rl_target target;
	struct rl_terms terms;	   /* complete, unless bare */
	bool burst_said[RL_UNITS]; /* otherwise it is the default */
	bool
	    bare; /* nothing but --shadow or --enforce: the rest is what the limit has already, if there is one */
};

/* The command that words begin with, and what it takes: for its usage line, its help, and the parser. */
#define RL_SET_LIMIT_ARGUMENTS                                                                               \
	"TARGET --rate RATE [--rate RATE] [--burst BURST ...] [--tenant NAME] [--class CLASS] "              \
	"[--cost COSTS] [--priority PRIORITY] [--reserve SHARES] [--shared | --per /LENGTH] "                \
	"[--shadow | --enforce]"
#define RL_ALLOW_ARGUMENTS "PREFIX"
#define RL_DENY_ARGUMENTS  "PREFIX [--shadow]"
extern const struct poptOption rl_set_limit_options[], rl_deny_options[];

/* Is it one of these commands? */
bool rl_statement_begins(const char *word);

/* argv[0] is one of these commands. RL_ERROR_USAGE for what isn't right, and *out is untouched. */
int rl_statement_parse(int argc, const char **argv, struct rl_statement *out, struct rl_error *err);

/* "set-limit 203.0.113.7 --rate 1kpps --burst 2000p", "deny 192.0.2.66": of complete terms. Returns buf. */
#define RL_STATEMENT_TEXT 640
const char *rl_statement_print(const struct rl_target *target, const struct rl_terms *terms,
			       char buf[RL_STATEMENT_TEXT]);

#endif

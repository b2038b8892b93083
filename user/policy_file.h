/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policy_file.h - a policy as text: lines of set-limit, allow and deny, as on the command line (statement.h) without
 * `rl-agent`. Words are split on blanks; empty lines, and those whose first word begins with #, are left out; a line may end
 * in CR LF, and the last one in nothing. Each line is a limit stated whole, whatever is in force. Pure.
 */
#ifndef RL_POLICY_FILE_H
#define RL_POLICY_FILE_H

#include <stdio.h>

#include "../bpf/rl_abi.h"
#include "error.h"
#include "phrases.h"

#define RL_POLICY_LINE_BYTES 4096 /* of a line, its end included */

/* A limit, or what allow or deny say. */
struct rl_policy_line {
	struct rl_target target;
	const struct rl_terms *terms; /* complete; those of one of the file's phrases */
	__u32 number;		      /* of the line, from 1 */
};

struct rl_policy_file {
	const char *name; /* for errors */
	/* In the order of rl_target_compare, a target's general limit first and then its classes as they come in the file. */
	struct rl_policy_line *lines;
	size_t count;
	struct rl_phrases phrases;
};

#define RL_POLICY_FILE __attribute__((cleanup(rl_policy_file_free)))

/*
 * Read all of it. RL_ERROR_USAGE, "NAME:LINE: ...", for the first line that isn't right; then for the first that names what
 * one before it has named. `name` is kept. Start from a zeroed *out; it stays so on error.
 */
int rl_policy_file_read(FILE *in, const char *name, struct rl_policy_file *out, struct rl_error *err);

/* The same of the file of this name; "-": of standard input. */
int rl_policy_file_open(const char *path, struct rl_policy_file *out, struct rl_error *err);
void rl_policy_file_free(struct rl_policy_file *file);

/* Put the lines in order again after targets were changed. RL_ERROR_USAGE where one is named twice now. */
int rl_policy_file_order(struct rl_policy_file *file, struct rl_error *err);

/* What is wrong about a line: its place goes before the text. Returns rc. */
int rl_policy_line_error(const char *name, __u32 number, int rc, struct rl_error *err);

#endif

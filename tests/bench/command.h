/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * command.h - other programs, run in a network namespace.
 */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <stddef.h>

#include "../../user/error.h"

struct command {
	int netns;	   /* a network namespace's descriptor */
	const char *input; /* what it reads; NULL: nothing */
	char *output;	   /* what it says is put here, NUL at the end; NULL: nowhere */
	size_t size;	   /* of output */
};

/* -ENOENT where there is no such program, -EIO where it fails; then the text has what it said. argv ends with NULL. */
int command_run(const struct command *command, const char *const *argv, struct rl_error *err);

/* The same, of a line without quotes: words stand between single spaces. */
int command_line(int netns, struct rl_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

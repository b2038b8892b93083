/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.h - how a failure travels: a negative errno as the return value, and one text for the operator.
 *
 * A function that can fail for a reason worth telling takes a struct rl_error last, fills it once and returns
 * a negative errno; its other outputs stay untouched. Nothing below a command prints: main.c prints the text,
 * and turns the kind into the exit code. A text says what happened, to which object, what was expected and
 * what to do next; it begins in lower case, without "error:" and without a newline.
 */
#ifndef RL_ERROR_H
#define RL_ERROR_H

enum rl_error_kind {
	RL_ERROR_NONE,
	RL_ERROR_USAGE,	       /* the request is wrong: exit 1 */
	RL_ERROR_KERNEL,       /* the kernel, or what is found in it, refused: exit 2 */
	RL_ERROR_NOT_ATTACHED, /* there is nothing attached to work on: exit 3 */
};

struct rl_error {
	enum rl_error_kind kind;
	char text[2048];
};

/* Fill *err and return -code (code > 0, an errno). Names come from anywhere: the text is as rl_plain_ascii() shows it. */
int rl_error_set(struct rl_error *err, enum rl_error_kind kind, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

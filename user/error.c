// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int rl_error_set(struct rl_error *err, enum rl_error_kind kind, int code, const char *format, ...)
{
	va_list args;

	err->kind = kind;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	/* Names come from anywhere: nothing that drives a terminal or breaks JSON gets through. */
	for (char *c = err->text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return -code;
}

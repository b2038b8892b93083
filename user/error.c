// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#include "plain.h"

int rl_error_set(struct rl_error *err, enum rl_error_kind kind, int code, const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list args;

	err->kind = kind;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	rl_plain_ascii(text, err->text, sizeof(err->text));
	return -code;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "plain.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define LINE_TEXT      2048
#define ESCAPED_LENGTH 4 /* "\x1b" */

/* A character of `length` bytes begins with these bits, and is one from `least` on: shorter ones could say what is below. */
struct shape {
	size_t length;
	unsigned int mask, lead, least;
};

/* From U+00A0 on: those before are control characters, some terminals' escape among them. */
static const struct shape shapes[] = {
    {2, 0xe0, 0xc0, 0xa0},
    {3, 0xf0, 0xe0, 0x800},
    {4, 0xf8, 0xf0, 0x10000},
};

static bool is_shaped(const unsigned char *c, const struct shape *shape)
{
	unsigned int code = c[0] & ~shape->mask & 0xff;

	if ((c[0] & shape->mask) != shape->lead)
		return false;
	for (size_t i = 1; i < shape->length; i++) {
		if ((c[i] & 0xc0) != 0x80) /* a NUL ends it too */
			return false;
		code = code << 6 | (c[i] & 0x3f);
	}
	return code >= shape->least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/* Bytes of the printable character that begins here; 0: none does. */
static size_t character(const char *text, bool ascii)
{
	const unsigned char *c = (const unsigned char *)text;

	if (*c >= ' ' && *c <= '~')
		return 1;
	for (size_t i = 0; !ascii && i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (is_shaped(c, &shapes[i]))
			return shapes[i].length;
	return 0;
}

static char *escape(const char *text, bool ascii, char *out, size_t size)
{
	size_t used = 0;

	while (*text) {
		size_t length = character(text, ascii), takes = length ? length : ESCAPED_LENGTH;

		if (used + takes >= size)
			break;
		if (length)
			memcpy(out + used, text, length);
		else
			snprintf(out + used, size - used, "\\x%02x", (unsigned char)*text);
		used += takes;
		text += length ? length : 1;
	}
	out[used] = '\0';
	return out;
}

char *rl_plain(const char *text, char *out, size_t size)
{
	return escape(text, false, out, size);
}

char *rl_plain_ascii(const char *text, char *out, size_t size)
{
	return escape(text, true, out, size);
}

void rl_plain_print(FILE *out, const char *format, ...)
{
	char text[LINE_TEXT], plain[RL_PLAIN_ROOM(LINE_TEXT)];
	size_t length = strlen(format);
	bool ends = length && format[length - 1] == '\n';
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	length = strlen(text);
	if (ends && length && text[length - 1] == '\n')
		text[length - 1] = '\0';
	fprintf(out, "%s%s", rl_plain(text, plain, sizeof(plain)), ends ? "\n" : "");
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plain.h - text for people without anything that a terminal obeys. The kernel lets a device's name have control bytes, and
 * an argument has whatever it likes; JSON escapes its strings by itself.
 */
#ifndef RL_PLAIN_H
#define RL_PLAIN_H

#include <stddef.h>
#include <stdio.h>

#define RL_PLAIN_ROOM(length) (4UL * (length) + 1) /* for so many bytes, whatever they are */

/* Every byte that isn't part of a printable character (ASCII, or well-formed UTF-8) as "\x1b"; cut to `size`. Returns out. */
char *rl_plain(const char *text, char *out, size_t size);

/* The same of every byte that isn't printable ASCII: for what must be readable in any locale, and fit for JSON uncut. */
char *rl_plain_ascii(const char *text, char *out, size_t size);

/* fprintf(), through rl_plain(): at most one line, whose newline, where it has one, is the format's last byte. */
void rl_plain_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif

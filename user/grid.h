/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * grid.h - text in columns: each as wide as its widest cell, two spaces apart. Cells are copied, as
 * rl_plain() shows them. Running out of memory is remembered and reported by
 * rl_grid_print().
 */
#ifndef RL_GRID_H
#define RL_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct rl_column {
	const char *title;
	int width; /* at least this, and not 0; as in printf(), negative aligns left, positive right */
};

struct rl_grid {
	const struct rl_column *columns;
	size_t column_count;
	char **cells; /* row by row */
	size_t row_count;
	size_t room; /* cells that fit */
	bool failed;
};

#define RL_GRID __attribute__((cleanup(rl_grid_free)))

/* A grid of these columns, which must outlive it. */
struct rl_grid rl_grid_make(const struct rl_column *columns, size_t count);

/* Add a row of column_count cells; NULL and "" print as "-". */
void rl_grid_add(struct rl_grid *grid, const char *const *cells);

/* Titles and rows; lines have no trailing spaces. 0 or -ENOMEM; errors of writing stay in the stream. */
int rl_grid_print(const struct rl_grid *grid, FILE *out);

void rl_grid_free(struct rl_grid *grid);

/* Columns that a UTF-8 text takes, at one each character. */
size_t rl_text_width(const char *text);

#endif

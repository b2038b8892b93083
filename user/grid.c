// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "plain.h"

#define GAP 2 /* spaces between columns */

struct rl_grid rl_grid_make(const struct rl_column *columns, size_t count)
{
	return (struct rl_grid){.columns = columns, .column_count = count};
}

void rl_grid_free(struct rl_grid *grid)
{
	for (size_t i = 0; i < grid->row_count * grid->column_count; i++)
		free(grid->cells[i]);
	free(grid->cells);
	*grid = (struct rl_grid){};
}

static bool make_room(struct rl_grid *grid)
{
	size_t need = (grid->row_count + 1) * grid->column_count;
	char **bigger;

	if (need <= grid->room)
		return true;
	bigger = realloc(grid->cells, 2 * need * sizeof(*bigger));
	if (!bigger)
		return false;
	grid->cells = bigger;
	grid->room = 2 * need;
	return true;
}

static char *copy_cell(const char *text)
{
	const char *shown = text && text[0] ? text : "-";
	size_t room = RL_PLAIN_ROOM(strlen(shown));
	char *copy = malloc(room);

	return copy ? rl_plain(shown, copy, room) : NULL;
}

void rl_grid_add(struct rl_grid *grid, const char *const *cells)
{
	char **row;

	if (grid->failed || !make_room(grid)) {
		grid->failed = true;
		return;
	}
	row = grid->cells + grid->row_count * grid->column_count;
	grid->row_count++;
	for (size_t i = 0; i < grid->column_count; i++) {
		row[i] = copy_cell(cells[i]);
		if (!row[i])
			grid->failed = true;
	}
}

size_t rl_text_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			width++;
	return width;
}

static void print_row(const struct rl_grid *grid, const size_t *widths, const char *const *cells, FILE *out)
{
	size_t owed = 0; /* spaces that only a later cell makes necessary */

	for (size_t i = 0; i < grid->column_count; i++) {
		size_t width = rl_text_width(cells[i]);
		size_t fill = widths[i] > width ? widths[i] - width : 0;

		if (grid->columns[i].width > 0)
			owed += fill;
		fprintf(out, "%*s%s", (int)owed, "", cells[i]);
		owed = GAP + (grid->columns[i].width > 0 ? 0 : fill);
	}
	fputc('\n', out);
}

static void measure_row(const struct rl_grid *grid, size_t *widths, const char *const *cells)
{
	for (size_t i = 0; i < grid->column_count; i++) {
		size_t width = rl_text_width(cells[i]);

		if (width > widths[i])
			widths[i] = width;
	}
}

int rl_grid_print(const struct rl_grid *grid, FILE *out)
{
	RL_FREE size_t *widths = calloc(grid->column_count, sizeof(*widths));
	RL_FREE const char **titles = calloc(grid->column_count, sizeof(*titles));
	const char *const *rows = (const char *const *)grid->cells;

	if (grid->failed || !widths || !titles)
		return -ENOMEM;
	for (size_t i = 0; i < grid->column_count; i++) {
		widths[i] = (size_t)abs(grid->columns[i].width);
		titles[i] = grid->columns[i].title;
	}
	measure_row(grid, widths, titles);
	for (size_t i = 0; i < grid->row_count; i++)
		measure_row(grid, widths, rows + i * grid->column_count);
	print_row(grid, widths, titles, out);
	for (size_t i = 0; i < grid->row_count; i++)
		print_row(grid, widths, rows + i * grid->column_count, out);
	return 0;
}

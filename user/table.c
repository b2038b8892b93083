// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

#define GAP 2 /* spaces between columns */

struct rl_table rl_table_make(const struct rl_column *columns, size_t count)
{
	return (struct rl_table){.columns = columns, .column_count = count};
}

void rl_table_free(struct rl_table *table)
{
	for (size_t i = 0; i < table->row_count * table->column_count; i++)
		free(table->cells[i]);
	free(table->cells);
	*table = (struct rl_table){};
}

static bool make_room(struct rl_table *table)
{
	size_t need = (table->row_count + 1) * table->column_count;
	char **bigger;

	if (need <= table->room)
		return true;
	bigger = realloc(table->cells, 2 * need * sizeof(*bigger));
	if (!bigger)
		return false;
	table->cells = bigger;
	table->room = 2 * need;
	return true;
}

static char *copy_cell(const char *text)
{
	char *copy = strdup(text && text[0] ? text : "-");

	for (char *c = copy; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return copy;
}

void rl_table_add(struct rl_table *table, const char *const *cells)
{
	char **row;

	if (table->failed || !make_room(table)) {
		table->failed = true;
		return;
	}
	row = table->cells + table->row_count * table->column_count;
	table->row_count++;
	for (size_t i = 0; i < table->column_count; i++) {
		row[i] = copy_cell(cells[i]);
		if (!row[i])
			table->failed = true;
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

static void print_row(const struct rl_table *table, const size_t *widths, const char *const *cells, FILE *out)
{
	size_t owed = 0; /* spaces that only a later cell makes necessary */

	for (size_t i = 0; i < table->column_count; i++) {
		size_t width = rl_text_width(cells[i]);
		size_t fill = widths[i] > width ? widths[i] - width : 0;

		if (table->columns[i].width > 0)
			owed += fill;
		fprintf(out, "%*s%s", (int)owed, "", cells[i]);
		owed = GAP + (table->columns[i].width > 0 ? 0 : fill);
	}
	fputc('\n', out);
}

static void measure_row(const struct rl_table *table, size_t *widths, const char *const *cells)
{
	for (size_t i = 0; i < table->column_count; i++) {
		size_t width = rl_text_width(cells[i]);

		if (width > widths[i])
			widths[i] = width;
	}
}

int rl_table_print(const struct rl_table *table, FILE *out)
{
	RL_FREE size_t *widths = calloc(table->column_count, sizeof(*widths));
	RL_FREE const char **titles = calloc(table->column_count, sizeof(*titles));
	const char *const *rows = (const char *const *)table->cells;

	if (table->failed || !widths || !titles)
		return -ENOMEM;
	for (size_t i = 0; i < table->column_count; i++) {
		widths[i] = (size_t)abs(table->columns[i].width);
		titles[i] = table->columns[i].title;
	}
	measure_row(table, widths, titles);
	for (size_t i = 0; i < table->row_count; i++)
		measure_row(table, widths, rows + i * table->column_count);
	print_row(table, widths, titles, out);
	for (size_t i = 0; i < table->row_count; i++)
		print_row(table, widths, rows + i * table->column_count, out);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/write/table.h"

#include <stdarg.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "util/error.h"
#include "util/mem.h"

#define GAP   2
#define RESET "\033[0m"

static const char *keep(struct tti_table *table, const char *text)
{
	const char *kept = text ? tti_arena_strdup(&table->arena, text) : NULL;

	table->failed |= !kept;
	return kept ? kept : "";
}

void tti_table_cell(struct tti_table *table, const char *color, const char *text)
{
	const uint32_t column = table->column++, last = (uint32_t)strlen(table->align) - 1;
	const struct tti_table_cell cell = {
		.lead = "",
		.text = keep(table, text),
		.color = table->color ? color : NULL,
		.column = column,
		.right = table->align[column < last ? column : last] == '>',
		.loose = table->loose,
	};

	tti_assert(column < TTI_TABLE_COLUMNS);
	table->failed |= !tti_vec_push(&table->cells, cell);
}

void tti_table_cellf(struct tti_table *table, const char *fmt, ...)
{
	struct tti_strbuf text = { 0 };
	va_list args;

	va_start(args, fmt);
	tti_strbuf_vaddf(&text, fmt, args);
	va_end(args);
	tti_table_cell(table, NULL, text.text);
	tti_strbuf_release(&text);
}

/* NULL: there was no memory for it. */
static struct tti_table_cell *last_cell(struct tti_table *table)
{
	return table->cells.n ? &table->cells.at[table->cells.n - 1] : NULL;
}

void tti_table_right(struct tti_table *table)
{
	if (last_cell(table))
		last_cell(table)->right = true;
}

void tti_table_lead(struct tti_table *table, const char *lead)
{
	if (last_cell(table))
		last_cell(table)->lead = keep(table, lead);
}

void tti_table_end_row(struct tti_table *table)
{
	if (last_cell(table))
		last_cell(table)->ends_row = true;
	table->column = 0;
	table->loose = false;
}

void tti_table_line(struct tti_table *table, const char *text)
{
	tti_table_cell(table, NULL, text);
	if (last_cell(table))
		last_cell(table)->line = true;
	tti_table_end_row(table);
}

static size_t width_of(const struct tti_table_cell *cell)
{
	return tti_print_width(cell->lead) + tti_print_width(cell->text);
}

static void measure(struct tti_table *table)
{
	for (size_t i = 0; i < table->cells.n; i++) {
		const struct tti_table_cell *cell = &table->cells.at[i];
		size_t *width = &table->widths[cell->column];

		if (width_of(cell) > *width && !cell->line && (cell->column == 0 || !cell->loose))
			*width = width_of(cell);
	}
}

void tti_table_even(struct tti_table *table, uint32_t first, uint32_t n)
{
	size_t most = 0;

	measure(table);
	for (uint32_t i = first; i < first + n; i++)
		most = table->widths[i] > most ? table->widths[i] : most;
	for (uint32_t i = first; i < first + n; i++)
		table->widths[i] = most;
}

/* One cell behind `owed` blanks; how many the next one is owed. */
static size_t write_cell(const struct tti_table_cell *cell, size_t pad, size_t owed,
			 struct tti_strbuf *out)
{
	const size_t left = cell->right ? pad : 0;

	if (!cell->text[0] && !cell->lead[0])
		return owed + pad;
	tti_strbuf_addf(out, "%*s%s%s", (int)(owed + left), "", cell->lead,
			cell->color ? cell->color : "");
	tti_words_text(cell->text, out);
	tti_strbuf_add(out, cell->color ? RESET : "");
	return pad - left;
}

void tti_table_write(struct tti_table *table, struct tti_strbuf *out)
{
	size_t owed = 0;

	measure(table);
	for (size_t i = 0; i < table->cells.n; i++) {
		const struct tti_table_cell *cell = &table->cells.at[i];
		const size_t room = table->widths[cell->column], width = width_of(cell);

		if (cell->column == 0 && !cell->line)
			tti_strbuf_add(out, table->indent ? table->indent : "");
		if (cell->line)
			tti_words_text(cell->text, out);
		else if (room || width)
			owed = GAP + write_cell(cell,
						cell->loose || width > room ? 0 : room - width,
						owed, out);
		if (!cell->ends_row)
			continue;
		tti_strbuf_add(out, "\n");
		owed = 0;
	}
	out->failed |= table->failed;
	tti_vec_release(&table->cells);
	tti_arena_release(&table->arena);
}

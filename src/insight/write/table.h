/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_WRITE_TABLE_H
#define TTI_INSIGHT_WRITE_TABLE_H

/* Tables for a terminal. A column is as wide as its widest cell; two blanks stand between columns,
 * and none at the end of a row. A column whose cells are all empty takes no room. A text may hold
 * anything: its control characters become '?'.
 *
 *     struct tti_table table = { .align = "<>", .color = config->color };
 *
 *     tti_table_cell(&table, BOLD, name);
 *     tti_table_cellf(&table, "%.1f", gbps);
 *     tti_table_end_row(&table);
 *     tti_table_write(&table, out);
 *
 * Owner: who holds the struct; tti_table_write() empties it. Threads: not synchronised. */

#include <stdbool.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/strbuf.h"
#include "util/vec.h"

#define TTI_TABLE_COLUMNS 40

struct tti_table_cell {
	const char *lead, *text, *color;
	uint32_t column;
	bool right, loose, line, ends_row;
};

struct tti_table {
	const char *align;  /* '<' or '>' for each column; more columns are as the last one */
	const char *indent; /* stands in front of each row; NULL: nothing                  */
	bool color;         /* else colours are ignored                                    */
	bool loose;         /* of a row: but for the first, its cells stand in no columns  */
	size_t widths[TTI_TABLE_COLUMNS]; /* at least; one for each column */
	/* Private. */
	struct tti_arena arena;
	TTI_VEC(struct tti_table_cell) cells;
	uint32_t column;
	bool failed;
};

/* The next cell of a row. `color` is an escape sequence, or NULL. */
void tti_table_cell(struct tti_table *table, const char *color, const char *text);
TUTTI_PRINTF(2, 3) void tti_table_cellf(struct tti_table *table, const char *fmt, ...);
/* The last cell is at the right of its column; has a text without colour in front. */
void tti_table_right(struct tti_table *table);
void tti_table_lead(struct tti_table *table, const char *lead);
void tti_table_end_row(struct tti_table *table);
/* A row with a text that stands in no column, without the indentation. */
void tti_table_line(struct tti_table *table, const char *text);

/* Columns first .. first+n-1 become as wide as the widest of them. */
void tti_table_even(struct tti_table *table, uint32_t first, uint32_t n);
/* Out of memory, here or before: out->failed. */
void tti_table_write(struct tti_table *table, struct tti_strbuf *out);

#endif

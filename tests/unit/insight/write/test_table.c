/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "insight/write/table.h"

static void expect(struct tti_table *table, const char *want)
{
	struct tti_strbuf out = { 0 };

	tti_table_write(table, &out);
	assert_false(out.failed);
	assert_string_equal(out.text, want);
	tti_strbuf_release(&out);
}

static void cells_are_filled_up(void **state)
{
	struct tti_table table = { .align = "<>", .widths = { 3, 3 } };

	(void)state;
	tti_table_cell(&table, NULL, "\xc3\xa9");
	tti_table_cell(&table, NULL, "x");
	tti_table_end_row(&table);
	tti_table_cell(&table, NULL, "");
	tti_table_cellf(&table, "lo%s", "ng");
	tti_table_end_row(&table);
	expect(&table, "\xc3\xa9       x\n     long\n");
}

static void rows_end_without_blanks(void **state)
{
	struct tti_table table = { .align = "<", .indent = "  " };

	(void)state;
	tti_table_cell(&table, NULL, "a");
	tti_table_cell(&table, NULL, "");
	tti_table_cell(&table, NULL, "wide");
	tti_table_end_row(&table);
	tti_table_line(&table, "a line of its own");
	tti_table_cell(&table, NULL, "bc");
	tti_table_cell(&table, NULL, "");
	tti_table_cell(&table, NULL, "");
	tti_table_end_row(&table);
	expect(&table, "  a   wide\na line of its own\n  bc\n");
}

static void columns_can_be_even(void **state)
{
	struct tti_table table = { .align = "<>" };

	(void)state;
	tti_table_cell(&table, NULL, "a");
	tti_table_cell(&table, NULL, "1");
	tti_table_cell(&table, NULL, "234");
	tti_table_end_row(&table);
	tti_table_even(&table, 0, 3);
	expect(&table, "a      1  234\n");
}

static void colours_take_no_room(void **state)
{
	struct tti_table table = { .align = "<", .color = true };

	(void)state;
	tti_table_cell(&table, "\033[1m", "a\n");
	tti_table_lead(&table, "`- ");
	tti_table_cell(&table, NULL, "b");
	tti_table_end_row(&table);
	table.loose = true;
	tti_table_cell(&table, NULL, "cpu");
	tti_table_cell(&table, NULL, "longer than its column");
	tti_table_end_row(&table);
	expect(&table, "`- \033[1ma?\033[0m  b\ncpu  longer than its column\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_filled_up),
		cmocka_unit_test(rows_end_without_blanks),
		cmocka_unit_test(columns_can_be_even),
		cmocka_unit_test(colours_take_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

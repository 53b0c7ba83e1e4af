/* SPDX-License-Identifier: BSD-3-Clause */
/* What the printers of tools call things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "insight/print/print_words.h"

static void cells_are_filled_up(void **state)
{
	struct tti_strbuf buf = { 0 };

	(void)state;
	assert_int_equal(tti_print_width("\xc3\xa9th0"), 4);
	tti_print_padded("\xc3\xa9", 3, false, &buf);
	tti_print_padded("x", 3, true, &buf);
	tti_print_padded("long", 3, true, &buf);
	assert_false(buf.failed);
	assert_string_equal(buf.text, "\xc3\xa9    xlong");
	tti_strbuf_release(&buf);
}

static void sizes_are_short(void **state)
{
	char buf[TTI_WORDS_MAX];

	(void)state;
	tti_print_memory_size(512, buf);
	assert_string_equal(buf, "512 MiB");
	tti_print_memory_size(128648, buf);
	assert_string_equal(buf, "125.6 GiB");
	tti_print_memory_size(1536 * 1024, buf);
	assert_string_equal(buf, "1.5 TiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cells_are_filled_up),
		cmocka_unit_test(sizes_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

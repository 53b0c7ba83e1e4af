/* SPDX-License-Identifier: BSD-3-Clause */
/* What the printers of tools call things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "insight/print/print_words.h"

static void characters_are_counted(void **state)
{
	(void)state;
	assert_int_equal(tti_print_width("\xc3\xa9th0"), 4);
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
		cmocka_unit_test(characters_are_counted),
		cmocka_unit_test(sizes_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

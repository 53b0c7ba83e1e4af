/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tutti/tune_range.h"

/* By what a call looks for a line. */
static size_t rounded_up(size_t nbytes)
{
	size_t power = 1;

	while (power < nbytes)
		power *= 2;
	return power;
}

static bool holds(struct tune_range range, size_t nbytes)
{
	return range.from <= rounded_up(nbytes) && rounded_up(nbytes) <= range.upto;
}

/* Rows of float32 of each number of ranks: a line stands for what was measured, and for nothing less
 * than its half. */
static void a_line_is_for_what_was_measured(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 64; n++)
		for (size_t size = 8; size <= 16 << 20; size *= 8) {
			const size_t nbytes = size - size % (sizeof(float) * n);
			const struct tune_range range = tune_range_of(nbytes, NULL);

			if (nbytes == 0)
				continue;
			assert_true(holds(range, nbytes));
			assert_true(holds(range, size));
			assert_false(holds(range, size / 2));
			assert_false(holds(range, size + 1));
		}
}

static void lines_leave_nothing_out_between(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 64; n++) {
		struct tune_range before = { 0, 0 };

		for (size_t size = 8; size <= 16 << 20; size *= 8) {
			const size_t nbytes = size - size % (sizeof(float) * n);
			const struct tune_range range = tune_range_of(nbytes, &before);

			if (nbytes == 0)
				continue;
			assert_int_equal(range.from, before.upto ? before.upto + 1 : size / 2 + 1);
			assert_int_equal(range.upto, size);
			before = range;
		}
	}
}

/* At the size between them something else was better. */
static void lines_do_not_reach_over_others(void **state)
{
	const struct tune_range before = tune_range_of(60, NULL),
				range = tune_range_of(4092, &before);

	(void)state;
	assert_int_equal(range.from, 2049);
	assert_int_equal(range.upto, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_for_what_was_measured),
		cmocka_unit_test(lines_leave_nothing_out_between),
		cmocka_unit_test(lines_do_not_reach_over_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

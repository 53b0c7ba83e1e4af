/* SPDX-License-Identifier: BSD-3-Clause */
/* The linear program of the search: small ones with known answers, and duality. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/search/lp.h"

static void known(void **state)
{
	const double capacity[] = { 10, 20, 5 };
	const struct tti_load a[] = { { 0, 1 }, { 1, 1 } };
	const struct tti_load b[] = { { 1, 1 }, { 2, 0.5f }, { 2, 0.5f } };
	struct tti_lp *lp = NULL;
	double value;

	(void)state;
	assert_int_equal(tti_lp_create(capacity, 3, &lp), TUTTI_OK);
	assert_int_equal(tti_lp_solve(lp, &value), TUTTI_OK);
	assert_true(value == 0);
	assert_int_equal(tti_lp_add(lp, a, 2), TUTTI_OK);
	assert_int_equal(tti_lp_solve(lp, &value), TUTTI_OK);
	assert_true(fabs(value - 10) < 1e-9);
	assert_int_equal(tti_lp_add(lp, b, 3), TUTTI_OK);
	assert_int_equal(tti_lp_solve(lp, &value), TUTTI_OK);
	assert_true(fabs(value - 15) < 1e-9);
	assert_int_equal(tti_lp_ncolumns(lp), 2);
	assert_true(fabs(tti_lp_weights(lp)[1] - 5) < 1e-9);
	assert_true(fabs(tti_lp_prices(lp)[2] - 1) < 1e-9);
	assert_int_equal(tti_lp_add(lp, NULL, 0), TUTTI_EINTERNAL);
	tti_lp_free(lp);
}

/* Whatever the program: weights fit, prices pay for every column, and both have one
 * value, which proves it the optimum. */
static void duality(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 100; round++) {
		enum { MOST = 12 };
		double capacity[MOST], used[MOST] = { 0 }, value = 0, bound = 0;
		struct tti_load columns[40][MOST];
		const uint32_t nrows = 1 + (uint32_t)rand_r(&seed) % MOST;
		struct tti_lp *lp = NULL;

		for (uint32_t row = 0; row < nrows; row++)
			capacity[row] = rand_r(&seed) % 100 / 4.0;
		assert_int_equal(tti_lp_create(capacity, nrows, &lp), TUTTI_OK);
		for (int i = 0; i < 40; i++) {
			for (uint32_t row = 0; row < nrows; row++)
				columns[i][row] = (struct tti_load){
					row, (float)(rand_r(&seed) % 3 + (row == 0))
				};
			assert_int_equal(tti_lp_add(lp, columns[i], nrows), TUTTI_OK);
			if (i % 4 == 3) /* warm, again and again */
				assert_int_equal(tti_lp_solve(lp, &value), TUTTI_OK);
		}
		for (int i = 0; i < 40; i++) {
			double price = 0;

			assert_true(tti_lp_weights(lp)[i] > -1e-9);
			for (uint32_t row = 0; row < nrows; row++) {
				const double amount = (double)columns[i][row].amount;

				used[row] += amount * tti_lp_weights(lp)[i];
				price += amount * tti_lp_prices(lp)[row];
			}
			assert_true(price > 1 - 1e-6);
		}
		for (uint32_t row = 0; row < nrows; row++) {
			assert_true(used[row] < capacity[row] + 1e-6);
			bound += capacity[row] * tti_lp_prices(lp)[row];
		}
		assert_true(fabs(bound - value) < 1e-6);
		tti_lp_free(lp);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(duality),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Of plans that carry as much, the one over near ways. */
#include "machines.h"

#include <stdio.h>

#include "plan/score.h"
#include "support/sanitizer.h"
#include "util/error.h"

/* -- The order of plans ------------------------------------------------------------------- */

static void order_of_scores(void **state)
{
	static const struct tti_score falling[] = {
		{ .gbps = 99.9999, .nchannels = 4, .hops = 10 },
		{ .gbps = 100, .nchannels = 4, .hops = 20 },
		{ .gbps = 100, .crossing = 1, .nchannels = 4 },
		{ .gbps = 100, .nchannels = 5 },
		{ .gbps = 100, .crossing = 2, .nchannels = 1 },
		{ .gbps = 100, .far_hops = 2 },
		{ .gbps = 100, .far = 1, .far_hops = 1 },
		{ .gbps = 100, .far = 100, .far_hops = 100, .nchannels = 1 },
		{ .gbps = 99, .nchannels = 1 },
		{ .gbps = 98, .nchannels = 1 },
	};
	const size_t n = sizeof(falling) / sizeof(falling[0]);
	const double least = 100 * (1 - TTI_SCORE_WORTH);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			assert_int_equal(tti_score_better(&falling[i], &falling[k], least), i < k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_scores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

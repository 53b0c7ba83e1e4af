/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches as threads of the host that cannot begin: nothing runs, nothing is left behind, and the same
 * launch is fine afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/device_sum.h"
#include "util/fault.h"

#define RANKS   3
#define BLOCKS  2
#define THREADS 2

static struct device_sum sum;

static const struct device_config config = {
	.n = RANKS, .nblocks = BLOCKS, .nthreads = THREADS, .nslots = 2
};

static tutti_status launch(void)
{
	const struct tti_dev_host host = { .nthreads = THREADS };
	struct tti_dev_launch all = { .ncalls = RANKS,
				      .nblocks = BLOCKS,
				      .noperands = (uint32_t)sum.bed.noperands };

	for (int rank = 0; rank < RANKS; rank++)
		all.call[rank] = sum.call[rank];
	return tti_dev_host_run(&all, &host);
}

static bool has_run(int rank)
{
	const uint64_t *done = device_view(&sum.bed, sum.bed.done[rank]);

	return *done == (sum.call[rank].done_value << 8 | TTI_DEV_DONE);
}

/* It fails at every pass of the point in turn, until there is none any more; gives how many. */
static int fail_each(const char *point, tutti_status status)
{
	char list[32];
	int n = 0;

	for (;; n++) {
		tutti_status st;

		device_sum_init(&sum, &config, "ring", 100, 10);
		snprintf(list, sizeof(list), "%s:%d", point, n + 1);
		tti_fault_set(list);
		st = launch();
		tti_fault_set(NULL);
		if (st == TUTTI_OK)
			break;
		assert_int_equal(st, status);
		for (int rank = 0; rank < RANKS; rank++)
			assert_false(has_run(rank));
		assert_int_equal(launch(), TUTTI_OK);
		assert_int_equal(device_sum_wrong(&sum), 0);
		device_sum_release(&sum);
	}
	for (int rank = 0; rank < RANKS; rank++)
		assert_true(has_run(rank));
	device_sum_release(&sum);
	return n;
}

static void all_threads_begin_or_none(void **state)
{
	(void)state;
	/* The first thread is the caller's. */
	assert_int_equal(fail_each("thread", TUTTI_ESYS), RANKS * BLOCKS * THREADS - 1);
}

static void no_memory_is_an_error(void **state)
{
	(void)state;
	assert_true(fail_each("mem", TUTTI_ENOMEM) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_begin_or_none),
		cmocka_unit_test(no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

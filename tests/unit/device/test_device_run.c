/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of device programs on threads of the host: sums of any ranks, blocks and threads,
 * by slots and by words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/device_sum.h"
#include "support/sanitizer.h"

static struct device_sum sum;

static void try(const struct device_config *config, const char *algorithm, size_t count,
		size_t slice)
{
	enum device_end end;
	size_t wrong;

	device_sum_init(&sum, config, algorithm, count, slice);
	end = device_run(&sum.bed, sum.call, 1);
	wrong = end == DEVICE_DONE ? device_sum_wrong(&sum) : 0;
	if (end != DEVICE_DONE || wrong > 0 || !device_bed_is_clean(&sum.bed)) {
		fprintf(stderr, "%s, %zu elements in slices of %zu: end %d, %zu wrong\n", algorithm,
			count, slice, end, wrong);
		device_bed_print(&sum.bed, stderr);
		fail();
	}
	device_sum_release(&sum);
}

static void try_all(bool words)
{
	static const char *const algorithms[] = { "ring", "direct", "exchange", "double_tree",
						  "recursive_doubling" };

	for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++)
		for (int n = 1; n <= SUM_RANKS; n += SANITIZED ? 3 : 1)
			for (uint32_t i = 0; i < 8; i++) {
				const struct device_config config = { .n = n,
								      .nblocks = 1 + i % 2,
								      .nthreads = i / 2 % 2 ? 4 : 1,
								      .nslots = 1 + (uint32_t)n % 3,
								      .words = words,
								      .in_turns = i % 4 > 0,
								      .is_guarded = i % 3 == 0 };

				if (i < 4)
					try(&config, algorithms[a], 1, 64);
				else
					try(&config, algorithms[a], 1000, 37);
			}
}

static void all_ranks_have_the_sum(void **state)
{
	(void)state;
	try_all(false);
}

static void words_give_the_same(void **state)
{
	(void)state;
	try_all(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_have_the_sum),
		cmocka_unit_test(words_give_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm, run by the engine over the mock transport: whatever arrives first, whoever is
 * polled first, however long calls are and wherever their chunks lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/trial.h"

#define RANKS 9

static struct trial trial;

/* Others are tried with TEST_SEED=7, and as many more with TEST_CASES=10. */
static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void try_one(const struct tti_algorithm *algo, int n, int shape, uint64_t seed)
{
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = shape,
		.split = { .parts = 1 + (int)(seed / 3 % 3), .stripes = (int)(seed / 9 % 3) },
		.seed = seed,
	};
	struct bed_config bed;
	bool right;

	bed_draw(&bed, n, seed);
	trial_init(&trial, &config, &bed);
	right = trial_run(&trial);
	trial_release(&trial);
	assert_true(right);
}

static void all_algorithms_come_out_right(void **state)
{
	const uint64_t cases = number_of("TEST_CASES", 1);
	uint64_t seed = number_of("TEST_SEED", 1) * 1000003;
	const struct tti_algorithm *algo;

	(void)state;
	for (uint64_t at = 0; at < cases; at++)
		for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
			for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
				/* The mock has no memory that ranks share. */
				for (int n = 1; n <= RANKS && !algo->needs_memory;
				     n += SANITIZED && n > 2 ? 3 : 1)
					for (int shape = -1; shape < SHAPE_KINDS; shape++)
						try_one(algo, n, shape, seed++);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_algorithms_come_out_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

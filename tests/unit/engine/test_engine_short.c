/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm by the engine's way for short calls, mixed with longer ones that go the general
 * way: both send the same messages, so ranks may differ in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/trial.h"

#define RANKS 7

static struct trial trial;

static void try_one(const struct tti_algorithm *algo, int n, int shape, uint64_t seed)
{
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = shape,
		.cut = { .parts = 1 + (int)(seed / 3 % 2) },
		.seed = seed,
	};
	struct bed_config bed;
	bool right;

	bed_draw(&bed, n, seed);
	/* A thread takes over from another for each refusal, so few of them are enough. */
	bed.lossy_percent = bed.lossy_percent ? 20 : 0;
	trial_init(&trial, &config, &bed);
	right = trial_run_short(&trial);
	trial_release(&trial);
	assert_true(right);
}

static void short_calls_come_out_right(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 5000011;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			/* The mock has no memory that ranks share. */
			for (int n = 1; n <= RANKS && !algo->needs_memory; n += SANITIZED ? 2 : 1)
				for (int kind = 0; kind < 2; kind++)
					try_one(algo, n, kind ? SHAPE_GROUPS : -1, seed++);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_calls_come_out_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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
		.split = { .parts = 1 + (int)(seed / 3 % 2) },
		.seed = seed,
	};
	struct bed_config bed;
	bool right;

	bed_draw(&bed, n, seed);
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

/* What each rank of a call comes to whose ranks have different tags. */
struct outcome {
	tutti_status status[RANKS];
	int peer[RANKS];
};

static void run_with_own_tag(void *self, struct bed *bed, int rank)
{
	const struct trial_call *call = &trial.call[0];
	struct outcome *outcome = self;
	struct tti_short kept = { 0 };

	if (!tti_short_fits(&call->layout[rank], call->slice_bytes) ||
	    tti_short_prepare(&kept, &bed->engine[rank], trial.bound[rank], &call->layout[rank],
			      &call->reducer[rank], call->slice_bytes) != TUTTI_OK)
		outcome->status[rank] = TUTTI_AGAIN;
	else
		outcome->status[rank] = tti_short_run(&kept, call->layout[rank].input,
						      call->layout[rank].output, (uint64_t)rank);
	outcome->peer[rank] = kept.job.mismatch_peer;
	tti_short_release(&kept);
}

static void another_call_is_found(void **state)
{
	const struct trial_config config = {
		.algo = tti_algorithm_find(TUTTI_ALL_REDUCE, "exchange"),
		.n = 2,
		.shape = -1,
		.seed = 4,
	};
	int found = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct outcome outcome;
		struct bed_config bed;

		bed_draw(&bed, 2, seed);
		trial_init(&trial, &config, &bed);
		assert_int_equal(bed_run_in_turns(&trial.bed, run_with_own_tag, &outcome),
				 BED_DONE);
		for (int rank = 0; rank < 2; rank++) {
			if (outcome.status[rank] == TUTTI_AGAIN) /* not short enough */
				continue;
			assert_int_equal(outcome.status[rank], TUTTI_EMISMATCH);
			assert_int_equal(outcome.peer[rank], !rank);
			found++;
		}
		trial_release(&trial);
	}
	assert_true(found > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_calls_come_out_right),
		cmocka_unit_test(another_call_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

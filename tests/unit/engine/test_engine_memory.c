/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory programs of every collective over the mock transport: ranks reach the buffers of each
 * other by addresses or by a copy that the transport makes. Where a rank cannot be reached, all
 * run another program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/trial.h"

#define RANKS 6

static struct trial trial;

/* How many calls, of all ranks, were run in memory. */
static int try_one(const struct tti_algorithm *algo, int n, bool refuses, uint64_t seed)
{
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = -1,
		.refuses = refuses,
		.seed = seed,
	};
	struct bed_config bed;
	bool right;
	int taken;

	bed_draw(&bed, n, seed);
	bed.is_split = false;
	bed.mock.slot_bytes = 256;
	bed.mock.inline_bytes = 32;
	bed.mock.memory = seed % 2 ? TTI_REACH_MAPPED : TTI_REACH_COPIED;
	trial_init(&trial, &config, &bed);
	right = trial_run(&trial);
	taken = trial.taken;
	trial_release(&trial);
	assert_true(right);
	return taken;
}

static void programs_come_out_right(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 70001;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 2; algo->needs_memory && n <= RANKS; n += SANITIZED ? 2 : 1)
				for (int k = 0; k < (SANITIZED ? 2 : 4); k++)
					assert_int_equal(try_one(algo, n, false, seed++),
							 n * TRIAL_CALLS);
}

static void who_is_not_reached_makes_all_go_another_way(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 90001;
	int calls = 0, taken = 0;

	(void)state;
	/* A barrier has no buffers that could be out of reach; of a send nobody but the sender asks;
	 * what a handoff touches its caller knows (tests/world/test_handoff.c). */
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0;
		     coll != TUTTI_BARRIER && coll != TUTTI_SEND_RECV && coll != TUTTI_HANDOFF &&
		     (algo = tti_algorithm_at((tutti_collective)coll, i));
		     i++)
			for (int n = 2; algo->needs_memory && n <= RANKS; n += SANITIZED ? 2 : 1)
				for (int k = 0; k < (SANITIZED ? 1 : 3); k++) {
					taken += try_one(algo, n, true, seed++);
					calls += n * TRIAL_CALLS;
				}
	/* Both happened. */
	assert_true(taken > 0 && taken < calls / 2);
}

static void start(void *self, struct bed *bed, int rank, int at)
{
	(void)bed;
	trial_start(self, rank, at);
}

static const struct tti_algorithm *memory_all_reduce(void)
{
	int i = 0;

	while (!tti_algorithm_at(TUTTI_ALL_REDUCE, i)->needs_memory)
		i++;
	return tti_algorithm_at(TUTTI_ALL_REDUCE, i);
}

static void set_up(int n, uint64_t seed)
{
	const struct trial_config config = {
		.algo = memory_all_reduce(), .n = n, .shape = -1, .seed = seed
	};
	struct bed_config bed;

	bed_draw(&bed, n, seed);
	bed.is_split = false;
	bed.mock.slot_bytes = 256;
	bed.mock.inline_bytes = 32;
	bed.mock.memory = seed % 2 ? TTI_REACH_MAPPED : TTI_REACH_COPIED;
	trial_init(&trial, &config, &bed);
}

static void start_another(void *self, struct bed *bed, int rank, int at)
{
	start(self, bed, rank, at);
	bed->job[rank].tag += rank == 0;
}

static void another_call_is_found(void **state)
{
	const struct bed_work work = { .n = 1, .start = start_another, .self = &trial };

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		set_up(2, seed);
		assert_int_equal(bed_run(&trial.bed, &work), BED_ENDED);
		for (int rank = 0; rank < 2; rank++) {
			assert_int_equal(trial.bed.job[rank].status, TUTTI_EMISMATCH);
			assert_int_equal(trial.bed.job[rank].mismatch_peer, !rank);
		}
		trial_release(&trial);
	}
}

/* The first rank finds no memory of others, or cannot copy it. */
static void memory_that_is_not_reached_ends_the_call(void **state)
{
	const struct bed_work work = { .n = 1, .start = start, .self = &trial };
	int failed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		set_up(3, seed);
		mock_break_memory(trial.bed.port[0].mock, 0, TUTTI_ESYS);
		if (bed_run(&trial.bed, &work) == BED_ENDED) {
			failed++;
			assert_int_equal(trial.bed.job[0].status, TUTTI_ESYS);
		} else { /* there was nothing to reach */
			assert_int_equal(trial.call[0].count, 0);
		}
		assert_int_not_equal(trial.bed.job[1].status, TUTTI_ESYS);
		trial_release(&trial);
	}
	assert_true(failed > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_come_out_right),
		cmocka_unit_test(another_call_is_found),
		cmocka_unit_test(memory_that_is_not_reached_ends_the_call),
		cmocka_unit_test(who_is_not_reached_makes_all_go_another_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

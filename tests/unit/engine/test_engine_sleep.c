/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank that cannot go on sleeps for: so many messages that it is woken once, and never so many
 * that all ranks sleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "engine/job.h"
#include "support/bed.h"

#define RANKS 9
#define COUNT 6 /* elements of a chunk: one message */

/* One algorithm on all ranks. */
struct stage {
	struct bed bed;
	struct tti_executable *bound[RANKS];
	uint32_t *memory[RANKS];
};

static void start(struct stage *stage, const struct tti_algorithm *algo, int rank, int n,
		  bool in_order)
{
	struct tti_engine *engine = &stage->bed.engine[rank];
	struct tti_job *job = &stage->bed.job[rank];
	const struct tti_reducer reducer = tti_reducer_of(TUTTI_UINT32, TUTTI_SUM, n);
	struct tti_layout layout = { .type_size = sizeof(uint32_t), .chunk_count = COUNT };
	struct tti_compiled compiled;
	struct tti_program prog;

	assert_int_equal(
		tti_program_build(algo, &(struct tti_program_spec){ .rank = rank, .n = n }, &prog),
		TUTTI_OK);
	layout.parts = prog.nchunks;
	layout.row_count = COUNT * (size_t)prog.nchunks;
	assert_int_equal(tti_compile(&prog, &compiled), TUTTI_OK);
	tti_program_release(&prog);
	assert_int_equal(tti_executable_create(engine, &compiled, &stage->bound[rank]), TUTTI_OK);
	stage->memory[rank] = calloc(2 * layout.row_count, sizeof(uint32_t));
	layout.input = stage->memory[rank];
	layout.output = stage->memory[rank] + layout.row_count;
	assert_int_equal(tti_job_program(job, engine, stage->bound[rank], &layout, &reducer,
					 COUNT * sizeof(uint32_t), 1),
			 TUTTI_OK);
	job->program.in_order = in_order;
}

static void set_up(struct stage *stage, const struct tti_algorithm *algo, int n, bool in_order)
{
	const struct bed_config config = {
		.n = n, .mock = { .slot_bytes = 256, .slots = 2, .pace = MOCK_AT_ONCE }
	};

	*stage = (struct stage){ 0 };
	bed_init(&stage->bed, &config);
	for (int rank = 0; rank < n; rank++)
		start(stage, algo, rank, n, in_order);
}

static void tear_down(struct stage *stage, int n)
{
	for (int rank = 0; rank < n; rank++) {
		tti_executable_free(stage->bound[rank]);
		free(stage->memory[rank]);
	}
	bed_release(&stage->bed);
}

static uint64_t sent_to(const struct stage *stage, int rank, int n)
{
	uint64_t sent = 0;

	for (int peer = 0; peer < n; peer++)
		sent += bed_sent(&stage->bed, peer, rank);
	return sent;
}

/* Each rank sleeps whenever it can do nothing. */
static void run(struct stage *stage, int n)
{
	uint64_t wakes_at[RANKS] = { 0 }; /* as soon as so many messages were sent to it */
	bool moved = true;

	while (moved) {
		moved = false;
		for (int rank = 0; rank < n; rank++) {
			struct tti_job *job = &stage->bed.job[rank];
			const struct tti_link *last;

			if (job->status != TUTTI_AGAIN || sent_to(stage, rank, n) < wakes_at[rank])
				continue;
			while (tti_job_poll(job))
				moved = true;
			wakes_at[rank] = sent_to(stage, rank, n) + tti_job_missing(job, &last);
		}
	}
}

static void try_one(const struct tti_algorithm *algo, int n, bool in_order)
{
	static struct stage stage;

	set_up(&stage, algo, n, in_order);
	run(&stage, n);
	for (int rank = 0; rank < n; rank++)
		if (stage.bed.job[rank].status != TUTTI_OK)
			fail_msg("%s on %d ranks%s: rank %d sleeps for ever", algo->name, n,
				 in_order ? ", in order" : "", rank);
	tear_down(&stage, n);
}

static void not_all_ranks_sleep(void **state)
{
	const struct tti_algorithm *algo;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 2; n <= RANKS && !algo->needs_memory; n++) {
				try_one(algo, n, false);
				try_one(algo, n, true);
			}
}

static const struct tti_algorithm *find(tutti_collective coll, const char *name)
{
	const struct tti_algorithm *algo;

	for (int i = 0; (algo = tti_algorithm_at(coll, i)); i++)
		if (strcmp(algo->name, name) == 0)
			return algo;
	fail_msg("there is no %s", name);
	return NULL;
}

static void poll(struct stage *stage, int rank)
{
	while (tti_job_poll(&stage->bed.job[rank]))
		continue;
}

/* Rank 0 misses a message of each, then those that are left. */
static void expect_one_less(const struct tti_algorithm *algo, bool in_order)
{
	static struct stage stage;
	const struct tti_link *first;

	set_up(&stage, algo, 6, in_order);
	poll(&stage, 0);
	for (int peer = 1; peer < 6; peer++) {
		assert_int_equal(tti_job_missing(&stage.bed.job[0], &first), 6 - peer);
		assert_true(first->peer >= peer);
		poll(&stage, peer);
	}
	assert_int_equal(tti_job_missing(&stage.bed.job[0], &first), 0);
	tear_down(&stage, 6);
}

static void messages_that_came_are_not_missing(void **state)
{
	(void)state;
	for (int in_order = 0; in_order < 2; in_order++)
		expect_one_less(find(TUTTI_ALL_REDUCE, "exchange"), in_order);
	expect_one_less(find(TUTTI_ALL_REDUCE, "direct"), false);
	/* In order, what is received goes before what is sent next. */
	expect_one_less(find(TUTTI_ALL_TO_ALL, "direct"), false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_all_ranks_sleep),
		cmocka_unit_test(messages_that_came_are_not_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

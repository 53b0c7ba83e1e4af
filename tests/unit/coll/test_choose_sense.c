/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether choices make sense beside each other, on the model of times between hosts: what a
 * collective could do by two others it must not do slower, and more must not take less
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "coll/choose/choose.h"
#include "plan/tune/tune.h"
#include "util/error.h"

#define MOST_BYTES ((size_t)1 << 30)

struct job {
	uint32_t nhosts, size; /* ranks of each host */
	double gbps;
	double cores; /* of a host, 0: one for each rank */
};

/* The predicted time of what is chosen. */
static double time_of(const struct job *job, tutti_collective coll, size_t nbytes)
{
	struct tti_tune_table table = tti_tune_defaults();
	const uint32_t n = job->nhosts * job->size;
	struct tti_tune_machine machine =
		tti_tune_machine_of_groups(n, job->nhosts, job->size, job->size);
	struct tti_choice_input input = { .coll = coll,
					  .n = (int)n,
					  .nbytes = nbytes,
					  .nhosts = (int)job->nhosts,
					  .oversubscribed =
						  job->cores > 0 && job->cores < job->size,
					  .slot_bytes = 128 << 10,
					  .machine = &machine,
					  .tune = &table };
	struct tti_shape *shape = NULL;
	struct tti_tune_time time;
	struct tti_choice choice;
	enum tti_tune_algo algo;
	uint32_t group_of[256];

	/* Caches may hold the buffers of each half of a call, and not those of both. */
	table.constants.cache_bytes = 1;
	machine.node_gbps = job->gbps;
	machine.cores = job->cores;
	for (uint32_t rank = 0; rank < n; rank++)
		group_of[rank] = rank / job->size;
	assert_int_equal(tti_shape_of_groups(group_of, n, &shape), TUTTI_OK);
	input.shape = shape;
	assert_int_equal(tti_choose(&input, NULL, 0, &choice), TUTTI_OK);
	tti_shape_free(shape);
	assert_true(tti_tune_algo_find(choice.algo->name, &algo));
	machine.stripes = (uint32_t)choice.split.stripes;
	assert_true(tti_tune_predict(&table.constants, &machine, coll, algo, nbytes, &time));
	return time.us;
}

/* Of all of them, one after the other; false: there are no more. */
static bool next_job(uint32_t *at, struct job *out)
{
	static const uint32_t hosts[] = { 2, 3, 4, 5, 8, 16 }, sizes[] = { 1, 2, 3, 4, 8, 16 };
	static const double rates[] = { 0.125, 1.25, 12.5, 50 }, cores[] = { 0, 2 };
	uint32_t left = (*at)++;

	out->cores = cores[left % 2];
	left /= 2;
	out->gbps = rates[left % 4];
	left /= 4;
	out->size = sizes[left % 6];
	left /= 6;
	out->nhosts = left < 6 ? hosts[left] : 0;
	return left < 6;
}

/* Where ranks share cores, fewer stripes are taken for up to a tenth more time
 * (choose_time.c). */
#define NOISE   1.05
#define CROWDED (1 / 0.9)

/* `gap`: what is known to be missing, 1: nothing. */
static void holds(const struct job *job, size_t nbytes, const char *what, double left, double right,
		  double gap)
{
	if (left > right * gap * (job->cores > 0 ? CROWDED : NOISE))
		fail_msg("%u hosts of %u ranks, %g GB/s, %g cores, %zu bytes: %s: %g > %g us",
			 job->nhosts, job->size, job->gbps, job->cores, nbytes, what, left, right);
}

/* No all_reduce goes up a tree and out in one step. */
#define NO_TREE_AND_STEP    1.1
/* Stripes that go one way are chains, where those of all_reduce may swap in log2 rounds. */
#define NO_TREES_OF_STRIPES 1.4

static void all_reduce_is_not_slower_than_reduce_and_broadcast(void **state)
{
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 4)
			holds(&job, nbytes, "all_reduce <= reduce + broadcast",
			      time_of(&job, TUTTI_ALL_REDUCE, nbytes),
			      time_of(&job, TUTTI_REDUCE, nbytes) +
				      time_of(&job, TUTTI_BROADCAST, nbytes),
			      NO_TREE_AND_STEP);
}

static void all_reduce_is_not_slower_than_its_halves(void **state)
{
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 4)
			holds(&job, nbytes, "all_reduce <= reduce_scatter + all_gather",
			      time_of(&job, TUTTI_ALL_REDUCE, nbytes),
			      time_of(&job, TUTTI_REDUCE_SCATTER, nbytes) +
				      time_of(&job, TUTTI_ALL_GATHER, nbytes),
			      1.02);
}

/* Below, all_reduce has algorithms of log2 n rounds, and reduce_scatter has none. */
#define SCATTER_LEAST ((size_t)256 << 10)
#define SCATTER_EACH  ((size_t)8 << 10)

static void reduce_scatter_is_not_slower_than_all_reduce(void **state)
{
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t nbytes = SCATTER_LEAST; nbytes <= MOST_BYTES; nbytes *= 4) {
			if (nbytes < SCATTER_EACH * job.nhosts * job.size)
				continue;
			holds(&job, nbytes, "reduce_scatter <= all_reduce",
			      time_of(&job, TUTTI_REDUCE_SCATTER, nbytes),
			      time_of(&job, TUTTI_ALL_REDUCE, nbytes), 1);
		}
}

/* Who gets all could have been sent it by all to all, to whom all is the same. */
static void all_gather_is_not_slower_than_all_to_all(void **state)
{
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 4)
			holds(&job, nbytes, "all_gather <= all_to_all",
			      time_of(&job, TUTTI_ALL_GATHER, nbytes),
			      time_of(&job, TUTTI_ALL_TO_ALL, nbytes), 1);
}

/* One gets no more than if all got it. (Gather is left out: between hosts it has no algorithm
 * that goes by hosts, and takes up to 3.5 times as long as all_gather.) */
static void one_is_not_slower_than_all(void **state)
{
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 4) {
			const double all = time_of(&job, TUTTI_ALL_REDUCE, nbytes);

			holds(&job, nbytes, "reduce <= all_reduce",
			      time_of(&job, TUTTI_REDUCE, nbytes), all, NO_TREES_OF_STRIPES);
			holds(&job, nbytes, "broadcast <= all_reduce",
			      time_of(&job, TUTTI_BROADCAST, nbytes), all, NO_TREES_OF_STRIPES);
		}
}

static void more_takes_longer(void **state)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE,     TUTTI_BROADCAST,
						  TUTTI_REDUCE,         TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER, TUTTI_ALL_TO_ALL,
						  TUTTI_GATHER,         TUTTI_SCATTER };
	struct job job;

	(void)state;
	for (uint32_t at = 0; next_job(&at, &job);)
		for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
			double before = 0;

			for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 2) {
				const double us = time_of(&job, colls[c], nbytes);

				holds(&job, nbytes, tutti_collective_name(colls[c]), before, us, 1);
				before = us;
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_reduce_is_not_slower_than_reduce_and_broadcast),
		cmocka_unit_test(all_reduce_is_not_slower_than_its_halves),
		cmocka_unit_test(reduce_scatter_is_not_slower_than_all_reduce),
		cmocka_unit_test(all_gather_is_not_slower_than_all_to_all),
		cmocka_unit_test(one_is_not_slower_than_all),
		cmocka_unit_test(more_takes_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

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

#include "coll/choose.h"
#include "plan/tune.h"
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
	const struct tti_tune_constants constants = tti_tune_defaults().constants;
	const uint32_t n = job->nhosts * job->size;
	struct tti_tune_machine machine =
		tti_tune_machine_of_groups(n, job->nhosts, job->size, job->size);
	struct tti_choice_input input = { .coll = coll,
					  .n = (int)n,
					  .nbytes = nbytes,
					  .nhosts = (int)job->nhosts,
					  .crowded = job->cores > 0 && job->cores < job->size,
					  .slot_bytes = 128 << 10,
					  .inline_bytes = 48,
					  .machine = &machine };
	struct tti_shape *shape = NULL;
	struct tti_tune_time time;
	struct tti_choice choice;
	enum tti_tune_algo algo;
	uint32_t group_of[64];

	machine.node_gbps = job->gbps;
	machine.cores = job->cores;
	for (uint32_t rank = 0; rank < n; rank++)
		group_of[rank] = rank / job->size;
	assert_int_equal(tti_shape_of_groups(group_of, n, &shape), TUTTI_OK);
	input.shape = shape;
	assert_int_equal(tti_choose(&input, NULL, 0, &choice), TUTTI_OK);
	tti_shape_free(shape);
	assert_true(tti_tune_algo_find(choice.algo->name, &algo));
	machine.stripes = (uint32_t)choice.cut.stripes;
	assert_true(tti_tune_predict(&constants, &machine, coll, algo, nbytes, &time));
	return time.us;
}

static const struct job jobs[] = {
	{ 2, 1, 1.25, 0 }, { 2, 4, 1.25, 0 }, { 2, 4, 12.5, 2 }, { 3, 2, 3, 0 },
	{ 4, 8, 25, 0 },   { 4, 4, 1.25, 2 }, { 8, 1, 12.5, 0 }, { 8, 8, 50, 0 },
};
#define NJOBS (sizeof(jobs) / sizeof(jobs[0]))

/* Where ranks share cores, fewer stripes are taken for up to a tenth more time
 * (choose_time.c). */
#define NOISE   1.05
#define CROWDED (1 / 0.9)

static void holds(const struct job *job, size_t nbytes, const char *what, double left, double right)
{
	if (left > right * (job->cores > 0 ? CROWDED : NOISE))
		fail_msg("%u hosts of %u ranks, %g GB/s, %g cores, %zu bytes: %s: %g > %g us",
			 job->nhosts, job->size, job->gbps, job->cores, nbytes, what, left, right);
}

static void all_reduce_is_not_slower_than_reduce_and_broadcast(void **state)
{
	(void)state;
	for (size_t i = 0; i < NJOBS; i++)
		for (size_t nbytes = 8; nbytes <= MOST_BYTES; nbytes *= 2) {
			const double all = time_of(&jobs[i], TUTTI_ALL_REDUCE, nbytes);

			holds(&jobs[i], nbytes, "all_reduce <= reduce + broadcast", all,
			      time_of(&jobs[i], TUTTI_REDUCE, nbytes) +
				      time_of(&jobs[i], TUTTI_BROADCAST, nbytes));
		}
}

/* Below, all_reduce has algorithms of log2 n rounds, and reduce_scatter has none. */
#define SCATTER_LEAST ((size_t)256 << 10)

static void reduce_scatter_is_not_slower_than_all_reduce(void **state)
{
	(void)state;
	for (size_t i = 0; i < NJOBS; i++)
		for (size_t nbytes = SCATTER_LEAST; nbytes <= MOST_BYTES; nbytes *= 2)
			holds(&jobs[i], nbytes, "reduce_scatter <= all_reduce",
			      time_of(&jobs[i], TUTTI_REDUCE_SCATTER, nbytes),
			      time_of(&jobs[i], TUTTI_ALL_REDUCE, nbytes));
}

static void more_takes_longer(void **state)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_BROADCAST, TUTTI_REDUCE,
						  TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER };

	(void)state;
	for (size_t i = 0; i < NJOBS; i++)
		for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++)
			for (size_t nbytes = 8; nbytes < MOST_BYTES; nbytes *= 2)
				holds(&jobs[i], nbytes, tutti_collective_name(colls[c]),
				      time_of(&jobs[i], colls[c], nbytes),
				      time_of(&jobs[i], colls[c], 2 * nbytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_reduce_is_not_slower_than_reduce_and_broadcast),
		cmocka_unit_test(reduce_scatter_is_not_slower_than_all_reduce),
		cmocka_unit_test(more_takes_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

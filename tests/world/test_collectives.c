/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective against the serial result: ranks, counts, types, operations,
 * roots, in place, algorithms, transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/world.h"

/* All sizes and flavours one after the other on one communicator. */
struct plan {
	tutti_collective coll;
	const size_t *counts;
	size_t ncounts;
};

static void all_jobs(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct plan *plan = arg;
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64 };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };

	for (size_t c = 0; c < plan->ncounts; c++)
		for (int in_place = 0; in_place < 2; in_place++) {
			struct call call = { .coll = plan->coll,
					     .type = types[c % 3],
					     .op = ops[(c + (size_t)in_place) % 3],
					     .count = plan->counts[c],
					     .root = (int)(c + (size_t)in_place) % n,
					     .in_place = in_place };

			call_and_check(&call, comm, rank, n, NULL);
		}
}

#if SANITIZED
static const size_t counts[] = { 0, 1, 63, 4097, 70001 };
#else
static const size_t counts[] = { 0, 1, 3, 8, 63, 100, 1000, 4097, 65536, 100003 };
#endif
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

static void every_algorithm(const char *transport, const int *ranks, size_t nranks, size_t ncounts)
{
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int a = 0; tutti_algorithm_name((tutti_collective)coll, a); a++)
			for (size_t r = 0; r < nranks; r++) {
				struct plan plan = { (tutti_collective)coll, counts, ncounts };
				char algo[128];

				snprintf(algo, sizeof(algo), "%s:%s",
					 tutti_collective_name(plan.coll),
					 tutti_algorithm_name(plan.coll, a));
				const struct world world = { .n = ranks[r],
							     .transport = transport,
							     .algo = algo };

				if (world_run(&world, all_jobs, &plan) > 0)
					fail_msg("%s over %s, %d ranks", algo, transport, ranks[r]);
			}
}

static void shm_every_algorithm(void **state)
{
	static const int ranks[] = { 1, 3, 4, 8 };

	(void)state;
	every_algorithm("shm", ranks, SANITIZED ? 3 : 4, NCOUNTS);
}

static void tcp_every_algorithm(void **state)
{
	static const int ranks[] = { 3, 5 };

	(void)state;
	every_algorithm("tcp", ranks, SANITIZED ? 1 : 2, NCOUNTS - 1);
}

static void chosen_algorithms(void **state)
{
	static const int ranks[] = { 2, 5, SANITIZED ? 8 : 16 };

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (size_t r = 0; r < 3 && tutti_algorithm_name((tutti_collective)coll, 0); r++) {
			struct plan plan = { (tutti_collective)coll, counts, NCOUNTS };
			const struct world world = { .n = ranks[r], .sockets = true };

			assert_int_equal(world_run(&world, all_jobs, &plan), 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shm_every_algorithm),
		cmocka_unit_test(tcp_every_algorithm),
		cmocka_unit_test(chosen_algorithms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* TUTTI_CHECK=1: sources of a handoff that do not hold the same are named, on all ranks, and so
 * are roots that differ, in the call itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

#define COUNT 50000

struct replicas {
	int odd; /* whose vector differs in one byte, -1: nobody's */
	bool streamed;
};

static void compare(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct replicas *r = arg;
	static const int sources[] = { 0, 1, 2 }, dests[] = { 3, 4 };
	const tutti_side from = { sources, 3, 0 }, to = { dests, 2, 0 };
	tutti_stream_t stream = NULL;
	float *vector = malloc(COUNT * sizeof(*vector));
	int wrong = 0;
	tutti_status st;

	(void)n;
	if (r->streamed)
		CHECK_OK(tutti_stream_create(&stream));
	for (size_t i = 0; i < COUNT; i++)
		vector[i] = rank < 3 ? (float)i : -1;
	if (rank == r->odd)
		((char *)&vector[COUNT - 1])[0] ^= 1;
	st = tutti_handoff(rank < 3 ? vector : NULL, rank == 3 || rank == 4 ? vector : NULL, COUNT,
			   TUTTI_FLOAT32, &from, &to, comm, stream);
	if (stream) {
		CHECK_OK(st);
		st = tutti_stream_synchronize(stream);
	}
	if (r->odd < 0) {
		CHECK_OK(st);
		for (size_t i = 0; i < COUNT && rank < 5; i++)
			wrong += vector[i] != (float)i;
		CHECK(wrong == 0);
	} else {
		char text[64];

		CHECK(st == TUTTI_EMISMATCH);
		snprintf(text, sizeof(text), "rank %d's vector is not that of rank %d", r->odd,
			 r->odd == 0);
		if (!CHECK(strstr(tutti_last_error(comm), text)))
			fprintf(stderr, "  %s\n", tutti_last_error(comm));
	}
	free(vector);
	CHECK(tutti_stream_destroy(stream) == (stream ? st : TUTTI_OK));
}

static void check_replicas(void **state)
{
	(void)state;
	for (int odd = -1; odd < 3; odd++)
		for (int streamed = 0; streamed < 2; streamed++) {
			struct replicas r = { odd, streamed };
			const struct world world = { .n = 6, .transport = "shm" };

			if (world_run(&world, compare, &r) > 0)
				fail_msg("rank %d is odd%s", odd, streamed ? ", on a stream" : "");
		}
}

static void name_own_root(tutti_comm_t comm, int rank, int n, void *arg)
{
	float value = 0;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_broadcast(&value, &value, 1, TUTTI_FLOAT32, 1, comm, NULL));
	CHECK(tutti_broadcast(&value, &value, 1, TUTTI_FLOAT32, rank, comm, NULL) ==
	      TUTTI_EMISMATCH);
	/* Two of the three calls, each with its root. */
	if (!CHECK(!!strstr(tutti_last_error(comm), "root 0") +
			   !!strstr(tutti_last_error(comm), "root 1") +
			   !!strstr(tutti_last_error(comm), "root 2") ==
		   2))
		fprintf(stderr, "  %s\n", tutti_last_error(comm));
}

static void check_roots(void **state)
{
	const struct world world = { .n = 3, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, name_own_root, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_replicas),
		cmocka_unit_test(check_roots),
	};

	/* Before the library looks. */
	setenv("TUTTI_CHECK", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

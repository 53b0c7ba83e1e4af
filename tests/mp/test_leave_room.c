/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank leaves in order while others go on: whoever waits for it finds out, also where what they
 * wait for is room that several ranks have to make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"

#define N      4
#define LEAVES 2
#define CALLS  30
#define LONG   20000 /* floats: in blocks, which are sent and read in any order */

static int kind;

/* One rank sends what all read, a little or much, or in turn each. */
static tutti_status call_until_it_leaves(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int calls = (int)crew->rank[rank].calls;
	const int root = kind == 1 ? calls % N : 0;
	static float much[LONG];
	float value[N] = { 0 }, sum;

	if (rank == LEAVES && calls == CALLS)
		return TUTTI_EUSAGE;
	if (kind < 2)
		return tutti_broadcast(value, value, N, TUTTI_FLOAT32, root, comm, NULL);
	if (kind == 2)
		return tutti_broadcast(much, much, LONG, TUTTI_FLOAT32, root, comm, NULL);
	return tutti_reduce_scatter(value, &sum, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);
}

static void it_is_found(void **state)
{
	const char *const transport = *state;
	char left[32];

	(void)snprintf(left, sizeof(left), "rank %d", LEAVES);
	for (kind = 0; kind < 4; kind++) {
		struct crew *crew = crew_create(N, transport, call_until_it_leaves);

		assert_int_equal(crew_start(crew), 0);
		/* Some hundred milliseconds are needed. */
		assert_int_equal(crew_wait(crew, 60000, -1), 0);
		for (int rank = 0; rank < N; rank++) {
			const struct crew_rank *own = &crew->rank[rank];

			if (rank == LEAVES)
				continue;
			if (own->status != TUTTI_EPEER || !strstr(own->text, left))
				fail_msg("kind %d, rank %d: %s: %s", kind, rank,
					 tutti_status_name((tutti_status)own->status), own->text);
		}
		crew_free(crew);
	}
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(it_is_found, shm),
		cmocka_unit_test_prestate(it_is_found, tcp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong on one rank alone is known to the others: no memory for a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"
#include "util/fault.h"

#define WAIT_MS 60000

static int scatters;

/* Each call is another one, so that it is prepared anew; in one of them rank 1 has no memory
 * for that. */
static tutti_status no_memory(struct crew *crew, int rank, tutti_comm_t comm)
{
	static float data[64 * 4];
	static size_t count;
	tutti_status st;

	(void)crew;
	if (rank == 1 && count == 2)
		tti_fault_set("mem:1");
	count++;
	st = scatters ? tutti_reduce_scatter(data, data + 200, count, TUTTI_FLOAT32, TUTTI_SUM,
					     comm, NULL)
		      : tutti_reduce(data, data + 200, count, TUTTI_FLOAT32, TUTTI_SUM,
				     (int)count % 2, comm, NULL);
	tti_fault_set(NULL);
	return st;
}

static void all_hear_of_a_rank_without_memory(void **state)
{
	(void)state;
	for (scatters = 0; scatters < 2; scatters++) {
		struct crew *crew = crew_create(3, "shm", no_memory);

		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
		for (int rank = 0; rank < 3; rank++) {
			assert_int_equal(crew->rank[rank].status, TUTTI_EPEER);
			assert_non_null(strstr(crew->rank[rank].text, "rank 1 failed"));
			assert_non_null(strstr(crew->rank[rank].text, "out of memory"));
		}
		crew_free(crew);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_hear_of_a_rank_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank destroys its communicator and exits while the others go on to their next calls: all of
 * them return TUTTI_EPEER and name it, wherever among random calls that is. TEST_LEAVES says how
 * many places are tried (12), TEST_SEED which. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/crew.h"

#define MOST_COUNT 3000
#define MOST_RANKS 6
/* What a rank that leaves returns; it is no error of the library. */
#define LEAVES     TUTTI_EUSAGE

static unsigned seed;
static int leaver, leaves_at;

/* All ranks draw the same calls. Long runs of one collective fill what is between ranks. */
static tutti_status draw_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	static int32_t send[MOST_COUNT * MOST_RANKS], recv[MOST_COUNT * MOST_RANKS];
	static unsigned drawn;
	static int ncalls, left, coll, root;
	static size_t count;

	if (ncalls++ == 0)
		drawn = seed;
	if (left-- == 0) {
		left = (int)(rand_r(&drawn) % 12);
		coll = (int)(rand_r(&drawn) % 9);
		root = (int)((unsigned)rand_r(&drawn) % (unsigned)crew->n);
		count = rand_r(&drawn) % 3 ? (size_t)rand_r(&drawn) % 40 + 1
					   : (size_t)rand_r(&drawn) % MOST_COUNT + 1;
	}
	if (rank == leaver && ncalls == leaves_at)
		return LEAVES;
	switch (coll) {
	case 0:
		return tutti_all_reduce(send, recv, count, TUTTI_INT32, TUTTI_MIN, comm, NULL);
	case 1:
		return tutti_broadcast(send, recv, count, TUTTI_INT32, root, comm, NULL);
	case 2:
		return tutti_all_gather(send, recv, count, TUTTI_INT32, comm, NULL);
	case 3:
		return tutti_reduce_scatter(send, recv, count, TUTTI_INT32, TUTTI_MIN, comm, NULL);
	case 4:
		return tutti_reduce(send, recv, count, TUTTI_INT32, TUTTI_MIN, root, comm, NULL);
	case 5:
		return tutti_all_to_all(send, recv, count, TUTTI_INT32, comm, NULL);
	case 6:
		return tutti_gather(send, recv, count, TUTTI_INT32, root, comm, NULL);
	case 7:
		return tutti_scatter(send, recv, count, TUTTI_INT32, root, comm, NULL);
	default:
		return tutti_barrier(comm, NULL);
	}
}

/* Ranks that share a core share a ring for messages to all of them as well. */
static void share_core(struct crew *crew, int rank)
{
	const unsigned cpu = (unsigned)sched_getcpu();
	cpu_set_t one;

	(void)crew;
	(void)rank;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

/* Who finds a closed connection first says so; who waits finds that the rank has left. */
static bool names(const char *text, int rank)
{
	char name[32];

	snprintf(name, sizeof(name), "rank %d (", rank);
	return strstr(text, name) && (strstr(text, ") left") || strstr(text, ") is gone"));
}

static void leave_once(int n, const char *transport, bool shared)
{
	struct crew *crew = crew_create(n, transport, draw_call);
	int64_t slowest = 0;

	if (shared)
		crew->prepare = share_core;
	assert_int_equal(crew_start(crew), 0);
	const int stuck = crew_wait(crew, 10000, -1);

	for (int rank = 0; rank < n; rank++) {
		const struct crew_rank *own = &crew->rank[rank];
		const int64_t took_ns = own->failed_ns - crew->rank[leaver].failed_ns;

		if (rank == leaver)
			continue;
		slowest = took_ns > slowest ? took_ns : slowest;
		if (own->status != TUTTI_EPEER || !own->done || !names(own->text, leaver))
			fail_msg("%d ranks over %s, %s, seed %u, rank %d left before call %d: rank "
				 "%d is after %d calls, status %d, done %d, \"%s\"",
				 n, transport, shared ? "one core" : "any cores", seed, leaver,
				 leaves_at, rank, (int)own->calls, own->status, own->done,
				 own->text);
	}
	assert_int_equal(stuck, 0);
	if (getenv("TEST_LEAVES"))
		printf("%.0f ms\n", (double)slowest / 1e6);
	crew_free(crew);
}

static void anywhere(void **state)
{
	const char *asked = getenv("TEST_LEAVES"), *given = getenv("TEST_SEED");
	const int places = asked ? atoi(asked) : 12;
	unsigned random = given ? (unsigned)atoi(given) : (unsigned)time(NULL);

	(void)state;
	printf("TEST_SEED=%u\n", random);
	for (int i = 0; i < places; i++) {
		const int n = 3 + (int)(rand_r(&random) % (MOST_RANKS - 2));

		seed = (unsigned)rand_r(&random);
		leaver = (int)((unsigned)rand_r(&random) % (unsigned)n);
		leaves_at = 1 + (int)(rand_r(&random) % 400);
		leave_once(n, i % 4 == 3 ? "tcp" : "shm", i % 4 != 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory between processes: results, a rank that is killed while others read its
 * memory, what is left behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "tutti/inspect.h"

#define COUNT ((size_t)1 << 18)

static int *memory; /* of this rank: the first call gets it */
static int coll_in_use;

static tutti_status get_memory(tutti_comm_t comm)
{
	if (memory)
		return TUTTI_OK;
	return tutti_mem_alloc((void **)&memory, 2 * COUNT * sizeof(int), comm);
}

static tutti_status check_way(tutti_comm_t comm)
{
	struct tutti_call_report report;
	const tutti_status st = tutti_comm_last_call(comm, &report);

	if (st != TUTTI_OK)
		return st;
	return strcmp(report.algorithm, "memory") ? TUTTI_EINTERNAL : TUTTI_OK;
}

/* A sum that everybody checks; stops after some rounds. A wrong result is an odd status. */
static tutti_status checked_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	static int round;
	tutti_status st = get_memory(comm);
	int *const send = memory, *const recv = memory + COUNT;

	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		send[i] = round * 3 + rank + (int)(i % 1000);
	if (st == TUTTI_OK)
		st = tutti_all_reduce(send, recv, COUNT, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	if (st == TUTTI_OK)
		st = check_way(comm);
	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (recv[i] !=
		    crew->n * (round * 3 + (int)(i % 1000)) + crew->n * (crew->n - 1) / 2)
			st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK && ++round == 20)
		atomic_store(&crew->stop, 1);
	return st;
}

static void results(void **state)
{
	(void)state;
	for (int n = 2; n <= 5; n++) {
		struct crew *crew = crew_create(n, "shm", checked_call);

		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, 20000, -1), 0);
		for (int rank = 0; rank < n; rank++) {
			const int status = crew->rank[rank].status;

			/* Ranks are not stopped in the same round: some see others leave. */
			if (status != TUTTI_OK && status != TUTTI_EPEER)
				fail_msg("%d ranks, rank %d: %d, %s", n, rank, status,
					 crew->rank[rank].text);
			assert_true(crew->rank[rank].calls >= 19);
		}
		crew_free(crew);
	}
}

static tutti_status any_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	const size_t part = COUNT / (size_t)crew->n;
	const tutti_status st = get_memory(comm);
	int *const send = memory, *const recv = memory + COUNT;

	(void)rank;
	if (st != TUTTI_OK)
		return st;
	switch (coll_in_use) {
	case 0:
		return tutti_all_reduce(send, recv, COUNT, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	case 1:
		return tutti_broadcast(send, recv, COUNT, TUTTI_INT32, 0, comm, NULL);
	case 2:
		return tutti_all_gather(send, recv, part, TUTTI_INT32, comm, NULL);
	default:
		return tutti_reduce_scatter(send, recv, part, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	}
}

/* Whoever is killed in the middle, the others end in a second, with their memory. */
static void deaths(void **state)
{
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int run = 0; run < 12; run++) {
		const int n = 2 + run % 3, victim = (int)((unsigned)rand_r(&seed) % (unsigned)n);
		struct crew *crew;
		int64_t killed_ns;
		int stuck;

		coll_in_use = run % 4;
		crew = crew_create(n, "shm", any_call);
		assert_int_equal(crew_start(crew), 0);
		crew_nap_us((int)(rand_r(&seed) % 30000));
		killed_ns = crew_now_ns();
		kill(crew->rank[victim].pid, SIGKILL);
		stuck = crew_wait(crew, 8000, victim);
		for (int rank = 0; rank < n; rank++) {
			const struct crew_rank *own = &crew->rank[rank];

			if (rank != victim &&
			    (own->status != TUTTI_EPEER ||
			     own->failed_ns - killed_ns > 1000000000 || !own->done))
				fail_msg("run %d of seed, rank %d of %d: status %d, done %d, %s",
					 run, rank, n, own->status, own->done, own->text);
		}
		assert_int_equal(stuck, 0);
		crew_free(crew);
	}
}

/* A child that a rank forks shares the memory, and its end does not disturb anybody. */
static tutti_status forking_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = get_memory(comm);
	pid_t child;

	if (st != TUTTI_OK)
		return st;
	memory[0] = 1;
	child = fork();
	if (child == 0) {
		memory[0] += 41 + rank;
		_exit(0);
	}
	while (child > 0 && kill(child, 0) == 0 && memory[0] == 1)
		crew_nap_us(100);
	if (memory[0] != 42 + rank)
		return TUTTI_EINTERNAL;
	st = tutti_all_reduce(memory, memory + COUNT, COUNT, TUTTI_INT32, TUTTI_MAX, comm, NULL);
	if (st == TUTTI_OK && memory[COUNT] != 41 + crew->n)
		st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_mem_free(memory, comm);
	memory = NULL;
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	atomic_store(&crew->stop, 1);
	return st;
}

static void a_fork(void **state)
{
	struct crew *crew = crew_create(3, "shm", forking_call);

	(void)state;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 20000, -1), 0);
	for (int rank = 0; rank < 3; rank++) {
		const int status = crew->rank[rank].status;

		if (status != TUTTI_OK && status != TUTTI_EPEER)
			fail_msg("rank %d: %d, %s", rank, status, crew->rank[rank].text);
		assert_true(crew->rank[rank].calls >= 1);
	}
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(deaths),
		cmocka_unit_test(a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that are lost while they are made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"

#define N     4
#define EARLY 1 /* the rank that loses it early */
#define MOST  100000

static tutti_status remake(tutti_comm_t old, tutti_comm_t *made)
{
	tutti_status status = tutti_comm_revoke(old);

	if (status == TUTTI_OK)
		status = tutti_comm_shrink(old, NULL, 0, made, NULL, TUTTI_SHRINK_FAILED);
	return status;
}

/* Sums of several lengths, some of which several ways of summing would carry. */
static tutti_status sum_up(tutti_comm_t comm, int rank)
{
	static const size_t counts[] = { 1, 1000, 20000, MOST };
	static float send[MOST], recv[MOST];
	tutti_status status = TUTTI_OK;

	for (size_t i = 0; i < MOST; i++)
		send[i] = (float)(rank + (int)(i % 97));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && status == TUTTI_OK; i++) {
		status = tutti_all_reduce(send, recv, counts[i], TUTTI_FLOAT32, TUTTI_SUM, comm,
					  NULL);
		for (size_t k = 0; k < counts[i] && status == TUTTI_OK; k++)
			if (recv[k] != (float)(N * (N - 1) / 2 + N * (int)(k % 97)))
				status = TUTTI_EINTERNAL;
	}
	return status;
}

static tutti_status lose_and_go_on(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_comm_t half = NULL, whole = NULL;
	tutti_status status = remake(comm, &half);

	if (status != TUTTI_OK)
		return status;
	/* Rank EARLY knows that it is lost, the others find out that it is gone. */
	if (sum_up(half, rank) > TUTTI_STATUS_LOST)
		return TUTTI_EINTERNAL;
	status = remake(half, &whole);
	if (status != TUTTI_OK)
		return status;
	status = sum_up(whole, rank);
	if (status != TUTTI_OK)
		fprintf(stderr, "rank %d: %s\n", rank, tutti_last_error(whole));
	tutti_comm_destroy(whole);
	tutti_comm_destroy(half);
	crew->stop = 1; /* all are in their call by now */
	return status;
}

static void prepare(struct crew *crew, int rank)
{
	(void)crew;
	setenv("TUTTI_HOST_ID", rank < N / 2 ? "a" : "b", 1);
	if (rank == EARLY)
		setenv("TUTTI_FAULT", "core.child:1", 1);
}

/* On one rank before it knew how calls are to be run, on the others after: the next one, made of it,
 * runs calls alike on all ranks. */
static void the_next_one_is_alike(void **state)
{
	struct crew *crew = crew_create(N, *state, lose_and_go_on);

	crew->prepare = prepare;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 300000, -1), 0);
	for (int rank = 0; rank < N; rank++) {
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s: %s", rank,
				 tutti_status_name((tutti_status)crew->rank[rank].status),
				 crew->rank[rank].text);
		assert_int_equal(crew->rank[rank].calls, 1);
	}
	crew_free(crew);
}

static tutti_status never_called(struct crew *crew, int rank, tutti_comm_t comm)
{
	(void)crew;
	(void)rank;
	(void)comm;
	return TUTTI_EINTERNAL;
}

static void prepare_no_memory(struct crew *crew, int rank)
{
	(void)crew;
	if (rank == EARLY)
		setenv("TUTTI_FAULT", "shm.mmap:1", 1);
}

/* One rank cannot map the memory that all share: the others are told which, not that the rank which
 * serves them has gone. */
static void one_cannot_join(void **state)
{
	struct crew *crew = crew_create(N, "shm", never_called);

	(void)state;
	crew->prepare = prepare_no_memory;
	assert_int_equal(crew_start(crew), -1);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < N; rank++) {
		const struct crew_rank *own = &crew->rank[rank];
		char process[32];

		snprintf(process, sizeof(process), "process %d)", (int)crew->rank[EARLY].pid);
		if (rank == EARLY ? own->status != TUTTI_ENOMEM && own->status != TUTTI_ESYS
				  : own->status != TUTTI_EPEER || !strstr(own->text, "rank 1 (") ||
					    !strstr(own->text, process))
			fail_msg("rank %d: %s: %s", rank,
				 tutti_status_name((tutti_status)own->status), own->text);
	}
	crew_free(crew);
}

int main(void)
{
	static char tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(the_next_one_is_alike, NULL),
		cmocka_unit_test_prestate(the_next_one_is_alike, tcp),
		cmocka_unit_test(one_cannot_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank is killed while communicators are made of another one, over and over: all others get an
 * error of the call that names it, by its number in the communicator that was split. Only where that does
 * not hear of the death in half a second, the text says that its numbers are others.
 *
 *   TEST_KILLS  how many, spread over the ways (12)
 *   TEST_SEED   draws other victims and moments (1) */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"

#define N 6

/* Two of three; numbers go backwards there, so that nobody keeps its own. The error of a call on
 * what was made is not looked at: it has numbers of its own. */
static tutti_status split_and_use(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_comm_t made = NULL;
	int one = 1;
	tutti_status status = tutti_comm_split(comm, rank % 2, -rank, &made, NULL);

	(void)crew;
	if (status != TUTTI_OK)
		return status;
	status = tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, made, NULL);
	tutti_comm_destroy(made);
	return status <= TUTTI_STATUS_LOST ? TUTTI_OK : status;
}

static tutti_status dup_only(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_comm_t made = NULL;
	const tutti_status status = tutti_comm_dup(comm, &made, NULL);

	(void)crew;
	(void)rank;
	if (status != TUTTI_OK)
		return status;
	tutti_comm_destroy(made);
	return TUTTI_OK;
}

/* How long after the death the last one knows, in ms. */
static double lose(struct crew *crew, int victim, int after_us)
{
	char name[16];
	int64_t begin, last = 0;

	assert_int_equal(crew_start(crew), 0);
	crew_nap_us(after_us);
	begin = crew_now_ns();
	kill(crew->rank[victim].pid, SIGKILL);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	snprintf(name, sizeof(name), "rank %d ", victim);
	for (int rank = 0; rank < N; rank++) {
		const struct crew_rank *own = &crew->rank[rank];

		if (rank == victim)
			continue;
		if (own->status != TUTTI_EPEER ||
		    !(strstr(own->text, name) || strstr(own->text, "that was being made")))
			fail_msg("rank %d died, rank %d got %s: %s", victim, rank,
				 tutti_status_name((tutti_status)own->status), own->text);
		last = own->failed_ns > last ? own->failed_ns : last;
	}
	return (double)(last - begin) / 1e6;
}

static void name_the_dead(void **state)
{
	static const struct {
		const char *transport;
		tutti_status (*call)(struct crew *, int, tutti_comm_t);
	} ways[] = {
		{ "shm", split_and_use },
		{ "tcp", split_and_use },
		{ "shm", dup_only },
		{ "tcp", dup_only },
	};
	const char *kills = getenv("TEST_KILLS"), *asked = getenv("TEST_SEED");
	unsigned seed = asked ? (unsigned)atoi(asked) : 1;
	const int n = kills ? atoi(kills) : 12;

	(void)state;
	printf("TEST_SEED=%u\n", seed);
	for (int i = 0; i < n; i++) {
		struct crew *crew = crew_create(N, ways[i % 4].transport, ways[i % 4].call);
		const int victim = rand_r(&seed) % N, after_us = rand_r(&seed) % 20000;
		const double ms = lose(crew, victim, after_us);

		printf("%s over %s: %.1f ms\n", i % 4 < 2 ? "split" : "dup", ways[i % 4].transport,
		       ms);
		crew_free(crew);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_the_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows between processes: in place, and by messages where memory cannot be reached; a rank
 * that is killed while windows are used. */
#include <setjmp.h>
#include <signal.h>
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

#define WORDS   ((size_t)20000)
#define SOON_NS INT64_C(20000000000) /* a death is known within milliseconds */

static bool allocates; /* else the window is of malloc */
static int rounds;     /* 0: for ever                  */

/* Round after round: put to the next rank, signal, wait for the previous one, read back. */
static tutti_status go_round(tutti_window_t window, const int *own, int rank, int n, int round)
{
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	static int words[WORDS];
	tutti_status st = TUTTI_OK;

	for (size_t i = 0; i < WORDS; i++)
		words[i] = rank * 1000 + round + (int)i;
	if (st == TUTTI_OK)
		st = tutti_put(window, next, 0, words, sizeof(words), NULL);
	if (st == TUTTI_OK)
		st = tutti_signal(window, next, NULL);
	if (st == TUTTI_OK)
		st = tutti_wait_signal(window, prev, 1, NULL);
	for (size_t i = 0; i < WORDS && st == TUTTI_OK; i++)
		if (own[i] != prev * 1000 + round + (int)i)
			st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_get(window, prev, 4, words, 8, NULL);
	if (st == TUTTI_OK)
		st = tutti_signal(window, prev, NULL);
	if (st == TUTTI_OK)
		st = tutti_wait_signal(window, next, 1, NULL);
	return st;
}

static tutti_status use(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_window_t window = NULL;
	tutti_status st, end;
	void *memory = NULL;

	if (allocates)
		st = tutti_mem_alloc(&memory, WORDS * sizeof(int), comm);
	else
		st = (memory = calloc(WORDS, sizeof(int))) ? TUTTI_OK : TUTTI_ENOMEM;
	if (st == TUTTI_OK)
		st = tutti_window_create(comm, memory, WORDS * sizeof(int), &window);
	for (int round = 0; st == TUTTI_OK && (!rounds || round < rounds); round++)
		st = go_round(window, memory, rank, crew->n, round);
	end = tutti_window_destroy(window);
	if (!allocates)
		free(memory);
	atomic_store(&crew->stop, 1);
	return st == TUTTI_OK ? end : st;
}

static void results(void **state)
{
	static const struct {
		const char *transport;
		bool allocates;
	} ways[] = { { "shm", true }, { "auto", false }, { "tcp", true } };

	(void)state;
	rounds = 50;
	for (size_t w = 0; w < 3; w++)
		for (int n = 2; n <= 4; n++) {
			struct crew *crew = crew_create(n, ways[w].transport, use);

			allocates = ways[w].allocates;
			assert_int_equal(crew_start(crew), 0);
			assert_int_equal(crew_wait(crew, 60000, -1), 0);
			for (int rank = 0; rank < n; rank++)
				if (crew->rank[rank].status != TUTTI_OK)
					fail_msg("%d ranks over %s, rank %d: %d, %s", n,
						 ways[w].transport, rank, crew->rank[rank].status,
						 crew->rank[rank].text);
			crew_free(crew);
		}
}

static void deaths(void **state)
{
	static const char *const transports[] = { "shm", "auto", "tcp" };
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	rounds = 0;
	for (int run = 0; run < 12; run++) {
		const int n = 2 + run % 3, victim = (int)((unsigned)rand_r(&seed) % (unsigned)n);
		struct crew *crew = crew_create(n, transports[run % 3], use);
		int64_t killed_ns;
		int stuck;

		allocates = run % 3 == 0;
		assert_int_equal(crew_start(crew), 0);
		crew_nap_us(20000 + (int)(rand_r(&seed) % 30000));
		killed_ns = crew_now_ns();
		kill(crew->rank[victim].pid, SIGKILL);
		stuck = crew_wait(crew, 60000, victim);
		for (int rank = 0; rank < n; rank++) {
			const struct crew_rank *own = &crew->rank[rank];

			if (rank != victim && (own->status != TUTTI_EPEER ||
					       own->failed_ns - killed_ns > SOON_NS || !own->done))
				fail_msg("run %d over %s, rank %d of %d: status %d after %.3f s, "
					 "done %d, %s",
					 run, transports[run % 3], rank, n, own->status,
					 (double)(own->failed_ns - killed_ns) / 1e9, own->done,
					 own->text);
		}
		assert_int_equal(stuck, 0);
		crew_free(crew);
	}
}

/* Rank 1 ends the communicator and takes its window away, and rank 0 gets from it meanwhile: what it
 * gets is right, or the call is an error. */
static tutti_status get_to_the_end(struct crew *crew, int rank, tutti_comm_t comm)
{
	static unsigned char got[WORDS * sizeof(int)];
	tutti_window_t window = NULL;
	tutti_comm_t child = NULL;
	void *memory = NULL;
	tutti_status st = tutti_comm_dup(comm, &child, NULL), end;

	if (st == TUTTI_OK)
		st = tutti_mem_alloc(&memory, sizeof(got), child);
	if (st == TUTTI_OK)
		memset(memory, 7, sizeof(got));
	if (st == TUTTI_OK)
		st = tutti_window_create(child, memory, sizeof(got), &window);
	/* Both have it before one takes it away. */
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	if (st != TUTTI_OK)
		return st;
	if (rank == 1) {
		crew_nap_us(200);
		st = tutti_comm_revoke(child);
		(void)tutti_window_destroy(window);
		memset(memory, 1, sizeof(got));
	}
	while (rank == 0 && st == TUTTI_OK) {
		st = tutti_get(window, 1, 0, got, sizeof(got), NULL);
		for (size_t i = 0; i < sizeof(got) && st == TUTTI_OK; i++)
			st = got[i] == 7 ? TUTTI_OK : TUTTI_EINTERNAL;
	}
	if (rank == 0 && st == TUTTI_EREVOKED)
		st = TUTTI_OK;
	if (rank == 0)
		(void)tutti_window_destroy(window);
	end = tutti_mem_free(memory, child);
	st = st ? st : end;
	end = tutti_comm_destroy(child);
	st = st ? st : end;
	end = tutti_barrier(comm, NULL);
	if (crew->rank[rank].calls == 49)
		atomic_store(&crew->stop, 1);
	return st ? st : end;
}

static void what_is_got_is_right_or_an_error(void **state)
{
	struct crew *crew = crew_create(2, "shm", get_to_the_end);

	(void)state;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < 2; rank++)
		if (crew->rank[rank].status != TUTTI_OK || crew->rank[rank].calls < 49)
			fail_msg("rank %d: %d after %d calls, %s", rank, crew->rank[rank].status,
				 (int)crew->rank[rank].calls, crew->rank[rank].text);
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(deaths),
		cmocka_unit_test(what_is_got_is_right_or_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* kill -9 of a rank while calls are queued on streams over queues of the program: each of them ends with
 * TUTTI_EPEER on every other rank, and streams, queues and communicators can be destroyed. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/queue.h"

#define QUEUED  12
#define STREAMS 2

static bool is_held;

/* Of the process of a rank. */
static struct {
	struct server *servers[STREAMS];
	struct queue *queues[STREAMS];
	tutti_stream_t streams[STREAMS];
	tutti_status told[QUEUED];
	float in[1000], out[1000];
} mine;

static tutti_status begin(void)
{
	for (int i = 0; i < STREAMS; i++) {
		tutti_status st;

		mine.servers[i] = server_create(1);
		mine.queues[i] = queue_create(mine.servers[i]);
		st = tutti_stream_wrap(&mine.streams[i], queue_ops(is_held), mine.queues[i]);
		if (st != TUTTI_OK)
			return st;
	}
	return TUTTI_OK;
}

static void end(void)
{
	for (int i = 0; i < STREAMS; i++) {
		(void)tutti_stream_destroy(mine.streams[i]);
		queue_free(mine.queues[i]);
		server_free(mine.servers[i]);
	}
}

static void note(tutti_status status, void *told)
{
	*(tutti_status *)told = status;
}

/* After one that failed all fail. */
static tutti_status status_of_all(void)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < QUEUED; i++) {
		if (st != TUTTI_OK && mine.told[i] != st)
			return TUTTI_EINTERNAL;
		st = mine.told[i];
	}
	return st;
}

/* All of them are queued before any is waited for. When the communicator is lost already what is left
 * cannot be queued any more. */
static tutti_status many_calls(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = mine.streams[0] ? TUTTI_OK : begin();

	(void)crew;
	(void)rank;
	for (int i = 0; i < QUEUED; i++) {
		const tutti_stream_t stream = mine.streams[i % STREAMS];

		if (st == TUTTI_OK)
			st = tutti_all_reduce(mine.in, mine.out, i % 2 ? 1000 : 1, TUTTI_FLOAT32,
					      TUTTI_SUM, comm, stream);
		mine.told[i] = st;
		if (st == TUTTI_OK)
			st = tutti_stream_call(stream, note, &mine.told[i]);
	}
	/* What each call was told says more. */
	for (int i = 0; i < STREAMS; i++)
		st = tutti_stream_synchronize(mine.streams[i]);
	st = status_of_all();
	if (st != TUTTI_OK)
		end();
	return st;
}

static void kill_one(int n, const char *transport, int victim, int after_us)
{
	struct crew *crew = crew_create(n, transport, many_calls);
	int stuck;

	assert_int_equal(crew_start(crew), 0);
	crew_nap_us(after_us);
	kill(crew->rank[victim].pid, SIGKILL);
	stuck = crew_wait(crew, 60000, victim);
	for (int rank = 0; rank < n; rank++)
		if (rank != victim &&
		    (crew->rank[rank].status != TUTTI_EPEER || !crew->rank[rank].done))
			fail_msg("%d ranks over %s, rank %d killed: rank %d has status %d, \"%s\"",
				 n, transport, victim, rank, crew->rank[rank].status,
				 crew->rank[rank].text);
	assert_int_equal(stuck, 0);
	crew_free(crew);
}

static void deaths(void **state)
{
	(void)state;
	for (int held = 0; held < 2; held++)
		for (int i = 0; i < 4; i++) {
			is_held = held;
			kill_one(2 + i % 2, i < 2 ? "shm" : "tcp", i % 2, 2000 + 7000 * i);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(deaths) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent calls: results of every collective, beside plain calls, on streams; misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/comm.h"
#include "core/handle.h"
#include "support/world.h"

#define COUNT ((size_t)5000)
#define MOST  (COUNT * 8)

struct buffers {
	int send[MOST], recv[MOST];
};

static const tutti_collective colls[] = { TUTTI_ALL_REDUCE,     TUTTI_BROADCAST, TUTTI_REDUCE,
					  TUTTI_ALL_GATHER,     TUTTI_BARRIER,   TUTTI_SCATTER,
					  TUTTI_REDUCE_SCATTER, TUTTI_GATHER,    TUTTI_ALL_TO_ALL };

static int value_of(int rank, int round, size_t i)
{
	return rank * 1000 + round * 10 + (int)(i % 7);
}

static int sum_of(int n, int round, size_t i)
{
	int sum = 0;

	for (int rank = 0; rank < n; rank++)
		sum += value_of(rank, round, i);
	return sum;
}

/* What recv[i] must be, i < COUNT * n; -1: anything. */
static int wanted(tutti_collective coll, int rank, int n, int round, size_t i)
{
	const int row = (int)(i / COUNT);

	if (coll == TUTTI_ALL_REDUCE || (coll == TUTTI_REDUCE && rank == 1))
		return row ? -1 : sum_of(n, round, i);
	if (coll == TUTTI_BROADCAST)
		return row ? -1 : value_of(1, round, i);
	if (coll == TUTTI_ALL_GATHER || (coll == TUTTI_GATHER && rank == 1))
		return value_of(row, round, i % COUNT);
	if (coll == TUTTI_REDUCE_SCATTER)
		return row ? -1 : sum_of(n, round, (size_t)rank * COUNT + i);
	if (coll == TUTTI_SCATTER)
		return row ? -1 : value_of(1, round, (size_t)rank * COUNT + i);
	if (coll == TUTTI_ALL_TO_ALL)
		return value_of(row, round, (size_t)rank * COUNT + i % COUNT);
	return -1;
}

static bool is_right(const struct buffers *b, tutti_collective coll, int rank, int n, int round)
{
	for (size_t i = 0; i < COUNT * (size_t)n; i++) {
		const int want = wanted(coll, rank, n, round, i);

		if (want >= 0 && b->recv[i] != want)
			return false;
	}
	return true;
}

/* With the NULL stream, and on one; a rank in turn makes the plain call instead. */
static void repeat(tutti_comm_t comm, int rank, int n, tutti_collective coll, struct buffers *b)
{
	const tutti_call call = { sizeof(call), coll,        b->send,   b->recv,
				  COUNT,        TUTTI_INT32, TUTTI_SUM, 1 };
	tutti_persistent_t persistent = NULL;
	tutti_stream_t stream;

	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_persistent_create(&call, comm, &persistent));
	CHECK_OK(tutti_persistent_wait(persistent));
	for (int round = 0; round < 6 && persistent; round++) {
		for (size_t i = 0; i < COUNT * (size_t)n; i++)
			b->send[i] = value_of(rank, round, i);
		memset(b->recv, 0, sizeof(b->recv));
		if (coll == TUTTI_ALL_REDUCE && round % n == rank)
			CHECK_OK(tutti_all_reduce(b->send, b->recv, COUNT, TUTTI_INT32, TUTTI_SUM,
						  comm, NULL));
		else
			CHECK_OK(tutti_persistent_start(persistent, round % 2 ? stream : NULL));
		CHECK_OK(tutti_persistent_wait(persistent));
		CHECK(is_right(b, coll, rank, n, round));
	}
	CHECK_OK(tutti_persistent_destroy(persistent));
	CHECK_OK(tutti_stream_destroy(stream));
}

static void all_collectives(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct buffers *b = malloc(sizeof(*b));

	(void)arg;
	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]) && CHECK(b != NULL); c++)
		repeat(comm, rank, n, colls[c], b);
	free(b);
}

static void results(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++)
		for (int n = 2; n <= 5; n += 3) {
			const struct world world = { .n = n, .transport = transports[t] };

			assert_int_equal(world_run(&world, all_collectives, NULL), 0);
		}
}

static void misuse(tutti_comm_t comm, int rank, int n, void *arg)
{
	int data[4] = { 1, 2, 3, 4 };
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t persistent = NULL;
	tutti_stream_t stream;

	(void)rank;
	(void)n;
	(void)arg;
	call.send = call.recv = data;
	call.count = 4;
	call.type = TUTTI_INT32;
	CHECK(tutti_persistent_create(NULL, comm, &persistent) == TUTTI_EINVAL);
	CHECK(tutti_persistent_create(&call, comm, NULL) == TUTTI_EINVAL);
	CHECK(tutti_persistent_create(&call, NULL, &persistent) == TUTTI_EINVAL);
	call.coll = TUTTI_HANDOFF;
	CHECK(tutti_persistent_create(&call, comm, &persistent) == TUTTI_EINVAL);
	call.coll = TUTTI_ALL_REDUCE;
	call.op = (tutti_op)77;
	CHECK(tutti_persistent_create(&call, comm, &persistent) == TUTTI_EINVAL);
	call.op = TUTTI_SUM;
	call.size = 3;
	CHECK(tutti_persistent_create(&call, comm, &persistent) == TUTTI_EINVAL);
	call.size = sizeof(call);
	CHECK(tutti_persistent_start(NULL, NULL) == TUTTI_EINVAL);
	CHECK(tutti_persistent_wait(NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_persistent_destroy(NULL));
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_persistent_create(&call, comm, &persistent));
	CHECK_OK(tutti_group_start());
	CHECK(tutti_persistent_start(persistent, NULL) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());
	CHECK_OK(tutti_persistent_start(persistent, stream));
	CHECK(tutti_persistent_start(persistent, stream) == TUTTI_EUSAGE);
	CHECK_OK(tutti_persistent_destroy(persistent));
	CHECK(data[3] == 4 * n);
	CHECK_OK(tutti_stream_destroy(stream));
}

static void wrong_use(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, misuse, NULL), 0);
}

/* Another size on one rank: all of them hear so, from the start or the wait. */
static void differing(tutti_comm_t comm, int rank, int n, void *arg)
{
	int data[4] = { 0 };
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t persistent = NULL;
	tutti_stream_t stream;

	(void)n;
	(void)arg;
	call.send = call.recv = data;
	call.type = TUTTI_INT32;
	call.count = rank ? 4 : 3;
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_persistent_create(&call, comm, &persistent));
	if (rank)
		CHECK_OK(tutti_persistent_start(persistent, stream));
	else
		CHECK(tutti_persistent_start(persistent, NULL) == TUTTI_EMISMATCH);
	CHECK(tutti_persistent_wait(persistent) == TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "all_reduce(") != NULL);
	CHECK(tutti_persistent_start(persistent, NULL) == TUTTI_EMISMATCH);
	CHECK(tutti_persistent_destroy(persistent) == TUTTI_EMISMATCH);
	CHECK(tutti_stream_destroy(stream) == (rank ? TUTTI_EMISMATCH : TUTTI_OK));
}

static void mismatch(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, differing, NULL), 0);
}

/* So many communicators later, that the handle of the persistent call is used again. */
static void a_handle_of_another(void **state)
{
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t persistent;
	tutti_comm_t comm, other, between;
	int data = 1;

	(void)state;
	call.send = call.recv = &data;
	call.count = 1;
	call.type = TUTTI_INT32;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_persistent_create(&call, comm, &persistent), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	assert_int_equal(tutti_persistent_start(persistent, NULL), TUTTI_EUSAGE);
	for (int i = 0; i < 4096; i++) {
		assert_int_equal(tti_handle_create(NULL, &between), TUTTI_OK);
		tti_handle_free(between);
	}
	assert_int_equal(tutti_comm_init_all(&other, 1, NULL), TUTTI_OK);
	assert_ptr_equal(other, comm);
	assert_int_equal(tutti_persistent_start(persistent, NULL), TUTTI_EUSAGE);
	assert_non_null(strstr(tutti_last_error(NULL), "was destroyed"));
	assert_string_equal(tutti_last_error(other), "");
	assert_int_equal(tutti_persistent_destroy(persistent), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(other), TUTTI_OK);
}

/* Two threads of rank 0 make the same call on one communicator: by a persistent call, and in a group. */
struct threads {
	tutti_persistent_t persistent;
	bool group_is_first;
	_Atomic int told;
};

static void nap_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static void note(struct threads *both, tutti_status st)
{
	if (st != TUTTI_OK && CHECK(st == TUTTI_EUSAGE) &&
	    CHECK(strstr(tutti_last_error(NULL), "another thread is in a call") != NULL))
		both->told++;
}

static void *start_plan(void *self)
{
	struct threads *both = self;

	nap_ms(both->group_is_first ? 100 : 0);
	note(both, tutti_persistent_start(both->persistent, NULL));
	return NULL;
}

static void use_by_threads(tutti_comm_t comm, struct threads *both)
{
	tutti_call call = TUTTI_CALL_INIT;
	pthread_t thread;

	call.coll = TUTTI_BARRIER;
	if (!CHECK_OK(tutti_persistent_create(&call, comm, &both->persistent)))
		return;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_barrier(comm, NULL));
	if (CHECK(pthread_create(&thread, NULL, start_plan, both) == 0)) {
		nap_ms(both->group_is_first ? 0 : 100);
		note(both, tutti_group_end());
		pthread_join(thread, NULL);
	}
	CHECK_OK(tutti_persistent_destroy(both->persistent));
}

/* Whichever comes first is in its call until the other one is told, as rank 1 comes only then. */
static void come_when_told(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct threads *both = arg;

	(void)n;
	if (rank == 0) {
		use_by_threads(comm, both);
		return;
	}
	for (int i = 0; i < 20000 && !both->told; i++)
		nap_ms(1);
	if (CHECK(both->told == 1))
		CHECK_OK(tutti_barrier(comm, NULL));
	else
		CHECK_OK(tutti_comm_revoke(comm));
}

static void another_thread_is_told(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct threads both = { .group_is_first = i == 1 };

		assert_int_equal(world_run(&world, come_when_told, &both), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(wrong_use),
		cmocka_unit_test(mismatch),
		cmocka_unit_test(a_handle_of_another),
		cmocka_unit_test(another_thread_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

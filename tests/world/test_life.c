/* SPDX-License-Identifier: BSD-3-Clause */
/* From init to the end: several roots, abort from another thread, a deadline, finalize,
 * work that is still queued when the communicator goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/world.h"

#define RANKS 7
#define ROOTS 3

static tutti_unique_id ids[ROOTS];

static void *join_by_many_roots(void *self)
{
	const int rank = (int)(intptr_t)self;
	tutti_comm_t comm;
	int one = 1, sum = 0;

	if (!CHECK_OK(tutti_comm_init_rank_scalable(&comm, RANKS, rank, ROOTS, ids, NULL)))
		return NULL;
	CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK(sum == RANKS);
	CHECK_OK(tutti_comm_finalize(comm));
	CHECK_OK(tutti_comm_destroy(comm));
	return NULL;
}

static void several_roots(void **state)
{
	pthread_t threads[RANKS];

	(void)state;
	for (int i = 0; i < ROOTS; i++)
		assert_int_equal(tutti_get_unique_id(&ids[i]), TUTTI_OK);
	for (int rank = 0; rank < RANKS; rank++)
		assert_int_equal(pthread_create(&threads[rank], NULL, join_by_many_roots,
						(void *)(intptr_t)rank),
				 0);
	for (int rank = 0; rank < RANKS; rank++)
		pthread_join(threads[rank], NULL);
	assert_int_equal(world_failures(), 0);
}

/* A call that waits for nobody ends when another thread aborts. */
struct blocked {
	tutti_comm_t comm;
	tutti_status status;
};

static void *wait_for_nobody(void *self)
{
	struct blocked *blocked = self;
	int value;

	blocked->status = tutti_recv(&value, 1, TUTTI_INT32, 1, blocked->comm, NULL);
	return NULL;
}

static void abort_from_another_thread(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		tutti_config config = TUTTI_CONFIG_INIT;
		tutti_comm_t comms[2];
		pthread_t thread;
		tutti_status seen;
		int value = 0;

		config.transport = transports[t];
		assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
		struct blocked blocked = { .comm = comms[0] };

		assert_int_equal(pthread_create(&thread, NULL, wait_for_nobody, &blocked), 0);
		assert_true(world_await_call(comms[0]));
		assert_int_equal(tutti_comm_abort(comms[0]), TUTTI_OK);
		pthread_join(thread, NULL);
		assert_int_equal(blocked.status, TUTTI_EABORTED);
		/* The other rank is told, and can only go. */
		assert_int_equal(
			tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, comms[1], NULL),
			TUTTI_EPEER);
		assert_non_null(strstr(tutti_last_error(comms[1]), "rank 0 aborted"));
		assert_int_equal(tutti_comm_get_async_error(comms[1], &seen), TUTTI_OK);
		assert_int_equal(seen, TUTTI_EPEER);
		assert_int_equal(tutti_comm_destroy(comms[1]), TUTTI_OK);
	}
}

/* Abort comes at any moment of a thread that makes one call after the other. */
static void *call_until_it_fails(void *self)
{
	struct blocked *blocked = self;
	int one = 1, sum;

	do
		blocked->status = tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM,
						   blocked->comm, NULL);
	while (blocked->status == TUTTI_OK);
	return NULL;
}

static void abort_at_any_moment(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 40; round++) {
		const struct timespec nap = { .tv_nsec = rand_r(&seed) % 300000 };
		struct blocked blocked[2];
		tutti_comm_t comms[2];
		pthread_t threads[2];

		assert_int_equal(tutti_comm_init_all(comms, 2, NULL), TUTTI_OK);
		for (int rank = 0; rank < 2; rank++) {
			blocked[rank] = (struct blocked){ .comm = comms[rank] };
			assert_int_equal(pthread_create(&threads[rank], NULL, call_until_it_fails,
							&blocked[rank]),
					 0);
		}
		nanosleep(&nap, NULL);
		assert_int_equal(tutti_comm_abort(comms[1]), TUTTI_OK);
		for (int rank = 0; rank < 2; rank++)
			pthread_join(threads[rank], NULL);
		assert_int_equal(blocked[0].status, TUTTI_EPEER);
		assert_true(blocked[1].status == TUTTI_EABORTED ||
			    blocked[1].status == TUTTI_EUSAGE);
		assert_int_equal(tutti_comm_destroy(comms[0]), TUTTI_OK);
		assert_int_equal(tutti_comm_destroy(comms[1]), TUTTI_EUSAGE);
	}
}

static void deadlines(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comms[2];
	int value;

	(void)state;
	config.timeout_ms = 300;
	assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
	assert_int_equal(tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], NULL), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tutti_last_error(comms[0]), "rank 1"));
	assert_int_equal(tutti_comm_destroy(comms[0]), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comms[1]), TUTTI_OK);
}

/* What is queued on streams is done before the communicator goes. */
static void destroy_waits_for_streams(tutti_comm_t unused, int rank, int n, void *arg)
{
	tutti_comm_t *comms = arg;
	tutti_stream_t stream;
	enum { COUNT = 100000 };
	float *data = malloc(COUNT * sizeof(*data));

	(void)unused;
	for (int i = 0; i < COUNT; i++)
		data[i] = 1;
	if (!CHECK_OK(tutti_stream_create(&stream)))
		return;
	for (int k = 0; k < 3; k++)
		CHECK_OK(tutti_all_reduce(data, data, COUNT, TUTTI_FLOAT32, TUTTI_SUM, comms[rank],
					  stream));
	CHECK_OK(tutti_comm_destroy(comms[rank]));
	CHECK(data[COUNT - 1] == (float)(n * n * n));
	CHECK_OK(tutti_stream_destroy(stream));
	free(data);
}

static void destroy_with_work_queued(void **state)
{
	const struct world world = { .n = 3 };
	tutti_comm_t comms[3];

	(void)state;
	assert_int_equal(tutti_comm_init_all(comms, 3, NULL), TUTTI_OK);
	assert_int_equal(world_run(&world, destroy_waits_for_streams, comms), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_roots),
		cmocka_unit_test(abort_from_another_thread),
		cmocka_unit_test(abort_at_any_moment),
		cmocka_unit_test(deadlines),
		cmocka_unit_test(destroy_with_work_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for streams and events, by several threads: ends, records, destroyed streams, memory that
 * is freed beside calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "support/world.h"

#define ROUNDS 2000

/* Plain numbers: one function at a time runs, whoever runs it. */
struct shared {
	tutti_stream_t stream;
	long count;
};

static void add(tutti_status status, void *arg)
{
	struct shared *shared = arg;

	CHECK(status == TUTTI_OK);
	shared->count++;
}

static void *add_and_wait(void *arg)
{
	struct shared *shared = arg;
	tutti_event_t event;

	CHECK_OK(tutti_event_create(&event));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(tutti_stream_call(shared->stream, add, shared));
		if (i % 3 == 0)
			continue;
		CHECK_OK(tutti_event_record(event, shared->stream));
		CHECK_OK(i % 3 == 1 ? tutti_event_synchronize(event)
				    : tutti_stream_synchronize(shared->stream));
	}
	CHECK_OK(tutti_event_destroy(event));
	return NULL;
}

static void many_may_wait(void **state)
{
	struct shared shared = { .count = 0 };
	pthread_t threads[4];

	(void)state;
	assert_int_equal(tutti_stream_create(&shared.stream), TUTTI_OK);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_and_wait, &shared), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(tutti_stream_destroy(shared.stream), TUTTI_OK);
	assert_int_equal(shared.count, 4 * ROUNDS);
}

static void *wait_for_event(void *event)
{
	CHECK_OK(tutti_event_synchronize(event));
	return NULL;
}

/* An event's waits are no use of its stream, which may be destroyed meanwhile. */
static void a_stream_ends_while_its_event_is_awaited(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct shared shared = { .count = 0 };
		tutti_event_t event;
		pthread_t thread;

		assert_int_equal(tutti_stream_create(&shared.stream), TUTTI_OK);
		assert_int_equal(tutti_event_create(&event), TUTTI_OK);
		assert_int_equal(tutti_stream_call(shared.stream, add, &shared), TUTTI_OK);
		assert_int_equal(tutti_event_record(event, shared.stream), TUTTI_OK);
		assert_int_equal(tutti_stream_call(shared.stream, add, &shared), TUTTI_OK);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_event, event), 0);
		assert_int_equal(tutti_stream_destroy(shared.stream), TUTTI_OK);
		assert_int_equal(shared.count, 2);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(tutti_event_destroy(event), TUTTI_OK);
	}
}

/* An event is recorded on a busy stream, then on an idle one: who waits for the first record goes on
 * waiting. */
struct twice {
	tutti_stream_t busy, idle, later;
	tutti_event_t event;
	sem_t gate, waits;
	_Atomic bool is_open, too_early;
};

static void hold(tutti_status status, void *arg)
{
	struct twice *twice = arg;

	CHECK(status == TUTTI_OK);
	while (sem_wait(&twice->gate) != 0)
		;
}

static void follow(tutti_status status, void *arg)
{
	struct twice *twice = arg;

	CHECK(status == TUTTI_OK);
	if (!atomic_load(&twice->is_open))
		atomic_store(&twice->too_early, true);
}

static void first_record(struct twice *twice)
{
	*twice = (struct twice){ .is_open = false };
	assert_int_equal(sem_init(&twice->gate, 0, 0), 0);
	assert_int_equal(sem_init(&twice->waits, 0, 0), 0);
	assert_int_equal(tutti_stream_create(&twice->busy), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&twice->idle), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&twice->later), TUTTI_OK);
	assert_int_equal(tutti_event_create(&twice->event), TUTTI_OK);
	assert_int_equal(tutti_stream_call(twice->busy, hold, twice), TUTTI_OK);
	assert_int_equal(tutti_event_record(twice->event, twice->busy), TUTTI_OK);
	assert_int_equal(tutti_event_query(twice->event), TUTTI_AGAIN);
}

/* The nap is for those who wait wrongly: they would be back by then, others cannot be. */
static void second_record(struct twice *twice, int nap_ms)
{
	const struct timespec nap = { .tv_nsec = nap_ms * 1000000L };

	assert_int_equal(tutti_event_record(twice->event, twice->idle), TUTTI_OK);
	assert_int_equal(tutti_event_synchronize(twice->event), TUTTI_OK);
	assert_int_equal(tutti_event_query(twice->event), TUTTI_OK);
	nanosleep(&nap, NULL);
	atomic_store(&twice->is_open, true);
	assert_int_equal(sem_post(&twice->gate), 0);
}

static void end_twice(struct twice *twice)
{
	assert_int_equal(tutti_stream_destroy(twice->later), TUTTI_OK);
	assert_int_equal(tutti_stream_destroy(twice->idle), TUTTI_OK);
	assert_int_equal(tutti_stream_destroy(twice->busy), TUTTI_OK);
	assert_int_equal(sem_destroy(&twice->gate), 0);
	assert_int_equal(sem_destroy(&twice->waits), 0);
	assert_false(twice->too_early);
}

static void a_stream_waits_for_the_record_that_it_found(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		struct twice twice;

		first_record(&twice);
		assert_int_equal(tutti_stream_wait_event(twice.later, twice.event), TUTTI_OK);
		assert_int_equal(tutti_stream_call(twice.later, follow, &twice), TUTTI_OK);
		second_record(&twice, 10);
		assert_int_equal(tutti_event_destroy(twice.event), TUTTI_OK);
		end_twice(&twice);
	}
}

/* Asked only in a wait: so this thread has found the record that it waits for. */
static int tell_waits(void *arg)
{
	struct twice *twice = arg;

	CHECK(sem_post(&twice->waits) == 0);
	return 0;
}

static void *wait_for_first(void *arg)
{
	struct twice *twice = arg;

	tutti_set_interrupt(tell_waits, twice);
	CHECK_OK(tutti_event_synchronize(twice->event));
	follow(TUTTI_OK, twice);
	return NULL;
}

static void a_thread_waits_for_the_record_that_it_found(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct twice twice;
		pthread_t thread;

		first_record(&twice);
		assert_int_equal(pthread_create(&thread, NULL, wait_for_first, &twice), 0);
		while (sem_wait(&twice.waits) != 0)
			;
		second_record(&twice, 100);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(tutti_event_destroy(twice.event), TUTTI_OK);
		end_twice(&twice);
	}
}

/* Calls of ranks, each waited for at once or with the next. */
static void call_and_wait(tutti_comm_t comm, int rank, int n, void *arg)
{
	int of_plan = rank, sum = 0;
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t plan;
	tutti_stream_t stream;

	(void)arg;
	call.coll = TUTTI_ALL_REDUCE;
	call.send = &of_plan;
	call.recv = &sum;
	call.count = 1;
	call.type = TUTTI_INT32;
	call.op = TUTTI_SUM;
	if (!CHECK_OK(tutti_stream_create(&stream)) ||
	    !CHECK_OK(tutti_persistent_create(&call, comm, &plan)))
		return;
	for (int i = 0; i < ROUNDS / 4; i++) {
		int in = rank + i, out = 0;

		CHECK_OK(tutti_all_reduce(&in, &out, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
		if (i % 50 == rank)
			CHECK_OK(tutti_barrier(comm, NULL));
		else
			CHECK_OK(tutti_barrier(comm, stream));
		if (i % 3 == 0) {
			of_plan = rank - i;
			CHECK_OK(tutti_persistent_start(plan, stream));
			CHECK_OK(tutti_persistent_wait(plan));
			CHECK(sum == n * (n - 1) / 2 - n * i);
		} else {
			CHECK_OK(tutti_stream_synchronize(stream));
		}
		CHECK(out == n * i + n * (n - 1) / 2);
	}
	CHECK_OK(tutti_persistent_destroy(plan));
	CHECK_OK(tutti_stream_destroy(stream));
}

static void ranks_may_wait_differently(void **state)
{
	const struct world world = { .n = 4 };

	(void)state;
	assert_int_equal(world_run(&world, call_and_wait, NULL), 0);
}

/* -- Memory that another thread frees --------------------------------------------- */

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

struct freer {
	tutti_comm_t comm;
	void *memory;
	_Atomic int waits, all_are_done, is_back;
};

/* While it waits it does not look until all calls are done, the later ones too. */
static int look_away(void *arg)
{
	struct freer *freer = arg;

	atomic_store(&freer->waits, 1);
	while (!atomic_load(&freer->all_are_done))
		nap();
	return 0;
}

static void *free_memory(void *arg)
{
	struct freer *freer = arg;

	tutti_set_interrupt(look_away, freer);
	CHECK_OK(tutti_mem_free(freer->memory, freer->comm));
	atomic_store(&freer->is_back, 1);
	return NULL;
}

static void hold_back(tutti_status status, void *arg)
{
	struct freer *freer = arg;

	CHECK(status == TUTTI_OK);
	while (!atomic_load(&freer->waits))
		nap();
}

static void freed_elsewhere(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct freer freer = { .comm = comm };
	int sum = 0;
	tutti_stream_t stream;
	pthread_t thread;

	(void)arg;
	CHECK_OK(tutti_mem_alloc(&freer.memory, 4096, comm));
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_stream_call(stream, hold_back, &freer));
	CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
	if (!CHECK(pthread_create(&thread, NULL, free_memory, &freer) == 0))
		exit(1);
	while (!atomic_load(&freer.waits))
		nap();
	CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK(sum == n * (n - 1) / 2);
	atomic_store(&freer.all_are_done, 1);
	for (int i = 0; i < 20000 && !atomic_load(&freer.is_back); i++)
		nap();
	/* Nothing else ends it. */
	if (!CHECK(atomic_load(&freer.is_back)))
		exit(1);
	pthread_join(thread, NULL);
	CHECK_OK(tutti_stream_destroy(stream));
}

static void freed_by_another_thread(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, freed_elsewhere, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_may_wait),
		cmocka_unit_test(a_stream_ends_while_its_event_is_awaited),
		cmocka_unit_test(a_stream_waits_for_the_record_that_it_found),
		cmocka_unit_test(a_thread_waits_for_the_record_that_it_found),
		cmocka_unit_test(ranks_may_wait_differently),
		cmocka_unit_test(freed_by_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

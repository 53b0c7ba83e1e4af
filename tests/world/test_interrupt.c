/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that shall wait no longer: what its calls return, and those of the other ranks. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <semaphore.h>

#include "support/world.h"

/* So often it goes on before it stops. */
#define PATIENCE 2

static int lose_patience(void *arg)
{
	int *asked = arg;

	return ++*asked > PATIENCE;
}

static int never(void *arg)
{
	CHECK(!arg);
	return 1;
}

/* -- Calls on a communicator ---------------------------------------------------------- */

/* What the last rank waits for, and the others never do until it has ended. */
struct wait {
	tutti_status (*call)(tutti_comm_t comm);
	sem_t *ended;
};

static tutti_status reduce(tutti_comm_t comm)
{
	static _Thread_local int in, out;

	return tutti_all_reduce(&in, &out, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);
}

static tutti_status receive(tutti_comm_t comm)
{
	static char in[1 << 20];

	return tutti_recv(in, sizeof(in), TUTTI_INT8, 0, comm, NULL);
}

/* It waits for a call on a stream, which waits for the other ranks. */
static tutti_status wait_for_turn(tutti_comm_t comm)
{
	tutti_stream_t stream;
	tutti_status st;

	if (!CHECK_OK(tutti_stream_create(&stream)))
		return TUTTI_OK;
	CHECK_OK(tutti_barrier(comm, stream));
	st = tutti_barrier(comm, NULL);
	CHECK(tutti_stream_destroy(stream) == TUTTI_EABORTED);
	return st;
}

static void interrupt_one(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct wait *wait = arg;
	char me[32];

	(void)snprintf(me, sizeof(me), "rank %d", n - 1);
	if (rank == n - 1) {
		int asked = 0;

		tutti_set_interrupt(lose_patience, &asked);
		CHECK(wait->call(comm) == TUTTI_EABORTED);
		tutti_set_interrupt(NULL, NULL);
		CHECK(asked >= PATIENCE + 1);
		CHECK(strstr(tutti_last_error(comm), "was interrupted"));
		CHECK(reduce(comm) == TUTTI_EABORTED);
		for (int i = 0; i < n - 1; i++)
			sem_post(wait->ended);
		return;
	}
	sem_wait(wait->ended);
	CHECK(reduce(comm) == TUTTI_EPEER);
	CHECK(strstr(tutti_last_error(comm), me) &&
	      strstr(tutti_last_error(comm), "was interrupted"));
}

static void a_call_ends(void **state)
{
	static tutti_status (*const calls[])(tutti_comm_t) = { reduce, receive, wait_for_turn };
	static const char *const transports[] = { "shm", "tcp" };
	sem_t ended;

	(void)state;
	sem_init(&ended, 0, 0);
	for (int t = 0; t < 2; t++) {
		for (int c = 0; c < 3; c++) {
			const struct world world = { .n = 3, .transport = transports[t] };
			struct wait wait = { .call = calls[c], .ended = &ended };

			assert_int_equal(world_run(&world, interrupt_one, &wait), 0);
		}
	}
	sem_destroy(&ended);
}

static void wait_for_signal(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window;
	tutti_reg_t reg;
	char byte = 0;
	int asked = 0;

	(void)n;
	if (!CHECK_OK(tutti_register(comm, &byte, 1, &reg)) ||
	    !CHECK_OK(tutti_window_create(comm, &byte, 1, &window)))
		return;
	if (rank == 0) {
		tutti_set_interrupt(lose_patience, &asked);
		CHECK(tutti_wait_signal(window, 1, 1, NULL) == TUTTI_EABORTED);
		tutti_set_interrupt(NULL, NULL);
		sem_post(arg);
	} else {
		sem_wait(arg);
		CHECK(tutti_wait_signal(window, 0, 1, NULL) == TUTTI_EPEER);
	}
	(void)tutti_window_destroy(window);
}

static void a_wait_for_a_signal_ends(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };
	sem_t ended;

	(void)state;
	sem_init(&ended, 0, 0);
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 2, .transport = transports[t] };

		assert_int_equal(world_run(&world, wait_for_signal, &ended), 0);
	}
	sem_destroy(&ended);
}

/* -- What loses nothing ----------------------------------------------------------------- */

static void hold(tutti_status status, void *gate)
{
	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(gate) == 0);
}

static void wait_and_go_on(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in = 1, out = 0;
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t plan;
	tutti_stream_t stream;
	tutti_event_t event;
	sem_t gate;

	(void)rank;
	(void)arg;
	sem_init(&gate, 0, 0);
	call.send = &in;
	call.recv = &out;
	call.count = 1;
	call.type = TUTTI_INT32;
	if (!CHECK_OK(tutti_stream_create(&stream)) || !CHECK_OK(tutti_event_create(&event)) ||
	    !CHECK_OK(tutti_persistent_create(&call, comm, &plan)))
		return;
	CHECK_OK(tutti_stream_call(stream, hold, &gate));
	CHECK_OK(tutti_persistent_start(plan, stream));
	CHECK_OK(tutti_event_record(event, stream));
	tutti_set_interrupt(never, NULL);
	CHECK(tutti_stream_synchronize(stream) == TUTTI_AGAIN);
	CHECK(tutti_event_synchronize(event) == TUTTI_AGAIN);
	CHECK(tutti_persistent_wait(plan) == TUTTI_AGAIN);
	tutti_set_interrupt(NULL, NULL);
	sem_post(&gate);
	CHECK_OK(tutti_persistent_wait(plan));
	CHECK(out == n);
	CHECK_OK(tutti_event_synchronize(event));
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK_OK(tutti_persistent_destroy(plan));
	CHECK_OK(tutti_event_destroy(event));
	CHECK_OK(tutti_stream_destroy(stream));
	sem_destroy(&gate);
}

/* What is queued meanwhile wakes who waits for the stream, and does not keep it from asking. */
struct waiter {
	tutti_stream_t stream;
	_Atomic bool is_back;
};

static void *synchronize(void *arg)
{
	struct waiter *waiter = arg;

	tutti_set_interrupt(never, NULL);
	CHECK(tutti_stream_synchronize(waiter->stream) == TUTTI_AGAIN);
	atomic_store(&waiter->is_back, true);
	return NULL;
}

static void do_nothing(tutti_status status, void *arg)
{
	(void)arg;
	CHECK(status == TUTTI_OK);
}

static void a_busy_stream(void **state)
{
	const struct timespec nap = { .tv_nsec = 2 * 1000 * 1000 };
	struct waiter waiter = { .is_back = false };
	pthread_t thread;
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	assert_int_equal(tutti_stream_create(&waiter.stream), TUTTI_OK);
	assert_int_equal(tutti_stream_call(waiter.stream, hold, &gate), TUTTI_OK);
	assert_int_equal(pthread_create(&thread, NULL, synchronize, &waiter), 0);
	for (int i = 0; i < 5000 && !atomic_load(&waiter.is_back); i++) {
		assert_int_equal(tutti_stream_call(waiter.stream, do_nothing, NULL), TUTTI_OK);
		nanosleep(&nap, NULL);
	}
	sem_post(&gate);
	pthread_join(thread, NULL);
	assert_int_equal(tutti_stream_destroy(waiter.stream), TUTTI_OK);
	assert_int_equal(world_failures(), 0);
	sem_destroy(&gate);
}

static void wait_for_a_message(tutti_comm_t comm, int rank, int n, void *arg)
{
	char byte = (char)rank;
	tutti_channel_t channel;
	tutti_request_t request;

	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	if (rank == 0) {
		CHECK_OK(tutti_message_irecv(channel, &byte, 1, TUTTI_ANY_SOURCE, 7, &request));
		tutti_set_interrupt(never, NULL);
		CHECK(tutti_message_wait(channel, request, -1, NULL) == TUTTI_AGAIN);
		CHECK(tutti_message_probe(channel, 1, 8, -1, NULL) == TUTTI_AGAIN);
		tutti_set_interrupt(NULL, NULL);
		CHECK_OK(tutti_barrier(comm, NULL));
		CHECK_OK(tutti_message_wait(channel, request, -1, NULL));
		CHECK(byte == n - 1);
	} else {
		CHECK_OK(tutti_barrier(comm, NULL));
		if (rank == n - 1)
			CHECK_OK(tutti_message_send(channel, &byte, 1, 0, 7));
	}
	CHECK_OK(tutti_channel_destroy(channel));
}

/* What is interrupted in rank 0 on a channel, which it destroys. */
struct in_vain {
	void (*run)(tutti_channel_t channel, tutti_comm_t comm, int rank, sem_t *ended);
	sem_t ended;
};

/* The communicator is as it was. */
static void on_a_channel(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct in_vain *in_vain = arg;
	tutti_channel_t channel;

	(void)n;
	if (CHECK_OK(tutti_channel_create(comm, &channel)))
		in_vain->run(channel, comm, rank, &in_vain->ended);
	CHECK_OK(tutti_barrier(comm, NULL));
}

/* A receive that has matched nothing is taken back. */
static void receive_in_vain(tutti_channel_t channel, tutti_comm_t comm, int rank, sem_t *ended)
{
	char byte = 1, in = 0;
	int asked = 0;

	(void)ended;
	if (rank == 0) {
		tutti_set_interrupt(lose_patience, &asked);
		CHECK(tutti_message_recv(channel, &in, 1, 1, 7, NULL) == TUTTI_ECANCELED);
		tutti_set_interrupt(NULL, NULL);
		CHECK_OK(tutti_barrier(comm, NULL));
		CHECK_OK(tutti_message_recv(channel, &in, 1, 1, 7, NULL));
		CHECK(in == 1);
	} else {
		CHECK_OK(tutti_barrier(comm, NULL));
		CHECK_OK(tutti_message_send(channel, &byte, 1, 0, 7));
	}
	CHECK_OK(tutti_channel_destroy(channel));
}

/* A long message is announced, and the receiver never takes it. */
static void send_in_vain(tutti_channel_t channel, tutti_comm_t comm, int rank, sem_t *ended)
{
	static char bytes[1 << 20];
	int asked = 0;
	char byte;

	if (rank == 0) {
		tutti_set_interrupt(lose_patience, &asked);
		CHECK(tutti_message_send(channel, bytes, sizeof(bytes), 1, 7) == TUTTI_EABORTED);
		tutti_set_interrupt(NULL, NULL);
		CHECK(strstr(tutti_last_error(comm), "was interrupted"));
		sem_post(ended);
		CHECK(tutti_channel_destroy(channel) == TUTTI_EABORTED);
	} else {
		sem_wait(ended);
		CHECK(tutti_message_recv(channel, &byte, 1, 0, 8, NULL) == TUTTI_EPEER);
		CHECK(strstr(tutti_last_error(comm), "rank 0 was interrupted"));
		CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
	}
}

static void destroy_in_vain(tutti_channel_t channel, tutti_comm_t comm, int rank, sem_t *ended)
{
	int asked = 0;

	(void)comm;
	if (rank == 0) {
		tutti_set_interrupt(lose_patience, &asked);
		CHECK(tutti_channel_destroy(channel) == TUTTI_EABORTED);
		tutti_set_interrupt(NULL, NULL);
		sem_post(ended);
	} else {
		sem_wait(ended);
		CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
	}
}

static void what_has_no_request_ends(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };
	struct in_vain calls[] = { { .run = receive_in_vain },
				   { .run = send_in_vain },
				   { .run = destroy_in_vain } };

	(void)state;
	for (int t = 0; t < 2; t++)
		for (int i = 0; i < 3; i++) {
			const struct world world = { .n = 2, .transport = transports[t] };

			sem_init(&calls[i].ended, 0, 0);
			assert_int_equal(world_run(&world, on_a_channel, &calls[i]), 0);
			sem_destroy(&calls[i].ended);
		}
}

static void who_waits_for_a_message_can_wait_again(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 2, .transport = transports[t] };

		assert_int_equal(world_run(&world, wait_for_a_message, NULL), 0);
	}
}

static void what_waits_for_a_stream_can_wait_again(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, wait_and_go_on, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_ends),
		cmocka_unit_test(a_wait_for_a_signal_ends),
		cmocka_unit_test(who_waits_for_a_message_can_wait_again),
		cmocka_unit_test(what_has_no_request_ends),
		cmocka_unit_test(what_waits_for_a_stream_can_wait_again),
		cmocka_unit_test(a_busy_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags: what becomes of those who wait when other ranks leave. The timeout ends what
 * would hang. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/world.h"

#define PATIENCE_MS 20000

static void run(int n, world_fn fn, void *arg)
{
	static const char *const transports[] = { "shm", "tcp" };

	for (int i = 0; i < 2; i++) {
		const struct world world = { .n = n,
					     .transport = transports[i],
					     .timeout_ms = PATIENCE_MS };

		assert_int_equal(world_run(&world, fn, arg), 0);
	}
}

/* What has come from the rank that leaves is found, and what has not never comes. */
static void probe_in_vain(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;
	int value = 0;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	if (rank == 0) {
		CHECK(tutti_message_probe(channel, 1, 5, -1, NULL) == TUTTI_EPEER);
		CHECK(strstr(tutti_last_error(comm), "rank 1 ") &&
		      strstr(tutti_last_error(comm), "has destroyed its channel"));
	} else if (rank == 1) {
		CHECK_OK(tutti_message_send(channel, &value, sizeof(value), 0, 6));
	}
	CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
}

static void find_what_came(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;
	int value = 0;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	if (rank == 0) {
		/* With a limit of its own nothing is lost. */
		CHECK(tutti_message_probe(channel, 1, 5, 100, NULL) == TUTTI_AGAIN);
		CHECK_OK(tutti_message_probe(channel, 1, 6, -1, NULL));
		CHECK_OK(tutti_message_recv(channel, &value, sizeof(value), 1, 6, NULL));
	} else if (rank == 1) {
		CHECK_OK(tutti_message_send(channel, &value, sizeof(value), 0, 6));
	}
	CHECK_OK(tutti_channel_destroy(channel));
}

static void *receive_of_any(void *channel)
{
	int value;

	CHECK_OK(tutti_message_recv(channel, &value, sizeof(value), TUTTI_ANY_SOURCE, 5, NULL));
	return NULL;
}

/* All others have left, but not the own rank. */
static void send_to_self(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;
	pthread_t thread;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	if (rank == 0) {
		CHECK(pthread_create(&thread, NULL, receive_of_any, channel) == 0);
		CHECK(tutti_message_probe(channel, 1, 6, 100, NULL) == TUTTI_AGAIN);
		CHECK_OK(tutti_message_send(channel, &rank, sizeof(rank), 0, 5));
		pthread_join(thread, NULL);
	}
	CHECK_OK(tutti_channel_destroy(channel));
}

static void who_waits_for_a_rank_that_left(void **unused)
{
	(void)unused;
	tutti_log_errors(0);
	run(3, probe_in_vain, NULL);
	run(2, find_what_came, NULL);
	run(2, send_to_self, NULL);
	tutti_log_errors(1);
}

/* Rank 1 destroys its communicator, and not the channel, when its link is full: nobody at rank 0 looks
 * yet, and the thread of its channel is asleep. */
static void destroy_the_communicator(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct timespec nap = { .tv_nsec = 5 * 1000 * 1000 };
	const int *many = arg;
	tutti_channel_t channel;
	tutti_comm_t child;
	int value = -1;

	(void)n;
	if (!CHECK_OK(tutti_comm_dup(comm, &child, NULL)) ||
	    !CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	nanosleep(&nap, NULL);
	for (int i = 0; i < *many && rank == 1; i++)
		CHECK_OK(tutti_message_send(channel, &i, sizeof(i), 0, 5));
	if (rank == 0) {
		nanosleep(&nap, NULL);
		for (int i = 0; i < *many; i++) {
			CHECK_OK(tutti_message_recv(channel, &value, sizeof(value), 1, 5, NULL));
			CHECK(value == i);
		}
		CHECK(tutti_message_recv(channel, &value, sizeof(value), 1, 5, NULL) ==
		      TUTTI_EPEER);
		CHECK(strstr(tutti_last_error(child), "has destroyed its channel"));
	}
	CHECK_OK(tutti_comm_destroy(child));
	/* This order is no error, and leaves none behind. */
	CHECK(tutti_message_isend(NULL, NULL, 0, 0, 0, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_channel_destroy(channel));
	CHECK(strstr(tutti_last_error(NULL), "request is NULL"));
}

/* ... or while a long message of its is under way. */
static void destroy_while_it_moves(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t nbytes = (size_t)32 << 20;
	char *data = calloc(1, nbytes);
	tutti_channel_t channel;
	tutti_request_t request;
	tutti_comm_t child;
	tutti_status st;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_comm_dup(comm, &child, NULL)) ||
	    !CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	if (rank == 0)
		CHECK_OK(tutti_message_irecv(channel, data, nbytes, 1, 5, &request));
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 1) {
		CHECK_OK(tutti_message_isend(channel, data, nbytes, 0, 5, &request));
		/* It has been taken meanwhile, most likely. */
		CHECK(tutti_message_probe(channel, 0, 6, 1, NULL) == TUTTI_AGAIN);
	} else {
		st = tutti_message_wait(channel, request, -1, NULL);
		CHECK(st == TUTTI_OK || st == TUTTI_EPEER);
		CHECK(tutti_message_recv(channel, data, nbytes, 1, 5, NULL) == TUTTI_EPEER);
		CHECK(strstr(tutti_last_error(child), "has destroyed its channel"));
	}
	CHECK_OK(tutti_comm_destroy(child));
	CHECK_OK(tutti_channel_destroy(channel));
	free(data);
}

static void who_waits_for_a_destroyed_communicator(void **unused)
{
	/* What a link holds over TCP, and in shared memory. */
	int links[] = { 32, 64 };

	(void)unused;
	tutti_log_errors(0);
	for (int i = 0; i < 4; i++)
		run(2, destroy_the_communicator, &links[i % 2]);
	run(2, destroy_while_it_moves, NULL);
	tutti_log_errors(1);
}

struct waiter {
	tutti_channel_t channel;
	bool probes;
	tutti_status status;
	char text[256];
};

static void *wait_in_vain(void *self)
{
	struct waiter *waiter = self;
	int value;

	waiter->status = waiter->probes ? tutti_message_probe(waiter->channel, 1, 5, -1, NULL)
					: tutti_message_recv(waiter->channel, &value, sizeof(value),
							     1, 5, NULL);
	snprintf(waiter->text, sizeof(waiter->text), "%s", tutti_last_error(NULL));
	return NULL;
}

/* The destruction is not held up by who waits for what does not come. */
static void destroy_beside_waiters(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	struct waiter waiters[2] = { { .probes = true }, { 0 } };
	pthread_t threads[2];
	tutti_comm_t child;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_comm_dup(comm, &child, NULL)) ||
	    !CHECK_OK(tutti_channel_create(child, &waiters[0].channel)))
		return;
	waiters[1].channel = waiters[0].channel;
	for (int i = 0; i < 2 && rank == 0; i++)
		CHECK(pthread_create(&threads[i], NULL, wait_in_vain, &waiters[i]) == 0);
	nanosleep(&nap, NULL);
	if (rank == 0)
		CHECK_OK(tutti_comm_destroy(child));
	for (int i = 0; i < 2 && rank == 0; i++) {
		pthread_join(threads[i], NULL);
		CHECK(waiters[i].status == TUTTI_EUSAGE);
		CHECK(strstr(waiters[i].text, "destroyed"));
	}
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 1)
		CHECK_OK(tutti_comm_destroy(child));
	CHECK_OK(tutti_channel_destroy(waiters[0].channel));
}

static void who_waits_in_a_destroyed_communicator(void **unused)
{
	(void)unused;
	tutti_log_errors(0);
	run(2, destroy_beside_waiters, NULL);
	tutti_log_errors(1);
}

/* Rank 2 destroys its channel because it has heard of the abort, which rank 0 may not have yet. */
static void abort_the_communicator(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };
	tutti_channel_t channel;
	tutti_comm_t child;
	int value;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_comm_dup(comm, &child, NULL)) ||
	    !CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	CHECK_OK(tutti_barrier(comm, NULL));
	nanosleep(&nap, NULL);
	if (rank == 1) {
		CHECK_OK(tutti_comm_abort(child));
	} else {
		if (rank == 2)
			CHECK(tutti_message_probe(channel, 1, 5, -1, NULL) < 0);
		else
			CHECK(tutti_message_recv(channel, &value, sizeof(value), 2, 5, NULL) < 0);
		CHECK(strstr(tutti_last_error(child), "abort"));
		CHECK(tutti_channel_destroy(channel) < 0);
		CHECK_OK(tutti_comm_destroy(child));
		return;
	}
	CHECK_OK(tutti_channel_destroy(channel));
}

/* Rank 0 is in no call when rank 1 aborts and its links close, nor while its channel's thread waits for
 * a reason. */
static void abort_beside_the_idle(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct timespec nap = { .tv_nsec = 600 * 1000 * 1000 };
	tutti_channel_t channel;
	tutti_comm_t child;
	int value;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_comm_dup(comm, &child, NULL)) ||
	    !CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 1) {
		CHECK_OK(tutti_comm_abort(child));
		CHECK_OK(tutti_channel_destroy(channel));
		return;
	}
	nanosleep(&nap, NULL);
	CHECK(tutti_message_recv(channel, &value, sizeof(value), 1, 5, NULL) == TUTTI_EPEER);
	CHECK(strstr(tutti_last_error(child), "abort"));
	CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
	CHECK(strstr(tutti_last_error(child), "abort"));
	CHECK_OK(tutti_comm_destroy(child));
}

static void who_waits_for_a_rank_that_aborts(void **unused)
{
	(void)unused;
	tutti_log_errors(0);
	run(2, abort_beside_the_idle, NULL);
	for (int i = 0; i < 5; i++)
		run(3, abort_the_communicator, NULL);
	tutti_log_errors(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_a_rank_that_left),
		cmocka_unit_test(who_waits_for_a_destroyed_communicator),
		cmocka_unit_test(who_waits_in_a_destroyed_communicator),
		cmocka_unit_test(who_waits_for_a_rank_that_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags: what becomes of those who wait when other ranks leave. The timeout ends what
 * would hang. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

#define PATIENCE_MS 20000

static void run(int n, world_fn fn)
{
	static const char *const transports[] = { "shm", "tcp" };

	for (int i = 0; i < 2; i++) {
		const struct world world = { .n = n,
					     .transport = transports[i],
					     .timeout_ms = PATIENCE_MS };

		assert_int_equal(world_run(&world, fn, NULL), 0);
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
	run(3, probe_in_vain);
	run(2, find_what_came);
	run(2, send_to_self);
	tutti_log_errors(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_a_rank_that_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

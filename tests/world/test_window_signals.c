/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows with several signals of each two ranks, between threads: in place and over TCP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

/* A window has several signals of each two ranks, which are counted apart. */
static void indexed(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	tutti_window_config config = TUTTI_WINDOW_CONFIG_INIT;
	struct tutti_signal_wait waits[] = { { prev, 4, 3 }, { next, 0, 1 }, { prev, 2, 1 } };
	tutti_window_t window = NULL;
	tutti_stream_t stream = NULL;

	(void)arg;
	config.signals = 5;
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_window_create_config(comm, NULL, 0, &config, &window));
	CHECK_OK(tutti_wait_signals(window, waits, 3, stream));
	waits[0].peer = -7; /* it was read */
	CHECK_OK(tutti_signal_index(window, next, 3, NULL));
	CHECK_OK(tutti_signal_index(window, next, 3, NULL));
	CHECK_OK(tutti_signal(window, prev, NULL));
	for (int i = 0; i < 3; i++)
		CHECK_OK(tutti_signal_index(window, next, 4, stream));
	CHECK_OK(tutti_wait_signals(window, &(struct tutti_signal_wait){ prev, 3, 2 }, 1, NULL));
	/* Behind the wait on that stream, so that nothing of it is sent yet. */
	CHECK(tutti_stream_query(stream) == TUTTI_AGAIN);
	for (int i = 0; i < 3; i++)
		CHECK_OK(tutti_signal_index(window, next, 4, NULL));
	CHECK(tutti_stream_query(stream) == TUTTI_AGAIN);
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_signal_index(window, next, 2, NULL));
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK_OK(tutti_wait_signals(window, &(struct tutti_signal_wait){ prev, 4, 3 }, 1, NULL));
	CHECK_OK(tutti_wait_signals(window, NULL, 0, NULL));
	CHECK_OK(tutti_window_destroy(window));
	CHECK_OK(tutti_stream_destroy(stream));
}

static void signals_by_index(void **state)
{
	const struct world shm = { .n = 3, .transport = "shm" },
			   tcp = { .n = 3, .transport = "tcp" };

	(void)state;
	assert_int_equal(world_run(&shm, indexed, NULL), 0);
	assert_int_equal(world_run(&tcp, indexed, NULL), 0);
}

static void wrong_signals(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_config config = TUTTI_WINDOW_CONFIG_INIT;
	const struct tutti_signal_wait good = { 0, 1, 0 }, no_rank = { n, 0, 1 },
				       no_index = { 0, 2, 1 }, many = { 0, 0, UINT64_MAX };
	tutti_window_t window = NULL;

	(void)arg;
	config.signals = 0;
	CHECK(tutti_window_create_config(comm, NULL, 0, &config, &window) == TUTTI_EINVAL);
	config.signals = TUTTI_SIGNALS_MOST + 1;
	CHECK(tutti_window_create_config(comm, NULL, 0, &config, &window) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "1025") != NULL);
	config = (tutti_window_config){ .signals = 2 };
	CHECK(tutti_window_create_config(comm, NULL, 0, &config, &window) == TUTTI_EINVAL);
	config.size = sizeof(config);
	CHECK_OK(tutti_window_create_config(comm, NULL, 0, &config, &window));
	CHECK_OK(tutti_wait_signals(window, &good, 1, NULL));
	CHECK(tutti_signal_index(window, 0, 2, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "no signal 2") != NULL);
	CHECK(tutti_signal_index(window, 0, -1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signals(window, &no_rank, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signals(window, &no_index, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signals(window, &many, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signals(window, NULL, 1, NULL) == TUTTI_EINVAL);
	CHECK(tutti_wait_signals(window, &good, -1, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_window_destroy(window));
	config.signals = 2 + rank;
	CHECK(tutti_window_create_config(comm, NULL, 0, &config, &window) == TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "2 signals on rank 0 and with 3 on rank 1") != NULL);
}

static void wrong_numbers_of_signals(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, wrong_signals, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_by_index),
		cmocka_unit_test(wrong_numbers_of_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

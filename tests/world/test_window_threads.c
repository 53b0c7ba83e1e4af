/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows that several threads of a rank use, and end, at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/handle.h"
#include "core/window/window_net.h"
#include "core/window/window_signals.h"
#include "support/world.h"

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
}

/* -- Flushes of two threads ------------------------------------------------------ */

/* What rank 1 receives lies unread while it holds its lock. */
static _Atomic bool holds, let_go, may_let_go;

static void hold(struct tti_window_net *net)
{
	/* As long as a flush that waits for nobody would take, many times over. */
	enum { LEAST_MS = 200 };

	pthread_mutex_lock(&net->lock);
	holds = true;
	while (!may_let_go)
		nap();
	for (int i = 0; i < LEAST_MS; i++)
		nap();
	let_go = true;
	pthread_mutex_unlock(&net->lock);
}

static void *flush_it(void *window)
{
	CHECK_OK(tutti_window_flush(window, 1, NULL));
	return NULL;
}

static uint64_t count_flushes(struct tti_window_net *net)
{
	uint64_t flushes;

	pthread_mutex_lock(&net->lock);
	flushes = net->peers[1].flushes;
	pthread_mutex_unlock(&net->lock);
	return flushes;
}

static void flush_beside(tutti_window_t window)
{
	pthread_t other;
	char byte = 1;

	while (!holds)
		nap();
	CHECK_OK(tutti_put(window, 1, 0, &byte, 1, NULL));
	CHECK(pthread_create(&other, NULL, flush_it, window) == 0);
	while (count_flushes(window->net) == 0)
		nap();
	may_let_go = true;
	CHECK_OK(tutti_window_flush(window, 1, NULL));
	CHECK(let_go);
	pthread_join(other, NULL);
}

static void one_waits_for_the_other(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window = NULL;
	char memory = 0;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_window_create(comm, &memory, 1, &window)))
		return;
	if (rank == 0)
		flush_beside(window);
	else
		hold(window->net);
	CHECK_OK(tutti_window_destroy(window));
}

/* As threads do that found no room in the order of their numbers. */
static void flush_in_disorder(tutti_window_t window)
{
	struct tti_window_net *net = window->net;

	while (!holds)
		nap();
	pthread_mutex_lock(&net->lock);
	net->peers[1].flushes = 2;
	for (uint64_t number = 2; number > 0; number--)
		CHECK(tti_net_send(
			&net->peers[1],
			&(struct tti_net_head){ .kind = TTI_NET_FLUSH, .number = number }, NULL,
			0));
	while (net->port->unsent > 0)
		(void)tti_net_pump(net);
	pthread_mutex_unlock(&net->lock);
	may_let_go = true;
	CHECK_OK(tutti_window_flush(window, 1, NULL));
	pthread_mutex_lock(&net->lock);
	CHECK(net->peers[1].flushed == 2);
	pthread_mutex_unlock(&net->lock);
}

static void the_newest_is_answered(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window = NULL;
	char memory = 0;

	(void)n;
	(void)arg;
	if (!CHECK_OK(tutti_window_create(comm, &memory, 1, &window)))
		return;
	if (rank == 0)
		flush_in_disorder(window);
	else
		hold(window->net);
	CHECK_OK(tutti_window_destroy(window));
}

static void flush_by_two(world_fn run)
{
	/* So that a flush that never ends does. */
	const struct world world = { .n = 2, .transport = "tcp", .timeout_ms = 30000 };

	holds = let_go = may_let_go = false;
	assert_int_equal(world_run(&world, run, NULL), 0);
}

static void a_flush_waits_for_another(void **unused)
{
	(void)unused;
	flush_by_two(one_waits_for_the_other);
}

static void flushes_in_disorder(void **unused)
{
	(void)unused;
	flush_by_two(the_newest_is_answered);
}

/* -- Ends ------------------------------------------------------------------------ */

static void *abort_it(void *comm)
{
	CHECK_OK(tutti_comm_abort(comm));
	return NULL;
}

static _Atomic bool is_destroyed;

static void *destroy_it(void *window)
{
	CHECK_OK(tutti_window_destroy(window));
	is_destroyed = true;
	return NULL;
}

/* An abort waits for a call that is under way, and takes back the window only then. */
static void an_abort_beside_destroy(void **unused)
{
	pthread_t aborts, destroys;
	tutti_window_t window;
	tutti_comm_t comm;
	char memory;
	int self;

	(void)unused;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, &memory, 1, &window), TUTTI_OK);
	assert_non_null(tti_handle_find(comm));
	assert_int_equal(pthread_create(&aborts, NULL, abort_it, comm), 0);
	while (tutti_comm_rank(comm, &self) == TUTTI_OK)
		nap();
	assert_int_equal(pthread_create(&destroys, NULL, destroy_it, window), 0);
	for (int i = 0; i < 200; i++)
		nap();
	assert_false(is_destroyed);
	tti_handle_leave(comm);
	pthread_join(aborts, NULL);
	pthread_join(destroys, NULL);
	assert_int_equal(world_failures(), 0);
}

/* As after so many communicators that the handle is used again. */
static void a_handle_of_another(void **unused)
{
	tutti_comm_t comm, other;
	tutti_window_t window;
	char memory = 0;

	(void)unused;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_comm_init_all(&other, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, &memory, 1, &window), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	window->handle = other;
	assert_int_equal(tutti_put(window, 0, 0, &memory, 1, NULL), TUTTI_EUSAGE);
	assert_int_equal(tutti_window_destroy(window), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(other), TUTTI_OK);
}

/* A rank that has not heard of the end may be about to count in what is somebody else's by now. */
static void late_signals_change_nothing(void **unused)
{
	const uint64_t key = UINT64_C(0x0123456789abcdef);
	struct tti_window_signals *signals;

	(void)unused;
	assert_int_equal(tti_signals_create(2, false, key, &signals), TUTTI_OK);
	assert_true(tti_signals_count(signals, 1, key));
	assert_true(atomic_load(&signals->from[1].word) == tti_signals_none(key) + 1);
	/* Their number begins anew without touching the key. */
	atomic_store(&signals->from[1].word, tti_signals_none(key) | TTI_SIGNALS_MOST);
	assert_true(tti_signals_count(signals, 1, key));
	assert_true(atomic_load(&signals->from[1].word) == tti_signals_none(key));
	assert_false(tti_signals_count(signals, 1, ~key));
	tti_signals_close(signals, 2);
	assert_false(tti_signals_count(signals, 1, key));
	for (uint64_t value = 0; value < 0x100; value += 0x55) {
		const uint64_t word = value * UINT64_C(0x0101010101010101);

		atomic_store(&signals->from[1].word, word);
		assert_false(tti_signals_count(signals, 1, key));
		assert_true(atomic_load(&signals->from[1].word) == word);
	}
	tti_signals_drop(signals);
}

/* Nobody but the ranks themselves keeps the counters of ranks of one process. */
static void signal_who_has_ended(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_window_t window = NULL;
	tutti_comm_t child;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	if (!CHECK_OK(tutti_window_create(child, NULL, 0, &window)))
		return;
	if (rank == 0)
		CHECK_OK(tutti_comm_destroy(child));
	CHECK_OK(tutti_barrier(comm, NULL));
	if (rank == 1) {
		CHECK(tutti_signal(window, 0, NULL) == TUTTI_EPEER);
		CHECK(strstr(tutti_last_error(child), "has ended its window"));
	}
	(void)tutti_window_destroy(window);
	if (rank == 1)
		CHECK_OK(tutti_comm_destroy(child));
}

static void an_ended_window_is_told(void **unused)
{
	(void)unused;
	assert_int_equal(world_run(&(struct world){ .n = 2, .transport = "shm" },
				   signal_who_has_ended, NULL),
			 0);
}

/* What ends the communicator may be what ends the calls that destroy waits for. */
static _Atomic bool is_queued;

static void abort_on_stream(tutti_status status, void *comm)
{
	(void)status;
	while (!is_queued)
		nap();
	/* The destroy of the other thread is under way, most likely. */
	for (int i = 0; i < 50; i++)
		nap();
	CHECK_OK(tutti_comm_abort(comm));
}

static void an_abort_on_a_stream_beside_destroy(void **unused)
{
	tutti_window_t window;
	tutti_stream_t stream;
	tutti_comm_t comm;
	char memory = 0;

	(void)unused;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	assert_int_equal(tutti_window_create(comm, &memory, 1, &window), TUTTI_OK);
	assert_int_equal(tutti_stream_call(stream, abort_on_stream, comm), TUTTI_OK);
	assert_int_equal(tutti_put(window, 0, 0, &memory, 1, stream), TUTTI_OK);
	is_queued = true;
	assert_int_equal(tutti_window_destroy(window), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(stream), TUTTI_EUSAGE);
	(void)tutti_stream_destroy(stream); /* the same */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flush_waits_for_another),
		cmocka_unit_test(flushes_in_disorder),
		cmocka_unit_test(an_abort_beside_destroy),
		cmocka_unit_test(a_handle_of_another),
		cmocka_unit_test(late_signals_change_nothing),
		cmocka_unit_test(an_ended_window_is_told),
		cmocka_unit_test(an_abort_on_a_stream_beside_destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

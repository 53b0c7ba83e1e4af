/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events, copies, captures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "gpu/cuda_turn.h"
#include "util/clock.h"
#include "util/error.h"

#define NBYTES 100000

/* Ten times what the slowest machine needs. */
#define PATIENCE_MS 20000

static struct tti_gpu *gpu;

static int begin(void **state)
{
	(void)state;
	return tti_gpu_open(0, &gpu) != TUTTI_OK;
}

static int end(void **state)
{
	static const struct tti_gpu_held none;
	struct tti_gpu_held held;

	(void)state;
	tti_gpu_close(gpu);
	tti_gpu_held(&held);
	return memcmp(&held, &none, sizeof(held));
}

static void wait_until_set(void *arg)
{
	const struct timespec nap = { .tv_nsec = TTI_NS_PER_MS };

	while (!atomic_load((atomic_int *)arg))
		nanosleep(&nap, NULL);
}

static void copies_are_in_the_order_of_their_stream(void **state)
{
	uint8_t *host = malloc(NBYTES), *seen = malloc(NBYTES);
	void *stream, *other, *event;
	uint64_t a, b;

	(void)state;
	for (size_t i = 0; i < NBYTES; i++)
		host[i] = (uint8_t)(i * 7);
	assert_int_equal(tti_gpu_stream_create(gpu, true, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_create(gpu, false, &other), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_check(gpu, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_check(gpu, NULL), TUTTI_OK);
	assert_int_equal(tti_gpu_event_create(gpu, &event), TUTTI_OK);
	assert_int_equal(tti_gpu_alloc(gpu, NBYTES, &a), TUTTI_OK);
	assert_int_equal(tti_gpu_alloc(gpu, NBYTES, &b), TUTTI_OK);
	assert_int_equal(tti_gpu_write(gpu, a, host, NBYTES), TUTTI_OK);
	assert_int_equal(tti_gpu_zero(gpu, b, NBYTES), TUTTI_OK);

	assert_int_equal(tti_gpu_copy(gpu, b, a, NBYTES, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_event_record(gpu, event, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_event_await(gpu, event, other), TUTTI_OK);
	assert_int_equal(tti_gpu_copy(gpu, b, a + 10, 10, other), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_wait(gpu, other), TUTTI_OK);
	assert_int_equal(tti_gpu_read(gpu, seen, b, NBYTES), TUTTI_OK);
	memcpy(host, host + 10, 10);
	assert_memory_equal(seen, host, NBYTES);

	tti_gpu_free(gpu, a);
	tti_gpu_free(gpu, b);
	tti_gpu_event_destroy(gpu, event);
	tti_gpu_stream_destroy(gpu, other);
	tti_gpu_stream_destroy(gpu, stream);
	free(host);
	free(seen);
}

static void a_stream_of_another_device_is_refused(void **state)
{
	struct tti_gpu *other;
	void *stream;

	(void)state;
	assert_int_equal(tti_gpu_open(2, &other), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_create(other, false, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_check(other, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_check(gpu, stream), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "is of GPU 2, the communicator of GPU 0"));
	tti_gpu_stream_destroy(other, stream);
	tti_gpu_close(other);
}

static void what_is_not_done_yet_is_told(void **state)
{
	atomic_int is_set = 0;
	void *stream;

	(void)state;
	assert_int_equal(tti_gpu_stream_create(gpu, false, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_query(gpu, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_call(gpu, wait_until_set, &is_set, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_query(gpu, stream), TUTTI_AGAIN);
	/* What is waited for elsewhere does not wait for it. */
	assert_int_equal(tti_gpu_health(gpu), TUTTI_OK);
	atomic_store(&is_set, 1);
	assert_int_equal(tti_gpu_stream_wait(gpu, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_query(gpu, stream), TUTTI_OK);
	tti_gpu_stream_destroy(gpu, stream);
}

/* -- Turns ------------------------------------------------------------------------- */

/* The host reads and writes at its turns what the stream has by then. Two streams whose turns wait for
 * each other go on, too. */
static void the_host_has_turns_in_a_stream(void **state)
{
	struct tti_gpu_turns *turns[2];
	uint8_t byte, seen[3] = { 0 };
	void *stream[2], *event[2][2];
	uint64_t at;

	(void)state;
	assert_int_equal(tti_gpu_alloc(gpu, 4, &at), TUTTI_OK);
	assert_int_equal(tti_gpu_zero(gpu, at, 4), TUTTI_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tti_gpu_stream_create(gpu, false, &stream[i]), TUTTI_OK);
		assert_int_equal(tti_gpu_turns_open(stream[i], &turns[i]), TUTTI_OK);
		for (int turn = 0; turn < 2; turn++) {
			assert_int_equal(tti_gpu_turn_add(turns[i], &event[i][turn]), TUTTI_OK);
			if (i == 0)
				assert_int_equal(tti_gpu_copy(gpu, at + 1 + (unsigned)turn,
							      at + (unsigned)turn, 1, stream[i]),
						 TUTTI_OK);
		}
	}
	assert_int_equal(tti_gpu_turn_await(turns[0], event[0][0]), TUTTI_OK);
	assert_int_equal(tti_gpu_turn_await(turns[1], event[1][0]), TUTTI_OK);
	tti_gpu_turn_end(turns[1]);
	assert_int_equal(tti_gpu_turn_await(turns[1], event[1][1]), TUTTI_OK);
	byte = 7;
	assert_int_equal(tti_gpu_write(gpu, at, &byte, 1), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_query(gpu, stream[0]), TUTTI_AGAIN);
	tti_gpu_turn_end(turns[0]);
	assert_int_equal(tti_gpu_turn_await(turns[0], event[0][1]), TUTTI_OK);
	assert_int_equal(tti_gpu_read(gpu, seen, at, 3), TUTTI_OK);
	assert_true(seen[0] == 7 && seen[1] == 7 && seen[2] == 0);
	byte = 9;
	assert_int_equal(tti_gpu_write(gpu, at + 1, &byte, 1), TUTTI_OK);
	for (int i = 0; i < 2; i++)
		tti_gpu_turn_end(turns[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tti_gpu_stream_wait(gpu, stream[i]), TUTTI_OK);
		tti_gpu_turns_close(turns[i]);
		tti_gpu_stream_destroy(gpu, stream[i]);
	}
	assert_int_equal(tti_gpu_read(gpu, seen, at, 3), TUTTI_OK);
	assert_true(seen[2] == 9);
	tti_gpu_free(gpu, at);
}

/* -- Captures ---------------------------------------------------------------------- */

static struct {
	int (*begin)(void *stream, int mode);
	int (*end)(void *stream, void **graph);
	int (*instantiate)(void **exec, void *graph, unsigned long long flags);
	int (*launch)(void *exec, void *stream);
	int (*graph_destroy)(void *graph), (*exec_destroy)(void *exec);
} graphs;

static void find_graphs(void)
{
	struct tti_gpu_driver *driver = tti_gpu_driver_of(gpu);

	*(void **)&graphs.begin = tti_gpu_driver_symbol(driver, "cuStreamBeginCapture_v2");
	*(void **)&graphs.end = tti_gpu_driver_symbol(driver, "cuStreamEndCapture");
	*(void **)&graphs.instantiate =
		tti_gpu_driver_symbol(driver, "cuGraphInstantiateWithFlags");
	*(void **)&graphs.launch = tti_gpu_driver_symbol(driver, "cuGraphLaunch");
	*(void **)&graphs.graph_destroy = tti_gpu_driver_symbol(driver, "cuGraphDestroy");
	*(void **)&graphs.exec_destroy = tti_gpu_driver_symbol(driver, "cuGraphExecDestroy");
}

static void count(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* Memory can be made and written, and what is put into the stream is run as often as the graph. */
static void memory_is_made_while_a_stream_is_captured(void **state)
{
	struct tti_gpu_capture capture, again;
	struct tti_gpu_memory *memory;
	struct tti_gpu_turns *turns;
	void *stream, *graph, *exec, *host, *event;
	atomic_int calls = 0, ends = 0;
	uint64_t at, host_at;
	tutti_status status;
	uint8_t byte = 9;

	(void)state;
	find_graphs();
	assert_int_equal(tti_gpu_stream_create(gpu, false, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_capture(gpu, stream, &capture), TUTTI_OK);
	assert_false(capture.is_active);
	assert_int_equal(graphs.begin(stream, 0), 0); /* CU_STREAM_CAPTURE_MODE_GLOBAL */
	assert_int_equal(tti_gpu_capture(gpu, stream, &capture), TUTTI_OK);
	assert_true(capture.is_active && capture.id && capture.graph);

	assert_int_equal(tti_gpu_alloc(gpu, NBYTES, &at), TUTTI_OK);
	assert_int_equal(tti_gpu_zero(gpu, at, NBYTES), TUTTI_OK);
	assert_int_equal(tti_gpu_pinned_alloc(gpu, NBYTES, &host, &host_at), TUTTI_OK);
	assert_int_equal(tti_gpu_memory_create(gpu, NBYTES, &memory), TUTTI_OK);
	assert_int_equal(tti_gpu_write(gpu, memory->at, &byte, 1), TUTTI_OK);
	assert_int_equal(tti_gpu_copy(gpu, at, memory->at, 1, stream), TUTTI_OK);
	assert_int_equal(tti_gpu_call(gpu, count, &calls, stream), TUTTI_OK);
	status = tti_gpu_capture_keep(gpu, &capture, count, &ends);
	if (status == TUTTI_EUNSUPPORTED)
		atomic_store(&ends, 1);
	else
		assert_int_equal(status, TUTTI_OK);
	assert_int_equal(tti_gpu_capture(gpu, stream, &again), TUTTI_OK);
	assert_true(again.is_active && again.id == capture.id);
	assert_int_equal(tti_gpu_turns_open(stream, &turns), TUTTI_OK);
	assert_int_equal(tti_gpu_turn_add(turns, &event), TUTTI_EUNSUPPORTED);
	tti_gpu_turns_close(turns);
	assert_int_equal(graphs.end(stream, &graph), 0);
	assert_int_equal(graphs.instantiate(&exec, graph, 0), 0);
	assert_int_equal(atomic_load(&calls), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(graphs.launch(exec, stream), 0);
	assert_int_equal(tti_gpu_stream_wait(gpu, stream), TUTTI_OK);
	assert_int_equal(atomic_load(&calls), 3);
	byte = 0;
	assert_int_equal(tti_gpu_read(gpu, &byte, at, 1), TUTTI_OK);
	assert_int_equal(byte, 9);
	assert_int_equal(graphs.exec_destroy(exec), 0);
	assert_int_equal(graphs.graph_destroy(graph), 0);
	wait_until_set(&ends);
	assert_int_equal(atomic_load(&ends), 1);

	tti_gpu_memory_free(memory);
	tti_gpu_pinned_free(gpu, host);
	tti_gpu_free(gpu, at);
	tti_gpu_stream_destroy(gpu, stream);
}

struct closing {
	struct tti_gpu_turns *turns;
	atomic_int is_closed;
};

static void *close_turns(void *arg)
{
	struct closing *closing = arg;

	tti_gpu_turns_close(closing->turns);
	atomic_store(&closing->is_closed, 1);
	return NULL;
}

/* A kernel of another rank of the process may wait for what this thread does next. */
static void the_end_of_turns_waits_for_no_other_stream(void **state)
{
	const struct timespec nap = { .tv_nsec = TTI_NS_PER_MS };
	struct closing closing = { .turns = NULL };
	struct tti_gpu_held before, after;
	atomic_int is_open = 0;
	void *busy, *stream, *event;
	pthread_t thread;
	int is_closed;

	(void)state;
	assert_int_equal(tti_gpu_stream_create(gpu, true, &busy), TUTTI_OK);
	assert_int_equal(tti_gpu_stream_create(gpu, true, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_turns_open(stream, &closing.turns), TUTTI_OK);
	assert_int_equal(tti_gpu_turn_add(closing.turns, &event), TUTTI_OK);
	assert_int_equal(tti_gpu_turn_await(closing.turns, event), TUTTI_OK);
	tti_gpu_turn_end(closing.turns);
	assert_int_equal(tti_gpu_call(gpu, wait_until_set, &is_open, busy), TUTTI_OK);
	assert_int_equal(pthread_create(&thread, NULL, close_turns, &closing), 0);
	for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&closing.is_closed); ms++)
		nanosleep(&nap, NULL);
	is_closed = atomic_load(&closing.is_closed);
	atomic_store(&is_open, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(is_closed);
	/* Whoever comes next has the memory. */
	tti_gpu_held(&before);
	assert_int_equal(tti_gpu_turns_open(stream, &closing.turns), TUTTI_OK);
	tti_gpu_held(&after);
	assert_int_equal(after.pinned, before.pinned);
	tti_gpu_turns_close(closing.turns);
	tti_gpu_stream_destroy(gpu, stream);
	tti_gpu_stream_destroy(gpu, busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_in_the_order_of_their_stream),
		cmocka_unit_test(a_stream_of_another_device_is_refused),
		cmocka_unit_test(what_is_not_done_yet_is_told),
		cmocka_unit_test(the_host_has_turns_in_a_stream),
		cmocka_unit_test(the_end_of_turns_waits_for_no_other_stream),
		cmocka_unit_test(memory_is_made_while_a_stream_is_captured),
	};

	return cmocka_run_group_tests(tests, begin, end);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a graph that each launch calls: in the thread that launches, with the stream of the launch, and
 * what they queue comes in their place among the graph's jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/device.h"
#include "engine/graph.h"

#define LAUNCHES 100

static pthread_t launcher;
static int ncalls, ndrops, order[4 * LAUNCHES];
static _Atomic int norder;
static void *seen_stream;

static int note(void *arg)
{
	order[atomic_fetch_add(&norder, 1)] = (int)(intptr_t)arg;
	return 0;
}

static void push_note(struct tti_cuda_stream *stream, int number)
{
	assert_int_equal(tti_cuda_stream_push(
				 stream, &(struct tti_cuda_job){ .run = note,
								 .arg = (void *)(intptr_t)number,
								 .kind = TTI_CUDA_NODE_HOST }),
			 0);
}

/* Queues 2, where the graph has 1 before it and 3 behind it. */
static int on_launch(void *arg, void *handle)
{
	int error;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, false, &error);

	assert_ptr_equal(arg, &ncalls);
	assert_true(pthread_equal(pthread_self(), launcher));
	ncalls++;
	seen_stream = handle;
	push_note(stream, 2);
	return 0;
}

static int fail_on_launch(void *arg, void *handle)
{
	(void)arg;
	(void)handle;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "nothing can be launched");
}

static void on_drop(void *arg)
{
	(void)arg;
	ndrops++;
}

static struct tti_cuda_exec *capture(int (*launch)(void *arg, void *stream))
{
	struct tti_cuda_stream *stream;
	struct tti_cuda_graph *graph;
	struct tti_cuda_exec *exec;

	assert_int_equal(tti_cuda_stream_create(0, 0, &stream), 0);
	assert_int_equal(tti_cuda_capture_begin(stream, TTI_CUDA_CAPTURE_GLOBAL, NULL, NULL, 0), 0);
	push_note(stream, 1);
	assert_int_equal(tti_cuda_capture_launcher(stream, launch, on_drop, &ncalls), 0);
	push_note(stream, 3);
	assert_int_equal(tti_cuda_capture_end(stream, &graph), 0);
	assert_int_equal(tti_cuda_graph_instantiate(graph, &exec), 0);
	assert_int_equal(tti_cuda_graph_destroy(graph), 0);
	assert_int_equal(tti_cuda_stream_destroy(stream), 0);
	return exec;
}

static int setup(void **state)
{
	(void)state;
	launcher = pthread_self();
	ncalls = ndrops = 0;
	atomic_store(&norder, 0);
	return 0;
}

static void each_launch_queues_in_its_place(void **state)
{
	struct tti_cuda_exec *exec = capture(on_launch);
	struct tti_cuda_stream *stream;

	(void)state;
	assert_int_equal(tti_cuda_stream_create(0, 0, &stream), 0);
	assert_int_equal(ncalls, 0);
	for (int i = 0; i < LAUNCHES; i++)
		assert_int_equal(tti_cuda_exec_launch(exec, stream), 0);
	assert_int_equal(ncalls, LAUNCHES);
	assert_ptr_equal(seen_stream, stream);
	assert_int_equal(tti_cuda_exec_destroy(exec), 0);
	assert_int_equal(tti_cuda_stream_synchronize(stream), 0);
	assert_int_equal(atomic_load(&norder), 3 * LAUNCHES);
	for (int i = 0; i < 3 * LAUNCHES; i++)
		assert_int_equal(order[i], 1 + i % 3);
	assert_int_equal(ndrops, 1);
	assert_int_equal(tti_cuda_stream_destroy(stream), 0);
}

static void default_streams_are_named_by_their_handles(void **state)
{
	struct tti_cuda_exec *exec = capture(on_launch);
	int error;

	(void)state;
	for (uintptr_t handle = 1; handle <= 2; handle++) {
		struct tti_cuda_stream *stream = tti_cuda_stream_get((void *)handle, false, &error);

		assert_int_equal(tti_cuda_exec_launch(exec, stream), 0);
		assert_ptr_equal(seen_stream, (void *)handle);
		assert_int_equal(tti_cuda_stream_synchronize(stream), 0);
	}
	assert_int_equal(tti_cuda_exec_destroy(exec), 0);
}

static void a_launch_fails_with_it(void **state)
{
	struct tti_cuda_exec *exec = capture(fail_on_launch);
	struct tti_cuda_stream *stream;

	(void)state;
	assert_int_equal(tti_cuda_stream_create(0, 0, &stream), 0);
	assert_int_equal(tti_cuda_exec_launch(exec, stream), TTI_CUDA_EINVAL);
	assert_int_equal(tti_cuda_stream_synchronize(stream), 0);
	assert_int_equal(tti_cuda_exec_destroy(exec), 0);
	assert_int_equal(tti_cuda_stream_destroy(stream), 0);
	assert_int_equal(ndrops, 1);
}

static void only_a_captured_stream_takes_one(void **state)
{
	struct tti_cuda_stream *stream;

	(void)state;
	assert_int_equal(tti_cuda_stream_create(0, 0, &stream), 0);
	assert_int_equal(tti_cuda_capture_launcher(stream, on_launch, on_drop, NULL),
			 TTI_CUDA_ESTATE);
	assert_int_equal(ndrops, 1);
	assert_int_equal(tti_cuda_stream_destroy(stream), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_launch_queues_in_its_place, setup),
		cmocka_unit_test_setup(default_streams_are_named_by_their_handles, setup),
		cmocka_unit_test_setup(a_launch_fails_with_it, setup),
		cmocka_unit_test_setup(only_a_captured_stream_takes_one, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What captured calls hold: it is given back when their graph is gone, and a graph that outlives its
 * communicator, or runs when that ends, does no harm. And calls in several streams, of which one is captured
 * meanwhile, or has other work behind its call, or is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/device/flight.h"
#include "gpu.h"
#include "gpu/cuda_stream.h"
#include "ranks.h"
#include "support/world.h"

#define COUNT 2000
#define N     2

/* Ten times what the slowest machine needs. */
#define PATIENCE_MS 60000

static void nap(void)
{
	const struct timespec ms = { .tv_nsec = 1000 * 1000 };

	nanosleep(&ms, NULL);
}

/* Two ranks of this thread, each with its GPU. */
struct pair {
	tutti_comm_t comm[N];
	struct tti_comm *inside[N];
	struct gpu_buffer buffer[N], other[N];
	struct gpu_stream stream[N];
	void *graph[N];
};

static void open_pair(struct pair *pair)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.device = 1;
	assert_int_equal(tutti_comm_init_all(pair->comm, N, &config), TUTTI_OK);
	for (int i = 0; i < N; i++) {
		pair->inside[i] = ranks_inside(pair->comm[i]);
		gpu_alloc(&pair->buffer[i], 1, COUNT * sizeof(uint32_t));
		gpu_alloc(&pair->other[i], 1, COUNT * sizeof(uint32_t));
		gpu_stream_open(&pair->stream[i], &pair->buffer[i]);
		for (uint32_t k = 0; k < COUNT; k++)
			((uint32_t *)(void *)pair->buffer[i].view)[k] = k;
	}
}

static void close_pair(struct pair *pair)
{
	for (int i = 0; i < N; i++) {
		if (pair->comm[i])
			assert_int_equal(tutti_comm_destroy(pair->comm[i]), TUTTI_OK);
		assert_int_equal(gpu_stream_close(&pair->stream[i]), TUTTI_OK);
		gpu_free(&pair->buffer[i]);
		gpu_free(&pair->other[i]);
	}
}

static bool is_times(const struct gpu_buffer *buffer, uint32_t times)
{
	const uint32_t *at = (const uint32_t *)(const void *)buffer->view;
	uint32_t k = 0;

	while (k < COUNT && at[k] == k * times)
		k++;
	return k == COUNT;
}

/* A sum, and an exchange whose chunks have lengths of their own. */
static void call(struct pair *pair, int i)
{
	static const size_t counts[N] = { COUNT / 2, COUNT / 2 }, at[N] = { 0, COUNT / 2 };

	assert_int_equal(tutti_all_reduce(pair->buffer[i].memory, pair->buffer[i].memory, COUNT,
					  TUTTI_UINT32, TUTTI_SUM, pair->comm[i],
					  pair->stream[i].tutti),
			 TUTTI_OK);
	assert_int_equal(tutti_all_to_all_v(pair->buffer[i].memory, counts, at,
					    pair->other[i].memory, counts, at, TUTTI_UINT32,
					    pair->comm[i], pair->stream[i].tutti),
			 TUTTI_OK);
}

static void capture(struct pair *pair)
{
	for (int i = 0; i < N; i++) {
		gpu_capture_begin(&pair->stream[i]);
		call(pair, i);
		pair->graph[i] = gpu_capture_end(&pair->stream[i]);
	}
}

/* It makes lanes, by which ranks wait for each other. */
static void first_call(struct pair *pair)
{
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int i = 0; i < N; i++)
		assert_int_equal(tutti_all_reduce(pair->other[i].memory, pair->other[i].memory,
						  COUNT, TUTTI_UINT32, TUTTI_SUM, pair->comm[i],
						  pair->stream[i].tutti),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int i = 0; i < N; i++)
		gpu_stream_wait(&pair->stream[i]);
}

static void await_no_graphs(const struct tti_flights *flights)
{
	for (int ms = 0; ms < PATIENCE_MS && atomic_load(&flights->ncaptured) > 0; ms++)
		nap();
	assert_int_equal(atomic_load(&flights->ncaptured), 0);
}

/* Every graph has rooms of its own while it is there, and the next one has the same. */
static void what_a_graph_holds_is_given_back(void **state)
{
	struct pair pair = { 0 };
	size_t nrooms = 0;

	(void)state;
	open_pair(&pair);
	first_call(&pair);
	for (int times = 0; times < 10; times++) {
		capture(&pair);
		for (int i = 0; i < N; i++)
			gpu_graph_launch(pair.graph[i], &pair.stream[i]);
		for (int i = 0; i < N; i++) {
			gpu_stream_wait(&pair.stream[i]);
			assert_int_equal(atomic_load(&pair.inside[i]->device->flights->ncaptured),
					 2);
			gpu_graph_free(pair.graph[i], &pair.stream[i]);
			await_no_graphs(pair.inside[i]->device->flights);
		}
		if (times == 0)
			nrooms = pair.inside[0]->device->rooms.n;
		assert_int_equal(pair.inside[0]->device->rooms.n, nrooms);
	}
	for (int i = 0; i < N; i++)
		assert_true(is_times(&pair.buffer[i], 1024));
	close_pair(&pair);
	ranks_assert_nothing_held();
}

/* Launched after the end of its communicators, alone, a graph writes nothing and is over at once. */
static void a_graph_may_outlive_its_communicator(void **state)
{
	struct tti_gpu_held held;
	struct pair pair = { 0 };
	struct ranks ranks;

	(void)state;
	open_pair(&pair);
	first_call(&pair);
	capture(&pair);
	for (int i = 0; i < N; i++) {
		assert_int_equal(tutti_comm_destroy(pair.comm[i]), TUTTI_OK);
		pair.comm[i] = NULL;
	}
	for (int times = 0; times < 2; times++) {
		gpu_graph_launch(pair.graph[0], &pair.stream[0]);
		gpu_stream_wait(&pair.stream[0]);
	}
	assert_true(is_times(&pair.buffer[0], 1));
	for (int i = 0; i < N; i++)
		gpu_graph_free(pair.graph[i], &pair.stream[i]);
	close_pair(&pair);
	/* Whoever comes next frees what was left. */
	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		ranks_make(&ranks, 1, (const int[]){ 0 }, false);
		ranks_end(&ranks);
		tti_gpu_held(&held);
		if (held.gpus == 0)
			break;
	}
	ranks_assert_nothing_held();
}

static _Atomic bool is_destroyed;

static void *destroy(void *comm)
{
	CHECK_OK(tutti_comm_destroy(comm));
	atomic_store(&is_destroyed, true);
	return NULL;
}

/* Rank 0 runs a graph and waits for rank 1, which is held up in its stream. */
static void the_end_of_a_communicator_waits_for_graphs(void **state)
{
	_Atomic bool open = false;
	struct pair pair = { 0 };
	pthread_t thread;

	(void)state;
	atomic_store(&is_destroyed, false);
	open_pair(&pair);
	first_call(&pair);
	capture(&pair);
	gpu_stream_hold(&pair.stream[1], &open);
	for (int i = 0; i < N; i++)
		gpu_graph_launch(pair.graph[i], &pair.stream[i]);
	for (int ms = 0; ms < PATIENCE_MS; ms++, nap())
		if (__atomic_load_n(&pair.inside[0]->device->control->runs[0], __ATOMIC_ACQUIRE))
			break;
	assert_int_equal(pthread_create(&thread, NULL, destroy, pair.comm[0]), 0);
	pair.comm[0] = NULL;
	for (int ms = 0; ms < 100; ms++)
		nap();
	assert_false(atomic_load(&is_destroyed));
	atomic_store(&open, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < N; i++) {
		gpu_stream_wait(&pair.stream[i]);
		gpu_graph_free(pair.graph[i], &pair.stream[i]);
	}
	for (int i = 0; i < N; i++)
		assert_true(is_times(&pair.buffer[i], 2));
	close_pair(&pair);
}

/* An abort waits for nobody. */
static void an_abort_ends_graphs(void **state)
{
	struct pair pair = { 0 };

	(void)state;
	open_pair(&pair);
	first_call(&pair);
	capture(&pair);
	gpu_graph_launch(pair.graph[0], &pair.stream[0]);
	assert_int_equal(tutti_comm_abort(pair.comm[0]), TUTTI_OK);
	pair.comm[0] = NULL;
	gpu_stream_wait(&pair.stream[0]);
	for (int i = 0; i < N; i++)
		gpu_graph_free(pair.graph[i], &pair.stream[i]);
	assert_int_equal(tutti_comm_destroy(pair.comm[1]), TUTTI_OK);
	pair.comm[1] = NULL;
	close_pair(&pair);
}

/* Rank 0 has a call in its stream, which waits for rank 1. `meanwhile` comes to that stream, and then the next
 * call goes into another one. */
static void change_streams(void (*meanwhile)(struct pair *pair), void (*then)(struct pair *pair))
{
	struct gpu_stream second;
	struct pair pair = { 0 };

	open_pair(&pair);
	first_call(&pair);
	gpu_stream_open(&second, &pair.buffer[0]);
	call(&pair, 0);
	meanwhile(&pair);
	assert_int_equal(tutti_all_reduce(pair.buffer[0].memory, pair.buffer[0].memory, COUNT,
					  TUTTI_UINT32, TUTTI_SUM, pair.comm[0], second.tutti),
			 TUTTI_OK);
	call(&pair, 1);
	assert_int_equal(tutti_all_reduce(pair.buffer[1].memory, pair.buffer[1].memory, COUNT,
					  TUTTI_UINT32, TUTTI_SUM, pair.comm[1],
					  pair.stream[1].tutti),
			 TUTTI_OK);
	gpu_stream_wait(&second);
	gpu_stream_wait(&pair.stream[1]);
	then(&pair);
	for (int i = 0; i < N; i++)
		assert_true(is_times(&pair.buffer[i], 4));
	assert_int_equal(gpu_stream_close(&second), TUTTI_OK);
	close_pair(&pair);
	ranks_assert_nothing_held();
}

static void begin_capture(struct pair *pair)
{
	gpu_capture_begin(&pair->stream[0]);
}

static void end_capture(struct pair *pair)
{
	gpu_graph_free(gpu_capture_end(&pair->stream[0]), &pair->stream[0]);
}

static void a_capture_may_begin_behind_a_call(void **state)
{
	(void)state;
	change_streams(begin_capture, end_capture);
}

static _Atomic bool is_open;

static void hold_up(struct pair *pair)
{
	gpu_stream_hold(&pair->stream[0], &is_open);
}

static void let_go(struct pair *pair)
{
	(void)pair;
	atomic_store(&is_open, true);
}

/* The next call does not wait for it. */
static void other_work_may_be_behind_a_call(void **state)
{
	(void)state;
	atomic_store(&is_open, false);
	change_streams(hold_up, let_go);
}

/* CUDA ends its work first. */
static void destroy_stream(struct pair *pair)
{
	tti_gpu_stream_destroy(pair->stream[0].gpu, pair->stream[0].cuda);
}

static void make_stream(struct pair *pair)
{
	assert_int_equal(tti_gpu_stream_create(pair->stream[0].gpu, false, &pair->stream[0].cuda),
			 TUTTI_OK);
}

static void a_stream_may_be_gone_before_its_call_is_over(void **state)
{
	(void)state;
	change_streams(destroy_stream, make_stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_graph_holds_is_given_back),
		cmocka_unit_test(a_graph_may_outlive_its_communicator),
		cmocka_unit_test(the_end_of_a_communicator_waits_for_graphs),
		cmocka_unit_test(an_abort_ends_graphs),
		cmocka_unit_test(a_capture_may_begin_behind_a_call),
		cmocka_unit_test(other_work_may_be_behind_a_call),
		cmocka_unit_test(a_stream_may_be_gone_before_its_call_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/captures.h"

static void run_graph(const struct tti_cuda_graph *graph, struct tti_cuda_stream *stream, int times)
{
	struct tti_cuda_exec *exec = NULL;

	assert_ok(tti_cuda_graph_instantiate(graph, &exec));
	for (int i = 0; i < times; i++)
		assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_exec_destroy(exec));
}

/* `to` comes behind what `from` has. */
static void join(struct tti_cuda_stream *from, struct tti_cuda_stream *to)
{
	struct tti_cuda_event *event;

	assert_ok(tti_cuda_device_set(tti_cuda_stream_device(from)));
	event = make_event(TTI_CUDA_EVENT_NO_TIMING);
	assert_ok(tti_cuda_event_record(event, from));
	assert_ok(tti_cuda_event_await(event, to));
	assert_ok(tti_cuda_event_destroy(event));
}

static void jobs_of_a_captured_stream_run_when_the_graph_does(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_graph *graph;
	size_t n = 0;

	(void)state;
	begin(stream, GLOBAL);
	for (int i = 0; i < 3; i++)
		push_step(stream, &steps[i]);
	graph = end(stream);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(atomic_load(&diary.n), 0);
	assert_ok(tti_cuda_graph_edges(graph, NULL, NULL, &n));
	assert_int_equal(n, 2);
	run_graph(graph, stream, 100);
	assert_int_equal(atomic_load(&diary.n), 300);
	for (int i = 0; i < 300; i++)
		assert_int_equal(atomic_load(&diary.at[i]), i % 3);
	assert_ok(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 3; i++)
		assert_int_equal(atomic_load(&steps[i].ndrops), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void streams_join_by_events(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other;
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_graph *graph;
	struct tti_cuda_node *from[8], *to[8];
	size_t n = 8;

	(void)state;
	assert_ok(tti_cuda_device_set(1));
	other = make_stream(0);
	begin(stream, GLOBAL);
	push_step(stream, &steps[0]);
	join(stream, other);
	assert_int_equal(state_of(other), TTI_CUDA_CAPTURE_ACTIVE);
	push_step(other, &steps[1]);
	push_step(stream, &steps[2]);
	join(other, stream);
	push_step(stream, &steps[3]);
	graph = end(stream);
	assert_int_equal(state_of(other), TTI_CUDA_CAPTURE_NONE);
	assert_ok(tti_cuda_graph_edges(graph, from, to, &n));
	assert_int_equal(n, 4); /* 0-1 0-2 1-3 2-3 */
	assert_ptr_equal(tti_cuda_node_arg(to[0]), &steps[1]);
	assert_ptr_equal(tti_cuda_node_arg(to[1]), &steps[2]);
	assert_ptr_equal(tti_cuda_node_arg(from[2]), &steps[1]);
	assert_ptr_equal(tti_cuda_node_arg(from[3]), &steps[2]);
	run_graph(graph, stream, 1);
	ASSERT_DIARY(&diary, 0, 1, 2, 3);
	push_step(other, &steps[4]); /* not captured any more */
	assert_ok(tti_cuda_stream_synchronize(other));
	assert_int_equal(atomic_load(&steps[4].nruns), 1);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_stream_that_is_not_joined_is_an_error(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct step step = { .number = 1 };

	(void)state;
	begin(stream, GLOBAL);
	push_step(stream, &step);
	join(stream, other);
	join(other, stream);
	push_step(other, &step);
	end_with(TTI_CUDA_EUNJOINED, stream);
	assert_text("does not wait for it");
	assert_int_equal(atomic_load(&step.ndrops), 2);
	assert_int_equal(state_of(stream), TTI_CUDA_CAPTURE_NONE);
	assert_int_equal(state_of(other), TTI_CUDA_CAPTURE_NONE);
	begin(stream, GLOBAL);
	push_step(stream, &step);
	join(stream, other); /* without a job: nothing to join */
	assert_ok(tti_cuda_graph_destroy(end(stream)));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

/* -- Threads ------------------------------------------------------------------------------- */

static void *capture_alone(void *arg)
{
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_stream *stream = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct tti_cuda_stream *other = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);

	(void)arg;
	for (int i = 0; i < 30; i++) {
		struct tti_cuda_graph *graph;

		begin(stream, THREAD);
		push_step(stream, &steps[0]);
		join(stream, other);
		push_step(other, &steps[1]);
		join(other, stream);
		push_step(stream, &steps[2]);
		graph = end(stream);
		run_graph(graph, other, 2);
		assert_ok(tti_cuda_graph_destroy(graph));
	}
	assert_int_equal(atomic_load(&diary.n), 180);
	for (int i = 0; i < 180; i++)
		assert_int_equal(atomic_load(&diary.at[i]), i % 3);
	assert_int_equal(atomic_load(&steps[1].ndrops), 30);
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
	return NULL;
}

static void threads_capture_beside_each_other(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, capture_alone, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

struct pushes {
	struct tti_cuda_stream *stream;
	struct step *step;
};

static void *push_many(void *arg)
{
	const struct pushes *pushes = arg;

	for (int i = 0; i < 200; i++)
		push_step(pushes->stream, pushes->step);
	return NULL;
}

static void threads_push_to_one_capture(void **state)
{
	struct tti_cuda_stream *streams[4];
	struct step step = { .number = 1 };
	struct pushes pushes[4];
	pthread_t threads[4];
	struct tti_cuda_graph *graph;

	(void)state;
	for (int i = 0; i < 4; i++)
		streams[i] = make_stream(0);
	begin(streams[0], RELAXED);
	for (int i = 1; i < 4; i++)
		join(streams[0], streams[i]);
	for (int i = 0; i < 4; i++) {
		pushes[i] = (struct pushes){ streams[i], &step };
		pthread_create(&threads[i], NULL, push_many, &pushes[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 4; i++)
		join(streams[i], streams[0]);
	graph = end(streams[0]);
	run_graph(graph, streams[0], 1);
	assert_int_equal(atomic_load(&step.nruns), 800);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_int_equal(atomic_load(&step.ndrops), 800);
	for (int i = 0; i < 4; i++)
		assert_ok(tti_cuda_stream_destroy(streams[i]));
}

/* -- Graphs and tails ----------------------------------------------------------------------- */

static void a_capture_says_what_it_has_and_its_tail_can_be_set(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_capture_info info, later;
	struct tti_cuda_node *first, *own = NULL, *before[4];
	const struct tti_cuda_job job = step_job(&steps[1]);
	struct tti_cuda_graph *graph;
	size_t n = 4;

	(void)state;
	tti_cuda_capture_get(stream, &info);
	assert_true(info.state == TTI_CUDA_CAPTURE_NONE && !info.graph && info.ntail == 0);
	assert_error(TTI_CUDA_ESTATE, tti_cuda_capture_set_tail(stream, NULL, 0, false));
	begin(stream, GLOBAL);
	push_step(stream, &steps[0]);
	tti_cuda_capture_get(stream, &info);
	assert_int_equal(info.state, TTI_CUDA_CAPTURE_ACTIVE);
	assert_int_equal(info.ntail, 1);
	assert_memory_equal(info.edges, &(uint64_t){ 0 }, sizeof(uint64_t));
	first = info.tail[0];
	assert_ptr_equal(tti_cuda_node_arg(first), &steps[0]);
	assert_ok(tti_cuda_graph_add(info.graph, NULL, 0, &job, &own));
	assert_ok(tti_cuda_capture_set_tail(stream, &own, 1, true));
	push_step(stream, &steps[2]);
	tti_cuda_capture_get(stream, &later);
	assert_int_equal(later.id, info.id);
	assert_ok(tti_cuda_node_before(later.tail[0], before, &n));
	assert_true(n == 2 && before[0] == first && before[1] == own);
	assert_ok(tti_cuda_capture_set_tail(stream, &first, 1, false));
	push_step(stream, &steps[3]);
	tti_cuda_capture_get(stream, &later);
	assert_ok(tti_cuda_node_before(later.tail[0], before, &n));
	assert_true(n == 1 && before[0] == first);
	assert_error(TTI_CUDA_ESTATE, tti_cuda_graph_destroy(info.graph));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_node_destroy(first));
	graph = end(stream);
	assert_ptr_equal(graph, info.graph);
	begin(stream, GLOBAL);
	tti_cuda_capture_get(stream, &later);
	assert_int_not_equal(later.id, info.id);
	assert_null(later.tail);
	assert_null(later.edges);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_capture_set_tail(stream, &first, 1, false));
	assert_ok(tti_cuda_graph_destroy(end(stream)));
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_capture_adds_to_a_graph_that_is_there(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	const struct tti_cuda_job job = step_job(&steps[0]);
	struct tti_cuda_graph *graph = NULL, *out = NULL;
	struct tti_cuda_node *node = NULL;
	size_t n = 0;

	(void)state;
	assert_ok(tti_cuda_graph_create(&graph));
	assert_ok(tti_cuda_graph_add(graph, NULL, 0, &job, &node));
	assert_ok(tti_cuda_capture_begin(stream, GLOBAL, graph, &node, 1));
	push_step(stream, &steps[1]);
	assert_error(TTI_CUDA_ESTATE, tti_cuda_capture_begin(other, GLOBAL, graph, NULL, 0));
	assert_ok(tti_cuda_capture_end(stream, &out));
	assert_ptr_equal(out, graph);
	assert_ok(tti_cuda_graph_edges(graph, NULL, NULL, &n));
	assert_int_equal(n, 1);

	/* an invalid one leaves the graph to the caller */
	assert_ok(tti_cuda_capture_begin(stream, GLOBAL, graph, NULL, 0));
	assert_error(TTI_CUDA_ECAPTURE, tti_cuda_stream_query(stream));
	end_with(TTI_CUDA_ECAPTURED, stream);
	run_graph(graph, stream, 1);
	ASSERT_DIARY(&diary, 0, 1);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_capture_begin(stream, GLOBAL, graph, NULL, 0));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_launch_in_a_captured_stream_spoils_the_capture(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_graph *graph;
	struct tti_cuda_exec *exec = NULL;

	(void)state;
	begin(stream, GLOBAL);
	push_step(stream, &steps[0]);
	graph = end(stream);
	assert_ok(tti_cuda_graph_instantiate(graph, &exec));
	begin(stream, RELAXED);
	push_step(stream, &steps[1]);
	assert_error(TTI_CUDA_ECAPTURE, tti_cuda_exec_launch(exec, stream));
	end_with(TTI_CUDA_ECAPTURED, stream);
	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_stream_synchronize(stream));
	ASSERT_DIARY(&diary, 0);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_captured_stream_may_be_destroyed(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);
	struct step step = { .number = 1 };

	(void)state;
	begin(stream, GLOBAL);
	join(stream, other);
	push_step(other, &step);
	assert_ok(tti_cuda_stream_destroy(other));
	end_with(TTI_CUDA_EUNJOINED, stream);
	assert_int_equal(atomic_load(&step.ndrops), 1);

	other = make_stream(0);
	begin(stream, GLOBAL);
	join(stream, other);
	assert_ok(tti_cuda_stream_destroy(other));
	assert_ok(tti_cuda_graph_destroy(end(stream)));

	other = make_stream(0);
	begin(stream, GLOBAL);
	push_step(stream, &step);
	join(stream, other);
	assert_ok(tti_cuda_event_record(event, other));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_int_equal(atomic_load(&step.ndrops), 2);
	assert_int_equal(state_of(other), TTI_CUDA_CAPTURE_NONE);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_await(event, other));
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void *capture_and_leave(void *arg)
{
	begin(get_stream(2), RELAXED);
	push_step(get_stream(2), arg);
	return NULL;
}

static void the_capture_of_a_thread_that_ends_is_given_up(void **state)
{
	struct step step = { .number = 1 };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, capture_and_leave, &step);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&step.ndrops), 1);
	assert_ok(tti_cuda_device_synchronize(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(jobs_of_a_captured_stream_run_when_the_graph_does),
		TEST(streams_join_by_events),
		TEST(a_stream_that_is_not_joined_is_an_error),
		TEST(threads_capture_beside_each_other),
		TEST(threads_push_to_one_capture),
		TEST(a_capture_says_what_it_has_and_its_tail_can_be_set),
		TEST(a_capture_adds_to_a_graph_that_is_there),
		TEST(a_launch_in_a_captured_stream_spoils_the_capture),
		TEST(a_captured_stream_may_be_destroyed),
		TEST(the_capture_of_a_thread_that_ends_is_given_up),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

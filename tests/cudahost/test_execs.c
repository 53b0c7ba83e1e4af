/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/graphs.h"

static void an_executable_graph_runs_a_hundred_times(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_node *last = NULL;
	struct tti_cuda_exec *exec;

	(void)state;
	for (int i = 0; i < 6; i++)
		last = add(graph, &steps[i], last, NULL);
	exec = make_exec(graph);
	assert_ok(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 100; i++)
		assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_exec_destroy(exec)); /* while it runs */
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(atomic_load(&diary.n), 600);
	for (int i = 0; i < 600; i++)
		assert_int_equal(atomic_load(&diary.at[i]), i % 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(atomic_load(&steps[i].ndrops), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_launch_waits_for_the_one_before_in_another_stream(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct tti_cuda_stream *streams[2] = { make_stream(TTI_CUDA_STREAM_NON_BLOCKING),
					       make_stream(TTI_CUDA_STREAM_NON_BLOCKING) };
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct gate gate = GATE;
	struct tti_cuda_exec *exec;

	(void)state;
	add(graph, &steps[0], add(graph, &steps[1], NULL, NULL), NULL);
	exec = make_exec(graph);
	push_gate(streams[0], &gate);
	for (int i = 0; i < 20; i++)
		assert_ok(tti_cuda_exec_launch(exec, streams[i % 2]));
	push_step(streams[1], &steps[2]);
	sleep_ms(10);
	assert_int_equal(atomic_load(&diary.n), 0);
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(streams[1]));
	assert_int_equal(atomic_load(&diary.n), 41);
	for (int i = 0; i < 40; i++)
		assert_int_equal(atomic_load(&diary.at[i]), (i + 1) % 2);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 2; i++)
		assert_ok(tti_cuda_stream_destroy(streams[i]));
}

/* -- Updates -------------------------------------------------------------------------------- */

static void an_update_is_for_launches_that_come_later(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *other = make_graph();
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct gate gate = GATE;
	struct tti_cuda_node *at;
	int why = 0;
	struct tti_cuda_exec *exec;

	(void)state;
	add(graph, &steps[1], add(graph, &steps[0], NULL, NULL), NULL);
	add(other, &steps[3], add(other, &steps[2], NULL, NULL), NULL);
	exec = make_exec(graph);
	assert_ok(tti_cuda_graph_destroy(graph));
	push_gate(stream, &gate);
	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_exec_update(exec, other, &at, &why));
	assert_null(at);
	assert_int_equal(atomic_load(&steps[0].ndrops), 0);
	assert_ok(tti_cuda_exec_launch(exec, stream));
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	ASSERT_DIARY(&diary, 0, 1, 2, 3);
	assert_int_equal(atomic_load(&steps[0].ndrops), 1);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(other));
	assert_int_equal(atomic_load(&steps[2].ndrops), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void an_update_by_another_shape_names_the_node(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *wider = make_graph(), *shorter = make_graph();
	struct tti_cuda_graph *other = make_graph();
	struct step steps[] = STEPS(NULL);
	struct tti_cuda_node *node, *at = NULL;
	int why = 0;
	struct tti_cuda_exec *exec;

	(void)state;
	add(graph, &steps[1], add(graph, &steps[0], NULL, NULL), NULL);
	exec = make_exec(graph);
	add(wider, &steps[0], NULL, NULL);
	node = add(wider, &steps[1], NULL, NULL);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_update(exec, wider, &at, &why));
	assert_ptr_equal(at, node);
	assert_int_equal(why, TTI_CUDA_UPDATE_TOPOLOGY);
	add(shorter, &steps[0], NULL, NULL);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_update(exec, shorter, &at, &why));
	assert_null(at);
	assert_int_equal(why, TTI_CUDA_UPDATE_TOPOLOGY);
	assert_ok(tti_cuda_graph_add(other, NULL, 0, NULL, &node));
	add(other, &steps[1], node, NULL);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_update(exec, other, &at, &why));
	assert_ptr_equal(at, node);
	assert_int_equal(why, TTI_CUDA_UPDATE_TYPE);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_graph_destroy(wider));
	assert_ok(tti_cuda_graph_destroy(shorter));
	assert_ok(tti_cuda_graph_destroy(other));
}

static void nodes_can_be_given_other_jobs(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *outer = make_graph();
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_node *node = add(graph, &steps[0], NULL, NULL), *child, *inner;
	struct tti_cuda_job job = step_job(&steps[1]);
	struct tti_cuda_exec *exec;
	size_t n = 1;

	(void)state;
	assert_ok(tti_cuda_node_set(node, &job));
	assert_int_equal(atomic_load(&steps[0].ndrops), 1);
	assert_ptr_equal(tti_cuda_node_arg(node), &steps[1]);
	assert_ok(tti_cuda_graph_add_child(outer, NULL, 0, graph, &child));
	assert_ok(tti_cuda_graph_nodes(tti_cuda_node_child(child), &inner, &n));
	exec = make_exec(outer);
	job = step_job(&steps[2]);
	assert_ok(tti_cuda_exec_set(exec, inner, &job));
	assert_ok(tti_cuda_exec_launch(exec, stream));
	job = step_job(&steps[3]);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_set(exec, node, &job));
	assert_int_equal(atomic_load(&steps[3].ndrops), 1);
	job.kind = TTI_CUDA_NODE_COPY;
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_set(exec, inner, &job));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_node_set(node, &job));
	assert_int_equal(atomic_load(&steps[3].ndrops), 3);
	assert_ok(tti_cuda_stream_synchronize(stream));
	ASSERT_DIARY(&diary, 2);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_int_equal(atomic_load(&steps[2].ndrops), 1);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_graph_destroy(outer));
	assert_int_equal(atomic_load(&steps[1].ndrops), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

/* -- Runs ----------------------------------------------------------------------------------- */

static void a_node_that_fails_is_a_failure_of_the_device(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct tti_cuda_stream *stream = make_stream(0);
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_exec *exec;

	(void)state;
	steps[0].result = 719;
	add(graph, &steps[1], add(graph, &steps[0], NULL, NULL), NULL);
	exec = make_exec(graph);
	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_error(719, tti_cuda_stream_synchronize(stream));
	assert_text("step 0 was to fail");
	ASSERT_DIARY(&diary, 0, 1);
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void nodes_record_and_await_events(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_stream *other = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct tti_cuda_event *start = make_event(0), *from = make_event(0), *to = make_event(0);
	struct tti_cuda_event *const events[] = { from, to };
	struct step step = { .number = 1 };
	struct tti_cuda_node *node = NULL;
	struct gate gate = GATE;
	struct tti_cuda_exec *exec;
	struct tti_cuda_job job;
	float ms = -1;

	(void)state;
	assert_ok(tti_cuda_event_await_job(start, &job));
	assert_ok(tti_cuda_graph_add(graph, NULL, 0, &job, &node));
	assert_int_equal(tti_cuda_node_kind(node), TTI_CUDA_NODE_AWAIT);
	node = add(graph, &step, node, NULL);
	for (int i = 0; i < 2; i++) {
		assert_ok(tti_cuda_event_record_job(events[i], &job));
		assert_ok(tti_cuda_graph_add(graph, &node, 1, &job, &node));
	}
	exec = make_exec(graph);
	push_gate(other, &gate);
	assert_ok(tti_cuda_event_record(start, other));
	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_event_query(to));
	sleep_ms(10);
	assert_int_equal(atomic_load(&step.nruns), 0);
	gate_open(&gate);
	assert_ok(tti_cuda_event_synchronize(to));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_ok(tti_cuda_event_elapsed(from, to, &ms));
	assert_true(ms >= 0);
	assert_ok(tti_cuda_event_destroy(start)); /* the graph has it still */
	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_event_destroy(from));
	assert_ok(tti_cuda_event_destroy(to));
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

/* -- Threads ------------------------------------------------------------------------------- */

struct launches {
	struct tti_cuda_exec *exec;
	const struct tti_cuda_graph *graph;
};

static void *launch_and_update(void *arg)
{
	const struct launches *launches = arg;
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_node *at;
	int why = 0;

	for (int i = 0; i < 50; i++) {
		assert_ok(tti_cuda_exec_launch(launches->exec, stream));
		if (i % 8 == 0)
			assert_ok(tti_cuda_exec_update(launches->exec, launches->graph, &at, &why));
	}
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_destroy(stream));
	return NULL;
}

static void threads_may_share_an_executable_graph(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct launches launches = { .graph = graph };
	struct tti_cuda_node *last = NULL;
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 6; i++)
		last = add(graph, &steps[i], last, NULL);
	launches.exec = make_exec(graph);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, launch_and_update, &launches);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&diary.n), 1200);
	for (int i = 0; i < 1200; i++)
		assert_int_equal(atomic_load(&diary.at[i]), i % 6);
	assert_ok(tti_cuda_exec_destroy(launches.exec));
	assert_ok(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 6; i++)
		assert_int_equal(atomic_load(&steps[i].ndrops), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(an_executable_graph_runs_a_hundred_times),
		TEST(a_launch_waits_for_the_one_before_in_another_stream),
		TEST(an_update_is_for_launches_that_come_later),
		TEST(an_update_by_another_shape_names_the_node),
		TEST(nodes_can_be_given_other_jobs),
		TEST(a_node_that_fails_is_a_failure_of_the_device),
		TEST(nodes_record_and_await_events),
		TEST(threads_may_share_an_executable_graph),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/graphs.h"

/* Once, and wait. */
static void run_graph(const struct tti_cuda_graph *graph)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_exec *exec = make_exec(graph);

	assert_ok(tti_cuda_exec_launch(exec, stream));
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void nodes_run_as_they_were_added_where_that_is_free(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);

	(void)state;
	for (int i = 0; i < 6; i++)
		add(graph, &steps[i], NULL, NULL);
	run_graph(graph);
	ASSERT_DIARY(&diary, 0, 1, 2, 3, 4, 5);
	assert_ok(tti_cuda_graph_destroy(graph));
}

static void a_node_runs_behind_those_that_it_depends_on(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_node *nodes[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		nodes[i] = add(graph, &steps[i], NULL, NULL);
	/* 0 behind 5, 1 behind 0 and 3: 2 3 4 5 and then 0 1 */
	assert_ok(tti_cuda_graph_connect(
		graph, (struct tti_cuda_node *[]){ nodes[5], nodes[0], nodes[3] },
		(struct tti_cuda_node *[]){ nodes[0], nodes[1], nodes[1] }, 3));
	run_graph(graph);
	ASSERT_DIARY(&diary, 2, 3, 4, 5, 0, 1);
	assert_ok(tti_cuda_graph_destroy(graph));
}

static void a_circle_is_an_error(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct tti_cuda_exec *exec = NULL;
	struct step steps[] = STEPS(NULL);
	struct tti_cuda_node *a = add(graph, &steps[0], NULL, NULL);
	struct tti_cuda_node *b = add(graph, &steps[1], a, NULL);

	(void)state;
	add(graph, &steps[2], NULL, NULL);
	assert_ok(tti_cuda_graph_connect(graph, &b, &a, 1));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_instantiate(graph, &exec));
	assert_text("2 of the 3 nodes");
	assert_null(exec);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_int_equal(atomic_load(&steps[0].ndrops), 1);
}

/* In each order of destroying the three that have the job. */
static void a_job_is_dropped_once_by_the_last_that_has_it(void **state)
{
	(void)state;
	for (int order = 0; order < 6; order++) {
		static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
						  { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
		struct tti_cuda_graph *graph = make_graph(), *clone = NULL;
		struct step step = { .number = 1 };
		struct tti_cuda_exec *exec;

		add(graph, &step, NULL, NULL);
		assert_ok(tti_cuda_graph_clone(graph, &clone));
		exec = make_exec(clone);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(atomic_load(&step.ndrops), 0);
			switch (orders[order][i]) {
			case 0:
				assert_ok(tti_cuda_graph_destroy(graph));
				break;
			case 1:
				assert_ok(tti_cuda_graph_destroy(clone));
				break;
			default:
				assert_ok(tti_cuda_exec_destroy(exec));
			}
		}
		assert_int_equal(atomic_load(&step.ndrops), 1);
		assert_int_equal(atomic_load(&step.nruns), 0);
	}
}

static void a_job_that_is_not_added_is_dropped(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *other = make_graph();
	struct step step = { .number = 1 }, wrong = { .number = 2 };
	const struct tti_cuda_job job = step_job(&wrong);
	struct tti_cuda_node *node = add(other, &step, NULL, NULL);
	struct tti_cuda_node *const twice[] = { node, node };

	(void)state;
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_add(graph, &node, 1, &job, NULL));
	assert_int_equal(atomic_load(&wrong.ndrops), 1);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_add(other, twice, 2, &job, NULL));
	assert_int_equal(atomic_load(&wrong.ndrops), 2);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_add(graph, NULL, 0, &job, NULL));
	assert_int_equal(atomic_load(&wrong.ndrops), 3);
	assert_ok(tti_cuda_graph_destroy(other));
}

/* -- Shapes --------------------------------------------------------------------------------- */

static void a_child_graph_runs_in_its_place(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *child = make_graph();
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_node *first = add(graph, &steps[0], NULL, NULL), *middle;

	(void)state;
	add(child, &steps[1], NULL, NULL);
	add(child, &steps[2], NULL, NULL);
	assert_ok(tti_cuda_graph_add_child(graph, &first, 1, child, &middle));
	add(child, &steps[4], NULL, NULL); /* too late: the child is a copy */
	add(graph, &steps[3], middle, NULL);
	assert_int_equal(tti_cuda_node_kind(middle), TTI_CUDA_NODE_GRAPH);
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_destroy(tti_cuda_node_child(middle)));
	run_graph(graph);
	ASSERT_DIARY(&diary, 0, 1, 2, 3);
	assert_ok(tti_cuda_graph_destroy(child));
	assert_ok(tti_cuda_graph_destroy(graph));
	for (int i = 0; i < 5; i++)
		assert_int_equal(atomic_load(&steps[i].ndrops), 1);
}

static void a_graph_says_what_it_has(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *clone = NULL;
	struct step steps[] = STEPS(NULL);
	struct tti_cuda_node *a = add(graph, &steps[0], NULL, NULL);
	struct tti_cuda_node *b = add(graph, &steps[1], NULL, NULL);
	struct tti_cuda_node *c = add(graph, &steps[2], a, b), *empty = NULL;
	struct tti_cuda_node *some[4] = { 0 }, *to[4] = { 0 };
	size_t n = 0;

	(void)state;
	assert_ok(tti_cuda_graph_add(graph, &c, 1, NULL, &empty));
	assert_ok(tti_cuda_graph_nodes(graph, NULL, &n));
	assert_int_equal(n, 4);
	n = 2;
	assert_ok(tti_cuda_graph_nodes(graph, some, &n));
	assert_int_equal(n, 4);
	assert_ptr_equal(some[0], a);
	assert_ptr_equal(some[1], b);
	assert_null(some[2]);
	assert_ok(tti_cuda_graph_roots(graph, some, &n));
	assert_int_equal(n, 2);
	n = 4;
	assert_ok(tti_cuda_graph_edges(graph, some, to, &n));
	assert_int_equal(n, 3);
	assert_true(some[0] == a && to[0] == c && some[1] == b && to[1] == c && some[2] == c &&
		    to[2] == empty);
	n = 4;
	assert_ok(tti_cuda_node_before(c, some, &n));
	assert_true(n == 2 && some[0] == a && some[1] == b);
	assert_ok(tti_cuda_node_after(c, some, &n));
	assert_true(n == 1 && some[0] == empty);
	assert_int_equal(tti_cuda_node_kind(a), TTI_CUDA_NODE_HOST);
	assert_int_equal(tti_cuda_node_kind(empty), TTI_CUDA_NODE_EMPTY);
	assert_ptr_equal(tti_cuda_node_arg(a), &steps[0]);
	assert_null(tti_cuda_node_arg(empty));
	assert_ok(tti_cuda_graph_clone(graph, &clone));
	n = 4;
	assert_ok(tti_cuda_graph_nodes(clone, some, &n));
	assert_ptr_equal(tti_cuda_node_in_clone(c, clone), some[2]);
	assert_null(tti_cuda_node_in_clone(c, graph));
	assert_ok(tti_cuda_graph_destroy(clone));
	assert_ok(tti_cuda_graph_destroy(graph));
}

static void dependencies_and_nodes_can_be_removed(void **state)
{
	struct tti_cuda_graph *graph = make_graph();
	struct diary diary = { 0 };
	struct step steps[] = STEPS(&diary);
	struct tti_cuda_node *a = add(graph, &steps[0], NULL, NULL);
	struct tti_cuda_node *b = add(graph, &steps[1], a, NULL);
	struct tti_cuda_node *c = add(graph, &steps[2], b, NULL);
	size_t n = 0;

	(void)state;
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_connect(graph, &a, &b, 1));
	assert_text("already");
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_connect(graph, &a, &a, 1));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_connect(graph, NULL, NULL, 1));
	assert_ok(tti_cuda_graph_connect(graph, NULL, NULL, 0));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_disconnect(graph, &a, &c, 1));
	assert_ok(tti_cuda_graph_disconnect(graph, &a, &b, 1));
	assert_ok(tti_cuda_graph_connect(graph, &c, &a, 1));
	/* the second is there already, so the first goes, too */
	assert_error(TTI_CUDA_EINVAL,
		     tti_cuda_graph_connect(graph, (struct tti_cuda_node *[]){ b, b },
					    (struct tti_cuda_node *[]){ a, c }, 2));
	assert_ok(tti_cuda_graph_edges(graph, NULL, NULL, &n));
	assert_int_equal(n, 2);
	assert_ok(tti_cuda_node_destroy(b));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_node_destroy(b));
	assert_int_equal(atomic_load(&steps[1].ndrops), 1);
	run_graph(graph);
	ASSERT_DIARY(&diary, 2, 0);
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_node_destroy(a));
	assert_int_equal(tti_cuda_node_kind(a), -1);
}

static void destroyed_graphs_are_errors(void **state)
{
	struct tti_cuda_graph *graph = make_graph(), *clone = NULL;
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_exec *exec = make_exec(graph);

	(void)state;
	assert_ok(tti_cuda_graph_destroy(graph));
	assert_ok(tti_cuda_exec_destroy(exec));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_destroy(graph));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_graph_clone(graph, &clone));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_destroy(exec));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_exec_launch(exec, stream));
	assert_text("is no executable graph");
	assert_ok(tti_cuda_stream_destroy(stream));
}

/* -- Random graphs -------------------------------------------------------------------------- */

#define NNODES 40

/* The least number among those that wait for nothing that is still to come. */
static int next_of(bool edges[NNODES][NNODES], const bool *is_done)
{
	for (int i = 0; i < NNODES; i++) {
		bool waits = is_done[i];

		for (int j = 0; j < NNODES; j++)
			waits = waits || (edges[j][i] && !is_done[j]);
		if (!waits)
			return i;
	}
	return -1;
}

static void random_graphs_run_in_the_order_that_was_said(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct tti_cuda_graph *graph = make_graph();
		struct diary diary = { 0 };
		struct step steps[NNODES];
		struct tti_cuda_node *nodes[NNODES];
		bool edges[NNODES][NNODES] = { 0 }, is_done[NNODES] = { 0 };
		int place[NNODES];

		for (int i = 0; i < NNODES; i++) {
			steps[i] = (struct step){ .diary = &diary, .number = i };
			nodes[i] = add(graph, &steps[i], NULL, NULL);
			place[i] = rand_r(&seed) % 1000; /* edges lead upwards, so no circle */
		}
		for (int i = 0; i < 60; i++) {
			const int a = rand_r(&seed) % NNODES, b = rand_r(&seed) % NNODES;

			if (place[a] >= place[b] || edges[a][b])
				continue;
			edges[a][b] = true;
			assert_ok(tti_cuda_graph_connect(graph, &nodes[a], &nodes[b], 1));
		}
		run_graph(graph);
		assert_int_equal(atomic_load(&diary.n), NNODES);
		for (int i = 0; i < NNODES; i++) {
			const int next = next_of(edges, is_done);

			assert_int_equal(atomic_load(&diary.at[i]), next);
			is_done[next] = true;
		}
		assert_ok(tti_cuda_graph_destroy(graph));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(nodes_run_as_they_were_added_where_that_is_free),
		TEST(a_node_runs_behind_those_that_it_depends_on),
		TEST(a_circle_is_an_error),
		TEST(a_job_is_dropped_once_by_the_last_that_has_it),
		TEST(a_job_that_is_not_added_is_dropped),
		TEST(a_child_graph_runs_in_its_place),
		TEST(a_graph_says_what_it_has),
		TEST(dependencies_and_nodes_can_be_removed),
		TEST(destroyed_graphs_are_errors),
		TEST(random_graphs_run_in_the_order_that_was_said),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDAHOST_GRAPHS_H
#define TESTS_CUDAHOST_GRAPHS_H

/* Graphs that tests make, of steps of jobs.h. */

#include "cudahost/jobs.h"

#define STEPS(diary)                                                                 \
	{                                                                            \
		{ diary, 0, 0, 0, 0 }, { diary, 1, 0, 0, 0 }, { diary, 2, 0, 0, 0 }, \
			{ diary, 3, 0, 0, 0 }, { diary, 4, 0, 0, 0 },                \
		{                                                                    \
			diary, 5, 0, 0, 0                                            \
		}                                                                    \
	}

static inline struct tti_cuda_graph *make_graph(void)
{
	struct tti_cuda_graph *graph = NULL;

	assert_ok(tti_cuda_graph_create(&graph));
	return graph;
}

/* A node behind up to two others (NULL: none). */
static inline struct tti_cuda_node *add(struct tti_cuda_graph *graph, struct step *step,
					struct tti_cuda_node *a, struct tti_cuda_node *b)
{
	struct tti_cuda_node *const after[] = { a, b };
	const struct tti_cuda_job job = step_job(step);
	struct tti_cuda_node *node = NULL;

	assert_ok(tti_cuda_graph_add(graph, after, (size_t)(a ? 1 : 0) + (b ? 1 : 0), &job, &node));
	return node;
}

static inline struct tti_cuda_exec *make_exec(const struct tti_cuda_graph *graph)
{
	struct tti_cuda_exec *exec = NULL;

	assert_ok(tti_cuda_graph_instantiate(graph, &exec));
	return exec;
}

#endif

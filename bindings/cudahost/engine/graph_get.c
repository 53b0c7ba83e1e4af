/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program can ask of graphs and nodes. */
#include <stdlib.h>

#include "engine/graph_impl.h"

/* Up to *n of them; *n is how many there are. */
static int get(const struct tti_cuda_nodes *nodes, struct tti_cuda_node **out, size_t *n)
{
	for (size_t i = 0; out && i < nodes->n && i < *n; i++)
		out[i] = nodes->at[i];
	*n = nodes->n;
	return 0;
}

static int begin(enum tti_cuda_handle kind, const void *object)
{
	const int error = tti_cuda_handle_check(kind, object, "a graph is looked at");

	if (!error)
		pthread_mutex_lock(&tti_cuda_graph_lock);
	return error;
}

static int end(int error)
{
	pthread_mutex_unlock(&tti_cuda_graph_lock);
	return error;
}

int tti_cuda_graph_nodes(const struct tti_cuda_graph *graph, struct tti_cuda_node **out, size_t *n)
{
	const int error = begin(TTI_CUDA_HANDLE_GRAPH, graph);

	return error ? error : end(get(&graph->nodes, out, n));
}

int tti_cuda_graph_roots(const struct tti_cuda_graph *graph, struct tti_cuda_node **out, size_t *n)
{
	const int error = begin(TTI_CUDA_HANDLE_GRAPH, graph);
	size_t count = 0;

	if (error)
		return error;
	for (size_t i = 0; i < graph->nodes.n; i++) {
		if (graph->nodes.at[i]->before.n)
			continue;
		if (out && count < *n)
			out[count] = graph->nodes.at[i];
		count++;
	}
	*n = count;
	return end(0);
}

int tti_cuda_graph_edges(const struct tti_cuda_graph *graph, struct tti_cuda_node **from,
			 struct tti_cuda_node **to, size_t *n)
{
	const int error = begin(TTI_CUDA_HANDLE_GRAPH, graph);
	size_t count = 0;

	if (error)
		return error;
	for (size_t i = 0; i < graph->nodes.n; i++) {
		struct tti_cuda_node *node = graph->nodes.at[i];

		for (size_t j = 0; j < node->after.n; j++, count++) {
			if (count >= *n)
				continue;
			if (from)
				from[count] = node;
			if (to)
				to[count] = node->after.at[j];
		}
	}
	*n = count;
	return end(0);
}

int tti_cuda_node_before(const struct tti_cuda_node *node, struct tti_cuda_node **out, size_t *n)
{
	const int error = begin(TTI_CUDA_HANDLE_NODE, node);

	return error ? error : end(get(&node->before, out, n));
}

int tti_cuda_node_after(const struct tti_cuda_node *node, struct tti_cuda_node **out, size_t *n)
{
	const int error = begin(TTI_CUDA_HANDLE_NODE, node);

	return error ? error : end(get(&node->after, out, n));
}

int tti_cuda_node_kind(const struct tti_cuda_node *node)
{
	return begin(TTI_CUDA_HANDLE_NODE, node) ? -1 : end(node->kind);
}

void *tti_cuda_node_arg(const struct tti_cuda_node *node)
{
	void *arg;

	if (begin(TTI_CUDA_HANDLE_NODE, node))
		return NULL;
	arg = node->job ? node->job->job.arg : NULL;
	end(0);
	return arg;
}

struct tti_cuda_graph *tti_cuda_node_child(const struct tti_cuda_node *node)
{
	struct tti_cuda_graph *child;

	if (begin(TTI_CUDA_HANDLE_NODE, node))
		return NULL;
	child = node->child;
	end(0);
	return child;
}

struct tti_cuda_node *tti_cuda_node_in_clone(const struct tti_cuda_node *node,
					     const struct tti_cuda_graph *clone)
{
	struct tti_cuda_node *found = NULL;

	if (begin(TTI_CUDA_HANDLE_GRAPH, clone))
		return NULL;
	for (size_t i = 0; !found && i < clone->nodes.n; i++)
		if (clone->nodes.at[i]->origin == node)
			found = clone->nodes.at[i];
	end(0);
	return found;
}

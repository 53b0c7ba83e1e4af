/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/graph.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph_impl.h"
#include "engine/object.h"

pthread_mutex_t tti_cuda_graph_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&tti_cuda_graph_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&tti_cuda_graph_lock);
}

static int no_memory(size_t nbytes)
{
	return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a graph", nbytes);
}

static int check_graph(const struct tti_cuda_graph *graph, const char *what)
{
	return tti_cuda_handle_check(TTI_CUDA_HANDLE_GRAPH, graph, what);
}

static int check_node(const struct tti_cuda_node *node, const char *what)
{
	return tti_cuda_handle_check(TTI_CUDA_HANDLE_NODE, node, what);
}

/* -- Jobs and lists ------------------------------------------------------------------------- */

struct tti_cuda_shared_job *tti_cuda_shared_job_create(const struct tti_cuda_job *job)
{
	struct tti_cuda_shared_job *shared = malloc(sizeof(*shared));

	if (!shared) {
		no_memory(sizeof(*shared));
		return NULL;
	}
	atomic_init(&shared->holds, 1);
	shared->job = *job;
	return shared;
}

struct tti_cuda_shared_job *tti_cuda_shared_job_hold(struct tti_cuda_shared_job *job)
{
	if (job)
		atomic_fetch_add(&job->holds, 1);
	return job;
}

void tti_cuda_shared_job_let_go(struct tti_cuda_shared_job *job)
{
	if (!job || atomic_fetch_sub(&job->holds, 1) != 1)
		return;
	tti_cuda_job_drop(&job->job);
	free(job);
}

bool tti_cuda_nodes_add(struct tti_cuda_nodes *nodes, struct tti_cuda_node *node)
{
	if (nodes->n == nodes->room) {
		const size_t room = nodes->room ? 2 * nodes->room : 4;
		struct tti_cuda_node **at =
			realloc(nodes->at, room * sizeof(struct tti_cuda_node *));

		if (!at) {
			no_memory(room * sizeof(struct tti_cuda_node *));
			return false;
		}
		nodes->at = at;
		nodes->room = room;
	}
	nodes->at[nodes->n++] = node;
	return true;
}

bool tti_cuda_nodes_has(const struct tti_cuda_nodes *nodes, const struct tti_cuda_node *node)
{
	for (size_t i = 0; i < nodes->n; i++)
		if (nodes->at[i] == node)
			return true;
	return false;
}

static void nodes_remove(struct tti_cuda_nodes *nodes, const struct tti_cuda_node *node)
{
	size_t i = 0;

	while (i < nodes->n && nodes->at[i] != node)
		i++;
	if (i == nodes->n)
		return;
	nodes->n--;
	memmove(&nodes->at[i], &nodes->at[i + 1], (nodes->n - i) * sizeof(struct tti_cuda_node *));
}

void tti_cuda_nodes_release(struct tti_cuda_nodes *nodes)
{
	free(nodes->at);
	*nodes = (struct tti_cuda_nodes){ 0 };
}

/* -- Graphs --------------------------------------------------------------------------------- */

/* Its edges are gone, or those at their other ends are freed, too. */
static void node_free(struct tti_cuda_node *node)
{
	if (!node)
		return;
	tti_cuda_handle_remove(TTI_CUDA_HANDLE_NODE, node);
	tti_cuda_shared_job_let_go(node->job);
	tti_cuda_graph_free(node->child);
	tti_cuda_nodes_release(&node->before);
	tti_cuda_nodes_release(&node->after);
	free(node);
}

void tti_cuda_graph_free(struct tti_cuda_graph *graph)
{
	if (!graph)
		return;
	tti_cuda_handle_remove(TTI_CUDA_HANDLE_GRAPH, graph);
	for (size_t i = 0; i < graph->nodes.n; i++)
		node_free(graph->nodes.at[i]);
	tti_cuda_nodes_release(&graph->nodes);
	free(graph);
}

int tti_cuda_graph_create(struct tti_cuda_graph **out)
{
	struct tti_cuda_graph *graph;
	int error = tti_cuda_begin();

	if (error)
		return error;
	graph = calloc(1, sizeof(*graph));
	if (!graph)
		return no_memory(sizeof(*graph));
	error = tti_cuda_handle_add(TTI_CUDA_HANDLE_GRAPH, graph);
	if (error)
		free(graph);
	else
		*out = graph;
	return error;
}

int tti_cuda_graph_destroy(struct tti_cuda_graph *graph)
{
	int error = check_graph(graph, "a graph is destroyed");

	if (error)
		return error;
	lock();
	if (graph->ncaptures)
		error = tti_cuda_fail(
			TTI_CUDA_ESTATE,
			"graph %p is destroyed while %d streams are captured into it: "
			"end the capture first",
			(void *)graph, graph->ncaptures);
	else if (graph->is_child)
		error = tti_cuda_fail(TTI_CUDA_EINVAL,
				      "graph %p belongs to a child node: destroy the node",
				      (void *)graph);
	else if (!tti_cuda_handle_remove(TTI_CUDA_HANDLE_GRAPH, graph))
		error = tti_cuda_fail(TTI_CUDA_EHANDLE,
				      "graph %p is destroyed by two threads at once",
				      (void *)graph);
	unlock();
	if (!error) {
		tti_cuda_objects_drop(graph);
		tti_cuda_graph_free(graph);
	}
	return error;
}

/* -- Adding --------------------------------------------------------------------------------- */

int tti_cuda_graph_check_nodes_locked(const struct tti_cuda_graph *graph,
				      struct tti_cuda_node *const *nodes, size_t n)
{
	if (n > 0 && !nodes)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%zu dependencies at NULL: pass the address of as many nodes",
				     n);
	for (size_t i = 0; i < n; i++) {
		const int error = check_node(nodes[i], "a dependency of a graph");

		if (error)
			return error;
		if (nodes[i]->graph != graph)
			return tti_cuda_fail(TTI_CUDA_EINVAL,
					     "node %p, number %zu of %zu, is not of graph %p",
					     (void *)nodes[i], i, n, (const void *)graph);
	}
	for (size_t i = 0; i < n; i++)
		nodes[i]->nwaiting = n;
	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->nwaiting != n)
			return tti_cuda_fail(TTI_CUDA_EINVAL,
					     "node %p is among %zu dependencies twice, numbers %zu "
					     "and %zu",
					     (void *)nodes[i], n, nodes[i]->nwaiting, i);
		nodes[i]->nwaiting = i;
	}
	return 0;
}

static bool connect_two(struct tti_cuda_node *from, struct tti_cuda_node *to)
{
	if (!tti_cuda_nodes_add(&to->before, from))
		return false;
	if (tti_cuda_nodes_add(&from->after, to))
		return true;
	to->before.n--;
	return false;
}

static void disconnect_two(struct tti_cuda_node *from, struct tti_cuda_node *to)
{
	nodes_remove(&to->before, from);
	nodes_remove(&from->after, to);
}

static void disconnect_all(struct tti_cuda_node *node)
{
	while (node->before.n)
		disconnect_two(node->before.at[node->before.n - 1], node);
	while (node->after.n)
		disconnect_two(node, node->after.at[node->after.n - 1]);
}

static int kind_of(const struct tti_cuda_shared_job *job, const struct tti_cuda_graph *child)
{
	if (child)
		return TTI_CUDA_NODE_GRAPH;
	return job ? job->job.kind : TTI_CUDA_NODE_EMPTY;
}

int tti_cuda_graph_add_locked(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			      size_t nafter, struct tti_cuda_shared_job *job,
			      struct tti_cuda_graph *child, struct tti_cuda_node **out)
{
	struct tti_cuda_node *node;
	int error = tti_cuda_graph_check_nodes_locked(graph, after, nafter);

	if (error)
		return error;
	node = calloc(1, sizeof(*node));
	if (!node)
		return no_memory(sizeof(*node));
	node->graph = graph;
	node->index = graph->nodes.n;
	node->kind = kind_of(job, child);
	error = tti_cuda_handle_add(TTI_CUDA_HANDLE_NODE, node);
	for (size_t i = 0; !error && i < nafter; i++)
		if (!connect_two(after[i], node))
			error = TTI_CUDA_ENOMEM;
	if (!error && !tti_cuda_nodes_add(&graph->nodes, node))
		error = TTI_CUDA_ENOMEM;
	if (error) {
		disconnect_all(node);
		node_free(node);
		return error;
	}
	node->job = job;
	node->child = child;
	if (child)
		child->is_child = true;
	if (out)
		*out = node;
	return 0;
}

int tti_cuda_graph_add(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
		       size_t nafter, const struct tti_cuda_job *job, struct tti_cuda_node **out)
{
	struct tti_cuda_shared_job *shared = NULL;
	int error = check_graph(graph, "a node is added to a graph");

	if (!error && job) {
		shared = tti_cuda_shared_job_create(job);
		error = shared ? 0 : TTI_CUDA_ENOMEM;
	}
	if (!error) {
		lock();
		error = tti_cuda_graph_add_locked(graph, after, nafter, shared, NULL, out);
		unlock();
	}
	if (error && shared)
		tti_cuda_shared_job_let_go(shared);
	else if (error && job)
		tti_cuda_job_drop(job);
	return error;
}

static bool is_of_memory(const struct tti_cuda_node *node)
{
	return node->kind == TTI_CUDA_NODE_ALLOC || node->kind == TTI_CUDA_NODE_FREE;
}

/* The memory of a graph has one address, so that CUDA does not let it be there twice. */
static int check_no_memory(const struct tti_cuda_graph *graph)
{
	for (size_t i = 0; i < graph->nodes.n; i++)
		if (is_of_memory(graph->nodes.at[i]))
			return tti_cuda_fail(
				TTI_CUDA_ENOTSUPPORTED,
				"graph %p allocates or frees memory: it is neither cloned nor a "
				"child of another",
				(const void *)graph);
	return 0;
}

int tti_cuda_graph_add_child(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			     size_t nafter, const struct tti_cuda_graph *child,
			     struct tti_cuda_node **out)
{
	struct tti_cuda_graph *clone = NULL;
	int error = check_graph(graph, "a child graph is added to a graph");

	if (!error)
		error = check_graph(child, "a child graph is added");
	if (error)
		return error;
	lock();
	error = check_no_memory(child);
	if (!error)
		error = tti_cuda_graph_clone_locked(child, &clone);
	if (!error)
		error = tti_cuda_graph_add_locked(graph, after, nafter, NULL, clone, out);
	unlock();
	if (error)
		tti_cuda_graph_free(clone);
	return error ? error : tti_cuda_objects_share(child, graph);
}

/* -- Clones --------------------------------------------------------------------------------- */

static int clone_node(const struct tti_cuda_node *node, struct tti_cuda_graph *into)
{
	struct tti_cuda_graph *child = NULL;
	struct tti_cuda_node *clone;
	int error = node->child ? tti_cuda_graph_clone_locked(node->child, &child) : 0;

	if (error)
		return error;
	error = tti_cuda_graph_add_locked(into, NULL, 0, node->job, child, &clone);
	if (error) {
		tti_cuda_graph_free(child);
		return error;
	}
	tti_cuda_shared_job_hold(node->job);
	clone->kind = node->kind;
	clone->origin = node;
	return 0;
}

/* The order of before[] and after[] is that of the original. */
static int clone_edges(const struct tti_cuda_node *node, struct tti_cuda_graph *into)
{
	struct tti_cuda_node *clone = into->nodes.at[node->index];

	for (size_t i = 0; i < node->before.n; i++)
		if (!tti_cuda_nodes_add(&clone->before, into->nodes.at[node->before.at[i]->index]))
			return TTI_CUDA_ENOMEM;
	for (size_t i = 0; i < node->after.n; i++)
		if (!tti_cuda_nodes_add(&clone->after, into->nodes.at[node->after.at[i]->index]))
			return TTI_CUDA_ENOMEM;
	return 0;
}

/* If it fails, no job is dropped under the lock: the original has all of them, too. */
int tti_cuda_graph_clone_locked(const struct tti_cuda_graph *graph, struct tti_cuda_graph **out)
{
	struct tti_cuda_graph *clone;
	int error = tti_cuda_graph_create(&clone);

	if (error)
		return error;
	for (size_t i = 0; !error && i < graph->nodes.n; i++)
		error = clone_node(graph->nodes.at[i], clone);
	for (size_t i = 0; !error && i < graph->nodes.n; i++)
		error = clone_edges(graph->nodes.at[i], clone);
	if (error)
		tti_cuda_graph_free(clone);
	else
		*out = clone;
	return error;
}

int tti_cuda_graph_clone(const struct tti_cuda_graph *graph, struct tti_cuda_graph **out)
{
	int error = check_graph(graph, "a graph is cloned");

	if (error)
		return error;
	lock();
	error = check_no_memory(graph);
	if (!error)
		error = tti_cuda_graph_clone_locked(graph, out);
	unlock();
	if (error)
		return error;
	error = tti_cuda_objects_share(graph, *out);
	if (error)
		(void)tti_cuda_graph_destroy(*out);
	return error;
}

/* -- Changing ------------------------------------------------------------------------------- */

static int check_lists(struct tti_cuda_node *const *from, struct tti_cuda_node *const *to, size_t n)
{
	if (!n || (from && to))
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%zu dependencies, of which a list is NULL", n);
}

static int check_pair(const struct tti_cuda_graph *graph, struct tti_cuda_node *from,
		      struct tti_cuda_node *to, bool is_edge)
{
	struct tti_cuda_node *const pair[] = { from, to };
	int error = tti_cuda_graph_check_nodes_locked(graph, pair, 2);

	if (!error && tti_cuda_nodes_has(&to->before, from) != is_edge)
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			is_edge ? "there is no dependency from node %p to node %p"
				: "there is a dependency from node %p to node %p already",
			(void *)from, (void *)to);
	return error;
}

/* All of them, or none. */
int tti_cuda_graph_connect(struct tti_cuda_graph *graph, struct tti_cuda_node *const *from,
			   struct tti_cuda_node *const *to, size_t n)
{
	size_t done;
	int error = check_graph(graph, "dependencies are added to a graph");

	if (!error)
		error = check_lists(from, to, n);
	if (error)
		return error;
	lock();
	for (done = 0; !error && done < n; done++) {
		error = check_pair(graph, from[done], to[done], false);
		if (!error && !connect_two(from[done], to[done]))
			error = TTI_CUDA_ENOMEM;
		if (error)
			break;
	}
	while (error && done > 0) {
		done--;
		disconnect_two(from[done], to[done]);
	}
	unlock();
	return error;
}

int tti_cuda_graph_disconnect(struct tti_cuda_graph *graph, struct tti_cuda_node *const *from,
			      struct tti_cuda_node *const *to, size_t n)
{
	int error = check_graph(graph, "dependencies are removed from a graph");

	if (!error)
		error = check_lists(from, to, n);
	if (error)
		return error;
	lock();
	for (size_t i = 0; !error && i < n; i++)
		error = check_pair(graph, from[i], to[i], true);
	for (size_t i = 0; !error && i < n; i++)
		disconnect_two(from[i], to[i]);
	unlock();
	return error;
}

int tti_cuda_node_destroy(struct tti_cuda_node *node)
{
	struct tti_cuda_graph *graph;
	int error = check_node(node, "a node is destroyed");

	if (error)
		return error;
	lock();
	graph = node->graph;
	if (graph->ncaptures) {
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"node %p is destroyed while streams are captured into its graph: "
			"end the capture first",
			(void *)node);
	} else if (is_of_memory(node)) {
		error = tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				      "node %p allocates or frees memory: it goes with its graph",
				      (void *)node);
	} else {
		disconnect_all(node);
		nodes_remove(&graph->nodes, node);
		for (size_t i = node->index; i < graph->nodes.n; i++)
			graph->nodes.at[i]->index = i;
	}
	unlock();
	if (!error)
		node_free(node);
	return error;
}

int tti_cuda_node_set(struct tti_cuda_node *node, const struct tti_cuda_job *job)
{
	struct tti_cuda_shared_job *shared, *before;
	int error = check_node(node, "a node is given another job");

	if (!error && (node->kind != job->kind || !node->job))
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"a node of kind %d is given a job of kind %d: they must be alike",
			node->kind, job->kind);
	shared = error ? NULL : tti_cuda_shared_job_create(job);
	if (!shared) {
		tti_cuda_job_drop(job);
		return error ? error : TTI_CUDA_ENOMEM;
	}
	lock();
	before = node->job;
	node->job = shared;
	unlock();
	tti_cuda_shared_job_let_go(before);
	return 0;
}

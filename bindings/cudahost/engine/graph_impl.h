/* SPDX-License-Identifier: BSD-3-Clause */
/* What graphs are made of, for graph.c, exec.c and capture.c.
 *
 * All graphs and captures have one lock, as a capture may take part in several threads. Functions
 * with `locked` in their names are called with it. */
#ifndef TUTTI_CUDAHOST_ENGINE_GRAPH_IMPL_H
#define TUTTI_CUDAHOST_ENGINE_GRAPH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/internal.h"

/* A job that several graphs have; the last to let go of it drops it. */
struct tti_cuda_shared_job {
	_Atomic uint32_t holds;
	struct tti_cuda_job job;
};

struct tti_cuda_nodes {
	struct tti_cuda_node **at;
	size_t n, room;
};

struct tti_cuda_node {
	struct tti_cuda_graph *graph;
	size_t index; /* in graph->nodes */
	int kind;
	struct tti_cuda_shared_job *job; /* NULL: an empty or a child node */
	struct tti_cuda_graph *child;    /* owned; NULL: not a child node */
	struct tti_cuda_nodes before, after;
	const struct tti_cuda_node *origin; /* of which it is the clone; only compared */
	size_t nwaiting;                    /* scratch of order() and of unjoined() */
};

struct tti_cuda_graph {
	struct tti_cuda_nodes nodes; /* in the order in which they were added */
	int ncaptures;               /* that add to it now */
	bool is_child;               /* a node owns it */
};

extern pthread_mutex_t tti_cuda_graph_lock;

struct tti_cuda_shared_job *tti_cuda_shared_job_create(const struct tti_cuda_job *job);
struct tti_cuda_shared_job *tti_cuda_shared_job_hold(struct tti_cuda_shared_job *job);
void tti_cuda_shared_job_let_go(struct tti_cuda_shared_job *job); /* not with a lock held */

/* False: out of memory; nothing has changed. */
bool tti_cuda_nodes_add(struct tti_cuda_nodes *nodes, struct tti_cuda_node *node);
bool tti_cuda_nodes_has(const struct tti_cuda_nodes *nodes, const struct tti_cuda_node *node);
void tti_cuda_nodes_release(struct tti_cuda_nodes *nodes);

/* The job or the child (one may be NULL, or both) is the node's if this succeeds. */
int tti_cuda_graph_add_locked(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			      size_t nafter, struct tti_cuda_shared_job *job,
			      struct tti_cuda_graph *child, struct tti_cuda_node **out);
/* 0, or EINVAL or EHANDLE: not nodes of this graph, or one twice. */
int tti_cuda_graph_check_nodes_locked(const struct tti_cuda_graph *graph,
				      struct tti_cuda_node *const *nodes, size_t n);
int tti_cuda_graph_clone_locked(const struct tti_cuda_graph *graph, struct tti_cuda_graph **out);

/* A graph that nobody else has: not with a lock held. */
void tti_cuda_graph_free(struct tti_cuda_graph *graph);

#endif

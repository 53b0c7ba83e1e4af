/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: jobs and what each waits for, made by a program or by capturing streams; and graphs that
 * are ready to run. A launch runs the nodes one after the other in the stream, each behind those
 * that it depends on: in the order in which they were added where that is free, so that all ranks
 * of a communicator have one order. */
#ifndef TUTTI_CUDAHOST_ENGINE_GRAPH_H
#define TUTTI_CUDAHOST_ENGINE_GRAPH_H

#include <stddef.h>

#include "engine/event.h"
#include "engine/stream.h"

/* The numbers of cudaGraphNodeType. */
enum tti_cuda_node_kind {
	TTI_CUDA_NODE_KERNEL = 0,
	TTI_CUDA_NODE_COPY = 1,
	TTI_CUDA_NODE_SET = 2,
	TTI_CUDA_NODE_HOST = 3,
	TTI_CUDA_NODE_GRAPH = 4,
	TTI_CUDA_NODE_EMPTY = 5,
	TTI_CUDA_NODE_AWAIT = 6,
	TTI_CUDA_NODE_RECORD = 7,
	TTI_CUDA_NODE_ALLOC = 10,
	TTI_CUDA_NODE_FREE = 11,
};

#pragma GCC visibility push(default)

struct tti_cuda_graph;
struct tti_cuda_node;
struct tti_cuda_exec;

/* Owner: the caller. Executable graphs live on without it. */
int tti_cuda_graph_create(struct tti_cuda_graph **out);
int tti_cuda_graph_destroy(struct tti_cuda_graph *graph);
int tti_cuda_graph_clone(const struct tti_cuda_graph *graph, struct tti_cuda_graph **out);

/* Nodes belong to the graph. The job is dropped with the last graph that has it, or if this
 * fails. `job` NULL: an empty node. */
int tti_cuda_graph_add(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
		       size_t nafter, const struct tti_cuda_job *job, struct tti_cuda_node **out);
int tti_cuda_graph_add_child(struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			     size_t nafter, const struct tti_cuda_graph *child,
			     struct tti_cuda_node **out);
int tti_cuda_graph_connect(struct tti_cuda_graph *graph, struct tti_cuda_node *const *from,
			   struct tti_cuda_node *const *to, size_t n);
int tti_cuda_graph_disconnect(struct tti_cuda_graph *graph, struct tti_cuda_node *const *from,
			      struct tti_cuda_node *const *to, size_t n);
int tti_cuda_node_destroy(struct tti_cuda_node *node);
/* -1 where there is no such node. */
int tti_cuda_node_kind(const struct tti_cuda_node *node);
/* The argument of the node's job: what the caller of add() gave. NULL where it has none. */
void *tti_cuda_node_arg(const struct tti_cuda_node *node);
/* Another job, of the same kind; it is dropped if this fails. */
int tti_cuda_node_set(struct tti_cuda_node *node, const struct tti_cuda_job *job);
/* The graph of a child node, borrowed; NULL: another kind. */
struct tti_cuda_graph *tti_cuda_node_child(const struct tti_cuda_node *node);
/* What became of a node in a clone of its graph; NULL: nothing. */
struct tti_cuda_node *tti_cuda_node_in_clone(const struct tti_cuda_node *node,
					     const struct tti_cuda_graph *clone);

/* Up to *n of them into out[] (NULL: count alone); *n is how many there are. */
int tti_cuda_graph_nodes(const struct tti_cuda_graph *graph, struct tti_cuda_node **out, size_t *n);
int tti_cuda_graph_roots(const struct tti_cuda_graph *graph, struct tti_cuda_node **out, size_t *n);
int tti_cuda_graph_edges(const struct tti_cuda_graph *graph, struct tti_cuda_node **from,
			 struct tti_cuda_node **to, size_t *n);
int tti_cuda_node_before(const struct tti_cuda_node *node, struct tti_cuda_node **out, size_t *n);
int tti_cuda_node_after(const struct tti_cuda_node *node, struct tti_cuda_node **out, size_t *n);

/* EINVAL where nodes wait for each other in a circle. */
int tti_cuda_graph_instantiate(const struct tti_cuda_graph *graph, struct tti_cuda_exec **out);
/* Queue a run. The executable graph may be destroyed while it runs; a second launch waits for the
 * first. ECAPTURE in a stream that is captured, and its capture is invalid. */
int tti_cuda_exec_launch(struct tti_cuda_exec *exec, struct tti_cuda_stream *stream);
int tti_cuda_exec_destroy(struct tti_cuda_exec *exec);
/* The numbers of cudaGraphExecUpdateResult. */
enum tti_cuda_update {
	TTI_CUDA_UPDATE_TOPOLOGY = 2,   /* other nodes, or other dependencies */
	TTI_CUDA_UPDATE_TYPE = 3,       /* a node of another kind */
	TTI_CUDA_UPDATE_PARAMETERS = 5, /* a copy in another direction, or of rows */
};

/* Take the jobs of a graph of the same shape; EINVAL with *at, the first node that differs, and
 * *why, one of enum tti_cuda_update. */
int tti_cuda_exec_update(struct tti_cuda_exec *exec, const struct tti_cuda_graph *graph,
			 struct tti_cuda_node **at, int *why);

/* Another job for what came from this node of the instantiated graph; it is dropped if this
 * fails. */
int tti_cuda_exec_set(struct tti_cuda_exec *exec, const struct tti_cuda_node *node,
		      const struct tti_cuda_job *job);

/* -- Capture ------------------------------------------------------------------------------ */

enum tti_cuda_capture_mode {
	TTI_CUDA_CAPTURE_GLOBAL,
	TTI_CUDA_CAPTURE_THREAD,
	TTI_CUDA_CAPTURE_RELAXED
};
enum tti_cuda_capture_state {
	TTI_CUDA_CAPTURE_NONE,
	TTI_CUDA_CAPTURE_ACTIVE,
	TTI_CUDA_CAPTURE_INVALID
};

/* `graph` NULL: a new one. Else nodes come behind those of after[]. */
int tti_cuda_capture_begin(struct tti_cuda_stream *stream, enum tti_cuda_capture_mode mode,
			   struct tti_cuda_graph *graph, struct tti_cuda_node *const *after,
			   size_t nafter);
/* The graph belongs to the caller. An invalid capture ends with ECAPTURED and NULL, and one of
 * another thread with ETHREAD and NULL. `out` NULL: a new graph is freed. */
int tti_cuda_capture_end(struct tti_cuda_stream *stream, struct tti_cuda_graph **out);

struct tti_cuda_capture_info {
	enum tti_cuda_capture_state state;
	uint64_t id;
	struct tti_cuda_graph *graph; /* borrowed */
	struct tti_cuda_node *const
		*tail;     /* what the next job comes behind; borrowed; NULL: nothing */
	const void *edges; /* the CUgraphEdgeData to them; NULL: all are zeros */
	size_t ntail;
};

void tti_cuda_capture_get(struct tti_cuda_stream *stream, struct tti_cuda_capture_info *out);
/* The same for programs: EIMPLICIT of the legacy stream while a blocking stream is captured. */
int tti_cuda_capture_ask(struct tti_cuda_stream *stream, struct tti_cuda_capture_info *out);
/* A stream that is captured and is not to be: its capture is invalid. Returns `error` with a text,
 * or 0 if it is not captured. `what` is done to it. */
int tti_cuda_capture_refuse(struct tti_cuda_stream *stream, int error, const char *what);
int tti_cuda_capture_set_tail(struct tti_cuda_stream *stream, struct tti_cuda_node *const *after,
			      size_t nafter, bool adds);

/* What is not allowed while this thread, or any with a global capture, captures: ECAPTURE, and the
 * capture is invalid. `what` is the function. For cudaMalloc() and other calls that wait. */
int tti_cuda_capture_forbids(const char *what);
/* Make launch(arg, stream) a part of the graph that the stream of this handle is captured into: a job with
 * `launch`. drop(arg) is called with the graph, or if this fails. For libraries that have to know of each
 * launch, as libnccl.so.2 of Tutti. */
int tti_cuda_capture_launcher(void *stream, int (*launch)(void *arg, void *stream),
			      void (*drop)(void *arg), void *arg);
/* Set this thread's mode; returns the one before (cudaThreadExchangeStreamCaptureMode). */
enum tti_cuda_capture_mode tti_cuda_capture_exchange(enum tti_cuda_capture_mode mode);

#pragma GCC visibility pop

#endif

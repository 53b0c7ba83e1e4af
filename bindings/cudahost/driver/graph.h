/* SPDX-License-Identifier: BSD-3-Clause */
/* What the functions of graphs have in common. */
#ifndef TUTTI_CUDAHOST_DRIVER_GRAPH_H
#define TUTTI_CUDAHOST_DRIVER_GRAPH_H

#include "driver/driver.h"

static inline struct tti_cuda_graph *tti_driver_graph(CUgraph handle)
{
	return (struct tti_cuda_graph *)handle;
}

static inline struct tti_cuda_node *tti_driver_node(CUgraphNode handle)
{
	return (struct tti_cuda_node *)handle;
}

static inline struct tti_cuda_node *const *tti_driver_nodes(const CUgraphNode *handles)
{
	return (struct tti_cuda_node *const *)handles;
}

static inline struct tti_cuda_exec *tti_driver_exec(CUgraphExec handle)
{
	return (struct tti_cuda_exec *)handle;
}

/* 0, or EINVAL where the handle is NULL. */
int tti_driver_begin_graph(const void *handle, const char *what);

/* Edges are plain: EINVAL for the others, which are between kernels. NULL: all are plain. */
int tti_driver_check_edges(const CUgraphEdgeData *edges, size_t n);

int tti_driver_fill_job(const CUDA_MEMSET_NODE_PARAMS *params, struct tti_cuda_job *out);

/* Add a node with a job. */
CUresult tti_driver_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t nafter,
			const struct tti_cuda_job *job);

#endif

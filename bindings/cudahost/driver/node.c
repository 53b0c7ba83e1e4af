/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of graphs: copies, fills and calls, and those that are not jobs. */
#include "driver/graph.h"

CUresult tti_driver_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t nafter,
			const struct tti_cuda_job *job)
{
	struct tti_cuda_node *node;
	const int rc = tti_cuda_graph_add(tti_driver_graph(graph), tti_driver_nodes(after), nafter,
					  job, &node);

	if (!rc)
		*out = (CUgraphNode)node;
	return tti_driver_result(rc);
}

/* For all that add. */
static int begin_add(const CUgraphNode *out, CUgraph graph, const void *params, const char *what)
{
	int bad = tti_driver_begin_graph(graph, what);

	if (!bad)
		bad = tti_driver_need(out, what);
	return bad ? bad : tti_driver_need(params, what);
}

/* For all that look at a node or change it. */
static int begin_node(CUgraphNode node, const void *params, const char *what)
{
	const int bad = tti_driver_begin_graph(node, what);

	return bad ? bad : tti_driver_need(params, what);
}

static CUresult set(CUgraphNode node, const struct tti_cuda_job *job)
{
	return tti_driver_result(tti_cuda_node_set(tti_driver_node(node), job));
}

static CUresult set_exec(CUgraphExec exec, CUgraphNode node, const struct tti_cuda_job *job)
{
	return tti_driver_result(
		tti_cuda_exec_set(tti_driver_exec(exec), tti_driver_node(node), job));
}

static int other_kind(const char *what)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: the node is of another kind", what);
}

/* -- Empty ones, and graphs ---------------------------------------------------------------- */

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			     size_t nafter)
{
	const int bad = begin_add(out, graph, graph, __func__);

	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, NULL);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
				  size_t nafter, CUgraph child)
{
	struct tti_cuda_node *node;
	int bad = begin_add(out, graph, child, __func__);

	if (!bad)
		bad = tti_cuda_graph_add_child(tti_driver_graph(graph), tti_driver_nodes(after),
					       nafter, tti_driver_graph(child), &node);
	if (!bad)
		*out = (CUgraphNode)node;
	return tti_driver_result(bad);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
	int bad = begin_node(node, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	*out = (CUgraph)tti_cuda_node_child(tti_driver_node(node));
	return tti_driver_result(*out ? TTI_CUDA_OK : other_kind(__func__));
}

/* -- Copies -------------------------------------------------------------------------------- */

static int copy_job(const CUDA_MEMCPY3D *params, struct tti_cuda_job *out)
{
	struct tti_cuda_copy copy;
	const int bad = tti_driver_box(params, &copy);

	return bad ? bad : tti_cuda_copy_job(&copy, out);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			      size_t nafter, const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct tti_cuda_job job;
	int bad = begin_add(out, graph, params, __func__);

	(void)context;
	if (!bad)
		bad = copy_job(params, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out)
{
	const struct tti_cuda_copy *copy;
	const int bad = begin_node(node, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	copy = tti_cuda_node_copy(tti_driver_node(node));
	if (!copy)
		return tti_driver_result(other_kind(__func__));
	tti_driver_unbox(copy, out);
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, params, __func__);

	if (!bad)
		bad = copy_job(params, &job);
	return bad ? tti_driver_result(bad) : set(node, &job);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, exec, __func__);

	(void)context;
	if (!bad)
		bad = copy_job(params, &job);
	return bad ? tti_driver_result(bad) : set_exec(exec, node, &job);
}

/* -- Fills --------------------------------------------------------------------------------- */

int tti_driver_fill_job(const CUDA_MEMSET_NODE_PARAMS *params, struct tti_cuda_job *out)
{
	const int bad = tti_driver_need(params, "a node that fills");

	if (bad)
		return bad;
	const struct tti_cuda_fill fill = {
		.to = { tti_driver_address(params->dst), params->pitch, params->height },
		.width = params->width,
		.height = params->height,
		.depth = 1,
		.element = params->elementSize,
		.value = params->value,
	};

	return tti_cuda_fill_job(&fill, out);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			      size_t nafter, const CUDA_MEMSET_NODE_PARAMS *params,
			      CUcontext context)
{
	struct tti_cuda_job job;
	int bad = begin_add(out, graph, params, __func__);

	(void)context;
	if (!bad)
		bad = tti_driver_fill_job(params, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
	const struct tti_cuda_fill *fill;
	const int bad = begin_node(node, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	fill = tti_cuda_node_fill(tti_driver_node(node));
	if (!fill)
		return tti_driver_result(other_kind(__func__));
	*out = (CUDA_MEMSET_NODE_PARAMS){
		.dst = tti_driver_pointer(fill->to.address),
		.pitch = fill->to.pitch,
		.value = fill->value,
		.elementSize = fill->element,
		.width = fill->width,
		.height = fill->height,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, params, __func__);

	if (!bad)
		bad = tti_driver_fill_job(params, &job);
	return bad ? tti_driver_result(bad) : set(node, &job);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, exec, __func__);

	(void)context;
	if (!bad)
		bad = tti_driver_fill_job(params, &job);
	return bad ? tti_driver_result(bad) : set_exec(exec, node, &job);
}

/* -- Functions of the program -------------------------------------------------------------- */

static int call_job(const CUDA_HOST_NODE_PARAMS *params, struct tti_cuda_job *out)
{
	const int bad = tti_driver_need(params, "a node that calls a function");

	return bad ? bad
		   : tti_cuda_call_job(&(struct tti_cuda_call){ params->fn, params->userData },
				       out);
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			    size_t nafter, const CUDA_HOST_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = begin_add(out, graph, params, __func__);

	if (!bad)
		bad = call_job(params, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *out)
{
	const struct tti_cuda_call *call;
	const int bad = begin_node(node, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	call = tti_cuda_node_call(tti_driver_node(node));
	if (!call)
		return tti_driver_result(other_kind(__func__));
	*out = (CUDA_HOST_NODE_PARAMS){ call->function, call->user };
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, params, __func__);

	if (!bad)
		bad = call_job(params, &job);
	return bad ? tti_driver_result(bad) : set(node, &job);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
				      const CUDA_HOST_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = begin_node(node, exec, __func__);

	if (!bad)
		bad = call_job(params, &job);
	return bad ? tti_driver_result(bad) : set_exec(exec, node, &job);
}

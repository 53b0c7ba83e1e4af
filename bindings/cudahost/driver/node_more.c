/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of graphs: events, words of memory, and nodes of any kind by one description. */
#include <string.h>

#include "driver/graph.h"
#include "engine/event.h"

/* -- Events -------------------------------------------------------------------------------- */

typedef int job_maker(struct tti_cuda_event *event, struct tti_cuda_job *out);

static int event_job(CUevent event, job_maker *make, struct tti_cuda_job *out)
{
	const int bad = tti_driver_begin_graph(event, "a node of an event");

	return bad ? bad : make((struct tti_cuda_event *)event, out);
}

static CUresult add_event(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t nafter,
			  CUevent event, job_maker *make)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(graph, "a node of an event");

	if (!bad)
		bad = tti_driver_need(out, "a node of an event");
	if (!bad)
		bad = event_job(event, make, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

static CUresult set_event(CUgraphExec exec, CUgraphNode node, CUevent event, job_maker *make)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(node, "a node of an event");

	if (!bad)
		bad = event_job(event, make, &job);
	if (bad)
		return tti_driver_result(bad);
	if (!exec)
		return tti_driver_result(tti_cuda_node_set(tti_driver_node(node), &job));
	return tti_driver_result(
		tti_cuda_exec_set(tti_driver_exec(exec), tti_driver_node(node), &job));
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
				   size_t nafter, CUevent event)
{
	return add_event(out, graph, after, nafter, event, tti_cuda_event_record_job);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
				 size_t nafter, CUevent event)
{
	return add_event(out, graph, after, nafter, event, tti_cuda_event_await_job);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(NULL, node, event, tti_cuda_event_record_job);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(NULL, node, event, tti_cuda_event_await_job);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	const int bad = tti_driver_begin_graph(exec, __func__);

	return bad ? tti_driver_result(bad)
		   : set_event(exec, node, event, tti_cuda_event_record_job);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	const int bad = tti_driver_begin_graph(exec, __func__);

	return bad ? tti_driver_result(bad)
		   : set_event(exec, node, event, tti_cuda_event_await_job);
}

/* -- Words of memory ----------------------------------------------------------------------- */

static int ops_job(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, struct tti_cuda_job *out)
{
	int bad = tti_driver_need(params, "a node of operations on memory");

	if (!bad)
		bad = tti_driver_need(params->ctx, "the context of a node of operations on memory");
	return bad ? bad
		   : tti_driver_memory_ops(params->paramArray, params->count, params->flags, out);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
				  size_t nafter, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = ops_job(params, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
	const CUstreamBatchMemOpParams *op;
	unsigned n;
	int bad = tti_driver_begin_graph(node, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	op = tti_driver_memory_ops_of(tti_driver_node(node), &n);
	if (!op)
		return tti_driver_fail(
			TTI_CUDA_EINVAL,
			"cuGraphBatchMemOpNodeGetParams: the node is of another kind");
	*out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
		.ctx = tti_driver_context_of(tti_cuda_device_current()),
		.count = n,
		.paramArray = (CUstreamBatchMemOpParams *)(uintptr_t)op
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
					const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(node, __func__);

	if (!bad)
		bad = ops_job(params, &job);
	return tti_driver_result(bad ? bad : tti_cuda_node_set(tti_driver_node(node), &job));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = tti_driver_begin_graph(node, __func__);
	if (!bad)
		bad = ops_job(params, &job);
	return tti_driver_result(
		bad ? bad : tti_cuda_exec_set(tti_driver_exec(exec), tti_driver_node(node), &job));
}

/* -- Any kind ------------------------------------------------------------------------------ */

/* Any that is a job. */
static int job_of(const CUgraphNodeParams *params, struct tti_cuda_job *out)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	struct tti_cuda_copy copy;
	int bad;

	switch ((int)params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return tti_driver_launch_job(&params->kernel, "a node of a graph", out);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		bad = tti_driver_box(&params->memcpy.copyParams, &copy);
		return bad ? bad : tti_cuda_copy_job(&copy, out);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &params->memset, sizeof(fill));
		return tti_driver_fill_job(&fill, out);
	case CU_GRAPH_NODE_TYPE_HOST:
		return tti_cuda_call_job(
			&(struct tti_cuda_call){ params->host.fn, params->host.userData }, out);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return event_job(params->eventWait.event, tti_cuda_event_await_job, out);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return event_job(params->eventRecord.event, tti_cuda_event_record_job, out);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ops_job(&(CUDA_BATCH_MEM_OP_NODE_PARAMS){ params->memOp.ctx,
								 params->memOp.count,
								 params->memOp.paramArray,
								 params->memOp.flags },
			       out);
	default:
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "a node of a graph of type %d: there are 0 to 7 and 12",
				     (int)params->type);
	}
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			   const CUgraphEdgeData *edges, size_t nafter, CUgraphNodeParams *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_check_edges(edges, nafter);
	if (!bad)
		bad = tti_driver_need(params, __func__);
	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphAddChildGraphNode(out, graph, after, nafter, params->graph.graph);
	if (params->type == CU_GRAPH_NODE_TYPE_EMPTY)
		return cuGraphAddEmptyNode(out, graph, after, nafter);
	bad = job_of(params, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t nafter,
			CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(out, graph, after, NULL, nafter, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(node, __func__);

	if (!bad)
		bad = tti_driver_need(params, __func__);
	if (!bad)
		bad = job_of(params, &job);
	return tti_driver_result(bad ? bad : tti_cuda_node_set(tti_driver_node(node), &job));
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = tti_driver_begin_graph(node, __func__);
	if (!bad)
		bad = tti_driver_need(params, __func__);
	if (!bad)
		bad = job_of(params, &job);
	return tti_driver_result(
		bad ? bad : tti_cuda_exec_set(tti_driver_exec(exec), tti_driver_node(node), &job));
}

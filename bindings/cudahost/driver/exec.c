/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs that are ready to run. */
#include "driver/graph.h"

/* What is freed at a launch, and priorities of nodes, are as they are in streams. */
#define FLAGS                                                        \
	((unsigned)CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | \
	 (unsigned)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |              \
	 (unsigned)CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	struct tti_cuda_exec *exec;
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad && flags & ~(unsigned long long)FLAGS)
		bad = tti_cuda_fail(
			flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ? TTI_CUDA_ENOTSUPPORTED
									  : TTI_CUDA_EINVAL,
			"cuGraphInstantiate: flags 0x%llx: 1, 2 and 8; a graph that kernels "
			"launch (4) needs a GPU",
			flags);
	if (!bad)
		bad = tti_cuda_capture_forbids(__func__);
	if (!bad)
		bad = tti_cuda_graph_instantiate(tti_driver_graph(graph), &exec);
	if (!bad)
		*out = (CUgraphExec)exec;
	return tti_driver_result(bad);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	const int bad = tti_driver_need(params, __func__);
	CUresult rc;

	if (bad)
		return tti_driver_result(bad);
	rc = cuGraphInstantiateWithFlags(out, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = rc ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return rc;
}

/* The log says what the error means. */
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *out_at, char *log,
			       size_t nbytes)
{
	const CUresult rc = cuGraphInstantiateWithFlags(out, graph, 0);
	const char *text = rc ? tti_cuda_error_text() : "";
	size_t n = 0;

	if (out_at)
		*out_at = NULL;
	for (; log && n + 1 < nbytes && text[n]; n++)
		log[n] = text[n];
	if (log && nbytes)
		log[n] = '\0';
	return rc;
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *out_at, char *log,
			    size_t nbytes)
{
	return cuGraphInstantiate_v2(out, graph, out_at, log, nbytes);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	const int bad = tti_driver_begin_graph(exec, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_exec_destroy(tti_driver_exec(exec)));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = tti_driver_stream(handle, &stream);
	if (!bad)
		bad = tti_cuda_device_failure(tti_cuda_stream_device(stream));
	return tti_driver_result(bad ? bad : tti_cuda_exec_launch(tti_driver_exec(exec), stream));
}

/* A graph is where it runs from its beginning. */
CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = tti_driver_stream(handle, &stream);
	return tti_driver_result(
		bad ? bad : tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, __func__));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *out)
{
	struct tti_cuda_node *at = NULL;
	int why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = tti_driver_begin_graph(graph, __func__);
	if (bad)
		return tti_driver_result(bad);
	bad = tti_cuda_exec_update(tti_driver_exec(exec), tti_driver_graph(graph), &at, &why);
	if (bad && why)
		bad = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	else if (bad)
		why = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (out)
		*out = (CUgraphExecUpdateResultInfo){ .result = (CUgraphExecUpdateResult)why,
						      .errorNode = (CUgraphNode)at };
	return tti_driver_result(bad);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *out_at,
			   CUgraphExecUpdateResult *out)
{
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	int bad = tti_driver_need(out, __func__);
	CUresult rc;

	if (bad)
		return tti_driver_result(bad);
	rc = cuGraphExecUpdate_v2(exec, graph, &info);
	*out = info.result;
	if (out_at)
		*out_at = info.errorNode;
	return rc;
}

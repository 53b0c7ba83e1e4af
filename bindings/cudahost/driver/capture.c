/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that are captured. */
#include "driver/driver.h"
#include "driver/graph.h"

static int check_mode(CUstreamCaptureMode mode)
{
	if ((unsigned)mode <= CU_STREAM_CAPTURE_MODE_RELAXED)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "mode %d of a capture: there are 0..2", (int)mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *after,
				     const CUgraphEdgeData *edges, size_t nafter,
				     CUstreamCaptureMode mode)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad)
		bad = tti_driver_need(graph, __func__);
	if (!bad)
		bad = tti_driver_check_edges(edges, nafter);
	if (!bad)
		bad = check_mode(mode);
	return tti_driver_result(bad ? bad
				     : tti_cuda_capture_begin(stream,
							      (enum tti_cuda_capture_mode)mode,
							      tti_driver_graph(graph),
							      tti_driver_nodes(after), nafter));
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad)
		bad = check_mode(mode);
	return tti_driver_result(bad ? bad
				     : tti_cuda_capture_begin(stream,
							      (enum tti_cuda_capture_mode)mode,
							      NULL, NULL, 0));
}

/* The first version had no mode: it is what "global" became. */
CUresult cuStreamBeginCapture(CUstream handle)
{
	return cuStreamBeginCapture_v2(handle, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out)
{
	struct tti_cuda_stream *stream;
	const int bad = tti_driver_stream(handle, &stream);

	return tti_driver_result(bad ? bad
				     : tti_cuda_capture_end(stream, (struct tti_cuda_graph **)out));
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out)
{
	struct tti_cuda_capture_info info;
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_cuda_capture_ask(stream, &info);
	if (!bad)
		*out = (CUstreamCaptureStatus)info.state;
	return tti_driver_result(bad);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *out_state,
				   cuuint64_t *out_id, CUgraph *out_graph,
				   const CUgraphNode **out_tail, const CUgraphEdgeData **out_edges,
				   size_t *out_ntail)
{
	struct tti_cuda_capture_info info;
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad)
		bad = tti_driver_need(out_state, __func__);
	if (!bad)
		bad = tti_cuda_capture_ask(stream, &info);
	if (bad)
		return tti_driver_result(bad);
	*out_state = (CUstreamCaptureStatus)info.state;
	if (out_id && info.state != TTI_CUDA_CAPTURE_NONE)
		*out_id = info.id;
	if (info.state != TTI_CUDA_CAPTURE_ACTIVE)
		return CUDA_SUCCESS;
	if (out_graph)
		*out_graph = (CUgraph)info.graph;
	if (out_tail)
		*out_tail = (const CUgraphNode *)info.tail;
	if (out_edges)
		*out_edges = info.edges;
	if (out_ntail)
		*out_ntail = info.ntail;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *out_state,
				   cuuint64_t *out_id, CUgraph *out_graph,
				   const CUgraphNode **out_tail, size_t *out_ntail)
{
	return cuStreamGetCaptureInfo_v3(handle, out_state, out_id, out_graph, out_tail, NULL,
					 out_ntail);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *out_state,
				cuuint64_t *out_id)
{
	return cuStreamGetCaptureInfo_v3(handle, out_state, out_id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *after,
					      const CUgraphEdgeData *edges, size_t nafter,
					      unsigned flags)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad)
		bad = tti_driver_check_edges(edges, nafter);
	if (!bad && flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		bad = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cuStreamUpdateCaptureDependencies: flags %u: 0 (add) or 1 (set)", flags);
	return tti_driver_result(
		bad ? bad
		    : tti_cuda_capture_set_tail(stream, tti_driver_nodes(after), nafter,
						flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *after, size_t nafter,
					   unsigned flags)
{
	return cuStreamUpdateCaptureDependencies_v2(handle, after, NULL, nafter, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(mode, __func__);
	if (!bad)
		bad = check_mode(*mode);
	if (!bad)
		*mode = (CUstreamCaptureMode)tti_cuda_capture_exchange(
			(enum tti_cuda_capture_mode) * mode);
	return tti_driver_result(bad);
}

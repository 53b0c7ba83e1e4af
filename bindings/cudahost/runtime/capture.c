/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: what is queued becomes a graph. */
#include "runtime/runtime.h"

static int check_mode(const char *function, int mode)
{
	if (mode >= TTI_CUDA_CAPTURE_GLOBAL && mode <= TTI_CUDA_CAPTURE_RELAXED)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): there is no mode %d: pass one of enum cudaStreamCaptureMode",
			     function, mode);
}

int tti_cudaStreamBeginCapture(bool per_thread, tti_cu_stream handle, int mode)
{
	int error = check_mode("cudaStreamBeginCapture", mode);
	struct tti_cuda_stream *stream;

	if (error)
		return error;
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	return stream ? tti_cuda_capture_begin(stream, (enum tti_cuda_capture_mode)mode, NULL, NULL,
					       0)
		      : error;
}

int tti_cudaStreamBeginCaptureToGraph(bool per_thread, tti_cu_stream handle, tti_cu_graph graph,
				      const tti_cu_node *after, const struct tti_cu_edge *edges,
				      size_t nafter, int mode)
{
	int error = check_mode("cudaStreamBeginCaptureToGraph", mode);
	struct tti_cuda_stream *stream;

	if (!error && !graph)
		error = tti_cudart_null("cudaStreamBeginCaptureToGraph", "graph");
	if (!error)
		error = tti_cudart_check_edges("cudaStreamBeginCaptureToGraph", edges, nafter);
	if (error)
		return error;
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	return stream ? tti_cuda_capture_begin(stream, (enum tti_cuda_capture_mode)mode, graph,
					       after, nafter)
		      : error;
}

int tti_cudaStreamEndCapture(bool per_thread, tti_cu_stream handle, tti_cu_graph *out)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	return stream ? tti_cuda_capture_end(stream, out) : error;
}

/* Each place may be NULL, but for the state. */
static int get_info(bool per_thread, const void *handle, int *state, unsigned long long *id,
		    struct tti_cuda_capture_info *info)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (!state)
		return tti_cudart_null("cudaStreamGetCaptureInfo", "place for the state");
	error = tti_cuda_capture_ask(stream, info);
	if (error)
		return error;
	*state = (int)info->state;
	if (id && info->state != TTI_CUDA_CAPTURE_NONE)
		*id = info->id;
	return 0;
}

static int get_info_all(bool per_thread, const void *handle, int *state, unsigned long long *id,
			tti_cu_graph *graph, const tti_cu_node **tail,
			const struct tti_cu_edge **edges, size_t *ntail)
{
	struct tti_cuda_capture_info info;
	const int error = get_info(per_thread, handle, state, id, &info);

	if (error || info.state != TTI_CUDA_CAPTURE_ACTIVE)
		return error;
	if (graph)
		*graph = info.graph;
	if (tail)
		*tail = info.tail;
	if (edges)
		*edges = info.edges;
	if (ntail)
		*ntail = info.ntail;
	return 0;
}

int tti_cudaStreamIsCapturing(bool per_thread, tti_cu_stream stream, int *out)
{
	struct tti_cuda_capture_info info;

	return get_info(per_thread, stream, out, NULL, &info);
}

static int update(bool per_thread, const void *handle, tti_cu_node *nodes,
		  const struct tti_cu_edge *edges, size_t n, unsigned flags)
{
	int error = tti_cudart_check_edges("cudaStreamUpdateCaptureDependencies", edges, n);
	struct tti_cuda_stream *stream;

	if (error)
		return error;
	if (flags > 1)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamUpdateCaptureDependencies(): flags are %#x: pass "
				     "cudaStreamAddCaptureDependencies or cudaStreamSet...",
				     flags);
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	return stream ? tti_cuda_capture_set_tail(stream, nodes, n, flags == 0) : error;
}

#if TTI_CUDART_MAJOR == 12
int tti_cudaStreamGetCaptureInfo(bool per_thread, tti_cu_stream stream, int *state,
				 unsigned long long *id)
{
	struct tti_cuda_capture_info info;

	return get_info(per_thread, stream, state, id, &info);
}

int tti_cudaStreamGetCaptureInfo_v2(bool per_thread, tti_cu_stream stream, int *state,
				    unsigned long long *id, tti_cu_graph *graph,
				    const tti_cu_node **tail, size_t *ntail)
{
	return get_info_all(per_thread, stream, state, id, graph, tail, NULL, ntail);
}

int tti_cudaStreamGetCaptureInfo_v3(bool per_thread, tti_cu_stream stream, int *state,
				    unsigned long long *id, tti_cu_graph *graph,
				    const tti_cu_node **tail, const struct tti_cu_edge **edges,
				    size_t *ntail)
{
	return get_info_all(per_thread, stream, state, id, graph, tail, edges, ntail);
}

int tti_cudaStreamUpdateCaptureDependencies(bool per_thread, tti_cu_stream stream,
					    tti_cu_node *nodes, size_t n, unsigned flags)
{
	return update(per_thread, stream, nodes, NULL, n, flags);
}

int tti_cudaStreamUpdateCaptureDependencies_v2(bool per_thread, tti_cu_stream stream,
					       tti_cu_node *nodes, const struct tti_cu_edge *edges,
					       size_t n, unsigned flags)
{
	return update(per_thread, stream, nodes, edges, n, flags);
}
#else
int tti_cudaStreamGetCaptureInfo(bool per_thread, tti_cu_stream stream, int *state,
				 unsigned long long *id, tti_cu_graph *graph,
				 const tti_cu_node **tail, const struct tti_cu_edge **edges,
				 size_t *ntail)
{
	return get_info_all(per_thread, stream, state, id, graph, tail, edges, ntail);
}

int tti_cudaStreamUpdateCaptureDependencies(bool per_thread, tti_cu_stream stream,
					    tti_cu_node *nodes, const struct tti_cu_edge *edges,
					    size_t n, unsigned flags)
{
	return update(per_thread, stream, nodes, edges, n, flags);
}
#endif

int tti_cudaThreadExchangeStreamCaptureMode(int *mode)
{
	int error;

	if (!mode)
		return tti_cudart_null("cudaThreadExchangeStreamCaptureMode", "mode");
	error = check_mode("cudaThreadExchangeStreamCaptureMode", *mode);
	if (!error)
		*mode = (int)tti_cuda_capture_exchange((enum tti_cuda_capture_mode) * mode);
	return error;
}

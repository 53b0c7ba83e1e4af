/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of graphs: what each kind does is a job, which is added as a node, or takes the place of
 * that of a node or of an executable graph. */
#include <string.h>

#include "runtime/runtime.h"

/* -- Jobs --------------------------------------------------------------------------------- */

static int copy_job(const char *function, const struct tti_cu_copy3d *from,
		    struct tti_cuda_job *out)
{
	struct tti_cuda_copy copy;
	const int error = tti_cudart_copy3d(function, from, &copy);

	return error ? error : tti_cuda_copy_job(&copy, out);
}

static int bytes_job(void *to, const void *from, size_t nbytes, int kind, struct tti_cuda_job *out)
{
	const struct tti_cuda_copy copy = tti_cuda_copy_of(to, from, nbytes, kind);
	const int error = tti_cudart_check_kind("cudaGraphAddMemcpyNode1D", kind);

	return error ? error : tti_cuda_copy_job(&copy, out);
}

static int fill_job(const char *function, const struct tti_cu_memset_node *set,
		    struct tti_cuda_job *out)
{
	struct tti_cuda_fill fill;

	if (!set)
		return tti_cudart_null(function, "description of the memory");
	fill = (struct tti_cuda_fill){
		.to = { set->to, set->pitch, set->height },
		.width = set->width,
		.height = set->height,
		.depth = 1,
		.element = set->element_bytes,
		.value = set->value,
	};
	return tti_cuda_fill_job(&fill, out);
}

static int kernel_job(const char *function, const struct tti_cu_kernel_node *kernel,
		      struct tti_cuda_job *out)
{
	if (!kernel)
		return tti_cudart_null(function, "description of the kernel");
	return tti_cudart_kernel_job(function, kernel, true, out);
}

/* Any kind but memory and child graphs. */
static int params_job(const char *function, const struct tti_cu_node_params *params,
		      struct tti_cuda_job *out)
{
	switch (params->type) {
	case TTI_CUDA_NODE_KERNEL:
		return kernel_job(function, &params->of.kernel, out);
	case TTI_CUDA_NODE_COPY:
		return copy_job(function, &params->of.copy.copy, out);
	case TTI_CUDA_NODE_SET:
		return fill_job(function, &params->of.set, out);
	case TTI_CUDA_NODE_HOST:
		return tti_cudart_host_job(function, &params->of.host, out);
	case TTI_CUDA_NODE_AWAIT:
		return tti_cuda_event_await_job(params->of.event.event, out);
	case TTI_CUDA_NODE_RECORD:
		return tti_cuda_event_record_job(params->of.event.event, out);
	default:
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "%s(): nodes of kind %d are not there on host memory: use "
				     "kernels, copies, host functions, events",
				     function, params->type);
	}
}

/* -- Adding ------------------------------------------------------------------------------- */

static int add(const char *function, GRAPH_NODE_PARAMETERS, const struct tti_cuda_job *job)
{
	if (!out) {
		if (job && job->drop)
			job->drop(job->arg);
		return tti_cudart_null(function, "place for the node");
	}
	return tti_cuda_graph_add(graph, after, nafter, job, out);
}

int tti_cudaGraphAddEmptyNode(GRAPH_NODE_PARAMETERS)
{
	return add("cudaGraphAddEmptyNode", out, graph, after, nafter, NULL);
}

int tti_cudaGraphAddHostNode(GRAPH_NODE_PARAMETERS, const struct tti_cu_host_node *host)
{
	struct tti_cuda_job job;
	const int error = tti_cudart_host_job("cudaGraphAddHostNode", host, &job);

	return error ? error : add("cudaGraphAddHostNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddMemcpyNode(GRAPH_NODE_PARAMETERS, const struct tti_cu_copy3d *copy)
{
	struct tti_cuda_job job;
	const int error = copy_job("cudaGraphAddMemcpyNode", copy, &job);

	return error ? error : add("cudaGraphAddMemcpyNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddMemcpyNode1D(GRAPH_NODE_PARAMETERS, void *to, const void *from, size_t nbytes,
				 int kind)
{
	struct tti_cuda_job job;
	const int error = bytes_job(to, from, nbytes, kind, &job);

	return error ? error : add("cudaGraphAddMemcpyNode1D", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddMemsetNode(GRAPH_NODE_PARAMETERS, const struct tti_cu_memset_node *set)
{
	struct tti_cuda_job job;
	const int error = fill_job("cudaGraphAddMemsetNode", set, &job);

	return error ? error : add("cudaGraphAddMemsetNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddKernelNode(GRAPH_NODE_PARAMETERS, const struct tti_cu_kernel_node *kernel)
{
	struct tti_cuda_job job;
	const int error = kernel_job("cudaGraphAddKernelNode", kernel, &job);

	return error ? error : add("cudaGraphAddKernelNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddEventRecordNode(GRAPH_NODE_PARAMETERS, tti_cu_event event)
{
	struct tti_cuda_job job;
	const int error = tti_cuda_event_record_job(event, &job);

	return error ? error : add("cudaGraphAddEventRecordNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddEventWaitNode(GRAPH_NODE_PARAMETERS, tti_cu_event event)
{
	struct tti_cuda_job job;
	const int error = tti_cuda_event_await_job(event, &job);

	return error ? error : add("cudaGraphAddEventWaitNode", out, graph, after, nafter, &job);
}

int tti_cudaGraphAddChildGraphNode(GRAPH_NODE_PARAMETERS, tti_cu_graph child)
{
	if (!out)
		return tti_cudart_null("cudaGraphAddChildGraphNode", "place for the node");
	return tti_cuda_graph_add_child(graph, after, nafter, child, out);
}

/* -- Memory ------------------------------------------------------------------------------- */

/* A stream that is captured into the graph, for what the engine does in streams alone. */
static int begin(GRAPH_NODE_PARAMETERS, struct tti_cuda_stream **stream)
{
	int error;

	if (!out)
		return tti_cudart_null("cudaGraphAddMemAllocNode", "place for the node");
	error = tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, stream);
	if (error)
		return error;
	error = tti_cuda_capture_begin(*stream, TTI_CUDA_CAPTURE_RELAXED, graph, after, nafter);
	if (error)
		(void)tti_cuda_stream_destroy(*stream);
	return error;
}

/* *out: the node that came last. */
static int end(struct tti_cuda_stream *stream, int error, tti_cu_node *out)
{
	struct tti_cuda_capture_info info;
	struct tti_cuda_graph *graph;
	int ended;

	tti_cuda_capture_get(stream, &info);
	if (!error && info.ntail == 1)
		*out = info.tail[0];
	ended = tti_cuda_capture_end(stream, &graph);
	(void)tti_cuda_stream_destroy(stream);
	return error ? error : ended;
}

int tti_cudaGraphAddMemAllocNode(GRAPH_NODE_PARAMETERS, struct tti_cu_alloc_node *alloc)
{
	struct tti_cuda_stream *stream;
	int error;

	if (!alloc)
		return tti_cudart_null("cudaGraphAddMemAllocNode", "description of the memory");
	if (alloc->props.location.type != TTI_CU_AT_DEVICE)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaGraphAddMemAllocNode(): memory at a location of type %d: "
				     "pass cudaMemLocationTypeDevice",
				     alloc->props.location.type);
	if (!alloc->nbytes ||
	    tti_cudart_check_device("cudaGraphAddMemAllocNode", alloc->props.location.id))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaGraphAddMemAllocNode(): %zu bytes of device %d: pass one "
				     "or more, of a device that is there",
				     alloc->nbytes, alloc->props.location.id);
	error = begin(out, graph, after, nafter, &stream);
	if (error)
		return error;
	error = tti_cuda_pool_alloc(tti_cuda_pool_default(alloc->props.location.id), alloc->nbytes,
				    stream, &alloc->address);
	return end(stream, error, out);
}

int tti_cudaGraphAddMemFreeNode(GRAPH_NODE_PARAMETERS, void *address)
{
	struct tti_cuda_stream *stream;
	int error;

	if (!address)
		return tti_cudart_null("cudaGraphAddMemFreeNode", "address");
	error = begin(out, graph, after, nafter, &stream);
	return error ? error : end(stream, tti_cuda_pool_free(address, stream), out);
}

/* -- Any kind ----------------------------------------------------------------------------- */

static int add_any(GRAPH_NODE_PARAMETERS, struct tti_cu_node_params *params)
{
	struct tti_cuda_job job;
	int error;

	if (!params)
		return tti_cudart_null("cudaGraphAddNode", "description of the node");
	switch (params->type) {
	case TTI_CUDA_NODE_EMPTY:
		return tti_cudaGraphAddEmptyNode(out, graph, after, nafter);
	case TTI_CUDA_NODE_GRAPH:
		if (TTI_CUDART_MAJOR >= 13 && params->of.child.ownership != 0)
			return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
					     "cudaGraphAddNode(): a child graph cannot be moved "
					     "here: let it be cloned, and destroy it");
		return tti_cudaGraphAddChildGraphNode(out, graph, after, nafter,
						      params->of.child.graph);
	case TTI_CUDA_NODE_ALLOC:
		return tti_cudaGraphAddMemAllocNode(out, graph, after, nafter, &params->of.alloc);
	case TTI_CUDA_NODE_FREE:
		return tti_cudaGraphAddMemFreeNode(out, graph, after, nafter,
						   params->of.free.address);
	default:
		error = params_job("cudaGraphAddNode", params, &job);
		return error ? error : add("cudaGraphAddNode", out, graph, after, nafter, &job);
	}
}

#if TTI_CUDART_MAJOR == 12
int tti_cudaGraphAddNode(GRAPH_NODE_PARAMETERS, struct tti_cu_node_params *params)
{
	return add_any(out, graph, after, nafter, params);
}

int tti_cudaGraphAddNode_v2(tti_cu_node *out, tti_cu_graph graph, const tti_cu_node *after,
			    const struct tti_cu_edge *edges, size_t nafter,
			    struct tti_cu_node_params *params)
{
	const int error = tti_cudart_check_edges("cudaGraphAddNode", edges, nafter);

	return error ? error : add_any(out, graph, after, nafter, params);
}
#else
int tti_cudaGraphAddNode(tti_cu_node *out, tti_cu_graph graph, const tti_cu_node *after,
			 const struct tti_cu_edge *edges, size_t nafter,
			 struct tti_cu_node_params *params)
{
	const int error = tti_cudart_check_edges("cudaGraphAddNode", edges, nafter);

	return error ? error : add_any(out, graph, after, nafter, params);
}
#endif

/* -- What a node does --------------------------------------------------------------------- */

static int no_such_node(const char *function, const void *out)
{
	if (!out)
		return tti_cudart_null(function, "place for the answer");
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): the node is of another kind", function);
}

int tti_cudaGraphHostNodeGetParams(tti_cu_node node, struct tti_cu_host_node *out)
{
	const struct tti_cuda_call *call = tti_cuda_node_call(node);

	if (!call || !out)
		return no_such_node("cudaGraphHostNodeGetParams", out);
	*out = (struct tti_cu_host_node){ call->function, call->user };
	return 0;
}

static struct tti_cu_pitched pitched_of(const struct tti_cuda_place *at, size_t width)
{
	return (struct tti_cu_pitched){ at->address, at->pitch, width, at->rows };
}

int tti_cudaGraphMemcpyNodeGetParams(tti_cu_node node, struct tti_cu_copy3d *out)
{
	const struct tti_cuda_copy *copy = tti_cuda_node_copy(node);

	if (!copy || !out)
		return no_such_node("cudaGraphMemcpyNodeGetParams", out);
	*out = (struct tti_cu_copy3d){
		.from = pitched_of(&copy->from, copy->width),
		.to = pitched_of(&copy->to, copy->width),
		.extent = { copy->width, copy->height, copy->depth },
		.kind = copy->kind,
	};
	return 0;
}

int tti_cudaGraphMemsetNodeGetParams(tti_cu_node node, struct tti_cu_memset_node *out)
{
	const struct tti_cuda_fill *fill = tti_cuda_node_fill(node);

	if (!fill || !out)
		return no_such_node("cudaGraphMemsetNodeGetParams", out);
	*out = (struct tti_cu_memset_node){
		.to = fill->to.address,
		.pitch = fill->to.pitch,
		.value = fill->value,
		.element_bytes = fill->element,
		.width = fill->width,
		.height = fill->height,
	};
	return 0;
}

int tti_cudaGraphKernelNodeGetParams(tti_cu_node node, struct tti_cu_kernel_node *out)
{
	if (!out || !tti_cudart_node_kernel(node, out))
		return no_such_node("cudaGraphKernelNodeGetParams", out);
	return 0;
}

int tti_cudaGraphChildGraphNodeGetGraph(tti_cu_node node, tti_cu_graph *out)
{
	struct tti_cuda_graph *child = tti_cuda_node_child(node);

	if (!child || !out)
		return no_such_node("cudaGraphChildGraphNodeGetGraph", out);
	*out = child;
	return 0;
}

/* -- Setting ------------------------------------------------------------------------------ */

static int set(tti_cu_node node, int error, const struct tti_cuda_job *job)
{
	return error ? error : tti_cuda_node_set(node, job);
}

static int set_exec(tti_cu_exec exec, tti_cu_node node, int error, const struct tti_cuda_job *job)
{
	return error ? error : tti_cuda_exec_set(exec, node, job);
}

int tti_cudaGraphHostNodeSetParams(tti_cu_node node, const struct tti_cu_host_node *host)
{
	struct tti_cuda_job job;

	return set(node, tti_cudart_host_job("cudaGraphHostNodeSetParams", host, &job), &job);
}

int tti_cudaGraphExecHostNodeSetParams(tti_cu_exec exec, tti_cu_node node,
				       const struct tti_cu_host_node *host)
{
	struct tti_cuda_job job;

	return set_exec(exec, node,
			tti_cudart_host_job("cudaGraphExecHostNodeSetParams", host, &job), &job);
}

int tti_cudaGraphMemcpyNodeSetParams(tti_cu_node node, const struct tti_cu_copy3d *copy)
{
	struct tti_cuda_job job;

	return set(node, copy_job("cudaGraphMemcpyNodeSetParams", copy, &job), &job);
}

int tti_cudaGraphExecMemcpyNodeSetParams(tti_cu_exec exec, tti_cu_node node,
					 const struct tti_cu_copy3d *copy)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, copy_job("cudaGraphExecMemcpyNodeSetParams", copy, &job), &job);
}

int tti_cudaGraphMemcpyNodeSetParams1D(tti_cu_node node, void *to, const void *from, size_t nbytes,
				       int kind)
{
	struct tti_cuda_job job;

	return set(node, bytes_job(to, from, nbytes, kind, &job), &job);
}

int tti_cudaGraphExecMemcpyNodeSetParams1D(tti_cu_exec exec, tti_cu_node node, void *to,
					   const void *from, size_t nbytes, int kind)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, bytes_job(to, from, nbytes, kind, &job), &job);
}

int tti_cudaGraphMemsetNodeSetParams(tti_cu_node node, const struct tti_cu_memset_node *fill)
{
	struct tti_cuda_job job;

	return set(node, fill_job("cudaGraphMemsetNodeSetParams", fill, &job), &job);
}

int tti_cudaGraphExecMemsetNodeSetParams(tti_cu_exec exec, tti_cu_node node,
					 const struct tti_cu_memset_node *fill)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, fill_job("cudaGraphExecMemsetNodeSetParams", fill, &job), &job);
}

int tti_cudaGraphKernelNodeSetParams(tti_cu_node node, const struct tti_cu_kernel_node *kernel)
{
	struct tti_cuda_job job;

	return set(node, kernel_job("cudaGraphKernelNodeSetParams", kernel, &job), &job);
}

int tti_cudaGraphExecKernelNodeSetParams(tti_cu_exec exec, tti_cu_node node,
					 const struct tti_cu_kernel_node *kernel)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, kernel_job("cudaGraphExecKernelNodeSetParams", kernel, &job),
			&job);
}

int tti_cudaGraphEventRecordNodeSetEvent(tti_cu_node node, tti_cu_event event)
{
	struct tti_cuda_job job;

	return set(node, tti_cuda_event_record_job(event, &job), &job);
}

int tti_cudaGraphExecEventRecordNodeSetEvent(tti_cu_exec exec, tti_cu_node node, tti_cu_event event)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, tti_cuda_event_record_job(event, &job), &job);
}

int tti_cudaGraphEventWaitNodeSetEvent(tti_cu_node node, tti_cu_event event)
{
	struct tti_cuda_job job;

	return set(node, tti_cuda_event_await_job(event, &job), &job);
}

int tti_cudaGraphExecEventWaitNodeSetEvent(tti_cu_exec exec, tti_cu_node node, tti_cu_event event)
{
	struct tti_cuda_job job;

	return set_exec(exec, node, tti_cuda_event_await_job(event, &job), &job);
}

int tti_cudaGraphNodeSetParams(tti_cu_node node, struct tti_cu_node_params *params)
{
	struct tti_cuda_job job;

	if (!params)
		return tti_cudart_null("cudaGraphNodeSetParams", "description of the node");
	return set(node, params_job("cudaGraphNodeSetParams", params, &job), &job);
}

int tti_cudaGraphExecNodeSetParams(tti_cu_exec exec, tti_cu_node node,
				   struct tti_cu_node_params *params)
{
	struct tti_cuda_job job;

	if (!params)
		return tti_cudart_null("cudaGraphExecNodeSetParams", "description of the node");
	return set_exec(exec, node, params_job("cudaGraphExecNodeSetParams", params, &job), &job);
}

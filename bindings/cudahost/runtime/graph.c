/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs as a whole: their nodes and edges, and what is launched. */
#include <string.h>

#include "runtime/runtime.h"

/* -- Graphs ------------------------------------------------------------------------------- */

int tti_cudaGraphCreate(tti_cu_graph *out, unsigned flags)
{
	if (!out)
		return tti_cudart_null("cudaGraphCreate", "place for the graph");
	if (flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "cudaGraphCreate(): flags are %#x: pass 0",
				     flags);
	return tti_cuda_graph_create(out);
}

int tti_cudaGraphDestroy(tti_cu_graph graph)
{
	return tti_cuda_graph_destroy(graph);
}

int tti_cudaGraphClone(tti_cu_graph *out, tti_cu_graph graph)
{
	if (!out)
		return tti_cudart_null("cudaGraphClone", "place for the graph");
	return tti_cuda_graph_clone(graph, out);
}

int tti_cudaGraphDestroyNode(tti_cu_node node)
{
	return tti_cuda_node_destroy(node);
}

int tti_cudaGraphNodeGetType(tti_cu_node node, int *out)
{
	const int kind = tti_cuda_node_kind(node);

	if (!out)
		return tti_cudart_null("cudaGraphNodeGetType", "place for the kind");
	if (kind < 0)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "cudaGraphNodeGetType(): %p is no node",
				     (void *)node);
	*out = kind;
	return 0;
}

int tti_cudaGraphNodeFindInClone(tti_cu_node *out, tti_cu_node node, tti_cu_graph clone)
{
	if (!out)
		return tti_cudart_null("cudaGraphNodeFindInClone", "place for the node");
	*out = tti_cuda_node_in_clone(node, clone);
	if (!*out)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaGraphNodeFindInClone(): graph %p has no clone of node %p",
				     (void *)clone, (void *)node);
	return 0;
}

/* -- Nodes and edges ---------------------------------------------------------------------- */

/* The engine's answer says how many there are; CUDA's how many it wrote, and NULL behind them. */
static int finish(int error, tti_cu_node *out, size_t room, size_t *n)
{
	if (error || !out)
		return error;
	for (size_t at = *n; at < room; at++)
		out[at] = NULL;
	if (*n > room)
		*n = room;
	return 0;
}

static int no_count(const char *function)
{
	return tti_cudart_null(function, "number of nodes");
}

int tti_cudaGraphGetNodes(tti_cu_graph graph, tti_cu_node *out, size_t *n)
{
	const size_t room = n ? *n : 0;

	if (!n)
		return no_count("cudaGraphGetNodes");
	return finish(tti_cuda_graph_nodes(graph, out, n), out, room, n);
}

int tti_cudaGraphGetRootNodes(tti_cu_graph graph, tti_cu_node *out, size_t *n)
{
	const size_t room = n ? *n : 0;

	if (!n)
		return no_count("cudaGraphGetRootNodes");
	return finish(tti_cuda_graph_roots(graph, out, n), out, room, n);
}

static void plain_edges(struct tti_cu_edge *edges, size_t n)
{
	if (edges && n)
		memset(edges, 0, n * sizeof(*edges));
}

static int get_edges(tti_cu_graph graph, tti_cu_node *from, tti_cu_node *to,
		     struct tti_cu_edge *edges, size_t *n)
{
	const size_t room = n ? *n : 0;
	int error;

	if (!n)
		return no_count("cudaGraphGetEdges");
	if (!from != !to)
		return tti_cudart_null("cudaGraphGetEdges", "list of nodes");
	error = tti_cuda_graph_edges(graph, from, to, n);
	if (error || !from)
		return error;
	if (*n > room)
		*n = room;
	plain_edges(edges, *n);
	return 0;
}

static int get_before(tti_cu_node node, tti_cu_node *out, struct tti_cu_edge *edges, size_t *n)
{
	const size_t room = n ? *n : 0;
	int error;

	if (!n)
		return no_count("cudaGraphNodeGetDependencies");
	error = finish(tti_cuda_node_before(node, out, n), out, room, n);
	if (!error && out)
		plain_edges(edges, *n);
	return error;
}

static int get_after(tti_cu_node node, tti_cu_node *out, struct tti_cu_edge *edges, size_t *n)
{
	const size_t room = n ? *n : 0;
	int error;

	if (!n)
		return no_count("cudaGraphNodeGetDependentNodes");
	error = finish(tti_cuda_node_after(node, out, n), out, room, n);
	if (!error && out)
		plain_edges(edges, *n);
	return error;
}

int tti_cudart_check_edges(const char *function, const struct tti_cu_edge *edges, size_t n)
{
	for (size_t at = 0; edges && at < n; at++)
		if (edges[at].type || edges[at].from_port || edges[at].to_port)
			return tti_cuda_fail(TTI_CUDA_EINVAL,
					     "%s(): edge %zu has type %u, ports %u and %u, which "
					     "kernels on a GPU alone have: pass zeros",
					     function, at, edges[at].type, edges[at].from_port,
					     edges[at].to_port);
	return 0;
}

static int connect(const char *function, bool adds, tti_cu_graph graph, const tti_cu_node *from,
		   const tti_cu_node *to, const struct tti_cu_edge *edges, size_t n)
{
	const int error = tti_cudart_check_edges(function, edges, n);

	if (error)
		return error;
	return adds ? tti_cuda_graph_connect(graph, from, to, n)
		    : tti_cuda_graph_disconnect(graph, from, to, n);
}

/* The functions of CUDA 13 have the names that _v2 have in 12. */
#if TTI_CUDART_MAJOR == 12
#define NEW(name) name##_v2

int tti_cudaGraphGetEdges(tti_cu_graph graph, tti_cu_node *from, tti_cu_node *to, size_t *n)
{
	return get_edges(graph, from, to, NULL, n);
}

int tti_cudaGraphNodeGetDependencies(tti_cu_node node, tti_cu_node *out, size_t *n)
{
	return get_before(node, out, NULL, n);
}

int tti_cudaGraphNodeGetDependentNodes(tti_cu_node node, tti_cu_node *out, size_t *n)
{
	return get_after(node, out, NULL, n);
}

int tti_cudaGraphAddDependencies(tti_cu_graph graph, const tti_cu_node *from, const tti_cu_node *to,
				 size_t n)
{
	return connect("cudaGraphAddDependencies", true, graph, from, to, NULL, n);
}

int tti_cudaGraphRemoveDependencies(tti_cu_graph graph, const tti_cu_node *from,
				    const tti_cu_node *to, size_t n)
{
	return connect("cudaGraphRemoveDependencies", false, graph, from, to, NULL, n);
}
#else
#define NEW(name) name
#endif

int NEW(tti_cudaGraphGetEdges)(tti_cu_graph graph, tti_cu_node *from, tti_cu_node *to,
			       struct tti_cu_edge *edges, size_t *n)
{
	return get_edges(graph, from, to, edges, n);
}

int NEW(tti_cudaGraphNodeGetDependencies)(tti_cu_node node, tti_cu_node *out,
					  struct tti_cu_edge *edges, size_t *n)
{
	return get_before(node, out, edges, n);
}

int NEW(tti_cudaGraphNodeGetDependentNodes)(tti_cu_node node, tti_cu_node *out,
					    struct tti_cu_edge *edges, size_t *n)
{
	return get_after(node, out, edges, n);
}

int NEW(tti_cudaGraphAddDependencies)(tti_cu_graph graph, const tti_cu_node *from,
				      const tti_cu_node *to, const struct tti_cu_edge *edges,
				      size_t n)
{
	return connect("cudaGraphAddDependencies", true, graph, from, to, edges, n);
}

int NEW(tti_cudaGraphRemoveDependencies)(tti_cu_graph graph, const tti_cu_node *from,
					 const tti_cu_node *to, const struct tti_cu_edge *edges,
					 size_t n)
{
	return connect("cudaGraphRemoveDependencies", false, graph, from, to, edges, n);
}

/* -- What is launched --------------------------------------------------------------------- */

/* Free memory again before each launch 1, upload 2, which needs a stream, the nodes' priorities 8.
 * A kernel's launch of a graph, 4, is not there. */
static int instantiate(tti_cu_exec *out, tti_cu_graph graph, unsigned long long flags,
		       bool has_stream)
{
	if (!out)
		return tti_cudart_null("cudaGraphInstantiate", "place for the graph");
	if (flags & ~(has_stream ? 11ull : 9ull))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaGraphInstantiate(): flags are %#llx: pass none that lets "
				     "kernels launch the graph, and upload with "
				     "cudaGraphInstantiateWithParams() alone",
				     flags);
	return tti_cuda_graph_instantiate(graph, out);
}

int tti_cudaGraphInstantiate(tti_cu_exec *out, tti_cu_graph graph, unsigned long long flags)
{
	return instantiate(out, graph, flags, false);
}

int tti_cudaGraphInstantiateWithFlags(tti_cu_exec *out, tti_cu_graph graph,
				      unsigned long long flags)
{
	return instantiate(out, graph, flags, false);
}

int tti_cudaGraphInstantiateWithParams(bool per_thread, tti_cu_exec *out, tti_cu_graph graph,
				       struct tti_cu_instantiate_params *params)
{
	int error = 0;

	if (!params)
		return tti_cudart_null("cudaGraphInstantiateWithParams", "parameters");
	error = tti_cuda_capture_forbids("cudaGraphInstantiateWithParams()");
	if (error)
		return error;
	if ((params->flags & 2) && !tti_cuda_stream_get(params->upload, per_thread, &error))
		return error;
	error = instantiate(out, graph, params->flags, true);
	params->result = !error ? 0 : error == TTI_CUDA_EINVAL ? 2 : 1;
	params->error_node = NULL;
	return error;
}

int tti_cudaGraphExecDestroy(tti_cu_exec exec)
{
	return tti_cuda_exec_destroy(exec);
}

int tti_cudaGraphExecUpdate(tti_cu_exec exec, tti_cu_graph graph, struct tti_cu_update_result *out)
{
	struct tti_cu_update_result result = { .result = TTI_CU_UPDATE_DONE };
	int error = tti_cuda_exec_update(exec, graph, &result.error_node, &result.result);

	if (error && !result.result)
		result.result = TTI_CU_UPDATE_ERROR;
	else if (error)
		error = TTI_cudaErrorGraphExecUpdateFailure;
	if (out)
		*out = result;
	return error;
}

int tti_cudaGraphLaunch(bool per_thread, tti_cu_exec exec, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	error = tti_cuda_device_failure(tti_cuda_stream_device(stream));
	return error ? error : tti_cuda_exec_launch(exec, stream);
}

int tti_cudaGraphUpload(bool per_thread, tti_cu_exec exec, tti_cu_stream handle)
{
	struct tti_cuda_stream *stream;
	int error = 0;

	if (!exec)
		return tti_cudart_null("cudaGraphUpload", "graph");
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	return stream ? tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "cudaGraphUpload()")
		      : error;
}

/* -- Memory of graphs --------------------------------------------------------------------- */

int tti_cudaDeviceGraphMemTrim(int device)
{
	return tti_cudart_check_device("cudaDeviceGraphMemTrim", device);
}

/* Used 0, most used 1, reserved 2, most reserved 3: the pool's 7, 8, 5, 6. */
static int pool_attribute(const char *function, int device, int attribute, int *out)
{
	static const int of_pool[] = { 7, 8, 5, 6 };
	const int error = tti_cudart_check_device(function, device);

	if (error)
		return error;
	if (attribute < 0 || attribute > 3)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): there is no attribute %d: 0 to 3",
				     function, attribute);
	*out = of_pool[attribute];
	return 0;
}

int tti_cudaDeviceGetGraphMemAttribute(int device, int attribute, void *out)
{
	uint64_t value = 0;
	int of_pool = 0;
	int error = pool_attribute("cudaDeviceGetGraphMemAttribute", device, attribute, &of_pool);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaDeviceGetGraphMemAttribute", "place for the value");
	error = tti_cuda_pool_get(tti_cuda_pool_default(device), of_pool, &value);
	memcpy(out, &value, sizeof(value));
	return error;
}

int tti_cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
	uint64_t to = 0;
	int of_pool = 0;
	const int error =
		pool_attribute("cudaDeviceSetGraphMemAttribute", device, attribute, &of_pool);

	if (error)
		return error;
	if (!value)
		return tti_cudart_null("cudaDeviceSetGraphMemAttribute", "value");
	memcpy(&to, value, sizeof(to));
	return tti_cuda_pool_set(tti_cuda_pool_default(device), of_pool, to);
}

/* -- Objects ------------------------------------------------------------------------------ */

int tti_cudaUserObjectCreate(tti_cu_object *out, void *arg, tti_cu_host_fn destroy, unsigned count,
			     unsigned flags)
{
	return tti_cuda_object_create("cudaUserObjectCreate", arg, destroy, count, flags, out);
}

int tti_cudaUserObjectRetain(tti_cu_object object, unsigned count)
{
	return tti_cuda_object_retain("cudaUserObjectRetain", object, count);
}

int tti_cudaUserObjectRelease(tti_cu_object object, unsigned count)
{
	return tti_cuda_object_release("cudaUserObjectRelease", object, count);
}

int tti_cudaGraphRetainUserObject(tti_cu_graph graph, tti_cu_object object, unsigned count,
				  unsigned flags)
{
	return tti_cuda_object_retain_by("cudaGraphRetainUserObject", graph, object, count, flags);
}

int tti_cudaGraphReleaseUserObject(tti_cu_graph graph, tti_cu_object object, unsigned count)
{
	return tti_cuda_object_release_by("cudaGraphReleaseUserObject", graph, object, count);
}

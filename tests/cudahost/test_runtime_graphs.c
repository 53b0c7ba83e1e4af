/* SPDX-License-Identifier: BSD-3-Clause */
/* libcudart.so: captures, graphs, objects of graphs, pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/runtime.h"

static void add_one(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void add_ten(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 10);
}

static tti_cu_stream new_stream(void)
{
	tti_cu_stream stream = NULL;

	assert_int_equal(cudaStreamCreateWithFlags(&stream, 1), 0);
	return stream;
}

/* Launch it n times, and free it. */
static void run(tti_cu_graph graph, tti_cu_stream stream, int n)
{
	tti_cu_exec exec;

	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	for (int at = 0; at < n; at++)
		assert_int_equal(cudaGraphLaunch(exec, stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
}

/* -- Captures ----------------------------------------------------------------------------- */

static void what_is_captured_runs_once_a_launch(void **state)
{
	tti_cu_stream stream = new_stream();
	tti_cu_graph graph;
	atomic_int count = 0;
	char byte = 1;
	void *memory;

	(void)state;
	assert_int_equal(cudaMalloc(&memory, 1), 0);
	assert_int_equal(cudaStreamBeginCapture(stream, TTI_CUDA_CAPTURE_THREAD), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, add_one, &count), 0);
	assert_int_equal(cudaMemsetAsync(memory, 9, 1, stream), 0);
	assert_int_equal(cudaMemcpyAsync(&byte, memory, 1, 2, stream), 0);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
	assert_int_equal(atomic_load(&count), 0);
	assert_int_equal(byte, 1);
	run(graph, stream, 3);
	assert_int_equal(atomic_load(&count), 3);
	assert_int_equal(byte, 9);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaFree(memory), 0);
}

static void get_info(tti_cu_stream stream, int *status, tti_cu_graph *graph,
		     const tti_cu_node **tail, size_t *ntail)
{
	unsigned long long id;

#if TTI_CUDART_MAJOR == 12
	assert_int_equal(cudaStreamGetCaptureInfo_v2(stream, status, &id, graph, tail, ntail), 0);
#else
	const struct tti_cu_edge *edges;

	assert_int_equal(cudaStreamGetCaptureInfo(stream, status, &id, graph, tail, &edges, ntail),
			 0);
#endif
}

static void the_capture_says_what_came_last(void **state)
{
	tti_cu_stream stream = new_stream();
	const tti_cu_node *tail;
	tti_cu_graph graph, ended;
	atomic_int count = 0;
	int status, kind;
	size_t ntail;

	(void)state;
	assert_int_equal(cudaStreamIsCapturing(stream, &status), 0);
	assert_int_equal(status, TTI_CUDA_CAPTURE_NONE);
	assert_int_equal(cudaStreamBeginCapture(stream, TTI_CUDA_CAPTURE_RELAXED), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, add_one, &count), 0);
	get_info(stream, &status, &graph, &tail, &ntail);
	assert_int_equal(status, TTI_CUDA_CAPTURE_ACTIVE);
	assert_int_equal(ntail, 1);
	assert_int_equal(cudaGraphNodeGetType(tail[0], &kind), 0);
	assert_int_equal(kind, TTI_CUDA_NODE_HOST);
	assert_int_equal(cudaStreamEndCapture(stream, &ended), 0);
	assert_ptr_equal(ended, graph);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void memory_cannot_be_allocated_in_a_global_capture(void **state)
{
	tti_cu_stream stream = new_stream();
	tti_cu_graph graph = NULL;
	void *memory;

	(void)state;
	assert_int_equal(cudaStreamBeginCapture(stream, TTI_CUDA_CAPTURE_GLOBAL), 0);
	assert_int_equal(cudaMalloc(&memory, 1), TTI_cudaErrorStreamCaptureUnsupported);
	assert_int_equal(cudaStreamEndCapture(stream, &graph),
			 TTI_cudaErrorStreamCaptureInvalidated);
	assert_null(graph);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void memory_can_be_freed_in_a_relaxed_capture(void **state)
{
	tti_cu_stream stream = new_stream();
	tti_cu_graph graph = NULL;
	void *memory;

	(void)state;
	assert_int_equal(cudaStreamBeginCapture(stream, TTI_CUDA_CAPTURE_RELAXED), 0);
	assert_int_equal(cudaMalloc(&memory, 1), 0);
	assert_int_equal(cudaFree(memory), 0);
	assert_int_equal(cudaMallocAsync(&memory, 1, stream), 0);
	assert_int_equal(cudaFree(memory), TTI_cudaErrorInvalidValue); /* a launch allocates it */
	assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

/* What a call gives while a stream is captured, and what the end of the capture gives then. */
enum captured_call { SYNC, SYNC_OTHER, QUERY_OTHER, COPY, SET, POOL_OTHER, FLAGS, LAUNCH, LIMIT };

static int call(enum captured_call which, tti_cu_stream stream, tti_cu_stream other, void *memory)
{
	unsigned flags;
	void *more;
	char byte = 0;

	switch (which) {
	case SYNC:
		return cudaStreamSynchronize(stream);
	case SYNC_OTHER:
		return cudaStreamSynchronize(other);
	case QUERY_OTHER:
		return cudaStreamQuery(other);
	case COPY:
		return cudaMemcpy(memory, &byte, 1, 1);
	case SET:
		return cudaMemset(memory, 0, 1);
	case POOL_OTHER:
		return cudaMallocAsync(&more, 1, other) || cudaFreeAsync(more, other)
			       ? TTI_cudaErrorStreamCaptureUnsupported
			       : 0;
	case FLAGS:
		return cudaStreamGetFlags(stream, &flags);
	case LAUNCH:
		return cudaMemcpyPeerAsync(memory, 0, memory, 0, 1, stream);
	case LIMIT:
		return cudaDeviceSetLimit(0, 2048);
	}
	return -1;
}

static void modes_say_what_may_be_called(void **state)
{
	static const struct {
		enum captured_call call;
		bool spoils_global, spoils_relaxed;
	} rules[] = {
		{ SYNC, true, true },   { SYNC_OTHER, true, false }, { QUERY_OTHER, true, false },
		{ COPY, false, false }, { SET, false, false },       { POOL_OTHER, true, false },
		{ FLAGS, true, true },  { LAUNCH, true, true },      { LIMIT, true, false },
	};
	tti_cu_stream stream = new_stream(), other = new_stream();
	void *memory;

	(void)state;
	assert_int_equal(cudaMalloc(&memory, 1), 0);
	for (size_t at = 0; at < 3 * sizeof(rules) / sizeof(rules[0]); at++) {
		const int mode = (int)(at % 3);
		const bool spoils = mode == TTI_CUDA_CAPTURE_RELAXED ? rules[at / 3].spoils_relaxed
								     : rules[at / 3].spoils_global;
		tti_cu_graph graph = NULL;

		assert_int_equal(cudaStreamBeginCapture(stream, mode), 0);
		assert_int_equal(call(rules[at / 3].call, stream, other, memory),
				 spoils ? TTI_cudaErrorStreamCaptureUnsupported : 0);
		assert_int_equal(cudaStreamEndCapture(stream, &graph),
				 spoils ? TTI_cudaErrorStreamCaptureInvalidated : 0);
		if (!spoils)
			assert_int_equal(cudaGraphDestroy(graph), 0);
	}
	assert_int_equal(cudaStreamSynchronize(other), 0);
	assert_int_equal(cudaFree(memory), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaStreamDestroy(other), 0);
}

/* -- Nodes -------------------------------------------------------------------------------- */

static void nodes_run_behind_those_that_they_depend_on(void **state)
{
	const struct tti_cu_memset_node set = { NULL, 0, 0x01020304, 4, 2, 1 };
	struct tti_cu_memset_node sets = set;
	tti_cu_stream stream = new_stream();
	unsigned copy[2] = { 0 };
	void *values;
	tti_cu_node nodes[2], all[4];
	tti_cu_graph graph;
	size_t n = 4;

	(void)state;
	assert_int_equal(cudaMalloc(&values, sizeof(copy)), 0);
	sets.to = values;
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(
		cudaGraphAddMemcpyNode1D(&nodes[1], graph, NULL, 0, copy, values, sizeof(copy), 4),
		0);
	assert_int_equal(cudaGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &sets), 0);
#if TTI_CUDART_MAJOR == 12
	assert_int_equal(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], 1), 0);
#else
	assert_int_equal(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1), 0);
#endif
	assert_int_equal(cudaGraphGetNodes(graph, all, &n), 0);
	assert_int_equal(n, 2);
	assert_null(all[2]);
	run(graph, stream, 1);
	assert_int_equal(copy[0], 0x01020304);
	assert_int_equal(copy[1], 0x01020304);
	assert_int_equal(cudaFree(values), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void a_node_says_what_it_does(void **state)
{
	struct tti_cu_host_node host = { add_one, &host }, got_host = { 0 };
	struct tti_cu_copy3d got_copy;
	tti_cu_node nodes[2];
	tti_cu_graph graph;
	char from[4] = "", to[4];

	(void)state;
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddHostNode(&nodes[0], graph, NULL, 0, &host), 0);
	assert_int_equal(cudaGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, to, from, 4, 0),
			 0);
	assert_int_equal(cudaGraphHostNodeGetParams(nodes[0], &got_host), 0);
	assert_true(got_host.fn == add_one && got_host.arg == &host);
	assert_int_equal(cudaGraphMemcpyNodeGetParams(nodes[1], &got_copy), 0);
	assert_ptr_equal(got_copy.to.ptr, to);
	assert_int_equal(got_copy.extent.width, 4);
	assert_int_equal(cudaGraphMemcpyNodeGetParams(nodes[0], &got_copy),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphDestroy(graph), 0);
}

static void what_is_set_in_an_executable_graph_is_not_in_the_graph(void **state)
{
	atomic_int count = 0;
	const struct tti_cu_host_node one = { add_one, &count }, ten = { add_ten, &count };
	tti_cu_stream stream = new_stream();
	struct tti_cu_host_node got;
	tti_cu_graph graph;
	tti_cu_exec exec;
	tti_cu_node node;

	(void)state;
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddHostNode(&node, graph, NULL, 0, &one), 0);
	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	assert_int_equal(cudaGraphExecHostNodeSetParams(exec, node, &ten), 0);
	assert_int_equal(cudaGraphLaunch(exec, stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(atomic_load(&count), 10);
	assert_int_equal(cudaGraphHostNodeGetParams(node, &got), 0);
	assert_true(got.fn == add_one);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void an_update_of_another_shape_is_refused(void **state)
{
	struct tti_cu_update_result result;
	tti_cu_graph small, large;
	tti_cu_exec exec;
	tti_cu_node node;

	(void)state;
	assert_int_equal(cudaGraphCreate(&small, 0), 0);
	assert_int_equal(cudaGraphCreate(&large, 0), 0);
	assert_int_equal(cudaGraphAddEmptyNode(&node, small, NULL, 1), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphAddEmptyNode(&node, small, NULL, 0), 0);
	assert_int_equal(cudaGraphAddEmptyNode(&node, large, NULL, 0), 0);
	assert_int_equal(cudaGraphAddEmptyNode(&node, large, &node, 1), 0);
	assert_int_equal(cudaGraphInstantiate(&exec, small, 0), 0);
	assert_int_equal(cudaGraphExecUpdate(exec, small, &result), 0);
	assert_int_equal(result.result, TTI_CU_UPDATE_DONE);
	assert_int_equal(cudaGraphExecUpdate(exec, large, &result),
			 TTI_cudaErrorGraphExecUpdateFailure);
	assert_int_equal(result.result, TTI_CUDA_UPDATE_TOPOLOGY);
	assert_int_equal(cudaGraphExecUpdate(exec, small, NULL), 0);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(small), 0);
	assert_int_equal(cudaGraphDestroy(large), 0);
	assert_int_equal(cudaGraphDestroy(NULL), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphLaunch(NULL, NULL), TTI_cudaErrorInvalidValue);
}

/* A graph of one node that copies 8 bytes in direction `how`, or, without `from`, sets so many rows. */
static tti_cu_graph graph_of(void *to, const void *from, unsigned how, tti_cu_node *out)
{
	const struct tti_cu_memset_node set = { to, 4, 7, 1, 4, how };
	tti_cu_graph graph;

	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	if (from)
		assert_int_equal(
			cudaGraphAddMemcpyNode1D(out, graph, NULL, 0, to, from, 8, (int)how), 0);
	else
		assert_int_equal(cudaGraphAddMemsetNode(out, graph, NULL, 0, &set), 0);
	return graph;
}

static void an_update_keeps_directions_and_nodes(void **state)
{
	tti_cu_graph graphs[5];
	struct tti_cu_update_result result;
	tti_cu_node node, other;
	tti_cu_exec exec;
	char host[8], again[8];
	void *device;

	(void)state;
	assert_int_equal(cudaMalloc(&device, 8), 0);
	graphs[0] = graph_of(device, host, 1, &node);
	graphs[1] = graph_of(device, again, 1, &other);
	graphs[2] = graph_of(host, device, 2, &other);
	graphs[3] = graph_of(device, NULL, 1, &other);
	graphs[4] = graph_of(device, NULL, 2, &other);
	assert_int_equal(cudaGraphInstantiate(&exec, graphs[0], 0), 0);
	assert_int_equal(cudaGraphExecUpdate(exec, graphs[1], &result), 0);
	/* The nodes of the first graph name those of the executable one still. */
	assert_int_equal(cudaGraphExecMemcpyNodeSetParams1D(exec, node, device, host, 4, 1), 0);
	assert_int_equal(cudaGraphExecMemcpyNodeSetParams1D(exec, node, host, device, 4, 2),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphExecUpdate(exec, graphs[2], &result),
			 TTI_cudaErrorGraphExecUpdateFailure);
	assert_int_equal(result.result, TTI_CUDA_UPDATE_PARAMETERS);
	assert_int_equal(cudaGraphExecUpdate(exec, graphs[3], &result),
			 TTI_cudaErrorGraphExecUpdateFailure);
	assert_int_equal(result.result, TTI_CUDA_UPDATE_TYPE);
	assert_non_null(result.error_node);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphInstantiate(&exec, graphs[3], 0), 0);
	assert_int_equal(cudaGraphExecUpdate(exec, graphs[4], &result),
			 TTI_cudaErrorGraphExecUpdateFailure);
	assert_int_equal(result.result, TTI_CUDA_UPDATE_PARAMETERS);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	for (int at = 0; at < 5; at++)
		assert_int_equal(cudaGraphDestroy(graphs[at]), 0);
	assert_int_equal(cudaFree(device), 0);
}

static void nodes_of_nothing_are_errors(void **state)
{
	struct tti_cu_memset_node set = { NULL, 0, 0, 1, 0, 1 };
	tti_cu_graph graph;
	tti_cu_node node;
	tti_cu_exec exec;
	char bytes[8];

	(void)state;
	assert_int_equal(cudaMalloc(&set.to, 8), 0);
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, set.to, bytes, 0, 1),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, set.to, bytes, 8, 9),
			 TTI_cudaErrorInvalidMemcpyDirection);
	assert_int_equal(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, NULL),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphInstantiate(&exec, graph, 2), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaFree(set.to), 0);
}

static void memory_of_a_graph_can_be_used_by_its_nodes(void **state)
{
	struct tti_cu_alloc_node alloc = { .props = { .alloc_type = 1, .location = { 1, 0 } },
					   .nbytes = 100 };
	struct tti_cu_alloc_node nothing = { .props = alloc.props };
	struct tti_cu_memset_node set = { NULL, 0, 7, 1, 100, 1 };
	tti_cu_stream stream = new_stream();
	char bytes[100] = "";
	tti_cu_node nodes[4];
	tti_cu_graph graph, clone;

	(void)state;
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &nothing),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphAddMemFreeNode(&nodes[0], graph, NULL, 0, NULL),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &alloc), 0);
	assert_non_null(alloc.address);
	set.to = alloc.address;
	assert_int_equal(cudaGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &set), 0);
	assert_int_equal(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, bytes,
						  alloc.address, 100, 2),
			 0);
	assert_int_equal(cudaGraphAddMemFreeNode(&nodes[3], graph, &nodes[2], 1, alloc.address), 0);
	run(graph, stream, 2);
	assert_int_equal(bytes[99], 7);
	assert_int_equal(cudaGraphClone(&clone, graph), TTI_cudaErrorNotSupported);
	assert_int_equal(cudaGraphDestroyNode(nodes[3]), TTI_cudaErrorNotSupported);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void an_event_node_records_its_event(void **state)
{
	tti_cu_stream stream = new_stream();
	tti_cu_event event;
	tti_cu_graph graph;
	tti_cu_node node;

	(void)state;
	assert_int_equal(cudaEventCreate(&event), 0);
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, event), 0);
	run(graph, stream, 1);
	assert_int_equal(cudaEventSynchronize(event), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaEventDestroy(event), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

/* -- Objects ------------------------------------------------------------------------------ */

static void an_object_lives_as_long_as_what_was_made_of_the_graph(void **state)
{
	tti_cu_object object;
	tti_cu_graph graph;
	tti_cu_exec exec;
	atomic_int count = 0;

	(void)state;
	assert_int_equal(cudaUserObjectCreate(&object, &count, add_one, 1, 1), 0);
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphRetainUserObject(graph, object, 1, 1), 0);
	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(atomic_load(&count), 0);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(atomic_load(&count), 1);
}

static void references_are_counted(void **state)
{
	tti_cu_object object;
	tti_cu_graph graph;
	atomic_int count = 0;

	(void)state;
	assert_int_equal(cudaUserObjectCreate(&object, &count, add_one, 2, 1), 0);
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphRetainUserObject(graph, object, 2, 0), 0);
	assert_int_equal(cudaUserObjectRelease(object, 2), 0);
	assert_int_equal(cudaGraphReleaseUserObject(graph, object, 1), 0);
	assert_int_equal(atomic_load(&count), 0);
	assert_int_equal(cudaUserObjectRetain(object, 0), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaUserObjectRelease(object, 0), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaGraphReleaseUserObject(graph, object, 1), 0);
	assert_int_equal(atomic_load(&count), 1);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(atomic_load(&count), 1);
}

/* -- Pools -------------------------------------------------------------------------------- */

static void memory_of_a_pool_comes_and_goes_with_the_stream(void **state)
{
	tti_cu_stream stream = new_stream();
	uint64_t used = 1;
	tti_cu_pool pool;
	void *memory;

	(void)state;
	assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
	assert_int_equal(cudaMallocAsync(&memory, 1000, stream), 0);
	assert_int_equal(cudaMemPoolGetAttribute(pool, 7, &used), 0);
	assert_int_equal(used, 1000);
	assert_int_equal(cudaMemsetAsync(memory, 1, 1000, stream), 0);
	assert_int_equal(cudaFreeAsync(memory, stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(cudaMemPoolGetAttribute(pool, 7, &used), 0);
	assert_int_equal(used, 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void a_pool_of_the_program_can_be_a_device_s(void **state)
{
	const struct tti_cu_pool_props props = { .alloc_type = 1, .location = { 1, 0 } };
	const struct tti_cu_pool_props nowhere = { .alloc_type = 1, .location = { 1, 77 } };
	struct tti_cu_access none = { .location = { 1, 0 } };
	struct tti_cu_location host = { TTI_CU_AT_HOST, 0 };
	tti_cu_pool pool, current;
	int access = 9;

	(void)state;
	assert_int_equal(cudaMemPoolCreate(&pool, &nowhere), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaMemPoolCreate(&pool, &(struct tti_cu_pool_props){ 0 }),
			 TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaMemPoolCreate(&pool, &props), 0);
	assert_int_equal(cudaDeviceSetMemPool(0, pool), 0);
	assert_int_equal(cudaDeviceGetMemPool(&current, 0), 0);
	assert_ptr_equal(current, pool);
	assert_int_equal(cudaMemPoolSetAccess(pool, &none, 1), TTI_cudaErrorInvalidDevice);
	none.flags = 1;
	assert_int_equal(cudaMemPoolSetAccess(pool, &none, 1), TTI_cudaErrorNotSupported);
	assert_int_equal(cudaMemPoolGetAccess(&access, pool, &host), 0);
	assert_int_equal(access, 0);
	assert_int_equal(cudaMemPoolDestroy(pool), 0);
	assert_int_equal(cudaDeviceGetMemPool(&current, 0), 0);
	assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
	assert_ptr_equal(current, pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_captured_runs_once_a_launch),
		cmocka_unit_test(the_capture_says_what_came_last),
		cmocka_unit_test(memory_cannot_be_allocated_in_a_global_capture),
		cmocka_unit_test(memory_can_be_freed_in_a_relaxed_capture),
		cmocka_unit_test(modes_say_what_may_be_called),
		cmocka_unit_test(nodes_run_behind_those_that_they_depend_on),
		cmocka_unit_test(a_node_says_what_it_does),
		cmocka_unit_test(what_is_set_in_an_executable_graph_is_not_in_the_graph),
		cmocka_unit_test(an_update_of_another_shape_is_refused),
		cmocka_unit_test(an_update_keeps_directions_and_nodes),
		cmocka_unit_test(nodes_of_nothing_are_errors),
		cmocka_unit_test(memory_of_a_graph_can_be_used_by_its_nodes),
		cmocka_unit_test(an_event_node_records_its_event),
		cmocka_unit_test(an_object_lives_as_long_as_what_was_made_of_the_graph),
		cmocka_unit_test(references_are_counted),
		cmocka_unit_test(memory_of_a_pool_comes_and_goes_with_the_stream),
		cmocka_unit_test(a_pool_of_the_program_can_be_a_device_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

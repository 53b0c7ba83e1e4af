/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: captures and graphs. */
#include "test_driver.h"

#include <stdatomic.h>

static void add_one(void *n)
{
	atomic_fetch_add((atomic_int *)n, 1);
}

static void double_it(void *n)
{
	atomic_store((atomic_int *)n, 2 * atomic_load((atomic_int *)n));
}

static CUstream make_stream(void)
{
	CUstream stream;

	is_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static void run(CUgraph graph, int ntimes)
{
	CUstream stream = make_stream();
	CUgraphExec exec;

	is_good(cuGraphInstantiateWithFlags(&exec, graph, 0));
	is_good(cuGraphUpload(exec, stream));
	for (int i = 0; i < ntimes; i++)
		is_good(cuGraphLaunch(exec, stream));
	is_good(cuStreamSynchronize(stream));
	is_good(cuGraphExecDestroy(exec));
	is_good(cuStreamDestroy_v2(stream));
}

static void a_capture_becomes_a_graph(void **state)
{
	CUstream stream = make_stream();
	CUstreamCaptureStatus status;
	CUgraph graph, inside;
	const CUgraphNode *tail;
	cuuint64_t id = 0;
	size_t n = 9;
	atomic_int value = 1;

	(void)state;
	is_good(cuStreamIsCapturing(stream, &status));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	is_good(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_good(cuLaunchHostFunc(stream, add_one, &value));
	is_good(cuLaunchHostFunc(stream, double_it, &value));
	is_good(cuStreamGetCaptureInfo_v2(stream, &status, &id, &inside, &tail, &n));
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	assert_true(id != 0);
	assert_int_equal(n, 1);
	is_good(cuStreamEndCapture(stream, &graph));
	assert_ptr_equal(graph, inside);
	assert_int_equal(value, 1);
	run(graph, 2);
	assert_int_equal(value, 10);
	is_good(cuGraphDestroy(graph));
	is_good(cuStreamDestroy_v2(stream));
}

static void what_waits_spoils_a_capture(void **state)
{
	CUstream stream = make_stream();
	CUgraph graph;
	CUdeviceptr at;
	unsigned flags;

	(void)state;
	is_good(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(cuMemAlloc_v2(&at, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_null(graph);
	is_good(cuMemAlloc_v2(&at, 1));
	is_good(cuMemFree_v2(at));
	is_good(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	assert_int_equal(cuStreamGetFlags(stream, &flags), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_int_equal(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)3),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamDestroy_v2(stream));
}

static void nodes_run_behind_what_they_depend_on(void **state)
{
	const CUDA_HOST_NODE_PARAMS add = { add_one, state }, twice = { double_it, state };
	CUDA_HOST_NODE_PARAMS params[2] = { add, twice };
	atomic_int value = 3;
	CUgraph graph;
	CUgraphNode node[3], list[4];
	CUgraphEdgeData edges[4];
	size_t n = 4;

	params[0].userData = params[1].userData = &value;
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddHostNode(&node[1], graph, NULL, 0, &params[1]));
	is_good(cuGraphAddHostNode(&node[0], graph, NULL, 0, &params[0]));
	is_good(cuGraphAddDependencies(graph, &node[0], &node[1], 1));
	is_good(cuGraphAddEmptyNode(&node[2], graph, &node[1], 1));
	run(graph, 1);
	assert_int_equal(value, 8);
	memset(list, 1, sizeof(list));
	is_good(cuGraphGetNodes(graph, list, &n));
	assert_int_equal(n, 3);
	assert_null(list[3]);
	n = 4;
	is_good(cuGraphGetRootNodes(graph, list, &n));
	assert_int_equal(n, 1);
	assert_ptr_equal(list[0], node[0]);
	is_good(cuGraphNodeGetDependencies_v2(node[2], NULL, NULL, &n));
	assert_int_equal(n, 1);
	n = 4;
	memset(edges, 1, sizeof(edges));
	is_good(cuGraphNodeGetDependentNodes_v2(node[0], list, edges, &n));
	assert_int_equal(n, 1);
	assert_int_equal(edges[0].type, 0);
	n = 4;
	is_good(cuGraphGetEdges(graph, list, list, &n));
	assert_int_equal(n, 2);
	edges[0].type = 1;
	assert_int_equal(cuGraphAddDependencies_v2(graph, &node[0], &node[2], edges, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddDependencies(graph, NULL, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddDependencies(NULL, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	is_good(cuGraphAddDependencies(graph, &node[2], &node[0], 1));
	assert_int_equal(cuGraphInstantiateWithFlags(&(CUgraphExec){ 0 }, graph, 0),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuGraphRemoveDependencies(graph, &node[2], &node[0], 1));
	is_good(cuGraphDestroyNode(node[2]));
	is_good(cuGraphDestroy(graph));
}

static void nodes_tell_what_they_do(void **state)
{
	CUdeviceptr at;
	CUgraph graph, clone, inside;
	CUgraphNode copy, fill, other, child;
	CUgraphNodeType type;
	int word = 0;
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = &word,
			      .WidthInBytes = 4,
			      .Height = 1,
			      .Depth = 1 };
	CUDA_MEMSET_NODE_PARAMS set = { .value = 6, .elementSize = 4, .width = 2, .height = 1 };

	(void)state;
	is_good(cuMemAlloc_v2(&at, 8));
	box.srcDevice = set.dst = at;
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &set, NULL));
	is_good(cuGraphAddMemcpyNode(&copy, graph, &fill, 1, &box, NULL));
	memset(&box, 0, sizeof(box));
	memset(&set, 0, sizeof(set));
	is_good(cuGraphMemcpyNodeGetParams(copy, &box));
	is_good(cuGraphMemsetNodeGetParams(fill, &set));
	assert_true(box.srcDevice == at && box.dstHost == &word && box.WidthInBytes == 4);
	assert_true(set.dst == at && set.value == 6 && set.width == 2);
	assert_int_equal(cuGraphMemcpyNodeGetParams(fill, &box), CUDA_ERROR_INVALID_VALUE);
	is_good(cuGraphNodeGetType(copy, &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEMCPY);
	is_good(cuGraphClone(&clone, graph));
	is_good(cuGraphNodeFindInClone(&other, copy, clone));
	assert_ptr_not_equal(other, copy);
	set.value = 8;
	is_good(cuGraphMemsetNodeSetParams(fill, &set));
	run(clone, 1);
	assert_int_equal(word, 6);
	is_good(cuGraphAddChildGraphNode(&child, clone, &other, 1, graph));
	is_good(cuGraphChildGraphNodeGetGraph(child, &inside));
	assert_non_null(inside);
	run(clone, 1);
	assert_int_equal(word, 8);
	is_good(cuGraphDestroy(clone));
	is_good(cuGraphDestroy(graph));
	is_good(cuMemFree_v2(at));
}

static void a_graph_that_is_ready_takes_other_jobs(void **state)
{
	atomic_int value = 1, other = 1;
	CUDA_HOST_NODE_PARAMS call = { add_one, &value };
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, wide;
	CUgraphNode node, more[2];
	CUgraphExec exec;
	CUstream stream = make_stream();

	(void)state;
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddHostNode(&node, graph, NULL, 0, &call));
	is_good(cuGraphInstantiateWithFlags(&exec, graph, 0));
	call.userData = &other;
	is_good(cuGraphExecHostNodeSetParams(exec, node, &call));
	is_good(cuGraphLaunch(exec, stream));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(value, 1);
	assert_int_equal(other, 2);
	is_good(cuGraphExecUpdate_v2(exec, graph, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	is_good(cuGraphLaunch(exec, stream));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(value, 2);
	is_good(cuGraphCreate(&wide, 0));
	is_good(cuGraphAddEmptyNode(&more[0], wide, NULL, 0));
	is_good(cuGraphAddEmptyNode(&more[1], wide, NULL, 0));
	assert_int_equal(cuGraphExecUpdate_v2(exec, wide, &info),
			 CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	is_good(cuGraphExecUpdate_v2(exec, graph, NULL));
	is_good(cuGraphExecDestroy(exec));
	is_good(cuGraphDestroy(graph));
	is_good(cuGraphDestroy(wide));
	is_good(cuStreamDestroy_v2(stream));
}

static void any_node_is_added_by_one_description(void **state)
{
	atomic_int value = 1;
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { add_one, &value } };
	CUstreamBatchMemOpParams op = {
		.writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .value = 5 }
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS got;
	CUgraph graph;
	CUgraphNode node;
	CUcontext context;
	void *word;

	(void)state;
	is_good(cuMemHostAlloc(&word, 4, 0));
	is_good(cuCtxGetCurrent(&context));
	op.writeValue.address = pointer(word);
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
	params = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
				      .memOp = { .count = 1, .paramArray = &op } };
	assert_int_equal(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.memOp.ctx = context;
	is_good(cuGraphAddNode(&node, graph, NULL, 0, &params));
	is_good(cuGraphBatchMemOpNodeGetParams(node, &got));
	assert_int_equal(got.paramArray[0].writeValue.value, 5);
	run(graph, 1);
	assert_int_equal(value, 2);
	assert_int_equal(*(int *)word, 5);
	op.writeValue.value = 6;
	is_good(cuGraphNodeSetParams(node, &params));
	run(graph, 1);
	assert_int_equal(*(int *)word, 6);
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	assert_int_equal(cuGraphAddNode(&node, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
	is_good(cuGraphDestroy(graph));
	is_good(cuMemFreeHost(word));
}

static void events_are_nodes(void **state)
{
	CUstream stream = make_stream();
	CUgraph graph;
	CUgraphNode node;
	CUevent event;

	(void)state;
	is_good(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	is_good(cuGraphAddEventWaitNode(&node, graph, &node, 1, event));
	run(graph, 2);
	is_good(cuEventSynchronize(event));
	assert_int_equal(cuEventRecordWithFlags(event, stream, 1), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuStreamWaitEvent(stream, event, 1), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuGraphAddEventWaitNode(&node, graph, NULL, 0, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuGraphDestroy(graph));
	is_good(cuEventDestroy_v2(event));
	is_good(cuStreamDestroy_v2(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capture_becomes_a_graph),
		cmocka_unit_test(what_waits_spoils_a_capture),
		cmocka_unit_test(nodes_run_behind_what_they_depend_on),
		cmocka_unit_test(nodes_tell_what_they_do),
		cmocka_unit_test(a_graph_that_is_ready_takes_other_jobs),
		cmocka_unit_test(any_node_is_added_by_one_description),
		cmocka_unit_test(events_are_nodes),
	};

	return begin_on("1") || cmocka_run_group_tests(tests, NULL, NULL);
}

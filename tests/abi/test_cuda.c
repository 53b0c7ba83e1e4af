/* SPDX-License-Identifier: BSD-3-Clause */
/* Our declarations of CUDA's types beside those of NVIDIA's headers, where they are installed: sizes,
 * offsets and numbers are the same, for the major version of the toolkit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HAVE_CUDA_RUNTIME_API_H
#include <cuda_runtime_api.h>

#if CUDART_VERSION >= 13000
#define TTI_CUDART_MAJOR 13
#define BOTH(...)        __VA_ARGS__
#define ONLY12(...)
#define ONLY13(...) __VA_ARGS__
#else
#define TTI_CUDART_MAJOR 12
#define BOTH(...)        __VA_ARGS__
#define ONLY12(...)      __VA_ARGS__
#define ONLY13(...)
#endif

#include "cuda_abi.h"
#include "engine/graph.h"
#include "engine/memory.h"

#define SIZE(theirs, ours) assert_int_equal(sizeof(theirs), sizeof(ours))
#define FIELD(theirs, theirs_field, ours, ours_field)                                         \
	do {                                                                                  \
		assert_int_equal(offsetof(theirs, theirs_field), offsetof(ours, ours_field)); \
		assert_int_equal(sizeof(((theirs *)NULL)->theirs_field),                      \
				 sizeof(((ours *)NULL)->ours_field));                         \
	} while (0)
#define SAME(theirs, ours) assert_int_equal((int)(theirs), (int)(ours))

/* -- Errors and properties ---------------------------------------------------------------- */

static void errors_have_the_same_numbers(void **state)
{
	(void)state;
#define ERROR(name, number, text) SAME(name, number);
#include "runtime/errors.def"
#undef ERROR
}

struct properties {
#define ONE(majors, type, name, attribute) majors(type name;)
#define SOME(majors, name, n, attributes)  majors(int name[n];)
#define OTHER(majors, type, name, n)       majors(type name[n];)
#include "runtime/properties.def"
#undef ONE
#undef SOME
#undef OTHER
};

static void properties_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(struct cudaDeviceProp, struct properties);
#define ONE(majors, type, name, attribute) \
	majors(FIELD(struct cudaDeviceProp, name, struct properties, name);)
#define SOME(majors, name, n, attributes) \
	majors(FIELD(struct cudaDeviceProp, name, struct properties, name);)
#define OTHER(majors, type, name, n) \
	majors(FIELD(struct cudaDeviceProp, name, struct properties, name);)
#include "runtime/properties.def"
#undef ONE
#undef SOME
#undef OTHER
}

/* -- Memory ------------------------------------------------------------------------------- */

static void memory_types_are_the_same(void **state)
{
	(void)state;
	SAME(cudaMemoryTypeUnregistered, TTI_CUDA_UNREGISTERED);
	SAME(cudaMemoryTypeHost, TTI_CUDA_HOST);
	SAME(cudaMemoryTypeDevice, TTI_CUDA_DEVICE);
	SAME(cudaMemoryTypeManaged, TTI_CUDA_MANAGED);
	SAME(cudaMemcpyHostToHost, TTI_CU_HOST_TO_HOST);
	SAME(cudaMemcpyHostToDevice, TTI_CU_HOST_TO_DEVICE);
	SAME(cudaMemcpyDeviceToHost, TTI_CU_DEVICE_TO_HOST);
	SAME(cudaMemcpyDeviceToDevice, TTI_CU_DEVICE_TO_DEVICE);
	SAME(cudaMemcpyDefault, TTI_CU_BY_ADDRESS);
	SAME(cudaMemLocationTypeDevice, TTI_CU_AT_DEVICE);
	SAME(cudaMemLocationTypeHost, TTI_CU_AT_HOST);
	SAME(cudaMemLocationTypeHostNuma, TTI_CU_AT_NUMA);
	SAME(cudaMemLocationTypeHostNumaCurrent, TTI_CU_AT_NUMA_CURRENT);
	SAME(cudaMemcpySrcAccessOrderStream, TTI_CU_ORDER_STREAM);
	SAME(cudaMemcpySrcAccessOrderDuringApiCall, TTI_CU_ORDER_CALL);
	SAME(cudaMemcpySrcAccessOrderAny, TTI_CU_ORDER_ANY);
	SAME(cudaMemcpyOperandTypePointer, 1);
}

static void pointers_have_the_same_layout(void **state)
{
	(void)state;
#if CUDART_VERSION >= 13000
	SIZE(struct cudaPointerAttributes, struct tti_cu_pointer_attributes);
#else
	assert_int_equal(sizeof(struct cudaPointerAttributes), TTI_CU_POINTER_ATTRIBUTES_12);
#endif
	FIELD(struct cudaPointerAttributes, device, struct tti_cu_pointer_attributes, device);
	FIELD(struct cudaPointerAttributes, devicePointer, struct tti_cu_pointer_attributes,
	      device_pointer);
	FIELD(struct cudaPointerAttributes, hostPointer, struct tti_cu_pointer_attributes,
	      host_pointer);
	SIZE(cudaIpcMemHandle_t, struct tti_cu_ipc_handle);
	SIZE(cudaIpcEventHandle_t, struct tti_cu_ipc_handle);
	SIZE(struct cudaChannelFormatDesc, struct tti_cu_channel);
	SIZE(dim3, struct tti_cu_dim3);
}

static void copies_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(struct cudaPitchedPtr, struct tti_cu_pitched);
	FIELD(struct cudaPitchedPtr, ysize, struct tti_cu_pitched, ysize);
	SIZE(struct cudaExtent, struct tti_cu_extent);
	SIZE(struct cudaMemcpy3DParms, struct tti_cu_copy3d);
	FIELD(struct cudaMemcpy3DParms, srcPos, struct tti_cu_copy3d, from_pos);
	FIELD(struct cudaMemcpy3DParms, srcPtr, struct tti_cu_copy3d, from);
	FIELD(struct cudaMemcpy3DParms, dstArray, struct tti_cu_copy3d, to_array);
	FIELD(struct cudaMemcpy3DParms, dstPos, struct tti_cu_copy3d, to_pos);
	FIELD(struct cudaMemcpy3DParms, dstPtr, struct tti_cu_copy3d, to);
	FIELD(struct cudaMemcpy3DParms, extent, struct tti_cu_copy3d, extent);
	FIELD(struct cudaMemcpy3DParms, kind, struct tti_cu_copy3d, kind);
	SIZE(struct cudaMemcpy3DPeerParms, struct tti_cu_copy3d_peer);
	FIELD(struct cudaMemcpy3DPeerParms, srcDevice, struct tti_cu_copy3d_peer, from_device);
	FIELD(struct cudaMemcpy3DPeerParms, dstPtr, struct tti_cu_copy3d_peer, to);
	FIELD(struct cudaMemcpy3DPeerParms, dstDevice, struct tti_cu_copy3d_peer, to_device);
	FIELD(struct cudaMemcpy3DPeerParms, extent, struct tti_cu_copy3d_peer, extent);
	SIZE(struct cudaMemcpyAttributes, struct tti_cu_copy_attributes);
	FIELD(struct cudaMemcpyAttributes, flags, struct tti_cu_copy_attributes, flags);
	SIZE(struct cudaMemcpy3DBatchOp, struct tti_cu_copy3d_op);
	FIELD(struct cudaMemcpy3DBatchOp, dst, struct tti_cu_copy3d_op, to);
	FIELD(struct cudaMemcpy3DBatchOp, extent, struct tti_cu_copy3d_op, extent);
	FIELD(struct cudaMemcpy3DBatchOp, srcAccessOrder, struct tti_cu_copy3d_op, from_order);
	FIELD(struct cudaMemcpy3DOperand, op.ptr.rowLength, struct tti_cu_operand,
	      op.linear.row_length);
	FIELD(struct cudaMemcpy3DOperand, op.ptr.layerHeight, struct tti_cu_operand,
	      op.linear.layer_height);
}

static void pools_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(struct cudaMemPoolProps, struct tti_cu_pool_props);
	FIELD(struct cudaMemPoolProps, handleTypes, struct tti_cu_pool_props, handle_types);
	FIELD(struct cudaMemPoolProps, location, struct tti_cu_pool_props, location);
	FIELD(struct cudaMemPoolProps, maxSize, struct tti_cu_pool_props, most_bytes);
	FIELD(struct cudaMemPoolProps, usage, struct tti_cu_pool_props, usage);
	SIZE(struct cudaMemAccessDesc, struct tti_cu_access);
	FIELD(struct cudaMemAccessDesc, flags, struct tti_cu_access, flags);
}

/* -- Graphs ------------------------------------------------------------------------------- */

static void nodes_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(struct cudaHostNodeParams, struct tti_cu_host_node);
	SIZE(struct cudaMemsetParams, struct tti_cu_memset_node);
	FIELD(struct cudaMemsetParams, value, struct tti_cu_memset_node, value);
	FIELD(struct cudaMemsetParams, elementSize, struct tti_cu_memset_node, element_bytes);
	FIELD(struct cudaMemsetParams, width, struct tti_cu_memset_node, width);
	FIELD(struct cudaMemsetParams, height, struct tti_cu_memset_node, height);
	SIZE(struct cudaMemcpyNodeParams, struct tti_cu_memcpy_node);
	FIELD(struct cudaMemcpyNodeParams, copyParams, struct tti_cu_memcpy_node, copy);
	SIZE(struct cudaKernelNodeParams, struct tti_cu_kernel_node);
	FIELD(struct cudaKernelNodeParams, blockDim, struct tti_cu_kernel_node, block);
	FIELD(struct cudaKernelNodeParams, sharedMemBytes, struct tti_cu_kernel_node, shared_bytes);
	FIELD(struct cudaKernelNodeParams, kernelParams, struct tti_cu_kernel_node, args);
	FIELD(struct cudaKernelNodeParams, extra, struct tti_cu_kernel_node, extra);
	SIZE(struct cudaMemAllocNodeParams, struct tti_cu_alloc_node);
	FIELD(struct cudaMemAllocNodeParams, bytesize, struct tti_cu_alloc_node, nbytes);
	FIELD(struct cudaMemAllocNodeParams, dptr, struct tti_cu_alloc_node, address);
	SIZE(struct cudaGraphNodeParams, struct tti_cu_node_params);
	FIELD(struct cudaGraphNodeParams, memcpy, struct tti_cu_node_params, of.copy);
	FIELD(struct cudaGraphNodeParams, memset, struct tti_cu_node_params, of.set);
	FIELD(struct cudaGraphNodeParams, host, struct tti_cu_node_params, of.host);
	FIELD(struct cudaGraphNodeParams, eventWait, struct tti_cu_node_params, of.event);
	FIELD(struct cudaGraphNodeParams, alloc, struct tti_cu_node_params, of.alloc);
	FIELD(struct cudaGraphNodeParams, free, struct tti_cu_node_params, of.free);
	FIELD(struct cudaGraphNodeParams, reserved2, struct tti_cu_node_params, reserved2);
}

static void graphs_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(cudaGraphEdgeData, struct tti_cu_edge);
	FIELD(cudaGraphEdgeData, type, struct tti_cu_edge, type);
	SIZE(cudaGraphInstantiateParams, struct tti_cu_instantiate_params);
	FIELD(cudaGraphInstantiateParams, uploadStream, struct tti_cu_instantiate_params, upload);
	FIELD(cudaGraphInstantiateParams, result_out, struct tti_cu_instantiate_params, result);
	SIZE(cudaGraphExecUpdateResultInfo, struct tti_cu_update_result);
	FIELD(cudaGraphExecUpdateResultInfo, errorNode, struct tti_cu_update_result, error_node);
	SAME(cudaGraphExecUpdateErrorTopologyChanged, TTI_CU_UPDATE_TOPOLOGY);
	SAME(cudaGraphExecUpdateError, TTI_CU_UPDATE_ERROR);
	SAME(cudaGraphInstantiateInvalidStructure, 2);
}

static void kinds_of_nodes_are_the_same(void **state)
{
	(void)state;
	SAME(cudaGraphNodeTypeKernel, TTI_CUDA_NODE_KERNEL);
	SAME(cudaGraphNodeTypeMemcpy, TTI_CUDA_NODE_COPY);
	SAME(cudaGraphNodeTypeMemset, TTI_CUDA_NODE_SET);
	SAME(cudaGraphNodeTypeHost, TTI_CUDA_NODE_HOST);
	SAME(cudaGraphNodeTypeGraph, TTI_CUDA_NODE_GRAPH);
	SAME(cudaGraphNodeTypeEmpty, TTI_CUDA_NODE_EMPTY);
	SAME(cudaGraphNodeTypeWaitEvent, TTI_CUDA_NODE_AWAIT);
	SAME(cudaGraphNodeTypeEventRecord, TTI_CUDA_NODE_RECORD);
	SAME(cudaGraphNodeTypeMemAlloc, TTI_CUDA_NODE_ALLOC);
	SAME(cudaGraphNodeTypeMemFree, TTI_CUDA_NODE_FREE);
	SAME(cudaStreamCaptureModeGlobal, TTI_CUDA_CAPTURE_GLOBAL);
	SAME(cudaStreamCaptureModeThreadLocal, TTI_CUDA_CAPTURE_THREAD);
	SAME(cudaStreamCaptureModeRelaxed, TTI_CUDA_CAPTURE_RELAXED);
	SAME(cudaStreamCaptureStatusActive, TTI_CUDA_CAPTURE_ACTIVE);
	SAME(cudaStreamCaptureStatusInvalidated, TTI_CUDA_CAPTURE_INVALID);
}

/* -- Kernels ------------------------------------------------------------------------------ */

static void launches_have_the_same_layout(void **state)
{
	(void)state;
	SIZE(cudaLaunchConfig_t, struct tti_cu_launch_config);
	FIELD(cudaLaunchConfig_t, dynamicSmemBytes, struct tti_cu_launch_config, shared_bytes);
	FIELD(cudaLaunchConfig_t, stream, struct tti_cu_launch_config, stream);
	FIELD(cudaLaunchConfig_t, attrs, struct tti_cu_launch_config, attributes);
	FIELD(cudaLaunchConfig_t, numAttrs, struct tti_cu_launch_config, nattributes);
	SIZE(cudaLaunchAttribute, struct tti_cu_launch_attribute);
	FIELD(cudaLaunchAttribute, val, struct tti_cu_launch_attribute, value);
	FIELD(cudaLaunchAttributeValue, cooperative, union tti_cu_launch_value, number);
	FIELD(cudaLaunchAttributeValue, launchCompletionEvent.event, union tti_cu_launch_value,
	      completion.event);
	SIZE(struct cudaFuncAttributes, struct tti_cu_function_attributes);
	FIELD(struct cudaFuncAttributes, maxThreadsPerBlock, struct tti_cu_function_attributes,
	      threads_most);
	FIELD(struct cudaFuncAttributes, maxDynamicSharedSizeBytes,
	      struct tti_cu_function_attributes, dynamic_shared_most);
	FIELD(struct cudaFuncAttributes, preferredShmemCarveout, struct tti_cu_function_attributes,
	      carveout);
	FIELD(struct cudaFuncAttributes, reserved, struct tti_cu_function_attributes, reserved);
	SAME(cudaLaunchAttributeAccessPolicyWindow, TTI_CU_LAUNCH_POLICY_WINDOW);
	SAME(cudaLaunchAttributeCooperative, TTI_CU_LAUNCH_COOPERATIVE);
	SAME(cudaLaunchAttributeSynchronizationPolicy, TTI_CU_LAUNCH_SYNC_POLICY);
	SAME(cudaLaunchAttributeClusterDimension, TTI_CU_LAUNCH_CLUSTER);
	SAME(cudaLaunchAttributeProgrammaticEvent, TTI_CU_LAUNCH_EVENT);
	SAME(cudaLaunchAttributePriority, TTI_CU_LAUNCH_PRIORITY);
	SAME(cudaLaunchAttributeMemSyncDomainMap, TTI_CU_LAUNCH_DOMAIN_MAP);
	SAME(cudaLaunchAttributeMemSyncDomain, TTI_CU_LAUNCH_DOMAIN);
	SAME(cudaLaunchAttributeLaunchCompletionEvent, TTI_CU_LAUNCH_COMPLETION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_the_same_numbers),
		cmocka_unit_test(properties_have_the_same_layout),
		cmocka_unit_test(memory_types_are_the_same),
		cmocka_unit_test(pointers_have_the_same_layout),
		cmocka_unit_test(copies_have_the_same_layout),
		cmocka_unit_test(pools_have_the_same_layout),
		cmocka_unit_test(nodes_have_the_same_layout),
		cmocka_unit_test(graphs_have_the_same_layout),
		cmocka_unit_test(kinds_of_nodes_are_the_same),
		cmocka_unit_test(launches_have_the_same_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void cuda_s_headers_are_not_installed(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuda_s_headers_are_not_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of kernels, what programs ask about them before, and nodes of graphs that launch. */
#include "driver/graph.h"
#include "engine/event.h"

/* -- Jobs ---------------------------------------------------------------------------------- */

int tti_driver_launch_job(const CUDA_KERNEL_NODE_PARAMS *params, const char *caller,
			  struct tti_cuda_job *out)
{
	const struct tti_cuda_runnable *kernel;
	const int bad = tti_driver_kernel(params->func, (CUfunction)params->kern, caller, &kernel);

	if (bad)
		return bad;
	if (params->extra)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "%s: arguments of kernel %s in one buffer (extra): pass a "
				     "list of their addresses",
				     caller, kernel->name);
	return tti_cuda_launch_job(
		caller,
		&(struct tti_cuda_launch){
			.kernel = kernel,
			.function = params->func ? (const void *)params->func : params->kern,
			.grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
			.block = { params->blockDimX, params->blockDimY, params->blockDimZ },
			.shared_bytes = params->sharedMemBytes,
			.args = params->kernelParams,
		},
		TTI_CUDA_EINVAL, out);
}

static int launch(const CUDA_KERNEL_NODE_PARAMS *params, CUstream handle, const char *caller,
		  struct tti_cuda_stream **out)
{
	struct tti_cuda_job job;
	int bad = tti_driver_stream(handle, out);

	if (!bad)
		bad = tti_cuda_device_failure(tti_cuda_stream_device(*out));
	if (!bad)
		bad = tti_driver_launch_job(params, caller, &job);
	return bad ? bad : tti_cuda_stream_push(*out, &job);
}

/* Blocks may run one after the other: what runs a kernel does not say. */
static int refuse_cooperative(CUfunction function, const char *caller)
{
	const struct tti_cuda_runnable *kernel;
	const int bad = tti_driver_kernel(function, NULL, caller, &kernel);

	if (bad)
		return bad;
	return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
			     "%s: blocks of kernel %s that wait for each other, or clusters, are "
			     "not there on host memory",
			     caller, kernel->name);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
			unsigned block_x, unsigned block_y, unsigned block_z, unsigned nshared,
			CUstream stream, void **params, void **extra)
{
	const CUDA_KERNEL_NODE_PARAMS node = { function, grid_x,  grid_y, grid_z, block_x, block_y,
					       block_z,  nshared, params, extra,  NULL,    NULL };
	struct tti_cuda_stream *used;

	return tti_driver_result(launch(&node, stream, __func__, &used));
}

/* false: the launch needs what is not there. *out: to be recorded behind it. */
static bool read_attributes(const CUlaunchConfig *config, CUevent *out)
{
	*out = NULL;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *value = &config->attrs[i].value;

		switch ((int)config->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			if (value->cooperative)
				return false;
			break;
		case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
			if (value->clusterDim.x > 1 || value->clusterDim.y > 1 ||
			    value->clusterDim.z > 1)
				return false;
			break;
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
			*out = value->programmaticEvent.event;
			break;
		case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
			*out = value->launchCompletionEvent.event;
			break;
		default: /* hints */
			break;
		}
	}
	return true;
}

static int launch_config(const CUlaunchConfig *config, CUfunction function, CUstream handle,
			 void **params, void **extra, const char *caller)
{
	const CUDA_KERNEL_NODE_PARAMS node = { function,
					       config->gridDimX,
					       config->gridDimY,
					       config->gridDimZ,
					       config->blockDimX,
					       config->blockDimY,
					       config->blockDimZ,
					       config->sharedMemBytes,
					       params,
					       extra,
					       NULL,
					       NULL };
	struct tti_cuda_stream *stream;
	CUevent event;
	int bad = config->numAttrs ? tti_driver_need(config->attrs, caller) : TTI_CUDA_OK;

	if (bad)
		return bad;
	if (!read_attributes(config, &event))
		return refuse_cooperative(function, caller);
	bad = launch(&node, handle, caller, &stream);
	return bad || !event ? bad : tti_cuda_event_record((struct tti_cuda_event *)event, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	const int bad = tti_driver_need(config, __func__);

	return tti_driver_result(
		bad ? bad
		    : launch_config(config, function, config->hStream, params, extra, __func__));
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
			       void **extra)
{
	const int bad = tti_driver_need(config, __func__);

	return tti_driver_result(bad ? bad
				     : launch_config(config, function,
						     tti_driver_per_thread(config->hStream), params,
						     extra, __func__));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
				   unsigned grid_z, unsigned block_x, unsigned block_y,
				   unsigned block_z, unsigned nshared, CUstream handle,
				   void **params)
{
	struct tti_cuda_stream *stream;
	const int bad = tti_driver_stream(handle, &stream);

	(void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
	(void)nshared, (void)params;
	return tti_driver_result(bad ? bad : refuse_cooperative(function, __func__));
}

/* -- What kernels need --------------------------------------------------------------------- */

static int begin(CUfunction function, const void *out, const char *what)
{
	const struct tti_cuda_runnable *kernel;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, what);
	return bad ? bad : tti_driver_kernel(function, NULL, what, &kernel);
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function)
{
	static const int values[CU_FUNC_ATTRIBUTE_MAX] = {
		[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = TTI_CUDA_THREADS_MOST,
		[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90,
		[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90,
		[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = TTI_CUDA_SHARED_MOST,
		[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1,
	};
	const int bad = begin(function, out, __func__);

	if (bad)
		return tti_driver_result(bad);
	if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return tti_driver_fail(TTI_CUDA_EINVAL,
				       "cuFuncGetAttribute: attribute %d: a kernel has 0 to %d",
				       (int)attribute, CU_FUNC_ATTRIBUTE_MAX - 1);
	*out = values[attribute];
	return CUDA_SUCCESS;
}

/* Checked and not kept: no kernel here has another cache or other shared memory. */
static int check_set(CUfunction_attribute attribute, int value, CUfunction function,
		     const char *what)
{
	const int bad = begin(function, function, what);

	if (bad)
		return bad;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    (value < 0 || value > TTI_CUDA_SHARED_MOST))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s: %d bytes of shared memory: a block has 0 to %d", what,
				     value, TTI_CUDA_SHARED_MOST);
	if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	    attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: attribute %d: %d to %d can be set", what,
				     (int)attribute,
				     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				     CU_FUNC_ATTRIBUTE_MAX - 1);
	return TTI_CUDA_OK;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	return tti_driver_result(check_set(attribute, value, function, __func__));
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	(void)config;
	return tti_driver_result(begin(function, function, __func__));
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	(void)config;
	return tti_driver_result(begin(function, function, __func__));
}

CUresult cuKernelGetAttribute(int *out, CUfunction_attribute attribute, CUkernel kernel,
			      CUdevice device)
{
	const int bad = tti_driver_begin_device(device);

	return bad ? tti_driver_result(bad)
		   : cuFuncGetAttribute(out, attribute, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
			      CUdevice device)
{
	const int bad = tti_driver_begin_device(device);

	return tti_driver_result(bad ? bad
				     : check_set(attribute, value, (CUfunction)kernel, __func__));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	const int bad = tti_driver_begin_device(device);

	return bad ? tti_driver_result(bad) : cuFuncSetCacheConfig((CUfunction)kernel, config);
}

static int occupancy(int *out, CUfunction function, int nthreads, size_t shared_bytes,
		     const char *what)
{
	const int bad = begin(function, out, what);

	if (bad)
		return bad;
	if (nthreads < 1 || nthreads > TTI_CUDA_THREADS_MOST)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: blocks of %d threads: 1 to %d", what,
				     nthreads, TTI_CUDA_THREADS_MOST);
	*out = tti_cuda_launch_occupancy(tti_cuda_device_current(), nthreads, shared_bytes);
	return TTI_CUDA_OK;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction function, int nthreads,
						     size_t shared_bytes)
{
	return tti_driver_result(occupancy(out, function, nthreads, shared_bytes, __func__));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction function,
							      int nthreads, size_t shared_bytes,
							      unsigned flags)
{
	if (flags > 1)
		return tti_driver_fail(TTI_CUDA_EINVAL, "%s: flags 0x%x: 0 or 1", __func__, flags);
	return tti_driver_result(occupancy(out, function, nthreads, shared_bytes, __func__));
}

/* -- Nodes of graphs ----------------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS params_of(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		old->func,         old->gridDimX,  old->gridDimY,  old->gridDimZ,
		old->blockDimX,    old->blockDimY, old->blockDimZ, old->sharedMemBytes,
		old->kernelParams, old->extra,     NULL,           NULL
	};
}

static int begin_node(const void *handle, const void *params, const char *what)
{
	const int bad = tti_driver_begin_graph(handle, what);

	return bad ? bad : tti_driver_need(params, what);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
				 size_t nafter, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = begin_node(graph, params, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_driver_launch_job(params, __func__, &job);
	return bad ? tti_driver_result(bad) : tti_driver_add(out, graph, after, nafter, &job);
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
			      size_t nafter, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	const int bad = tti_driver_need(params, __func__);
	CUDA_KERNEL_NODE_PARAMS all;

	if (bad)
		return tti_driver_result(bad);
	all = params_of(params);
	return cuGraphAddKernelNode_v2(out, graph, after, nafter, &all);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
	const int bad = begin_node(node, out, __func__);
	const struct tti_cuda_launch *launch;

	if (bad)
		return tti_driver_result(bad);
	launch = tti_cuda_node_launch(tti_driver_node(node));
	if (!launch)
		return tti_driver_fail(TTI_CUDA_EINVAL, "%s: the node is of another kind",
				       __func__);
	*out = (CUDA_KERNEL_NODE_PARAMS){
		(CUfunction)(uintptr_t)launch->function,
		launch->grid[0],
		launch->grid[1],
		launch->grid[2],
		launch->block[0],
		launch->block[1],
		launch->block[2],
		launch->shared_bytes,
		launch->args,
		NULL,
		NULL,
		NULL,
	};
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
	CUDA_KERNEL_NODE_PARAMS all;
	const int bad = tti_driver_need(out, __func__);
	CUresult rc;

	if (bad)
		return tti_driver_result(bad);
	rc = cuGraphKernelNodeGetParams_v2(node, &all);
	if (!rc)
		*out = (CUDA_KERNEL_NODE_PARAMS_v1){ all.func,         all.gridDimX,
						     all.gridDimY,     all.gridDimZ,
						     all.blockDimX,    all.blockDimY,
						     all.blockDimZ,    all.sharedMemBytes,
						     all.kernelParams, NULL };
	return rc;
}

static int job_for(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params, const char *what,
		   struct tti_cuda_job *out)
{
	const int bad = begin_node(node, params, what);

	return bad ? bad : tti_driver_launch_job(params, what, out);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	const int bad = job_for(node, params, __func__, &job);

	return tti_driver_result(bad ? bad : tti_cuda_node_set(tti_driver_node(node), &job));
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	const int bad = tti_driver_need(params, __func__);
	CUDA_KERNEL_NODE_PARAMS all;

	if (bad)
		return tti_driver_result(bad);
	all = params_of(params);
	return cuGraphKernelNodeSetParams_v2(node, &all);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct tti_cuda_job job;
	int bad = tti_driver_begin_graph(exec, __func__);

	if (!bad)
		bad = job_for(node, params, __func__, &job);
	return tti_driver_result(
		bad ? bad : tti_cuda_exec_set(tti_driver_exec(exec), tti_driver_node(node), &job));
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	const int bad = tti_driver_need(params, __func__);
	CUDA_KERNEL_NODE_PARAMS all;

	if (bad)
		return tti_driver_result(bad);
	all = params_of(params);
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &all);
}

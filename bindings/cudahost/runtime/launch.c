/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of kernels, and what programs ask about them before. */
#include <string.h>

#include "engine/kernel.h"
#include "engine/launch.h"
#include "runtime/kernel.h"

/* -- Jobs --------------------------------------------------------------------------------- */

int tti_cudart_kernel_job(const char *caller, const struct tti_cu_kernel_node *node, bool is_told,
			  struct tti_cuda_job *out)
{
	const struct tti_cuda_runnable *kernel;

	if (!tti_cudart_kernel_find(node->function, &kernel) || !kernel)
		return tti_cudart_kernel_refuse(caller, node->function, is_told);
	return tti_cuda_launch_job(caller,
				   &(struct tti_cuda_launch){
					   .kernel = kernel,
					   .function = node->function,
					   .grid = { node->grid.x, node->grid.y, node->grid.z },
					   .block = { node->block.x, node->block.y, node->block.z },
					   .shared_bytes = node->shared_bytes,
					   .args = node->args,
				   },
				   TTI_cudaErrorInvalidConfiguration, out);
}

bool tti_cudart_node_kernel(const struct tti_cuda_node *node, struct tti_cu_kernel_node *out)
{
	const struct tti_cuda_launch *launch = tti_cuda_node_launch(node);

	if (!launch)
		return false;
	*out = (struct tti_cu_kernel_node){
		.function = (void *)(uintptr_t)launch->function,
		.grid = { launch->grid[0], launch->grid[1], launch->grid[2] },
		.block = { launch->block[0], launch->block[1], launch->block[2] },
		.shared_bytes = launch->shared_bytes,
		.args = launch->args,
	};
	return true;
}

/* -- Launches ----------------------------------------------------------------------------- */

static int launch(const char *caller, bool per_thread, const struct tti_cu_kernel_node *node,
		  const void *handle, bool is_told, struct tti_cuda_stream **out)
{
	struct tti_cuda_job job;
	int error = 0;

	*out = tti_cuda_stream_get(handle, per_thread, &error);
	if (!*out)
		return error;
	error = tti_cuda_device_failure(tti_cuda_stream_device(*out));
	if (!error)
		error = tti_cudart_kernel_job(caller, node, is_told, &job);
	return error ? error : tti_cuda_stream_push(*out, &job);
}

static struct tti_cu_kernel_node node_of(const void *function, struct tti_cu_dim3 grid,
					 struct tti_cu_dim3 block, void **args, size_t shared_bytes)
{
	return (struct tti_cu_kernel_node){ (void *)(uintptr_t)function, grid, block,
					    (unsigned)shared_bytes,      args, NULL };
}

int tti_cudaLaunchKernel(bool per_thread, const void *function, struct tti_cu_dim3 grid,
			 struct tti_cu_dim3 block, void **args, size_t shared_bytes,
			 tti_cu_stream stream)
{
	const struct tti_cu_kernel_node node = node_of(function, grid, block, args, shared_bytes);
	struct tti_cuda_stream *used;

	return launch("cudaLaunchKernel", per_thread, &node, stream, false, &used);
}

int tti___cudaLaunchKernel(bool per_thread, tti_cu_kernel kernel, struct tti_cu_dim3 grid,
			   struct tti_cu_dim3 block, void **args, size_t shared_bytes,
			   tti_cu_stream stream)
{
	return tti_cudaLaunchKernel(per_thread, kernel, grid, block, args, shared_bytes, stream);
}

/* Its blocks wait for each other, and blocks run one after the other here. */
static int refuse_cooperative(const char *caller, const void *function)
{
	const struct tti_cuda_runnable *kernel;

	if (!tti_cudart_kernel_find(function, &kernel) || !kernel)
		return tti_cudart_kernel_refuse(caller, function, true);
	return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
			     "%s(): blocks that wait for each other, or clusters, are not there on "
			     "host memory: launch a kernel without",
			     caller);
}

int tti_cudaLaunchCooperativeKernel(bool per_thread, const void *function, struct tti_cu_dim3 grid,
				    struct tti_cu_dim3 block, void **args, size_t shared_bytes,
				    tti_cu_stream stream)
{
	(void)per_thread, (void)grid, (void)block, (void)args, (void)shared_bytes, (void)stream;
	return refuse_cooperative("cudaLaunchCooperativeKernel", function);
}

/* false: the launch needs what is not there. *event: to be recorded behind it. */
static bool read_attributes(const struct tti_cu_launch_config *config, tti_cu_event *event)
{
	*event = NULL;
	for (unsigned at = 0; at < config->nattributes; at++) {
		const union tti_cu_launch_value *value = &config->attributes[at].value;

		switch (config->attributes[at].id) {
		case TTI_CU_LAUNCH_COOPERATIVE:
			if (value->number)
				return false;
			break;
		case TTI_CU_LAUNCH_CLUSTER:
			if (value->cluster.x > 1 || value->cluster.y > 1 || value->cluster.z > 1)
				return false;
			break;
		case TTI_CU_LAUNCH_EVENT:
		case TTI_CU_LAUNCH_COMPLETION:
			*event = value->completion.event;
			break;
		default: /* hints */
			break;
		}
	}
	return true;
}

int tti_cudaLaunchKernelExC(bool per_thread, const struct tti_cu_launch_config *config,
			    const void *function, void **args)
{
	const char *const caller = "cudaLaunchKernelExC";
	struct tti_cu_kernel_node node;
	struct tti_cuda_stream *stream;
	tti_cu_event event;
	int error;

	if (!config || (config->nattributes && !config->attributes))
		return tti_cudart_null(caller, config ? "list of attributes" : "config");
	if (!read_attributes(config, &event))
		return refuse_cooperative(caller, function);
	node = node_of(function, config->grid, config->block, args, config->shared_bytes);
	error = launch(caller, per_thread, &node, config->stream, true, &stream);
	return error || !event ? error : tti_cuda_event_record(event, stream);
}

/* -- Launches as <<< >>> makes them ------------------------------------------------------- */

enum { CONFIGS_MOST = 64 };

static _Thread_local struct {
	struct tti_cu_dim3 grid, block;
	size_t shared_bytes;
	tti_cu_stream stream;
} configs[CONFIGS_MOST];
static _Thread_local int nconfigs;

/* Arguments of a kernel may launch kernels, so that there may be several. The program skips the
 * launch if this is not 0. */
unsigned __cudaPushCallConfiguration(struct tti_cu_dim3 grid, struct tti_cu_dim3 block,
				     size_t shared_bytes, tti_cu_stream stream)
{
	if (nconfigs == CONFIGS_MOST) {
		(void)tti_cuda_kernel_missed("in a launch that is nested too deep", "<<< >>>");
		return (unsigned)tti_cudart_leave(tti_cuda_fail(
			TTI_cudaErrorInvalidConfiguration,
			"%d launches are nested: launch one after the other", CONFIGS_MOST));
	}
	configs[nconfigs].grid = grid;
	configs[nconfigs].block = block;
	configs[nconfigs].shared_bytes = shared_bytes;
	configs[nconfigs].stream = stream;
	nconfigs++;
	return 0;
}

int __cudaPopCallConfiguration(struct tti_cu_dim3 *grid, struct tti_cu_dim3 *block,
			       size_t *shared_bytes, void *stream)
{
	if (nconfigs == 0)
		return tti_cudart_leave(tti_cuda_fail(
			TTI_cudaErrorMissingConfiguration,
			"a kernel is launched without a configuration: call it with <<< >>>"));
	nconfigs--;
	*grid = configs[nconfigs].grid;
	*block = configs[nconfigs].block;
	*shared_bytes = configs[nconfigs].shared_bytes;
	memcpy(stream, &configs[nconfigs].stream, sizeof(configs[nconfigs].stream));
	return 0;
}

/* -- What kernels need -------------------------------------------------------------------- */

enum { BLOCKS_MOST = 32 };

static int check_kernel(const char *caller, const void *function, bool must_run)
{
	const struct tti_cuda_runnable *kernel;

	if (tti_cudart_kernel_find(function, &kernel) && (kernel || !must_run))
		return 0;
	return tti_cudart_kernel_refuse(caller, function, true);
}

int tti_cudaFuncGetAttributes(struct tti_cu_function_attributes *out, const void *function)
{
	const int error = check_kernel("cudaFuncGetAttributes", function, true);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaFuncGetAttributes", "place for the attributes");
	*out = (struct tti_cu_function_attributes){
		.threads_most = TTI_CUDA_THREADS_MOST,
		.ptx_version = 90,
		.binary_version = 90,
		.dynamic_shared_most = TTI_CUDA_SHARED_MOST,
		.carveout = -1,
	};
	return 0;
}

int tti_cudaFuncSetAttribute(const void *function, int attribute, int value)
{
	(void)value;
	if (attribute < 8 || attribute > 15)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaFuncSetAttribute(): there is no attribute %d: 8 to 15",
				     attribute);
	return check_kernel("cudaFuncSetAttribute", function, false);
}

int tti_cudaKernelSetAttributeForDevice(tti_cu_kernel kernel, int attribute, int value, int device)
{
	const int error = tti_cudart_check_device("cudaKernelSetAttributeForDevice", device);

	return error ? error : tti_cudaFuncSetAttribute(kernel, attribute, value);
}

int tti_cudaFuncSetCacheConfig(const void *function, int config)
{
	(void)config;
	return check_kernel("cudaFuncSetCacheConfig", function, false);
}

int tti_cudaFuncSetSharedMemConfig(const void *function, int config)
{
	(void)config;
	return check_kernel("cudaFuncSetSharedMemConfig", function, false);
}

static int occupancy(const char *caller, int *out, const void *function, int threads,
		     size_t shared_bytes)
{
	const int error = check_kernel(caller, function, false);

	if (error)
		return error;
	if (!out || threads < 1 || threads > TTI_CUDA_THREADS_MOST)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): blocks of %d threads, answer at %p: pass 1 to %d, and "
				     "an address",
				     caller, threads, (void *)out, TTI_CUDA_THREADS_MOST);
	*out = tti_cuda_launch_occupancy(tti_cuda_device_current(), threads, shared_bytes);
	return 0;
}

int tti_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *function, int threads,
						      size_t shared_bytes)
{
	return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessor", out, function, threads,
			 shared_bytes);
}

int tti_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *function,
							       int threads, size_t shared_bytes,
							       unsigned flags)
{
	if (flags > 1)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(): "
				     "flags are %#x: pass 0 or 1",
				     flags);
	return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", out, function,
			 threads, shared_bytes);
}

int tti_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *out, const void *function, int nblocks,
						  int threads)
{
	const char *const caller = "cudaOccupancyAvailableDynamicSMemPerBlock";
	const int error = check_kernel(caller, function, false);

	if (error)
		return error;
	if (!out || nblocks < 1 || nblocks > BLOCKS_MOST || threads < 1 ||
	    threads > TTI_CUDA_THREADS_MOST)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): %d blocks of %d threads, answer at %p: pass 1 to %d "
				     "blocks of 1 to %d, and an address",
				     caller, nblocks, threads, (void *)out, BLOCKS_MOST,
				     TTI_CUDA_THREADS_MOST);
	*out = tti_cuda_launch_shared(tti_cuda_device_current(), nblocks);
	return 0;
}

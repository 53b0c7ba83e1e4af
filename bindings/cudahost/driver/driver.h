/* SPDX-License-Identifier: BSD-3-Clause */
/* What the functions of the driver have in common.
 *
 * A context is a device: memory, streams and events belong to the device, and live on where a
 * context is destroyed. What is kept for a context is which threads have it as their current one.
 *
 * Handles are the engine's objects: a CUstream is a struct tti_cuda_stream, and so on. */
#ifndef TUTTI_CUDAHOST_DRIVER_H
#define TUTTI_CUDAHOST_DRIVER_H

#include <stdbool.h>

#define TTI_DRIVER_BODIES
#include "driver/driver_abi_streams.h"
#include "driver/driver_api.h"
#include "engine/copy.h"
#include "engine/device.h"
#include "engine/graph.h"
#include "engine/launch.h"

static inline CUresult tti_driver_result(int rc)
{
	return (CUresult)rc;
}

#define tti_driver_fail(...) tti_driver_result(tti_cuda_fail(__VA_ARGS__))

/* The stream that NULL is in functions with the suffix _ptsz. */
static inline CUstream tti_driver_per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

static inline void *tti_driver_address(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

static inline CUdeviceptr tti_driver_pointer(const void *address)
{
	return (CUdeviceptr)(uintptr_t)address;
}

/* 0, or INVALID_VALUE with a text where an address to write to is NULL. */
int tti_driver_need(const void *out, const char *what);

/* 0, or why no function can be called: cuInit() was not. */
int tti_driver_begin(void);
/* The same where a host function may call it, too. */
int tti_driver_begin_in_host(void);
/* The same and that there is such a device. */
int tti_driver_begin_device(CUdevice device);
/* The same and that the thread has a context, whose device is the engine's current one. NULL: it
 * does not matter which. */
int tti_driver_begin_context(CUcontext *out);

/* A context of the device, for functions that tell one; NULL if there is none. */
CUcontext tti_driver_context_of(int device);
/* The device of a context, or what is wrong with it. */
int tti_driver_device_of(CUcontext context, int *out);

/* The stream of a handle. The default streams need a context. */
int tti_driver_stream(CUstream handle, struct tti_cuda_stream **out);

/* What runs `function`, or if that is NULL, `other`. An error that names the kernel if it cannot run
 * on the host. It is loaded first. */
int tti_driver_kernel(CUfunction function, CUfunction other, const char *caller,
		      const struct tti_cuda_runnable **out);
/* A launch as a node describes it. */
int tti_driver_launch_job(const CUDA_KERNEL_NODE_PARAMS *params, const char *caller,
			  struct tti_cuda_job *out);

/* A box as the driver's copies describe it. */
int tti_driver_box(const CUDA_MEMCPY3D *copy, struct tti_cuda_copy *out);
void tti_driver_unbox(const struct tti_cuda_copy *copy, CUDA_MEMCPY3D *out);

/* Reads, writes and waits of a stream, as a job. */
int tti_driver_memory_ops(const CUstreamBatchMemOpParams *ops, unsigned n, unsigned flags,
			  struct tti_cuda_job *out);
/* Those of a node; *out_n is 0 for another kind of node. Borrowed. */
const CUstreamBatchMemOpParams *tti_driver_memory_ops_of(const struct tti_cuda_node *node,
							 unsigned *out_n);

#endif

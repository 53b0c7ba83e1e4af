/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that functions of the host run: by name and by the address that programs launch, and their
 * launches as jobs.
 *
 * Owner: a kernel that was added stays for ever. Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_LAUNCH_H
#define TUTTI_CUDAHOST_ENGINE_LAUNCH_H

#include "engine/graph.h"
#include "engine/host_abi.h"
#include "engine/stream.h"

#pragma GCC visibility push(default)

/* Bytes of all parameters of a kernel, as from CUDA 12.1 on. */
#define TTI_CUDA_PARAMS_MOST ((size_t)32764)

struct tti_cuda_runnable {
	const char *name;
	tti_cuda_kernel_fn run;
	size_t nargs;
	const size_t *arg_bytes;
	bool is_of_program; /* its arguments lead to where guarded memory is */
};

/* As tti_cuda_kernel_register(), of which `caller` is the name for messages. */
int tti_cuda_runnable_add(const char *caller, const void *function, const char *name,
			  tti_cuda_kernel_fn run, const size_t *arg_bytes, size_t nargs);
/* The newest that was added with this function, or else with this name; each may be NULL. */
const struct tti_cuda_runnable *tti_cuda_runnable_find(const void *function, const char *name);

struct tti_cuda_launch {
	const struct tti_cuda_runnable *kernel;
	const void *function; /* what the program launches it by; kept for it */
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	void **args;
};

/* A job with copies of the arguments. `too_large` is the error of a grid, a block or shared memory
 * that no device has. */
int tti_cuda_launch_job(const char *caller, const struct tti_cuda_launch *launch, int too_large,
			struct tti_cuda_job *out);
/* What a node launches; NULL for another kind. Borrowed. */
const struct tti_cuda_launch *tti_cuda_node_launch(const struct tti_cuda_node *node);

/* How many blocks of this size a multiprocessor has at a time. */
int tti_cuda_launch_occupancy(int device, int nthreads, size_t shared_bytes);
/* Shared memory that a block can have if so many are on a multiprocessor. */
size_t tti_cuda_launch_shared(int device, int nblocks);

#define TTI_CUDA_THREADS_MOST 1024 /* of a block */
#define TTI_CUDA_SHARED_MOST  49152

#pragma GCC visibility pop

#endif

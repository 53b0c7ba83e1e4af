/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as a program gets it by cudaMalloc(), which can be shared. */
#ifndef TUTTI_CUDA_TEST_PROGRAM_H
#define TUTTI_CUDA_TEST_PROGRAM_H

#include <stdlib.h>

#include "gpu/cuda_impl.h"

static inline uint64_t program_alloc(struct tti_gpu *gpu, size_t nbytes)
{
	struct tti_gpu_scope scope;
	uint64_t at;

	if (tti_gpu_enter(gpu, true, &scope) != TUTTI_OK || gpu->driver->call.alloc(&at, nbytes))
		abort();
	tti_gpu_leave(gpu, &scope);
	return at;
}

static inline void program_free(struct tti_gpu *gpu, uint64_t at)
{
	struct tti_gpu_scope scope;

	if (tti_gpu_enter(gpu, true, &scope) != TUTTI_OK || gpu->driver->call.free(at))
		abort();
	tti_gpu_leave(gpu, &scope);
}

#endif

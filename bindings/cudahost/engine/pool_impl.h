/* SPDX-License-Identifier: BSD-3-Clause */
/* What pool.c and pool_use.c have in common. Each allocation of a pool is a block of its device's.
 * One that is freed in a stream is in the pool's list `queued` until the stream has come there, then
 * perhaps in `kept`.
 *
 * Threads: locked (allocation.h). */
#ifndef TUTTI_CUDAHOST_ENGINE_POOL_IMPL_H
#define TUTTI_CUDAHOST_ENGINE_POOL_IMPL_H

#include "engine/allocation.h"
#include "engine/pool.h"

/* The numbers of cudaMemPoolAttr. */
enum tti_cuda_pool_attribute {
	TTI_CUDA_REUSE_FIRST = 1,
	TTI_CUDA_REUSE_OTHERS = 2, /* memory that another stream has freed is used at once */
	TTI_CUDA_REUSE_LAST = 3,
	TTI_CUDA_POOL_THRESHOLD = 4,
	TTI_CUDA_POOL_RESERVED = 5,
	TTI_CUDA_POOL_RESERVED_HIGH = 6,
	TTI_CUDA_POOL_USED = 7,
	TTI_CUDA_POOL_USED_HIGH = 8,
};

struct tti_cuda_pool {
	struct tti_cuda_pool *next;
	int device;
	bool is_default;
	bool is_destroyed; /* and lives until the last allocation is freed */
	uint64_t nlive;
	uint64_t reuse[TTI_CUDA_REUSE_LAST + 1];
	uint64_t threshold;
	uint64_t most; /* that may be used; 0: as much as the device has */
	uint64_t reserved;
	uint64_t reserved_high;
	uint64_t used;
	uint64_t used_high;
	struct tti_cuda_allocation *queued;
	struct tti_cuda_allocation *kept; /* not in the table */
};

/* EINVAL with a text: it is none, or was destroyed. */
int tti_cuda_pool_check(const struct tti_cuda_pool *pool);
/* It ends with its last allocation. */
void tti_cuda_pool_end_if_unused(struct tti_cuda_pool *pool);
/* Take one out of the list `queued` or `kept`, if it is there. */
void tti_cuda_pool_unlink(struct tti_cuda_allocation **list,
			  const struct tti_cuda_allocation *self);

#endif

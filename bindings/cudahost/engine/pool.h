/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools: memory that is allocated and freed in the order of streams. */
#ifndef TUTTI_CUDAHOST_ENGINE_POOL_H
#define TUTTI_CUDAHOST_ENGINE_POOL_H

#include "engine/memory.h"
#include "engine/stream.h"

#pragma GCC visibility push(default)

struct tti_cuda_pool;

/* Memory that was freed is kept for the next allocation while the pool has not more than its release
 * threshold, 0 at first; else the device has it again at once. What a stream has freed is given to
 * the same stream already before it has come there.
 *
 * Owner: the caller. Memory that is not freed lives on. */
int tti_cuda_pool_create(int device, struct tti_cuda_pool **out);
/* How many bytes may be allocated at a time. */
void tti_cuda_pool_set_most(struct tti_cuda_pool *pool, uint64_t nbytes);
int tti_cuda_pool_destroy(struct tti_cuda_pool *pool); /* EINVAL for a default one */
/* Borrowed. NULL: there is no such device, or no memory. */
struct tti_cuda_pool *tti_cuda_pool_default(int device);
struct tti_cuda_pool *tti_cuda_pool_current(int device);
/* NULL: the default one. */
int tti_cuda_pool_set_current(int device, struct tti_cuda_pool *pool);
/* -1: it is no pool. */
int tti_cuda_pool_device(const struct tti_cuda_pool *pool);

/* `pool` NULL: the current one of the stream's device. The address is good at once; the memory is
 * the caller's behind what is queued. In a stream that is captured, memory of the graph: it is
 * allocated here and freed with the graph. */
int tti_cuda_pool_alloc(struct tti_cuda_pool *pool, size_t nbytes, struct tti_cuda_stream *stream,
			void **out);
/* Any memory of a device; freed when the stream has come there. In a stream that is captured: only
 * memory of a graph. */
int tti_cuda_pool_free(void *address, struct tti_cuda_stream *stream);

/* Give memory that is kept to the device, until the pool has `keep` bytes. As in CUDA, `keep` is
 * rounded up to 32 MiB, and so is what get() says is reserved. */
int tti_cuda_pool_trim(struct tti_cuda_pool *pool, size_t keep);

/* The numbers of cudaMemPoolAttr; EINVAL for one that cannot be set. */
int tti_cuda_pool_get(const struct tti_cuda_pool *pool, int attribute, uint64_t *out);
int tti_cuda_pool_set(struct tti_cuda_pool *pool, int attribute, uint64_t value);

#pragma GCC visibility pop

#endif

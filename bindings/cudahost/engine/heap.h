/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bytes of a device are free: blocks that are found in logarithmic time, the first that fits,
 * and that grow together again when their neighbours are free.
 *
 * A treap (Seidel and Aragon, Algorithmica 1996) by offset, in which every node knows the largest
 * block below it.
 *
 * Owner: the caller. Threads: not synchronised. */
#ifndef TUTTI_CUDAHOST_ENGINE_HEAP_H
#define TUTTI_CUDAHOST_ENGINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct tti_cuda_block {
	uint64_t offset;
	uint64_t nbytes;
	/* The heap uses these while the block is free. */
	struct tti_cuda_block *left;
	struct tti_cuda_block *right;
	uint64_t most;
	uint32_t priority;
};

struct tti_cuda_heap {
	struct tti_cuda_block *free;
	uint32_t seed;
};

/* All nbytes are free; 0 are none. False: out of memory. */
bool tti_cuda_heap_init(struct tti_cuda_heap *heap, uint64_t nbytes);
/* Blocks that are taken are not freed by this. */
void tti_cuda_heap_release(struct tti_cuda_heap *heap);

/* A block of nbytes > 0 at a multiple of alignment. NULL: there is none. The caller gives it back. */
struct tti_cuda_block *tti_cuda_heap_take(struct tti_cuda_heap *heap, uint64_t nbytes,
					  uint64_t alignment);
/* Cannot fail. */
void tti_cuda_heap_give(struct tti_cuda_heap *heap, struct tti_cuda_block *block);

uint64_t tti_cuda_heap_largest(const struct tti_cuda_heap *heap);

#endif

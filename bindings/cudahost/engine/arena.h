/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of each device of this process: one file, its addresses, and which of it is free.
 *
 * Threads: locked (allocation.h), but for what is said. */
#ifndef TUTTI_CUDAHOST_ENGINE_ARENA_H
#define TUTTI_CUDAHOST_ENGINE_ARENA_H

#include "engine/heap.h"
#include "engine/view.h"

/* Memory from the file, which is made with the first: ENOMEM, ESYS. */
int tti_cuda_arena_take(int device, size_t nbytes, struct tti_cuda_block **out);
/* The pages must be given back before, by tti_cuda_arena_empty(). */
void tti_cuda_arena_give(int device, struct tti_cuda_block *block);
char *tti_cuda_arena_address(int device, const struct tti_cuda_block *block);
/* Give the pages back to the kernel. Not locked: the block is the caller's. */
void tti_cuda_arena_empty(int device, const struct tti_cuda_block *block);

/* Bytes that are elsewhere but count as this device's. */
int tti_cuda_arena_claim(int device, size_t nbytes);
void tti_cuda_arena_unclaim(int device, size_t nbytes);

void tti_cuda_arena_info(int device, size_t *out_free, size_t *out_total);

/* The file, borrowed; and what it says of the block to other processes: the id of an allocation
 * that they may map, or 0. */
const struct tti_cuda_file *tti_cuda_arena_file(int device);
void tti_cuda_arena_publish(int device, const struct tti_cuda_block *block, uint64_t id);
/* Where that is in the file. */
uint64_t tti_cuda_arena_published_at(const struct tti_cuda_file *file, uint64_t offset);

/* Whether a file is a device's of this process. */
bool tti_cuda_arena_has(const struct tti_cuda_file *file);

/* In a child: close the files. */
void tti_cuda_arena_abandon(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_HEAP_H
#define TTI_TRANSPORT_HEAP_H

/* The heap of this process: memory that other processes of the host can map once a port has passed
 * them its file (shm_views.c). It belongs to no communicator. There is no heap before the first
 * allocation, nor where limits forbid it (ulimit -v, ulimit -f) or TUTTI_SHM_HEAP is 0.
 *
 * A forked child has what was allocated before: the same memory, or a copy if that was asked for.
 * It cannot pass that memory to others; what the child allocates itself lies in a heap of its own.
 *
 * Errors are quiet. Threads: any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#define TTI_HEAP_GRAIN 65536u /* allocations are multiples of it; no machine has larger pages */

/* The most bytes that a heap may have in this process; 0: a limit forbids one. */
uint64_t tti_heap_limit(uint64_t wanted_bytes);

/* Zeroed and page aligned memory; ordinary memory of the kernel where there is no heap.
 * TUTTI_ENOMEM: the heap is full, or a limit is reached. */
TUTTI_CHECKED tutti_status tti_heap_alloc(size_t nbytes, void **out);

/* TUTTI_EINVAL: not from tti_heap_alloc(). Memory that the parent of this process allocated
 * stays. */
TUTTI_CHECKED tutti_status tti_heap_free(void *memory);

/* Have memory of tti_heap_alloc() copied when this process forks. Errors as above, and
 * TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_heap_copy_on_fork(void *memory);

/* The file, and what identifies it to peers; false: there is no heap. The heap keeps the file. */
struct tti_heap_file {
	int fd;
	uint64_t nbytes;
	uint64_t number; /* random */
};
bool tti_heap_file(struct tti_heap_file *out);

/* Where the heap is: nbytes is set before base, and never changes while base is not NULL. */
extern struct tti_heap_place {
	_Atomic(uint8_t *) base; /* NULL: there is none */
	uint64_t nbytes;
} tti_heap_place;

/* Whether the whole range is in the heap, and its offset in the file. */
static inline bool tti_heap_find(const void *range, size_t nbytes, uint64_t *at)
{
	const uint8_t *base = atomic_load_explicit(&tti_heap_place.base, memory_order_acquire);
	const uint64_t offset = (uint64_t)((uintptr_t)range - (uintptr_t)base);

	*at = offset;
	return base && offset < tti_heap_place.nbytes && nbytes <= tti_heap_place.nbytes - offset;
}

#endif

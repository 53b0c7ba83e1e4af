/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_HEAP_H
#define TTI_TRANSPORT_HEAP_H

/* The heap of this process: memory that other processes of the host can map, as they hold its file
 * once a port has passed it to them (shm_views.c). It belongs to no communicator. There is none
 * before the first allocation, and none where limits forbid it (ulimit -v, ulimit -f) or
 * TUTTI_SHM_HEAP is 0.
 *
 * A child that is forked has what was allocated before: the same memory, or a copy if that was
 * asked for. It cannot hand it to others; what it allocates itself is of a heap of its own.
 *
 * Errors are quiet. Threads: any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#define TTI_HEAP_GRAIN 65536u /* what is allocated is a multiple of; no machine has larger pages */

/* How much a heap may be in this process; 0: a limit forbids one. */
uint64_t tti_heap_limit(uint64_t wanted_bytes);

/* Zeroed and page aligned. Memory of the kernel's where there is no heap.
 * TUTTI_ENOMEM: the heap is full, or a limit. */
TUTTI_CHECKED tutti_status tti_heap_alloc(size_t nbytes, void **out);

/* TUTTI_EINVAL: nothing that tti_heap_alloc() gave. Of what the parent of this process allocated:
 * it stays. */
TUTTI_CHECKED tutti_status tti_heap_free(void *memory);

/* What tti_heap_alloc() gave is copied when this process forks. Same errors, and TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_heap_copy_on_fork(void *memory);

/* The file, and what peers need to tell it from others; false: there is no heap. The heap keeps the
 * file. */
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

/* Whether all of the range is the heap's, and where in its file. */
static inline bool tti_heap_find(const void *range, size_t nbytes, uint64_t *at)
{
	const uint8_t *base = atomic_load_explicit(&tti_heap_place.base, memory_order_acquire);
	const uint64_t offset = (uint64_t)((uintptr_t)range - (uintptr_t)base);

	*at = offset;
	return base && offset < tti_heap_place.nbytes && nbytes <= tti_heap_place.nbytes - offset;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What is allocated, by address: the one table that memory.c, handle.c, address.c and pool.c share,
 * and the one lock of them all.
 *
 * Owner: an allocation is the table's while it is in it, and of whoever takes it out.
 * Threads: hold the lock for whatever is said to be "locked"; no function of streams may be called
 * with it. fork() waits for the lock. */
#ifndef TUTTI_CUDAHOST_ENGINE_ALLOCATION_H
#define TUTTI_CUDAHOST_ENGINE_ALLOCATION_H

#include "engine/heap.h"
#include "engine/memory.h"
#include "engine/span.h"
#include "engine/view.h"

enum tti_cuda_origin {
	TTI_CUDA_FROM_ALLOC,
	TTI_CUDA_FROM_POOL,
	TTI_CUDA_FROM_GRAPH,    /* of a captured stream */
	TTI_CUDA_FROM_HOST,     /* alloc_host() */
	TTI_CUDA_FROM_REGISTER, /* the program's */
	TTI_CUDA_FROM_HANDLE,   /* another process's */
	TTI_CUDA_FROM_MAP,      /* a piece at an address */
};

struct tti_cuda_allocation {
	struct tti_cuda_span span; /* first: the table is of spans */
	enum tti_cuda_origin origin;
	enum tti_cuda_memory_type type;
	int device;
	unsigned flags;
	uint64_t id;
	struct tti_cuda_block *block;     /* ALLOC, POOL, GRAPH */
	bool is_exported;                 /* ALLOC: a handle of it was made */
	struct tti_cuda_pool *pool;       /* POOL */
	struct tti_cuda_allocation *next; /* POOL: in a list of the pool */
	bool is_freed;                    /* ALLOC, POOL: queued in a stream; GRAPH: until the
					      next launch */
	bool is_free_captured;            /* GRAPH */
	uint64_t freed_in;                /* the id of that stream */
	const struct tti_cuda_view *view; /* HANDLE, MAP: what has the address; borrowed */
	struct tti_cuda_opened *opened;   /* HANDLE */
	struct tti_cuda_piece *piece;     /* MAP */
	uint64_t readers, writers;        /* MAP: devices, a bit for each; who writes reads, too */
	bool is_lie;                      /* MAP: other memory is there (peers.h) */
};

/* Called before anything is kept: tti_cuda_begin(), and what fork() needs. */
int tti_cuda_memory_begin(void);
/* Whether this is a child of a process that had begun: it has none of the memory. */
bool tti_cuda_memory_is_gone(void);

void tti_cuda_lock_read(void);
void tti_cuda_lock_write(void);
void tti_cuda_unlock(void);

/* -- Locked ------------------------------------------------------------------------------- */

/* One that has any of the bytes, or NULL. */
struct tti_cuda_allocation *tti_cuda_allocation_find(const void *address, size_t nbytes);
/* Gives it an id. What was registered there is forgotten: the program has unmapped it. ENOMEM. */
int tti_cuda_allocation_add(struct tti_cuda_allocation *self);
void tti_cuda_allocation_remove(struct tti_cuda_allocation *self);
/* It is another allocation from now on: a new id. */
void tti_cuda_allocation_renew(struct tti_cuda_allocation *self);
/* The error of freeing at `address` what was found there (`found` may be NULL), or 0. In memory.c. */
int tti_cuda_memory_check_free(const void *address, const struct tti_cuda_allocation *found);

/* -- Not locked --------------------------------------------------------------------------- */

/* Memory of a device's heap, in the table; `self` has but span.nbytes, origin, device, pool. In case
 * of ENOMEM what pools keep is given back, once. */
int tti_cuda_allocation_take(const struct tti_cuda_allocation *self,
			     struct tti_cuda_allocation **out);
/* The end of one that is out of the table: its pages and its block become free. */
void tti_cuda_allocation_free(struct tti_cuda_allocation *self);

/* "1000 bytes at 0x7f... of device 0", for messages. Returns out. */
char *tti_cuda_allocation_name(const struct tti_cuda_allocation *self, char out[128]);

#endif

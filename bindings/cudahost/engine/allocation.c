/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/allocation.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/arena.h"
#include "engine/device.h"
#include "engine/held.h"
#include "engine/piece.h"
#include "engine/reclaim.h"

static struct {
	pthread_rwlock_t lock;
	void *table; /* of allocations */
	uint64_t last_id;
	_Atomic bool is_child;
} state = { .lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP };

void tti_cuda_lock_read(void)
{
	pthread_rwlock_rdlock(&state.lock);
}

void tti_cuda_lock_write(void)
{
	pthread_rwlock_wrlock(&state.lock);
}

void tti_cuda_unlock(void)
{
	pthread_rwlock_unlock(&state.lock);
}

/* Only what may be called between fork() and exec(). The files would keep the memory of a parent
 * that has ended. */
static void in_child(void)
{
	atomic_store(&state.is_child, true);
	tti_cuda_arena_abandon();
	tti_cuda_piece_abandon();
	tti_cuda_unlock();
}

static void watch_forks(void)
{
	(void)pthread_atfork(tti_cuda_lock_write, tti_cuda_unlock, in_child);
}

bool tti_cuda_memory_is_gone(void)
{
	return atomic_load(&state.is_child);
}

int tti_cuda_memory_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const int error = tti_cuda_begin();

	if (!error)
		(void)pthread_once(&once, watch_forks);
	return error;
}

struct tti_cuda_allocation *tti_cuda_allocation_find(const void *address, size_t nbytes)
{
	return tti_cuda_span_find(&state.table, address, nbytes);
}

static enum tti_cuda_held_kind kind_of(const struct tti_cuda_allocation *self)
{
	switch (self->origin) {
	case TTI_CUDA_FROM_ALLOC:
	case TTI_CUDA_FROM_POOL:
	case TTI_CUDA_FROM_GRAPH:
		return TTI_CUDA_HELD_allocations;
	case TTI_CUDA_FROM_HOST:
		return TTI_CUDA_HELD_host;
	case TTI_CUDA_FROM_REGISTER:
		return TTI_CUDA_HELD_registered;
	case TTI_CUDA_FROM_HANDLE:
		return TTI_CUDA_HELD_opened;
	case TTI_CUDA_FROM_MAP:
		break;
	}
	return TTI_CUDA_HELD_maps;
}

int tti_cuda_allocation_add(struct tti_cuda_allocation *self)
{
	struct tti_cuda_allocation *old;

	while ((old = tti_cuda_allocation_find(self->span.base, self->span.nbytes)) &&
	       old->origin == TTI_CUDA_FROM_REGISTER) {
		tti_cuda_allocation_remove(old);
		free(old);
	}
	if (!tti_cuda_span_add(&state.table, &self->span))
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	self->id = ++state.last_id;
	tti_cuda_held_add(kind_of(self), 1);
	return 0;
}

void tti_cuda_allocation_remove(struct tti_cuda_allocation *self)
{
	tti_cuda_span_remove(&state.table, &self->span);
	tti_cuda_held_add(kind_of(self), -1);
}

void tti_cuda_allocation_renew(struct tti_cuda_allocation *self)
{
	self->id = ++state.last_id;
}

/* Locked. */
static int take(struct tti_cuda_allocation *self)
{
	int error = tti_cuda_arena_take(self->device, self->span.nbytes, &self->block);

	if (error)
		return error;
	self->span.base = tti_cuda_arena_address(self->device, self->block);
	error = tti_cuda_allocation_add(self);
	if (error)
		tti_cuda_arena_give(self->device, self->block);
	return error;
}

int tti_cuda_allocation_take(const struct tti_cuda_allocation *wanted,
			     struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *const self = malloc(sizeof(*self));
	int error;

	if (!self)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	*self = *wanted;
	self->type = TTI_CUDA_DEVICE;
	tti_cuda_lock_write();
	error = take(self);
	tti_cuda_unlock();
	if (error == TTI_CUDA_ENOMEM && tti_cuda_pool_reclaim(self->device)) {
		tti_cuda_lock_write();
		error = take(self);
		tti_cuda_unlock();
	}
	if (error)
		free(self);
	else
		*out = self;
	return error;
}

void tti_cuda_allocation_free(struct tti_cuda_allocation *self)
{
	tti_cuda_arena_empty(self->device, self->block);
	tti_cuda_lock_write();
	tti_cuda_arena_give(self->device, self->block);
	tti_cuda_unlock();
	free(self);
}

char *tti_cuda_allocation_name(const struct tti_cuda_allocation *self, char out[128])
{
	static const char *const of[] = {
		[TTI_CUDA_FROM_ALLOC] = "memory",
		[TTI_CUDA_FROM_POOL] = "memory of a pool",
		[TTI_CUDA_FROM_GRAPH] = "memory of a graph",
		[TTI_CUDA_FROM_HOST] = "host memory",
		[TTI_CUDA_FROM_REGISTER] = "registered host memory",
		[TTI_CUDA_FROM_HANDLE] = "memory of another process",
		[TTI_CUDA_FROM_MAP] = "mapped memory",
	};

	(void)snprintf(out, 128, "the %zu bytes of %s at %p (device %d)", self->span.nbytes,
		       self->type == TTI_CUDA_MANAGED ? "managed memory" : of[self->origin],
		       (void *)self->span.base, self->device);
	return out;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/allocation.h"
#include "engine/arena.h"
#include "engine/internal.h"
#include "engine/reclaim.h"

/* cudaHostAllocPortable, Mapped, WriteCombined; cudaMemAttachGlobal, Host, Single. */
#define HOST_FLAGS     7u
/* cudaHostRegisterPortable, Mapped, ReadOnly; not that of memory of other hardware. */
#define REGISTER_FLAGS 11u
/* What host memory says of itself: it is mapped in any case, and not that it is for reading alone. */
#define MAPPED         2u
#define TOLD_FLAGS     7u

/* -- Memory of a device ------------------------------------------------------------------- */

int tti_cuda_memory_alloc(size_t nbytes, void **out)
{
	const struct tti_cuda_allocation wanted = {
		.span = { .nbytes = nbytes },
		.origin = TTI_CUDA_FROM_ALLOC,
		.device = tti_cuda_device_current(),
	};
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(wanted.device);
	if (error)
		return error;
	*out = NULL;
	if (nbytes == 0)
		return 0;
	error = tti_cuda_allocation_take(&wanted, &self);
	if (!error)
		*out = self->span.base;
	return error;
}

static int fail_address(const char *what, const void *address,
			const struct tti_cuda_allocation *found, const char *remedy)
{
	char name[128];

	if (!found)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s: nothing is allocated at %p, or not any more", what,
				     address);
	if (found->span.base != address)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: %p lies inside %s and does not begin it",
				     what, address, tti_cuda_allocation_name(found, name));
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: %p is %s, %s", what, address,
			     tti_cuda_allocation_name(found, name), remedy);
}

int tti_cuda_memory_check_free(const void *address, const struct tti_cuda_allocation *found)
{
	static const char *const instead[] = {
		[TTI_CUDA_FROM_ALLOC] = NULL,
		[TTI_CUDA_FROM_POOL] = NULL,
		[TTI_CUDA_FROM_GRAPH] = NULL,
		[TTI_CUDA_FROM_HOST] = "which cudaFreeHost() frees",
		[TTI_CUDA_FROM_REGISTER] = "which the program frees, behind cudaHostUnregister()",
		[TTI_CUDA_FROM_HANDLE] = "which cudaIpcCloseMemHandle() closes",
		[TTI_CUDA_FROM_MAP] = "which cuMemUnmap() unmaps",
	};
	const bool is_managed = found && found->type == TTI_CUDA_MANAGED;

	if (!found || found->span.base != address || (instead[found->origin] && !is_managed))
		return fail_address("free", address, found, found ? instead[found->origin] : NULL);
	if (found->is_freed && found->origin != TTI_CUDA_FROM_GRAPH)
		return fail_address("free", address, found, "which is freed in a stream already");
	return 0;
}

/* What is done with it, for memory_free(): takes out of the table what is to end. */
static int free_locked(void *address, struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address, 1);
	const int error = tti_cuda_memory_check_free(address, self);

	*out = NULL;
	if (error)
		return error;
	if (self->origin == TTI_CUDA_FROM_GRAPH && self->is_freed)
		return fail_address("free", address, self,
				    "which is freed already, and no launch allocated it again");
	if (self->origin == TTI_CUDA_FROM_GRAPH) { /* the graph has it still */
		self->is_freed = true;
		return 0;
	}
	if (self->is_exported)
		tti_cuda_arena_publish(self->device, self->block, 0);
	tti_cuda_allocation_remove(self);
	*out = self;
	return 0;
}

int tti_cuda_memory_free(void *address)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error || !address)
		return error;
	tti_cuda_lock_write();
	error = free_locked(address, &self);
	tti_cuda_unlock();
	if (error || !self)
		return error;
	if (self->origin == TTI_CUDA_FROM_HOST) {
		munmap(self->span.base, tti_cuda_file_round(self->span.nbytes));
		free(self);
	} else if (self->origin == TTI_CUDA_FROM_POOL) {
		tti_cuda_pool_keep(self);
	} else {
		tti_cuda_allocation_free(self);
	}
	return 0;
}

void tti_cuda_memory_info(size_t *out_free, size_t *out_total)
{
	*out_free = *out_total = 0;
	if (tti_cuda_device_check(tti_cuda_device_current()))
		return;
	tti_cuda_lock_read();
	tti_cuda_arena_info(tti_cuda_device_current(), out_free, out_total);
	tti_cuda_unlock();
}

/* -- Host memory -------------------------------------------------------------------------- */

static int check_host(unsigned flags, enum tti_cuda_memory_type type)
{
	if (type != TTI_CUDA_HOST && type != TTI_CUDA_MANAGED)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%d is no type of host memory", (int)type);
	if (flags & ~HOST_FLAGS)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "flags 0x%x of host memory: only the bits 0x%x have a meaning",
				     flags, HOST_FLAGS);
	return 0;
}

static int map_host(struct tti_cuda_allocation *self)
{
	const size_t rounded = tti_cuda_file_round(self->span.nbytes);
	void *at = MAP_FAILED;
	int error;

	errno = ENOMEM;
	if (rounded < PTRDIFF_MAX)
		at = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	if (at == MAP_FAILED)
		return tti_cuda_fail(TTI_CUDA_ENOMEM,
				     "%zu bytes of host memory cannot be had: %s. Is the limit on "
				     "addresses (ulimit -v) too low?",
				     self->span.nbytes, strerror(errno));
	self->span.base = at;
	tti_cuda_lock_write();
	error = tti_cuda_allocation_add(self);
	tti_cuda_unlock();
	if (error)
		munmap(at, rounded);
	return error;
}

int tti_cuda_memory_alloc_host(size_t nbytes, unsigned flags, enum tti_cuda_memory_type type,
			       void **out)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (!error)
		error = check_host(flags, type);
	if (error)
		return error;
	*out = NULL;
	if (nbytes == 0)
		return 0;
	self = calloc(1, sizeof(*self));
	if (!self)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	self->span.nbytes = nbytes;
	self->origin = TTI_CUDA_FROM_HOST;
	self->type = type;
	self->flags = flags | (type == TTI_CUDA_HOST ? MAPPED : 0);
	self->device = tti_cuda_device_current();
	error = map_host(self);
	if (error)
		free(self);
	else
		*out = self->span.base;
	return error;
}

int tti_cuda_memory_free_host(void *address)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error || !address)
		return error;
	tti_cuda_lock_write();
	self = tti_cuda_allocation_find(address, 1);
	if (!self || self->span.base != address || self->origin != TTI_CUDA_FROM_HOST ||
	    self->type != TTI_CUDA_HOST)
		error = fail_address("free of host memory", address, self,
				     "which cudaFreeHost() does not free");
	else
		tti_cuda_allocation_remove(self);
	tti_cuda_unlock();
	if (error)
		return error;
	munmap(address, tti_cuda_file_round(self->span.nbytes));
	free(self);
	return 0;
}

/* -- Host memory of the program ----------------------------------------------------------- */

static int check_register(const char *address, size_t nbytes, unsigned flags)
{
	const size_t page = tti_cuda_file_page();
	const uintptr_t from = (uintptr_t)address / page * page;
	const uintptr_t to = (uintptr_t)address + nbytes;

	if (flags & ~REGISTER_FLAGS)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "register with flags 0x%x: only the bits 0x%x have a meaning, "
				     "and memory of other hardware (cudaHostRegisterIoMemory) "
				     "cannot be registered here",
				     flags, REGISTER_FLAGS);
	if (!address || nbytes == 0 || nbytes > UINTPTR_MAX - (uintptr_t)address)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "register: %zu bytes at %p are no memory",
				     nbytes, (const void *)address);
	/* Does nothing but to say whether all of it is mapped. */
	if (msync((void *)from, to - from, MS_ASYNC) < 0 && errno == ENOMEM)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "register: not all of the %zu bytes at %p are memory of this "
				     "process",
				     nbytes, (const void *)address);
	return 0;
}

/* Locked. */
static int add_registered(struct tti_cuda_allocation *self)
{
	const struct tti_cuda_allocation *const old =
		tti_cuda_allocation_find(self->span.base, self->span.nbytes);
	char name[128];

	if (!old)
		return tti_cuda_allocation_add(self);
	return tti_cuda_fail(old->origin == TTI_CUDA_FROM_REGISTER && old->type == TTI_CUDA_HOST
				     ? TTI_CUDA_EREGISTERED
				     : TTI_CUDA_EINVAL,
			     "register: the %zu bytes at %p overlap %s, which CUDA knows already",
			     self->span.nbytes, (void *)self->span.base,
			     tti_cuda_allocation_name(old, name));
}

static int keep(void *address, size_t nbytes, unsigned flags, enum tti_cuda_memory_type type)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (!error)
		error = check_register(address, nbytes, flags);
	if (error)
		return error;
	self = calloc(1, sizeof(*self));
	if (!self)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	self->span = (struct tti_cuda_span){ address, nbytes };
	self->origin = TTI_CUDA_FROM_REGISTER;
	self->type = type;
	self->flags = (flags | MAPPED) & TOLD_FLAGS;
	self->device = tti_cuda_device_current();
	tti_cuda_lock_write();
	error = add_registered(self);
	tti_cuda_unlock();
	if (error)
		free(self);
	return error;
}

int tti_cuda_memory_register(void *address, size_t nbytes, unsigned flags)
{
	return keep(address, nbytes, flags, TTI_CUDA_HOST);
}

int tti_cuda_memory_adopt(void *address, size_t nbytes)
{
	return keep(address, nbytes, 0, TTI_CUDA_DEVICE);
}

int tti_cuda_memory_unregister(void *address)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	self = tti_cuda_allocation_find(address, 1);
	if (!self || self->span.base != address || self->origin != TTI_CUDA_FROM_REGISTER) {
		error = fail_address("unregister", address, self, "which was not registered");
		if (!self && address)
			error = TTI_CUDA_EUNREGISTERED;
	} else {
		tti_cuda_allocation_remove(self);
	}
	tti_cuda_unlock();
	if (!error)
		free(self);
	return error;
}

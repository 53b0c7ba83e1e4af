/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device that other processes of this user map, by what 64 bytes say of it.
 *
 * Beside the file of the device (ipc_handle.h) the handle has the id of the allocation, and the file says which
 * allocations are exported: the id there is 0 once the memory is freed. It is looked at when the memory is
 * mapped. */
#include "engine/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/allocation.h"
#include "engine/arena.h"
#include "engine/internal.h"
#include "engine/ipc_handle.h"
#include "engine/reach.h"

/* One that is open, by how often. All are in a list. */
struct tti_cuda_opened {
	struct tti_cuda_opened *next;
	struct tti_cuda_ipc_handle handle;
	struct tti_cuda_view view;
	uint64_t count;
	uint64_t devices; /* that opened it, a bit for each: they have access */
};

static struct tti_cuda_opened *opened; /* locked */

/* -- Out ---------------------------------------------------------------------------------- */

/* Locked. */
static int export(const void *address, struct tti_cuda_ipc_handle *out)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address, 1);
	const struct tti_cuda_file *file;
	char name[128];
	int error;

	if (!self)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "handle: nothing is allocated at %p, or not any more",
				     address);
	if (self->origin != TTI_CUDA_FROM_ALLOC || self->is_freed)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"handle: %s is not what cudaMalloc() gave, which alone has handles%s",
			tti_cuda_allocation_name(self, name),
			self->is_freed ? "; it is being freed" : "");
	file = tti_cuda_arena_file(self->device);
	error = tti_cuda_ipc_handle_make(TTI_CUDA_FILE_DEVICE, file, out);
	if (error)
		return error;
	self->is_exported = true;
	tti_cuda_arena_publish(self->device, self->block, self->id);
	out->offset = self->block->offset;
	out->nbytes = self->span.nbytes;
	out->id = self->id;
	return 0;
}

int tti_cuda_memory_get_handle(const void *address, uint8_t out[64])
{
	struct tti_cuda_ipc_handle handle;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = export(address, &handle);
	tti_cuda_unlock();
	if (error)
		return error;
	tti_cuda_ipc_handle_write(&handle, out);
	return 0;
}

/* -- In ----------------------------------------------------------------------------------- */

static int check_place(const struct tti_cuda_ipc_handle *handle, const struct tti_cuda_file *file)
{
	if (handle->nbytes > 0 && handle->offset < file->nbytes &&
	    handle->offset % tti_cuda_file_page() == 0 &&
	    handle->nbytes <= file->nbytes - handle->offset)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EHANDLE,
			     "handle: %llu bytes at %llu do not lie in the file of device %d",
			     (unsigned long long)handle->nbytes, (unsigned long long)handle->offset,
			     handle->device);
}

/* After the memory was mapped: if it is freed now, it was allocated then. */
static int check_exported(const struct tti_cuda_ipc_handle *handle,
			  const struct tti_cuda_file *file)
{
	const off_t at = (off_t)tti_cuda_arena_published_at(file, handle->offset);
	uint64_t id = 0;

	if (pread(file->fd, &id, sizeof(id), at) == (ssize_t)sizeof(id) && id == handle->id)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EHANDLE, "handle: process %d has freed the %llu bytes",
			     handle->pid, (unsigned long long)handle->nbytes);
}

/* The memory of the handle; other memory where devices are lied to (peers.h). */
static int map_file(const struct tti_cuda_file *file, const struct tti_cuda_ipc_handle *handle,
		    size_t nbytes, struct tti_cuda_view *out)
{
	struct tti_cuda_file other;
	int error;

	if (!tti_cuda_peer_lies(tti_cuda_device_current(), handle->device))
		return tti_cuda_view_map(file, handle->offset, nbytes, tti_cuda_file_page(), out);
	error = tti_cuda_file_create(TTI_CUDA_FILE_PIECE, handle->device, nbytes, 0, &other);
	if (error)
		return error;
	error = tti_cuda_view_map(&other, 0, nbytes, tti_cuda_file_page(), out);
	tti_cuda_file_close(&other); /* its mapping stays */
	return error;
}

/* `out` NULL: only see whether the memory is there still. */
static int map(const struct tti_cuda_ipc_handle *handle, struct tti_cuda_view *out)
{
	const size_t nbytes = tti_cuda_file_round(handle->nbytes);
	struct tti_cuda_file file;
	int error = tti_cuda_ipc_handle_open(TTI_CUDA_FILE_DEVICE, handle, &file);

	if (error)
		return error;
	error = check_place(handle, &file);
	if (!error && out)
		error = map_file(&file, handle, nbytes, out);
	if (!error) {
		error = check_exported(handle, &file);
		if (error && out)
			tti_cuda_view_release(out);
	}
	tti_cuda_file_close(&file);
	return error;
}

/* Locked. */
static struct tti_cuda_opened *find_opened(const struct tti_cuda_ipc_handle *handle)
{
	struct tti_cuda_opened *each = opened;

	while (each && memcmp(&each->handle, handle, sizeof(*handle)) != 0)
		each = each->next;
	return each;
}

/* Locked. */
static int add_opened(struct tti_cuda_opened *self, struct tti_cuda_allocation *allocation)
{
	const int device = self->handle.device;
	int error;

	*allocation = (struct tti_cuda_allocation){
		.span = { self->view.address, self->handle.nbytes },
		.origin = TTI_CUDA_FROM_HANDLE,
		.type = TTI_CUDA_DEVICE,
		.device = device < tti_cuda_device_count() ? device : tti_cuda_device_current(),
		.view = &self->view,
		.opened = self,
	};
	error = tti_cuda_reach_add(&(struct tti_cuda_reach_range){
		.address = self->view.address,
		.nbytes = self->view.nbytes,
		.reach = self->view.reach,
		.owner = allocation->device,
		.devices = self->devices,
	});
	if (error)
		return error;
	error = tti_cuda_allocation_add(allocation);
	if (error) {
		tti_cuda_reach_remove(self->view.address);
		return error;
	}
	self->count = 1;
	self->next = opened;
	opened = self;
	return 0;
}

/* Two threads may open one at the same time: the lock is held throughout. */
static int open_locked(const struct tti_cuda_ipc_handle *handle, struct tti_cuda_opened *fresh,
		       struct tti_cuda_allocation *allocation, struct tti_cuda_opened **out)
{
	int error;

	*out = find_opened(handle);
	if (*out) {
		error = map(handle, NULL);
		if (error) {
			*out = NULL;
			return error;
		}
		(*out)->count++;
		(*out)->devices |= (uint64_t)1 << tti_cuda_device_current();
		tti_cuda_reach_allow((*out)->view.address, (*out)->devices);
		return 0;
	}
	fresh->handle = *handle;
	fresh->devices = (uint64_t)1 << tti_cuda_device_current();
	error = map(handle, &fresh->view);
	if (error)
		return error;
	error = add_opened(fresh, allocation);
	if (error)
		tti_cuda_view_release(&fresh->view);
	else
		*out = fresh;
	return error;
}

int tti_cuda_memory_open_handle(const uint8_t bytes[64], void **out)
{
	struct tti_cuda_opened *const fresh = calloc(1, sizeof(*fresh));
	struct tti_cuda_allocation *const allocation = calloc(1, sizeof(*allocation));
	struct tti_cuda_opened *self = NULL;
	struct tti_cuda_ipc_handle handle;
	int error = tti_cuda_memory_begin();

	if (!error && (!fresh || !allocation))
		error = tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (!error)
		error = tti_cuda_ipc_handle_read(TTI_CUDA_FILE_DEVICE, bytes, &handle);
	if (!error)
		error = tti_cuda_peer_check("open a handle of memory", tti_cuda_device_current(),
					    handle.device);
	if (!error) {
		tti_cuda_lock_write();
		error = open_locked(&handle, fresh, allocation, &self);
		tti_cuda_unlock();
	}
	if (!self || self != fresh) {
		free(fresh);
		free(allocation);
	}
	if (self)
		*out = self->view.address;
	return error;
}

/* Locked. What ends by this, or NULL. */
static int close_locked(const void *address, struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address, 1);
	struct tti_cuda_opened **link = &opened;

	*out = NULL;
	if (!self || self->origin != TTI_CUDA_FROM_HANDLE || self->span.base != address)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "close: no handle was opened at %p, or it is closed already",
				     address);
	if (--self->opened->count)
		return 0;
	while (*link != self->opened)
		link = &(*link)->next;
	*link = self->opened->next;
	tti_cuda_allocation_remove(self);
	*out = self;
	return 0;
}

int tti_cuda_memory_close_handle(void *address)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = close_locked(address, &self);
	tti_cuda_unlock();
	if (error || !self)
		return error;
	tti_cuda_reach_remove(self->opened->view.address);
	tti_cuda_view_release(&self->opened->view);
	free(self->opened);
	free(self);
	return 0;
}

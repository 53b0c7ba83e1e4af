/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a device that other processes of this user map, by what 64 bytes say of it.
 *
 * The file of the device is opened as /proc/PID/fd/FD. Process, file and allocation may all have
 * ended and their numbers been given again. So the handle says when the process started, which inode
 * the file has, and the id of the allocation, and the file says which allocations are exported: the
 * id there is 0 once the memory is freed. It is looked at when the memory is mapped. */
#include "engine/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/allocation.h"
#include "engine/arena.h"
#include "engine/internal.h"
#include "engine/process.h"

#define MAGIC 0x31495454u

struct handle {
	uint32_t magic;
	uint32_t check; /* of what follows */
	int32_t pid;
	int32_t fd;
	uint64_t start;
	uint64_t inode;
	uint64_t offset;
	uint64_t nbytes;
	uint64_t id;
	int32_t device;
	uint32_t space;
};

_Static_assert(sizeof(struct handle) == 64, "as large as cudaIpcMemHandle_t");

/* One that is open, by how often. All are in a list. */
struct tti_cuda_opened {
	struct tti_cuda_opened *next;
	struct handle handle;
	struct tti_cuda_view view;
	uint64_t count;
};

static struct tti_cuda_opened *opened; /* locked */

static uint32_t check_of(const struct handle *handle)
{
	const size_t from = offsetof(struct handle, pid);

	return tti_cuda_process_hash(TTI_CUDA_HASH_BEGIN, (const char *)handle + from,
				     sizeof(*handle) - from);
}

/* -- Out ---------------------------------------------------------------------------------- */

/* Locked. */
static int export(const void *address, struct handle *out)
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
	error = tti_cuda_file_check(file);
	if (error)
		return error;
	self->is_exported = true;
	tti_cuda_arena_publish(self->device, self->block, self->id);
	out->fd = file->fd;
	out->inode = file->inode;
	out->offset = self->block->offset;
	out->nbytes = self->span.nbytes;
	out->id = self->id;
	out->device = self->device;
	return 0;
}

int tti_cuda_memory_get_handle(const void *address, uint8_t out[64])
{
	struct handle handle = { .magic = MAGIC, .pid = (int32_t)getpid() };
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	handle.start = tti_cuda_process_start(handle.pid);
	handle.space = tti_cuda_process_space();
	if (!handle.start || !handle.space)
		return tti_cuda_fail(
			TTI_CUDA_ESYS,
			"handle: /proc, which other processes need to find this memory, "
			"cannot be read: %s",
			strerror(errno));
	tti_cuda_lock_write();
	error = export(address, &handle);
	tti_cuda_unlock();
	if (error)
		return error;
	handle.check = check_of(&handle);
	memcpy(out, &handle, sizeof(handle));
	return 0;
}

/* -- In ----------------------------------------------------------------------------------- */

static int check_handle(const struct handle *handle)
{
	const uint32_t space = tti_cuda_process_space();

	if (handle->magic != MAGIC || handle->check != check_of(handle))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "handle: these 64 bytes are no handle of memory, or were "
				     "changed on their way");
	if (!space)
		return tti_cuda_fail(TTI_CUDA_ESYS,
				     "handle: /proc, by which memory of other processes is found, "
				     "cannot be read: %s",
				     strerror(errno));
	if (handle->space != space)
		return tti_cuda_fail(
			TTI_CUDA_EHANDLE,
			"handle: process %d, which made it, runs on another host or in another "
			"container: processes that share memory need one PID namespace (docker run "
			"--pid)",
			handle->pid);
	if (handle->pid == (int32_t)getpid())
		return tti_cuda_fail(TTI_CUDA_ECONTEXT,
				     "handle: this process made it, and has the memory already");
	return 0;
}

static int check_process(const struct handle *handle)
{
	const uint64_t start = tti_cuda_process_start(handle->pid);

	if (start == handle->start)
		return 0;
	if (start)
		return tti_cuda_fail(
			TTI_CUDA_EHANDLE,
			"handle: the process that made it has ended; another one has its "
			"number, %d, now",
			handle->pid);
	return tti_cuda_fail(TTI_CUDA_EHANDLE,
			     "handle: process %d, which made it, has ended, or /proc hides it (%s)",
			     handle->pid, strerror(errno));
}

static int fail_open(const struct handle *handle, const char *path)
{
	if (errno == EACCES || errno == EPERM)
		return tti_cuda_fail(
			TTI_CUDA_EPOOL,
			"handle: %s cannot be opened: %s. Process %d belongs to another user, or "
			"must "
			"not be looked into (PR_SET_DUMPABLE, a security module): run both as one "
			"user, or with CAP_SYS_PTRACE",
			path, strerror(errno), handle->pid);
	if (errno == ENOENT || errno == ESRCH)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "handle: process %d, which made it, has ended or closed the "
				     "memory (%s)",
				     handle->pid, path);
	return tti_cuda_fail(TTI_CUDA_ESYS, "handle: %s cannot be opened: %s%s", path,
			     strerror(errno),
			     errno == EMFILE ? ". Raise the limit on open files (ulimit -n)" : "");
}

/* Only what is named like ours is opened: opening a device or a FIFO may do something. */
static int open_file(const struct handle *handle, struct tti_cuda_file *out)
{
	static const char wanted[] = "/memfd:" TTI_CUDA_FILE_NAME;
	char path[64];
	char target[128] = "";
	int error;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		return fail_open(handle, path);
	if (strncmp(target, wanted, sizeof(wanted) - 1) != 0)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "handle: %s is %s and not the memory any more: the process "
				     "closed what it had not opened",
				     path, target);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail_open(handle, path);
	error = 0;
	if (tti_cuda_file_read(fd, TTI_CUDA_FILE_DEVICE, out) || out->inode != handle->inode ||
	    out->device != handle->device)
		error = tti_cuda_fail(TTI_CUDA_EHANDLE,
				      "handle: %s is not the memory of device %d any more", path,
				      handle->device);
	if (!error && (handle->nbytes == 0 || handle->offset >= out->nbytes ||
		       handle->offset % tti_cuda_file_page() != 0 ||
		       handle->nbytes > out->nbytes - handle->offset))
		error = tti_cuda_fail(
			TTI_CUDA_EHANDLE,
			"handle: %llu bytes at %llu do not lie in the file of device %d",
			(unsigned long long)handle->nbytes, (unsigned long long)handle->offset,
			handle->device);
	if (error)
		close(fd);
	return error;
}

/* After the memory was mapped: if it is freed now, it was allocated then. */
static int check_exported(const struct handle *handle, const struct tti_cuda_file *file)
{
	const off_t at = (off_t)tti_cuda_arena_published_at(file, handle->offset);
	uint64_t id = 0;

	if (pread(file->fd, &id, sizeof(id), at) == (ssize_t)sizeof(id) && id == handle->id)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EHANDLE, "handle: process %d has freed the %llu bytes",
			     handle->pid, (unsigned long long)handle->nbytes);
}

/* `out` NULL: only see whether the memory is there still. */
static int map(const struct handle *handle, struct tti_cuda_view *out)
{
	const size_t nbytes = tti_cuda_file_round(handle->nbytes);
	struct tti_cuda_file file;
	int error = check_process(handle);

	if (!error)
		error = open_file(handle, &file);
	if (error)
		return error;
	if (out)
		error = tti_cuda_view_map(&file, handle->offset, nbytes, tti_cuda_file_page(), out);
	if (!error) {
		error = check_exported(handle, &file);
		if (error && out)
			tti_cuda_view_release(out);
	}
	tti_cuda_file_close(&file);
	return error;
}

/* Locked. */
static struct tti_cuda_opened *find_opened(const struct handle *handle)
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
	error = tti_cuda_allocation_add(allocation);
	if (error)
		return error;
	self->count = 1;
	self->next = opened;
	opened = self;
	return 0;
}

/* Two threads may open one at the same time: the lock is held throughout. */
static int open_locked(const struct handle *handle, struct tti_cuda_opened *fresh,
		       struct tti_cuda_allocation *allocation, struct tti_cuda_opened **out)
{
	int error;

	*out = find_opened(handle);
	if (*out) {
		error = map(handle, NULL);
		if (error)
			*out = NULL;
		else
			(*out)->count++;
		return error;
	}
	fresh->handle = *handle;
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
	struct handle handle;
	int error = tti_cuda_memory_begin();

	memcpy(&handle, bytes, sizeof(handle));
	if (!error && (!fresh || !allocation))
		error = tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (!error)
		error = check_handle(&handle);
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
	tti_cuda_view_release(&self->opened->view);
	free(self->opened);
	free(self);
	return 0;
}

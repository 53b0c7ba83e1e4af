/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ipc_handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/device.h"
#include "engine/process.h"

/* What handles are of, in texts, and what they begin with. */
static const struct {
	const char *noun;
	uint32_t magic;
} kinds[] = {
	[TTI_CUDA_FILE_DEVICE] = { "memory", 0x31495454u },
	[TTI_CUDA_FILE_EVENT] = { "event", 0x31455454u },
};

static uint32_t check_of(const struct tti_cuda_ipc_handle *handle)
{
	const size_t from = offsetof(struct tti_cuda_ipc_handle, pid);

	return tti_cuda_process_hash(TTI_CUDA_HASH_BEGIN, (const char *)handle + from,
				     sizeof(*handle) - from);
}

/* -- Out ---------------------------------------------------------------------------------- */

int tti_cuda_ipc_handle_make(enum tti_cuda_file_kind kind, const struct tti_cuda_file *file,
			     struct tti_cuda_ipc_handle *out)
{
	const int error = tti_cuda_file_check(file);

	if (error)
		return error;
	*out = (struct tti_cuda_ipc_handle){ .magic = kinds[kind].magic,
					     .pid = (int32_t)getpid(),
					     .fd = file->fd,
					     .inode = file->inode,
					     .device = file->device };
	out->start = tti_cuda_process_start(out->pid);
	out->space = tti_cuda_process_space();
	if (out->start && out->space)
		return 0;
	return tti_cuda_fail(TTI_CUDA_ESYS,
			     "handle: /proc, which other processes need to find this %s, "
			     "cannot be read: %s",
			     kinds[kind].noun, strerror(errno));
}

void tti_cuda_ipc_handle_write(struct tti_cuda_ipc_handle *handle, uint8_t out[64])
{
	handle->check = check_of(handle);
	memcpy(out, handle, sizeof(*handle));
}

/* -- In ----------------------------------------------------------------------------------- */

int tti_cuda_ipc_handle_read(enum tti_cuda_file_kind kind, const uint8_t bytes[64],
			     struct tti_cuda_ipc_handle *out)
{
	const char *const noun = kinds[kind].noun;
	const uint32_t space = tti_cuda_process_space();

	memcpy(out, bytes, sizeof(*out));
	if (out->magic != kinds[kind].magic || out->check != check_of(out))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "handle: these 64 bytes are no handle of %s, or were "
				     "changed on their way",
				     noun);
	if (!space)
		return tti_cuda_fail(TTI_CUDA_ESYS,
				     "handle: /proc, by which %s of other processes is found, "
				     "cannot be read: %s",
				     noun, strerror(errno));
	if (out->space != space)
		return tti_cuda_fail(
			TTI_CUDA_EHANDLE,
			"handle: process %d, which made it, runs on another host or in another "
			"container: processes that share need one PID namespace (docker run --pid)",
			out->pid);
	if (out->pid == (int32_t)getpid())
		return tti_cuda_fail(TTI_CUDA_ECONTEXT,
				     "handle: this process made it, and has the %s already", noun);
	return 0;
}

static int check_process(const struct tti_cuda_ipc_handle *handle)
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

static int fail_open(const struct tti_cuda_ipc_handle *handle, const char *noun, const char *path)
{
	if (errno == EACCES || errno == EPERM)
		return tti_cuda_fail(
			TTI_CUDA_EPOOL,
			"handle: %s cannot be opened: %s. Process %d belongs to another user, or "
			"must not be looked into (PR_SET_DUMPABLE, a security module): run both as "
			"one user, or with CAP_SYS_PTRACE",
			path, strerror(errno), handle->pid);
	if (errno == ENOENT || errno == ESRCH)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "handle: process %d, which made it, has ended or closed the "
				     "%s (%s)",
				     handle->pid, noun, path);
	return tti_cuda_fail(TTI_CUDA_ESYS, "handle: %s cannot be opened: %s%s", path,
			     strerror(errno),
			     errno == EMFILE ? ". Raise the limit on open files (ulimit -n)" : "");
}

/* Only what is handle like ours is opened: opening a device or a FIFO may do something. */
int tti_cuda_ipc_handle_open(enum tti_cuda_file_kind kind, const struct tti_cuda_ipc_handle *handle,
			     struct tti_cuda_file *out)
{
	static const char wanted[] = "/memfd:" TTI_CUDA_FILE_NAME;
	const char *const noun = kinds[kind].noun;
	char path[64];
	char target[128] = "";
	int error = check_process(handle);
	int fd;

	if (error)
		return error;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		return fail_open(handle, noun, path);
	if (strncmp(target, wanted, sizeof(wanted) - 1) != 0)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "handle: %s is %s and not the %s any more: the process "
				     "closed what it had not opened",
				     path, target, noun);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fail_open(handle, noun, path);
	if (tti_cuda_file_read(fd, kind, out))
		close(fd);
	else if (out->inode == handle->inode && out->device == handle->device)
		return 0;
	else
		tti_cuda_file_close(out);
	return tti_cuda_fail(TTI_CUDA_EHANDLE, "handle: %s is not the %s of device %d any more",
			     path, noun, handle->device);
}

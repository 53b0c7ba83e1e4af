/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of devices (file.h) that other processes of this user find by what 64 bytes say of them.
 *
 * The file is opened as /proc/PID/fd/FD. Process and file may both have ended and their numbers been given
 * again, so the bytes say when the process started and which inode the file has.
 *
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_IPC_HANDLE_H
#define TUTTI_CUDAHOST_ENGINE_IPC_HANDLE_H

#include "engine/file.h"

/* As large as cudaIpcMemHandle_t and cudaIpcEventHandle_t. */
struct tti_cuda_ipc_handle {
	uint32_t magic; /* of its kind */
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

_Static_assert(sizeof(struct tti_cuda_ipc_handle) == 64, "as large as the handles of CUDA");

/* *out without what the caller adds (offset, nbytes, id), and without its check. EINVAL where the program has
 * closed the file, ESYS where /proc cannot be read. */
int tti_cuda_ipc_handle_make(enum tti_cuda_file_kind kind, const struct tti_cuda_file *file,
			     struct tti_cuda_ipc_handle *out);
/* Nothing of it changes any more. */
void tti_cuda_ipc_handle_write(struct tti_cuda_ipc_handle *handle, uint8_t out[64]);

/* EINVAL: the bytes name no file of this kind; EHANDLE: one of another host or container; ECONTEXT: one of this
 * process. */
int tti_cuda_ipc_handle_read(enum tti_cuda_file_kind kind, const uint8_t bytes[64],
			     struct tti_cuda_ipc_handle *out);
/* The caller closes *out. EHANDLE: the process has ended, or has closed the file; EPOOL: it may not be looked
 * into. */
int tti_cuda_ipc_handle_open(enum tti_cuda_file_kind kind, const struct tti_cuda_ipc_handle *handle,
			     struct tti_cuda_file *out);

#endif

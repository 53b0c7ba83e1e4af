/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_SHARE_H
#define TTI_GPU_CUDA_SHARE_H

/* What is inside of struct tti_gpu_memory and struct tti_gpu_name (cuda_memory.h). */

#include "gpu/cuda_impl.h"
#include "gpu/cuda_memory.h"
#include "gpu/fd_offer.h"

/* What a name is. */
struct tti_gpu_wire {
	uint32_t magic;
	uint8_t share; /* enum tti_gpu_share */
	uint8_t has_fabric;
	int16_t ordinal; /* of the GPU, for the process that exported it */
	uint64_t nbytes, at;
	struct tti_fd_offer offer; /* by IPC only its process is meant */
	union {
		struct tti_cuda_fabric_handle fabric;
		struct tti_cuda_ipc ipc;
	};
};
_Static_assert(sizeof(struct tti_gpu_wire) == sizeof(struct tti_gpu_name),
	       "a name has no more room");

enum tti_gpu_origin {
	TTI_GPU_CREATED, /* of a handle, mapped: also what was imported so */
	TTI_GPU_ALLOCATED,
	TTI_GPU_OPENED,   /* of an older handle */
	TTI_GPU_BORROWED, /* the program's, or of another rank of this process */
};

struct tti_gpu_shared {
	struct tti_gpu_memory base; /* first */
	struct tti_gpu *gpu;
	enum tti_gpu_origin origin;
	tti_cuda_handle handle; /* 0: none */
	bool is_exported;
	int fd; /* -1: not exported so */
	struct tti_gpu_name name;
	/* In one process an import is the memory itself, which stays until all are freed. */
	int users;                   /* who made it, and imports; under the lock of cuda_share.c */
	struct tti_gpu_shared *next; /* in the list of what can be imported so */
	struct tti_gpu_shared *of;   /* an import of this process: what it is; else NULL */
};

/* Empty; NULL: out of memory. */
struct tti_gpu_shared *tti_gpu_shared_make(struct tti_gpu *gpu, enum tti_gpu_origin origin);

/* Map `handle` of base.nbytes for this GPU, at any address. CUDA's error, and of which function. */
int tti_gpu_shared_map(struct tti_gpu_shared *memory, const char **function);

/* That this GPU may read and write. */
struct tti_cuda_allow tti_gpu_shared_access(const struct tti_gpu *gpu);

/* It has its name: others of this process may import it. */
void tti_gpu_shared_publish(struct tti_gpu_shared *memory);
/* What has that name, with one user more; NULL: it was freed. */
struct tti_gpu_shared *tti_gpu_shared_find(const struct tti_gpu_name *name);

/* Nobody can take the file descriptor any more. */
void tti_gpu_shared_drop_fd(struct tti_gpu_shared *memory);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_MEMORY_H
#define TTI_GPU_CUDA_MEMORY_H

/* Memory of a GPU, memory of other ranks' GPUs, pinned memory of the host, and what an address of
 * the program is. All of it also works while a stream is captured.
 *
 * Owner, threads, errors: cuda.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda.h"

/* -- Memory of the process alone -------------------------------------------------- */

/* At least 256-byte aligned, not zeroed, for kernels of this GPU alone. Waits for no kernel, and freeing neither. */
TUTTI_CHECKED tutti_status tti_gpu_alloc(struct tti_gpu *gpu, size_t nbytes, uint64_t *out);
void tti_gpu_free(struct tti_gpu *gpu, uint64_t at); /* 0 is fine */
/* Free what tti_gpu_take() gave later, since that waits for all that the device does, and a kernel of a rank of
 * this process may wait for one whose thread is here. The next allocation of its size gets it; the rest is freed when
 * nobody has the device open any more. Nothing uses the memory now. 0 is fine. */
void tti_gpu_set_aside(struct tti_gpu *gpu, uint64_t at, size_t nbytes);

/* Pinned host memory, zeroed: at *host for the host and at *at for kernels of this and any other
 * device of the process. */
TUTTI_CHECKED tutti_status tti_gpu_pinned_alloc(struct tti_gpu *gpu, size_t nbytes, void **host,
						uint64_t *at);
void tti_gpu_pinned_free(struct tti_gpu *gpu, void *host); /* NULL is fine */
/* As tti_gpu_set_aside(); NULL is fine. */
void tti_gpu_pinned_set_aside(struct tti_gpu *gpu, void *host, size_t nbytes);

/* Pin memory that there is, in whole pages; the pages may not be pinned already. */
TUTTI_CHECKED tutti_status tti_gpu_pin(struct tti_gpu *gpu, void *host, size_t nbytes,
				       uint64_t *at);
void tti_gpu_unpin(struct tti_gpu *gpu, void *host);

/* Copy, and wait until it is done; the order with streams is the caller's business. `host` is any
 * memory. */
TUTTI_CHECKED tutti_status tti_gpu_write(struct tti_gpu *gpu, uint64_t to, const void *host,
					 size_t nbytes);
TUTTI_CHECKED tutti_status tti_gpu_read(struct tti_gpu *gpu, void *host, uint64_t from,
					size_t nbytes);
/* From any memory to any, of all devices that the process has, and of the host. */
TUTTI_CHECKED tutti_status tti_gpu_move(struct tti_gpu *gpu, void *to, const void *from,
					size_t nbytes);
TUTTI_CHECKED tutti_status tti_gpu_zero(struct tti_gpu *gpu, uint64_t at, size_t nbytes);

/* -- Memory that others reach ----------------------------------------------------- */

/* How memory is shared. What the device can is chosen, in this order; TUTTI_CUDA_SHARE names one. */
enum tti_gpu_share {
	TTI_GPU_BY_FD,  /* a file descriptor: pidfd_getfd(), or passed over a socket */
	TTI_GPU_BY_IPC, /* CUDA's older handles */
};

/* What another rank needs to reach memory: it may be sent anywhere, and is of use on this host, or in
 * this NVLink domain. */
struct tti_gpu_name {
	uint8_t bytes[128];
};

struct tti_gpu_memory {
	uint64_t at; /* where kernels of the GPU that made or imported it reach it */
	size_t nbytes;
	enum tti_gpu_share share;
	bool is_local; /* imported, of this process */
	bool is_far;   /* imported, of another host of the NVLink domain */
	bool is_kept; /* to be set for own memory: tti_gpu_memory_free() waits for nothing (tti_gpu_set_aside()) */
};

/* Memory of so many bytes at least, zeroed. */
TUTTI_CHECKED tutti_status tti_gpu_memory_create(struct tti_gpu *gpu, size_t nbytes,
						 struct tti_gpu_memory **out);

/* What the program allocated, so that it can be exported: the whole allocation in which `at` lies; its
 * beginning is (*out)->at. The allocation stays the program's, and outlives this. TUTTI_EUNSUPPORTED:
 * it is of a kind that cannot be shared. */
TUTTI_CHECKED tutti_status tti_gpu_memory_wrap(struct tti_gpu *gpu, uint64_t at,
					       struct tti_gpu_memory **out);

/* Whether other processes may map and unmap it while kernels run. By an older handle that waits for kernels of
 * their GPU, which may wait for the rank that asks; so it is done only if the GPU shares all its memory so. */
bool tti_gpu_memory_is_for_processes(const struct tti_gpu_memory *memory);

/* Its name. While the memory is there its file descriptor is, and a thread of this process serves it
 * to processes of the same user which have the name. */
TUTTI_CHECKED tutti_status tti_gpu_memory_export(struct tti_gpu_memory *memory,
						 struct tti_gpu_name *out);

/* Memory of a name, for kernels of this GPU. Of memory of this process it is the same address, and the
 * memory stays until both have freed it; in another process it has a mapping of its own, but by IPC the
 * one who exported it frees it last. Where the two GPUs do not reach each other it is an error, which
 * the text explains; it is not logged, as there are other ways. */
TUTTI_CHECKED tutti_status tti_gpu_memory_import(struct tti_gpu *gpu,
						 const struct tti_gpu_name *name,
						 struct tti_gpu_memory **out);

/* NULL is fine. No kernel may use it any more. */
void tti_gpu_memory_free(struct tti_gpu_memory *memory);

/* -- Memory of the program ---------------------------------------------------------- */

enum tti_gpu_kind {
	TTI_GPU_PAGEABLE, /* ordinary host memory, which kernels do not reach */
	TTI_GPU_PINNED,   /* host memory that they reach */
	TTI_GPU_DEVICE,
	TTI_GPU_MANAGED,
};

struct tti_gpu_pointer {
	enum tti_gpu_kind kind;
	int ordinal; /* of the device; of pinned memory the one that pinned it */
	uint64_t at; /* where kernels reach it */
	uint64_t base;
	size_t nbytes;        /* of the allocation, from base on */
	uint64_t id;          /* of the allocation: another one at the same place has another */
	bool has_fd, has_ipc; /* how it can be shared */
};

/* What is at an address. */
TUTTI_CHECKED tutti_status tti_gpu_pointer(struct tti_gpu *gpu, const void *pointer,
					   struct tti_gpu_pointer *out);

/* The same for a buffer that kernels of this GPU are to use. TUTTI_EINVAL, with what to do: it is
 * pageable, or longer than the allocation, or of another device which this one does not reach.
 * `what` is the buffer's name in the text, as "sendbuf of tutti_all_reduce()". */
TUTTI_CHECKED tutti_status tti_gpu_buffer(struct tti_gpu *gpu, const void *pointer, size_t nbytes,
					  const char *what, struct tti_gpu_pointer *out);

#endif

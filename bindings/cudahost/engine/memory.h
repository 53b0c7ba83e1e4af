/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the devices, host memory that CUDA knows, and whose an address is.
 *
 * All memory of a device is parts of one file in memory (memfd), of which pages exist once they are
 * written. So an allocation can be mapped by other processes, and twice: with
 * TUTTI_CUDAHOST_GUARD=1 the address that a program gets can be neither read nor written, and what
 * CUDA copies goes through another mapping, the alias. */
#ifndef TUTTI_CUDAHOST_ENGINE_MEMORY_H
#define TUTTI_CUDAHOST_ENGINE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* The numbers of cudaMemoryType. */
enum tti_cuda_memory_type {
	TTI_CUDA_UNREGISTERED = 0,
	TTI_CUDA_HOST = 1,
	TTI_CUDA_DEVICE = 2,
	TTI_CUDA_MANAGED = 3,
};

struct tti_cuda_range {
	enum tti_cuda_memory_type type;
	int device;                 /* that was current, or whose memory it is */
	char *base;                 /* of the allocation */
	size_t nbytes;              /* as it was asked for */
	uint64_t id;                /* of the allocation, never used again */
	unsigned flags;             /* of cudaHostAlloc() and cudaHostRegister() */
	bool is_pool;               /* of tti_cuda_pool_alloc() */
	struct tti_cuda_pool *pool; /* borrowed; NULL: it is of none, or of a graph */
};

/* Memory of the current device, at a multiple of 4096, of 2 MiB for 2 MiB and more. 0 bytes give
 * NULL. ENOMEM says how much was asked for and is left. */
int tti_cuda_memory_alloc(size_t nbytes, void **out);
/* Host memory, or one for both: readable also with the guard. */
int tti_cuda_memory_alloc_host(size_t nbytes, unsigned flags, enum tti_cuda_memory_type type,
			       void **out);
/* What alloc() gave, a pool, or alloc_host() as managed memory; NULL is nothing. EINVAL for all
 * else, a second time included. Waits for no stream: the caller does. Memory of a graph is freed for
 * the program alone, and allocated again by a launch. */
int tti_cuda_memory_free(void *address);
/* What alloc_host() gave, but for managed memory. */
int tti_cuda_memory_free_host(void *address);

int tti_cuda_memory_register(void *address, size_t nbytes, unsigned flags);
/* Also what was adopted. */
int tti_cuda_memory_unregister(void *address);
/* Memory of another library counts as memory of the current device from now on, as what libnccl.so.2 of
 * Tutti allocates. It can be read and written also with the guard. */
int tti_cuda_memory_adopt(void *address, size_t nbytes);

/* Whose it is: false and `type` unregistered for memory that CUDA does not know. */
bool tti_cuda_memory_find(const void *address, struct tti_cuda_range *out);

/* Where the bytes can be read and written: the address itself, but for guarded memory. */
void *tti_cuda_memory_reach(const void *address);
/* Whether that may be another address: 0 or 1. */
int tti_cuda_memory_is_guarded(void);

/* EINVAL, with a text that names the allocation, if memory that CUDA knows ends before address +
 * nbytes or may not be accessed so, or if `kind` (the numbers of cudaMemcpyKind, 4: by the
 * addresses) says that unknown memory is a device's, or is none. What is said to be the host's may
 * be a device's, as addresses decide. 0 bytes are always good. */
int tti_cuda_memory_check_copy(const void *to, const void *from, size_t nbytes, int kind);
/* The same for memory that is written, which must be known: cudaMemset(). */
int tti_cuda_memory_check(const void *address, size_t nbytes);

/* The free and the whole memory of the current device. */
void tti_cuda_memory_info(size_t *out_free, size_t *out_total);

/* -- Other processes ---------------------------------------------------------------------- */

/* What 64 bytes say of what alloc() gave: process, file, place. Any address in it will do; open()
 * gives its beginning. open() maps it once a process: the same address again, as often as it is to
 * be closed. As with CUDA, what this process has itself is ECONTEXT, and bytes that are no handle
 * are EINVAL. EHANDLE where the process or the memory is gone; EPOOL where the process may not be
 * looked into. The mapping goes on working when the process ends. */
int tti_cuda_memory_get_handle(const void *address, uint8_t out[64]);
int tti_cuda_memory_open_handle(const uint8_t handle[64], void **out);
int tti_cuda_memory_close_handle(void *address);

/* -- Memory and addresses apart (cuMemCreate and the like) -------------------------------- */

struct tti_cuda_piece; /* memory without an address */

/* Sizes, offsets and addresses are multiples of this. */
#define TTI_CUDA_GRANULARITY (2u << 20)

int tti_cuda_piece_create(size_t nbytes, int device, struct tti_cuda_piece **out);
int tti_cuda_piece_retain(struct tti_cuda_piece *piece);
int tti_cuda_piece_release(struct tti_cuda_piece *piece); /* mapped ones live until unmapped */
int tti_cuda_piece_export(struct tti_cuda_piece *piece, int *out_fd); /* the caller closes it */
int tti_cuda_piece_import(int fd, struct tti_cuda_piece **out); /* the fd stays the caller's */
/* 0 and -1: it is no piece. */
size_t tti_cuda_piece_bytes(const struct tti_cuda_piece *piece);
int tti_cuda_piece_device(const struct tti_cuda_piece *piece);
/* That its maker asked for handles for other processes; false for what is no piece. */
void tti_cuda_piece_share(struct tti_cuda_piece *piece);
bool tti_cuda_piece_is_shared(const struct tti_cuda_piece *piece);

/* `hint` is taken where it is free. */
int tti_cuda_address_reserve(size_t nbytes, size_t alignment, void *hint, void **out);
/* All of what was reserved, with nothing mapped. */
int tti_cuda_address_free(void *address, size_t nbytes);
int tti_cuda_address_map(void *address, size_t nbytes, size_t offset, struct tti_cuda_piece *piece);
/* One or several whole mappings, side by side. */
int tti_cuda_address_unmap(void *address, size_t nbytes);
/* Set the access of devices, a bit for each, to such a range: 0 none (at first), 1 read, 3 both. Others
 * keep theirs. Unless the guard is on, the range can be accessed at these addresses as the device can
 * that can most. EPEERNONE if a device has no access to memory of another. */
int tti_cuda_address_allow(void *address, size_t nbytes, int access, uint64_t devices);
#define TTI_CUDA_ALL_DEVICES UINT64_MAX
int tti_cuda_address_allowed(const void *address, int device, int *out_access);
/* The piece that is mapped there, retained. */
int tti_cuda_address_piece(const void *address, struct tti_cuda_piece **out);

#pragma GCC visibility pop

#endif

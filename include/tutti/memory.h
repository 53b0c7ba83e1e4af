/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_MEMORY_H
#define TUTTI_MEMORY_H

/* Memory that other ranks can address. Part of tutti.h, which is what to include and which says
 * what holds for all calls: threads, streams, errors. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Registered memory --------------------------------------------------- */

/* If all ranks of a call can address the buffers, data does not pass through slots: each rank does
 * its part of the call where the data lies, so that every byte is moved once. This is so for
 * all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter,
 * all_gather_v and reduce_scatter_v of TUTTI_REGISTERED_LEAST bytes or more (the size of the buffer
 * that has the parts of all ranks), on communicators whose ranks all share memory. The buffers of
 * all ranks must be registered, in gather and scatter only those of the root. Each must lie in one
 * allocation or registered range; any part of it will do. If one is not registered, the call goes
 * through slots, with the same result.
 *
 * The ranks ask each other in the call. After 16 calls of one kind on a communicator that found
 * buffers which are not registered, only every eighth call of that kind asks, until one finds that
 * they are.
 *
 * For what one rank sends to one other (send, send_recv, all_to_all_v out of place, gather_v,
 * scatter_v) only the sender's buffer counts. If it is registered and has TUTTI_REGISTERED_LEAST
 * bytes or more, the receiver copies it from where it lies into any memory. Such a send is done
 * when the receiver has all of it.
 *
 * Ordinary memory is used in the same way if the kernel can copy it from process to process, and
 * this was found to be faster when the communicator was made; TUTTI_DEBUG=INFO says what was
 * measured. After a call that failed, other ranks may still write to a buffer of it until their own
 * call has returned.
 *
 * Where all ranks of a communicator have GPUs that reach each other, the same holds for memory of
 * GPUs: kernels read and write it where it lies, of the collectives above. It must be registered, or
 * be of tutti_mem_alloc(), on all ranks, and each buffer must lie in one allocation, of cudaMalloc()
 * or of cuMemCreate() with a file descriptor. The first call on an allocation lets the other ranks
 * map it.
 *
 * Allocating and registering are local: other ranks need not do the same, or at the same time. Each
 * rank tells the others in the call itself what is registered. */

/* Allocate `size` bytes, zero and page aligned, that the other ranks of the host can address: in
 * calls of every communicator, whether it was made before or is made later. The bytes cost memory
 * once they are touched, and then on the NUMA node of the rank that touched them. Where limits
 * forbid it (ulimit -v, ulimit -f, TUTTI_SHM_HEAP 0) the memory is ordinary: calls work, but no
 * faster.
 *
 * If `comm` is one on which this rank has a device, it is memory of that GPU instead, which kernels
 * of the other ranks can address. Nothing that is said here of limits and forks concerns it: a
 * forked child has no memory of GPUs.
 *
 * The memory belongs to the process. It stays until tutti_mem_free(), also after the communicator
 * was destroyed. `comm` may be NULL, for memory of the host; else a failure becomes its last error.
 * Core dumps leave the memory out. A forked child shares it with its parent, as memory that is
 * MAP_SHARED, unless tutti_mem_copy_on_fork() was called.
 *
 * Threads: any. TUTTI_EINVAL: out is NULL, size is 0. TUTTI_ENOMEM: more than TUTTI_SHM_HEAP in
 * all. TUTTI_EUSAGE: `comm` was destroyed before, or the call is made inside a group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_alloc(void **out, size_t size, tutti_comm_t comm);

/* Free the memory at `ptr`, which tutti_mem_alloc() gave, once the calls that were made before on
 * `comm` are done, also those on streams. `comm` may be any communicator, not only that of
 * tutti_mem_alloc(). NULL: free at once, so that calls on the memory must be done, and after a
 * failed call also those of the other ranks. A `ptr` of NULL is fine. A forked child frees nothing
 * of its parent's.
 *
 * Threads: any. TUTTI_EINVAL: not from tutti_mem_alloc(). TUTTI_EUSAGE: `comm` was destroyed
 * before, or the call is made inside a group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_free(void *ptr, tutti_comm_t comm);

/* Give a forked child a copy of the memory at `ptr`, which tutti_mem_alloc() gave. Neither parent
 * nor child then sees what the other writes, as with malloc's memory. fork() takes the time, and
 * the memory, to copy all of it that was touched. What other threads write while fork() copies may
 * be in the copy or not. Call it before the fork; it lasts until tutti_mem_free(). vfork() and
 * posix_spawn() copy nothing, and need not.
 *
 * If the copy cannot be had, a warning is logged, and the child has no access to the memory: it can
 * exec(), and dies of SIGSEGV if it touches the memory.
 *
 * Threads: any. TUTTI_EINVAL: not from tutti_mem_alloc(). TUTTI_ENOMEM. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_copy_on_fork(void *ptr);

/* A registration of memory with a communicator. Opaque; lives until tutti_deregister(), and at most
 * as long as the communicator. */
typedef struct tutti_reg *tutti_reg_t;

/* Register memory that the caller already has with a communicator. (Memory of tutti_mem_alloc()
 * needs no registering.) With memory of GPUs it helps wherever they reach each other: between threads,
 * and between processes if it came by cuMemCreate() with a file descriptor. What cudaMalloc() gave
 * other processes map only if TUTTI_CUDA_SHARE is ipc; CUDA then waits for kernels in tutti_register()'s
 * first call and in tutti_deregister(), so no call of a peer may wait for this rank by then. With memory of
 * the host it helps where all ranks are threads of one process: they read and write the memory in
 * place. Between processes it does not help: there the kernel copies ordinary memory where that is
 * faster than slots (TUTTI_REACH), registered or not.
 *
 * The memory must stay until tutti_deregister(), and after a failed call on it until the other
 * ranks' calls have returned, too. TUTTI_EINVAL: ptr or out is NULL, size is 0 or goes past the end
 * of memory. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_register(tutti_comm_t comm, void *ptr, size_t size,
						    tutti_reg_t *out);

/* Undo tutti_register() of the same communicator, once the calls that were made before on `comm`
 * are done, also those on streams. NULL is fine. Destroying the communicator undoes all its
 * registrations. TUTTI_EINVAL: `reg` is no registration of `comm`, which stays. TUTTI_EUSAGE:
 * inside a group (then it stays), or the communicator was destroyed before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_deregister(tutti_comm_t comm, tutti_reg_t reg);

#ifdef __cplusplus
}
#endif

#endif

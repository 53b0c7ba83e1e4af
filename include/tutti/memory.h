/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_MEMORY_H
#define TUTTI_MEMORY_H

/* Memory that other ranks can address. Part of tutti.h, which is what to include and
 * which says what counts for all calls: threads, streams, errors. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Registered memory --------------------------------------------------- */

/* Buffers that all ranks of a call can address are not passed on through slots: each rank
 * does its part of the call where the data lies, so that every byte is moved once. That is
 * all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter,
 * all_gather_v and reduce_scatter_v of TUTTI_REGISTERED_LEAST bytes or more (of all that the
 * buffer with parts for all ranks has), on communicators whose ranks all share memory. The
 * buffers of all ranks must be registered, of gather and scatter the root's alone, and each lie
 * in one allocation or registered range; any part of it will do. If one is not, the call is run
 * as ever, with the same result.
 *
 * The ranks ask each other in the call. After 16 calls of one kind on a communicator that found
 * buffers which are not registered, only every eighth of that kind asks, until one finds that
 * they are.
 *
 * What goes from one rank to another alone (send, send_recv, all_to_all_v out of place, gather_v,
 * scatter_v) is a matter of its sender: TUTTI_REGISTERED_LEAST bytes or more that are registered
 * are copied by the receiver from where they lie, whatever memory it receives into. Such a send
 * is over when the receiver has all of it.
 *
 * Ordinary memory is used in the same way where the kernel copies it from process to process and
 * that was found to be faster when the communicator was made; TUTTI_DEBUG=INFO says what was
 * measured. After a call that failed, other ranks may still write to a buffer of it until their own
 * call has returned.
 *
 * Allocating and registering are local: nobody else need do the same, or at the same time.
 * What is registered says each rank in the call itself. */

/* Allocate `size` bytes, zero and page aligned, that the other ranks of the host can address: in calls
 * of every communicator, whether it was made before or is made later. They cost memory once they are
 * touched, and then on the NUMA node of the rank that touched them. Where limits forbid it (ulimit -v,
 * ulimit -f, TUTTI_SHM_HEAP 0) it is memory as any other: right, but nothing is gained.
 *
 * The memory is the process's: it stays until tutti_mem_free(), also after the communicator was
 * destroyed. `comm` may be NULL; else it is the one whose last error a failure becomes. Core dumps
 * leave the memory out. A forked child shares it with its parent, as it shares MAP_SHARED, unless
 * tutti_mem_copy_on_fork() was called.
 *
 * Threads: any. TUTTI_EINVAL: out is NULL, size is 0. TUTTI_ENOMEM: more than TUTTI_SHM_HEAP in all.
 * TUTTI_EUSAGE: of `comm`, inside a group, or destroyed before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_alloc(void **out, size_t size, tutti_comm_t comm);

/* Free memory at `ptr`, of tutti_mem_alloc(), once the calls that were made before on `comm` are done, on
 * streams too. `comm` NULL: at once, so calls on the memory must be done, those of other ranks too if
 * one failed. Not the `comm` that it was allocated with, but any. NULL is fine. A forked child
 * frees nothing of its parent's.
 *
 * Threads: any. TUTTI_EINVAL: nothing that tutti_mem_alloc() gave. TUTTI_EUSAGE: of `comm`, inside a
 * group, or destroyed before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_free(void *ptr, tutti_comm_t comm);

/* Have a forked child get a copy of the memory at `ptr`, of tutti_mem_alloc(), as it gets of malloc's: what
 * parent and child write then is not seen by the other. fork() takes the time, and the memory, to copy
 * all of it that was touched. What other threads write while fork() copies may be in the copy or not.
 * To be called before the fork; lasts until tutti_mem_free(). vfork() and posix_spawn() copy nothing,
 * and need not.
 *
 * Where the copy cannot be had, a warning is logged, and the child has no access to the memory: it
 * can exec(), and dies of SIGSEGV if it touches it.
 *
 * Threads: any. TUTTI_EINVAL: nothing that tutti_mem_alloc() gave. TUTTI_ENOMEM. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_mem_copy_on_fork(void *ptr);

/* That memory is registered with a communicator. Opaque; lives until tutti_deregister(), and at most as
 * long as the communicator. */
typedef struct tutti_reg *tutti_reg_t;

/* Tell a communicator of memory that the caller has already. Something is gained where all
 * ranks are threads of one process: they read and write it in place. Between processes
 * nothing is gained: there ordinary memory is copied by the kernel where that is faster than
 * slots (TUTTI_REACH), registered or not. (Memory of tutti_mem_alloc() needs no registering.)
 *
 * The memory must stay until tutti_deregister(); if a call on it has failed, until the other
 * ranks' calls have returned, too.
 * TUTTI_EINVAL: ptr or out is NULL, size is 0 or goes past the end of memory. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_register(tutti_comm_t comm, void *ptr, size_t size,
						    tutti_reg_t *out);

/* Undo tutti_register() of the same communicator, once the calls that were made before on `comm` are
 * done, on streams too. NULL is fine. Destroying the communicator does the same for all that is
 * registered with it. TUTTI_EINVAL: `reg` is no registration of `comm`; it stays. TUTTI_EUSAGE:
 * inside a group (then it stays), or the communicator was destroyed before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_deregister(tutti_comm_t comm, tutti_reg_t reg);

#ifdef __cplusplus
}
#endif

#endif

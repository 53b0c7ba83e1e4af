/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_CUDAHOST_ENGINE_HOST_ABI_H
#define TUTTI_CUDAHOST_ENGINE_HOST_ABI_H

/* What Tutti and its tests find by name in the driver on host memory, beside the functions of CUDA:
 * dlsym() of a handle of libcuda.so.1 gives all of it. A driver that has tti_cuda_kernel_register()
 * is this one. Libraries that do not include this file have declarations of their own, of types that
 * C has.
 *
 * Threads: any, at any time; of kernels tti_cuda_reach() and those that are for it alone. */

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/* -- Kernels ------------------------------------------------------------------------------- */

/* Run all blocks and threads of one launch, and return when they have ended. `args` has an address
 * of each parameter, 16-byte aligned, whose bytes were copied at the launch. It is called on the
 * thread of the stream, or of a launch of a graph, so kernels of several streams run at the same
 * time. It may start threads; neither it nor they may call CUDA.
 * Returns 0 or a number of CUDA's errors, which is the device's from then on: as of a GPU whose
 * kernel has failed, every call that launches or waits gives it. Negative numbers become 719
 * (CUDA_ERROR_LAUNCH_FAILED). */
typedef int (*tti_cuda_kernel_fn)(void **args, const unsigned grid[3], const unsigned block[3],
				  size_t shared_bytes);

/* Kernel `name` is run by `run`, with `nargs` parameters of arg_bytes[] bytes, 32764 in all at most.
 * Every module and library that is loaded from now on, or is already, has it: the code of an image
 * is not read, and ".version 7.0\n" is one that is good enough. `function` is what programs of the
 * runtime launch it by, and NULL for others. A kernel with a `function` is of the program, and does not
 * call tti_cuda_reach(): in its arguments each address of guarded memory, at a multiple of 8 bytes, is
 * replaced by the place where the bytes are, also in structs. What is passed is copied, and stays for ever; a name or
 * function that is there already is that of the new kernel from then on. 0, or a number of CUDA's
 * errors: 1 (nothing to run, no name), 2 (no memory). */
int tti_cuda_kernel_register(const void *function, const char *name, tti_cuda_kernel_fn run,
			     const size_t *arg_bytes, size_t nargs);

/* -- Memory -------------------------------------------------------------------------------- */

/* Whether TUTTI_CUDAHOST_GUARD=1, so that memory of devices can be neither read nor written where
 * its address says: 0 or 1. */
int tti_cuda_memory_is_guarded(void);
/* Where kernels read and write what has this address: another place if it is guarded, else there. Takes
 * no lock, and the time of a search among the mappings of the process. */
void *tti_cuda_reach(uint64_t address);

/* Whose the kernel is that the calling thread runs; 0: it runs none. Threads that a kernel starts join
 * it by this number before all else, so that tti_cuda_reach() knows it. With the guard, memory to
 * which the kernel's device has no access is then a fault where it is used, and stderr has the
 * reason. Threads that have not joined reach all memory. */
int tti_cuda_kernel_self(void);
void tti_cuda_kernel_join(int self);

/* -- What is held -------------------------------------------------------------------------- */

/* What the process has by calls of CUDA's functions and has not given back. Streams and contexts
 * that a program cannot destroy do not count. */
struct tti_cuda_held {
	uint64_t allocations; /* of devices, pools included */
	uint64_t host;        /* allocations of host memory, and of managed memory */
	uint64_t registered;  /* parts of host memory */
	uint64_t opened;      /* handles of other processes' memory (cuIpcOpenMemHandle) */
	uint64_t pieces;      /* memory without an address (cuMemCreate and imports) */
	uint64_t reserved;    /* ranges of addresses (cuMemAddressReserve) */
	uint64_t maps;        /* of pieces */
	uint64_t streams, events;
	uint64_t graphs;      /* and copies that other graphs and executable ones have */
	uint64_t execs;       /* executable graphs */
	uint64_t modules;     /* and libraries */
	uint64_t contexts;    /* that were created, and retains of primary ones */
	uint64_t objects;     /* that live as long as graphs (cuUserObjectCreate) */
	uint64_t descriptors; /* files of the library; what was exported is the caller's */
};

void tti_cuda_held(struct tti_cuda_held *out);

/* -- Calls that fail ----------------------------------------------------------------------- */

/* Calls of functions of libcuda.so.1 in this process so far, by all threads. */
uint64_t tti_cuda_calls(void);
/* Let calls fail with `error`, without doing anything: `n` calls after the first `skipped` from now
 * on. The error's text names the function and the call. n 0: none will any more. As
 * TUTTI_CUDAHOST_FAIL=CALL[:ERROR] does with one, which counts from 1. */
void tti_cuda_fail_calls(uint64_t skipped, uint64_t n, int error);

#pragma GCC visibility pop

#endif

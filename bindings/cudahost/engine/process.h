/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process is which: numbers of processes are given again, and are others in containers.
 *
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_PROCESS_H
#define TUTTI_CUDAHOST_ENGINE_PROCESS_H

#include <stdint.h>

/* When a process started, in ticks since the host did. 0: there is no such process (or, errno
 * EACCES and the like, /proc does not say). */
uint64_t tti_cuda_process_start(int pid);

/* A number of this boot of the host and of the PID namespace; 0 if /proc does not say. */
uint32_t tti_cuda_process_space(void);

/* FNV-1a. */
uint32_t tti_cuda_process_hash(uint32_t hash, const void *data, uint64_t nbytes);
#define TTI_CUDA_HASH_BEGIN 2166136261u

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_H
#define TTI_GPU_CUDA_H

/* GPUs by CUDA's driver, which is loaded when the first device is asked for; a process that asks for
 * none makes no call of CUDA. TUTTI_CUDA_LIB names another library of the same interface, as the one
 * on host memory that Tutti brings along.
 *
 * Names of CUDA are in cuda_abi.h and the files cuda*.c alone. Memory is cuda_memory.h, streams are
 * cuda_stream.h, kernels cuda_kernel.h; all say the same here:
 *   - an address of a GPU is a uint64_t, and a stream or event is the driver's own (void *), so that
 *     a stream of the program can be passed;
 *   - a failed call is one tti_fail() with what was done, the device, the driver's function, its
 *     error's name and text, and what helps. TUTTI_ENOMEM: out of memory of the device; TUTTI_ESYS:
 *     all else. What releases something returns nothing, and logs what the driver says;
 *   - every call leaves the thread's current context as it was.
 *
 * Owner: said at each. Threads: any. A child of fork() cannot use what its parent opened; its calls
 * fail. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

/* -- The driver ------------------------------------------------------------------- */

struct tti_gpu_driver;

/* The driver of this process, opened at the first call and kept to the end of the process. An error
 * says what is missing: TUTTI_EUNSUPPORTED, TUTTI_EINVAL if TUTTI_CUDA_LIB is no such library. The
 * next call tries again. */
TUTTI_CHECKED tutti_status tti_gpu_driver(struct tti_gpu_driver **out);

/* One of the caller's own, quietly: for tools and tests. NULL: the usual path, TUTTI_CUDA_LIB
 * or libcuda.so.1. *out is for tti_gpu_driver_close(). */
TUTTI_CHECKED tutti_status tti_gpu_driver_open(const char *path, struct tti_gpu_driver **out);
void tti_gpu_driver_close(struct tti_gpu_driver *driver);

const char *tti_gpu_driver_path(const struct tti_gpu_driver *driver);
int tti_gpu_driver_version(const struct tti_gpu_driver *driver); /* 13000 for CUDA 13.0 */
int tti_gpu_driver_count(const struct tti_gpu_driver *driver);   /* of devices; may be 0 */
/* A symbol of its library; NULL: it has none. */
void *tti_gpu_driver_symbol(const struct tti_gpu_driver *driver, const char *name);
/* Whether it is the driver on host memory (bindings/cudahost). */
bool tti_gpu_driver_is_host(const struct tti_gpu_driver *driver);

/* CUDA_LAUNCH_BLOCKING, by which a launch returns once its kernel has ended; NULL: it does not. */
const char *tti_gpu_launch_blocking(void);
/* The connections of a GPU among which CUDA divides the streams of a process: CUDA_DEVICE_MAX_CONNECTIONS. What
 * waits at the head of one keeps back what is behind it, also of other streams. */
#define TTI_GPU_CONNECTIONS_MOST 32
int tti_gpu_connections(void);

enum tti_gpu_mode { TTI_GPU_SHARED, TTI_GPU_ONE_PROCESS, TTI_GPU_PROHIBITED };

/* What does not change while the process runs. */
struct tti_gpu_facts {
	int ordinal;
	char name[96];
	uint8_t uuid[16];
	char busid[24];      /* "0000:3b:00.0" */
	int capability;      /* 90 for 9.0 */
	int multiprocessors; /* 132 on an H100 */
	int threads_per_multiprocessor;
	int shared_per_block; /* bytes that a kernel may ask for */
	uint64_t memory_bytes;
	enum tti_gpu_mode mode; /* who may have a context (nvidia-smi -c) */
	bool has_mps;
	bool has_vmm;         /* memory apart from addresses (cuMemCreate) */
	bool has_fd;          /* which other processes reach by a file descriptor */
	bool has_fabric;      /* and other hosts of an NVLink domain */
	bool has_host_atomic; /* its atomic operations on host memory are such */
	bool has_rdma;        /* NICs can reach its memory */
	bool has_dma_buf;     /* by a DMA buffer, without nvidia-peermem */
	bool has_vmm_rdma;    /* also memory of has_vmm */
	bool has_managed;     /* host and device may use managed memory at the same time */
	bool has_multicast;
};

TUTTI_CHECKED tutti_status tti_gpu_facts_of(struct tti_gpu_driver *driver, int ordinal,
					    struct tti_gpu_facts *out);

/* Whether device `from` can read and write memory of device `to`, and whether its atomic operations
 * there are such. A device reaches itself. */
struct tti_gpu_access {
	bool is_possible, has_atomic;
};
TUTTI_CHECKED tutti_status tti_gpu_access_of(struct tti_gpu_driver *driver, int from, int to,
					     struct tti_gpu_access *out);

/* -- A device ----------------------------------------------------------------------- */

struct tti_gpu;

/* Device `ordinal` of the process's driver, with its primary context, which the program's CUDA
 * runtime uses too. TUTTI_EINVAL: there is no such device; TUTTI_EUNSUPPORTED as tti_gpu_driver().
 * *out is for tti_gpu_close(), after all that was made of it, but for memory that others have imported
 * (cuda_memory.h): that keeps it. */
TUTTI_CHECKED tutti_status tti_gpu_open(int ordinal, struct tti_gpu **out);
/* The same with a driver that outlives it. */
TUTTI_CHECKED tutti_status tti_gpu_open_by(struct tti_gpu_driver *driver, int ordinal,
					   struct tti_gpu **out);
void tti_gpu_close(struct tti_gpu *gpu); /* NULL is fine */

const struct tti_gpu_facts *tti_gpu_facts(const struct tti_gpu *gpu);
int tti_gpu_ordinal(const struct tti_gpu *gpu);
struct tti_gpu_driver *tti_gpu_driver_of(const struct tti_gpu *gpu);

/* Whether the device has failed for good, so that nothing can be launched and waited for any more:
 * the error of a kernel that broke. OK: it has not. */
TUTTI_CHECKED tutti_status tti_gpu_health(struct tti_gpu *gpu);

/* -- What is held ------------------------------------------------------------------- */

/* What this process has made with these headers and not released, of all devices. What a device that
 * has failed did not release does not count. */
struct tti_gpu_held {
	int gpus;     /* tti_gpu_open() */
	int memories; /* made or imported; room of tti_gpu_alloc() */
	int maps;     /* memory apart from addresses, mapped */
	int fds;      /* file descriptors, served ones and the socket */
	int pinned;   /* host memory, allocated or registered */
	int streams, events;
	int libraries;
};
void tti_gpu_held(struct tti_gpu_held *out);

#endif

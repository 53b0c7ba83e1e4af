/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_KERNELS_H
#define TTI_DEVICE_KERNELS_H

/* The kernels that run programs (abi.h): tutti_run_float32 and so on, one for each family of types
 * that is reduced (families.h), and tutti_run_copy for what is only moved.
 *
 * For GPUs they are in the file tutti_kernels.fatbin, in the folder tutti/ beside libtutti.so, or
 * where TUTTI_CUDA_KERNELS says. The driver on host memory runs those of libtutti_kernels_host.so,
 * in the same folder, on threads.
 *
 * Owner: the process; they are loaded once and stay. Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#include "device/abi.h"
#include "gpu/cuda.h"

struct tti_kernels;

/* Kernels that a device can run. TUTTI_EUNSUPPORTED: there is no such file, or it has no code for this
 * device; the text says where it was looked for, and how to get it. Only once is loaded what is there
 * already. */
TUTTI_CHECKED tutti_status tti_kernels_get(struct tti_gpu *gpu, struct tti_kernels **out);

/* Where the file is, or would be, without loading anything: for tools. TUTTI_ENOMEM. The caller's,
 * tti_free(). */
TUTTI_CHECKED tutti_status tti_kernels_path(bool is_host, char **out);

/* How many blocks of `nthreads` threads can be resident on the device at a time, of the kernel that
 * takes most. */
TUTTI_CHECKED tutti_status tti_kernels_resident(struct tti_kernels *kernels, struct tti_gpu *gpu,
						uint32_t nthreads, uint32_t *out);

/* Put one launch into a stream: ncalls * nblocks blocks of nthreads threads. The calls of a launch
 * have one type, or none of them reduces (type -1). `launch` is copied. */
TUTTI_CHECKED tutti_status tti_kernels_launch(struct tti_kernels *kernels, struct tti_gpu *gpu,
					      int type, const struct tti_dev_launch *launch,
					      uint32_t nthreads, void *stream);

#endif

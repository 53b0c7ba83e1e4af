/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_KERNEL_H
#define TTI_GPU_CUDA_KERNEL_H

/* Code for GPUs: a library of kernels and how one is launched. A library and its kernels serve all
 * devices of a driver.
 *
 * Owner, threads, errors: cuda.h. */

#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda.h"

struct tti_gpu_library;

/* `image` is a cubin or PTX, or fatbins one after another, whose kernels have different names; `path`
 * is its name in texts. The image is not needed any more after that. TUTTI_EUNSUPPORTED: it has no
 * code for the driver's devices, or a fatbin is cut short. */
TUTTI_CHECKED tutti_status tti_gpu_library_load(struct tti_gpu_driver *driver, const void *image,
						size_t nbytes, const char *path,
						struct tti_gpu_library **out);
void tti_gpu_library_unload(struct tti_gpu_library *library); /* NULL is fine */

/* *out is the library's. TUTTI_EUNSUPPORTED: it has no such kernel. */
TUTTI_CHECKED tutti_status tti_gpu_kernel(struct tti_gpu_library *library, const char *name,
					  void **out);

/* Load the kernel onto the device, which costs time at its first launch otherwise, and let it have so
 * many bytes of shared memory. */
TUTTI_CHECKED tutti_status tti_gpu_kernel_prepare(struct tti_gpu *gpu, void *kernel,
						  uint32_t shared_bytes);

/* How many blocks of it a multiprocessor holds at a time. TUTTI_EUNSUPPORTED, quietly: the driver
 * does not know, as its blocks are threads of the host. */
TUTTI_CHECKED tutti_status tti_gpu_kernel_resident(struct tti_gpu *gpu, void *kernel,
						   uint32_t nthreads, uint32_t shared_bytes,
						   int *out);

/* Put a launch into a stream. `arg` is the one parameter of the kernel, and is copied. */
TUTTI_CHECKED tutti_status tti_gpu_launch(struct tti_gpu *gpu, void *kernel, uint32_t nblocks,
					  uint32_t nthreads, uint32_t shared_bytes, const void *arg,
					  void *stream);

#endif

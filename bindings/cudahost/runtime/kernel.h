/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kernels, for kernel.c and launch.c. */
#ifndef TUTTI_CUDAHOST_RUNTIME_KERNEL_H
#define TUTTI_CUDAHOST_RUNTIME_KERNEL_H

#include "engine/launch.h"
#include "runtime/runtime.h"

/* By the host's function or by a handle of __cudaGetKernel(). false: it is not known. *out is what
 * runs it, and NULL if it cannot run on the host. */
bool tti_cudart_kernel_find(const void *function, const struct tti_cuda_runnable **out);

/* EFUNCTION with a text that names the kernel. `is_told`: the program gets the error by this
 * call. */
int tti_cudart_kernel_refuse(const char *caller, const void *function, bool is_told);

#endif

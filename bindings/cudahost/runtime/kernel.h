/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kernels, for kernel.c and launch.c. */
#ifndef TUTTI_CUDAHOST_RUNTIME_KERNEL_H
#define TUTTI_CUDAHOST_RUNTIME_KERNEL_H

#include "runtime/runtime.h"

/* What a launch needs of a kernel. */
struct tti_cudart_runnable {
	tti_cuda_kernel_fn run; /* NULL: it cannot run on the host */
	const size_t *arg_bytes;
	size_t nargs;
};

/* By the host's function or by a handle of __cudaGetKernel(). false: it is not known. */
bool tti_cudart_kernel_find(const void *function, struct tti_cudart_runnable *out);

/* EFUNCTION with a text that names the kernel. `is_told`: the program gets the error by this
 * call. */
int tti_cudart_kernel_refuse(const char *caller, const void *function, bool is_told);

#endif

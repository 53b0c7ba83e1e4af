/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that were launched and cannot run. A launch is an error that names the kernel, and each
 * kernel is named once on stderr. A kernel that is skipped may leave a program with wrong results
 * and status 0: a program that never asks for the error ends with status 1 instead. */
#ifndef TUTTI_CUDAHOST_ENGINE_KERNEL_H
#define TUTTI_CUDAHOST_ENGINE_KERNEL_H

#include <stdbool.h>

#pragma GCC visibility push(default)

/* A launch has failed. Returns EFUNCTION, with a text that names the kernel and what launched it.
 * `is_told`: the program gets this error as the result of its call, else it has to ask for it. */
int tti_cuda_kernel_refused(const char *kernel, const char *caller, bool is_told);
int tti_cuda_kernel_missed(const char *kernel, const char *caller); /* it is not told */

/* The program knows of all launches that have failed by now: it has taken the error, or asked what the
 * error means. */
void tti_cuda_kernel_seen(void);

#pragma GCC visibility pop

#endif

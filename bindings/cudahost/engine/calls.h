/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the driver's functions: how many there were, and which are to fail (host_abi.h).
 *
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_CALLS_H
#define TUTTI_CUDAHOST_ENGINE_CALLS_H

#include <stddef.h>

#pragma GCC visibility push(default)

/* A call of the function `name` begins: 0, or the error that it is to fail with, with its text. */
int tti_cuda_call_enter(const char *name);

#pragma GCC visibility pop

/* TUTTI_CUDAHOST_FAIL, for device.c: -1 and why it is none. NULL: it is unset. */
int tti_cuda_calls_read(const char *value, char *wrong, size_t size);

#endif

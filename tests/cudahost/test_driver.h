/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the driver have in common. */
#ifndef TUTTI_CUDAHOST_TEST_DRIVER_H
#define TUTTI_CUDAHOST_TEST_DRIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/driver_api.h"

#define is_good(rc) is_good_at(rc, __FILE__, __LINE__)

static inline void is_good_at(CUresult rc, const char *file, int line)
{
	const char *name = "?";

	if (!rc)
		return;
	cuGetErrorName(rc, &name);
	print_error("%s:%d: %s (%d)\n", file, line, name, (int)rc);
	_fail(file, line);
}

static inline CUdeviceptr pointer(const void *address)
{
	return (CUdeviceptr)(uintptr_t)address;
}

/* For a group of tests: a context of device 0 of `n`. */
static inline int begin_on(const char *n)
{
	CUcontext context;

	setenv("TUTTI_CUDAHOST_GPUS", n, 1);
	return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

#endif

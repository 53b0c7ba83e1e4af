/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries that are loaded as CUDA's driver and cannot be used. */
#include "gpu/cuda_abi.h"

#pragma GCC visibility push(default)

#if defined(FAKE_NONE)

/* One that has nothing of CUDA. */
int tti_fake_cuda_none(void);
int tti_fake_cuda_none(void)
{
	return 0;
}

#else

int cuInit(unsigned flags);
int cuDriverGetVersion(int *out);
int cuDeviceGetCount(int *out);
int cuGetErrorName(int rc, const char **out);
int cuGetErrorString(int rc, const char **out);

int cuInit(unsigned flags)
{
	(void)flags;
#ifdef FAKE_BROKEN
	return TTI_CUDA_SYSTEM_NOT_READY;
#else
	return TTI_CUDA_SUCCESS;
#endif
}

int cuDriverGetVersion(int *out)
{
	*out = 11080;
	return TTI_CUDA_SUCCESS;
}

int cuDeviceGetCount(int *out)
{
	*out = 1;
	return TTI_CUDA_SUCCESS;
}

int cuGetErrorName(int rc, const char **out)
{
	*out = rc == TTI_CUDA_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR";
	return TTI_CUDA_SUCCESS;
}

int cuGetErrorString(int rc, const char **out)
{
	(void)rc;
	*out = "system not yet initialized";
	return TTI_CUDA_SUCCESS;
}

#ifndef FAKE_FEW
/* All others are there, and are not called. */
#define cuInit             tti_fake_init
#define cuDriverGetVersion tti_fake_version
#define cuDeviceGetCount   tti_fake_count
#define cuGetErrorName     tti_fake_name
#define cuGetErrorString   tti_fake_text
#define X(field, symbol, arguments)            \
	int symbol(void);                      \
	int symbol(void)                       \
	{                                      \
		return TTI_CUDA_NOT_SUPPORTED; \
	}
#define Y(field, symbol, arguments) X(field, symbol, arguments)
TTI_CUDA_FUNCTION_MAP(Y)
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver of CUDA with two devices, and what a runtime that is linked into the program would have done: device
 * 1 is in use if the test says so. */
#include "nccl/fake_libcuda.h"

int fake_cuda_is_used;

int cuDeviceGetCount(int *out)
{
	*out = 2;
	return 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active)
{
	*flags = 0;
	*is_active = device == 1 && fake_cuda_is_used;
	return 0;
}

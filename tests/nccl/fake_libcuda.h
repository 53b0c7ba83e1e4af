/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NCCL_FAKE_LIBCUDA_H
#define TESTS_NCCL_FAKE_LIBCUDA_H

#pragma GCC visibility push(default)

extern int fake_cuda_is_used;
int cuDeviceGetCount(int *out);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active);

#pragma GCC visibility pop

#endif

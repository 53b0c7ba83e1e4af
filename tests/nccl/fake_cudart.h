/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NCCL_FAKE_CUDART_H
#define TESTS_NCCL_FAKE_CUDART_H

/* As much of a CUDA runtime as libnccl.so.2 asks for, on host memory: a stream is a thread that calls
 * host functions in their order. Each device has a default stream (NULL or 1), and one for each
 * thread (2). */

#include "nccl/nccl.h"

int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaStreamCreate(cudaStream_t *out);
int cudaStreamDestroy(cudaStream_t stream);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg);
int cudaEventCreate(cudaEvent_t *out);
int cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
int cudaEventSynchronize(cudaEvent_t event);
int cudaEventDestroy(cudaEvent_t event);

/* From now on cudaLaunchHostFunc() returns `error`; 0: it works. */
void fake_refuse(int error);
/* How many functions the default stream of a device has called. */
int fake_called(int device);

#endif

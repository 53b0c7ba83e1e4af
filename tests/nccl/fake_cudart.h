/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_NCCL_FAKE_CUDART_H
#define TESTS_NCCL_FAKE_CUDART_H

/* As much of NVIDIA's CUDA runtime and driver as libnccl.so.2 asks for. What Tutti's runtime has beside that
 * is missing, and one thread calls the host functions of all streams, as NVIDIA's may: a function that
 * waits for one on another stream waits for ever. Each device has a default stream (NULL or 1), and one
 * for each thread (2). */

#include "nccl/nccl.h"

int cudaGetDevice(int *device);
int cudaSetDevice(int device);
int cudaStreamCreate(cudaStream_t *out);
int cudaStreamDestroy(cudaStream_t stream);
int cudaStreamSynchronize(cudaStream_t stream);
int cudaStreamIsCapturing(cudaStream_t stream, int *status);
int cudaLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg);
int cudaEventCreate(cudaEvent_t *out);
int cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
int cudaEventSynchronize(cudaEvent_t event);
int cudaEventDestroy(cudaEvent_t event);

/* Of a GPU: who touches it on the host is killed. */
int cudaMalloc(void **out, size_t nbytes);
int cudaMallocManaged(void **out, size_t nbytes, unsigned flags);
int cudaFree(void *memory);
int cudaHostRegister(void *memory, size_t nbytes, unsigned flags);
int cudaHostUnregister(void *memory);
int cudaGetLastError(void);

/* Of the driver. Flags 0: until the value at `address` is at least `value`. */
int cuStreamWaitValue64_v2(cudaStream_t stream, unsigned long long address, uint64_t value,
			   unsigned flags);
int cuPointerGetAttributes(unsigned n, int *attributes, void **values, unsigned long long address);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuMemGetInfo_v2(size_t *nfree, size_t *nbytes);
int cuMemHostGetDevicePointer_v2(unsigned long long *out, void *memory, unsigned flags);

/* What may be refused, from now on, with an error that is not 0. */
enum fake_refused {
	FAKE_LAUNCH,
	FAKE_WAIT,      /* before anything else */
	FAKE_LATE_WAIT, /* when all that was launched on the stream before has been called */
	FAKE_REGISTER,
	FAKE_REFUSED
};
void fake_refuse(enum fake_refused what, int error);
/* The value of an attribute of all devices: 89 is concurrentManagedAccess, 122 is
 * CAN_USE_64_BIT_STREAM_MEM_OPS. Both are 1 at first. */
void fake_set_attribute(int attribute, int value);
/* Whether the stream is captured. */
void fake_capture(cudaStream_t stream, int is_captured);
/* From now on (error not 0) all GPUs have failed: nothing on a stream gets on. */
void fake_fail(int error);
/* As cudaDeviceReset() does. */
void fake_forget_registrations(void);
/* How many functions the default stream of a device has called. */
int fake_called(int device);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Primary contexts: one for each device. The runtime's calls use it, and the driver's programs may.
 *
 * Threads: every function may be called by any thread. */
#ifndef TUTTI_CUDAHOST_ENGINE_PRIMARY_H
#define TUTTI_CUDAHOST_ENGINE_PRIMARY_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)

/* The driver may be called from now on: cuInit() does this, and so does every function of the runtime that has
 * to do with devices, if it only counts them. */
void tti_cuda_initialize(void);
bool tti_cuda_is_initialized(void);

/* For the runtime: from now on the calling thread is on the primary context of its current device,
 * and that context is active. cudaSetDevice() and the first call that needs a device do this. */
void tti_cuda_primary_use(void);
/* The calling thread is on no context from now on (cuCtxSetCurrent(NULL)). */
void tti_cuda_primary_leave(void);
/* The primary context of a device is active from now on, whoever is on it. */
void tti_cuda_primary_activate(int device);
/* Whether the calling thread is on it by use() and it was not reset since. */
bool tti_cuda_primary_in_use(void);

/* For the driver. release() is false if nobody holds it. */
void tti_cuda_primary_retain(int device);
bool tti_cuda_primary_release(int device);

/* Not active from now on, whoever holds it (cudaDeviceReset, cuDevicePrimaryCtxReset). */
void tti_cuda_primary_reset(int device);
bool tti_cuda_primary_is_active(int device);

/* The flags of cudaSetDeviceFlags() and cuDevicePrimaryCtxSetFlags(). */
unsigned tti_cuda_primary_flags(int device);
void tti_cuda_primary_set_flags(int device, unsigned flags);

/* The numbers of cudaLimit and CUlimit that there are. Their values are kept until the device is reset,
 * and nothing here uses them. Other numbers are ELIMIT. */
enum { TTI_CUDA_LIMITS = 9 };
int tti_cuda_limit_get(int device, int limit, size_t *out);
int tti_cuda_limit_set(int device, int limit, size_t value);

/* Peer access of a device to another: 0, EPEERON or EPEEROFF, EPEERNONE, EDEVICE. All
 * devices are memory of this host, so that copies need no such access; programs ask whether they
 * have asked for it. */
int tti_cuda_primary_allow_peer(int device, int peer);
int tti_cuda_primary_forbid_peer(int device, int peer);
/* Whether it is on. Takes no lock. */
bool tti_cuda_primary_has_access(int device, int peer);

#pragma GCC visibility pop

#endif

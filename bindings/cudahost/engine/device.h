/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices that are memory of this host, and which of them a thread uses.
 *
 * The engine is what libcudart.so and libcuda.so.1 have in common. It knows the numbers of CUDA's
 * errors, which both use, and none of CUDA's types.
 *
 * Threads: every function of the engine may be called by any thread. */
#ifndef TUTTI_CUDAHOST_ENGINE_DEVICE_H
#define TUTTI_CUDAHOST_ENGINE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_CUDA_DEVICES_MOST 64

#pragma GCC visibility push(default)

/* The numbers that cudaError_t and CUresult agree on. */
enum tti_cuda_error {
	TTI_CUDA_OK = 0,
	TTI_CUDA_EINVAL = 1, /* a value that cannot be */
	TTI_CUDA_ENOMEM = 2,
	TTI_CUDA_EINIT = 3,         /* a child of fork(), whose parent uses CUDA */
	TTI_CUDA_EPOOL = 800,       /* not permitted */
	TTI_CUDA_EDEVICE = 101,     /* no such device */
	TTI_CUDA_ENODEVICE = 100,   /* no device at all */
	TTI_CUDA_EFUNCTION = 98,    /* a kernel that cannot run here */
	TTI_CUDA_ECONTEXT = 201,    /* this process has the memory already */
	TTI_CUDA_ELIMIT = 215,      /* there is no such limit */
	TTI_CUDA_EPEERNONE = 217,   /* two devices without access, or one and itself */
	TTI_CUDA_EPEERON = 704,     /* peer access is on already */
	TTI_CUDA_EPEEROFF = 705,    /* peer access is not on */
	TTI_CUDA_EREGISTERED = 712, /* host memory is registered already */
	TTI_CUDA_EUNREGISTERED = 713,
	TTI_CUDA_EHANDLE = 400, /* no such stream, event, graph */
	TTI_CUDA_ESTATE = 401,  /* not now: no capture, or already one */
	TTI_CUDA_ENOTREADY = 600,
	TTI_CUDA_ESYS = 999,    /* a call of the system failed */
	TTI_CUDA_ELAUNCH = 719, /* something that was queued failed */
	TTI_CUDA_ENOTSUPPORTED = 801,
	TTI_CUDA_ECAPTURE = 900,   /* not while a stream is captured */
	TTI_CUDA_ECAPTURED = 901,  /* the capture is not valid any more */
	TTI_CUDA_EMERGE = 902,     /* it would join two captures */
	TTI_CUDA_EUNMATCHED = 903, /* the capture began elsewhere */
	TTI_CUDA_EUNJOINED = 904,  /* a forked stream was not joined */
	TTI_CUDA_EISOLATION = 905, /* it would cross the border of the capture */
	TTI_CUDA_EIMPLICIT = 906,  /* the legacy stream would join in */
	TTI_CUDA_ECAPTUREDEVENT = 907,
	TTI_CUDA_ETHREAD = 908, /* another thread began the capture */
};

/* What makes or waits for something begins with this: 0, or EINIT in a child of fork() whose parent
 * has begun. The threads of the parent's streams are not there, so that a call would hang. */
int tti_cuda_begin(void);

/* TUTTI_CUDAHOST_GPUS, or as many as ranks that a launcher has started on this host. Read once. 0: there is none, or a TUTTI_CUDAHOST_* variable has a bad
 * value, which is said on stderr once and is the text of the error. */
int tti_cuda_device_count(void);

/* The calling thread's; 0 at first. EDEVICE where there is no such device. */
int tti_cuda_device_current(void);
int tti_cuda_device_set(int device);

/* Bytes of memory that each device has (TUTTI_CUDAHOST_MEMORY, or the host's share of it). */
size_t tti_cuda_device_bytes(void);

/* Whether there is memory apart from addresses (TUTTI_CUDAHOST_VMM). */
bool tti_cuda_device_has_vmm(void);

/* What a job of the device failed with first, with its text; 0: none did. It stays. */
int tti_cuda_device_failure(int device);
/* Forget it: cudaDeviceReset(). */
void tti_cuda_device_forget(int device);

/* Keep why a call fails, for messages and for the log at TUTTI_DEBUG; returns `error`. */
int tti_cuda_fail(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Around what a stream calls of the program, which may not call CUDA: may_call() is 0, or EPOOL for
 * the function `name`. */
void tti_cuda_host_begin(void);
void tti_cuda_host_end(void);
int tti_cuda_host_may_call(const char *name);

/* The text that the calling thread's last failing call left; "" at first. */
const char *tti_cuda_error_text(void);

#pragma GCC visibility pop

#endif

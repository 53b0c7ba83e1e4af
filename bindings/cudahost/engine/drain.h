/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that wait for what devices have queued. */
#ifndef TUTTI_CUDAHOST_ENGINE_DRAIN_H
#define TUTTI_CUDAHOST_ENGINE_DRAIN_H

/* Wait for what all streams of the device have queued. Captures stay as they are: what they have
 * does not run yet. 0, ENOMEM, EDEVICE, or EPOOL in a job of a stream. */
__attribute__((visibility("default"))) int tti_cuda_device_drain(int device);

/* For calls of which CUDA does not promise that they don't wait: with TUTTI_CUDAHOST_WAIT=1 wait for what
 * the streams of all devices have queued. What that fails with is told where it is waited for. */
__attribute__((visibility("default"))) void tti_cuda_drain_all(void);

#endif

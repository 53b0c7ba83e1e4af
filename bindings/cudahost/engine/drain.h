/* SPDX-License-Identifier: BSD-3-Clause */
/* Wait before memory is freed, as cudaFree() does. */
#ifndef TUTTI_CUDAHOST_ENGINE_DRAIN_H
#define TUTTI_CUDAHOST_ENGINE_DRAIN_H

/* Wait for what all streams of the device have queued. Captures stay as they are: what they have
 * does not run yet. 0, ENOMEM, EDEVICE, or EPOOL in a job of a stream. */
__attribute__((visibility("default"))) int tti_cuda_device_drain(int device);

#endif

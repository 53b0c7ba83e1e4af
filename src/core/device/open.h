/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_OPEN_H
#define TTI_CORE_DEVICE_OPEN_H

/* The life of a struct tti_device: opened at init, made ready by the first call that needs it, so
 * that a communicator that makes no calls takes no memory of the GPU. */

#include "core/device/device.h"

/* With its GPU and kernels; no peer is reached yet. *fact: what this rank says of it, but for what
 * is known before. */
TUTTI_CHECKED tutti_status tti_device_open(int ordinal, int rank, int n,
					   struct tti_device_fact *fact, struct tti_device **out);
/* NULL and half-built ok. Where graphs may still launch its kernels it stays until they are gone. */
void tti_device_free(struct tti_device *device);
/* The last graph is gone: free it. Any thread of the driver, which may not call CUDA; so that is done
 * by whoever opens or frees a device next. */
void tti_device_bury(struct tti_device *device);

/* What kernels share with the host is there. */
TUTTI_CHECKED tutti_status tti_device_make_ready(struct tti_comm *comm);

/* Memory that counts, within TUTTI_CUDA_MEMORY. TUTTI_ENOMEM: it would be more than that. */
TUTTI_CHECKED tutti_status tti_device_count_memory(struct tti_device *device, size_t nbytes);
TUTTI_CHECKED tutti_status tti_device_alloc(struct tti_device *device, size_t nbytes,
					    uint64_t *out);
/* `*host` is zeroed. */
TUTTI_CHECKED tutti_status tti_device_alloc_pinned(struct tti_device *device, size_t nbytes,
						   void **host, uint64_t *at);
/* Before the GPU is closed: programs, rooms, scratch (memory.c); lanes (connect.c). */
void tti_device_free_memory(struct tti_device *device);
void tti_device_free_lanes(struct tti_device *device);

#endif

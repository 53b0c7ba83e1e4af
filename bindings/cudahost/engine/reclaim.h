/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other files of memory need of pools.
 *
 * Threads: not locked (allocation.h). */
#ifndef TUTTI_CUDAHOST_ENGINE_RECLAIM_H
#define TUTTI_CUDAHOST_ENGINE_RECLAIM_H

#include <stdbool.h>

struct tti_cuda_allocation;

/* Give to the device what its pools keep. False: they keep nothing. */
bool tti_cuda_pool_reclaim(int device);
/* Memory of a pool that is out of the table: it is kept there, or ends. */
void tti_cuda_pool_keep(struct tti_cuda_allocation *self);

#endif

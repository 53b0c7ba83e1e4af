/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_HEAP_H
#define TTI_CORE_DEVICE_HEAP_H

/* Memory of GPUs that tutti_mem_alloc() gave: it can be lent to the ranks of any communicator (lend.h).
 *
 * Owner: the process; who allocated it frees it. Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_gpu;

/* Zeroed, of the GPU. */
TUTTI_CHECKED tutti_status tti_device_heap_alloc(struct tti_gpu *gpu, size_t nbytes, void **out);

/* Take it back from all communicators of the process, and free it; its calls are done. false: it is not
 * the beginning of such memory. A forked child frees nothing of its parent's. */
bool tti_device_heap_free(void *memory);

/* Whether one piece of such memory has all of these bytes, or any of them. */
bool tti_device_heap_has(uint64_t at, size_t nbytes);
bool tti_device_heap_overlaps(uint64_t at, size_t nbytes);

#endif

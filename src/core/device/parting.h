/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_PARTING_H
#define TTI_CORE_DEVICE_PARTING_H

/* Memory for lanes that another process maps by CUDA's older handles. Others must not use it once its
 * owner has freed it, and a rank that ends does not wait for its peers. So each end writes a mark into
 * memory of the other, as the last that it does there, and then unmaps it; the owner frees memory in
 * which it has found the mark, and memory of a process that has ended. Until then the process keeps it.
 *
 * Owner: the process. Threads: any. */

#include <stdint.h>
#include <sys/types.h>

struct tti_gpu;
struct tti_gpu_memory;

/* Who maps memory, and where it writes the mark, zero until then. */
struct tti_parting {
	struct tti_gpu *gpu;
	struct tti_gpu_memory *memory;
	uint64_t mark_at;
	pid_t pid;
	uint64_t identity; /* of that process (util/process.h) */
};

/* This rank unmaps memory of a peer next. */
void tti_parting_say(struct tti_gpu *gpu, uint64_t mark_at);
/* The memory is this one's to free now. */
void tti_parting_keep(const struct tti_parting *parting);
/* Free what nobody maps any more. */
void tti_parting_free(void);

#endif

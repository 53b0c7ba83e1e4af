/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/parting.h"

#include <pthread.h>
#include <stdbool.h>

#include "gpu/cuda_memory.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/process.h"

#define MARK UINT64_C(0x7475747469206279)

/* Between the mark and the end of the mapping is one call of the driver. */
#define UNMAP_NS (1000 * TTI_NS_PER_MS)

struct kept {
	struct kept *next;
	struct tti_parting parting;
	int64_t seen_ns; /* when the mark was found; 0: it was not */
};

static struct {
	pthread_mutex_t lock;
	struct kept *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

void tti_parting_say(struct tti_gpu *gpu, uint64_t mark_at)
{
	const uint64_t mark = MARK;

	if (tti_gpu_write(gpu, mark_at, &mark, sizeof(mark)) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_CORE,
			"a peer was not told that its memory is not used any more: it keeps it "
			"until this process ends");
}

void tti_parting_keep(const struct tti_parting *parting)
{
	struct kept *kept = tti_zalloc(sizeof(*kept));

	if (!kept) {
		tti_log(TTI_LOG_WARN, TTI_CORE,
			"out of memory: memory of a GPU that a peer maps stays until this "
			"process ends");
		return;
	}
	kept->parting = *parting;
	pthread_mutex_lock(&all.lock);
	kept->next = all.first;
	all.first = kept;
	pthread_mutex_unlock(&all.lock);
}

static bool is_unmapped(struct kept *kept)
{
	const struct tti_parting *parting = &kept->parting;
	uint64_t mark = 0;

	if (tti_process_has_ended(parting->pid, parting->identity))
		return true;
	if (kept->seen_ns)
		return tti_now_ns() - kept->seen_ns > UNMAP_NS;
	if (tti_gpu_read(parting->gpu, &mark, parting->mark_at, sizeof(mark)) == TUTTI_OK &&
	    mark == MARK)
		kept->seen_ns = tti_now_ns();
	return false;
}

void tti_parting_free(void)
{
	struct kept **at = &all.first;

	pthread_mutex_lock(&all.lock);
	while (*at) {
		struct kept *kept = *at;

		if (!is_unmapped(kept)) {
			at = &kept->next;
			continue;
		}
		*at = kept->next;
		tti_gpu_memory_free(kept->parting.memory);
		tti_free(kept);
	}
	pthread_mutex_unlock(&all.lock);
}

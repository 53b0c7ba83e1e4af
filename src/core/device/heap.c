/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/device/heap.h"

#include <pthread.h>
#include <unistd.h>

#include "core/device/lend.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/span.h"

struct piece {
	struct piece *next;
	struct tti_gpu_memory *memory;
	size_t nbytes; /* that were asked for */
	pid_t pid;     /* who did */
};

static struct {
	pthread_mutex_t lock;
	struct piece *first;
} heap = { .lock = PTHREAD_MUTEX_INITIALIZER };

tutti_status tti_device_heap_alloc(struct tti_gpu *gpu, size_t nbytes, void **out)
{
	struct piece *piece = tti_zalloc(sizeof(*piece));
	tutti_status st;

	if (!piece)
		return tti_fail(TUTTI_ENOMEM, "memory of a GPU: out of memory of the host");
	st = tti_gpu_memory_create(gpu, nbytes, &piece->memory);
	if (st != TUTTI_OK) {
		tti_free(piece);
		return st;
	}
	piece->nbytes = nbytes;
	piece->pid = getpid();
	*out = (void *)(uintptr_t)piece->memory->at;
	pthread_mutex_lock(&heap.lock);
	piece->next = heap.first;
	heap.first = piece;
	pthread_mutex_unlock(&heap.lock);
	return TUTTI_OK;
}

bool tti_device_heap_free(void *memory)
{
	struct piece **at = &heap.first, *found;

	pthread_mutex_lock(&heap.lock);
	while (*at && (*at)->memory->at != (uintptr_t)memory)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&heap.lock);
	if (!found)
		return false;
	if (found->pid == getpid()) {
		tti_lending_take_back_everywhere(found->memory->at, found->memory->nbytes);
		tti_gpu_memory_free(found->memory);
	}
	tti_free(found);
	return true;
}

bool tti_device_heap_has(uint64_t at, size_t nbytes)
{
	bool found = false;

	pthread_mutex_lock(&heap.lock);
	for (const struct piece *piece = heap.first; piece && !found; piece = piece->next)
		found = tti_span_covers(piece->memory->at, piece->nbytes, at, nbytes);
	pthread_mutex_unlock(&heap.lock);
	return found;
}

bool tti_device_heap_overlaps(uint64_t at, size_t nbytes)
{
	bool found = false;

	pthread_mutex_lock(&heap.lock);
	for (const struct piece *piece = heap.first; piece && !found; piece = piece->next)
		found = tti_spans_overlap(piece->memory->at, piece->nbytes, at, nbytes);
	pthread_mutex_unlock(&heap.lock);
	return found;
}

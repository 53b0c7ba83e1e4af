/* SPDX-License-Identifier: BSD-3-Clause */
/* What a stream is and has. */
#include <stdlib.h>

#include "engine/stream_impl.h"

int tti_cuda_stream_busy(int device, struct tti_cuda_point **out, size_t *n)
{
	struct tti_cuda_stream_list *of = &tti_cuda_streams[device];
	struct tti_cuda_point *points = NULL;
	size_t room = 0, count;

	tti_cuda_streams_begin();
	for (;;) {
		count = 0;
		pthread_mutex_lock(&of->lock);
		for (struct tti_cuda_stream *each = of->first; each; each = each->next) {
			if (tti_cuda_stream_done(each) >= tti_cuda_stream_queued(each))
				continue;
			if (count < room)
				points[count] = tti_cuda_stream_point(each);
			count++;
		}
		pthread_mutex_unlock(&of->lock);
		*n = count < room ? count : room;
		*out = points;
		if (count <= room)
			return 0;
		for (size_t at = 0; at < *n; at++)
			tti_cuda_point_release(&points[at]);
		free(points);
		room = 2 * count;
		points = malloc(room * sizeof(*points));
		if (!points)
			return tti_cuda_fail(TTI_CUDA_ENOMEM,
					     "out of memory: %zu bytes to wait for %zu streams",
					     room * sizeof(*points), count);
	}
}

int tti_cuda_stream_device(const struct tti_cuda_stream *stream)
{
	return stream->device;
}

bool tti_cuda_stream_is_legacy(const struct tti_cuda_stream *stream)
{
	return stream->role == TTI_CUDA_STREAM_LEGACY;
}

unsigned tti_cuda_stream_flags(const struct tti_cuda_stream *stream)
{
	return stream->flags;
}

int tti_cuda_stream_priority(const struct tti_cuda_stream *stream)
{
	return stream->priority;
}

uint64_t tti_cuda_stream_id(const struct tti_cuda_stream *stream)
{
	return stream->id;
}

enum tti_cuda_stream_role tti_cuda_stream_role(const struct tti_cuda_stream *stream)
{
	return stream->role;
}

struct tti_cuda_capture *tti_cuda_stream_capture(struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->capture, memory_order_acquire);
}

int tti_cuda_stream_ncaptured(int device)
{
	return atomic_load(&tti_cuda_streams[device].ncaptured);
}

/* Under the lock of captures. */
void tti_cuda_stream_set_capture(struct tti_cuda_stream *stream, struct tti_cuda_capture *capture)
{
	struct tti_cuda_stream_list *of = &tti_cuda_streams[stream->device];
	const int more = (capture ? 1 : 0) - (tti_cuda_stream_capture(stream) ? 1 : 0);

	if (tti_cuda_stream_waits_for_legacy(stream))
		atomic_fetch_add(&of->ncaptured, more);
	atomic_store_explicit(&stream->capture, capture, memory_order_release);
}

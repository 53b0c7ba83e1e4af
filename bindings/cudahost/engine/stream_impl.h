/* SPDX-License-Identifier: BSD-3-Clause */
/* What a stream is, for stream.c and stream_get.c. */
#ifndef TUTTI_CUDAHOST_ENGINE_STREAM_IMPL_H
#define TUTTI_CUDAHOST_ENGINE_STREAM_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/internal.h"

struct tti_cuda_item {
	struct tti_cuda_item *next;
	struct tti_cuda_job job;
};

struct tti_cuda_stream {
	_Atomic uint32_t holds; /* by itself while it runs, and by points */
	int device;
	unsigned flags;
	int priority;
	uint64_t id;
	enum tti_cuda_stream_role role;
	_Atomic(struct tti_cuda_capture *) capture;

	pthread_mutex_t lock;
	pthread_cond_t more, passed; /* for its thread, and for those who wait for a count */
	struct tti_cuda_item *first, **end;
	_Atomic uint64_t queued, done;
	uint64_t wanted; /* the least count that somebody waits for, or NOBODY */
	bool has_thread;
	bool sleeps; /* the thread, until `more` */
	bool ends;
	int held; /* what those who wait are told; 0: the thread is not held */
	char why[256];

	uint64_t joined_legacy;    /* a job waits for that count of the legacy stream, or did */
	uint64_t joined_by_legacy; /* the reverse; under the device's lock */
	struct tti_cuda_stream *next, **link; /* of the device; under its lock */
};

struct tti_cuda_stream_list {
	pthread_mutex_t lock; /* who has it may take a stream's */
	struct tti_cuda_stream *first;
	_Atomic(struct tti_cuda_stream *) legacy;
	_Atomic int ncaptured; /* of those that wait for the legacy stream */
};

extern struct tti_cuda_stream_list tti_cuda_streams[TTI_CUDA_DEVICES_MOST];

/* Called before the lists are used. */
void tti_cuda_streams_begin(void);

static inline bool tti_cuda_stream_waits_for_legacy(const struct tti_cuda_stream *stream)
{
	return stream->role != TTI_CUDA_STREAM_LEGACY &&
	       !(stream->flags & TTI_CUDA_STREAM_NON_BLOCKING);
}

static inline uint64_t tti_cuda_stream_queued(const struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->queued, memory_order_acquire);
}

static inline uint64_t tti_cuda_stream_done(const struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->done, memory_order_acquire);
}

#endif

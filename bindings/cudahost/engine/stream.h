/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, each with a thread that runs what is queued, in order.
 *
 * The thread starts with the first job. A stream that is destroyed runs what it has and ends by
 * itself.
 *
 * The legacy default stream of a device and the device's other streams wait for each other, as
 * CUDA has it, but for those with TTI_CUDA_STREAM_NON_BLOCKING.
 *
 * While a stream is captured (graph.h), jobs become nodes of the graph instead. */
#ifndef TUTTI_CUDAHOST_ENGINE_STREAM_H
#define TUTTI_CUDAHOST_ENGINE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#define TTI_CUDA_STREAM_NON_BLOCKING 1u

#pragma GCC visibility push(default)

struct tti_cuda_stream;
struct tti_cuda_capture;

/* What a stream runs. A job in a graph runs once for each launch, and is dropped with the graph;
 * else it runs once and is dropped then. */
struct tti_cuda_job {
	int (*run)(void *arg);   /* 0, or what the stream fails with from now on */
	void (*drop)(void *arg); /* NULL: nothing is to be freed */
	void *arg;
	int kind; /* TTI_CUDA_NODE_*, of graph.h */
	/* NULL, or in place of run(), and in a graph alone: each launch calls it, in the thread that
	 * launches, to queue in the stream of the launch what takes the place of the job. 0, or what
	 * the launch fails with. `stream` is a handle for stream_get(). */
	int (*launch)(void *arg, void *stream);
};

/* A moment of a stream: when all jobs up to this number have run. A stream of NULL is past. */
struct tti_cuda_point {
	struct tti_cuda_stream *stream;
	uint64_t number;
};

/* Owner: the caller, who destroys it. The device is the current one. */
int tti_cuda_stream_create(unsigned flags, int priority, struct tti_cuda_stream **out);
int tti_cuda_stream_destroy(struct tti_cuda_stream *stream);

/* NULL and 1 are the legacy stream of the current device, 2 is that of the calling thread; anything
 * else is what create() gave. NULL with an error: EHANDLE, ENOMEM. */
struct tti_cuda_stream *tti_cuda_stream_get(const void *handle, bool null_is_per_thread,
					    int *error);

/* What get() takes for this stream, in a thread that has its device. */
void *tti_cuda_stream_handle(struct tti_cuda_stream *stream);

bool tti_cuda_stream_is_legacy(const struct tti_cuda_stream *stream);
int tti_cuda_stream_device(const struct tti_cuda_stream *stream);
unsigned tti_cuda_stream_flags(const struct tti_cuda_stream *stream);
int tti_cuda_stream_priority(const struct tti_cuda_stream *stream);
uint64_t tti_cuda_stream_id(const struct tti_cuda_stream *stream);

/* Queue a job; the job is dropped if that fails. A node of the graph while the stream is captured:
 * ECAPTURED if the capture is invalid. EIMPLICIT in the legacy stream while a blocking stream is
 * captured. What fails in a job is not told here, but by synchronize(). */
int tti_cuda_stream_push(struct tti_cuda_stream *stream, const struct tti_cuda_job *job);

/* What is queued by now. The point holds the stream until it is released. */
struct tti_cuda_point tti_cuda_stream_point(struct tti_cuda_stream *stream);
void tti_cuda_point_release(struct tti_cuda_point *point);
bool tti_cuda_point_is_past(const struct tti_cuda_point *point);
/* 0, or what the stream is held with. */
int tti_cuda_point_wait(const struct tti_cuda_point *point);

/* Let all that is queued in `stream` from now on wait for the point. */
int tti_cuda_stream_await(struct tti_cuda_stream *stream, const struct tti_cuda_point *point);

/* Wait for what is queued: 0, or what a job of the device failed with. Such an error stays. Later
 * jobs run all the same, as others may wait for them. ECAPTURE while the stream is captured, or
 * another's capture forbids it (capture_forbids()), and that capture is invalid; EPOOL in a job of a
 * stream, which could wait for itself. The legacy stream waits for the blocking streams, too. */
int tti_cuda_stream_synchronize(struct tti_cuda_stream *stream);
/* ENOTREADY where something is queued or runs, else as synchronize(). */
int tti_cuda_stream_query(struct tti_cuda_stream *stream);
/* All streams of a device; ECAPTURE where one is captured. */
int tti_cuda_device_synchronize(int device);

/* For a job that cannot go on, as a collective whose peer has died: its stream is held, so that nothing behind it
 * runs on data that is not there, until is_over(arg) is not 0. Meanwhile functions that wait for the
 * stream, or for one that waits for it, return `error` with the text `why`, and those that ask say
 * ENOTREADY. EPOOL in a thread that runs no job. */
int tti_cuda_stream_hold(int error, const char *why, int (*is_over)(void *arg), void *arg);

/* The capture that the stream takes part in, or NULL. Borrowed; for graph.c. */
struct tti_cuda_capture *tti_cuda_stream_capture(struct tti_cuda_stream *stream);
void tti_cuda_stream_set_capture(struct tti_cuda_stream *stream, struct tti_cuda_capture *capture);

#pragma GCC visibility pop

#endif

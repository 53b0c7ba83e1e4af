/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: moments of streams, and when they were. */
#ifndef TUTTI_CUDAHOST_ENGINE_EVENT_H
#define TUTTI_CUDAHOST_ENGINE_EVENT_H

#include "engine/stream.h"

#define TTI_CUDA_EVENT_NO_TIMING 2u
#define TTI_CUDA_EVENT_IPC       4u

#pragma GCC visibility push(default)

struct tti_cuda_event;

/* Owner: the caller, who destroys it, also while it is queued somewhere. */
int tti_cuda_event_create(unsigned flags, struct tti_cuda_event **out);
int tti_cuda_event_destroy(struct tti_cuda_event *event);

/* For other processes, of one with TTI_CUDA_EVENT_IPC, which they open while this process has it: EINVAL for
 * others. An event that is opened is destroyed like one that is created. */
int tti_cuda_event_get_handle(struct tti_cuda_event *event, uint8_t out[64]);
int tti_cuda_event_open_handle(const uint8_t handle[64], struct tti_cuda_event **out);

/* In a stream that is captured: the event is a moment of the capture. */
int tti_cuda_event_record(struct tti_cuda_event *event, struct tti_cuda_stream *stream);
/* An event that was never recorded is past. One of a capture lets the stream join that capture. */
int tti_cuda_event_await(struct tti_cuda_event *event, struct tti_cuda_stream *stream);

/* 0, ENOTREADY (query alone), ECAPTUREDEVENT, EINVAL for one of a capture that has ended; ECAPTURE
 * where a capture forbids it. */
int tti_cuda_event_query(struct tti_cuda_event *event);
int tti_cuda_event_synchronize(struct tti_cuda_event *event);
/* ENOTREADY while one is not past; EHANDLE for one without timing or never recorded. */
int tti_cuda_event_elapsed(struct tti_cuda_event *from, struct tti_cuda_event *to, float *out_ms);

/* Jobs for nodes of graphs (TTI_CUDA_NODE_RECORD and _AWAIT); each holds the event. A launch awaits
 * all events of its graph first, as they were recorded before it, and records them as of itself. */
int tti_cuda_event_record_job(struct tti_cuda_event *event, struct tti_cuda_job *out);
int tti_cuda_event_await_job(struct tti_cuda_event *event, struct tti_cuda_job *out);

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_STREAM_H
#define TTI_GPU_CUDA_STREAM_H

/* Streams, events, and what is put into a stream. A stream or event is CUDA's own: those of the
 * program can be passed. NULL is the default stream, for which the primary context is meant.
 *
 * While a stream is captured, what is put into it becomes part of a graph, as with all of CUDA.
 *
 * Owner, threads, errors: cuda.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda.h"

/* -- Streams and events ------------------------------------------------------------- */

/* One that does not wait for the default stream. is_urgent: of the highest priority. */
TUTTI_CHECKED tutti_status tti_gpu_stream_create(struct tti_gpu *gpu, bool is_urgent, void **out);
void tti_gpu_stream_destroy(struct tti_gpu *gpu, void *stream); /* NULL is fine */
TUTTI_CHECKED tutti_status tti_gpu_stream_wait(struct tti_gpu *gpu, void *stream);
/* TUTTI_AGAIN: there is work in it. */
TUTTI_CHECKED tutti_status tti_gpu_stream_query(struct tti_gpu *gpu, void *stream);
/* Whether a stream of the program is of this device: else TUTTI_EINVAL. */
TUTTI_CHECKED tutti_status tti_gpu_stream_check(struct tti_gpu *gpu, void *stream);

/* Without times. */
TUTTI_CHECKED tutti_status tti_gpu_event_create(struct tti_gpu *gpu, void **out);
void tti_gpu_event_destroy(struct tti_gpu *gpu, void *event); /* NULL is fine */
TUTTI_CHECKED tutti_status tti_gpu_event_record(struct tti_gpu *gpu, void *event, void *stream);
/* Work that comes into the stream later waits until the event has happened. */
TUTTI_CHECKED tutti_status tti_gpu_event_await(struct tti_gpu *gpu, void *event, void *stream);

/* -- Into a stream -------------------------------------------------------------------- */

/* By the copy engines; each is memory of a device, of any in reach, or of the host. */
TUTTI_CHECKED tutti_status tti_gpu_copy(struct tti_gpu *gpu, uint64_t to, uint64_t from,
					size_t nbytes, void *stream);
/* Work that comes into the stream later waits until a word of pinned memory, as kernels reach it, is at_least,
 * counted in a circle. */
TUTTI_CHECKED tutti_status tti_gpu_word_await(struct tti_gpu *gpu, uint64_t word, uint32_t at_least,
					      void *stream);
/* Call `run` on a thread of the driver. It may not call CUDA, and is not called if the device has
 * failed. */
TUTTI_CHECKED tutti_status tti_gpu_call(struct tti_gpu *gpu, void (*run)(void *arg), void *arg,
					void *stream);

/* -- Capture ---------------------------------------------------------------------------- */

struct tti_gpu_capture {
	bool is_active;
	uint64_t id; /* of the capture: no other one of the process has it */
	void *graph;
};

/* TUTTI_EINVAL: the capture has become invalid. */
TUTTI_CHECKED tutti_status tti_gpu_capture(struct tti_gpu *gpu, void *stream,
					   struct tti_gpu_capture *out);

/* Call `end` once the graph that is being captured, and all that is made of it, is gone, on a thread
 * of the driver: it may not call CUDA. TUTTI_EUNSUPPORTED, quietly: the driver does not tell; `end` is
 * not called then, nor after any other error. */
TUTTI_CHECKED tutti_status tti_gpu_capture_keep(struct tti_gpu *gpu,
						const struct tti_gpu_capture *capture,
						void (*end)(void *arg), void *arg);

#endif

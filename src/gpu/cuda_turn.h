/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_TURN_H
#define TTI_GPU_CUDA_TURN_H

/* Turns of the host in a stream of CUDA: the stream waits until the host has done something.
 *
 *     stream   kernels | event | wait until word >= 1 | kernels | event | wait until word >= 2
 *     host               tti_gpu_turn_await(), the work, tti_gpu_turn_end(): word += 1
 *
 * The driver calls no function of the host, because one of its threads may call those of all streams,
 * and the work of one stream may wait for that of another.
 *
 * Owner: tti_gpu_turns_close(). Threads: one at a time adds turns, and one at a time, perhaps another,
 * ends them in the same order. Errors: cuda.h. */

#include "gpu/cuda.h"

struct tti_gpu_turns;

/* Of a stream of any device; of a default stream: of the current one. */
TUTTI_CHECKED tutti_status tti_gpu_turns_open(void *stream, struct tti_gpu_turns **out);
/* All turns have ended. Waits until the stream has seen that, and for nothing else that the device does.
 * NULL is fine. */
void tti_gpu_turns_close(struct tti_gpu_turns *turns);

/* What comes into the stream later waits for one more tti_gpu_turn_end(). *event is for
 * tti_gpu_turn_await(). TUTTI_EUNSUPPORTED: the stream is captured. After an error there is no turn. */
TUTTI_CHECKED tutti_status tti_gpu_turn_add(struct tti_gpu_turns *turns, void **event);
/* Wait until the stream has come to the turn. An error: the device has failed, and never will. */
TUTTI_CHECKED tutti_status tti_gpu_turn_await(struct tti_gpu_turns *turns, void *event);
/* The stream goes on. */
void tti_gpu_turn_end(struct tti_gpu_turns *turns);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDAHOST_CAPTURES_H
#define TESTS_CUDAHOST_CAPTURES_H

/* Captures that begin and end as a test expects. */

#include "cudahost/graphs.h"

#define GLOBAL  TTI_CUDA_CAPTURE_GLOBAL
#define THREAD  TTI_CUDA_CAPTURE_THREAD
#define RELAXED TTI_CUDA_CAPTURE_RELAXED

static inline void begin(struct tti_cuda_stream *stream, enum tti_cuda_capture_mode mode)
{
	assert_ok(tti_cuda_capture_begin(stream, mode, NULL, NULL, 0));
}

static inline struct tti_cuda_graph *end(struct tti_cuda_stream *stream)
{
	struct tti_cuda_graph *graph = NULL;

	assert_ok(tti_cuda_capture_end(stream, &graph));
	assert_non_null(graph);
	return graph;
}

static inline void end_with(int error, struct tti_cuda_stream *stream)
{
	struct tti_cuda_graph *graph = (struct tti_cuda_graph *)stream;

	assert_error(error, tti_cuda_capture_end(stream, &graph));
	assert_null(graph);
}

static inline enum tti_cuda_capture_state state_of(struct tti_cuda_stream *stream)
{
	struct tti_cuda_capture_info info;

	tti_cuda_capture_get(stream, &info);
	return info.state;
}

#endif

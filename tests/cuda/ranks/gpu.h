/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_GPU_H
#define TESTS_CUDA_GPU_H

/* Buffers of ranks with and without a device, for tests with the driver on host memory. Memory of
 * its devices is guarded: the address that the library gets can be neither read nor written, and the
 * test itself looks at it elsewhere.
 *
 * Owner: the test, gpu_free(). Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda.h"
#include "tutti/tutti.h"

struct gpu_buffer {
	struct tti_gpu *gpu; /* NULL: of the host */
	char *memory;        /* as the library gets it */
	char *view;          /* as the test reads and writes it */
	size_t nbytes;
	struct tti_gpu_memory *own; /* that the buffer is, if TEST_MEMORY is fd */
};

/* Of a device, -1: of the host. Ends the test if there is none. It is such as cudaMalloc() gives; if the
 * variable TEST_MEMORY is "fd", such as a program makes that shares it by file descriptors. */
void gpu_alloc(struct gpu_buffer *out, int device, size_t nbytes);
/* Pinned memory of the host, by that device. */
void gpu_alloc_pinned(struct gpu_buffer *out, int device, size_t nbytes);
void gpu_free(struct gpu_buffer *buffer);
/* Where the test reaches other memory of the GPU of a buffer; nothing of *out is to be freed. */
void gpu_view(const struct gpu_buffer *of, void *memory, struct gpu_buffer *out);

/* Wait until all threads of kernels have ended, which they may do after they have said that a call is done. */
void gpu_wait_for_kernels(struct tti_gpu *gpu);

/* A stream of the buffer's device, which is wrapped. */
struct gpu_stream {
	struct tti_gpu *gpu;
	void *cuda;
	tutti_stream_t tutti;
};

void gpu_stream_open(struct gpu_stream *out, const struct gpu_buffer *buffer);
/* As the program waits: by CUDA alone. */
void gpu_stream_wait(const struct gpu_stream *stream);
/* The status of the stream of Tutti's. */
tutti_status gpu_stream_close(struct gpu_stream *stream);
/* Nothing behind this in the stream begins before *open. */
void gpu_stream_hold(const struct gpu_stream *stream, _Atomic bool *open);

/* What is put into the stream between begin and end is a graph; what captured streams wait for and
 * are waited for by is, too. */
void gpu_capture_begin(const struct gpu_stream *stream);
void *gpu_capture_end(const struct gpu_stream *stream);
void gpu_graph_launch(void *graph, const struct gpu_stream *stream);
void gpu_graph_free(void *graph, const struct gpu_stream *stream);
/* The second stream waits for the first. */
void gpu_stream_join(const struct gpu_stream *first, const struct gpu_stream *second);

#endif

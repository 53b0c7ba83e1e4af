/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_GPU_H
#define TESTS_CUDA_GPU_H

/* Buffers of ranks with and without a device, for tests with the driver on host memory. Memory of
 * its devices is guarded: the address that the library gets can be neither read nor written, and the
 * test itself looks at it elsewhere.
 *
 * Owner: the test, gpu_free(). Threads: any. */

#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda.h"

struct gpu_buffer {
	struct tti_gpu *gpu; /* NULL: of the host */
	char *memory;        /* as the library gets it */
	char *view;          /* as the test reads and writes it */
	size_t nbytes;
};

/* Of a device, -1: of the host. Ends the test if there is none. */
void gpu_alloc(struct gpu_buffer *out, int device, size_t nbytes);
/* Pinned memory of the host, by that device. */
void gpu_alloc_pinned(struct gpu_buffer *out, int device, size_t nbytes);
void gpu_free(struct gpu_buffer *buffer);

/* A stream of a device, and what the program waits for there. */
void *gpu_stream(struct gpu_buffer *buffer);
void gpu_stream_wait(struct gpu_buffer *buffer, void *stream);
void gpu_stream_free(struct gpu_buffer *buffer, void *stream);

#endif

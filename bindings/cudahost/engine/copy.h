/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that both libraries queue: copies, fills and calls of the program's functions. They are
 * what the nodes of graphs say of themselves, whichever library made them. */
#ifndef TUTTI_CUDAHOST_ENGINE_COPY_H
#define TUTTI_CUDAHOST_ENGINE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/graph.h"
#include "engine/stream.h"

#pragma GCC visibility push(default)

/* Rows of bytes, in planes: the next row is `pitch` bytes behind, the next plane `rows` rows. */
struct tti_cuda_place {
	void *address;
	size_t pitch;
	size_t rows;
};

/* depth planes of height rows of width bytes each. `kind` has the numbers of cudaMemcpyKind; 4 (by the
 * addresses) is always right. */
struct tti_cuda_copy {
	struct tti_cuda_place to, from;
	size_t width, height, depth;
	int kind;
};

/* `value` in each element of `element` bytes (1, 2, 4): width elements a row. */
struct tti_cuda_fill {
	struct tti_cuda_place to;
	size_t width, height, depth;
	unsigned element;
	uint32_t value;
};

struct tti_cuda_call {
	void (*function)(void *user);
	void *user;
};

/* A copy of nbytes in one row. */
struct tti_cuda_copy tti_cuda_copy_of(void *to, const void *from, size_t nbytes, int kind);

/* Behind what is queued. As with CUDA, host memory that CUDA does not know has been read, or
 * written, when this returns, but in a stream that is captured. Copies that go over the end of memory
 * are EINVAL. */
int tti_cuda_copy_queue(const struct tti_cuda_copy *copy, struct tti_cuda_stream *stream);
int tti_cuda_fill_queue(const struct tti_cuda_fill *fill, struct tti_cuda_stream *stream);
int tti_cuda_call_queue(const struct tti_cuda_call *call, struct tti_cuda_stream *stream);

/* What cudaMemcpyBatchAsync() asks for: at least one copy, and lists of attributes of which each is of a
 * copy that comes later than that of the one before, the first of copy 0; not in the legacy stream,
 * and not in one that is captured (ECAPTURE, and the capture goes on). */
int tti_cuda_batch_check(const char *what, size_t ncopies, const size_t *starts, size_t nattributes,
			 struct tti_cuda_stream *stream);

/* What cudaMemcpy() and cudaMemset() do: behind what is queued, and done when this returns, unless
 * all of the memory is devices'. As in CUDA, captures of other streams allow it. */
int tti_cuda_copy_wait(const struct tti_cuda_copy *copy, struct tti_cuda_stream *stream);
int tti_cuda_fill_wait(const struct tti_cuda_fill *fill, struct tti_cuda_stream *stream);

/* For nodes of graphs. The job has its own memory, which its drop() frees. */
int tti_cuda_copy_job(const struct tti_cuda_copy *copy, struct tti_cuda_job *out);
int tti_cuda_fill_job(const struct tti_cuda_fill *fill, struct tti_cuda_job *out);
int tti_cuda_call_job(const struct tti_cuda_call *call, struct tti_cuda_job *out);

/* What a node of that kind does; NULL for another kind. Borrowed. */
const struct tti_cuda_copy *tti_cuda_node_copy(const struct tti_cuda_node *node);
const struct tti_cuda_fill *tti_cuda_node_fill(const struct tti_cuda_node *node);
const struct tti_cuda_call *tti_cuda_node_call(const struct tti_cuda_node *node);

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_VECTOR_H
#define BENCH_GPU_VECTOR_H

/* Vectors of float32 whose sums are exact, filled and compared by the host through pinned memory.
 *
 * Owner: the caller. Threads: each with a staging of its own. */

#include "runtime.h"

/* Bytes of the pinned memory that a vector goes through. */
#define VECTOR_STAGING ((size_t)16 << 20)

/* The input of a rank of at most 8. */
void vector_fill(void *vector, size_t nbytes, int rank, void *staging, cudaStream_t stream);

/* How many elements are not the sum over n ranks, of all, or of `nparts` parts of VECTOR_STAGING bytes
 * each, the first and the last among them. 0: of all. */
size_t vector_count_wrong(const void *vector, size_t nbytes, int n, int nparts, void *staging,
			  cudaStream_t stream);

#endif

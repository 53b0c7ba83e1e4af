/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_SOAK_H
#define BENCH_GPU_SOAK_H

/* What a call of the soak is, and what it has to leave. Elements are small whole numbers, so that sums
 * are exact in every type, and they differ by rank, by place and by how often the call was made.
 *
 * Owner: values. Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

#define SOAK_RANKS 8
/* Of a buffer of all ranks' parts; around it are bytes that nobody may touch. */
#define SOAK_BYTES ((size_t)8 << 20)
#define SOAK_GUARD ((size_t)256)

enum soak_buffers { SOAK_PLAIN, SOAK_REGISTERED, SOAK_PINNED, SOAK_KINDS };

struct soak_call {
	tutti_collective coll;
	tutti_type type;
	tutti_op op;
	size_t count; /* of the call */
	int root, n;
	bool in_place;
	enum soak_buffers buffers;
	int stream;      /* which of the rank's two */
	int ntimes;      /* by a graph, if more than one */
	uint64_t number; /* of the call: other values */
};

/* Another number for every call; `is_small`: short vectors. */
void soak_draw(struct soak_call *out, int n, uint64_t number, uint64_t seed, bool is_small);

uint64_t soak_random(uint64_t *state);

/* Bytes of a rank's input and output, and where they begin in one buffer if they share it. */
struct soak_place {
	size_t in_bytes, out_bytes, in_at, out_at;
};
struct soak_place soak_place(const struct soak_call *call, int rank);

/* The input of a rank at the time-th time, and what its output must be then. */
void soak_fill(const struct soak_call *call, int rank, int time, void *input);
/* The first element of `output` that is wrong; `count` of the output: none is. */
size_t soak_first_wrong(const struct soak_call *call, int rank, int time, const void *output);

tutti_status soak_submit(const struct soak_call *call, int rank, const void *input, void *output,
			 tutti_comm_t comm, tutti_stream_t stream);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_PASS_H
#define TTI_DEVICE_PASS_H

/* What one operation does with data, once it is known where all of it lies: the interpreter (run.h)
 * makes a pass of it, and the reduction (reduce.h) runs that. And what the threads of a block share.
 * C17, and C++17 as nvcc compiles it.
 *
 * Owner: memory of the block. Threads: written by any of the block before a barrier, and read by all
 * after it. */

#include <stdint.h>

#include "device/abi.h"

/* A source or a result of an operation, where this thread reaches it. */
struct tti_dev_end {
	void *at;
	uint32_t flag; /* of the words of that message */
	int32_t peer; /* the data goes as words, to or from that rank; -1: it lies there as it is */
};

/* Combine src[0], src[1], ... from the left, element by element, into each of dst[], as
 * tti_reducer_run() of src/reduce does, with the same bits. All is read before it is written: dst[]
 * may be equal to any source, and does not overlap it otherwise. */
struct tti_dev_pass {
	const struct tti_dev_end *src; /* [nsrc], 1 or more */
	const struct tti_dev_end *dst; /* [ndst], 1 or more */
	uint64_t count;                /* elements, 1 or more */
	const uint64_t *scalar;        /* one element, by which src[input_at] is multiplied */
	int32_t nsrc, ndst;
	int32_t input_at; /* -1: no source is multiplied */
	int32_t type, op; /* tutti_type, tutti_op */
	int32_t type_size;
	int32_t divisor; /* of AVG; 0: the result is not divided. 0 if nsrc is 1 */
	int32_t words;   /* some sources and results are words (peer >= 0) */
};

/* What the threads of a block need of an operation once they have found its operands: one says it before
 * the first barrier, and all forget the rest, as a pass needs the registers. The operation after it has
 * another one, since threads may be behind until the barrier there. */
struct tti_dev_work {
	uint64_t count; /* elements of this block */
	int32_t nsrc, ndst;
	int32_t input_at, divisor;
	int32_t in, nin, out, nout; /* as in struct tti_dev_operation */
};

/* A block keeps a program of so many bytes, and so many lanes, in memory of its own: each acquire of
 * a counter empties the first-level cache, and what an operation is has to be asked for one
 * after the other (which operation, which queues, which lanes). */
#define TTI_DEV_KEPT_BYTES 8192
#define TTI_DEV_KEPT_LANES 32

/* What the threads of a block share: what the block works on, which one of them says before the first
 * barrier, and some words by which they come to agree. After it come the sources and the results of
 * the operation that runs, and what is kept. It is in the memory that a multiprocessor has for a
 * block, as registers are few. */
struct tti_dev_shared {
	const struct tti_dev_call *call;
	const struct tti_dev_program *prog;
	const struct tti_dev_operation *operation;
	const int32_t *queue_of, *lane_of, *peer_of;
	struct tti_dev_lane *lane;      /* [2 * n], of this block */
	struct tti_dev_lane *kept_lane; /* [nqueues], by queue; NULL: they are not kept */
	const uint64_t *program;        /* what is copied to `kept`; NULL: nothing is */
	uint64_t *kept;
	const struct tti_dev_extent *extents; /* NULL: all chunks are alike */
	struct tti_dev_control *control;
	struct tti_dev_state *state;
	/* Of calls with by_chunk. */
	const struct tti_queue *queue;
	const int32_t *queued, *pred_of, *pred, *local;
	struct tti_dev_work work[2];
	uint64_t scalar[2];      /* by which inputs are multiplied */
	uint64_t scratch;        /* of this block */
	uint32_t block, nblocks; /* of the rank */
	uint32_t splits;         /* what receives and sends on does so in two halves */
	int32_t words;           /* messages go as words */
	uint32_t verdict;   /* enum tti_dev_result, once a thread knows that the call ends early */
	uint32_t shown;     /* 1 + the thread that says what it waits for; 0: none does */
	uint32_t chosen[3]; /* by_chunk: the turn of the place that runs next, by turns of three */
	uint32_t noperands; /* the most sources, and the most results, of an operation */
};

/* Bytes of that for a launch. */
static inline uint32_t tti_dev_shared_bytes(uint32_t noperands)
{
	return (uint32_t)(sizeof(struct tti_dev_shared) +
			  2 * noperands * sizeof(struct tti_dev_end) + TTI_DEV_KEPT_BYTES +
			  TTI_DEV_KEPT_LANES * sizeof(struct tti_dev_lane));
}

#endif

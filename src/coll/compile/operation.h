/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_COMPILE_OPERATION_H
#define TTI_COLL_COMPILE_OPERATION_H

/* Operations and queues, as compile.h describes them: plain data of fixed width, without pointers,
 * for the engine and for kernels on GPUs. C17, and C++17 as nvcc compiles it: this includes
 * <stdint.h> alone.
 *
 * Owner: values. */

#include <stdint.h>

/* The buffer that holds a chunk's value. */
enum tti_place {
	TTI_PLACE_NONE,
	TTI_PLACE_INPUT,
	TTI_PLACE_OUTPUT,
	TTI_PLACE_SCRATCH, /* written, but no output of this rank */
};

struct tti_operation {
	int32_t chunk;
	int16_t nin, nout;
	int32_t in, out;     /* first index into queue_of[]: the queues used       */
	int32_t then;        /* the operation that sends on what this one writes, if
			    that is the only thing it waits for; else -1       */
	int32_t succ, nsucc; /* index into succs[]: operations that wait for us */
	int16_t npred;       /* how many this one waits for                     */
	uint8_t from;        /* enum tti_place of the local value, NONE: not used */
	uint8_t to;          /* enum tti_place of the result, NONE: not written   */
	int16_t local_at;    /* position of the local value among the sources     */
	uint8_t final;       /* the result is complete: AVG divides               */
	uint8_t stage;       /* as its steps (program.h)                          */
	int32_t scratch;     /* which of the chunks that are in scratch at any time; -1 */
	/* Only in memory programs: */
	int16_t nget, nput; /* peers whose input is a source; whose output gets the result */
	int32_t get, put;   /* first index into peer_of[]; those of get[] in the order of ranks,
			       local_at being among them */
	uint8_t sync;       /* NOTIFY or WAIT: messages are empty and there is no chunk */
};

/* A queue is one direction of one peer's link: its operations in FIFO order. */
struct tti_queue {
	int32_t peer;
	int32_t is_send;
	int32_t first, n; /* index into queued[] */
};

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_COMPILE_H
#define TTI_COLL_COMPILE_H

/* From steps to operations: what the engine runs. An operation is
 *
 *     value = reduce(local value, message from in[0], in[1], ...)
 *     value goes to memory (if it writes) and as a message to out[0], out[1], ...
 *
 * and so covers SEND, RECV, RECV_REDUCE and COPY, alone and combined:
 *   - RECV_REDUCEs in a row on one chunk become one n-ary operation, its sources
 *     (own value included) in the order of ranks, so that ranks that reduce the
 *     same values get the same bits. Only where the algorithm means one: rows from
 *     several peers whose messages are all independent of each other;
 *   - SENDs in a row of one chunk to several peers become one fan-out operation.
 *     All fan-outs of a program have one queue in common, so they, and the shared
 *     slots they take, are in order over all blocks (else they stay apart).
 * A chunk that is input and output and that no step writes gets a COPY at the end.
 * Operations are numbered in the order of the program; run strictly in that order
 * they do not deadlock either.
 *
 * Two operations that touch one chunk, one of them writing, run in order because
 * of succs[], or because they share a queue (then there is no edge between them). In place, the
 * same holds for an operation that reads an input and one that writes the output that lies there.
 * Where the program has these two the other way round, the result is kept in scratch, and a COPY is
 * added after the last read of the input.
 *
 * Memory programs (program.h): an operation also takes what the inputs of peers hold, and
 * its result goes into the outputs of peers as well:
 *   - GET_REDUCEs in a row on one chunk become one n-ary reduction, own value included, in
 *     the order of ranks;
 *   - PUTs in a row of one chunk become one operation, and it joins the GET, GET_REDUCE or
 *     COPY on the chunk that stands before it: one pass;
 *   - NOTIFYs to different peers in a row become one operation, and so do WAITs.
 * Operations run strictly in their order, those of a run block by block; succs[] and `then`
 * say nothing. Scratch is numbered anew in each run.
 *
 * Receiving and sending on are separate operations here. The engine does them in
 * one pass where both are ready (`then`), which changes no order.
 *
 * A compiled program is plain data of fixed width, whose only pointers are those to its own
 * arrays: another interpreter (a GPU's) can read it.
 *
 * Owner: tti_compiled_release(). */

#include <stdbool.h>
#include <stdint.h>

#include "coll/compile/operation.h"
#include "coll/program.h"

struct tti_compiled {
	tutti_collective coll;
	const char *algorithm;
	int32_t rank, n, root, nchunks;
	int32_t nopers, nqueues, nlocal;
	struct tti_operation *oper;
	struct tti_queue *queue; /* sends and receives, any order              */
	int32_t *queued;         /* operations of all queues, one after another */
	int32_t *queue_of;       /* queues of an operation's in[] and out[]     */
	int32_t *succs;
	int32_t *local;   /* operations without any queue, in order      */
	int32_t *step;    /* of each operation: the program's step it begins
			   with; -1: the COPY that compiling adds      */
	int32_t nstages;  /* 1 or more */
	int32_t nscratch; /* chunks that are in scratch at any time */
	bool is_memory;
	int32_t *peer_of; /* ranks of operations' get[] and put[] */
	bool exchange;    /* the program is: SEND the one chunk to all others,
			  n-ary RECV_REDUCE from all others. Has a fast path */
	/* The operations of a memory program's first meeting (program.h), which say where buffers
	 * are. */
	int32_t nopening;
};

/* TUTTI_EINVAL (quiet, see tti_error_text()) names rank, step and chunk of a step that no
 * rank can run: a peer or chunk out of range, a value used before there is one. */
TUTTI_CHECKED tutti_status tti_compile(const struct tti_program *prog, struct tti_compiled *out);
void tti_compiled_release(struct tti_compiled *compiled);

#endif

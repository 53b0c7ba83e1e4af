/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_HANDOFF_H
#define TTI_COLL_HANDOFF_H

/* tutti_handoff(): one vector goes from the ranks of one side to those of another. A shape
 * (handoff_shape.h) says who sends which part of it to whom, and how it spreads inside a host. A
 * receiver passes a slice on while the next one comes in.
 *
 * Pure. Owner: who called. Threads: any. */

#include "coll/algorithms/handoff_shape.h"
#include "coll/program.h"
#include "util/vec.h"

/* Neighbouring elements that go the same way. */
struct tti_handoff_chunk {
	size_t first, count;
	int32_t source, dest; /* which part of a sharded side it is of, -1: of a whole one */
	uint32_t at;          /* where in that part, in units: stripes that are there carry it;
			     in memory: the rank that moves it */
};

struct tti_handoff_chunks {
	TTI_VEC(struct tti_handoff_chunk) list;
};

void tti_handoff_chunks_release(struct tti_handoff_chunks *chunks);

/* Cut a vector of `count` elements where the parts of either side and the stripes of the shape
 * begin, these where lines of `line` elements do: at least one chunk. Two counts that give
 * chunks of the same sources, dests and units have the same program.
 *
 * Without a shape, for ranks that reach the buffers of all: cut where the parts of either side
 * begin, and into an even part for each rank to move, whichever side it is on; `at` is that
 * rank. */
TUTTI_CHECKED tutti_status tti_handoff_split(const struct tti_handoff_call *call,
					     const struct tti_handoff_shape *shape, size_t count,
					     size_t line, struct tti_handoff_chunks *out);

/* The program of one rank over these chunks; without a shape a memory program. */
TUTTI_CHECKED tutti_status tti_handoff_program(const struct tti_handoff_call *call,
					       const struct tti_handoff_shape *shape,
					       const struct tti_handoff_chunks *chunks, int rank,
					       struct tti_program *out);

#endif

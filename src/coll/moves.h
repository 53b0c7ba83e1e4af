/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MOVES_H
#define TTI_COLL_MOVES_H

/* Collectives where every rank reaches the buffers of all: no chunk is passed on, each rank
 * does its part of the whole call where the data lies. All the ranks' parts together are the
 * call; no two of them touch the same element of an output, and what one writes none reads.
 * So they need an agreement before (all buffers are ready) and one after (all are done),
 * and nothing in between.
 *
 *     all_reduce      reduce part r of all inputs into part r of all outputs
 *     reduce          reduce part r of all inputs into part r of the root's output
 *     reduce_scatter  reduce row r of all inputs into the own output
 *     broadcast       copy part r of the root's input into all outputs
 *     all_gather      copy the own input into row r of all outputs
 *
 * A part is one of n of the vector. Every byte is read once and written once, but for what
 * several ranks want. A reduction takes its sources in the order of ranks.
 *
 * Pure; any thread. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/inspect.h"

#define TTI_EVERY (-1)

struct tti_move {
	int from, to; /* a rank, or TTI_EVERY: reduced from all inputs, written to all outputs */
	size_t from_at, to_at, count; /* elements */
};

/* Whether there are moves for it. */
bool tti_moves_know(tutti_collective coll);

/* What rank `rank` of n does in a call of `count` (as the user counts); moves of 0 elements
 * are possible. Parts are cut at multiples of `grain` elements. */
struct tti_move tti_move_of(tutti_collective coll, int root, int rank, int n, size_t count,
			    size_t grain);

#endif

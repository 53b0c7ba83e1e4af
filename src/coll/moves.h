/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_MOVES_H
#define TTI_COLL_MOVES_H

/* Collectives where every rank reaches the buffers of all: no chunk is passed on, each rank
 * does its part of the whole call where the data lies. All the ranks' parts together are the
 * call; no two of them touch the same element of an output, and what one writes none reads.
 * So they need an agreement before (all buffers are ready) and one after (all are done),
 * and nothing in between; where a rank touches only the root's beside its own, with the root.
 *
 *     all_reduce      reduce part r of all inputs into part r of all outputs
 *     reduce          reduce part r of all inputs into part r of the root's output
 *     reduce_scatter  reduce row r of all inputs into the own output
 *     broadcast       copy part r of the root's input into all outputs
 *     all_gather      copy the own input into row r of all outputs
 *     gather          copy the own input into row r of the root's output
 *     scatter         copy row r of the root's input into the own output
 *     handoff         copy part r of the vector from a rank that has it to all who get it
 *     all_to_all      swap, with each other rank, one half of what the two have for each other
 *
 * A part is one of n of the vector. Every byte is read once and written once, but for what
 * several ranks want. A reduction takes its sources in the order of ranks. A swap is one thing
 * done by one rank, so either buffer, or both, may be in place.
 *
 * Where each rank has a count of its own, rows follow each other, and each rank reduces a part of
 * all of them (reduce_scatter_v), as one row may be all there is. But in all_gather_v each rank
 * has its own place for row r, which is where the output that a move means begins.
 *
 * Pure; any thread. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/inspect.h"
#include "tutti/tutti.h"

#define TTI_EVERY (-1)

struct tti_move {
	int from, to; /* a rank, or TTI_EVERY: reduced from all inputs, written to all outputs */
	size_t from_at, to_at, count; /* elements */
	/* As many the other way, from the input of `to` into the output of `from`. */
	bool swaps;
	size_t back_from_at, back_to_at;
};

/* A call of n ranks. */
struct tti_moved {
	tutti_collective coll;
	int root, n;
	size_t count;                /* as the user counts; of uneven rows the sum */
	const size_t *counts;        /* of each rank, in calls that have them         */
	const tutti_side *from, *to; /* of a handoff                           */
	size_t grain;                /* parts are cut at multiples of so many elements */
};

/* Whether there are moves for it. */
bool tti_moves_know(tutti_collective coll);

/* Whether a rank touches, beside its own buffers, those of the root alone. */
bool tti_moves_are_root_s(tutti_collective coll);

/* Whether other ranks touch a buffer of this one. */
bool tti_moves_touch(const struct tti_moved *call, int rank);

/* Of a handoff: how many elements a rank has, or gets. */
size_t tti_moves_side_count(const struct tti_moved *call, const tutti_side *side, int rank);

/* How many moves each rank makes, and the one of them that rank `rank` makes; moves of 0
 * elements are possible. */
int tti_moves_each(const struct tti_moved *call);
struct tti_move tti_move_at(const struct tti_moved *call, int rank, int index);

#endif

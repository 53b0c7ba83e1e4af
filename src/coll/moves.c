/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/moves.h"

bool tti_moves_know(tutti_collective coll)
{
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE || coll == TUTTI_REDUCE_SCATTER ||
	       coll == TUTTI_BROADCAST || coll == TUTTI_ALL_GATHER;
}

/* Part `rank` of n: begins at a multiple of grain, unless there is little. */
static struct tti_move part_of(int rank, int n, size_t count, size_t grain)
{
	const size_t even = (count + (size_t)n - 1) / (size_t)n;
	const size_t part = even > grain ? (even + grain - 1) / grain * grain : even;
	const size_t first = part * (size_t)rank;
	struct tti_move move = { 0 };

	if (first >= count)
		return move;
	move.from_at = move.to_at = first;
	move.count = count - first < part ? count - first : part;
	return move;
}

struct tti_move tti_move_of(tutti_collective coll, int root, int rank, int n, size_t count,
			    size_t grain)
{
	const size_t row = (size_t)rank * count;
	struct tti_move move;

	if (coll == TUTTI_ALL_GATHER)
		return (struct tti_move){
			.from = rank, .to = TTI_EVERY, .to_at = row, .count = count
		};
	if (coll == TUTTI_REDUCE_SCATTER)
		return (struct tti_move){
			.from = TTI_EVERY, .to = rank, .from_at = row, .count = count
		};
	move = part_of(rank, n, count, grain);
	move.from = coll == TUTTI_BROADCAST ? root : TTI_EVERY;
	move.to = coll == TUTTI_REDUCE ? root : TTI_EVERY;
	return move;
}

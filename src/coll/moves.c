/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/moves.h"

bool tti_moves_know(tutti_collective coll)
{
	switch ((int)coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_REDUCE:
	case TUTTI_REDUCE_SCATTER:
	case TUTTI_REDUCE_SCATTER_V:
	case TUTTI_BROADCAST:
	case TUTTI_ALL_GATHER:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_GATHER:
	case TUTTI_SCATTER:
	case TUTTI_ALL_TO_ALL:
		return true;
	default:
		return false;
	}
}

bool tti_moves_are_root_s(tutti_collective coll)
{
	return coll == TUTTI_GATHER || coll == TUTTI_SCATTER;
}

/* Part `index` of n: begins at a multiple of grain, unless there is little. */
static struct tti_move part_of(int index, int n, size_t count, size_t grain)
{
	const size_t even = (count + (size_t)n - 1) / (size_t)n;
	const size_t part = even > grain ? (even + grain - 1) / grain * grain : even;
	const size_t first = part * (size_t)index;
	struct tti_move move = { 0 };

	if (first >= count)
		return move;
	move.from_at = move.to_at = first;
	move.count = count - first < part ? count - first : part;
	return move;
}

/* What a pair has for each other: the lower rank does the first half of it. From the next rank
 * on, so that not all come to one at a time; what a rank has for itself last. */
static struct tti_move swap_of(const struct tti_moved *call, int rank, int index)
{
	const int peer = (rank + 1 + index) % call->n;
	const size_t own_row = (size_t)rank * call->count, row = (size_t)peer * call->count;
	struct tti_move move = part_of(rank > peer, 2, call->count, call->grain);
	const size_t first = move.from_at;

	if (peer == rank)
		return (struct tti_move){
			.from = rank, .to = rank, .from_at = row, .to_at = row, .count = call->count
		};
	move.from = rank;
	move.to = peer;
	move.from_at = move.back_to_at = row + first;
	move.to_at = move.back_from_at = own_row + first;
	move.swaps = true;
	return move;
}

static size_t row_of(const struct tti_moved *call, int rank, size_t *count)
{
	size_t row = 0;

	*count = call->counts ? call->counts[rank] : call->count;
	if (!call->counts)
		return (size_t)rank * call->count;
	for (int before = 0; before < rank; before++)
		row += call->counts[before];
	return row;
}

int tti_moves_each(const struct tti_moved *call)
{
	return call->coll == TUTTI_ALL_TO_ALL ? call->n : 1;
}

struct tti_move tti_move_at(const struct tti_moved *call, int rank, int index)
{
	struct tti_move move = { .from = rank, .to = rank };
	const size_t row = row_of(call, rank, &move.count);

	switch ((int)call->coll) {
	case TUTTI_ALL_TO_ALL:
		return swap_of(call, rank, index);
	case TUTTI_ALL_GATHER:
	case TUTTI_GATHER:
		move.to = call->coll == TUTTI_GATHER ? call->root : TTI_EVERY;
		move.to_at = row;
		return move;
	case TUTTI_ALL_GATHER_V:
		move.to = TTI_EVERY;
		return move;
	case TUTTI_REDUCE_SCATTER:
	case TUTTI_REDUCE_SCATTER_V:
	case TUTTI_SCATTER:
		move.from = call->coll == TUTTI_SCATTER ? call->root : TTI_EVERY;
		move.from_at = row;
		return move;
	default:
		break;
	}
	move = part_of(rank, call->n, call->count, call->grain);
	move.from = call->coll == TUTTI_BROADCAST ? call->root : TTI_EVERY;
	move.to = call->coll == TUTTI_REDUCE ? call->root : TTI_EVERY;
	return move;
}

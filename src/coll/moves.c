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
	case TUTTI_HANDOFF:
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

/* -- Handoffs ------------------------------------------------------------------ */

struct range {
	size_t first, end;
};

/* What the ranks at place `place` of a side have of the vector. */
static struct range range_of(const tutti_side *side, int place, size_t count)
{
	size_t first = 0, length = count;

	if (side->sharded)
		tutti_part(count, side->n, place, &first, &length);
	return (struct range){ first, first + length };
}

static int place_of(const tutti_side *side, int rank)
{
	for (int place = 0; place < side->n; place++)
		if (side->ranks[place] == rank)
			return place;
	return -1;
}

size_t tti_moves_side_count(const struct tti_moved *call, const tutti_side *side, int rank)
{
	const int place = place_of(side, rank);
	const struct range range = range_of(side, place < 0 ? 0 : place, call->count);

	return place < 0 ? 0 : range.end - range.first;
}

/* Sources of different parts: several that have the whole are one. */
static int nsources(const struct tti_moved *call)
{
	return call->from->sharded ? call->from->n : 1;
}

/* Each source's part with each part that somebody gets, as far as they meet in the part of the
 * vector that is this rank's to move. Who has what it gets is served by itself, since it may be
 * in place. */
static struct tti_move handoff_of(const struct tti_moved *call, int rank, int index)
{
	const int source = index % nsources(call), place = index / nsources(call);
	const struct range had = range_of(call->from, source, call->count);
	const struct range got = range_of(call->to, place, call->count);
	const struct tti_move own = part_of(rank, call->n, call->count, call->grain);
	const int to = call->to->ranks[place];
	struct tti_move move = { .from = call->from->ranks[source], .to = to };
	size_t first = own.from_at, end = own.from_at + own.count;

	if (!call->from->sharded)
		move.from = place_of(call->from, to) >= 0 ? to
							  : call->from->ranks[rank % call->from->n];
	first = first > had.first ? first : had.first;
	first = first > got.first ? first : got.first;
	end = end < had.end ? end : had.end;
	end = end < got.end ? end : got.end;
	if (first < end) {
		move.from_at = first - had.first;
		move.to_at = first - got.first;
		move.count = end - first;
	}
	return move;
}

/* -- All ----------------------------------------------------------------------- */

bool tti_moves_touch(const struct tti_moved *call, int rank)
{
	if (call->coll == TUTTI_HANDOFF)
		return tti_moves_side_count(call, call->from, rank) > 0 ||
		       tti_moves_side_count(call, call->to, rank) > 0;
	return !tti_moves_are_root_s(call->coll) || rank == call->root;
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

/* Rows of any length: each rank reduces a part of all of them together, as one row alone may
 * be all there is. */
static struct tti_move part_of_row(const struct tti_moved *call, int rank, int owner)
{
	struct tti_move move = part_of(rank, call->n, call->count, call->grain);
	size_t first = move.from_at, end = move.from_at + move.count, length;
	const size_t row = row_of(call, owner, &length);

	first = first > row ? first : row;
	end = end < row + length ? end : row + length;
	return (struct tti_move){ .from = TTI_EVERY,
				  .to = owner,
				  .from_at = first,
				  .to_at = first - row,
				  .count = first < end ? end - first : 0 };
}

int tti_moves_each(const struct tti_moved *call)
{
	if (call->coll == TUTTI_HANDOFF)
		return nsources(call) * call->to->n;
	return call->coll == TUTTI_ALL_TO_ALL || call->coll == TUTTI_REDUCE_SCATTER_V ? call->n : 1;
}

struct tti_move tti_move_at(const struct tti_moved *call, int rank, int index)
{
	struct tti_move move = { .from = rank, .to = rank };
	const size_t row = row_of(call, rank, &move.count);

	if (call->coll == TUTTI_HANDOFF)
		return handoff_of(call, rank, index);
	if (call->coll == TUTTI_REDUCE_SCATTER_V)
		return part_of_row(call, rank, (rank + index) % call->n);
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

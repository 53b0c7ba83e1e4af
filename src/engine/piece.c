/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/piece.h"

#include "engine/bound.h"
#include "reduce/reduce.h"

static void find_in_extent(const struct tti_extent *extent, struct tti_piece *piece)
{
	const size_t offset = (size_t)piece->block * extent->slice;

	piece->first = extent->first + offset;
	if (offset < extent->count)
		piece->count = extent->count - offset < extent->slice ? extent->count - offset
								      : extent->slice;
}

struct tti_piece tti_piece_at(const struct tti_job *job, const struct tti_oper *op, int32_t block)
{
	const struct tti_layout *layout = &job->program.layout;
	const size_t slice = job->program.slice, offset = (size_t)block * slice;
	const int32_t chunk = op->chunk;
	struct tti_piece piece = { .block = block, .scratch = op->scratch };
	size_t part = 0, end;

	if (layout->extents) {
		find_in_extent(&layout->extents[chunk], &piece);
		return piece;
	}
	/* Divided where it must be only: this is on the way of every step. */
	if (chunk < layout->parts) {
		part = (size_t)chunk;
	} else if (layout->parts == 1) {
		piece.row = (size_t)chunk;
	} else {
		piece.row = (size_t)(chunk / layout->parts);
		part = (size_t)(chunk % layout->parts);
	}
	piece.first = part * layout->chunk_count + offset;
	end = (part + 1) * layout->chunk_count;
	if (end > layout->row_count)
		end = layout->row_count;
	if (piece.first < end)
		piece.count = end - piece.first < slice ? end - piece.first : slice;
	return piece;
}

/* Rows that are of pairs of ranks: in the input by the second, in the output by the first. */
static size_t in_row(const struct tti_layout *layout, size_t row)
{
	return layout->paired ? row % layout->paired : row;
}

static size_t out_row(const struct tti_layout *layout, size_t row)
{
	return layout->paired ? row / layout->paired : row;
}

size_t tti_piece_offset(const struct tti_job *job, uint8_t place, const struct tti_piece *piece)
{
	const struct tti_layout *layout = &job->program.layout;
	const struct tti_bound *bound = job->program.bound;
	const size_t byte = piece->first * layout->type_size;

	switch ((enum tti_place)place) {
	case TTI_PLACE_INPUT:
		return in_row(layout, piece->row) * layout->in_stride + byte;
	case TTI_PLACE_OUTPUT:
		return out_row(layout, piece->row) * layout->out_stride + byte;
	case TTI_PLACE_SCRATCH: {
		const size_t row = (size_t)(piece->block & (bound->window - 1));
		const size_t index = row * (size_t)bound->prog.nscratch + (size_t)piece->scratch;

		return index * job->program.slice * layout->type_size;
	}
	case TTI_PLACE_NONE:
		break;
	}
	return 0;
}

void *tti_piece_memory(const struct tti_job *job, uint8_t place, const struct tti_piece *piece)
{
	const struct tti_layout *layout = &job->program.layout;
	const size_t offset = tti_piece_offset(job, place, piece);

	switch ((enum tti_place)place) {
	case TTI_PLACE_INPUT:
		/* Not written: an input is never a destination. Integers, since
		 * a call may move nothing and have no buffers. */
		return (void *)((uintptr_t)layout->input + offset);
	case TTI_PLACE_OUTPUT:
		return (void *)((uintptr_t)layout->output + offset);
	case TTI_PLACE_SCRATCH:
		return (char *)job->engine->scratch + offset;
	case TTI_PLACE_NONE:
		break;
	}
	return NULL;
}

void *tti_first_slot(const struct tti_job *job, int32_t index, const void *dst, size_t nbytes)
{
	const struct tti_bound *bound = job->program.bound;
	const struct tti_post *post = &bound->post[bound->post_of[index]];

	if (post->links[0]->ops->shares_slots && (dst || !job->program.reducer.scalars) &&
	    !tti_copy_way_through(post->way, nbytes))
		return NULL;
	return post->slot;
}

const void *tti_combine(struct tti_job *job, const struct tti_oper *op, int nsrc, void *dst,
			void *slot, size_t count)
{
	const struct tti_reducer *reducer = &job->program.reducer;
	const size_t nbytes = count * job->program.layout.type_size;
	const void **source = job->engine->sources;
	/* A user's own input, which may have to be multiplied. */
	const int input_at = op->from != TTI_PLACE_INPUT ? -1 : op->local_at;

	if (count == 0)
		return slot;
	if (nsrc > 1 || (input_at >= 0 && reducer->scalars)) {
		void *const first = slot ? slot : dst;

		tti_reducer_run(reducer, first, slot ? dst : NULL, source, nsrc, input_at, count,
				op->final);
		return first;
	}
	if (slot)
		tti_copy(slot, source[0], nbytes, false);
	if (dst && dst != source[0])
		tti_copy(dst, slot ? slot : source[0], nbytes, job->program.is_large);
	return slot ? slot : source[0];
}

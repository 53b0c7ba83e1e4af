/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/operand.h"

#include "engine/executable.h"

/* A slice of a chunk: its row, its first element, counted in the row, and how many. */
struct piece {
	size_t row, first, count;
};

static struct piece piece_of_extent(const struct tti_extent *extent, int32_t block)
{
	const size_t offset = (size_t)block * extent->slice;
	struct piece piece = { .first = offset };

	if (offset < extent->count)
		piece.count = extent->count - offset < extent->slice ? extent->count - offset
								     : extent->slice;
	return piece;
}

static struct piece piece_at(const struct tti_job *job, int32_t chunk, int32_t block)
{
	const struct tti_layout *layout = &job->program.layout;
	const size_t slice = job->program.slice;
	struct piece piece = { 0 };
	size_t part = 0, end;

	if (layout->extents)
		return piece_of_extent(&layout->extents[chunk], block);
	/* Divided where it must be only: this is on the way of every step. */
	if (chunk < layout->parts) {
		part = (size_t)chunk;
	} else if (layout->parts == 1) {
		piece.row = (size_t)chunk;
	} else {
		piece.row = (size_t)(chunk / layout->parts);
		part = (size_t)(chunk % layout->parts);
	}
	piece.first = part * layout->chunk_count + (size_t)block * slice;
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

static size_t offset_of(const struct tti_job *job, const struct tti_operation *op, uint8_t place,
			const struct piece *piece, int32_t block)
{
	const struct tti_layout *layout = &job->program.layout;
	const struct tti_executable *exec = job->program.exec;
	const struct tti_extent *extent = layout->extents ? &layout->extents[op->chunk] : NULL;
	const size_t byte = piece->first * layout->type_size;

	switch ((enum tti_place)place) {
	case TTI_PLACE_INPUT:
		if (extent)
			return extent->first * layout->type_size + byte;
		return in_row(layout, piece->row) * layout->in_stride + byte;
	case TTI_PLACE_OUTPUT:
		if (extent)
			return extent->to * layout->type_size + byte;
		return out_row(layout, piece->row) * layout->out_stride + byte;
	case TTI_PLACE_SCRATCH: {
		const size_t row = (size_t)(block & (exec->window - 1));
		const size_t index = row * (size_t)exec->prog.nscratch + (size_t)op->scratch;

		return index * job->program.slice * layout->type_size;
	}
	case TTI_PLACE_NONE:
		break;
	}
	return 0;
}

struct tti_operand tti_operand_at(const struct tti_job *job, const struct tti_operation *op,
				  int32_t block)
{
	const struct piece piece = piece_at(job, op->chunk, block);

	return (struct tti_operand){
		.from = offset_of(job, op, op->from, &piece, block),
		.to = offset_of(job, op, op->to, &piece, block),
		.count = piece.count,
		.nbytes = piece.count * job->program.layout.type_size,
	};
}

struct tti_offsets tti_offsets_at(const struct tti_job *job, const struct tti_operation *op,
				  int32_t block)
{
	const struct piece piece = piece_at(job, op->chunk, block);

	return (struct tti_offsets){
		.from = offset_of(job, op, op->from, &piece, block),
		.to = offset_of(job, op, op->to, &piece, block),
		.input = offset_of(job, op, TTI_PLACE_INPUT, &piece, block),
		.output = offset_of(job, op, TTI_PLACE_OUTPUT, &piece, block),
		.count = piece.count,
		.nbytes = piece.count * job->program.layout.type_size,
	};
}

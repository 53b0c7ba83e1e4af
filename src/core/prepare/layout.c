/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/layout.h"

#include "core/call/args.h"
#include "core/comm.h"
#include "util/error.h"
#include "util/vec.h"

#define CACHE_LINE 64

size_t tti_vector_bytes(const struct tti_comm *comm, const struct tti_args *args)
{
	const size_t nbytes = args->count * tutti_type_size(args->type);

	return tti_collective_sends_rows(args->coll) || tti_collective_gets_rows(args->coll)
		       ? nbytes * (size_t)comm->n
		       : nbytes;
}

/* A row cut into `parts` pieces that begin on cache lines of their own. */
static size_t piece_of(size_t count, size_t parts, size_t type_size)
{
	const size_t piece = (count + parts - 1) / parts, line = CACHE_LINE / type_size;

	return piece > line ? (piece + line - 1) / line * line : piece;
}

static struct tti_layout even_layout(const struct tti_args *args, int nchunks, int n)
{
	const size_t type_size = tutti_type_size(args->type);
	const size_t row = args->count * type_size;
	const bool by_pair = tti_collective_is_by_pair(args->coll);
	const int parts = by_pair                                 ? nchunks / n / n
			  : tti_collective_is_by_rank(args->coll) ? nchunks / n
								  : nchunks;

	return (struct tti_layout){
		.input = args->send,
		.output = args->recv,
		.type_size = type_size,
		.parts = parts,
		.chunk_count = piece_of(args->count, (size_t)parts, type_size),
		.row_count = args->count,
		/* A rank has only one row of its own input or output. */
		.in_stride = tti_collective_sends_rows(args->coll) ? row : 0,
		.out_stride = tti_collective_gets_rows(args->coll) ? row : 0,
		.paired = by_pair ? (size_t)n : 0,
	};
}

/* -- Uneven rows --------------------------------------------------------------------- */

tutti_status tti_extents_need(struct tti_extents *extents, size_t n)
{
	return tti_vec_reserve((void **)&extents->at, &extents->room, n, sizeof(*extents->at))
		       ? TUTTI_OK
		       : tti_fail(TUTTI_ENOMEM, "a call of %zu chunks: out of memory", n);
}

/* The chunks of one rank's row; the longest. */
static size_t cut_row(struct tti_extent *at, size_t parts, size_t first, size_t count,
		      size_t type_size)
{
	const size_t piece = piece_of(count, parts, type_size);

	for (size_t part = 0; part < parts; part++) {
		const size_t begin = part * piece < count ? part * piece : count;
		const size_t left = count - begin;

		at[part] = (struct tti_extent){ .first = first + begin,
						.to = first + begin,
						.count = left < piece ? left : piece };
	}
	return piece < count ? piece : count;
}

void tti_extents_slice(struct tti_extent *at, size_t nchunks, size_t longest, size_t slice,
		       size_t type_size)
{
	const size_t nblocks = longest ? (longest + slice - 1) / slice : 1;

	for (size_t i = 0; i < nchunks; i++) {
		const size_t part = piece_of(at[i].count, nblocks, type_size);

		at[i].slice = part < slice ? part : slice;
	}
}

/* Rows are packed, or lie where the caller says. A buffer that holds only the rank's own row is
 * treated as its part of a buffer with all rows. */
static tutti_status uneven_layout(struct tti_comm *comm, const struct tti_args *args, int nchunks,
				  size_t slice_bytes, struct tti_layout *out)
{
	const bool gathers = !tti_collective_reduces(args->coll);
	const size_t *counts = gathers ? args->recv_counts : args->send_counts;
	const size_t type_size = tutti_type_size(args->type), parts = (size_t)(nchunks / comm->n);
	const size_t slice = slice_bytes / type_size ? slice_bytes / type_size : 1;
	size_t longest = 0, packed = 0, own = 0;
	struct tti_extent *at;

	TTI_TRY(tti_extents_need(&comm->extents, (size_t)nchunks));
	at = comm->extents.at;
	for (int rank = 0; rank < comm->n; rank++) {
		const size_t first = gathers ? args->recv_displs[rank] : packed;
		const size_t most =
			cut_row(at + (size_t)rank * parts, parts, first, counts[rank], type_size);

		longest = most > longest ? most : longest;
		own = rank == comm->rank ? first * type_size : own;
		packed += counts[rank];
	}
	tti_extents_slice(at, (size_t)nchunks, longest, slice, type_size);
	*out = (struct tti_layout){
		.extents = at,
		.input = (const void *)((uintptr_t)args->send - (gathers ? own : 0)),
		.output = (void *)((uintptr_t)args->recv - (gathers ? 0 : own)),
		.type_size = type_size,
		.parts = nchunks,
		.chunk_count = longest,
		.row_count = args->count,
	};
	return TUTTI_OK;
}

tutti_status tti_layout_of(struct tti_comm *comm, const struct tti_args *args, int nchunks,
			   size_t slice_bytes, struct tti_layout *out)
{
	if (tti_has_counts(args->coll))
		return uneven_layout(comm, args, nchunks, slice_bytes, out);
	*out = even_layout(args, nchunks, comm->n);
	return TUTTI_OK;
}

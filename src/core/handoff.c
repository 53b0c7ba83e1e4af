/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff.h"

#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

#define CACHE_LINE 64

/* Blocks for each message of the longest way, and the least that is worth one. */
#define PIPELINE_BLOCKS 8
#define SLICE_LEAST     ((size_t)16 << 10)

static void drop(struct tti_handoff_agreed *agreed)
{
	if (!agreed || --agreed->users > 0)
		return;
	tti_free(agreed->shape);
	tti_free(agreed);
}

static void forget_memory(struct tti_handoff_memory *memory)
{
	tti_bound_free(memory->bound);
	tti_free(memory->extents);
	tti_handoff_chunks_release(&memory->chunks);
	*memory = (struct tti_handoff_memory){ 0 };
}

static void forget(struct tti_handoff_kept *kept)
{
	forget_memory(&kept->memory);
	tti_bound_free(kept->bound);
	tti_free(kept->extents);
	tti_handoff_chunks_release(&kept->chunks);
	drop(kept->agreed);
	tti_sides_drop(kept->sides);
	*kept = (struct tti_handoff_kept){ 0 };
}

void tti_handoffs_release(struct tti_comm *comm)
{
	for (int i = 0; comm->handoffs && i < TTI_HANDOFFS_KEPT; i++)
		forget(&comm->handoffs[i]);
	tti_free(comm->handoffs);
	comm->handoffs = NULL;
}

/* -- What is kept of a plan ---------------------------------------------------------- */

/* A free place, or that of the program that was not used for longest. */
static struct tti_handoff_kept *make_room(struct tti_comm *comm)
{
	struct tti_handoff_kept *oldest = &comm->handoffs[0];

	for (int i = 0; i < TTI_HANDOFFS_KEPT && oldest->sides; i++)
		if (!comm->handoffs[i].sides || comm->handoffs[i].used < oldest->used)
			oldest = &comm->handoffs[i];
	forget(oldest);
	return oldest;
}

/* A place for sides, with what is agreed of them. */
static struct tti_handoff_kept *begin(struct tti_comm *comm, const struct tti_args *args,
				      struct tti_handoff_agreed *agreed)
{
	struct tti_handoff_kept *kept = make_room(comm);

	kept->sides = tti_sides_take(args->sides);
	kept->is_short = tti_handoff_is_short(comm, args);
	kept->agreed = agreed;
	kept->used = comm->seq;
	agreed->users++;
	return kept;
}

tutti_status tti_handoff_make_room(struct tti_comm *comm, struct tti_handoff_agreed **out)
{
	*out = tti_zalloc(sizeof(**out));
	if (!comm->handoffs)
		comm->handoffs = tti_calloc(TTI_HANDOFFS_KEPT, sizeof(*comm->handoffs));
	if (*out && comm->handoffs)
		return TUTTI_OK;
	tti_free(*out);
	*out = NULL;
	return tti_fail(TUTTI_ENOMEM, "the plan of a handoff: out of memory");
}

void tti_handoff_keep(struct tti_comm *comm, const struct tti_args *args,
		      struct tti_handoff_agreed *room, struct tti_handoff_shape *shape, int depth)
{
	room->shape = shape;
	room->depth = depth;
	(void)begin(comm, args, room);
}

/* -- Finding ------------------------------------------------------------------------ */

/* The same parts of the same sides, chunk by chunk. */
static bool same_program(const struct tti_handoff_chunks *a, const struct tti_handoff_chunks *b)
{
	if (a->list.n != b->list.n)
		return false;
	for (size_t i = 0; i < a->list.n; i++)
		if (a->list.at[i].source != b->list.at[i].source ||
		    a->list.at[i].dest != b->list.at[i].dest ||
		    a->list.at[i].at != b->list.at[i].at)
			return false;
	return true;
}

static bool has_sides(const struct tti_handoff_kept *kept, const struct tti_args *args,
		      bool is_short)
{
	return kept->sides && kept->is_short == is_short &&
	       tti_sides_equal(kept->sides, args->sides);
}

static size_t line_of(const struct tti_args *args)
{
	return CACHE_LINE / tutti_type_size(args->type);
}

/* One with these sides; if possible one that was cut just so. */
static struct tti_handoff_kept *find_sides(const struct tti_comm *comm, const struct tti_args *args)
{
	const bool is_short = tti_handoff_is_short(comm, args);
	struct tti_handoff_kept *found = NULL;

	for (int i = 0; comm->handoffs && i < TTI_HANDOFFS_KEPT; i++) {
		struct tti_handoff_kept *kept = &comm->handoffs[i];

		if (!has_sides(kept, args, is_short))
			continue;
		found = kept;
		if (kept->bound && kept->count == args->count && kept->line == line_of(args))
			break;
	}
	return found;
}

bool tti_handoff_needs_plan(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);

	return !tti_handoff_is_direct(&call) && !find_sides(comm, args);
}

/* The one that has these chunks, or one that has none yet. */
static struct tti_handoff_kept *find_program(struct tti_comm *comm, const struct tti_args *args,
					     const struct tti_handoff_chunks *chunks)
{
	const bool is_short = tti_handoff_is_short(comm, args);

	for (int i = 0; i < TTI_HANDOFFS_KEPT; i++)
		if (has_sides(&comm->handoffs[i], args, is_short) &&
		    (!comm->handoffs[i].bound || same_program(&comm->handoffs[i].chunks, chunks)))
			return &comm->handoffs[i];
	return NULL;
}

/* The chunks of this count, which it takes over, in place of those of another. */
static tutti_status take_chunks(struct tti_handoff_kept *kept, const struct tti_args *args,
				struct tti_handoff_chunks *chunks)
{
	const size_t nchunks = chunks->list.n;

	if (!kept->extents)
		kept->extents = tti_calloc(nchunks, sizeof(*kept->extents));
	if (!kept->extents)
		return tti_fail(TUTTI_ENOMEM, "handoff of %zu chunks: out of memory", nchunks);
	tti_handoff_chunks_release(&kept->chunks);
	kept->chunks = *chunks;
	*chunks = (struct tti_handoff_chunks){ 0 };
	kept->count = args->count;
	kept->line = line_of(args);
	return TUTTI_OK;
}

static tutti_status build(struct tti_comm *comm, const struct tti_args *args,
			  struct tti_handoff_kept *kept)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	TTI_TRY(tti_handoff_program(&call, kept->agreed->shape, &kept->chunks, comm->rank, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	if (st == TUTTI_OK)
		st = tti_bound_create(&comm->engine, &compiled, &kept->bound);
	return st;
}

/* Chunks of this count; then the program that has them, or a new one. */
static tutti_status cut_and_find(struct tti_comm *comm, const struct tti_args *args,
				 struct tti_handoff_agreed *agreed, struct tti_handoff_kept **out)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	struct tti_handoff_chunks chunks;
	struct tti_handoff_kept *kept;
	tutti_status st;

	TTI_TRY(tti_handoff_cut(&call, agreed->shape, args->count, line_of(args), &chunks));
	kept = find_program(comm, args, &chunks);
	if (!kept) {
		agreed->users++; /* the place that is made free may be its last */
		kept = begin(comm, args, agreed);
		drop(agreed);
	}
	st = take_chunks(kept, args, &chunks);
	tti_handoff_chunks_release(&chunks);
	if (st == TUTTI_OK && !kept->bound)
		st = build(comm, args, kept);
	if (st == TUTTI_OK)
		*out = kept;
	else
		forget(kept);
	return st;
}

/* Parts for parts are never planned: they have an empty shape. */
static tutti_status keep_direct(struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_handoff_shape *none = tti_zalloc(sizeof(*none));
	struct tti_handoff_agreed *room;

	if (!none)
		return tti_fail(TUTTI_ENOMEM, "the plan of a handoff: out of memory");
	if (tti_handoff_make_room(comm, &room) != TUTTI_OK) {
		tti_free(none);
		return TUTTI_ENOMEM;
	}
	tti_handoff_keep(comm, args, room, none, 1);
	return TUTTI_OK;
}

/* What is agreed of the sides, with or without a program. */
static tutti_status find_agreed(struct tti_comm *comm, const struct tti_args *args,
				struct tti_handoff_kept **out)
{
	*out = find_sides(comm, args);
	if (*out)
		return TUTTI_OK;
	TTI_TRY(keep_direct(comm, args));
	*out = find_sides(comm, args);
	return TUTTI_OK;
}

static tutti_status find(struct tti_comm *comm, const struct tti_args *args,
			 struct tti_handoff_kept **out)
{
	struct tti_handoff_kept *kept = NULL;

	TTI_TRY(find_agreed(comm, args, &kept));
	if (!kept->bound || kept->count != args->count || kept->line != line_of(args))
		TTI_TRY(cut_and_find(comm, args, kept->agreed, &kept));
	kept->used = comm->seq;
	*out = kept;
	return TUTTI_OK;
}

/* -- Where it lies ------------------------------------------------------------------- */

static size_t longest_chunk(const struct tti_handoff_chunks *chunks)
{
	size_t longest = 0;

	for (size_t i = 0; i < chunks->list.n; i++)
		if (chunks->list.at[i].count > longest)
			longest = chunks->list.at[i].count;
	return longest;
}

/* Elements a step of the longest chunk: whole lines, but one element at least. */
static size_t choose_slice(const struct tti_comm *comm, const struct tti_handoff_kept *kept,
			   size_t longest, size_t type_size)
{
	const size_t blocks = PIPELINE_BLOCKS * (size_t)kept->agreed->depth;
	size_t slice = tti_params()->slice;

	if (slice == 0)
		slice = longest * type_size / blocks < SLICE_LEAST ? SLICE_LEAST
								   : longest * type_size / blocks;
	if (slice > comm->slot_bytes)
		slice = comm->slot_bytes;
	slice /= type_size;
	slice -= slice > kept->line ? slice % kept->line : 0;
	return slice ? slice : 1;
}

/* All chunks take as many blocks as the longest: so those of small shares stay behind
 * none. */
static void lay_out(const struct tti_handoff_kept *kept, size_t longest, size_t slice)
{
	const size_t nblocks = longest ? (longest + slice - 1) / slice : 1;

	for (size_t i = 0; i < kept->chunks.list.n; i++) {
		const struct tti_handoff_chunk *chunk = &kept->chunks.list.at[i];
		size_t part = (chunk->count + nblocks - 1) / nblocks;

		part = (part + kept->line - 1) / kept->line * kept->line;
		kept->extents[i] = (struct tti_extent){ .first = chunk->first,
							.to = chunk->first,
							.count = chunk->count,
							.slice = part < slice ? part : slice };
	}
}

/* Where element 0 of the vector would lie if a rank's part lies at `data`. */
static uintptr_t origin(const void *data, const tutti_side *side, int rank, size_t count,
			size_t type_size)
{
	size_t first, length;

	tti_side_range(side, rank, count, &first, &length);
	return (uintptr_t)data - first * type_size;
}

static struct tti_layout layout_of(const struct tti_comm *comm, const struct tti_args *args,
				   const struct tti_extent *extents, size_t longest)
{
	const size_t type_size = tutti_type_size(args->type), count = args->count;

	return (struct tti_layout){
		.extents = extents,
		.input = (const void *)origin(args->send, args->from, comm->rank, count, type_size),
		.output = (void *)origin(args->recv, args->to, comm->rank, count, type_size),
		.type_size = type_size,
		.parts = 1,
		.chunk_count = longest,
		.row_count = count,
	};
}

tutti_status tti_handoff_get(struct tti_comm *comm, const struct tti_args *args,
			     struct tti_bound **out, size_t *slice_bytes, struct tti_layout *layout)
{
	const size_t type_size = tutti_type_size(args->type);
	struct tti_handoff_kept *kept = NULL;
	size_t longest, slice;

	TTI_TRY(find(comm, args, &kept));
	longest = longest_chunk(&kept->chunks);
	slice = choose_slice(comm, kept, longest, type_size);
	lay_out(kept, longest, slice);
	*out = kept->bound;
	*slice_bytes = slice * type_size;
	*layout = layout_of(comm, args, kept->extents, longest);
	atomic_store_explicit(&comm->last_algorithm, "handoff", memory_order_relaxed);
	return TUTTI_OK;
}

/* -- In memory ----------------------------------------------------------------------- */

static tutti_status build_in_memory(struct tti_comm *comm, const struct tti_args *args,
				    const struct tti_handoff_chunks *chunks,
				    struct tti_handoff_memory *memory)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	const size_t nchunks = chunks->list.n;
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	forget_memory(memory);
	memory->extents = tti_calloc(nchunks, sizeof(*memory->extents));
	if (!memory->extents)
		return tti_fail(TUTTI_ENOMEM, "handoff of %zu chunks: out of memory", nchunks);
	TTI_TRY(tti_handoff_memory_program(&call, chunks, comm->rank, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	if (st == TUTTI_OK)
		st = tti_bound_create(&comm->engine, &compiled, &memory->bound);
	return st;
}

/* Chunks of this count, and the program that has them. */
static tutti_status cut_in_memory(struct tti_comm *comm, const struct tti_args *args,
				  struct tti_handoff_memory *memory)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	struct tti_handoff_chunks chunks;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_handoff_memory_cut(&call, args->count, line_of(args), &chunks));
	if (!memory->bound || !same_program(&memory->chunks, &chunks))
		st = build_in_memory(comm, args, &chunks, memory);
	tti_handoff_chunks_release(&memory->chunks);
	memory->chunks = chunks;
	return st;
}

tutti_status tti_handoff_get_in_memory(struct tti_comm *comm, const struct tti_args *args,
				       size_t slice_bytes, struct tti_bound **out,
				       struct tti_layout *layout)
{
	const size_t slice = slice_bytes / tutti_type_size(args->type);
	struct tti_handoff_kept *kept = NULL;
	struct tti_handoff_memory *memory;

	TTI_TRY(find_agreed(comm, args, &kept));
	kept->used = comm->seq;
	memory = &kept->memory;
	TTI_TRY(cut_in_memory(comm, args, memory));
	for (size_t i = 0; i < memory->chunks.list.n; i++)
		memory->extents[i] = (struct tti_extent){ .first = memory->chunks.list.at[i].first,
							  .to = memory->chunks.list.at[i].first,
							  .count = memory->chunks.list.at[i].count,
							  .slice = slice };
	*out = memory->bound;
	*layout = layout_of(comm, args, memory->extents, longest_chunk(&memory->chunks));
	return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff.h"

#include "core/comm.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

#define CACHE_LINE 64

/* Blocks for each message of the longest way, and the least that is worth one. */
#define PIPELINE_BLOCKS 8
#define SLICE_LEAST     ((size_t)16 << 10)

static void forget_program(struct tti_handoff_program *program)
{
	tti_bound_free(program->bound);
	tti_handoff_chunks_release(&program->chunks);
	*program = (struct tti_handoff_program){ 0 };
}

static void forget(struct tti_handoff_kept *kept)
{
	for (int i = 0; i < 2 * TTI_HANDOFF_CUTS; i++)
		forget_program(&kept->programs[i % 2].at[i / 2]);
	tti_free(kept->shape);
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

/* -- Plans ------------------------------------------------------------------------- */

tutti_status tti_handoff_make_room(struct tti_comm *comm)
{
	if (!comm->handoffs)
		comm->handoffs = tti_calloc(TTI_HANDOFFS_KEPT, sizeof(*comm->handoffs));
	return comm->handoffs ? TUTTI_OK
			      : tti_fail(TUTTI_ENOMEM, "the plan of a handoff: out of memory");
}

/* In a free place, or in that of the plan that was not used for longest: the same on all ranks. */
void tti_handoff_keep(struct tti_comm *comm, const struct tti_args *args,
		      struct tti_handoff_shape *shape, int depth)
{
	struct tti_handoff_kept *oldest = &comm->handoffs[0];

	for (int i = 0; i < TTI_HANDOFFS_KEPT && oldest->sides; i++)
		if (!comm->handoffs[i].sides || comm->handoffs[i].used < oldest->used)
			oldest = &comm->handoffs[i];
	forget(oldest);
	oldest->sides = tti_sides_take(args->sides);
	oldest->is_short = tti_handoff_is_short(comm, args);
	oldest->used = comm->seq;
	oldest->shape = shape;
	oldest->depth = depth;
}

static struct tti_handoff_kept *find_plan(const struct tti_comm *comm, const struct tti_args *args)
{
	const bool is_short = tti_handoff_is_short(comm, args);

	for (int i = 0; comm->handoffs && i < TTI_HANDOFFS_KEPT; i++) {
		struct tti_handoff_kept *kept = &comm->handoffs[i];

		if (kept->sides && kept->is_short == is_short &&
		    tti_sides_equal(kept->sides, args->sides))
			return kept;
	}
	return NULL;
}

bool tti_handoff_needs_plan(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);

	return !tti_handoff_is_direct(&call) && !find_plan(comm, args);
}

/* -- Programs ----------------------------------------------------------------------- */

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

/* The program that has these chunks, or a place for it, that of the oldest. */
static struct tti_handoff_program *place_of(struct tti_handoff_programs *programs,
					    const struct tti_handoff_chunks *chunks)
{
	struct tti_handoff_program *oldest;

	for (int i = 0; i < TTI_HANDOFF_CUTS; i++)
		if (programs->at[i].bound && same_program(&programs->at[i].chunks, chunks))
			return &programs->at[i];
	oldest = &programs->at[programs->nmade++ % TTI_HANDOFF_CUTS];
	forget_program(oldest);
	return oldest;
}

/* Chunks of this count; then the program that has them, or a new one. */
static tutti_status cut(struct tti_comm *comm, const struct tti_args *args,
			struct tti_handoff_kept *kept, bool in_memory, size_t line,
			struct tti_handoff_program **out)
{
	/* Parts for parts are never planned: they have an empty shape. */
	static const struct tti_handoff_shape none;
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	const struct tti_handoff_shape *shape = kept->shape ? kept->shape : &none;
	struct tti_handoff_program *program;
	struct tti_handoff_chunks chunks;
	struct tti_program prog;

	TTI_TRY(in_memory ? tti_handoff_memory_cut(&call, args->count, line, &chunks)
			  : tti_handoff_cut(&call, shape, args->count, line, &chunks));
	program = place_of(&kept->programs[in_memory], &chunks);
	tti_handoff_chunks_release(&program->chunks);
	program->chunks = chunks;
	program->count = args->count;
	program->line = line;
	*out = program;
	if (program->bound)
		return TUTTI_OK;
	TTI_TRY(in_memory ? tti_handoff_memory_program(&call, &program->chunks, comm->rank, &prog)
			  : tti_handoff_program(&call, shape, &program->chunks, comm->rank, &prog));
	return tti_programs_bind(comm, &prog, &program->bound);
}

static tutti_status find(struct tti_comm *comm, const struct tti_args *args, bool in_memory,
			 struct tti_handoff_kept **kept_out, struct tti_handoff_program **out)
{
	const size_t line = CACHE_LINE / tutti_type_size(args->type);
	struct tti_handoff_kept *kept = find_plan(comm, args);

	if (!kept) {
		TTI_TRY(tti_handoff_make_room(comm));
		tti_handoff_keep(comm, args, NULL, 1);
		kept = find_plan(comm, args);
	}
	kept->used = comm->seq;
	*kept_out = kept;
	for (int i = 0; i < TTI_HANDOFF_CUTS; i++) {
		*out = &kept->programs[in_memory].at[i];
		if ((*out)->bound && (*out)->count == args->count && (*out)->line == line)
			return TUTTI_OK;
	}
	return cut(comm, args, kept, in_memory, line, out);
}

/* -- Where it lies ------------------------------------------------------------------- */

/* Elements a step of the longest chunk: whole lines, but one element at least. */
static size_t choose_slice(const struct tti_comm *comm, int depth, size_t longest, size_t type_size)
{
	const size_t blocks = PIPELINE_BLOCKS * (size_t)depth, line = CACHE_LINE / type_size;
	size_t slice = tti_params()->slice;

	if (slice == 0)
		slice = longest * type_size / blocks < SLICE_LEAST ? SLICE_LEAST
								   : longest * type_size / blocks;
	if (slice > comm->slot_bytes)
		slice = comm->slot_bytes;
	slice /= type_size;
	slice -= slice > line ? slice % line : 0;
	return slice ? slice : 1;
}

/* Where element 0 of the vector would lie if a rank's part lies at `data`. */
static uintptr_t origin(const void *data, const tutti_side *side, int rank, size_t count,
			size_t type_size)
{
	size_t first, length;

	tti_side_range(side, rank, count, &first, &length);
	return (uintptr_t)data - first * type_size;
}

tutti_status tti_handoff_get(struct tti_comm *comm, const struct tti_args *args, bool in_memory,
			     struct tti_bound **out, size_t *slice_bytes, struct tti_layout *layout)
{
	const size_t type_size = tutti_type_size(args->type), count = args->count;
	struct tti_handoff_program *program;
	struct tti_handoff_kept *kept;
	size_t longest = 0, slice = *slice_bytes / type_size;
	struct tti_extent *at;

	TTI_TRY(find(comm, args, in_memory, &kept, &program));
	TTI_TRY(tti_extents_need(&comm->extents, program->chunks.list.n));
	at = comm->extents.at;
	for (size_t i = 0; i < program->chunks.list.n; i++) {
		const struct tti_handoff_chunk *chunk = &program->chunks.list.at[i];

		at[i] = (struct tti_extent){ .first = chunk->first,
					     .to = chunk->first,
					     .count = chunk->count,
					     .slice = slice };
		longest = chunk->count > longest ? chunk->count : longest;
	}
	if (!in_memory) {
		slice = choose_slice(comm, kept->depth, longest, type_size);
		/* So chunks of small shares stay behind none. */
		tti_extents_slice(at, program->chunks.list.n, longest, slice, type_size);
		*slice_bytes = slice * type_size;
		atomic_store_explicit(&comm->last_algorithm, "direct", memory_order_relaxed);
	}
	*out = program->bound;
	*layout = (struct tti_layout){
		.extents = at,
		.input = (const void *)origin(args->send, args->from, comm->rank, count, type_size),
		.output = (void *)origin(args->recv, args->to, comm->rank, count, type_size),
		.type_size = type_size,
		.parts = 1,
		.chunk_count = longest,
		.row_count = count,
	};
	return TUTTI_OK;
}

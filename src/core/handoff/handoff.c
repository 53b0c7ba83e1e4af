/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff/handoff.h"

#include "core/call/args.h"
#include "core/comm.h"
#include "core/handoff/sides.h"
#include "core/prepare/layout.h"
#include "core/prepare/programs.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

#define CACHE_LINE 64

/* Up to here one message per host is faster than several. */
#define SHORT_BYTES ((size_t)32 << 10)

/* Blocks for each message of the longest way, and the least bytes of a block. */
#define PIPELINE_BLOCKS 8
#define SLICE_LEAST     ((size_t)16 << 10)

static void forget(struct tti_handoff_kept *kept)
{
	for (int i = 0; i < 2; i++) {
		tti_handoff_chunks_release(&kept->cut[i].chunks);
		tti_vec_release(&kept->cut[i].key);
	}
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

struct tti_handoff_call tti_handoff_call_of(const struct tti_comm *comm,
					    const struct tti_args *args)
{
	return (struct tti_handoff_call){ comm->n, args->sides->from, args->sides->to };
}

bool tti_handoff_is_short(const struct tti_comm *comm, const struct tti_args *args)
{
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);

	return !tti_handoff_is_sharded(&call.from) && !tti_handoff_is_sharded(&call.to) &&
	       args->count * tutti_type_size(args->type) <= SHORT_BYTES;
}

tutti_status tti_handoff_make_room(struct tti_comm *comm)
{
	if (!comm->handoffs)
		comm->handoffs = tti_calloc(TTI_HANDOFFS_KEPT, sizeof(*comm->handoffs));
	return comm->handoffs ? TUTTI_OK
			      : tti_fail(TUTTI_ENOMEM, "the plan of a handoff: out of memory");
}

/* In a free place, or in place of the least recently used plan: the same on all ranks. */
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
	oldest->number = ++comm->programs.uses;
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

static tutti_status name_program(uint64_t plan, bool in_memory, struct tti_handoff_cut *cut)
{
	const size_t n = cut->chunks.list.n;
	int32_t *at;

	if (!tti_vec_reserve((void **)&cut->key.at, &cut->key.room, 3 * (n + 1), sizeof(*at)))
		return tti_fail(TUTTI_ENOMEM, "a handoff of %zu chunks: out of memory", n);
	cut->key.n = 3 * (n + 1);
	at = cut->key.at;
	*at++ = (int32_t)plan;
	*at++ = (int32_t)(plan >> 32);
	*at++ = in_memory;
	for (size_t i = 0; i < n; i++) {
		const struct tti_handoff_chunk *chunk = &cut->chunks.list.at[i];

		*at++ = chunk->source;
		*at++ = chunk->dest;
		*at++ = (int32_t)chunk->at;
	}
	return TUTTI_OK;
}

/* The chunks of this count, and the program that has them. */
static tutti_status find(struct tti_comm *comm, const struct tti_args *args, bool in_memory,
			 const struct tti_handoff_kept **kept_out, struct tti_executable **out)
{
	/* From parts to parts nothing is planned: the shape is empty. */
	static const struct tti_handoff_shape none;
	const struct tti_handoff_call call = tti_handoff_call_of(comm, args);
	const size_t line = CACHE_LINE / tutti_type_size(args->type), count = args->count;
	const struct tti_handoff_shape *shape;
	struct tti_handoff_kept *kept = find_plan(comm, args);
	struct tti_handoff_cut *cut;
	struct tti_program prog;

	if (!kept) {
		TTI_TRY(tti_handoff_make_room(comm));
		tti_handoff_keep(comm, args, NULL, 1);
		kept = find_plan(comm, args);
	}
	kept->used = comm->seq;
	*kept_out = kept;
	shape = in_memory ? NULL : kept->shape ? kept->shape : &none;
	cut = &kept->cut[in_memory];
	if (cut->key.n == 0 || cut->count != count || cut->line != line) {
		cut->key.n = 0;
		tti_handoff_chunks_release(&cut->chunks);
		TTI_TRY(tti_handoff_split(&call, shape, count, line, &cut->chunks));
		cut->count = count;
		cut->line = line;
		TTI_TRY(name_program(kept->number, in_memory, cut));
	}
	*out = tti_programs_find(comm, TUTTI_HANDOFF, cut->key.at,
				 cut->key.n * sizeof(*cut->key.at));
	if (*out)
		return TUTTI_OK;
	TTI_TRY(tti_handoff_program(&call, shape, &cut->chunks, comm->rank, &prog));
	return tti_programs_add(comm, cut->key.at, cut->key.n * sizeof(*cut->key.at), &prog, out);
}

/* -- Where it lies ------------------------------------------------------------------- */

/* Elements per step of the longest chunk: whole cache lines, but at least one element. */
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
			     struct tti_executable **out, size_t *slice_bytes,
			     struct tti_layout *layout)
{
	const size_t type_size = tutti_type_size(args->type), count = args->count;
	const struct tti_handoff_chunks *chunks;
	const struct tti_handoff_kept *kept;
	size_t longest = 0, slice = *slice_bytes / type_size;
	struct tti_extent *at;

	TTI_TRY(find(comm, args, in_memory, &kept, out));
	chunks = &kept->cut[in_memory].chunks;
	TTI_TRY(tti_extents_need(&comm->extents, chunks->list.n));
	at = comm->extents.at;
	for (size_t i = 0; i < chunks->list.n; i++) {
		const struct tti_handoff_chunk *chunk = &chunks->list.at[i];

		at[i] = (struct tti_extent){ .first = chunk->first,
					     .to = chunk->first,
					     .count = chunk->count,
					     .slice = slice };
		longest = chunk->count > longest ? chunk->count : longest;
	}
	if (!in_memory) {
		slice = choose_slice(comm, kept->depth, longest, type_size);
		/* So chunks of small shares do not lag. */
		tti_extents_slice(at, chunks->list.n, longest, slice, type_size);
		*slice_bytes = slice * type_size;
		atomic_store_explicit(&comm->last_algorithm, "direct", memory_order_relaxed);
	}
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff.h"

#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

#define CACHE_LINE 64

/* Up to here one message a host is sooner over than several begun. */
#define SHORT_BYTES     ((size_t)32 << 10)
/* Blocks for each message of the longest way, and the least that is worth one. */
#define PIPELINE_BLOCKS 8
#define SLICE_LEAST     ((size_t)16 << 10)

static void forget(struct tti_handoff_kept *kept)
{
	tti_bound_free(kept->bound);
	tti_free(kept->extents);
	tti_handoff_chunks_release(&kept->chunks);
	tti_handoff_pairs_release(&kept->pairs);
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

/* -- Making ------------------------------------------------------------------------ */

static struct tti_handoff handoff_of(const struct tti_comm *comm, const struct tti_sides *sides)
{
	return (struct tti_handoff){
		.n = comm->n,
		.host_of = comm->host_of,
		.from = sides->from,
		.to = sides->to,
	};
}

static tutti_status build(struct tti_comm *comm, const struct tti_handoff *handoff,
			  struct tti_handoff_kept *kept)
{
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	TTI_TRY(tti_handoff_depth(handoff, &kept->pairs, &kept->depth));
	TTI_TRY(tti_handoff_program(handoff, &kept->pairs, &kept->chunks, comm->rank, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	if (st == TUTTI_OK)
		st = tti_bound_create(&comm->engine, &compiled, &kept->bound);
	return st;
}

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

/* -- Finding ------------------------------------------------------------------------ */

/* The same parts of the same sides, chunk by chunk. */
static bool same_program(const struct tti_handoff_chunks *a, const struct tti_handoff_chunks *b)
{
	if (a->list.n != b->list.n)
		return false;
	for (size_t i = 0; i < a->list.n; i++)
		if (a->list.at[i].source != b->list.at[i].source ||
		    a->list.at[i].dest != b->list.at[i].dest)
			return false;
	return true;
}

/* What is known of a call before its program is. */
struct wanted {
	struct tti_handoff handoff;
	struct tti_sides *sides;
	bool is_short;
	size_t count, line;
};

static bool has_sides(const struct tti_handoff_kept *kept, const struct wanted *wanted)
{
	return kept->sides && kept->is_short == wanted->is_short &&
	       tti_sides_equal(kept->sides, wanted->sides);
}

/* One with these sides; if possible one that was cut just so. */
static struct tti_handoff_kept *find_sides(struct tti_comm *comm, const struct wanted *wanted)
{
	struct tti_handoff_kept *found = NULL;

	for (int i = 0; i < TTI_HANDOFFS_KEPT; i++) {
		struct tti_handoff_kept *kept = &comm->handoffs[i];

		if (!has_sides(kept, wanted))
			continue;
		found = kept;
		if (kept->count == wanted->count && kept->line == wanted->line)
			break;
	}
	return found;
}

static struct tti_handoff_kept *find_program(struct tti_comm *comm, const struct wanted *wanted,
					     const struct tti_handoff_chunks *chunks)
{
	for (int i = 0; i < TTI_HANDOFFS_KEPT; i++)
		if (has_sides(&comm->handoffs[i], wanted) &&
		    same_program(&comm->handoffs[i].chunks, chunks))
			return &comm->handoffs[i];
	return NULL;
}

/* The chunks of this count, which it takes over, in place of those of another. */
static tutti_status take_chunks(struct tti_handoff_kept *kept, const struct wanted *wanted,
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
	kept->count = wanted->count;
	kept->line = wanted->line;
	return TUTTI_OK;
}

static void report(const struct tti_handoff_kept *kept)
{
	char sides[TTI_SIDES_TEXT];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_COLL))
		return;
	tti_sides_format(kept->sides, sides, sizeof(sides));
	tti_log(TTI_LOG_INFO, TTI_COLL, "handoff %s: %zu pairs, %zu chunks", sides,
		kept->pairs.list.n, kept->chunks.list.n);
}

/* A new one, half-made if it fails: then it is forgotten. Takes pairs and chunks over. */
static tutti_status make(struct tti_comm *comm, const struct wanted *wanted,
			 struct tti_handoff_pairs *pairs, struct tti_handoff_chunks *chunks,
			 struct tti_handoff_kept **out)
{
	struct tti_handoff_kept *kept = make_room(comm);
	tutti_status st;

	kept->sides = tti_sides_take(wanted->sides);
	kept->is_short = wanted->is_short;
	kept->pairs = *pairs;
	*pairs = (struct tti_handoff_pairs){ 0 };
	st = take_chunks(kept, wanted, chunks);
	if (st == TUTTI_OK)
		st = build(comm, &wanted->handoff, kept);
	if (st != TUTTI_OK) {
		forget(kept);
		return st;
	}
	report(kept);
	*out = kept;
	return TUTTI_OK;
}

/* Pairs and chunks of this count; then the program that has them, or a new one. */
static tutti_status cut_and_find(struct tti_comm *comm, const struct wanted *wanted,
				 const struct tti_handoff_kept *known,
				 struct tti_handoff_kept **out)
{
	struct tti_handoff_pairs pairs = { 0 };
	struct tti_handoff_chunks chunks = { 0 };
	tutti_status st = TUTTI_OK;

	if (!known)
		st = tti_handoff_pair_up(&wanted->handoff, wanted->is_short, &pairs);
	if (st == TUTTI_OK)
		st = tti_handoff_cut(&wanted->handoff, known ? &known->pairs : &pairs,
				     wanted->count, wanted->line, &chunks);
	if (st == TUTTI_OK) {
		*out = find_program(comm, wanted, &chunks);
		if (!*out && known)
			st = tti_handoff_pair_up(&wanted->handoff, wanted->is_short, &pairs);
	}
	if (st == TUTTI_OK)
		st = *out ? take_chunks(*out, wanted, &chunks)
			  : make(comm, wanted, &pairs, &chunks, out);
	tti_handoff_pairs_release(&pairs);
	tti_handoff_chunks_release(&chunks);
	return st;
}

static tutti_status find(struct tti_comm *comm, const struct tti_args *args,
			 struct tti_handoff_kept **out)
{
	const size_t type_size = tutti_type_size(args->type);
	const struct wanted wanted = {
		.handoff = handoff_of(comm, args->sides),
		.sides = args->sides,
		.is_short = args->count * type_size <= SHORT_BYTES,
		.count = args->count,
		.line = CACHE_LINE / type_size,
	};
	struct tti_handoff_kept *kept;

	if (!comm->handoffs)
		comm->handoffs = tti_calloc(TTI_HANDOFFS_KEPT, sizeof(*comm->handoffs));
	if (!comm->handoffs)
		return tti_fail(TUTTI_ENOMEM, "programs of handoffs: out of memory");
	kept = find_sides(comm, &wanted);
	if (!kept || kept->count != wanted.count || kept->line != wanted.line)
		TTI_TRY(cut_and_find(comm, &wanted, kept, &kept));
	kept->used = comm->seq;
	*out = kept;
	return TUTTI_OK;
}

/* -- Where it lies ------------------------------------------------------------------- */

static size_t longest_chunk(const struct tti_handoff_kept *kept)
{
	size_t longest = 0;

	for (size_t i = 0; i < kept->chunks.list.n; i++)
		if (kept->chunks.list.at[i].count > longest)
			longest = kept->chunks.list.at[i].count;
	return longest;
}

/* Elements a step of the longest chunk: whole lines, but one element at least. */
static size_t choose_slice(const struct tti_comm *comm, const struct tti_handoff_kept *kept,
			   size_t longest, size_t type_size)
{
	const size_t blocks = PIPELINE_BLOCKS * (size_t)kept->depth;
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

tutti_status tti_handoff_get(struct tti_comm *comm, const struct tti_args *args,
			     struct tti_bound **out, size_t *slice_bytes, struct tti_layout *layout)
{
	const size_t type_size = tutti_type_size(args->type), count = args->count;
	struct tti_handoff_kept *kept = NULL;
	size_t longest, slice;

	TTI_TRY(find(comm, args, &kept));
	longest = longest_chunk(kept);
	slice = choose_slice(comm, kept, longest, type_size);
	lay_out(kept, longest, slice);
	*out = kept->bound;
	*slice_bytes = slice * type_size;
	*layout = (struct tti_layout){
		.extents = kept->extents,
		.input = (const void *)origin(args->send, args->from, comm->rank, count, type_size),
		.output = (void *)origin(args->recv, args->to, comm->rank, count, type_size),
		.type_size = type_size,
		.parts = 1,
		.chunk_count = longest,
		.row_count = count,
	};
	atomic_store_explicit(&comm->last_algorithm, "handoff", memory_order_relaxed);
	return TUTTI_OK;
}

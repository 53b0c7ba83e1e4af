/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/handoff.h"

#include "coll/algorithms/algorithms.h"
#include "util/error.h"
#include "util/mem.h"

/* By messages each chunk goes down a tree of its own. All ranks emit their steps chunk by chunk,
 * what comes in before what goes out; so whoever waits, waits for somebody who is at the same chunk
 * nearer to its root, or at an earlier one.
 *
 * In memory, where every rank reaches the buffers of all, each moves an even part of the vector,
 * whether it is on a side or not, straight from a rank that has it to all that shall get it. What
 * a rank has and gets it copies itself, as it may be in place: nobody else writes there. So what
 * is read is never written, and no two ranks write the same. */

struct view {
	const struct tti_handoff_call *call;
	const struct tti_handoff_shape *shape; /* NULL: in memory */
	const struct tti_handoff_chunk *chunk;
	int32_t index;
	bool has, gets; /* this rank, the chunk */
};

static bool is_on(const tutti_side *side, int32_t part, int rank)
{
	if (part >= 0)
		return side->ranks[part] == rank;
	for (int i = 0; i < side->n; i++)
		if (side->ranks[i] == rank)
			return true;
	return false;
}

/* -- By messages ------------------------------------------------------------------- */

/* A part that one rank has and one shall have. */
static void add_direct(const struct view *v, struct tti_program *prog)
{
	const int from = v->call->from.ranks[v->chunk->source];
	const int to = v->call->to.ranks[v->chunk->dest];

	if (from != to && prog->rank == to)
		tti_recv(prog, v->index, from);
	if (from != to && prog->rank == from)
		tti_send(prog, v->index, to);
}

/* To other hosts first, as that takes longest. */
static void add_stripes(const struct view *v, struct tti_program *prog)
{
	const struct tti_handoff_chunk *chunk = v->chunk;
	const struct tti_handoff_hop *hops = tti_handoff_hops(v->shape);
	uint32_t first;
	const uint32_t n = tti_handoff_stripes_of(v->shape, chunk->source, chunk->dest, &first);
	enum { RECEIVE, SEND_AWAY, SEND_ON, PASSES };

	for (int pass = RECEIVE; pass < PASSES; pass++)
		for (uint32_t i = first; i < first + n; i++) {
			const struct tti_handoff_stripe *stripe = &tti_handoff_stripes(v->shape)[i];
			const bool moves = stripe->from != stripe->to && pass != SEND_ON;

			if (chunk->at < stripe->begin || chunk->at >= stripe->end)
				continue;
			if (moves && pass == RECEIVE && stripe->to == prog->rank)
				tti_recv(prog, v->index, stripe->from);
			if (moves && pass == SEND_AWAY && stripe->from == prog->rank)
				tti_send(prog, v->index, stripe->to);
			for (uint32_t k = stripe->first; k < stripe->first + stripe->n; k++) {
				if (pass == RECEIVE && hops[k].to == prog->rank)
					tti_recv(prog, v->index, hops[k].from);
				if (pass == SEND_ON && hops[k].from == prog->rank)
					tti_send(prog, v->index, hops[k].to);
			}
		}
}

/* -- In memory --------------------------------------------------------------------- */

/* The i-th rank that gets the chunk, counted from another one on each rank, so that not all
 * write to one at a time; -1: nobody else needs it, as that rank has it or is this one. */
static int needing(const struct view *v, const struct tti_program *prog, int i)
{
	const tutti_side *to = &v->call->to;
	const int32_t dest = v->chunk->dest;
	const int rank = to->ranks[dest >= 0 ? dest : (prog->rank + i) % to->n];

	return rank == prog->rank || is_on(&v->call->from, v->chunk->source, rank) ? -1 : rank;
}

/* Where this rank, which does not have the chunk, reads it: ranks spread over the replicas. */
static int source_of(const struct view *v, int rank)
{
	const tutti_side *from = &v->call->from;

	return from->ranks[v->chunk->source >= 0 ? v->chunk->source : rank % from->n];
}

/* A chunk that is this rank's to move. */
static void move(const struct view *v, struct tti_program *prog)
{
	const int n = v->chunk->dest >= 0 ? 1 : v->call->to.n;
	bool is_needed = v->gets;

	for (int i = 0; i < n && !is_needed; i++)
		is_needed = needing(v, prog, i) >= 0;
	if (!v->has && is_needed)
		tti_get(prog, v->index, source_of(v, prog->rank));
	for (int i = 0; i < n; i++)
		if (needing(v, prog, i) >= 0)
			tti_put(prog, v->index, needing(v, prog, i));
}

/* -- Both -------------------------------------------------------------------------- */

static void add_chunk(const struct view *v, struct tti_program *prog)
{
	const int ends = (v->has ? TTI_END_INPUT : 0) | (v->gets ? TTI_END_OUTPUT : 0);

	prog->failed |= !tti_vec_push(&prog->ends, (uint8_t)ends);
	if (v->shape && ends) {
		if (tti_handoff_is_direct(v->call))
			add_direct(v, prog);
		else
			add_stripes(v, prog);
		return;
	}
	if (!v->shape && v->has && v->gets)
		tti_copy_chunk(prog, v->index);
	if (!v->shape && v->chunk->at == (uint32_t)prog->rank)
		move(v, prog);
}

tutti_status tti_handoff_program(const struct tti_handoff_call *call,
				 const struct tti_handoff_shape *shape,
				 const struct tti_handoff_chunks *chunks, int rank,
				 struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_HANDOFF,
				    .algorithm = shape ? "direct" : "memory",
				    .rank = rank,
				    .n = call->n,
				    .nchunks = (int)chunks->list.n };

	if (!shape)
		tti_memory_sync(&prog);
	for (size_t i = 0; i < chunks->list.n; i++) {
		const struct tti_handoff_chunk *chunk = &chunks->list.at[i];
		const struct view v = { .call = call,
					.shape = shape,
					.chunk = chunk,
					.index = (int32_t)i,
					.has = is_on(&call->from, chunk->source, rank),
					.gets = is_on(&call->to, chunk->dest, rank) };

		add_chunk(&v, &prog);
	}
	if (!shape)
		tti_memory_sync(&prog);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", call->n);
	}
	*out = prog;
	return TUTTI_OK;
}

/* -- As a call --------------------------------------------------------------------- */

/* From parts on the first half of the ranks to parts on the last half. If their number is odd, the
 * rank in the middle is on no side; a rank alone hands over to itself. */
static int half_of(const struct tti_program *prog)
{
	return prog->n > 1 ? prog->n / 2 : 1;
}

/* By messages parts go straight to who gets them, whatever the plan: chunk i is part i. */
void tti_direct_handoff(struct tti_program *prog)
{
	const int half = half_of(prog), away = prog->n - half;

	prog->nchunks = half;
	for (int i = 0; i < half && !prog->failed; i++)
		prog->failed = !tti_vec_push(
			&prog->ends, (uint8_t)((i == prog->rank ? TTI_END_INPUT : 0) |
					       (away + i == prog->rank ? TTI_END_OUTPUT : 0)));
	if (away == 0)
		tti_copy_chunk(prog, 0);
	else if (prog->rank < half)
		tti_send(prog, prog->rank, away + prog->rank);
	else if (prog->rank >= away)
		tti_recv(prog, prog->rank - away, prog->rank - away);
}

void tti_memory_handoff(struct tti_program *prog)
{
	const int n = prog->n, half = half_of(prog);
	int *ranks = tti_calloc((size_t)n, sizeof(*ranks));
	const struct tti_handoff_call call = { .n = n,
					       .from = { ranks, half, 1 },
					       .to = { ranks + n - half, half, 1 } };
	struct tti_handoff_chunks chunks = { 0 };
	struct tti_program made;

	for (int i = 0; ranks && i < n; i++)
		ranks[i] = i;
	/* With so many elements no part is empty. */
	prog->failed =
		!ranks ||
		tti_handoff_split(&call, NULL, (size_t)half * (size_t)n, 1, &chunks) != TUTTI_OK ||
		tti_handoff_program(&call, NULL, &chunks, prog->rank, &made) != TUTTI_OK;
	tti_handoff_chunks_release(&chunks);
	tti_free(ranks);
	if (prog->failed)
		return;
	prog->nchunks = made.nchunks;
	prog->steps = made.steps;
	prog->ends = made.ends;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/handoff.h"

#include "coll/algorithms/algorithms.h"
#include "util/error.h"
#include "util/mem.h"

/* A handoff where every rank reaches the buffers of all: each moves an even part of the vector,
 * whether it is on a side or not, straight from a rank that has it to all that shall get it. What
 * a rank has and gets it copies itself, as it may be in place: nobody else writes there. So what
 * is read is never written, and no two ranks write the same. */

struct view {
	const struct tti_handoff_call *call;
	const struct tti_handoff_chunk *chunk;
	int32_t index;
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
static void move(const struct view *v, struct tti_program *prog, bool has, bool gets)
{
	const int n = v->chunk->dest >= 0 ? 1 : v->call->to.n;
	bool is_needed = gets;

	for (int i = 0; i < n && !is_needed; i++)
		is_needed = needing(v, prog, i) >= 0;
	if (!has && is_needed)
		tti_get(prog, v->index, source_of(v, prog->rank));
	for (int i = 0; i < n; i++)
		if (needing(v, prog, i) >= 0)
			tti_put(prog, v->index, needing(v, prog, i));
}

static void add_chunk(const struct view *v, struct tti_program *prog)
{
	const bool has = is_on(&v->call->from, v->chunk->source, prog->rank);
	const bool gets = is_on(&v->call->to, v->chunk->dest, prog->rank);

	if (!tti_vec_push(&prog->ends,
			  (uint8_t)((has ? TTI_END_INPUT : 0) | (gets ? TTI_END_OUTPUT : 0))))
		prog->failed = true;
	if (has && gets)
		tti_copy_chunk(prog, v->index);
	if (v->chunk->at == (uint32_t)prog->rank)
		move(v, prog, has, gets);
}

/* All buffers are ready, or all ranks are done. */
static void meet(struct tti_program *prog)
{
	for (int offset = 1; offset < prog->n; offset++)
		tti_notify(prog, tti_wrap(prog->rank + offset, prog->n));
	for (int offset = 1; offset < prog->n; offset++)
		tti_wait(prog, tti_wrap(prog->rank + offset, prog->n));
}

tutti_status tti_handoff_memory_program(const struct tti_handoff_call *call,
					const struct tti_handoff_chunks *chunks, int rank,
					struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_HANDOFF,
				    .algorithm = "memory",
				    .rank = rank,
				    .n = call->n,
				    .nchunks = (int)chunks->list.n };

	meet(&prog);
	for (size_t i = 0; i < chunks->list.n; i++) {
		const struct view v = { call, &chunks->list.at[i], (int32_t)i };

		add_chunk(&v, &prog);
	}
	meet(&prog);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", call->n);
	}
	*out = prog;
	return TUTTI_OK;
}

/* -- As a call --------------------------------------------------------------------- */

/* From parts on the first half of the ranks to parts on the last half. Of an odd number the one
 * between is on no side; a rank alone hands over to itself. */
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
	/* Of so many elements no part is empty. */
	prog->failed =
		!ranks ||
		tti_handoff_memory_cut(&call, (size_t)half * (size_t)n, 1, &chunks) != TUTTI_OK ||
		tti_handoff_memory_program(&call, &chunks, prog->rank, &made) != TUTTI_OK;
	tti_handoff_chunks_release(&chunks);
	tti_free(ranks);
	if (prog->failed)
		return;
	prog->nchunks = made.nchunks;
	prog->steps = made.steps;
	prog->ends = made.ends;
}

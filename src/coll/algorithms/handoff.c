/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/handoff.h"

#include "util/error.h"

/* Each chunk goes down a tree of its own. All ranks emit their steps chunk by chunk, what comes
 * in before what goes out; so whoever waits, waits for somebody who is at the same chunk nearer
 * to its root, or at an earlier one. */

struct view {
	const struct tti_handoff_call *call;
	const struct tti_handoff_shape *shape;
	int from_place, to_place; /* of this rank on the sides, -1: not on it */
};

static int place_on(const tutti_side *side, int rank)
{
	for (int i = 0; i < side->n; i++)
		if (side->ranks[i] == rank)
			return i;
	return -1;
}

static bool is_on(int place, int32_t part)
{
	return place >= 0 && (part < 0 || place == part);
}

/* A part that one rank has and one shall have. */
static void add_direct(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
		       struct tti_program *prog)
{
	const int from = v->call->from.ranks[chunk->source];
	const int to = v->call->to.ranks[chunk->dest];

	if (from != to && prog->rank == to)
		tti_recv(prog, index, from);
	if (from != to && prog->rank == from)
		tti_send(prog, index, to);
}

/* To other hosts first, as that takes longest. */
static void add_stripes(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
			struct tti_program *prog)
{
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
				tti_recv(prog, index, stripe->from);
			if (moves && pass == SEND_AWAY && stripe->from == prog->rank)
				tti_send(prog, index, stripe->to);
			for (uint32_t k = stripe->first; k < stripe->first + stripe->n; k++) {
				if (pass == RECEIVE && hops[k].to == prog->rank)
					tti_recv(prog, index, hops[k].from);
				if (pass == SEND_ON && hops[k].from == prog->rank)
					tti_send(prog, index, hops[k].to);
			}
		}
}

static void add_chunk(const struct view *v, const struct tti_handoff_chunk *chunk, int32_t index,
		      struct tti_program *prog)
{
	const bool has = is_on(v->from_place, chunk->source);
	const bool gets = is_on(v->to_place, chunk->dest);

	if (!tti_vec_push(&prog->ends,
			  (uint8_t)((has ? TTI_END_INPUT : 0) | (gets ? TTI_END_OUTPUT : 0))))
		prog->failed = true;
	if (!has && !gets)
		return;
	if (tti_handoff_is_direct(v->call))
		add_direct(v, chunk, index, prog);
	else
		add_stripes(v, chunk, index, prog);
}

tutti_status tti_handoff_program(const struct tti_handoff_call *call,
				 const struct tti_handoff_shape *shape,
				 const struct tti_handoff_chunks *chunks, int rank,
				 struct tti_program *out)
{
	const struct view v = { call, shape, place_on(&call->from, rank),
				place_on(&call->to, rank) };
	struct tti_program prog = { .coll = TUTTI_HANDOFF,
				    .algorithm = "direct",
				    .rank = rank,
				    .n = call->n,
				    .nchunks = (int)chunks->list.n };

	for (size_t i = 0; i < chunks->list.n; i++)
		add_chunk(&v, &chunks->list.at[i], (int32_t)i, &prog);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", call->n);
	}
	*out = prog;
	return TUTTI_OK;
}

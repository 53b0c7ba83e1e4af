/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/program.h"

#include "util/error.h"

static void add(struct tti_program *prog, enum tti_step_kind kind, int chunk, int peer, bool final)
{
	const struct tti_step step = {
		.kind = kind, .chunk = chunk, .peer = peer, .stage = prog->stage, .final = final
	};

	if (!tti_vec_push(&prog->steps, step))
		prog->failed = true;
}

void tti_program_release(struct tti_program *prog)
{
	tti_vec_release(&prog->steps);
	tti_vec_release(&prog->ends);
}

void tti_send(struct tti_program *prog, int chunk, int peer)
{
	add(prog, TTI_SEND, chunk, peer, false);
}

void tti_recv(struct tti_program *prog, int chunk, int peer)
{
	add(prog, TTI_RECV, chunk, peer, false);
}

void tti_recv_reduce(struct tti_program *prog, int chunk, int peer, bool final)
{
	add(prog, TTI_RECV_REDUCE, chunk, peer, final);
}

bool tti_collective_is_rooted(tutti_collective coll)
{
	return coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE || coll == TUTTI_GATHER ||
	       coll == TUTTI_SCATTER;
}

bool tti_collective_reduces(tutti_collective coll)
{
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE || coll == TUTTI_REDUCE_SCATTER ||
	       coll == TUTTI_BARRIER;
}

bool tti_collective_is_by_rank(tutti_collective coll)
{
	return coll == TUTTI_ALL_GATHER || coll == TUTTI_REDUCE_SCATTER || coll == TUTTI_GATHER ||
	       coll == TUTTI_SCATTER;
}

bool tti_collective_sends_rows(tutti_collective coll)
{
	return coll == TUTTI_REDUCE_SCATTER || coll == TUTTI_SCATTER || coll == TUTTI_ALL_TO_ALL;
}

bool tti_collective_gets_rows(tutti_collective coll)
{
	return coll == TUTTI_ALL_GATHER || coll == TUTTI_GATHER || coll == TUTTI_ALL_TO_ALL;
}

/* The first step on a chunk; NULL if there is none. */
static const struct tti_step *first_step(const struct tti_program *prog, int chunk)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].chunk == chunk)
			return &prog->steps.at[i];
	return NULL;
}

static bool has_end(const struct tti_program *prog, int chunk, uint8_t end)
{
	return (size_t)chunk < prog->ends.n && prog->ends.at[chunk] & end;
}

bool tti_chunk_is_input(const struct tti_program *prog, int chunk)
{
	const struct tti_step *step;

	switch (prog->coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_REDUCE:
	case TUTTI_REDUCE_SCATTER:
	case TUTTI_BARRIER:
		return true;
	case TUTTI_BROADCAST:
	case TUTTI_SCATTER:
		return prog->rank == prog->root;
	case TUTTI_ALL_GATHER:
	case TUTTI_GATHER:
		return tti_chunk_owner(prog, chunk) == prog->rank;
	case TUTTI_ALL_TO_ALL:
		return tti_chunk_source(prog, chunk) == prog->rank;
	case TUTTI_SEND_RECV:
		step = first_step(prog, chunk);
		return step && step->kind == TTI_SEND;
	case TUTTI_HANDOFF:
		return has_end(prog, chunk, TTI_END_INPUT);
	/* Those of other collectives' programs, or none. */
	case TUTTI_ALL_TO_ALL_V:
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		break;
	}
	return false;
}

bool tti_chunk_is_output(const struct tti_program *prog, int chunk)
{
	const struct tti_step *step;

	switch (prog->coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_BROADCAST:
	case TUTTI_ALL_GATHER:
	case TUTTI_BARRIER:
		return true;
	case TUTTI_REDUCE:
	case TUTTI_GATHER:
		return prog->rank == prog->root;
	case TUTTI_REDUCE_SCATTER:
	case TUTTI_SCATTER:
		return tti_chunk_owner(prog, chunk) == prog->rank;
	case TUTTI_ALL_TO_ALL:
		return tti_chunk_dest(prog, chunk) == prog->rank;
	case TUTTI_SEND_RECV:
		step = first_step(prog, chunk);
		return step && step->kind == TTI_RECV;
	case TUTTI_HANDOFF:
		return has_end(prog, chunk, TTI_END_OUTPUT);
	case TUTTI_ALL_TO_ALL_V:
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		break;
	}
	return false;
}

tutti_status tti_program_build(const struct tti_algorithm *algo, const struct tti_shape *shape,
			       int rank, int n, int root, struct tti_program *out)
{
	return tti_program_build_cut(algo, shape, (struct tti_cut){ 0 }, rank, n, root, out);
}

bool tti_algorithm_fits(const struct tti_algorithm *algo, int n)
{
	return algo->programs ? algo->programs->n == n : !algo->fits || algo->fits(n);
}

static void copy_steps(const struct tti_program *from, struct tti_program *prog)
{
	prog->nchunks = from->nchunks;
	for (size_t i = 0; i < from->steps.n && !prog->failed; i++)
		prog->failed = !tti_vec_push(&prog->steps, from->steps.at[i]);
}

tutti_status tti_program_build_cut(const struct tti_algorithm *algo, const struct tti_shape *shape,
				   struct tti_cut cut, int rank, int n, int root,
				   struct tti_program *out)
{
	struct tti_program prog = { .coll = algo->coll,
				    .algorithm = algo->name,
				    .shape = shape,
				    .rank = rank,
				    .n = n,
				    .root = root };

	cut.parts = cut.parts > 1 ? cut.parts : 1;
	prog.cut = cut;

	if (n < 1 || n > TTI_PROGRAM_RANKS_MAX)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks: 1 to %d are possible", n,
				TTI_PROGRAM_RANKS_MAX);
	if (rank < 0 || rank >= n || root < 0 || root >= n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks has no rank %d", n,
				rank < 0 || rank >= n ? rank : root);
	if (shape && shape->n != (uint32_t)n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks laid over %u", n, shape->n);
	if (!tti_algorithm_fits(algo, n))
		return tti_fail(TUTTI_EINVAL, "%s %s is not made for %d ranks: %s",
				tutti_collective_name(algo->coll), algo->name, n, algo->help);
	if (algo->programs)
		copy_steps(&algo->programs[rank], &prog);
	else
		algo->emit(&prog);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "program %s %s of %d ranks",
				tutti_collective_name(algo->coll), algo->name, n);
	}
	prog.shape = NULL;
	*out = prog;
	return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/program.h"

#include "util/error.h"

static void add(struct tti_program *prog, enum tti_step_kind kind, int chunk, int peer, bool final)
{
	const struct tti_step step = { .kind = kind, .chunk = chunk, .peer = peer, .final = final };

	if (!tti_vec_push(&prog->steps, step))
		prog->failed = true;
}

void tti_program_release(struct tti_program *prog)
{
	tti_vec_release(&prog->steps);
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

/* The first step on a chunk; NULL if there is none. */
static const struct tti_step *first_step(const struct tti_program *prog, int chunk)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].chunk == chunk)
			return &prog->steps.at[i];
	return NULL;
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
		return prog->rank == prog->root;
	case TUTTI_ALL_GATHER:
		return tti_chunk_owner(prog, chunk) == prog->rank;
	case TUTTI_SEND_RECV:
		step = first_step(prog, chunk);
		return step && step->kind == TTI_SEND;
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
		return prog->rank == prog->root;
	case TUTTI_REDUCE_SCATTER:
		return tti_chunk_owner(prog, chunk) == prog->rank;
	case TUTTI_SEND_RECV:
		step = first_step(prog, chunk);
		return step && step->kind == TTI_RECV;
	}
	return false;
}

tutti_status tti_program_build(const struct tti_algorithm *algo, const struct tti_shape *shape,
			       int rank, int n, int root, struct tti_program *out)
{
	struct tti_program prog = { .coll = algo->coll,
				    .algorithm = algo->name,
				    .shape = shape,
				    .rank = rank,
				    .n = n,
				    .root = root };

	if (n < 1 || n > TTI_PROGRAM_RANKS_MAX)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks: 1 to %d are possible", n,
				TTI_PROGRAM_RANKS_MAX);
	if (rank < 0 || rank >= n || root < 0 || root >= n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks has no rank %d", n,
				rank < 0 || rank >= n ? rank : root);
	if (shape && shape->n != (uint32_t)n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks laid over %u", n, shape->n);
	if (algo->fits && !algo->fits(n))
		return tti_fail(TUTTI_EINVAL, "%s %s is not made for %d ranks: %s",
				tutti_collective_name(algo->coll), algo->name, n, algo->help);
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

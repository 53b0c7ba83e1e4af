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

void tti_copy_chunk(struct tti_program *prog, int chunk)
{
	add(prog, TTI_COPY, chunk, prog->rank, false);
}

void tti_get(struct tti_program *prog, int chunk, int peer)
{
	add(prog, TTI_GET, chunk, peer, false);
}

void tti_get_reduce(struct tti_program *prog, int chunk, int peer, bool final)
{
	add(prog, TTI_GET_REDUCE, chunk, peer, final);
}

void tti_put(struct tti_program *prog, int chunk, int peer)
{
	add(prog, TTI_PUT, chunk, peer, false);
}

void tti_notify(struct tti_program *prog, int peer)
{
	add(prog, TTI_NOTIFY, 0, peer, false);
}

void tti_wait(struct tti_program *prog, int peer)
{
	add(prog, TTI_WAIT, 0, peer, false);
}

const char *tti_step_name(enum tti_step_kind kind)
{
	static const char *const name[TTI_STEP_KINDS] = {
		[TTI_SEND] = "send", [TTI_RECV] = "recv",     [TTI_RECV_REDUCE] = "recv_reduce",
		[TTI_COPY] = "copy", [TTI_GET] = "get",       [TTI_GET_REDUCE] = "get_reduce",
		[TTI_PUT] = "put",   [TTI_NOTIFY] = "notify", [TTI_WAIT] = "wait",
	};

	return name[kind];
}

bool tti_program_is_memory(const struct tti_program *prog)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (tti_step_is_memory(prog->steps.at[i].kind))
			return true;
	return false;
}

/* The first step on a chunk; NULL if there is none. */
static const struct tti_step *first_step(const struct tti_program *prog, int chunk)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].chunk == chunk && !tti_step_is_sync(prog->steps.at[i].kind))
			return &prog->steps.at[i];
	return NULL;
}

/* What the program itself says: by its ends, or, of messages without, by their first step. */
static bool is_stated(const struct tti_program *prog, int chunk, uint8_t end)
{
	const struct tti_step *step;

	if (prog->coll == TUTTI_HANDOFF || prog->ends.n)
		return (size_t)chunk < prog->ends.n && prog->ends.at[chunk] & end;
	step = first_step(prog, chunk);
	if (!step)
		return false;
	return end == TTI_END_INPUT ? step->kind == TTI_SEND
				    : step->kind == TTI_RECV || step->kind == TTI_GET;
}

static bool holds(const struct tti_program *prog, int chunk, enum tti_holder holder, uint8_t end)
{
	switch (holder) {
	case TTI_HOLDER_ALL:
		return true;
	case TTI_HOLDER_ROOT:
		return prog->rank == prog->root;
	case TTI_HOLDER_OWNER:
		return tti_chunk_owner(prog, chunk) == prog->rank;
	case TTI_HOLDER_PAIR:
		return prog->rank == (end == TTI_END_INPUT ? tti_chunk_source(prog, chunk)
							   : tti_chunk_dest(prog, chunk));
	case TTI_HOLDER_STATED:
		return is_stated(prog, chunk, end);
	}
	return false;
}

bool tti_chunk_is_input(const struct tti_program *prog, int chunk)
{
	return holds(prog, chunk, tti_collective_get(prog->coll)->input, TTI_END_INPUT);
}

bool tti_chunk_is_output(const struct tti_program *prog, int chunk)
{
	return holds(prog, chunk, tti_collective_get(prog->coll)->output, TTI_END_OUTPUT);
}

bool tti_algorithm_fits(const struct tti_algorithm *algo, int n)
{
	return !algo->programs || algo->programs->n == n;
}

static void copy_steps(const struct tti_program *from, struct tti_program *prog)
{
	prog->nchunks = from->nchunks;
	for (size_t i = 0; i < from->steps.n && !prog->failed; i++)
		prog->failed = !tti_vec_push(&prog->steps, from->steps.at[i]);
}

tutti_status tti_program_build(const struct tti_algorithm *algo,
			       const struct tti_program_spec *spec, struct tti_program *out)
{
	const int rank = spec->rank, n = spec->n, root = spec->root;
	struct tti_program prog = { .coll = algo->coll,
				    .algorithm = algo->name,
				    .shape = spec->shape,
				    .rank = rank,
				    .n = n,
				    .root = root,
				    .in_place = spec->in_place,
				    .split = spec->split };

	prog.split.parts = spec->split.parts > 1 ? spec->split.parts : 1;
	if (n < 1 || n > TTI_PROGRAM_RANKS_MAX)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks: 1 to %d are possible", n,
				TTI_PROGRAM_RANKS_MAX);
	if (rank < 0 || rank >= n || root < 0 || root >= n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks has no rank %d", n,
				rank < 0 || rank >= n ? rank : root);
	if (spec->shape && spec->shape->n != (uint32_t)n)
		return tti_fail(TUTTI_EINVAL, "a program of %d ranks laid over %u", n,
				spec->shape->n);
	if (!tti_algorithm_fits(algo, n))
		return tti_fail(TUTTI_EINVAL, "%s %s is not made for %d ranks: %s",
				tutti_collective_name(algo->coll), algo->name, n, algo->help);
	if (algo->programs)
		copy_steps(&algo->programs[rank], &prog);
	else
		algo->emit(&prog);
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "program %s %s of %d ranks: out of memory",
				tutti_collective_name(algo->coll), algo->name, n);
	}
	prog.shape = NULL;
	*out = prog;
	return TUTTI_OK;
}

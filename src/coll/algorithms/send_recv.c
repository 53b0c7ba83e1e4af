/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/send_recv.h"

#include "coll/algorithms/algorithms.h"
#include "util/error.h"

/* -- By messages ------------------------------------------------------------------- */

static void add_step(struct tti_program *prog, const struct tti_transfer_step *step)
{
	if (step->kind == TTI_TRANSFER_SEND)
		tti_send(prog, step->chunk, step->peer);
	else if (step->kind == TTI_TRANSFER_RECV)
		tti_recv(prog, step->chunk, step->peer);
	else
		tti_copy_chunk(prog, step->chunk);
}

static tutti_status finish(struct tti_program *prog, int32_t n, struct tti_program *out)
{
	if (prog->failed) {
		tti_program_release(prog);
		return tti_fail(TUTTI_ENOMEM, "program of %d sends and receives: out of memory", n);
	}
	*out = *prog;
	return TUTTI_OK;
}

tutti_status tti_send_recv_program(const struct tti_transfer_step *step, int32_t n, int32_t nchunks,
				   int rank, int nranks, struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_SEND_RECV,
				    .algorithm = "direct",
				    .rank = rank,
				    .n = nranks,
				    .nchunks = nchunks };

	for (int32_t i = 0; i < n; i++)
		add_step(&prog, &step[i]);
	return finish(&prog, n, out);
}

/* -- In memory --------------------------------------------------------------------- */

/* The part of a list that is one rank's. */
struct view {
	const struct tti_transfer_step *step;
	int32_t n;
	int round; /* of the first transfers of each two ranks, of the second ones, ... */
};

/* How many transfers of a step's kind with its peer are ahead of it. */
static int round_of(const struct view *v, int32_t index)
{
	int round = 0;

	for (int32_t i = 0; i < index; i++)
		round += v->step[i].kind == v->step[index].kind &&
			 v->step[i].peer == v->step[index].peer;
	return round;
}

/* Whether a step is a transfer of that kind with another rank, in this round. */
static bool is_now(const struct view *v, const struct tti_program *prog, int32_t index,
		   enum tti_transfer_kind kind)
{
	return v->step[index].kind == kind && v->step[index].peer != prog->rank &&
	       round_of(v, index) == v->round;
}

/* All of a round is announced and heard of before any of it is copied, so that a notify that says
 * that something is copied finds room, whatever the order of peers on each rank. */
static bool add_round(const struct view *v, struct tti_program *prog)
{
	const size_t before = prog->steps.n;

	for (int32_t i = 0; i < v->n; i++)
		if (is_now(v, prog, i, TTI_TRANSFER_SEND))
			tti_notify(prog, v->step[i].peer);
	for (int32_t i = 0; i < v->n; i++)
		if (is_now(v, prog, i, TTI_TRANSFER_RECV))
			tti_wait(prog, v->step[i].peer);
	for (int32_t i = 0; i < v->n; i++)
		if (is_now(v, prog, i, TTI_TRANSFER_RECV)) {
			tti_get(prog, v->step[i].chunk, v->step[i].peer);
			tti_notify(prog, v->step[i].peer);
		}
	for (int32_t i = 0; i < v->n; i++)
		if (is_now(v, prog, i, TTI_TRANSFER_SEND))
			tti_wait(prog, v->step[i].peer);
	return prog->steps.n > before;
}

/* A rank copies what it has for itself; of a send and a receive, the receive does it. */
static void add_own(const struct view *v, struct tti_program *prog)
{
	for (int32_t i = 0; i < v->n; i++)
		if (v->step[i].kind == TTI_TRANSFER_COPY ||
		    (v->step[i].kind == TTI_TRANSFER_RECV && v->step[i].peer == prog->rank))
			tti_copy_chunk(prog, v->step[i].chunk);
}

static void state_ends(const struct view *v, struct tti_program *prog)
{
	for (int32_t chunk = 0; chunk < prog->nchunks && !prog->failed; chunk++)
		prog->failed = !tti_vec_push(&prog->ends, 0);
	for (int32_t i = 0; i < v->n && !prog->failed; i++)
		prog->ends.at[v->step[i].chunk] |=
			v->step[i].kind == TTI_TRANSFER_SEND   ? TTI_END_INPUT
			: v->step[i].kind == TTI_TRANSFER_RECV ? TTI_END_OUTPUT
							       : TTI_END_INPUT | TTI_END_OUTPUT;
}

static void emit_in_memory(struct view *v, struct tti_program *prog)
{
	state_ends(v, prog);
	add_own(v, prog);
	while (add_round(v, prog))
		v->round++;
}

tutti_status tti_send_recv_in_memory(const struct tti_transfer_step *step, int32_t n,
				     int32_t nchunks, int rank, int nranks, struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_SEND_RECV,
				    .algorithm = "memory",
				    .rank = rank,
				    .n = nranks,
				    .nchunks = nchunks };
	struct view v = { .step = step, .n = n };

	emit_in_memory(&v, &prog);
	return finish(&prog, n, out);
}

/* -- As a call --------------------------------------------------------------------- */

/* tutti_send_recv() in a ring: each rank sends to the next one. Chunk r is what rank r sends. */
static void list_ring(struct tti_program *prog, struct tti_transfer_step step[2])
{
	const int last = tti_wrap(prog->rank - 1, prog->n);

	prog->nchunks = prog->n;
	step[0] = (struct tti_transfer_step){ .kind = TTI_TRANSFER_SEND,
					      .peer = tti_wrap(prog->rank + 1, prog->n),
					      .chunk = prog->rank };
	step[1] = (struct tti_transfer_step){ .kind = TTI_TRANSFER_RECV,
					      .peer = last,
					      .chunk = last };
}

void tti_direct_send_recv(struct tti_program *prog)
{
	struct tti_transfer_step step[2];

	list_ring(prog, step);
	add_step(prog, &step[0]);
	add_step(prog, &step[1]);
}

void tti_memory_send_recv(struct tti_program *prog)
{
	struct tti_transfer_step step[2];
	struct view v = { .step = step, .n = 2 };

	list_ring(prog, step);
	emit_in_memory(&v, prog);
}

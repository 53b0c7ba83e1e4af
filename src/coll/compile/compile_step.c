/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/compile/compile_parts.h"
#include "util/error.h"

tutti_status tti_compile_no_memory(const struct tti_compiler *c)
{
	return tti_fail(TUTTI_ENOMEM,
			"compiling %s %s of %d ranks, %d chunks, %zu steps: out of memory",
			tutti_collective_name(c->prog->coll), c->prog->algorithm, c->prog->n,
			c->prog->nchunks, c->prog->steps.n);
}

/* What is wrong with one step, NULL if nothing. */
static const char *step_fault(const struct tti_compiler *c, const struct tti_step *step)
{
	const struct tti_compile_chunk *chunk = &c->chunk[step->chunk];
	const bool has_value = chunk->place != TTI_PLACE_NONE;

	if (step->stage < 0 || step->stage > UINT8_MAX)
		return "has a stage that is out of range";
	if (step->final && step->kind != TTI_RECV_REDUCE && step->kind != TTI_GET_REDUCE)
		return "is marked final, which is for recv_reduce and get_reduce";
	if (c->out->is_memory &&
	    (step->kind == TTI_SEND || step->kind == TTI_RECV || step->kind == TTI_RECV_REDUCE))
		return "is sent or received in a program that touches memory of peers";
	if (chunk->place == TTI_PLACE_SCRATCH && c->out->is_memory && chunk->run != c->run &&
	    step->kind != TTI_GET)
		return "is used after the run of steps that had it in scratch has ended";
	if (step->kind == TTI_COPY) {
		if (!chunk->is_input || !chunk->is_output)
			return "is copied but is not both input and output here";
		return chunk->place == TTI_PLACE_INPUT ? NULL : "is copied after it was written";
	}
	if (step->peer == c->prog->rank && c->prog->coll != TUTTI_SEND_RECV)
		return "goes to or comes from the rank itself";
	if (step->kind == TTI_SEND || step->kind == TTI_PUT)
		return has_value ? NULL : "is sent before it has a value";
	if (step->kind == TTI_RECV || step->kind == TTI_GET)
		return NULL;
	if (!tti_collective_reduces(c->prog->coll))
		return "is reduced in a collective without reduction";
	return has_value ? NULL : "is reduced into before it has a value";
}

tutti_status tti_compile_check_step(const struct tti_compiler *c, size_t index)
{
	const struct tti_step *step = &c->prog->steps.at[index];
	const char *fault;

	if (tti_step_is_sync(step->kind) && step->peer >= 0 && step->peer < c->prog->n)
		return step->peer != c->prog->rank
			       ? TUTTI_OK
			       : tti_fail_quiet(TUTTI_EINVAL,
						"rank %d, step %zu: a %s of the rank itself",
						c->prog->rank, index, tti_step_name(step->kind));
	if (step->chunk < 0 || step->chunk >= c->prog->nchunks)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %zu: chunk %d is out of range, there are %d",
				      c->prog->rank, index, step->chunk, c->prog->nchunks);
	if (step->peer < 0 || step->peer >= c->prog->n)
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"rank %d, step %zu (chunk %d): peer %d is out of range, there are %d ranks",
			c->prog->rank, index, step->chunk, step->peer, c->prog->n);
	fault = step_fault(c, step);
	if (fault)
		return tti_fail_quiet(TUTTI_EINVAL, "rank %d, step %zu: chunk %d %s", c->prog->rank,
				      index, step->chunk, fault);
	return TUTTI_OK;
}

/* The queue of one direction of a peer; -1: out of memory. */
static int32_t queue_find(struct tti_compiler *c, int peer, bool is_send)
{
	int32_t *at = &c->queue_at[2 * peer + is_send];

	if (*at < 0) {
		const struct tti_queue queue = { .peer = peer, .is_send = is_send };

		if (!tti_vec_push(&c->queue, queue))
			return -1;
		*at = (int32_t)c->queue.n - 1;
	}
	return *at;
}

bool tti_compile_add_queues(struct tti_compiler *c, const struct tti_step *step, size_t n)
{
	const bool is_send = step->kind == TTI_SEND || step->kind == TTI_NOTIFY;
	const size_t base = c->queue_of.n;

	for (size_t i = 0; i < n; i++) {
		const int32_t queue = queue_find(c, step[i].peer, is_send);
		size_t at;

		if (queue < 0 || !tti_vec_push(&c->queue_of, queue))
			return false;
		c->queue.at[queue].n++;
		if (is_send)
			continue;
		for (at = c->queue_of.n - 1; at > base; at--) {
			if (c->queue.at[c->queue_of.at[at - 1]].peer <= step[i].peer)
				break;
			c->queue_of.at[at] = c->queue_of.at[at - 1];
		}
		c->queue_of.at[at] = queue;
	}
	return true;
}

enum tti_place tti_compile_target(struct tti_compiler *c, int chunk, size_t index)
{
	const int twin = tti_chunk_twin(c->prog, chunk);

	if (!c->chunk[chunk].is_output)
		return TTI_PLACE_SCRATCH;
	c->chunk[chunk].is_staged = twin != chunk && c->chunk[twin].last_read > (int32_t)index;
	return c->chunk[chunk].is_staged ? TTI_PLACE_SCRATCH : TTI_PLACE_OUTPUT;
}

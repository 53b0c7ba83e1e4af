/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/compile/compile_parts.h"
#include "util/error.h"

/* Memory programs (program.h): each operation is begun by one step, and the steps that do the
 * same for other peers, or put what it has made, join it. Operations keep the order of the
 * program, so there are no edges. */

/* Whether step `at` does for another peer what the step before it does, in a row that begins with
 * step `first`, which marks the peers it has seen. */
static bool goes_on(const struct tti_compiler *c, size_t first, size_t at)
{
	const struct tti_step *step = &c->prog->steps.at[at], *before = step - 1;

	if (step->kind != before->kind || step->peer < 0 || step->peer >= c->prog->n ||
	    step->kind == TTI_GET || step->kind == TTI_COPY ||
	    c->seen[step->peer] == (int32_t)first)
		return false;
	return tti_step_is_sync(step->kind) ||
	       (step->chunk == before->chunk && step->stage == before->stage && !before->final);
}

/* How many steps from `first` on are one row; all of them are checked. */
static tutti_status measure_row(struct tti_compiler *c, size_t first, size_t *out)
{
	const struct tti_program *prog = c->prog;
	size_t at = first;

	do {
		TTI_TRY(tti_compile_check_step(c, at));
		c->seen[prog->steps.at[at].peer] = (int32_t)first;
		at++;
	} while (at < prog->steps.n && goes_on(c, first, at));
	*out = at - first;
	return TUTTI_OK;
}

/* The peers of a row of steps into peer_of[]; of sources in the order of ranks. */
static bool add_peers(struct tti_compiler *c, const struct tti_step *step, size_t n, bool by_rank)
{
	const size_t base = c->peer_of.n;

	for (size_t i = 0; i < n; i++) {
		size_t at;

		if (!tti_vec_push(&c->peer_of, (int32_t)step[i].peer))
			return false;
		for (at = c->peer_of.n - 1; by_rank && at > base; at--) {
			if (c->peer_of.at[at - 1] <= step[i].peer)
				break;
			c->peer_of.at[at] = c->peer_of.at[at - 1];
		}
		c->peer_of.at[at] = step[i].peer;
	}
	return true;
}

static struct tti_operation empty(const struct tti_compiler *c, int chunk, int stage)
{
	return (struct tti_operation){ .chunk = chunk,
				       .in = (int32_t)c->queue_of.n,
				       .out = (int32_t)c->queue_of.n,
				       .then = -1,
				       .stage = (uint8_t)stage,
				       .scratch = -1,
				       .get = (int32_t)c->peer_of.n,
				       .put = (int32_t)c->peer_of.n };
}

/* The chunk is written in this run. */
static void write_chunk(struct tti_compiler *c, struct tti_operation *oper, size_t index)
{
	struct tti_compile_chunk *chunk = &c->chunk[oper->chunk];

	oper->to = (uint8_t)tti_compile_target(c, oper->chunk, index);
	if (oper->to == TTI_PLACE_SCRATCH && (chunk->place != oper->to || chunk->run != c->run)) {
		chunk->scratch = c->nscratch++;
		if (c->nscratch > c->out->nscratch)
			c->out->nscratch = c->nscratch;
	}
	chunk->place = oper->to;
	chunk->run = c->run;
}

static bool push_oper(struct tti_compiler *c, struct tti_operation *oper, int32_t step)
{
	if (oper->stage >= c->out->nstages)
		c->out->nstages = oper->stage + 1;
	if (!oper->sync && !tti_vec_push(&c->local, (int32_t)c->oper.n))
		return false;
	return tti_vec_push(&c->oper, *oper) && tti_vec_push(&c->step, step);
}

static void begin_run(struct tti_compiler *c)
{
	c->run++;
	c->nscratch = 0;
}

/* NOTIFYs or WAITs; what stands after them is another run. */
static bool add_sync(struct tti_compiler *c, size_t first, size_t n)
{
	const struct tti_step *step = &c->prog->steps.at[first];
	const size_t nqueues = c->queue.n;
	struct tti_operation oper = empty(c, 0, 0);

	oper.sync = 1;
	if (step->kind == TTI_NOTIFY)
		oper.nout = (int16_t)n;
	else
		oper.nin = (int16_t)n;
	begin_run(c);
	if (!tti_compile_add_queues(c, step, n))
		return false;
	/* Its peers have queues for it only now. */
	if (c->oper.n == (size_t)c->out->nopening && c->queue.n == nqueues + n)
		c->out->nopening++;
	return push_oper(c, &oper, (int32_t)first);
}

/* GETs, GET_REDUCEs or a COPY. */
static bool add_value(struct tti_compiler *c, size_t first, size_t n)
{
	const struct tti_step *step = &c->prog->steps.at[first];
	const struct tti_compile_chunk *chunk = &c->chunk[step->chunk];
	struct tti_operation oper = empty(c, step->chunk, step->stage);

	if (step->kind != TTI_GET)
		oper.from = chunk->place;
	if (step->kind != TTI_COPY) {
		oper.nget = (int16_t)n;
		oper.final = step[n - 1].final;
		if (!add_peers(c, step, n, true))
			return false;
	}
	for (size_t i = 0; oper.from != TTI_PLACE_NONE && i < n; i++)
		oper.local_at = (int16_t)(oper.local_at + (step[i].peer < c->prog->rank));
	oper.put = (int32_t)c->peer_of.n;
	write_chunk(c, &oper, first);
	oper.scratch = chunk->scratch;
	return push_oper(c, &oper, (int32_t)first);
}

/* PUTs: what the operation before has made goes out in one pass. */
static bool add_puts(struct tti_compiler *c, size_t first, size_t n)
{
	const struct tti_step *step = &c->prog->steps.at[first];
	struct tti_operation *last = c->oper.n ? &c->oper.at[c->oper.n - 1] : NULL;
	struct tti_operation oper = empty(c, step->chunk, step->stage);

	if (!add_peers(c, step, n, false))
		return false;
	if (last && !last->sync && last->chunk == step->chunk && last->stage == step->stage &&
	    last->to != TTI_PLACE_NONE && last->nput == 0) {
		last->nput = (int16_t)n;
		return true;
	}
	oper.from = c->chunk[step->chunk].place;
	oper.scratch = c->chunk[step->chunk].scratch;
	oper.nput = (int16_t)n;
	return push_oper(c, &oper, (int32_t)first);
}

/* A COPY to where the input that lay there has now been read, by step `index`. */
static tutti_status add_staged(struct tti_compiler *c, size_t index)
{
	const struct tti_step *step = &c->prog->steps.at[index];
	const int twin = tti_chunk_twin(c->prog, step->chunk);
	struct tti_operation oper = empty(c, twin, step->stage);

	if (!c->chunk[twin].is_staged || c->chunk[step->chunk].last_read != (int32_t)index)
		return TUTTI_OK;
	if (c->chunk[twin].run != c->run)
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %zu: chunk %d is read in place after the run "
				      "of steps that got chunk %d, which is to lie there",
				      c->prog->rank, index, step->chunk, twin);
	oper.from = TTI_PLACE_SCRATCH;
	oper.scratch = c->chunk[twin].scratch;
	write_chunk(c, &oper, index);
	return push_oper(c, &oper, -1) ? TUTTI_OK : tti_compile_no_memory(c);
}

/* One row of steps. */
static tutti_status add_row(struct tti_compiler *c, size_t first, size_t n)
{
	const enum tti_step_kind kind = c->prog->steps.at[first].kind;
	bool done;

	if (tti_step_is_sync(kind))
		return add_sync(c, first, n) ? TUTTI_OK : tti_compile_no_memory(c);
	done = kind == TTI_PUT ? add_puts(c, first, n) : add_value(c, first, n);
	return done ? add_staged(c, first + n - 1) : tti_compile_no_memory(c);
}

tutti_status tti_compile_memory(struct tti_compiler *c)
{
	const struct tti_program *prog = c->prog;

	for (size_t first = 0, n; first < prog->steps.n; first += n) {
		if (first > 0 && prog->steps.at[first].stage != prog->steps.at[first - 1].stage)
			begin_run(c);
		TTI_TRY(measure_row(c, first, &n));
		TTI_TRY(add_row(c, first, n));
	}
	return TUTTI_OK;
}

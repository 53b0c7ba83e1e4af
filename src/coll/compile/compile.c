/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/compile/compile.h"

#include <inttypes.h>
#include <string.h>

#include "coll/compile/compile_parts.h"
#include "util/error.h"
#include "util/mem.h"

/* One pass over the steps makes operations and finds who waits for whom; then the
 * lists that the header shows (queues, successors) are laid out by counting. */

static tutti_status check_layout(const struct tti_program *prog)
{
	const bool by_pair = prog->coll == TUTTI_ALL_TO_ALL;
	const int64_t unit = by_pair                                 ? (int64_t)prog->n * prog->n
			     : tti_collective_is_by_rank(prog->coll) ? prog->n
								     : 1;

	if (prog->n < 1 || prog->n > TTI_PROGRAM_RANKS_MAX)
		return tti_fail_quiet(TUTTI_EINVAL, "%d ranks: 1 to %d are possible", prog->n,
				      TTI_PROGRAM_RANKS_MAX);
	if (prog->rank < 0 || prog->rank >= prog->n)
		return tti_fail_quiet(TUTTI_EINVAL, "rank %d is out of range, there are %d ranks",
				      prog->rank, prog->n);
	if (prog->root < 0 || prog->root >= prog->n)
		return tti_fail_quiet(TUTTI_EINVAL, "root %d is out of range, there are %d ranks",
				      prog->root, prog->n);
	if (prog->nchunks % unit != 0)
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"%s of %d ranks has %d chunks: must be %" PRId64 " or a multiple",
			tutti_collective_name(prog->coll), prog->n, prog->nchunks, unit);
	if (prog->nchunks < 1 || (prog->coll == TUTTI_BARRIER && prog->nchunks != 1))
		return tti_fail_quiet(TUTTI_EINVAL, "%s has %d chunks: must be %s",
				      tutti_collective_name(prog->coll), prog->nchunks,
				      prog->coll == TUTTI_BARRIER ? "1" : "1 or more");
	if (prog->steps.n > INT32_MAX / 4)
		return tti_fail_quiet(TUTTI_EINVAL, "rank %d has %zu steps: too many", prog->rank,
				      prog->steps.n);
	return TUTTI_OK;
}

/* Whether the fan-out to peers of steps[first .. first+n-1] shares a queue with all
 * fan-outs so far; if so it is counted as one. */
static bool joins_fanouts(struct tti_compiler *c, size_t first, size_t n)
{
	const struct tti_step *step = &c->prog->steps.at[first];
	bool joins = c->nfanouts == 0;

	for (size_t i = 0; i < n && !joins; i++)
		joins = c->common[step[i].peer] == c->nfanouts;
	if (!joins)
		return false;
	for (size_t i = 0; i < n; i++)
		if (c->common[step[i].peer] == c->nfanouts)
			c->common[step[i].peer]++;
	c->nfanouts++;
	return true;
}

/* How many steps from `first` on become operation `oper`. */
static size_t row_length(struct tti_compiler *c, size_t first, int32_t oper)
{
	const struct tti_step *step = &c->prog->steps.at[first];
	const size_t left = c->prog->steps.n - first;
	size_t n = 1;

	if (step->kind != TTI_SEND && step->kind != TTI_RECV_REDUCE)
		return 1;
	c->seen[step->peer] = oper;
	while (n < left && step[n].kind == step->kind && step[n].chunk == step->chunk &&
	       step[n].stage == step->stage && step[n].peer >= 0 && step[n].peer < c->prog->n &&
	       step[n].peer != c->prog->rank && c->seen[step[n].peer] != oper &&
	       !step[n - 1].final) {
		c->seen[step[n].peer] = oper;
		n++;
	}
	if (step->kind == TTI_SEND && n > 1 && !joins_fanouts(c, first, n))
		return 1;
	return n;
}

/* `to` waits for `from`, unless they share a queue: `stamp` marks those of `to`. */
static bool add_edge(struct tti_compiler *c, int32_t from, int32_t to)
{
	const struct tti_operation *oper = &c->oper.at[from];
	const struct tti_compile_edge edge = { from, to };

	if (oper->stage > c->oper.at[to].stage)
		c->bad_stage = to;
	for (int i = 0; i < oper->nin; i++)
		if (c->stamp[c->queue_of.at[oper->in + i]] == to)
			return true;
	for (int i = 0; i < oper->nout; i++)
		if (c->stamp[c->queue_of.at[oper->out + i]] == to)
			return true;
	return tti_vec_push(&c->edge, edge);
}

/* In place: what the newest operation writes lies where the input of another chunk did. It
 * waits for all that have read that. */
static bool add_twin_edges(struct tti_compiler *c, int32_t self)
{
	const struct tti_operation *oper = &c->oper.at[self];
	const int twin = tti_chunk_twin(c->prog, oper->chunk);
	const struct tti_compile_chunk *chunk = &c->chunk[twin];

	if (!c->prog->in_place || twin == oper->chunk || oper->to != TTI_PLACE_OUTPUT)
		return true;
	if (chunk->writer >= 0 && !add_edge(c, chunk->writer, self))
		return false;
	for (int32_t r = chunk->readers; r >= 0; r = c->reader.at[r].next)
		if (!add_edge(c, c->reader.at[r].oper, self))
			return false;
	return true;
}

/* Let the newest operation wait: a reader for the last writer; a writer for the readers since
 * then, or, if there are none, for the last writer. */
static bool add_edges(struct tti_compiler *c, bool is_write)
{
	const int32_t self = (int32_t)c->oper.n - 1;
	const struct tti_operation *oper = &c->oper.at[self];
	struct tti_compile_chunk *chunk = &c->chunk[oper->chunk];

	for (int i = 0; i < oper->nin; i++)
		c->stamp[c->queue_of.at[oper->in + i]] = self;
	for (int i = 0; i < oper->nout; i++)
		c->stamp[c->queue_of.at[oper->out + i]] = self;

	if (!add_twin_edges(c, self))
		return false;
	if (chunk->writer >= 0 && !(is_write && chunk->readers >= 0))
		if (!add_edge(c, chunk->writer, self))
			return false;
	if (is_write) {
		for (int32_t r = chunk->readers; r >= 0; r = c->reader.at[r].next)
			if (!add_edge(c, c->reader.at[r].oper, self))
				return false;
		chunk->writer = self;
		chunk->readers = -1;
	} else {
		const struct tti_compile_reader reader = { self, chunk->readers };

		if (!tti_vec_push(&c->reader, reader))
			return false;
		chunk->readers = (int32_t)c->reader.n - 1;
	}
	return true;
}

/* One operation from a row of n steps that begins with step `index`; `is_added`: a COPY that no
 * step says. */
static bool add_oper(struct tti_compiler *c, const struct tti_step *step, size_t n, size_t index,
		     bool is_added)
{
	struct tti_compile_chunk *chunk = &c->chunk[step->chunk];
	const bool is_write = step->kind != TTI_SEND, is_read = step->kind != TTI_RECV;
	struct tti_operation oper = {
		.chunk = step->chunk,
		.in = (int32_t)c->queue_of.n,
		.out = (int32_t)c->queue_of.n,
		.then = -1,
		.stage = (uint8_t)step->stage,
		.from = is_read ? chunk->place : TTI_PLACE_NONE,
	};

	if (step->kind == TTI_SEND)
		oper.nout = (int16_t)n;
	else if (step->kind != TTI_COPY)
		oper.nin = (int16_t)n;
	if (is_write)
		oper.to = (uint8_t)tti_compile_target(c, step->chunk, index);
	if (step->kind == TTI_RECV_REDUCE) {
		oper.final = step[n - 1].final;
		for (size_t i = 0; i < n; i++)
			oper.local_at = (int16_t)(oper.local_at + (step[i].peer < c->prog->rank));
	}
	if (oper.stage >= c->out->nstages)
		c->out->nstages = oper.stage + 1;
	if (oper.to == TTI_PLACE_SCRATCH && chunk->scratch < 0)
		chunk->scratch = c->out->nscratch++;
	oper.scratch = chunk->scratch;
	if (is_write)
		chunk->place = oper.to;
	if (step->kind == TTI_COPY) {
		if (!tti_vec_push(&c->local, (int32_t)c->oper.n))
			return false;
	} else if (!tti_compile_add_queues(c, step, n)) {
		return false;
	}
	return tti_vec_push(&c->oper, oper) &&
	       tti_vec_push(&c->step, is_added ? -1 : (int32_t)index) && add_edges(c, is_write);
}

/* What was kept in scratch until the input at its place had been read, which step `index` was
 * the last one to do. */
static bool add_staged(struct tti_compiler *c, size_t index)
{
	const struct tti_step *step = &c->prog->steps.at[index];
	const int twin = tti_chunk_twin(c->prog, step->chunk);
	struct tti_step copy = {
		.kind = TTI_COPY, .chunk = twin, .peer = c->prog->rank, .stage = step->stage
	};

	if (!c->chunk[twin].is_staged || c->chunk[step->chunk].last_read != (int32_t)index)
		return true;
	if (copy.stage < c->oper.at[c->chunk[twin].writer].stage)
		copy.stage = c->oper.at[c->chunk[twin].writer].stage;
	return add_oper(c, &copy, 1, index, true);
}

static tutti_status add_opers(struct tti_compiler *c)
{
	const struct tti_program *prog = c->prog;

	for (size_t first = 0, n; first < prog->steps.n; first += n) {
		TTI_TRY(tti_compile_check_step(c, first));
		n = row_length(c, first, (int32_t)c->oper.n);
		for (size_t i = 1; i < n; i++)
			TTI_TRY(tti_compile_check_step(c, first + i));
		if (!add_oper(c, &prog->steps.at[first], n, first, false) ||
		    !add_staged(c, first + n - 1))
			return tti_compile_no_memory(c);
		if (c->bad_stage >= 0)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d, step %zu: chunk %d waits for a step of a "
					      "later stage than its own",
					      prog->rank, first, prog->steps.at[first].chunk);
	}
	/* A barrier has no data; send_recv has no chunk that is both. */
	if (prog->coll == TUTTI_BARRIER || prog->coll == TUTTI_SEND_RECV)
		return TUTTI_OK;
	for (int chunk = 0; chunk < prog->nchunks; chunk++) {
		const struct tti_step copy = { .kind = TTI_COPY,
					       .chunk = chunk,
					       .peer = prog->rank,
					       .stage = c->out->nstages - 1 };

		if (c->chunk[chunk].place == TTI_PLACE_INPUT && c->chunk[chunk].is_output &&
		    !add_oper(c, &copy, 1, prog->steps.n, true))
			return tti_compile_no_memory(c);
	}
	return TUTTI_OK;
}

/* queue[].first, queued[] from the queues of the operations. */
static bool lay_out_queues(struct tti_compiler *c)
{
	struct tti_compiled *out = c->out;
	int32_t first = 0;

	if (!tti_vec_reserve((void **)&c->queued.at, &c->queued.room, c->queue_of.n + 1,
			     sizeof(*c->queued.at)))
		return false;
	for (int32_t q = 0; q < out->nqueues; q++) {
		out->queue[q].first = first;
		first += out->queue[q].n;
		out->queue[q].n = 0;
	}
	for (int32_t o = 0; o < out->nopers; o++) {
		const struct tti_operation *oper = &out->oper[o];

		for (int i = 0; i < oper->nin + oper->nout; i++) {
			struct tti_queue *queue = &out->queue[out->queue_of[oper->in + i]];

			c->queued.at[queue->first + queue->n++] = o;
		}
	}
	return true;
}

/* succ, nsucc, npred, then and succs[] from the edges. */
static tutti_status lay_out_succs(struct tti_compiler *c)
{
	struct tti_compiled *out = c->out;
	int32_t first = 0;

	if (!tti_vec_reserve((void **)&c->succs.at, &c->succs.room, c->edge.n + 1,
			     sizeof(*c->succs.at)))
		return tti_compile_no_memory(c);
	for (size_t e = 0; e < c->edge.n; e++) {
		struct tti_operation *to = &out->oper[c->edge.at[e].to];

		if (to->npred == INT16_MAX)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d, step %d: more than %d steps read chunk %d "
					      "before it is written",
					      out->rank, (int)c->step.at[c->edge.at[e].to],
					      INT16_MAX, (int)to->chunk);
		to->npred++;
		out->oper[c->edge.at[e].from].nsucc++;
	}
	for (int32_t o = 0; o < out->nopers; o++) {
		out->oper[o].succ = first;
		first += out->oper[o].nsucc;
		out->oper[o].nsucc = 0;
	}
	for (size_t e = 0; e < c->edge.n; e++) {
		struct tti_operation *from = &out->oper[c->edge.at[e].from];
		const struct tti_operation *to = &out->oper[c->edge.at[e].to];

		c->succs.at[from->succ + from->nsucc++] = c->edge.at[e].to;
		if (from->then < 0 && from->nin && to->nout && to->npred == 1)
			from->then = c->edge.at[e].to;
	}
	return TUTTI_OK;
}

/* SEND of the one chunk to all others, then a reduction from all others. */
static bool is_exchange(const struct tti_compiled *out)
{
	return out->n > 1 && out->nchunks == 1 && out->nopers == 2 &&
	       (out->coll == TUTTI_ALL_REDUCE || out->coll == TUTTI_BARRIER) &&
	       out->oper[0].nout == out->n - 1 && out->oper[1].nin == out->n - 1 &&
	       out->oper[1].from == TTI_PLACE_INPUT;
}

/* Where chunks are pairs of ranks: until when the input of each is needed, as in place the
 * output of another lies there. */
static void find_last_reads(struct tti_compiler *c)
{
	const struct tti_program *prog = c->prog;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];

		if ((step->kind == TTI_SEND || step->kind == TTI_PUT) && step->chunk >= 0 &&
		    step->chunk < prog->nchunks && c->chunk[step->chunk].is_input)
			c->chunk[step->chunk].last_read = (int32_t)i;
	}
}

/* In send_recv the steps say what is input and output. */
static void init_messages(struct tti_compiler *c)
{
	const struct tti_program *prog = c->prog;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];
		struct tti_compile_chunk *chunk;

		if (tti_step_is_sync(step->kind) || step->chunk < 0 || step->chunk >= prog->nchunks)
			continue;
		chunk = &c->chunk[step->chunk];
		/* What is received after it was sent takes its place. */
		if (!chunk->is_output)
			chunk->is_input |= step->kind == TTI_SEND || step->kind == TTI_COPY;
		chunk->is_output |= step->kind != TTI_SEND;
		chunk->place = chunk->is_input ? TTI_PLACE_INPUT : TTI_PLACE_NONE;
	}
}

static void init_chunks(struct tti_compiler *c)
{
	const struct tti_program *prog = c->prog;

	for (int i = 0; i < prog->nchunks; i++) {
		struct tti_compile_chunk *chunk = &c->chunk[i];

		chunk->writer = -1;
		chunk->readers = -1;
		chunk->scratch = -1;
		chunk->last_read = -1;
		if (prog->coll == TUTTI_SEND_RECV)
			continue;
		chunk->is_input = tti_chunk_is_input(prog, i);
		chunk->is_output = tti_chunk_is_output(prog, i);
		chunk->place = chunk->is_input ? TTI_PLACE_INPUT : TTI_PLACE_NONE;
	}
	if (prog->coll == TUTTI_SEND_RECV)
		init_messages(c);
	if (prog->coll == TUTTI_ALL_TO_ALL && prog->in_place)
		find_last_reads(c);
}

static tutti_status compile(struct tti_compiler *c)
{
	const size_t n = (size_t)c->prog->n, nchunks = (size_t)c->prog->nchunks;

	c->chunk = tti_arena_alloc(&c->arena, nchunks * sizeof(*c->chunk));
	c->queue_at = tti_arena_alloc(&c->arena, 2 * n * sizeof(*c->queue_at));
	c->seen = tti_arena_alloc(&c->arena, n * sizeof(*c->seen));
	c->common = tti_arena_alloc(&c->arena, n * sizeof(*c->common));
	c->stamp = tti_arena_alloc(&c->arena, 2 * n * sizeof(*c->stamp));
	/* peer_of[] is there where no operation has peers, too: each has a first index into it. */
	if (!c->chunk || !c->queue_at || !c->seen || !c->common || !c->stamp ||
	    !tti_vec_reserve((void **)&c->peer_of.at, &c->peer_of.room, 1, sizeof(*c->peer_of.at)))
		return tti_compile_no_memory(c);
	memset(c->queue_at, -1, 2 * n * sizeof(*c->queue_at));
	memset(c->seen, -1, n * sizeof(*c->seen));
	memset(c->stamp, -1, 2 * n * sizeof(*c->stamp));
	init_chunks(c);
	return c->out->is_memory ? tti_compile_memory(c) : add_opers(c);
}

tutti_status tti_compile(const struct tti_program *prog, struct tti_compiled *out)
{
	struct tti_compiled compiled = { .coll = prog->coll,
					 .algorithm = prog->algorithm,
					 .rank = prog->rank,
					 .n = prog->n,
					 .root = prog->root,
					 .nchunks = prog->nchunks,
					 .nstages = 1,
					 .is_memory = tti_program_is_memory(prog) };
	struct tti_compiler c = { .prog = prog, .out = &compiled, .bad_stage = -1 };
	tutti_status st;

	TTI_TRY(check_layout(prog));
	st = compile(&c);
	compiled.oper = c.oper.at;
	compiled.nopers = (int32_t)c.oper.n;
	compiled.queue = c.queue.at;
	compiled.nqueues = (int32_t)c.queue.n;
	compiled.queue_of = c.queue_of.at;
	compiled.peer_of = c.peer_of.at;
	compiled.step = c.step.at;
	compiled.local = c.local.at;
	compiled.nlocal = (int32_t)c.local.n;
	if (st == TUTTI_OK && !lay_out_queues(&c))
		st = tti_compile_no_memory(&c);
	if (st == TUTTI_OK)
		st = lay_out_succs(&c);
	compiled.queued = c.queued.at;
	compiled.succs = c.succs.at;
	if (st == TUTTI_OK) {
		compiled.exchange = is_exchange(&compiled);
		*out = compiled;
	} else {
		tti_compiled_release(&compiled);
	}
	tti_vec_release(&c.reader);
	tti_vec_release(&c.edge);
	tti_arena_release(&c.arena);
	return st;
}

void tti_compiled_release(struct tti_compiled *compiled)
{
	tti_free(compiled->oper);
	tti_free(compiled->queue);
	tti_free(compiled->queue_of);
	tti_free(compiled->peer_of);
	tti_free(compiled->step);
	tti_free(compiled->local);
	tti_free(compiled->queued);
	tti_free(compiled->succs);
	memset(compiled, 0, sizeof(*compiled));
}

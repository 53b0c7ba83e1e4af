/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the events of a file, in their order, into the steps of programs.
 *
 * A message may bring a value of a chunk while the rank still uses another value of it, and the
 * file reduces the two later. Once it does, the RECV of the message becomes a RECV_REDUCE. The
 * step keeps its place if no step has read the chunk since. Otherwise it moves to the end of the
 * program, which is possible only if no later message of the same peer was received since. */
#include <string.h>

#include "coll/files/msccl_values.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status no_memory(const struct tti_msccl_emitter *e)
{
	return tti_fail(TUTTI_ENOMEM, "reading %s: out of memory", e->m->doc->source);
}

static const char *const buf_name[] = { "i", "o", "s" };

/* What the source of a step holds. */
static tutti_status source(const struct tti_msccl_emitter *e, const struct tti_msccl_event *event,
			   bool is_dst, int32_t *out)
{
	const struct tti_msccl_step *step = &e->m->steps.at[event->step];
	const int32_t place = is_dst ? tti_msccl_dst_of(e, event) : tti_msccl_src_of(e, event);

	*out = e->place[place];
	if (*out != TTI_MSCCL_NONE)
		return TUTTI_OK;
	return tti_msccl_fail(e->m, event->step,
			      "reads chunk %d of buffer %s, which holds nothing then",
			      (is_dst ? step->dstoff : step->srcoff) + event->chunk,
			      buf_name[is_dst ? step->dst : step->src]);
}

/* -- Steps of programs ------------------------------------------------------------- */

static bool push(struct tti_msccl_emitter *e, int rank, enum tti_step_kind kind, int32_t chunk,
		 int32_t peer)
{
	struct tti_program *prog = &e->prog[rank];
	const int32_t index = (int32_t)prog->steps.n;

	if (kind == TTI_SEND)
		tti_send(prog, chunk, peer);
	else if (kind == TTI_RECV)
		tti_recv(prog, chunk, peer);
	else
		tti_recv_reduce(prog, chunk, peer, false);
	if (kind != TTI_SEND)
		e->from[(size_t)rank * (size_t)e->m->n + (size_t)peer] = index;
	return !prog->failed;
}

/* Note that the last step of the program uses the value of its chunk. */
static void note(struct tti_msccl_emitter *e, int rank)
{
	const struct tti_program *prog = &e->prog[rank];
	const int32_t index = (int32_t)prog->steps.n - 1;
	const struct tti_step *step = &prog->steps.at[index];
	const size_t at = tti_msccl_cell(e, rank, step->chunk);

	e->touched[at] = index;
	if (step->kind == TTI_RECV_REDUCE)
		e->reduced[at] = index;
	else
		e->looked[at] = index;
}

/* The line of the step that made a value, for errors. */
static uint32_t made_on(const struct tti_msccl_emitter *e, int32_t value)
{
	const int32_t origin = e->value.at[value].origin;

	return origin == TTI_MSCCL_NONE ? e->m->gpu[0].node->line : tti_msccl_line(e->m, origin);
}

static tutti_status two_values(const struct tti_msccl_emitter *e, int32_t step, int32_t value,
			       int32_t other)
{
	return tti_msccl_fail(
		e->m, step,
		"gpu %d needs two values of chunk %d at once, those of lines %u and %u: "
		"a program keeps one value of a chunk on each rank",
		tti_msccl_gpu_of(e->m, step), e->value.at[value].chunk, made_on(e, value),
		made_on(e, other));
}

/* The receive of an incoming value becomes a step of `kind`. It keeps its place in the program
 * if that comes after step `after`, else it moves to the end. */
static tutti_status take(struct tti_msccl_emitter *e, int32_t step, int32_t value, int32_t after,
			 enum tti_step_kind kind)
{
	const int rank = tti_msccl_gpu_of(e->m, step);
	struct tti_msccl_value *v = &e->value.at[value];
	struct tti_program *prog = &e->prog[rank];
	const size_t at = tti_msccl_cell(e, rank, v->chunk);
	int32_t index = v->recv;

	if (after > index) {
		if (e->from[(size_t)rank * (size_t)e->m->n + (size_t)v->peer] != index)
			return tti_msccl_fail(e->m, step,
					      "what line %u receives is needed only after "
					      "another value of its chunk, but gpu %d receives "
					      "more from gpu %d before: a program keeps one "
					      "value of chunk %d on each rank",
					      made_on(e, value), rank, v->peer, v->chunk);
		prog->steps.at[index].chunk = TTI_MSCCL_NONE; /* removed at the end */
		index = (int32_t)prog->steps.n;
		if (!push(e, rank, kind, v->chunk, v->peer))
			return no_memory(e);
	}
	prog->steps.at[index].kind = kind;
	if (index > e->touched[at])
		e->touched[at] = index;
	if (kind == TTI_RECV_REDUCE && index > e->reduced[at])
		e->reduced[at] = index;
	if (kind == TTI_RECV)
		e->looked[at] = index;
	v->recv = TTI_MSCCL_NONE;
	return TUTTI_OK;
}

/* Make a value the program's value of its chunk. */
static tutti_status bring(struct tti_msccl_emitter *e, int32_t step, int32_t value)
{
	const int rank = tti_msccl_gpu_of(e->m, step);
	const struct tti_msccl_value *v = &e->value.at[value];
	int32_t *main = tti_msccl_main_of(e, rank, v->chunk);

	if (*main == value)
		return TUTTI_OK;
	if (*main != TTI_MSCCL_NONE)
		return two_values(e, step, value, *main);
	TTI_TRY(take(e, step, value, e->touched[tti_msccl_cell(e, rank, v->chunk)], TTI_RECV));
	*main = value;
	return TUTTI_OK;
}

/* -- What can happen --------------------------------------------------------------- */

static tutti_status other_chunk(const struct tti_msccl_emitter *e, int32_t step, int32_t chunk,
				int32_t other)
{
	return tti_msccl_fail(e->m, step, "adds chunk %d to chunk %d", other, chunk);
}

/* into += from, both of one rank; that of the program is marked if it is complete. */
static tutti_status unite(struct tti_msccl_emitter *e, int32_t step, int32_t into, int32_t from)
{
	const int rank = tti_msccl_gpu_of(e->m, step);
	const size_t n = (size_t)e->m->n;
	const int32_t chunk = e->value.at[into].chunk;
	uint64_t *sum = tti_msccl_set_of(e, into);
	const uint64_t *more = tti_msccl_set_of(e, from);

	if (chunk != e->value.at[from].chunk)
		return other_chunk(e, step, chunk, e->value.at[from].chunk);
	for (size_t w = 0; w < e->words; w++) {
		const uint64_t both = sum[w] & more[w];

		if (both)
			return tti_msccl_fail(e->m, step,
					      "adds what gpu %zu contributes to chunk %d, which is "
					      "in it already",
					      64 * w + (size_t)__builtin_ctzll(both), chunk);
		sum[w] |= more[w];
	}
	e->value.at[into].origin = step;
	if (tti_bitset_first_clear(sum, n) == n)
		e->prog[rank].steps.at[e->reduced[tti_msccl_cell(e, rank, chunk)]].final = true;
	return TUTTI_OK;
}

/* No step reads a place again before it is written, so it holds its value no longer. */
static tutti_status let_go(struct tti_msccl_emitter *e, int rank, int32_t place)
{
	return tti_msccl_set_place(e, rank, place, TTI_MSCCL_NONE) ? TUTTI_OK : no_memory(e);
}

/* The places of a reduction once it is done: dst holds `sum` (TTI_MSCCL_NONE: nothing does), and src
 * no longer holds its value if no step reads it again. After that `sum` may have no place. */
static tutti_status settle(struct tti_msccl_emitter *e, int32_t index, int32_t src, int32_t dst,
			   int32_t sum)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const int rank = tti_msccl_gpu_of(e->m, event->step);

	if (dst != TTI_MSCCL_NONE &&
	    !tti_msccl_set_place(e, rank, dst,
				 e->lives[index] & TTI_MSCCL_DST_LIVES ? sum : TTI_MSCCL_NONE))
		return no_memory(e);
	if (src != dst && !(e->lives[index] & TTI_MSCCL_SRC_LIVES))
		TTI_TRY(let_go(e, rank, src));
	return TUTTI_OK;
}

/* A reduction of two values of one rank: the incoming one is reduced into the other. */
static tutti_status reduce_local(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const int rank = tti_msccl_gpu_of(e->m, event->step);
	const int32_t src = tti_msccl_src_of(e, event), dst = tti_msccl_dst_of(e, event);
	const int32_t kept_src = e->lives[index] & TTI_MSCCL_SRC_LIVES ? TTI_MSCCL_NONE : src;
	int32_t a, b, into, from;

	TTI_TRY(source(e, event, false, &a));
	TTI_TRY(source(e, event, true, &b));
	if (a == b)
		return tti_msccl_fail(e->m, event->step, "adds chunk %d to itself",
				      e->value.at[a].chunk);
	if (e->value.at[a].chunk != e->value.at[b].chunk)
		return other_chunk(e, event->step, e->value.at[b].chunk, e->value.at[a].chunk);
	into = e->value.at[b].recv == TTI_MSCCL_NONE || e->value.at[a].recv != TTI_MSCCL_NONE ? b
											      : a;
	from = into == b ? a : b;
	/* Neither is the program's value of the chunk, so the one that came first becomes it. */
	if (e->value.at[into].recv != TTI_MSCCL_NONE) {
		into = e->value.at[a].recv < e->value.at[b].recv ? a : b;
		from = into == b ? a : b;
		TTI_TRY(bring(e, event->step, into));
	}
	if (e->value.at[from].recv == TTI_MSCCL_NONE ||
	    tti_msccl_read_elsewhere(e, a, kept_src, dst) ||
	    tti_msccl_read_elsewhere(e, b, kept_src, dst))
		return two_values(e, event->step, a, b);
	TTI_TRY(take(e, event->step, from,
		     e->looked[tti_msccl_cell(e, rank, e->value.at[into].chunk)], TTI_RECV_REDUCE));
	TTI_TRY(unite(e, event->step, into, from));
	e->value.at[into].refs++; /* it may have no place for a moment */
	TTI_TRY(settle(e, index, src, dst, into));
	return tti_msccl_drop(e, rank, into) ? TUTTI_OK : no_memory(e);
}

static tutti_status copy(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const int rank = tti_msccl_gpu_of(e->m, event->step);
	const int32_t src = tti_msccl_src_of(e, event), dst = tti_msccl_dst_of(e, event);
	int32_t value;

	TTI_TRY(source(e, event, false, &value));
	if (src == dst)
		return TUTTI_OK;
	if (!tti_msccl_set_place(e, rank, dst,
				 e->lives[index] & TTI_MSCCL_DST_LIVES ? value : TTI_MSCCL_NONE))
		return no_memory(e);
	return e->lives[index] & TTI_MSCCL_SRC_LIVES ? TUTTI_OK : let_go(e, rank, src);
}

/* A message arrives. *out is its value, and the caller holds it. The value stays "incoming" as
 * long as the rank uses another value of the chunk. */
static tutti_status receive(struct tti_msccl_emitter *e, const struct tti_msccl_event *event,
			    int32_t *out)
{
	const struct tti_msccl_tb *tb = &e->m->tbs.at[e->m->steps.at[event->step].tb];
	const int32_t value = e->message[e->m->steps.at[event->step].tb];
	struct tti_msccl_value *v = &e->value.at[value];
	int32_t *main = tti_msccl_main_of(e, tb->gpu, v->chunk);

	v->origin = event->step;
	v->peer = tb->recv;
	*out = value;
	if (!push(e, tb->gpu, TTI_RECV, v->chunk, tb->recv))
		return no_memory(e);
	if (*main == TTI_MSCCL_NONE) {
		note(e, tb->gpu);
		*main = value;
	} else {
		v->recv = (int32_t)e->prog[tb->gpu].steps.n - 1;
	}
	return TUTTI_OK;
}

/* r, rcs: write what is received into a place. */
static tutti_status receive_copy(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const int rank = tti_msccl_gpu_of(e->m, event->step);
	const int32_t tb = e->m->steps.at[event->step].tb;
	int32_t value;

	TTI_TRY(receive(e, event, &value));
	if (!tti_msccl_set_place(e, rank, tti_msccl_dst_of(e, event),
				 e->lives[index] & TTI_MSCCL_DST_LIVES ? value : TTI_MSCCL_NONE))
		return no_memory(e);
	if (e->m->steps.at[event->step].type == TTI_MSCCL_RCS) {
		e->held[tb] = value;
		return TUTTI_OK;
	}
	if (e->value.at[value].refs == 1 && e->value.at[value].recv != TTI_MSCCL_NONE)
		return tti_msccl_fail(e->m, event->step, "receives chunk %d, which nothing reads",
				      e->value.at[value].chunk);
	return tti_msccl_drop(e, rank, value) ? TUTTI_OK : no_memory(e);
}

/* rrc, rrs, rrcs: reduce what is received with what the rank has. */
static tutti_status receive_reduce(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const uint8_t type = e->m->steps.at[event->step].type;
	const int32_t tb = e->m->steps.at[event->step].tb, rank = e->m->tbs.at[tb].gpu;
	const int32_t src = tti_msccl_src_of(e, event);
	const int32_t dst = type == TTI_MSCCL_RRS ? TTI_MSCCL_NONE : tti_msccl_dst_of(e, event);
	const int32_t message = e->message[tb];
	int32_t value;

	TTI_TRY(source(e, event, false, &value));
	TTI_TRY(bring(e, event->step, value));
	if (tti_msccl_read_elsewhere(
		    e, value,
		    e->lives[index] & TTI_MSCCL_SRC_LIVES && src != dst ? TTI_MSCCL_NONE : src,
		    dst))
		return two_values(e, event->step, value, message);
	if (!push(e, rank, TTI_RECV_REDUCE, e->value.at[message].chunk, e->m->tbs.at[tb].recv))
		return no_memory(e);
	note(e, rank);
	TTI_TRY(unite(e, event->step, value, message));
	e->value.at[value].refs++;
	TTI_TRY(settle(e, index, src, dst, value));
	if (!tti_msccl_drop(e, rank, message))
		return no_memory(e);
	if (type != TTI_MSCCL_RRC) {
		e->held[tb] = value;
		return TUTTI_OK;
	}
	return tti_msccl_drop(e, rank, value) ? TUTTI_OK : no_memory(e);
}

/* A send makes a new value at the receiver, which the message holds until it arrives. */
static tutti_status send(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];
	const int32_t tb = e->m->steps.at[event->step].tb, rank = e->m->tbs.at[tb].gpu;
	const int32_t partner = e->m->steps.at[e->events->at.at[event->partner].step].tb;
	const bool is_first = e->m->steps.at[event->step].type == TTI_MSCCL_S;
	int32_t value = e->held[tb], copy_of; /* the next step's receive may be held already */

	if (is_first)
		TTI_TRY(source(e, event, false, &value));
	TTI_TRY(bring(e, event->step, value));
	if (!push(e, rank, TTI_SEND, e->value.at[value].chunk, e->m->tbs.at[tb].send))
		return no_memory(e);
	note(e, rank);
	copy_of = tti_msccl_new_value(e, e->value.at[value].chunk, event->step);
	if (copy_of == TTI_MSCCL_NONE)
		return no_memory(e);
	memcpy(tti_msccl_set_of(e, copy_of), tti_msccl_set_of(e, value),
	       e->words * sizeof(uint64_t));
	e->value.at[copy_of].refs = 1;
	e->message[partner] = copy_of;
	if (is_first)
		return e->lives[index] & TTI_MSCCL_SRC_LIVES
			       ? TUTTI_OK
			       : let_go(e, rank, tti_msccl_src_of(e, event));
	e->held[tb] = TTI_MSCCL_NONE;
	return tti_msccl_drop(e, rank, value) ? TUTTI_OK : no_memory(e);
}

static tutti_status happen(struct tti_msccl_emitter *e, int32_t index)
{
	const struct tti_msccl_event *event = &e->events->at.at[index];

	if (event->half == TTI_MSCCL_PUT)
		return send(e, index);
	switch ((enum tti_msccl_type)e->m->steps.at[event->step].type) {
	case TTI_MSCCL_R:
	case TTI_MSCCL_RCS:
		return receive_copy(e, index);
	case TTI_MSCCL_RRC:
	case TTI_MSCCL_RRS:
	case TTI_MSCCL_RRCS:
		return receive_reduce(e, index);
	case TTI_MSCCL_CPY:
		return copy(e, index);
	case TTI_MSCCL_RE:
		return reduce_local(e, index);
	case TTI_MSCCL_NOP:
	case TTI_MSCCL_S:
	case TTI_MSCCL_TYPES:
		break;
	}
	return TUTTI_OK;
}

/* -- The end ----------------------------------------------------------------------- */

/* Check what a place of the output holds at the end. */
static tutti_status check_output(struct tti_msccl_emitter *e, int rank, int32_t chunk)
{
	const struct tti_msccl *m = e->m;
	const size_t n = (size_t)m->n;
	const bool reduces = tti_collective_reduces(m->coll);
	const int32_t home = tti_msccl_home_of(e, rank, TTI_MSCCL_OUTPUT, chunk);
	const int32_t value = home == TTI_MSCCL_NONE ? TTI_MSCCL_NONE : e->place[home];
	const struct tti_xml *node = m->gpu[rank].node;
	const struct tti_msccl_value *v;
	size_t missing;

	if (home == TTI_MSCCL_NONE)
		return TUTTI_OK;
	if (value == TTI_MSCCL_NONE)
		return tti_xml_fail(m->doc, node, "gpu %d ends without chunk %d in its output",
				    rank, chunk);
	v = &e->value.at[value];
	if (v->origin != TTI_MSCCL_NONE)
		node = m->steps.at[v->origin].node;
	if (v->chunk != chunk)
		return tti_xml_fail(m->doc, node,
				    "gpu %d ends with chunk %d where chunk %d of its output should "
				    "be",
				    rank, v->chunk, chunk);
	missing = tti_bitset_first_clear(tti_msccl_set_of(e, value), n);
	if (reduces && missing < n)
		return tti_xml_fail(m->doc, node,
				    "gpu %d ends with chunk %d of its output without what gpu %zu "
				    "contributes",
				    rank, chunk, missing);
	return v->recv == TTI_MSCCL_NONE ? TUTTI_OK : bring(e, v->origin, value);
}

static void take_out_moved(struct tti_program *prog)
{
	size_t kept = 0;

	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].chunk != TTI_MSCCL_NONE)
			prog->steps.at[kept++] = prog->steps.at[i];
	prog->steps.n = kept;
}

static tutti_status emit(struct tti_msccl_emitter *e)
{
	TTI_TRY(tti_msccl_values_init(e));
	for (size_t i = 0; i < e->events->at.n; i++)
		TTI_TRY(happen(e, e->events->order[i]));
	for (int rank = 0; rank < e->m->n; rank++) {
		for (int32_t chunk = 0; chunk < e->m->nvalues; chunk++)
			TTI_TRY(check_output(e, rank, chunk));
		take_out_moved(&e->prog[rank]);
	}
	return TUTTI_OK;
}

tutti_status tti_msccl_emit(const struct tti_msccl *m, const struct tti_msccl_events *events,
			    struct tti_program *prog)
{
	struct tti_msccl_emitter e = { .m = m, .events = events, .prog = prog };
	tutti_status st;

	for (int rank = 0; rank < m->n; rank++)
		prog[rank] = (struct tti_program){ .coll = m->coll,
						   .rank = rank,
						   .n = m->n,
						   .root = m->root,
						   .nchunks = m->nvalues };
	st = emit(&e);
	tti_msccl_values_release(&e);
	return st;
}

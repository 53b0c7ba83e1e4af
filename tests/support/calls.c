/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/world.h"

#define GUARD ((size_t)64)
#define GAP   ((size_t)3) /* elements between the parts of a buffer, where there may be some */
#define BLANK 0x55

/* -- Collectives --------------------------------------------------------------------- */

static const struct operation operations[TUTTI_COLLECTIVE_COUNT] = {
	[TUTTI_ALL_REDUCE] = { .reduces = true },
	[TUTTI_BROADCAST] = { .rooted = true },
	[TUTTI_REDUCE] = { .rooted = true, .reduces = true },
	[TUTTI_ALL_GATHER] = { .gets_all = true },
	[TUTTI_REDUCE_SCATTER] = { .reduces = true, .sends_all = true },
	[TUTTI_SEND_RECV] = { .pairwise = true,
			      .sends_all = true,
			      .gets_all = true,
			      .uneven = true },
	[TUTTI_ALL_TO_ALL] = { .pairwise = true, .sends_all = true, .gets_all = true },
	[TUTTI_GATHER] = { .rooted = true, .gets_all = true },
	[TUTTI_SCATTER] = { .rooted = true, .sends_all = true },
	[TUTTI_ALL_TO_ALL_V] = { .pairwise = true,
				 .sends_all = true,
				 .gets_all = true,
				 .uneven = true,
				 .has_displs = true },
	[TUTTI_GATHER_V] = { .rooted = true, .gets_all = true, .uneven = true, .has_displs = true },
	[TUTTI_SCATTER_V] = { .rooted = true,
			      .sends_all = true,
			      .uneven = true,
			      .has_displs = true },
	[TUTTI_ALL_GATHER_V] = { .gets_all = true, .uneven = true, .has_displs = true },
	[TUTTI_REDUCE_SCATTER_V] = { .reduces = true, .sends_all = true, .uneven = true },
};

const struct operation *operation_of(tutti_collective coll)
{
	return &operations[coll];
}

/* -- What goes where ----------------------------------------------------------------- */

/* One rank's view: counts and where parts begin, in elements, and how long buffers are. */
struct view {
	size_t send_counts[NUMBERS_RANKS], send_displs[NUMBERS_RANKS];
	size_t recv_counts[NUMBERS_RANKS], recv_displs[NUMBERS_RANKS];
	size_t sends, recvs;
};

static size_t uneven_count(const struct call *call, int a, int b, int n)
{
	const size_t chunk = (call->count + (size_t)n - 1) / (size_t)n, before = (size_t)b * chunk;

	switch (call->spread) {
	case CALL_EQUAL:
		return call->count;
	case CALL_ONE_HAS_ALL:
		return b == n / 2 ? call->count : 0;
	case CALL_RISING:
		return call->count * (size_t)((a + b) % n) / (size_t)n;
	case CALL_ODD:
		return (size_t)(a * 7 + b * 13) % (call->count + 1);
	case CALL_CHUNKS:
		return before >= call->count          ? 0
		       : call->count - before < chunk ? call->count - before
						      : chunk;
	case CALL_NOTHING:
		break;
	}
	return 0;
}

/* The rank `by` further; -1: none, as a chain that is open has ended. */
static int neighbour(const struct call *call, int rank, int by, int n)
{
	const int to = rank + by;

	if (call->in_place && (to < 0 || to >= n))
		return -1;
	return ((to % n) + n) % n;
}

/* How much `from` sends to `to`; where counts are the same on all, how long part `to` is. */
static size_t between(const struct call *call, int from, int to, int n)
{
	const struct operation *op = operation_of(call->coll);

	if (call->coll == TUTTI_SEND_RECV)
		return neighbour(call, from, call->root, n) == to ? uneven_count(call, 0, from, n)
								  : 0;
	if (!op->uneven)
		return call->count;
	if (!op->pairwise)
		return uneven_count(call, n - call->root % n, to, n);
	/* In place a pair has the same counts both ways. */
	if (call->in_place && from > to)
		return uneven_count(call, to, from, n);
	return uneven_count(call, from, to, n);
}

/* Parts lie in the order of ranks, or the other way round. */
static void look(const struct call *call, int rank, int n, struct view *v)
{
	const struct operation *op = operation_of(call->coll);
	const size_t gap = op->has_displs ? GAP : 0;
	const bool reversed = op->has_displs && (call->seed & 1);

	v->sends = v->recvs = 0;
	for (int i = 0; i < n; i++) {
		const int peer = reversed ? n - 1 - i : i;

		v->send_counts[peer] = between(call, rank, peer, n);
		v->recv_counts[peer] =
			between(call, op->pairwise ? peer : 0, op->pairwise ? rank : peer, n);
		v->send_displs[peer] = v->sends;
		v->recv_displs[peer] = v->recvs;
		v->sends += v->send_counts[peer] + gap;
		v->recvs += v->recv_counts[peer] + gap;
	}
	if (!op->sends_all)
		v->sends = v->recv_counts[rank];
	if (!op->gets_all)
		v->recvs = v->recv_counts[rank];
}

/* Sides of a handoff, drawn. */
struct sides {
	int ranks[2][NUMBERS_RANKS];
	tutti_side side[2];
};

static void draw_sides(const struct call *call, int n, struct sides *s)
{
	uint64_t random = numbers_mix(call->seed);

	for (int i = 0; i < 2; i++, random >>= 20) {
		const int first = (int)(random % 32) % n, up = random >> 5 & 1;

		s->side[i] = (tutti_side){ s->ranks[i], 1 + (int)(random >> 6 & 31) % n,
					   (int)(random >> 11 & 1) };
		for (int k = 0; k < s->side[i].n; k++)
			s->ranks[i][k] = (first + (up ? k : n - k)) % n;
	}
}

/* Which part of the vector this rank has on that side. */
static bool part_of(const struct call *call, const tutti_side *side, int rank, size_t *first,
		    size_t *count)
{
	*first = 0;
	*count = 0;
	for (int i = 0; i < side->n; i++)
		if (side->ranks[i] == rank) {
			*count = call->count;
			if (side->sharded)
				tutti_part(call->count, side->n, i, first, count);
			return true;
		}
	return false;
}

/* -- Buffers ------------------------------------------------------------------------- */

/* All of one call on one rank. */
struct scene {
	const struct call *call;
	struct caller *caller;
	struct view view;
	struct sides sides;
	size_t size;      /* of an element */
	size_t first_out; /* of what is sent: element of the rank's vector */
	char *send, *recv;
	char *pass_send, *pass_recv; /* NULL where they are not looked at */
	tutti_op op;
};

/* Of a whole call on any rank: two buffers and what is around them. */
size_t call_bytes(const struct call *call, int n)
{
	const struct operation *op = operation_of(call->coll);
	const size_t parts = (op->sends_all ? (size_t)n : 1) + (op->gets_all ? (size_t)n : 1);

	return (call->count + GAP) * parts * tutti_type_size(call->type) + 6 * GUARD;
}

/* Where buffers begin: at no better address than their type needs. */
static void place(struct scene *s)
{
	const struct call *call = s->call;
	const struct operation *op = operation_of(call->coll);
	const int rank = s->caller->rank;
	const bool is_root = !op->rooted || rank == call->root;
	struct view *v = &s->view;
	size_t first_in = 0;

	s->send = s->caller->memory + GUARD + (call->seed >> 1 & 3) * s->size;
	s->recv = s->send + v->sends * s->size + GUARD - (call->seed >> 3 & 1) * s->size;
	if (call->coll == TUTTI_HANDOFF) {
		s->recv = s->send + (call->in_place ? 0 : call->count * s->size + GUARD);
		part_of(call, &s->sides.side[0], rank, &s->first_out, &v->sends);
		part_of(call, &s->sides.side[1], rank, &first_in, &v->recvs);
		s->send += s->first_out * s->size;
		s->recv += first_in * s->size;
	} else if (call->in_place && op->gets_all && !op->pairwise && is_root) {
		s->recv = s->send;
		s->send = s->recv + v->recv_displs[rank] * s->size;
	} else if (call->in_place && op->sends_all && !op->pairwise && is_root) {
		s->recv = s->send + v->send_displs[rank] * s->size;
	} else if (call->in_place && call->coll != TUTTI_SEND_RECV &&
		   op->sends_all == op->gets_all) {
		s->recv = s->send;
	}
}

/* What this rank need not have it sometimes has not. */
static void leave_out(struct scene *s)
{
	const struct call *call = s->call;
	const struct operation *op = operation_of(call->coll);
	const bool leaves = call->seed >> 4 & 1;
	const bool gathers = op->reduces || op->gets_all;

	s->pass_send = s->send + s->caller->shift;
	s->pass_recv = s->recv + s->caller->shift;
	if (call->coll == TUTTI_HANDOFF) {
		size_t first, count;

		if (!part_of(call, &s->sides.side[0], s->caller->rank, &first, &count))
			s->pass_send = NULL;
		if (!part_of(call, &s->sides.side[1], s->caller->rank, &first, &count))
			s->pass_recv = NULL;
	} else if (leaves && op->rooted && s->caller->rank != call->root) {
		if (gathers)
			s->pass_recv = NULL;
		else
			s->pass_send = NULL;
	}
}

/* The image of memory as it must be after the call, from what it is before. */
static void expect(const struct scene *s)
{
	const struct call *call = s->call;
	const struct operation *op = operation_of(call->coll);
	const struct caller *c = s->caller;
	const struct view *v = &s->view;
	char *recv = c->want + (s->recv - c->memory);
	struct view theirs;

	memcpy(c->want, c->memory, c->room);
	if (call->coll == TUTTI_HANDOFF) {
		size_t begin, count;

		part_of(call, &s->sides.side[1], c->rank, &begin, &count);
		numbers_lay(recv, c->numbers->tiles[0], begin, count, s->size);
		return;
	}
	if (op->rooted && (op->reduces || op->gets_all) && c->rank != call->root)
		return;
	for (int from = 0; from < c->n; from++) {
		const size_t at = op->gets_all ? v->recv_displs[from] : 0;
		const size_t count = v->recv_counts[op->gets_all ? from : c->rank];

		if (op->reduces ? from != 0 : op->rooted && !op->gets_all && from != call->root)
			continue;
		look(call, from, c->n, &theirs);
		numbers_lay(recv + at * s->size,
			    op->reduces ? c->numbers->reduced : c->numbers->tiles[from],
			    op->sends_all ? theirs.send_displs[c->rank] : 0, count, s->size);
	}
}

static void compare(const struct scene *s)
{
	const struct caller *c = s->caller;
	char text[200];
	size_t at = 0;

	while (c->memory[at] == c->want[at])
		at++;
	const ptrdiff_t from_send = c->memory + at - s->send, from_recv = c->memory + at - s->recv;
	const bool inside = from_recv >= 0 && (size_t)from_recv < s->view.recvs * s->size;

	call_print(s->call, text, sizeof(text));
	fprintf(stderr,
		"  %s: rank %d of %d has 0x%02x in place of 0x%02x in byte %td of %s, element "
		"%td\n",
		text, c->rank, c->n, (unsigned char)c->memory[at], (unsigned char)c->want[at],
		inside ? from_recv : from_send, inside ? "what it receives" : "what it sends",
		(inside ? from_recv : from_send) / (ptrdiff_t)s->size);
}

/* -- Calls --------------------------------------------------------------------------- */

static tutti_status call_uneven(const struct scene *s, tutti_op op, tutti_stream_t stream)
{
	const struct call *call = s->call;
	const struct view *v = &s->view;
	const struct caller *c = s->caller;
	const size_t own = v->recv_counts[c->rank];
	/* What a rank does not need it need not have. */
	const size_t *counts = c->rank == call->root ? v->recv_counts : NULL;
	const size_t *displs = c->rank == call->root ? v->recv_displs : NULL;

	if (call->coll == TUTTI_ALL_TO_ALL_V)
		return tutti_all_to_all_v(s->pass_send, v->send_counts, v->send_displs,
					  s->pass_recv, v->recv_counts, v->recv_displs, call->type,
					  c->comm, stream);
	if (call->coll == TUTTI_GATHER_V)
		return tutti_gather_v(s->pass_send, own, s->pass_recv, counts, displs, call->type,
				      call->root, c->comm, stream);
	if (call->coll == TUTTI_SCATTER_V)
		return tutti_scatter_v(s->pass_send, counts, displs, s->pass_recv, own, call->type,
				       call->root, c->comm, stream);
	if (call->coll == TUTTI_ALL_GATHER_V)
		return tutti_all_gather_v(s->pass_send, s->pass_recv, v->recv_counts,
					  v->recv_displs, call->type, c->comm, stream);
	return tutti_reduce_scatter_v(s->pass_send, s->pass_recv, v->send_counts, call->type, op,
				      c->comm, stream);
}

static tutti_status call_send_recv(const struct scene *s, tutti_stream_t stream)
{
	const struct call *call = s->call;
	const struct caller *c = s->caller;
	const int to = neighbour(call, c->rank, call->root, c->n);
	const int from = neighbour(call, c->rank, -call->root, c->n);

	return tutti_send_recv(s->pass_send, to < 0 ? 0 : s->view.send_counts[to], to, s->pass_recv,
			       from < 0 ? 0 : s->view.recv_counts[from], from, call->type, c->comm,
			       stream);
}

static tutti_status call_even(const struct scene *s, tutti_op op, tutti_stream_t stream)
{
	const struct call *call = s->call;
	const void *send = s->pass_send;
	void *recv = s->pass_recv;
	tutti_comm_t comm = s->caller->comm;

	switch ((int)call->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(send, recv, call->count, call->type, op, comm, stream);
	case TUTTI_REDUCE:
		return tutti_reduce(send, recv, call->count, call->type, op, call->root, comm,
				    stream);
	case TUTTI_BROADCAST:
		return tutti_broadcast(send, recv, call->count, call->type, call->root, comm,
				       stream);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(send, recv, call->count, call->type, comm, stream);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(send, recv, call->count, call->type, op, comm, stream);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(send, recv, call->count, call->type, comm, stream);
	case TUTTI_GATHER:
		return tutti_gather(send, recv, call->count, call->type, call->root, comm, stream);
	case TUTTI_SCATTER:
		return tutti_scatter(send, recv, call->count, call->type, call->root, comm, stream);
	case TUTTI_HANDOFF:
		return tutti_handoff(send, recv, call->count, call->type, &s->sides.side[0],
				     &s->sides.side[1], comm, stream);
	default:
		return tutti_barrier(comm, stream);
	}
}

static tutti_status make(const struct scene *s, tutti_op op, tutti_stream_t stream)
{
	if (s->call->coll == TUTTI_SEND_RECV)
		return call_send_recv(s, stream);
	return operation_of(s->call->coll)->uneven ? call_uneven(s, op, stream)
						   : call_even(s, op, stream);
}

static tutti_status make_on_stream(const struct scene *s, tutti_op op)
{
	tutti_stream_t *stream = &s->caller->stream;
	tutti_status st = *stream ? TUTTI_OK : tutti_stream_create(stream);

	if (st == TUTTI_OK)
		st = make(s, op, *stream);
	return st == TUTTI_OK ? tutti_stream_synchronize(*stream) : st;
}

static tutti_status make_in_group(const struct scene *s, tutti_op op)
{
	tutti_status st = tutti_group_start();

	if (st == TUTTI_OK)
		st = make(s, op, NULL);
	const tutti_status end = tutti_group_end();

	return st == TUTTI_OK ? end : st;
}

/* In place the second start would find another input. */
static tutti_status make_as_plan(const struct scene *s, tutti_op op)
{
	const struct call *call = s->call;
	const tutti_call planned = { sizeof(planned), call->coll, s->pass_send, s->pass_recv,
				     call->count,     call->type, op,           call->root };
	tutti_persistent_t plan = NULL;
	tutti_status st = tutti_persistent_create(&planned, s->caller->comm, &plan);

	for (int i = 0; st == TUTTI_OK && i < (call->in_place ? 1 : 2); i++)
		st = tutti_persistent_start(plan, NULL);
	CHECK(tutti_persistent_destroy(plan) == TUTTI_OK);
	return st;
}

static tutti_status make_somehow(const struct scene *s, tutti_op op)
{
	const struct call *call = s->call;
	const bool has_plan = !operation_of(call->coll)->uneven && call->coll != TUTTI_HANDOFF;

	if (call->manner == CALL_ON_STREAM)
		return make_on_stream(s, op);
	if (call->manner == CALL_IN_GROUP)
		return make_in_group(s, op);
	if (call->manner == CALL_AS_PLAN && has_plan)
		return make_as_plan(s, op);
	return make(s, op, call->manner == CALL_QUEUED ? s->caller->stream : NULL);
}

static void make_room(struct caller *c, const struct call *call)
{
	const size_t needs = call_bytes(call, c->n);

	if (c->own_room < needs) {
		const bool own = c->memory == c->own;

		free(c->own);
		free(c->want);
		c->own = malloc(needs);
		c->want = malloc(needs);
		c->own_room = needs;
		if (!c->own || !c->want)
			abort();
		if (own)
			c->memory = c->own;
	}
	c->room = needs;
}

void caller_prepare(struct caller *c, const struct call *call)
{
	const struct operation *op = operation_of(call->coll);
	const size_t most = (call->count + GAP) * (size_t)c->n;
	const size_t columns = most < NUMBERS_PERIOD ? most : NUMBERS_PERIOD;
	struct scene *s = c->scene ? c->scene : malloc(sizeof(*s));

	c->numbers = c->numbers ? c->numbers : malloc(sizeof(*c->numbers));
	if (!s || !c->numbers)
		abort();
	*s = (struct scene){ .call = call, .caller = c, .size = tutti_type_size(call->type) };
	c->scene = s;
	make_room(c, call);
	memset(c->memory, BLANK, c->room);
	if (call->coll == TUTTI_HANDOFF)
		draw_sides(call, c->n, &s->sides);
	else if (call->coll != TUTTI_BARRIER)
		look(call, c->rank, c->n, &s->view);
	place(s);
	leave_out(s);
	numbers_draw(c->numbers, call->type, op->reduces ? call->op : TUTTI_MAX, c->n, columns,
		     call->seed);
	if (op->reduces)
		numbers_reduce(c->numbers, call->type, call->op, c->n, columns);
	numbers_lay(s->send, c->numbers->tiles[call->coll == TUTTI_HANDOFF ? 0 : c->rank],
		    s->first_out, s->view.sends, s->size);
	expect(s);
}

tutti_status caller_make(struct caller *c)
{
	struct scene *s = c->scene;
	const struct call *call = s->call;
	tutti_status st = TUTTI_OK;

	s->op = TUTTI_SUM;
	if (operation_of(call->coll)->reduces)
		st = numbers_make_op(c->numbers, call->type, call->op, c->rank, c->comm, &s->op);
	if (call->coll == TUTTI_BARRIER && c->came)
		atomic_fetch_add(c->came, 1);
	return st == TUTTI_OK ? make_somehow(s, s->op) : st;
}

bool caller_check(struct caller *c)
{
	const struct scene *s = c->scene;
	bool right = true;

	if (s->call->coll == TUTTI_BARRIER && c->came)
		right = CHECK(atomic_load(c->came) >= ++c->barriers * c->n);
	if (!CHECK(memcmp(c->want, c->memory, c->room) == 0)) {
		compare(s);
		right = false;
	}
	return CHECK_OK(numbers_unmake_op(s->op, c->comm)) && right;
}

enum call_result caller_run(struct caller *c, const struct call *call)
{
	caller_prepare(c, call);
	if (!CHECK_OK(caller_make(c)))
		return CALL_LOST;
	return caller_check(c) ? CALL_RIGHT : CALL_WRONG;
}

void caller_release(struct caller *caller)
{
	CHECK(tutti_stream_destroy(caller->stream) == TUTTI_OK);
	free(caller->scene);
	free(caller->numbers);
	free(caller->own);
	free(caller->want);
}

void call_and_check(const struct call *call, tutti_comm_t comm, int rank, int n, char *memory)
{
	struct caller caller = { .comm = comm, .rank = rank, .n = n, .memory = memory };

	caller_run(&caller, call);
	caller_release(&caller);
}

void call_print(const struct call *call, char *out, size_t size)
{
	static const char *const manners[] = { "", ", on a stream", ", in a group", ", as a plan",
					       ", queued" };
	const struct operation *op = operation_of(call->coll);

	snprintf(out, size, "%s(%zu x %s%s%s, root %d, spread %d)%s%s",
		 tutti_collective_name(call->coll), call->count, tutti_type_name(call->type),
		 op->reduces ? ", " : "", op->reduces ? numbers_op_name(call->op) : "", call->root,
		 (int)call->spread, call->in_place ? " in place" : "", manners[call->manner]);
}

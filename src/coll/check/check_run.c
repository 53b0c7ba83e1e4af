/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check_run.h"

#include <stdio.h>
#include <string.h>

#include "util/bitset.h"
#include "util/error.h"

/* An operation starts when a number of events have come, each exactly once:
 *
 *     every operation that it waits for is done                        npred
 *     it is the next one of a receiving queue, and there is a message  nin
 *     it is the next one of a sending queue, and there is room         nout
 *     a fan-out: the one `slots` before has been read by all           1, if shared
 *     the operation before it is done                                  1, if in order
 *
 * None of these is ever undone, and no operation takes what another could have had
 * (the shared slots of a rank are taken in order, see compile.h). So the run comes
 * equally far whichever ready operation is run first. */

static uint64_t *value_at(uint64_t *values, const struct tti_check *check, size_t index)
{
	return values + index * check->value_words;
}

static void signal_oper(struct tti_check_message_run *run, int32_t oper)
{
	if (--run->need[oper] == 0)
		run->ready[run->nready++] = oper;
}

/* -- Setting up -------------------------------------------------------------------- */

static int32_t initial_need(const struct tti_check_message_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const bool is_first = oper == check->oper_base[check->rank_of[oper]];

	return at->npred + at->nin + at->nout + (run->mode.shared && at->nout > 1) +
	       (run->mode.in_order && !is_first);
}

static void list_fanouts(struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;
	int32_t n = 0;

	for (int rank = 0; rank < check->n; rank++) {
		run->fanout_base[rank] = n;
		for (int32_t o = check->oper_base[rank]; o < check->oper_base[rank + 1]; o++) {
			const struct tti_operation *oper = tti_check_operation(check, o);

			run->fanout_index[o] = -1;
			run->unread[o] = oper->nout;
			if (oper->nout < 2)
				continue;
			run->fanout_index[o] = n - run->fanout_base[rank];
			run->fanout[n++] = o;
		}
	}
	run->fanout_base[check->n] = n;
}

/* Links, and how many messages fit in all of them together. */
static size_t size_links(struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;
	size_t nmessages = 0;

	for (int rank = 0; rank < check->n; rank++)
		for (int32_t q = 0; q < check->compiled[rank].nqueues; q++) {
			const struct tti_queue *queue = &check->compiled[rank].queue[q];
			struct tti_check_link *link = &run->link[check->queue_base[rank] + q];

			if (!queue->is_send)
				continue;
			link->depth = queue->n < check->slots ? queue->n : check->slots;
			link->messages = nmessages;
			nmessages += (size_t)link->depth;
		}
	return nmessages;
}

/* Inputs: of send_recv what is read first, else what the layout says. */
static void fill_inputs(struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;

	for (int rank = 0; rank < check->n; rank++) {
		const struct tti_program *prog = &check->prog[rank];
		const int32_t base = check->chunk_base[rank];

		for (int chunk = 0; chunk < prog->nchunks; chunk++)
			if (prog->coll != TUTTI_SEND_RECV && tti_chunk_is_input(prog, chunk))
				run->place[base + chunk] = TTI_PLACE_INPUT;
		for (int32_t o = 0; o < check->compiled[rank].nopers; o++) {
			const struct tti_operation *oper = &check->compiled[rank].oper[o];

			if (prog->coll == TUTTI_SEND_RECV && oper->from == TTI_PLACE_INPUT)
				run->place[base + oper->chunk] = TTI_PLACE_INPUT;
		}
		for (int chunk = 0; chunk < prog->nchunks; chunk++)
			if (run->place[base + chunk] == TTI_PLACE_INPUT)
				tti_bit_set(value_at(run->value, check, (size_t)(base + chunk)),
					    (size_t)rank);
	}
}

/* The events that have come before anything runs. */
static void signal_initial(struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;

	for (int32_t o = 0; o < tti_check_nopers(check); o++) {
		run->need[o] = initial_need(run, o);
		if (run->need[o] == 0)
			run->ready[run->nready++] = o;
	}
	for (int rank = 0; rank < check->n; rank++) {
		const int32_t nfanouts = run->fanout_base[rank + 1] - run->fanout_base[rank];

		for (int32_t q = 0; q < check->compiled[rank].nqueues; q++)
			if (check->compiled[rank].queue[q].is_send)
				signal_oper(run, tti_check_queued(check, rank,
								  check->queue_base[rank] + q, 0));
		for (int32_t f = 0; run->mode.shared && f < nfanouts && f < check->slots; f++)
			signal_oper(run, run->fanout[run->fanout_base[rank] + f]);
	}
}

/* -- Values ------------------------------------------------------------------------ */

/* The message that an operation takes from its i-th receiving queue. */
static const uint64_t *message_of(const struct tti_check_message_run *run, int rank,
				  const struct tti_operation *oper, int i)
{
	const struct tti_check *check = run->check;
	const int32_t in = check->compiled[rank].queue_of[oper->in + i];
	const struct tti_check_link *link =
		&run->link[check->partner[check->queue_base[rank] + in]];

	return value_at(run->message, check, link->messages + (size_t)(link->taken % link->depth));
}

/* What an operation combines is in order, one after the other. */
static tutti_status check_order(const struct tti_check_message_run *run, int32_t oper,
				const uint64_t *local)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper];
	size_t next = 0;
	int place = 0;

	for (int i = 0; i < at->nin; i++) {
		if (i == at->local_at)
			TTI_TRY(tti_check_source_order(check, oper, local, place++, &next));
		TTI_TRY(tti_check_source_order(check, oper, message_of(run, rank, at, i), place++,
					       &next));
	}
	if (at->local_at >= at->nin)
		TTI_TRY(tti_check_source_order(check, oper, local, place, &next));
	return tti_check_one_pass(check, oper, next);
}

/* run->result from the local value and the messages. */
static tutti_status reduce(struct tti_check_message_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper];
	const int32_t chunk = check->chunk_base[rank] + at->chunk;

	if (at->from == TTI_PLACE_NONE)
		memset(run->result, 0, check->value_words * sizeof(uint64_t));
	else if (at->from != run->place[chunk])
		return tti_fail(TUTTI_EINTERNAL, "rank %d, step %d: chunk %d is compiled wrongly",
				rank, tti_check_step(check, oper, -1), at->chunk);
	else
		memcpy(run->result, value_at(run->value, check, (size_t)chunk),
		       check->value_words * sizeof(uint64_t));

	if (check->order != TTI_ORDER_ANY && at->nin && at->from != TTI_PLACE_NONE)
		TTI_TRY(check_order(run, oper, value_at(run->value, check, (size_t)chunk)));
	for (int i = 0; i < at->nin; i++) {
		const int32_t in = check->compiled[rank].queue_of[at->in + i];
		const uint64_t *message = message_of(run, rank, at, i);

		for (size_t w = 0; w < check->value_words; w++) {
			const uint64_t both = run->result[w] & message[w];

			if (both && check->prog[0].coll != TUTTI_BARRIER)
				return tti_check_twice(check, oper,
						       check->compiled[rank].queue[in].peer,
						       64 * w + (size_t)__builtin_ctzll(both));
			run->result[w] |= message[w];
		}
	}
	return at->nin && at->from != TTI_PLACE_NONE ? tti_check_final(check, oper, run->result)
						     : TUTTI_OK;
}

/* -- Running ----------------------------------------------------------------------- */

/* The next message of receiving queue q of `rank` is taken out. */
static void take(struct tti_check_message_run *run, int rank, int32_t queue)
{
	const struct tti_check *check = run->check;
	const struct tti_queue *at = &check->compiled[rank].queue[queue - check->queue_base[rank]];
	const int32_t sender = check->partner[queue];
	struct tti_check_link *link = &run->link[sender];
	const int32_t source = tti_check_queued(check, at->peer, sender, link->taken);
	const int32_t index = run->fanout_index[source];

	link->taken++;
	if (link->taken < at->n && link->sent > link->taken)
		signal_oper(run, tti_check_queued(check, rank, queue, link->taken));
	if (link->sent < at->n && link->sent - link->taken == check->slots - 1)
		signal_oper(run, tti_check_queued(check, at->peer, sender, link->sent));
	run->unread[source]--;
	if (run->mode.shared && index >= 0 && run->unread[source] == 0) {
		const int32_t next = run->fanout_base[at->peer] + index + check->slots;

		if (next < run->fanout_base[at->peer + 1])
			signal_oper(run, run->fanout[next]);
	}
}

/* run->result goes into sending queue q of `rank`. */
static void put(struct tti_check_message_run *run, int rank, int32_t queue)
{
	const struct tti_check *check = run->check;
	const struct tti_queue *at = &check->compiled[rank].queue[queue - check->queue_base[rank]];
	struct tti_check_link *link = &run->link[queue];

	memcpy(value_at(run->message, check, link->messages + (size_t)(link->sent % link->depth)),
	       run->result, check->value_words * sizeof(uint64_t));
	link->sent++;
	if (link->sent < at->n && link->sent - link->taken < check->slots)
		signal_oper(run, tti_check_queued(check, rank, queue, link->sent));
	if (link->sent - link->taken == 1)
		signal_oper(run,
			    tti_check_queued(check, at->peer, check->partner[queue], link->taken));
}

static tutti_status run_oper(struct tti_check_message_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper];
	const struct tti_compiled *compiled = &check->compiled[rank];
	const int32_t chunk = check->chunk_base[rank] + at->chunk;

	TTI_TRY(reduce(run, oper));
	if (at->to != TTI_PLACE_NONE) {
		memcpy(value_at(run->value, check, (size_t)chunk), run->result,
		       check->value_words * sizeof(uint64_t));
		run->place[chunk] = at->to;
	}
	run->need[oper] = -1;
	run->ndone++;
	for (int i = 0; i < at->nin; i++)
		take(run, rank, check->queue_base[rank] + compiled->queue_of[at->in + i]);
	for (int i = 0; i < at->nout; i++)
		put(run, rank, check->queue_base[rank] + compiled->queue_of[at->out + i]);
	for (int i = 0; i < at->nsucc; i++)
		signal_oper(run, check->oper_base[rank] + compiled->succs[at->succ + i]);
	if (run->mode.in_order && oper + 1 < check->oper_base[rank + 1])
		signal_oper(run, oper + 1);
	return TUTTI_OK;
}

/* -- Results ----------------------------------------------------------------------- */

/* Where an output chunk got its value, for error texts. */
static int last_step(const struct tti_check *check, int rank, int chunk)
{
	const struct tti_compiled *compiled = &check->compiled[rank];

	for (int32_t o = compiled->nopers - 1; o >= 0; o--)
		if (compiled->oper[o].chunk == chunk && compiled->oper[o].to != TTI_PLACE_NONE)
			return compiled->step[o];
	return -1;
}

static tutti_status check_outputs(const struct tti_check_message_run *run, int rank)
{
	const struct tti_check *check = run->check;
	const struct tti_program *prog = &check->prog[rank];
	char where[60];

	for (int chunk = 0; chunk < prog->nchunks; chunk++) {
		const size_t index = (size_t)(check->chunk_base[rank] + chunk);
		const uint64_t *value = value_at(run->value, check, index);

		if (!tti_chunk_is_output(prog, chunk))
			continue;
		if (run->place[index] != TTI_PLACE_OUTPUT && prog->coll != TUTTI_BARRIER)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d: output chunk %d is never written", rank,
					      chunk);
		snprintf(where, sizeof(where), "rank %d, step %d", rank,
			 last_step(check, rank, chunk));
		TTI_TRY(tti_check_output(check, where, chunk, value));
	}
	return TUTTI_OK;
}

static bool allocate(struct tti_check_message_run *run)
{
	const struct tti_check *check = run->check;
	const size_t nopers = (size_t)tti_check_nopers(check), n = (size_t)check->n;
	const size_t nchunks = (size_t)check->chunk_base[check->n];
	const size_t nqueues = (size_t)check->queue_base[check->n];

	run->need = tti_arena_alloc(&run->arena, nopers * sizeof(*run->need));
	run->unread = tti_arena_alloc(&run->arena, nopers * sizeof(*run->unread));
	run->fanout = tti_arena_alloc(&run->arena, nopers * sizeof(*run->fanout));
	run->fanout_index = tti_arena_alloc(&run->arena, nopers * sizeof(*run->fanout_index));
	run->fanout_base = tti_arena_alloc(&run->arena, (n + 1) * sizeof(*run->fanout_base));
	run->ready = tti_arena_alloc(&run->arena, nopers * sizeof(*run->ready));
	run->link = tti_arena_alloc(&run->arena, nqueues * sizeof(*run->link));
	run->place = tti_arena_alloc(&run->arena, nchunks * sizeof(*run->place));
	run->value = tti_arena_alloc(&run->arena, nchunks * check->value_words * sizeof(uint64_t));
	run->result = tti_arena_alloc(&run->arena, check->value_words * sizeof(uint64_t));
	if (!run->need || !run->unread || !run->fanout || !run->fanout_index || !run->fanout_base ||
	    !run->ready || !run->link || !run->place || !run->value || !run->result)
		return false;
	run->message = tti_arena_alloc(&run->arena,
				       size_links(run) * check->value_words * sizeof(uint64_t));
	return run->message;
}

tutti_status tti_check_run(const struct tti_check *check, struct tti_check_mode mode)
{
	struct tti_check_message_run run = { .check = check, .mode = mode };
	tutti_status st = TUTTI_OK;

	if (!allocate(&run)) {
		tti_arena_release(&run.arena);
		return tti_check_no_memory(check);
	}
	list_fanouts(&run);
	fill_inputs(&run);
	signal_initial(&run);
	while (run.nready && st == TUTTI_OK)
		st = run_oper(&run, run.ready[--run.nready]);
	if (st == TUTTI_OK && run.ndone < tti_check_nopers(check))
		st = tti_check_stall(&run);
	for (int rank = 0; rank < check->n && st == TUTTI_OK; rank++)
		st = check_outputs(&run, rank);
	tti_arena_release(&run.arena);
	return st;
}

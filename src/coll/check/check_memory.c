/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check_memory.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/strbuf.h"

/* Memory programs (program.h), all ranks together. Each rank runs its operations in their order,
 * so what is before what is known from NOTIFYs and WAITs alone, whoever is fast or slow. It is
 * kept in vector clocks (Fidge, Australian Computer Science Conference 1988; Mattern, Parallel and
 * Distributed Algorithms 1989): clock[a][b] is how many operations of rank b are before what rank a
 * does now. That a message waits for room is no order that the program asked for, and is not
 * counted.
 *
 * Proven of every two accesses to the same memory, one of them a write: one is before the other.
 * So all interleavings end alike, and one run of all ranks, with sets of contributions in place of
 * numbers, proves what they compute. It also proves that every access to memory of a peer is after
 * the peer's program has begun, and before it ends.
 */

#define CLOCK_BYTES_MAX (INT64_C(1) << 30)
#define LINES_SHOWN     6

static uint64_t *scratch_of(const struct tti_check_memory_run *run, int rank,
			    const struct tti_operation *oper)
{
	return run->scratch +
	       (size_t)(run->scratch_base[rank] + oper->scratch) * run->check->value_words;
}

/* -- Operations -------------------------------------------------------------------- */

static tutti_status own_value(struct tti_check_memory_run *run, int32_t oper,
			      const uint64_t **value)
{
	const struct tti_operation *at = tti_check_operation(run->check, oper);
	const int rank = run->check->rank_of[oper];
	const struct tti_check_access access = { .oper = oper,
						 .owner = rank,
						 .chunk = at->chunk,
						 .is_output = at->from == TTI_PLACE_OUTPUT };

	if (at->from != TTI_PLACE_SCRATCH)
		return tti_check_read(run, &access, value);
	*value = scratch_of(run, rank, at);
	return TUTTI_OK;
}

/* One source more of what an operation makes; `peer`: the rank it is read from. */
static tutti_status add_source(struct tti_check_memory_run *run, int32_t oper, int peer,
			       const uint64_t *source, int place, size_t *next)
{
	const struct tti_check *check = run->check;

	if (check->order != TTI_ORDER_ANY && tti_check_operation(check, oper)->nget &&
	    tti_collective_reduces(check->prog->coll))
		TTI_TRY(tti_check_source_order(check, oper, source, place, next));
	for (size_t w = 0; w < run->check->value_words; w++) {
		const uint64_t both = run->result[w] & source[w];

		if (both)
			return tti_check_twice(check, oper, peer,
					       64 * w + (size_t)__builtin_ctzll(both));
		run->result[w] |= source[w];
	}
	return TUTTI_OK;
}

/* run->result from the own value and the inputs of peers, in their order. */
static tutti_status combine(struct tti_check_memory_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper], own = at->from != TTI_PLACE_NONE;
	const int32_t *peer = check->compiled[rank].peer_of + at->get;
	const uint64_t *source;
	size_t next = 0;

	memset(run->result, 0, run->check->value_words * sizeof(uint64_t));
	for (int i = 0; i < at->nget + own; i++) {
		const bool is_own = own && i == at->local_at;
		const int from = is_own ? rank : peer[i - (own && i > at->local_at)];
		const struct tti_check_access access = { .oper = oper,
							 .owner = from,
							 .chunk = at->chunk };

		TTI_TRY(is_own ? own_value(run, oper, &source)
			       : tti_check_read(run, &access, &source));
		TTI_TRY(add_source(run, oper, from, source, i, &next));
	}
	if (!at->nget || !own)
		return TUTTI_OK;
	TTI_TRY(tti_check_one_pass(check, oper, next));
	return tti_check_final(check, oper, run->result);
}

/* The result to the own output; in place a COPY moves nothing, so it may be read meanwhile. */
static tutti_status write_own(struct tti_check_memory_run *run,
			      const struct tti_check_access *access)
{
	const struct tti_operation *at = tti_check_operation(run->check, access->oper);
	const size_t cell = tti_check_cell_of(run, access->owner, at->chunk, true);

	if (at->nget || at->from != TTI_PLACE_INPUT ||
	    tti_check_cell_of(run, access->owner, at->chunk, false) != cell)
		return tti_check_write(run, access);
	run->cell[cell].kept = access->oper;
	return TUTTI_OK;
}

static tutti_status run_data(struct tti_check_memory_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper];
	const int32_t *peer = check->compiled[rank].peer_of + at->put;
	struct tti_check_access access = {
		.oper = oper, .owner = rank, .chunk = at->chunk, .is_output = true, .writes = true
	};

	TTI_TRY(combine(run, oper));
	if (at->to == TTI_PLACE_SCRATCH)
		memcpy(scratch_of(run, rank, at), run->result,
		       run->check->value_words * sizeof(uint64_t));
	else if (at->to == TTI_PLACE_OUTPUT)
		TTI_TRY(write_own(run, &access));
	for (int i = 0; i < at->nput; i++) {
		access.owner = peer[i];
		TTI_TRY(tti_check_write(run, &access));
	}
	return TUTTI_OK;
}

/* The link of a queue of an operation: what its sender's queue is. */
static int32_t link_of(const struct tti_check *check, int rank, int32_t queue)
{
	const int32_t self = check->queue_base[rank] + queue;

	return check->compiled[rank].queue[queue].is_send ? self : check->partner[self];
}

/* The first queue by which an operation can't go on; -1: it can. */
static int32_t held_up_by(const struct tti_check_memory_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper];
	const int32_t *queue = check->compiled[rank].queue_of;

	for (int i = 0; i < at->nin; i++) {
		const int32_t link = link_of(check, rank, queue[at->in + i]);

		if (run->sent[link] == run->taken[link])
			return queue[at->in + i];
	}
	for (int i = 0; i < at->nout; i++) {
		const int32_t link = link_of(check, rank, queue[at->out + i]);

		if (run->sent[link] - run->taken[link] == check->slots)
			return queue[at->out + i];
	}
	return -1;
}

static void run_sync(struct tti_check_memory_run *run, int32_t oper)
{
	const struct tti_check *check = run->check;
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int rank = check->rank_of[oper], n = check->n;
	const struct tti_compiled *compiled = &check->compiled[rank];
	int32_t *clock = run->clock + (size_t)rank * (size_t)n;

	for (int i = 0; i < at->nin; i++) {
		const int32_t queue = compiled->queue_of[at->in + i];
		const int32_t link = link_of(check, rank, queue);
		const int32_t from = tti_check_queued(check, compiled->queue[queue].peer, link,
						      run->taken[link]++);
		const int32_t *told = run->told + (size_t)run->told_at[from] * (size_t)n;

		for (int r = 0; r < n; r++)
			clock[r] = clock[r] > told[r] ? clock[r] : told[r];
	}
	if (at->nout)
		memcpy(run->told + (size_t)run->told_at[oper] * (size_t)n, clock,
		       (size_t)n * sizeof(*clock));
	for (int i = 0; i < at->nout; i++)
		run->sent[link_of(check, rank, compiled->queue_of[at->out + i])]++;
}

/* One rank as far as it gets. */
static tutti_status run_rank(struct tti_check_memory_run *run, int rank, bool *moved)
{
	const struct tti_check *check = run->check;

	while (run->next[rank] < check->oper_base[rank + 1] &&
	       held_up_by(run, run->next[rank]) < 0) {
		const int32_t oper = run->next[rank]++;

		/* Everything before a NOTIFY has happened for who hears it, so it counts itself. */
		run->clock[rank * check->n + rank] = tti_check_index(check, oper) + 1;
		if (tti_check_operation(check, oper)->sync)
			run_sync(run, oper);
		else
			TTI_TRY(run_data(run, oper));
		*moved = true;
	}
	return TUTTI_OK;
}

/* -- At the end -------------------------------------------------------------------- */

/* Say who waits for whom, from one rank to the next, all around the circle. */
static tutti_status stalled(const struct tti_check_memory_run *run)
{
	const struct tti_check *check = run->check;
	struct tti_strbuf buf = { 0 };
	tutti_status st;
	int rank = 0;

	while (run->next[rank] == check->oper_base[rank + 1])
		rank++;
	for (int i = 0; i < check->n + LINES_SHOWN; i++) {
		const int32_t oper = run->next[rank];
		const struct tti_queue *queue = &check->compiled[rank].queue[held_up_by(run, oper)];

		if (i >= check->n)
			tti_strbuf_addf(&buf, "%srank %d, step %d (%s), waits for rank %d to %s",
					buf.text ? "; " : "", rank,
					tti_check_step(check, oper, queue->peer),
					queue->is_send ? "notify" : "wait", queue->peer,
					queue->is_send ? "free a slot" : "notify it");
		rank = queue->peer;
	}
	st = tti_fail_quiet(TUTTI_EINVAL, "deadlock with %d slot%s per link: %s", check->slots,
			    check->slots == 1 ? "" : "s", buf.text ? buf.text : "");
	tti_strbuf_release(&buf);
	return st;
}

/* Nobody touches memory of a rank whose program may have ended. A barrier ends after all have
 * begun. */
static tutti_status check_ended(const struct tti_check_memory_run *run, int rank)
{
	const struct tti_check *check = run->check;

	for (int peer = 0; peer < check->n; peer++) {
		const int32_t oper = run->touched[rank * check->n + peer] - 1;
		const int32_t seen = run->clock[rank * check->n + peer];

		if (oper >= 0 && seen <= tti_check_index(check, oper))
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d ends without a wait for rank %d, step %d, which "
				"touches its memory",
				rank, peer, tti_check_step(check, oper, rank));
		if (check->prog->coll == TUTTI_BARRIER && peer != rank && seen == 0)
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d ends without a wait for rank %d, directly or by "
				"way of others",
				rank, peer);
	}
	return TUTTI_OK;
}

/* Messages of a beginning say where the buffers are, so they are heard in one. */
static tutti_status check_announcements(const struct tti_check *check, int rank)
{
	const struct tti_compiled *compiled = &check->compiled[rank];

	for (int32_t q = 0; q < compiled->nqueues; q++) {
		const struct tti_queue *queue = &compiled->queue[q];
		const int32_t in = check->queue_base[rank] + q, out = check->partner[in];
		const int32_t begins = check->compiled[queue->peer].nopening;

		for (int32_t k = 0; k < queue->n && !queue->is_send; k++) {
			const int32_t from = tti_check_queued(check, queue->peer, out, k);
			const int32_t to = tti_check_queued(check, rank, in, k);

			if ((tti_check_index(check, from) < begins) ==
			    (tti_check_index(check, to) < compiled->nopening))
				continue;
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d, step %d: a wait for rank %d, step %d: both must "
				"be of the first meeting of their rank, before it moves "
				"data, or neither",
				rank, tti_check_step(check, to, queue->peer), queue->peer,
				tti_check_step(check, from, rank));
		}
	}
	return TUTTI_OK;
}

static bool is_touched(const struct tti_check_memory_run *run, int rank)
{
	for (int peer = 0; peer < run->check->n; peer++)
		if (run->touched[rank * run->check->n + peer])
			return true;
	return false;
}

/* Whether all other ranks wait for one in their beginning. */
static tutti_status check_heard(const struct tti_check *check, int owner)
{
	for (int rank = 0; rank < check->n; rank++) {
		const struct tti_compiled *compiled = &check->compiled[rank];
		bool hears = rank == owner;

		for (int32_t o = 0; o < compiled->nopening; o++)
			for (int i = 0; i < compiled->oper[o].nin; i++)
				hears |= compiled->queue[compiled->queue_of[compiled->oper[o].in +
									    i]]
						 .peer == owner;
		if (!hears)
			return tti_fail_quiet(
				TUTTI_EINVAL,
				"rank %d moves data, or ends, without a wait for rank %d, "
				"whose memory is touched: all must hear whether it can be",
				rank, owner);
	}
	return TUTTI_OK;
}

static tutti_status check_outputs(const struct tti_check_memory_run *run, int rank)
{
	const struct tti_check *check = run->check;
	const struct tti_program *prog = &check->prog[rank];
	char where[80];

	for (int chunk = 0; chunk < prog->nchunks && prog->coll != TUTTI_BARRIER; chunk++) {
		const size_t index = tti_check_cell_of(run, rank, chunk, true);
		const struct tti_check_cell *cell = &run->cell[index];
		const int32_t writer = cell->writer >= 0 ? cell->writer : cell->kept;

		if (!tti_chunk_is_output(prog, chunk))
			continue;
		if (writer < 0)
			return tti_fail_quiet(TUTTI_EINVAL,
					      "rank %d: output chunk %d is never written", rank,
					      chunk);
		snprintf(
			where, sizeof(where), "rank %d, written by rank %d, step %d", rank,
			check->rank_of[writer],
			tti_check_access_step(check, writer, rank, check->rank_of[writer] != rank));
		TTI_TRY(tti_check_output(check, where, chunk, tti_check_cell_value(run, index)));
	}
	return TUTTI_OK;
}

/* -- All together ------------------------------------------------------------------ */

/* Lists what needs room; the number of NOTIFY operations. */
static size_t lay_out(struct tti_check_memory_run *run)
{
	const struct tti_check *check = run->check;
	size_t nnotifies = 0;

	for (int rank = 0; rank < check->n; rank++) {
		const struct tti_compiled *compiled = &check->compiled[rank];

		run->next[rank] = check->oper_base[rank];
		run->scratch_base[rank + 1] = run->scratch_base[rank] + compiled->nscratch;
		for (int32_t o = 0; o < compiled->nopers; o++)
			if (compiled->oper[o].nout)
				run->told_at[check->oper_base[rank] + o] = (int32_t)nnotifies++;
	}
	return nnotifies;
}

static tutti_status run_all(struct tti_check_memory_run *run)
{
	const struct tti_check *check = run->check;
	bool moved = true;

	while (moved) {
		moved = false;
		for (int rank = 0; rank < check->n; rank++)
			TTI_TRY(run_rank(run, rank, &moved));
	}
	for (int rank = 0; rank < check->n; rank++)
		if (run->next[rank] < check->oper_base[rank + 1])
			return stalled(run);
	for (int rank = 0; rank < check->n; rank++) {
		TTI_TRY(check_ended(run, rank));
		TTI_TRY(check_outputs(run, rank));
	}
	/* No other rank has to hear of what two ranks have for each other. */
	for (int rank = 0; check->prog->coll != TUTTI_SEND_RECV && rank < check->n; rank++) {
		TTI_TRY(check_announcements(check, rank));
		if (is_touched(run, rank))
			TTI_TRY(check_heard(check, rank));
	}
	return TUTTI_OK;
}

static tutti_status allocate(struct tti_check_memory_run *run)
{
	const struct tti_check *check = run->check;
	const size_t n = (size_t)check->n, nqueues = (size_t)check->queue_base[check->n];
	const size_t ncells = n * 2 * (size_t)check->prog->nchunks;
	size_t nnotifies;

	run->next = tti_arena_alloc(&run->arena, n * sizeof(*run->next));
	run->told_at = tti_arena_alloc(&run->arena,
				       (size_t)tti_check_nopers(check) * sizeof(*run->told_at));
	run->scratch_base = tti_arena_alloc(&run->arena, (n + 1) * sizeof(*run->scratch_base));
	if (!run->next || !run->told_at || !run->scratch_base)
		return tti_check_no_memory(check);
	nnotifies = lay_out(run);
	if ((int64_t)(nnotifies + n) * (int64_t)n > CLOCK_BYTES_MAX / (int64_t)sizeof(int32_t))
		return tti_fail_quiet(TUTTI_EINVAL,
				      "%zu notify steps of %d ranks are too many to be checked",
				      nnotifies, check->n);
	run->clock = tti_arena_alloc(&run->arena, n * n * sizeof(*run->clock));
	run->touched = tti_arena_alloc(&run->arena, n * n * sizeof(*run->touched));
	run->told = tti_arena_alloc(&run->arena, nnotifies * n * sizeof(*run->told));
	run->sent = tti_arena_alloc(&run->arena, nqueues * sizeof(*run->sent));
	run->taken = tti_arena_alloc(&run->arena, nqueues * sizeof(*run->taken));
	run->cell = tti_arena_alloc(&run->arena, ncells * sizeof(*run->cell));
	run->value =
		tti_arena_alloc(&run->arena, ncells * run->check->value_words * sizeof(uint64_t));
	run->scratch =
		tti_arena_alloc(&run->arena, (size_t)run->scratch_base[check->n] *
						     run->check->value_words * sizeof(uint64_t));
	run->result = tti_arena_alloc(&run->arena, run->check->value_words * sizeof(uint64_t));
	if (!run->clock || !run->touched || !run->told || !run->sent || !run->taken || !run->cell ||
	    !run->value || !run->scratch || !run->result)
		return tti_check_no_memory(check);
	return TUTTI_OK;
}

tutti_status tti_check_memory(const struct tti_check *check)
{
	struct tti_check_memory_run run = { .check = check };
	tutti_status st = allocate(&run);

	if (st == TUTTI_OK) {
		tti_check_fill_cells(&run);
		st = run_all(&run);
	}
	tti_arena_release(&run.arena);
	tti_vec_release(&run.reader);
	return st;
}

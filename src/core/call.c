/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/params.h"

/* From a user's call to a job of the engine. */

/* -- What ranks compare ---------------------------------------------------- */

/* One multiplication for each part, by odd numbers, and one mixing of their sum: it
 * is on the way of every call. Never 0. */
static uint64_t part_of(uint64_t shape, size_t count)
{
	return count * UINT64_C(0xc2b2ae3d27d4eb4f) + shape * UINT64_C(0x165667b19e3779f9);
}

uint64_t tti_call_signature(uint64_t seq, uint64_t part)
{
	return tti_hash_mix(seq * UINT64_C(0x9e3779b97f4a7c15) + part) | 1;
}

uint64_t tti_call_signature_part(const struct tti_args *args)
{
	return part_of(tti_args_shape(args), tti_args_common_count(args));
}

/* A send and its receive are not calls of all ranks: no sequence number, and the
 * root of either is the other. */
uint64_t tti_call_transfer_tag(const struct tti_args *args)
{
	struct tti_args both = *args;

	both.root = -1;
	both.is_send = false;
	return tti_call_signature(UINT64_MAX, part_of(tti_args_shape(&both), args->count));
}

/* -- What others may ask (stall.c reads it) --------------------------------- */

static void publish(struct tti_comm *comm, uint64_t sign, uint64_t shape, uint64_t cut,
		    size_t count)
{
	struct tti_current_call *call = &comm->current;
	const uint32_t version = atomic_load_explicit(&call->version, memory_order_relaxed);

	atomic_store_explicit(&call->version, version + 1, memory_order_relaxed);
	atomic_store_explicit(&call->seq, comm->seq, memory_order_release);
	atomic_store_explicit(&call->signature, sign, memory_order_release);
	atomic_store_explicit(&call->count, count, memory_order_release);
	atomic_store_explicit(&call->shape, shape, memory_order_release);
	atomic_store_explicit(&call->cut, cut, memory_order_release);
	atomic_store_explicit(&call->running, 1, memory_order_release);
	atomic_store_explicit(&call->version, version + 2, memory_order_release);
}

/* `args`, or the user's call that they are a part of: what ranks are told of. */
static void publish_call(struct tti_comm *comm, uint64_t sign, const struct tti_args *args)
{
	args = args->part_of ? args->part_of : args;
	if (args->sides) {
		struct tti_sides *last;

		pthread_mutex_lock(&comm->lock);
		last = comm->current.sides;
		comm->current.sides = tti_sides_take(args->sides);
		comm->current.handoff_seq = comm->seq;
		pthread_mutex_unlock(&comm->lock);
		tti_sides_drop(last);
	}
	publish(comm, sign, tti_args_shape(args), 0, tti_args_common_count(args));
}

void tti_call_begin(struct tti_comm *comm, uint64_t shape)
{
	publish(comm, 0, shape, 0, 0);
}

void tti_call_end(struct tti_comm *comm)
{
	atomic_store_explicit(&comm->current.running, 0, memory_order_release);
}

/* -- Running ----------------------------------------------------------------- */

/* Nothing can be trusted to be in step any more, so everybody is told. */
tutti_status tti_call_settle(struct tti_comm *comm, tutti_status status, int mismatch_peer)
{
	if (status == TUTTI_OK)
		return TUTTI_OK;
	if (atomic_load(&comm->fate) != 0)
		return tti_comm_fate(comm);
	if (status == TUTTI_EMISMATCH && mismatch_peer >= 0)
		return tti_stall_mismatch(comm, mismatch_peer, NULL);
	return tti_stall_port_failed(comm, status);
}

/* A collective while it runs. */
struct running {
	struct tti_comm *comm;
	const struct tti_args *args;
	const struct tti_prepared *call;
	uint64_t sign;
	struct tti_layout layout;
	struct tti_reducer reducer;
};

static tutti_status refuse_messages(const struct tti_comm *comm)
{
	return tti_fail(TUTTI_EUNSUPPORTED,
			"TUTTI_ALGO=\"%s\" lets a handoff go by memory alone, and not every rank "
			"reaches the buffers of all: on one host, hand over what tutti_mem_alloc() "
			"gave, or let \"handoff:memory,direct\" take messages where that is not so",
			comm->algo);
}

/* By slots. */
static tutti_status start_plain(void *self, struct tti_job *job)
{
	struct running *run = self;
	struct tti_comm *comm = run->comm;
	const struct tti_args *args = run->args;
	struct tti_bound *bound = run->call->bound;
	size_t slice = run->call->slice;

	if (args->coll == TUTTI_HANDOFF && comm->n > 1 && !(run->call->ways & TTI_SEND_BY_MESSAGES))
		return refuse_messages(comm);
	if (args->coll == TUTTI_HANDOFF)
		TTI_TRY(tti_handoff_get(comm, args, false, &bound, &slice, &run->layout));
	else if (!bound)
		return tti_pairs_start(comm, args, run->sign, job);
	else
		TTI_TRY(tti_layout_of(comm, args, tti_bound_nchunks(bound), slice, &run->layout));
	return tti_job_program(job, &comm->engine, bound, &run->layout, &run->reducer, slice,
			       run->sign);
}

static void note_in_memory(void *self)
{
	const struct running *run = self;

	tti_memory_note_use(run->comm, run->args->coll);
	atomic_store_explicit(&run->comm->last_algorithm, "memory", memory_order_relaxed);
}

/* Where the data lies, if all ranks' buffers can be addressed; else by slots. */
static tutti_status start_in_memory(struct running *run, struct tti_job *job)
{
	struct tti_comm *comm = run->comm;
	struct tti_bound *bound = run->call->memory;
	struct tti_memory_call memory;
	size_t slice;

	tti_memory_describe(comm, run->args, run->call, &memory);
	memory.taken = note_in_memory;
	memory.otherwise = start_plain;
	memory.self = run;
	slice = tti_memory_block_bytes(&comm->engine, &memory);
	if (run->args->coll == TUTTI_HANDOFF)
		TTI_TRY(tti_handoff_get(comm, run->args, true, &bound, &slice, &run->layout));
	else
		TTI_TRY(tti_layout_of(comm, run->args, tti_bound_nchunks(bound), slice,
				      &run->layout));
	memory.send.before += (uintptr_t)run->args->send - (uintptr_t)run->layout.input;
	memory.recv.before += (uintptr_t)run->args->recv - (uintptr_t)run->layout.output;
	return tti_job_memory(job, &comm->engine, bound, &run->layout, &run->reducer, &memory,
			      run->sign);
}

/* *run stays where it is until the job is done. */
static tutti_status start(struct running *run, struct tti_job *job)
{
	struct tti_comm *comm = run->comm;
	const struct tti_args *args = run->args;

	run->reducer = tti_operator_reducer(args->custom, args->op, args->type, comm->n);
	/* Of others' inputs each is multiplied by what only its rank knows. */
	if (!run->reducer.scalars && tti_memory_asks(comm, args, run->call))
		return start_in_memory(run, job);
	return start_plain(run, job);
}

/* What remains when a job is over, however it ended. */
static tutti_status finish(struct tti_comm *comm, const struct tti_args *args, tutti_status status,
			   int mismatch_peer)
{
	char expected[TTI_CALL_TEXT];

	if (status != TUTTI_EMISMATCH || mismatch_peer < 0 || !tti_is_by_pairs(args->coll) ||
	    atomic_load(&comm->fate) != 0)
		return tti_call_settle(comm, status, mismatch_peer);
	tti_pairs_expect(comm, args, mismatch_peer, expected, sizeof(expected));
	return tti_stall_mismatch(comm, mismatch_peer, expected);
}

/* A part of another call has the number of that. */
static uint64_t next_signature(struct tti_comm *comm, const struct tti_args *args, uint64_t part)
{
	if (args->part_of)
		return tti_call_signature(comm->seq, part + tti_call_signature_part(args->part_of));
	return tti_call_signature(++comm->seq, part);
}

/* Numbered and told from here on: a failure is no longer this rank's alone. */
static uint64_t begin(struct tti_comm *comm, const struct tti_args *args,
		      const struct tti_prepared *call)
{
	const uint64_t sign = next_signature(comm, args, call->part);

	if (call->algorithm)
		atomic_store_explicit(&comm->last_algorithm, call->algorithm, memory_order_relaxed);
	if (args->sides || args->part_of)
		publish_call(comm, sign, args);
	else
		publish(comm, sign, call->shape, call->cut, call->count);
	if (call->is_rooted)
		tti_roots_note(comm, call->shape, args->count, call->choice);
	return sign;
}

static tutti_status run_long(struct tti_comm *comm, const struct tti_args *args,
			     const struct tti_prepared *call, uint64_t sign, int *mismatch_peer)
{
	struct running run;
	struct tti_job job;
	struct tti_job *const jobs[] = { &job };
	tutti_status st;

	run.comm = comm;
	run.args = args;
	run.call = call;
	run.sign = sign;
	TTI_TRY(start(&run, &job));
	st = tti_job_wait(jobs, 1);
	*mismatch_peer = job.mismatch_peer;
	comm->roots.odd_tag = job.mismatch_tag;
	return st;
}

/* As it was prepared. */
static inline tutti_status run_job(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call, uint64_t sign, int *mismatch_peer)
{
	tutti_status st;

	if (!call->is_short)
		return run_long(comm, args, call, sign, mismatch_peer);
	st = tti_short_run(&call->way, args->send, args->recv, sign, mismatch_peer);
	comm->roots.odd_tag = call->way.job.mismatch_tag;
	return st;
}

/* A rank that has no memory for a call, alone, keeps all others waiting: they are told. */
static tutti_status settle_alone(struct tti_comm *comm, const struct tti_args *args,
				 tutti_status status)
{
	if (status != TUTTI_ENOMEM && status != TUTTI_ESYS)
		return status;
	publish_call(comm, 0, args);
	status = tti_call_settle(comm, status, -1);
	tti_call_end(comm);
	return status;
}

/* With TUTTI_CHECK=1 ranks meet under the signature of a call that names a root, before it: else
 * those that name different ones may find out only after it. */
static tutti_status check_root(struct tti_comm *comm, const struct tti_args *args,
			       const struct tti_prepared *checked)
{
	const struct tti_args barrier = { .coll = TUTTI_BARRIER };
	const uint64_t sign = tti_call_signature(++comm->seq, checked->part);
	struct tti_prepared call = { 0 };
	int mismatch_peer = -1;
	tutti_status st = tti_prepared_make(comm, &barrier, &call);

	publish_call(comm, sign, args);
	tti_roots_note(comm, checked->shape, args->count, checked->choice);
	if (st == TUTTI_OK)
		st = run_job(comm, &barrier, &call, sign, &mismatch_peer);
	tti_prepared_release(&call);
	st = tti_call_settle(comm, st, mismatch_peer);
	tti_call_end(comm);
	return st;
}

static tutti_status run_collective(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call)
{
	int mismatch_peer = -1;
	uint64_t sign;
	tutti_status st;

	if (call->is_checked)
		TTI_TRY(check_root(comm, args, call));
	sign = begin(comm, args, call);
	st = run_job(comm, args, call, sign, &mismatch_peer);
	if (st != TUTTI_OK)
		st = finish(comm, args, st, mismatch_peer);
	tti_call_end(comm);
	return st;
}

/* What the end of the job of n sends and receives means. */
static tutti_status settle_transfers(struct tti_comm *comm, const struct tti_args *args, int n,
				     tutti_status status, const struct tti_job *job)
{
	char text[TTI_NEWS_TEXT];

	if (status != TUTTI_EMISMATCH || job->mismatch_peer < 0 || atomic_load(&comm->fate) != 0 ||
	    !tti_transfers_explain(comm, args, n, job->mismatch_peer, job->mismatch_tag,
				   job->mismatch_bytes, text, sizeof(text)))
		return tti_call_settle(comm, status, job->mismatch_peer);
	tti_comm_tell(comm, TUTTI_EMISMATCH, job->mismatch_peer, text);
	return tti_comm_fate(comm);
}

static tutti_status run_transfer(struct tti_comm *comm, const struct tti_args *args,
				 struct tti_prepared *call)
{
	int mismatch_peer = -1;
	const char *algorithm = call->algorithm;
	tutti_status st = TUTTI_OK;

	if (call->ways & TTI_SEND_BY_MEMORY && args->is_send) {
		st = tti_memory_offer(comm, call->ways, args->root, args->send, call->nbytes,
				      &call->extent.lent);
		if (call->extent.lent.at)
			algorithm = "memory";
	}
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	publish(comm, 0, call->shape, 0, args->count);
	if (st == TUTTI_OK)
		st = tti_short_run(&call->way, args->send, args->recv, call->extent.tag,
				   &mismatch_peer);
	if (st != TUTTI_OK)
		st = settle_transfers(comm, args, 1, st, &call->way.job);
	tti_call_end(comm);
	return st;
}

tutti_status tti_call_run_prepared(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call)
{
	return call->is_transfer ? run_transfer(comm, args, call)
				 : run_collective(comm, args, call);
}

static tutti_status prepare_and_run(struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_batch_item item = { .comm = comm, .now = args };
	struct tti_prepared *call;
	tutti_status st;

	if (args->coll == TUTTI_HANDOFF)
		tti_handoffs_plan(&item, 1);
	TTI_TRY(item.status);
	st = tti_prepared_get(comm, args, &call);
	return st == TUTTI_OK ? tti_call_run_prepared(comm, args, call)
			      : settle_alone(comm, args, st);
}

tutti_status tti_call_run(struct tti_comm *comm, uint64_t ticket, const struct tti_args *args,
			  struct tti_prepared *call)
{
	tutti_status st;

	tti_turn_wait(comm, ticket);
	if (atomic_load_explicit(&comm->fate, memory_order_relaxed))
		st = tti_comm_fate(comm);
	else
		st = call ? tti_call_run_prepared(comm, args, call) : prepare_and_run(comm, args);
	if (st != TUTTI_OK)
		tti_comm_note(comm, st);
	return st;
}

/* -- Batches ------------------------------------------------------------------ */

static int rounds_of(const struct tti_batch_item *item)
{
	return item->nargs - item->ntransfers + (item->ntransfers > 0);
}

/* The collective of a round; NULL: the round of the sends and receives, or there is none. */
static const struct tti_args *args_of_round(const struct tti_batch_item *item, int round)
{
	const bool has_transfers = item->ntransfers > 0;

	return (round == 0 && has_transfers) || round >= rounds_of(item)
		       ? NULL
		       : &item->args[item->ntransfers + round - has_transfers];
}

/* A round of one communicator while it runs. */
struct round {
	struct tti_batch_item *item;
	struct running run;
	struct tti_job job;
};

static tutti_status start_round(struct round *round)
{
	struct tti_comm *comm = round->item->comm;
	const struct tti_args *args = round->item->now;
	struct tti_prepared *call;
	tutti_status st;

	TTI_TRY(tti_comm_fate(comm));
	if (!args) {
		publish_call(comm, 0, &round->item->args[0]);
		st = tti_transfers_start(comm, round->item->args, round->item->ntransfers,
					 &round->job);
	} else {
		st = tti_prepared_get(comm, args, &call);
		if (st != TUTTI_OK)
			return settle_alone(comm, args, st);
		round->run.comm = comm;
		round->run.args = args;
		round->run.call = call;
		round->run.sign = begin(comm, args, call);
		st = start(&round->run, &round->job);
	}
	if (st != TUTTI_OK) {
		st = tti_call_settle(comm, st, -1);
		tti_call_end(comm);
	}
	return st;
}

/* How the job of a round ended, and what that means. */
static void end_round(const struct round *round)
{
	struct tti_batch_item *item = round->item;
	const struct tti_args *args = item->now;
	const struct tti_job *job = &round->job;

	item->comm->roots.odd_tag = job->mismatch_tag;
	item->status =
		args ? finish(item->comm, args, job->status, job->mismatch_peer)
		     : settle_transfers(item->comm, item->args, item->ntransfers, job->status, job);
	tti_call_end(item->comm);
}

/* The k-th call of each communicator, all of them side by side: the k-th of one
 * never waits for a later one of another, on any rank. */
static void run_round(struct tti_batch_item *items, int n, int number, struct tti_job **jobs,
		      struct round *rounds)
{
	bool has_handoff = false;
	int started = 0;

	for (int i = 0; i < n; i++) {
		items[i].now = args_of_round(&items[i], number);
		has_handoff |= items[i].now && items[i].now->coll == TUTTI_HANDOFF;
	}
	if (has_handoff)
		tti_handoffs_plan(items, n);
	for (int i = 0; i < n; i++) {
		struct tti_batch_item *item = &items[i];
		struct round *round = &rounds[started];

		if (item->status != TUTTI_OK || number >= rounds_of(item))
			continue;
		round->item = item;
		item->status = start_round(round);
		if (item->status == TUTTI_OK)
			jobs[started++] = &round->job;
	}
	(void)tti_job_wait(jobs, started); /* each item has a status of its own */
	for (int i = 0; i < started; i++)
		end_round(&rounds[i]);
}

/* As most groups are of one communicator, those need no memory. */
void tti_batch_rounds(struct tti_batch_item *items, int n)
{
	struct round one, *rounds = n == 1 ? &one : tti_alloc((size_t)n * sizeof(*rounds));
	struct tti_job *job, **jobs = n == 1 ? &job : tti_alloc((size_t)n * sizeof(*jobs));
	int most = 0;

	for (int i = 0; i < n; i++) {
		if (!rounds || !jobs)
			items[i].status = tti_fail(TUTTI_ENOMEM, "group of %d: out of memory", n);
		else if (rounds_of(&items[i]) > most)
			most = rounds_of(&items[i]);
	}
	for (int number = 0; number < most; number++)
		run_round(items, n, number, jobs, rounds);
	if (n == 1)
		return;
	tti_free(rounds);
	tti_free(jobs);
}

tutti_status tti_batch_run(struct tti_batch_item *items, int n)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_turn_wait(items[i].comm, items[i].ticket);
	tti_batch_rounds(items, n);
	for (int i = 0; i < n; i++) {
		if (st == TUTTI_OK)
			st = items[i].status;
		if (items[i].status != TUTTI_OK)
			tti_comm_note(items[i].comm, items[i].status);
		tti_turn_done(items[i].comm);
	}
	return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* From a user's call to a job of the engine. */

/* -- What ranks compare ---------------------------------------------------- */

/* One multiplication for each part, by odd numbers, and one mixing of their sum: it
 * is on the way of every call. Never 0. */
static uint64_t part_of(uint64_t shape, size_t count)
{
	return count * UINT64_C(0xc2b2ae3d27d4eb4f) + shape * UINT64_C(0x165667b19e3779f9);
}

static uint64_t signature(uint64_t seq, uint64_t part)
{
	return tti_hash_mix(seq * UINT64_C(0x9e3779b97f4a7c15) + part) | 1;
}

uint64_t tti_call_signature_part(const struct tti_args *args)
{
	return part_of(tti_args_shape(args), tti_args_common_count(args));
}

/* A send and its receive are not calls of all ranks: no sequence number, and the
 * root of either is the other. */
static uint64_t transfer_signature(const struct tti_args *args)
{
	struct tti_args both = *args;

	both.root = -1;
	both.is_send = false;
	return signature(UINT64_MAX, part_of(tti_args_shape(&both), args->count));
}

/* -- What others may ask (stall.c reads it) --------------------------------- */

static void publish(struct tti_comm *comm, uint64_t sign, uint64_t shape, size_t count)
{
	struct tti_current_call *call = &comm->current;
	const uint32_t version = atomic_load_explicit(&call->version, memory_order_relaxed);

	atomic_store_explicit(&call->version, version + 1, memory_order_relaxed);
	atomic_store_explicit(&call->seq, comm->seq, memory_order_release);
	atomic_store_explicit(&call->signature, sign, memory_order_release);
	atomic_store_explicit(&call->count, count, memory_order_release);
	atomic_store_explicit(&call->shape, shape, memory_order_release);
	atomic_store_explicit(&call->running, 1, memory_order_release);
	atomic_store_explicit(&call->version, version + 2, memory_order_release);
}

static void publish_call(struct tti_comm *comm, uint64_t sign, const struct tti_args *args)
{
	if (args->sides) {
		struct tti_sides *last;

		pthread_mutex_lock(&comm->lock);
		last = comm->current.sides;
		comm->current.sides = tti_sides_take(args->sides);
		comm->current.handoff_seq = comm->seq;
		pthread_mutex_unlock(&comm->lock);
		tti_sides_drop(last);
	}
	publish(comm, sign, tti_args_shape(args), tti_args_common_count(args));
}

static void unpublish(struct tti_comm *comm)
{
	atomic_store_explicit(&comm->current.running, 0, memory_order_release);
}

void tti_call_begin(struct tti_comm *comm, uint64_t shape)
{
	publish(comm, 0, shape, 0);
}

void tti_call_end(struct tti_comm *comm)
{
	unpublish(comm);
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

/* What runs a call: a program, or transfers. The layout is that of a handoff; others have one
 * by rule. */
struct prepared {
	uint64_t sign;
	size_t nbytes, slice;
	struct tti_bound *bound; /* NULL: transfers, in messages of `slice` bytes */
	struct tti_layout layout;
	/* While it runs: */
	struct tti_comm *comm;
	const struct tti_args *args;
	struct tti_reducer reducer;
	bool asks;     /* whether buffers are registered: on all ranks or none */
	bool by_pairs; /* what this rank has for itself is left to do */
};

/* Whose programs run a call. */
static tutti_collective program_of(tutti_collective coll)
{
	if (coll == TUTTI_ALL_GATHER_V)
		return TUTTI_ALL_GATHER;
	return coll == TUTTI_REDUCE_SCATTER_V ? TUTTI_REDUCE_SCATTER : coll;
}

static bool is_all_to_all_in_place(const struct tti_args *args)
{
	return args->coll == TUTTI_ALL_TO_ALL && args->send == args->recv;
}

/* In place, what comes from a rank must wait for what goes to it: as transfers it does, in
 * the messages of the program "direct", which other ranks may be running. A program of the
 * user's may have that name, too, but not the string of the library's. */
static bool goes_by_transfers(const struct tti_comm *comm, const struct tti_args *args)
{
	return is_all_to_all_in_place(args) &&
	       atomic_load_explicit(&comm->last_algorithm, memory_order_relaxed) ==
		       tti_algorithm_find(TUTTI_ALL_TO_ALL, "direct")->name;
}

/* All of it but the signature. */
static tutti_status choose(struct tti_comm *comm, const struct tti_args *args, struct prepared *out)
{
	out->nbytes = tti_vector_bytes(comm, args);
	out->bound = NULL;
	out->slice = 0;
	if (args->coll == TUTTI_HANDOFF)
		return tti_handoff_get(comm, args, &out->bound, &out->slice, &out->layout);
	if (tti_is_by_pairs(args->coll) ||
	    (args->coll == TUTTI_ALL_TO_ALL && comm->n > TTI_PAIRED_RANKS_MAX))
		return TUTTI_OK;
	TTI_TRY(tti_programs_get(comm, program_of(args->coll),
				 tti_collective_is_rooted(args->coll) ? args->root : 0, out->nbytes,
				 tti_op_order(args->op, args->type), &out->bound, &out->slice));
	if (goes_by_transfers(comm, args)) {
		const size_t type_size = tutti_type_size(args->type);

		out->bound = NULL;
		/* Whole elements, as the program cuts them. */
		out->slice =
			out->slice > type_size ? out->slice - out->slice % type_size : type_size;
	}
	return TUTTI_OK;
}

static void sign(struct tti_comm *comm, const struct tti_args *args, struct prepared *out)
{
	out->sign = signature(++comm->seq, tti_call_signature_part(args));
}

static tutti_status prepare(struct tti_comm *comm, const struct tti_args *args,
			    struct prepared *out)
{
	sign(comm, args, out);
	return choose(comm, args, out);
}

/* By slots. */
static tutti_status start_plain(void *self, struct tti_job *job)
{
	struct prepared *call = self;
	struct tti_comm *comm = call->comm;
	const struct tti_args *args = call->args;

	if (!call->bound) {
		call->by_pairs = true;
		return tti_pairs_start(comm, args, call->sign, call->slice, job);
	}
	if (args->coll != TUTTI_HANDOFF)
		TTI_TRY(tti_layout_of(comm, args, tti_bound_nchunks(call->bound), call->slice,
				      &call->layout));
	if (is_all_to_all_in_place(args))
		TTI_TRY(tti_pairs_set_apart(comm, args, &call->layout.input));
	return tti_job_program(job, &comm->engine, call->bound, &call->layout, &call->reducer,
			       call->slice, call->sign);
}

static void take_direct(void *self)
{
	const struct prepared *call = self;

	tti_memory_note_use(call->comm, call->args->coll);
	atomic_store_explicit(&call->comm->last_algorithm, "registered", memory_order_relaxed);
}

/* Where the data lies, if all ranks' buffers can be addressed; else by slots. */
static tutti_status start_direct(struct prepared *call, struct tti_job *job)
{
	struct tti_direct direct;

	tti_memory_describe(call->comm, call->args, &direct);
	direct.reducer = call->reducer;
	direct.taken = take_direct;
	direct.otherwise = start_plain;
	direct.self = call;
	return tti_job_direct(job, &call->comm->engine, &direct, call->sign);
}

/* What all ways to run it need: once for each call, as asking counts. */
static void describe(struct tti_comm *comm, const struct tti_args *args, struct prepared *call)
{
	call->comm = comm;
	call->args = args;
	call->by_pairs = false;
	call->reducer = tti_operator_reducer(args->custom, args->op, args->type, comm->n);
	/* Of others' inputs each is multiplied by what only its rank knows. */
	call->asks = !call->reducer.scalars && tti_memory_asks(comm, args, call->nbytes);
}

/* *call stays where it is until the job is done. */
static tutti_status start(struct prepared *call, struct tti_job *job)
{
	tti_handoff_before_check(call->comm, call->args);
	return call->asks ? start_direct(call, job) : start_plain(call, job);
}

/* What remains when a job is over, however it ended. */
static tutti_status finish(struct tti_comm *comm, const struct tti_args *args,
			   const struct prepared *call, tutti_status status, int mismatch_peer)
{
	char expected[TTI_CALL_TEXT];

	if (status == TUTTI_OK && call->by_pairs)
		tti_pairs_finish(comm, args);
	if (status == TUTTI_OK)
		return tti_handoff_after_check(comm, args);
	if (status != TUTTI_EMISMATCH || mismatch_peer < 0 || !tti_is_by_pairs(args->coll) ||
	    atomic_load(&comm->fate) != 0)
		return tti_call_settle(comm, status, mismatch_peer);
	tti_pairs_expect(comm, args, mismatch_peer, expected, sizeof(expected));
	return tti_stall_mismatch(comm, mismatch_peer, expected);
}

/* Whether its messages may go straight through, if each chunk is one. What an exchange moves
 * is one message whatever its length; nothing else that might ask. */
static bool may_go_straight(const struct tti_comm *comm, const struct tti_args *args,
			    const struct prepared *call)
{
	if (!call->bound || args->coll == TUTTI_HANDOFF || is_all_to_all_in_place(args))
		return false;
	if (tti_bound_is_exchange(call->bound) && !args->custom && call->nbytes <= call->slice)
		return true;
	return call->nbytes <= TTI_BRIEF_BYTES &&
	       !tti_memory_may_ask(comm, args->coll, call->nbytes);
}

static tutti_status run(struct tti_comm *comm, const struct tti_args *args, struct prepared *call,
			int *mismatch_peer)
{
	struct tti_brief *brief = NULL;
	struct tti_job job;
	struct tti_job *jobs[] = { &job };
	tutti_status st;

	if (may_go_straight(comm, args, call))
		TTI_TRY(tti_brief_get(comm, args, call->bound, call->slice, &brief));
	if (brief)
		return tti_straight_run(&brief->way, args->send, args->recv, call->sign,
					mismatch_peer);
	describe(comm, args, call);
	TTI_TRY(start(call, &job));
	st = tti_job_wait(jobs, 1);
	*mismatch_peer = job.mismatch_peer;
	return st;
}

static tutti_status run_and_finish(struct tti_comm *comm, const struct tti_args *args,
				   struct prepared *call)
{
	int mismatch_peer = -1;
	tutti_status st;

	publish_call(comm, call->sign, args);
	call->by_pairs = false;
	st = run(comm, args, call, &mismatch_peer);
	st = finish(comm, args, call, st, mismatch_peer);
	unpublish(comm);
	return st;
}

tutti_status tti_call_run(struct tti_comm *comm, const struct tti_args *args)
{
	struct prepared call;

	TTI_TRY(prepare(comm, args, &call));
	return run_and_finish(comm, args, &call);
}

tutti_status tti_call_ready(struct tti_comm *comm, const struct tti_args *args,
			    struct tti_ready *out)
{
	struct prepared call;

	TTI_TRY(choose(comm, args, &call));
	*out = (struct tti_ready){
		.bound = call.bound,
		.nbytes = call.nbytes,
		.slice = call.slice,
		.algorithm = atomic_load_explicit(&comm->last_algorithm, memory_order_relaxed),
	};
	return TUTTI_OK;
}

tutti_status tti_call_run_ready(struct tti_comm *comm, const struct tti_args *args,
				const struct tti_ready *ready)
{
	struct prepared call;

	sign(comm, args, &call);
	call.nbytes = ready->nbytes;
	call.bound = ready->bound;
	call.slice = ready->slice;
	atomic_store_explicit(&comm->last_algorithm, ready->algorithm, memory_order_relaxed);
	return run_and_finish(comm, args, &call);
}

/* -- Sends and receives --------------------------------------------------------- */

/* *algorithm is set where the receiver may take the data from where it lies. */
static struct tti_transfer transfer_of(struct tti_comm *comm, const struct tti_args *args,
				       const char **algorithm)
{
	struct tti_transfer transfer = {
		.peer = args->root,
		.is_send = args->is_send,
		/* Only read from where it is a send. */
		.data = args->is_send ? (char *)(uintptr_t)args->send : args->recv,
		.nbytes = args->count * tutti_type_size(args->type),
		.tag = transfer_signature(args),
	};

	if (args->is_send &&
	    tti_memory_offers(comm, args->root, args->send, transfer.nbytes, &transfer.name))
		*algorithm = "registered";
	return transfer;
}

static void begin_transfers(struct tti_comm *comm, const struct tti_args *first,
			    const char *algorithm)
{
	publish_call(comm, 0, first);
	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
}

static tutti_status run_transfer(struct tti_comm *comm, const struct tti_args *args,
				 int *mismatch_peer)
{
	const char *algorithm = "send_recv";
	struct tti_transfer transfer = transfer_of(comm, args, &algorithm);
	struct tti_job job;
	struct tti_job *jobs[] = { &job };
	int32_t head;
	tutti_status st;

	atomic_store_explicit(&comm->last_algorithm, algorithm, memory_order_relaxed);
	tti_job_transfers(&job, &comm->engine, &transfer, 1, &head);
	st = tti_job_wait(jobs, 1);
	*mismatch_peer = job.mismatch_peer;
	/* From now on the peer is connected. */
	if (st == TUTTI_OK)
		(void)tti_brief_get_transfer(comm, args, transfer.tag);
	return st;
}

tutti_status tti_call_transfer(struct tti_comm *comm, const struct tti_args *args)
{
	int mismatch_peer = -1;
	tutti_status st;

	publish_call(comm, 0, args);
	st = run_transfer(comm, args, &mismatch_peer);
	st = tti_call_settle(comm, st, mismatch_peer);
	unpublish(comm);
	return st;
}

/* -- What is kept of short calls ------------------------------------------------- */

static tutti_status transfer_straight(struct tti_comm *comm, const struct tti_brief *brief,
				      const struct tti_args *args, int *mismatch_peer)
{
	tutti_status st;

	if (args->is_send)
		return tti_straight_send(&comm->engine, args->root, args->send, brief->sends,
					 brief->tag);
	st = tti_straight_recv(&comm->engine, args->root, args->recv, brief->recvs, brief->tag,
			       mismatch_peer);
	return st == TUTTI_AGAIN ? run_transfer(comm, args, mismatch_peer) : st;
}

tutti_status tti_call_run_brief(struct tti_comm *comm, struct tti_brief *brief,
				const struct tti_args *args)
{
	const uint64_t sign = brief->is_transfer ? 0 : signature(++comm->seq, brief->part);
	int mismatch_peer = -1;
	tutti_status st;

	atomic_store_explicit(&comm->last_algorithm, brief->algorithm, memory_order_relaxed);
	publish(comm, sign, brief->shape, args->count);
	st = brief->is_transfer
		     ? transfer_straight(comm, brief, args, &mismatch_peer)
		     : tti_straight_run(&brief->way, args->send, args->recv, sign, &mismatch_peer);
	st = tti_call_settle(comm, st, mismatch_peer);
	unpublish(comm);
	return st;
}

/* -- Batches ------------------------------------------------------------------ */

static void start_transfers(struct tti_batch_item *item, struct tti_job *job)
{
	const char *algorithm = "send_recv";

	for (int i = 0; i < item->ntransfers; i++)
		item->transfers[i] = transfer_of(item->comm, &item->args[i], &algorithm);
	begin_transfers(item->comm, &item->args[0], algorithm);
	tti_job_transfers(job, &item->comm->engine, item->transfers, item->ntransfers, item->heads);
}

/* The collective of a round; NULL: the round of the sends and receives. */
static const struct tti_args *args_of_round(const struct tti_batch_item *item, int round)
{
	const bool has_transfers = item->ntransfers > 0;

	return round == 0 && has_transfers ? NULL
					   : &item->args[item->ntransfers + round - has_transfers];
}

/* A round of one communicator while it runs. */
struct running {
	struct tti_batch_item *item;
	struct prepared call;
};

static tutti_status start_round(struct tti_batch_item *item, int round, struct prepared *call,
				struct tti_job *job)
{
	const struct tti_args *args = args_of_round(item, round);
	struct tti_comm *comm = item->comm;

	TTI_TRY(tti_comm_fate(comm));
	if (!args) {
		start_transfers(item, job);
		return TUTTI_OK;
	}
	TTI_TRY(prepare(comm, args, call));
	publish_call(comm, call->sign, args);
	describe(comm, args, call);
	return start(call, job);
}

/* How the job of a round ended, and what that means. */
static void end_round(const struct running *running, int round, const struct tti_job *job)
{
	struct tti_batch_item *item = running->item;
	const struct tti_args *args = args_of_round(item, round);

	item->status =
		args ? finish(item->comm, args, &running->call, job->status, job->mismatch_peer)
		     : tti_call_settle(item->comm, job->status, job->mismatch_peer);
	unpublish(item->comm);
}

static int rounds_of(const struct tti_batch_item *item)
{
	return item->nargs - item->ntransfers + (item->ntransfers > 0);
}

/* The k-th call of each communicator, all of them side by side: the k-th of one
 * never waits for a later one of another, on any rank. */
static int run_round(struct tti_batch_item *items, int n, int round, struct tti_job *job,
		     struct tti_job **jobs, struct running *running)
{
	int started = 0;

	for (int i = 0; i < n; i++) {
		struct tti_batch_item *item = &items[i];

		if (item->status != TUTTI_OK || round >= rounds_of(item))
			continue;
		running[started].item = item;
		item->status = start_round(item, round, &running[started].call, &job[started]);
		if (item->status != TUTTI_OK)
			continue;
		jobs[started] = &job[started];
		started++;
	}
	const tutti_status st = tti_job_wait(jobs, started);

	for (int i = 0; i < started; i++)
		end_round(&running[i], round, &job[i]);
	(void)st; /* each item has its own */
	return started;
}

tutti_status tti_batch_run(struct tti_batch_item *items, int n)
{
	struct tti_job *job = tti_calloc((size_t)n, sizeof(*job));
	struct tti_job **jobs = tti_calloc((size_t)n, sizeof(struct tti_job *));
	struct running *running = tti_calloc((size_t)n, sizeof(*running));
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_turn_wait(items[i].comm, items[i].ticket);
	if (job && jobs && running) {
		for (int round = 0; run_round(items, n, round, job, jobs, running) > 0; round++)
			;
	} else {
		for (int i = 0; i < n; i++)
			items[i].status = tti_fail(TUTTI_ENOMEM, "group of %d: out of memory", n);
	}
	for (int i = 0; i < n; i++) {
		if (st == TUTTI_OK)
			st = items[i].status;
		if (items[i].status != TUTTI_OK)
			tti_comm_note(items[i].comm, items[i].status);
		tti_turn_done(items[i].comm);
	}
	tti_free(job);
	tti_free(jobs);
	tti_free(running);
	return st;
}

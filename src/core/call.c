/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* From a user's call to a job of the engine. */

#define CACHE_LINE 64

/* -- What ranks compare ---------------------------------------------------- */

/* One multiplication for each part, by odd numbers, and one mixing of their sum: it
 * is on the way of every call. Never 0. */
static uint64_t signature(uint64_t seq, uint64_t shape, size_t count)
{
	return tti_hash_mix(seq * UINT64_C(0x9e3779b97f4a7c15) +
			    count * UINT64_C(0xc2b2ae3d27d4eb4f) +
			    shape * UINT64_C(0x165667b19e3779f9)) |
	       1;
}

/* A send and its receive are not calls of all ranks: no sequence number, and the
 * root of either is the other. */
static uint64_t transfer_signature(const struct tti_args *args)
{
	struct tti_args both = *args;

	both.root = -1;
	both.is_send = false;
	return signature(UINT64_MAX, tti_args_shape(&both), args->count);
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

static void unpublish(struct tti_comm *comm)
{
	atomic_store_explicit(&comm->current.running, 0, memory_order_release);
}

/* -- Where the chunks lie --------------------------------------------------- */

/* A row cut into `parts` pieces that begin on cache lines of their own. */
static size_t piece_of(size_t count, size_t parts, size_t type_size)
{
	const size_t piece = (count + parts - 1) / parts, line = CACHE_LINE / type_size;

	return piece > line ? (piece + line - 1) / line * line : piece;
}

static struct tti_layout lay_out(const struct tti_args *args, int nchunks, int n)
{
	const size_t type_size = tutti_type_size(args->type);
	const bool by_rank = args->coll == TUTTI_ALL_GATHER || args->coll == TUTTI_REDUCE_SCATTER;
	const int parts = by_rank ? nchunks / n : nchunks;

	return (struct tti_layout){
		.input = args->send,
		.output = args->recv,
		.type_size = type_size,
		.parts = parts,
		.chunk_count = piece_of(args->count, (size_t)parts, type_size),
		.row_count = args->count,
		/* Of its own input or output a rank has one row only. */
		.in_stride = args->coll == TUTTI_REDUCE_SCATTER ? args->count * type_size : 0,
		.out_stride = args->coll == TUTTI_ALL_GATHER ? args->count * type_size : 0,
	};
}

/* Bytes of the whole vector: what the choice of an algorithm goes by. */
static size_t vector_bytes(const struct tti_comm *comm, const struct tti_args *args)
{
	const size_t nbytes = args->count * tutti_type_size(args->type);
	const bool per_rank = args->coll == TUTTI_ALL_GATHER || args->coll == TUTTI_REDUCE_SCATTER;

	return per_rank ? nbytes * (size_t)comm->n : nbytes;
}

/* -- Running ----------------------------------------------------------------- */

/* What a failed job means for the communicator: nothing can be trusted to be in
 * step any more, so everybody is told. */
static tutti_status settle(struct tti_comm *comm, tutti_status status, int mismatch_peer)
{
	if (status == TUTTI_OK)
		return TUTTI_OK;
	if (atomic_load(&comm->fate) != 0)
		return tti_comm_fate(comm);
	if (status == TUTTI_EMISMATCH && mismatch_peer >= 0)
		return tti_stall_mismatch(comm, mismatch_peer);
	return tti_stall_port_failed(comm, status);
}

static tutti_status start_program(struct tti_comm *comm, const struct tti_args *args,
				  struct tti_bound *bound, size_t slice, uint64_t sign,
				  struct tti_job *job)
{
	const struct tti_layout layout = lay_out(args, tti_bound_nchunks(bound), comm->n);
	const struct tti_reducer reducer = tti_reducer_of(args->type, args->op, comm->n);

	return tti_job_program(job, &comm->engine, bound, &layout, &reducer, slice, sign);
}

tutti_status tti_call_run(struct tti_comm *comm, const struct tti_args *args)
{
	const size_t nbytes = vector_bytes(comm, args);
	const uint64_t shape = tti_args_shape(args);
	const uint64_t sign = signature(++comm->seq, shape, args->count);
	int mismatch_peer = -1;
	struct tti_bound *bound;
	tutti_status st;
	size_t slice;

	st = tti_programs_get(comm, args->coll, args->root, nbytes, &bound, &slice);
	if (st != TUTTI_OK)
		return st;
	publish(comm, sign, shape, args->count);
	if (nbytes <= slice && tti_exchange_fits(&comm->engine, bound)) {
		st = tti_exchange(&comm->engine, bound, args->send, args->recv, args->count,
				  tutti_type_size(args->type), tti_reduce_get(args->type, args->op),
				  args->op == TUTTI_AVG ? comm->n : 0, sign, &mismatch_peer);
	} else {
		struct tti_job job;
		struct tti_job *jobs[] = { &job };

		st = start_program(comm, args, bound, slice, sign, &job);
		if (st == TUTTI_OK)
			st = tti_job_wait(jobs, 1);
		mismatch_peer = job.mismatch_peer;
	}
	if (st != TUTTI_OK)
		st = settle(comm, st, mismatch_peer);
	unpublish(comm);
	return st;
}

/* -- Batches ------------------------------------------------------------------ */

static void start_transfers(struct tti_batch_item *item, struct tti_job *job)
{
	for (int i = 0; i < item->ntransfers; i++) {
		const struct tti_args *args = &item->args[i];

		item->transfers[i] = (struct tti_transfer){
			.peer = args->root,
			.is_send = args->is_send,
			/* Only read from where it is a send. */
			.data = args->is_send ? (char *)(uintptr_t)args->send : args->recv,
			.nbytes = args->count * tutti_type_size(args->type),
			.tag = transfer_signature(args),
		};
	}
	publish(item->comm, 0, tti_args_shape(&item->args[0]), item->args[0].count);
	atomic_store_explicit(&item->comm->last_algorithm, "send_recv", memory_order_relaxed);
	tti_job_transfers(job, &item->comm->engine, item->transfers, item->ntransfers, item->heads);
}

static tutti_status start_round(struct tti_batch_item *item, int round, struct tti_job *job)
{
	struct tti_comm *comm = item->comm;
	const bool has_transfers = item->ntransfers > 0;
	const struct tti_args *args;
	struct tti_bound *bound;
	uint64_t sign, shape;
	size_t slice;

	TTI_TRY(tti_comm_fate(comm));
	if (round == 0 && has_transfers) {
		start_transfers(item, job);
		return TUTTI_OK;
	}
	args = &item->args[item->ntransfers + round - has_transfers];
	shape = tti_args_shape(args);
	sign = signature(++comm->seq, shape, args->count);
	TTI_TRY(tti_programs_get(comm, args->coll, args->root, vector_bytes(comm, args), &bound,
				 &slice));
	publish(comm, sign, shape, args->count);
	return start_program(comm, args, bound, slice, sign, job);
}

static int rounds_of(const struct tti_batch_item *item)
{
	return item->nargs - item->ntransfers + (item->ntransfers > 0);
}

/* The k-th call of each communicator, all of them side by side: the k-th of one
 * never waits for a later one of another, on any rank. */
static int run_round(struct tti_batch_item *items, int n, int round, struct tti_job *job,
		     struct tti_job **jobs, struct tti_batch_item **owner)
{
	int started = 0;

	for (int i = 0; i < n; i++) {
		struct tti_batch_item *item = &items[i];

		if (item->status != TUTTI_OK || round >= rounds_of(item))
			continue;
		item->status = start_round(item, round, &job[started]);
		if (item->status != TUTTI_OK)
			continue;
		jobs[started] = &job[started];
		owner[started++] = item;
	}
	const tutti_status st = tti_job_wait(jobs, started);

	for (int i = 0; i < started; i++) {
		owner[i]->status = settle(owner[i]->comm, job[i].status, job[i].mismatch_peer);
		unpublish(owner[i]->comm);
	}
	(void)st; /* each item has its own */
	return started;
}

tutti_status tti_batch_run(struct tti_batch_item *items, int n)
{
	struct tti_job *job = tti_calloc((size_t)n, sizeof(*job));
	struct tti_job **jobs = tti_calloc((size_t)n, sizeof(struct tti_job *));
	struct tti_batch_item **owner = tti_calloc((size_t)n, sizeof(struct tti_batch_item *));
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_turn_wait(items[i].comm, items[i].ticket);
	if (job && jobs && owner) {
		for (int round = 0; run_round(items, n, round, job, jobs, owner) > 0; round++)
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
	tti_free(owner);
	return st;
}

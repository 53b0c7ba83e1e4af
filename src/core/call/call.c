/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/call.h"

#include <stdio.h>

#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/call/roots.h"
#include "core/call/staged.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/prepare/layout.h"
#include "core/prepare/memory.h"
#include "core/prepare/operators.h"
#include "core/prepare/prepared.h"
#include "core/prepare/signature.h"
#include "core/prepare/transfers.h"
#include "core/sequence.h"
#include "core/stall.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/params.h"

/* -- Running ----------------------------------------------------------------- */

/* A collective while it runs. */
struct tti_running_call {
	struct tti_comm *comm;
	const struct tti_args *args;
	const struct tti_prepared *call;
	uint64_t sign;
	bool is_apart; /* ranks that ask are told of it later: calls before it may be under way */
	struct tti_job job;
};

static struct tti_reducer reducer_of(const struct tti_comm *comm, const struct tti_args *args)
{
	return tti_operator_reducer(args->custom, args->op, args->type, comm->n);
}

/* The program, by slots or in memory, and its layout. */
static tutti_status find_program(const struct tti_running_call *run, bool in_memory,
				 struct tti_executable **out, size_t *slice_bytes,
				 struct tti_layout *layout)
{
	if (run->args->coll == TUTTI_HANDOFF)
		return tti_handoff_get(run->comm, run->args, in_memory, out, slice_bytes, layout);
	*out = in_memory ? run->call->memory : run->call->executable;
	return tti_layout_of(run->comm, run->args, tti_executable_nchunks(*out), *slice_bytes,
			     layout);
}

bool tti_call_is_on_device(const struct tti_comm *comm, const struct tti_args *args)
{
	return comm->device && !args->part_of && !args->on_host &&
	       !(args->custom && args->custom->fn);
}

/* By slots. */
static tutti_status start_plain(void *self, struct tti_job *job)
{
	const struct tti_running_call *run = self;
	const struct tti_prepared *call = run->call;
	struct tti_comm *comm = run->comm;
	const bool is_handoff = run->args->coll == TUTTI_HANDOFF;
	size_t slice = call->slice;
	struct tti_executable *executable;
	struct tti_reducer reducer;
	struct tti_layout layout;

	if (is_handoff && comm->n > 1 && !(call->ways & TTI_SEND_BY_MESSAGES))
		return tti_fail(
			TUTTI_EUNSUPPORTED,
			"TUTTI_ALGO=\"%s\" lets a handoff go by memory alone, and not "
			"every rank reaches the buffers of all: on one host, hand over what "
			"tutti_mem_alloc() gave, or let \"handoff:memory,direct\" take "
			"messages where that is not so",
			comm->algo);
	if (!is_handoff && !call->executable)
		return tti_pairs_start(comm, run->args, run->sign, job);
	if (!tti_call_is_on_device(comm, run->args))
		slice = tti_prepared_host_slice(comm, slice);
	TTI_TRY(find_program(run, false, &executable, &slice, &layout));
	if (tti_call_is_on_device(comm, run->args))
		return tti_flight_start(comm, job, executable, &layout, run->args, slice,
					run->sign);
	reducer = reducer_of(comm, run->args);
	return tti_job_program(job, &comm->engine, executable, &layout, &reducer, slice, run->sign);
}

/* By a memory program if the buffers of all ranks can be addressed; else by slots. */
static tutti_status start_in_memory(struct tti_running_call *run)
{
	struct tti_comm *comm = run->comm;
	const struct tti_reducer reducer = reducer_of(comm, run->args);
	struct tti_memory_call memory;
	struct tti_executable *executable;
	struct tti_layout layout;
	size_t slice;

	tti_memory_describe(comm, run->args, run->call, &memory);
	memory.fallback = start_plain;
	memory.self = run;
	slice = tti_memory_block_bytes(&comm->engine, &memory);
	TTI_TRY(find_program(run, true, &executable, &slice, &layout));
	memory.send.before += (uintptr_t)run->args->send - (uintptr_t)layout.input;
	memory.recv.before += (uintptr_t)run->args->recv - (uintptr_t)layout.output;
	return tti_job_memory(&run->job, &comm->engine, executable, &layout, &reducer, &memory,
			      run->sign);
}

/* A part of another call has the number of that call. */
static uint64_t next_signature(struct tti_comm *comm, const struct tti_args *args, uint64_t part)
{
	if (args->part_of)
		return tti_signature_make(comm->seq, part + tti_signature_part(args->part_of));
	return tti_signature_make(++comm->seq, part);
}

/* The call is numbered now: from here on a failure concerns all ranks. */
static uint64_t take_number(struct tti_comm *comm, const struct tti_args *args,
			    const struct tti_prepared *call)
{
	const uint64_t sign = next_signature(comm, args, call->part);

	if (call->algorithm)
		atomic_store_explicit(&comm->last_algorithm, call->algorithm, memory_order_relaxed);
	if (call->is_rooted)
		tti_roots_note(comm, call->packed, args->count, call->choice);
	return sign;
}

/* And published. */
static uint64_t begin(struct tti_comm *comm, const struct tti_args *args,
		      const struct tti_prepared *call)
{
	const uint64_t sign = take_number(comm, args, call);

	if (args->sides || args->part_of)
		tti_call_publish(comm, comm->seq, sign, call->split, args);
	else
		tti_current_call_publish(&comm->current,
					 &(struct tti_published_call){ .seq = comm->seq,
								       .signature = sign,
								       .count = call->count,
								       .packed = call->packed,
								       .split = call->split });
	return sign;
}

/* The job of a collective, or of n sends and receives, has ended with `status`. */
static tutti_status settle(struct tti_comm *comm, const struct tti_args *args, int n,
			   const struct tti_job *job, tutti_status status)
{
	const int peer = job->mismatch_peer;
	const bool differs =
		status == TUTTI_EMISMATCH && peer >= 0 && atomic_load(&comm->async_error) == 0;
	char text[TTI_FAILURE_TEXT];

	if (job->program.is_memory && !job->program.begins) {
		comm->memory.unused[args->coll] = 0;
		atomic_store_explicit(&comm->last_algorithm, "memory", memory_order_relaxed);
	}
	atomic_store_explicit(&comm->roots.unexpected_tag, job->mismatch_tag, memory_order_relaxed);
	if (differs && tti_is_by_pairs(args->coll)) {
		tti_pairs_expect(comm, args, peer, text, sizeof(text));
		status = tti_stall_mismatch(comm, peer, text);
	} else if (differs && args->coll == TUTTI_SEND_RECV &&
		   tti_transfers_explain(comm, args, n, job, text, sizeof(text))) {
		tti_comm_notify_failure(comm, TUTTI_EMISMATCH, peer, text);
		status = tti_comm_async_error(comm);
	} else {
		status = tti_stall_settle(comm, status, peer);
	}
	return status;
}

tutti_status tti_call_finish(struct tti_comm *comm, const struct tti_args *args, int n,
			     const struct tti_job *job, tutti_status status)
{
	status = settle(comm, args, n, job, status);
	tti_call_end(comm);
	return status;
}

/* Clear what settle() reads of a job that has not started; the engine clears the rest. */
static void clear(struct tti_job *job)
{
	job->mismatch_peer = -1;
	job->mismatch_tag = 0;
	job->program.is_memory = false;
}

/* *run must not move until its job is done, unless it is a flight's. A job that cannot start is
 * finished here. */
static tutti_status start(struct tti_running_call *run, struct tti_comm *comm,
			  const struct tti_args *args, const struct tti_prepared *call)
{
	tutti_status st;

	run->comm = comm;
	run->args = args;
	run->call = call;
	run->sign = run->is_apart ? take_number(comm, args, call) : begin(comm, args, call);
	clear(&run->job);
	/* A memory program reads the inputs of others, but only their ranks know the scalars. Kernels choose
	 * by themselves, and what the host does in their place goes by slots. */
	if (!comm->devices && !reducer_of(comm, args).scalars && tti_memory_asks(comm, args, call))
		st = start_in_memory(run);
	else
		st = start_plain(run, &run->job);
	if (st == TUTTI_OK) {
		if (tti_flight_of(&run->job))
			tti_flight_prefer_memory(&run->job, args, call);
		return TUTTI_OK;
	}
	return run->is_apart ? settle(comm, args, 1, &run->job, st)
			     : tti_call_finish(comm, args, 1, &run->job, st);
}

static tutti_status run_long(struct tti_comm *comm, const struct tti_args *args,
			     const struct tti_prepared *call)
{
	struct tti_running_call run = { .is_apart = false };
	struct tti_job *const jobs[] = { &run.job };
	tutti_status st;

	TTI_TRY(start(&run, comm, args, call));
	if (comm->device)
		tti_flights_launch(jobs, &args, 1, NULL);
	st = tti_call_finish(comm, args, 1, &run.job, tti_job_wait(jobs, 1));
	if (tti_flight_of(&run.job))
		tti_flight_end(tti_flight_of(&run.job));
	return st;
}

static tutti_status run_staged(struct tti_comm *comm, const struct tti_args *args,
			       const struct tti_prepared *call)
{
	struct tti_staged *staged;
	tutti_status st = tti_staged_open(comm, &args, &staged);

	if (st != TUTTI_OK)
		return tti_call_fail_alone(comm, args, st);
	st = run_long(comm, args, call);
	return tti_staged_close(staged, st);
}

/* As it was prepared. */
static inline tutti_status run_collective(struct tti_comm *comm, const struct tti_args *args,
					  struct tti_prepared *call)
{
	tutti_status st;

	if (comm->device && !args->part_of)
		return run_staged(comm, args, call);
	if (!call->is_short)
		return run_long(comm, args, call);
	/* A kept call has the scalar that was read when it was prepared. */
	if (args->custom)
		call->way.job.program.reducer = reducer_of(comm, args);
	st = tti_short_run(&call->way, args->send, args->recv, begin(comm, args, call));
	if (st != TUTTI_OK)
		return tti_call_finish(comm, args, 1, &call->way.job, st);
	tti_call_end(comm);
	return TUTTI_OK;
}

tutti_status tti_call_fail_alone(struct tti_comm *comm, const struct tti_args *args,
				 tutti_status status)
{
	if (status != TUTTI_ENOMEM && status != TUTTI_ESYS)
		return status;
	tti_call_publish(comm, comm->seq, 0, 0, args);
	status = tti_stall_settle(comm, status, -1);
	tti_call_end(comm);
	return status;
}

/* With TUTTI_CHECK=1 a barrier comes before a rooted call, and its signature has the arguments of
 * that call. Without it, ranks that name different roots may find out only after the call. */
static tutti_status check_root(struct tti_comm *comm, const struct tti_args *args,
			       const struct tti_prepared *checked)
{
	const struct tti_args barrier = {
		.coll = TUTTI_BARRIER, .part_of = args, .stage = TTI_STAGE_ROOTS, .algo = args->algo
	};
	struct tti_prepared call = { 0 };
	tutti_status st = tti_prepared_make(comm, &barrier, &call);

	comm->seq++;
	tti_roots_note(comm, checked->packed, args->count, call.part);
	st = st == TUTTI_OK ? run_collective(comm, &barrier, &call)
			    : tti_call_fail_alone(comm, &barrier, st);
	tti_prepared_release(&call);
	return st;
}

static tutti_status run_transfer(struct tti_comm *comm, const struct tti_args *args,
				 struct tti_prepared *call)
{
	struct tti_memory_name *lent = &call->extent.rndv;
	tutti_status st = TUTTI_OK;

	if (call->ways & TTI_SEND_BY_MEMORY && args->is_send)
		st = tti_memory_offer(comm, call->ways, args->root, args->send, call->nbytes, lent);
	atomic_store_explicit(&comm->last_algorithm,
			      lent->reach != TTI_REACH_SLOTS ? "memory" : call->algorithm,
			      memory_order_relaxed);
	tti_current_call_publish(&comm->current,
				 &(struct tti_published_call){ .seq = comm->seq,
							       .count = args->count,
							       .packed = call->packed });
	if (st == TUTTI_OK)
		st = tti_short_run(&call->way, args->send, args->recv, call->extent.tag);
	if (st != TUTTI_OK)
		return tti_call_finish(comm, args, 1, &call->way.job, st);
	tti_call_end(comm);
	return TUTTI_OK;
}

tutti_status tti_call_run_prepared(struct tti_comm *comm, const struct tti_args *args,
				   struct tti_prepared *call)
{
	if (call->is_transfer)
		return run_transfer(comm, args, call);
	if (call->is_checked)
		TTI_TRY(check_root(comm, args, call));
	return run_collective(comm, args, call);
}

static tutti_status prepare_and_run(struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_call_item item = { .comm = comm, .now = args, .nnow = 1 };
	struct tti_prepared *call;
	tutti_status st;

	/* On a device one send is a list of one. */
	if (args->coll == TUTTI_SEND_RECV && comm->device) {
		tti_call_run_all(&item, 1, NULL);
		return item.status;
	}
	st = tti_prepared_get(comm, args, &call);
	return st == TUTTI_OK ? tti_call_run_prepared(comm, args, call)
			      : tti_call_fail_alone(comm, args, st);
}

tutti_status tti_call_run(struct tti_comm *comm, uint64_t seqno, const struct tti_args *args,
			  struct tti_prepared *call)
{
	tutti_status st;

	tti_sequence_turn(comm, seqno);
	if (atomic_load_explicit(&comm->async_error, memory_order_relaxed))
		st = tti_comm_async_error(comm);
	else
		st = call ? tti_call_run_prepared(comm, args, call) : prepare_and_run(comm, args);
	if (st != TUTTI_OK)
		tti_comm_note(comm, st);
	return st;
}

/* -- Of several communicators ------------------------------------------------------ */

/* Of the items that have started. */
struct tti_call_list {
	struct tti_job **jobs;
	const struct tti_args **args;
	const struct tti_flight_stream **to;
};

struct tti_call_room {
	struct tti_call_list list;
	struct tti_running_call runs[];
};

struct tti_call_room *tti_call_room_create(int n)
{
	const size_t one = sizeof(struct tti_running_call) + 3 * sizeof(void *);
	struct tti_call_room *room = tti_alloc(sizeof(*room) + (size_t)n * one);

	if (!room)
		return NULL;
	room->list.jobs = (struct tti_job **)(void *)(room->runs + n);
	room->list.args = (const struct tti_args **)(void *)(room->list.jobs + n);
	room->list.to = (const struct tti_flight_stream **)(void *)(room->list.args + n);
	return room;
}

/* Transfers that are a part of a collective show its signature, so that a rank that is in another call
 * is found; others are matched by pairs of ranks and have none. */
static uint64_t sign_of_stage(const struct tti_call_item *item)
{
	const struct tti_args *user = item->now->part_of;

	return user && user->coll != TUTTI_SEND_RECV
		       ? tti_signature_make(item->comm->seq, tti_signature_part(user))
		       : 0;
}

static tutti_status start_item(const struct tti_call_item *item, struct tti_running_call *run)
{
	struct tti_prepared *call;
	tutti_status st;

	TTI_TRY(tti_comm_async_error(item->comm));
	if (item->now->coll != TUTTI_SEND_RECV) {
		st = tti_prepared_get(item->comm, item->now, &call);
		return st == TUTTI_OK  ? start(run, item->comm, item->now, call)
		       : run->is_apart ? tti_stall_settle(item->comm, st, -1)
				       : tti_call_fail_alone(item->comm, item->now, st);
	}
	clear(&run->job);
	run->sign = 0;
	if (!run->is_apart)
		tti_call_publish(item->comm, item->comm->seq, sign_of_stage(item), 0, item->now);
	st = tti_transfers_start(item->comm, item->now, item->nnow, &run->job);
	if (st == TUTTI_OK)
		return TUTTI_OK;
	return run->is_apart ? settle(item->comm, item->now, item->nnow, &run->job, st)
			     : tti_call_finish(item->comm, item->now, item->nnow, &run->job, st);
}

/* Start what items[i].now are; how many have started. */
static int start_all(struct tti_call_item *items, int n, struct tti_running_call *runs,
		     bool is_apart)
{
	int started = 0;

	for (int i = 0; i < n; i++) {
		struct tti_call_item *item = &items[i];

		if (item->status != TUTTI_OK || item->nnow == 0)
			continue;
		item->run = &runs[started];
		item->run->is_apart = is_apart;
		item->status = start_item(item, item->run);
		if (item->status == TUTTI_OK)
			started++;
		else
			item->run = NULL;
	}
	return started;
}

/* The item's job is over. */
static void finish_item(struct tti_call_item *item)
{
	struct tti_job *job = &item->run->job;

	if (item->run->is_apart)
		item->status = settle(item->comm, item->now, item->nnow, job, job->status);
	else
		item->status = tti_call_finish(item->comm, item->now, item->nnow, job, job->status);
	if (tti_flight_of(job))
		tti_flight_end(tti_flight_of(job));
	item->run = NULL;
}

/* Launch the jobs of ranks with devices. Those that cannot be are finished at once, since others, of
 * ranks of this thread too, wait for them. Returns how many jobs there are to wait for. */
static int launch_all(struct tti_call_item *items, int n, struct tti_call_list *list)
{
	struct tti_job **jobs = list->jobs;
	int started = 0;
	bool is_apart = false;

	for (int i = 0; i < n; i++)
		if (items[i].run) {
			is_apart = items[i].run->is_apart;
			jobs[started] = &items[i].run->job;
			list->to[started] = &items[i].to;
			list->args[started++] = items[i].now;
		}
	tti_flights_launch(jobs, list->args, started, is_apart ? list->to : NULL);
	started = 0;
	for (int i = 0; i < n; i++) {
		if (items[i].run && items[i].run->job.status < 0)
			finish_item(&items[i]);
		else if (items[i].run)
			jobs[started++] = &items[i].run->job;
	}
	return started;
}

/* Room for one item. */
struct alone {
	struct tti_running_call run;
	struct tti_job *job;
	const struct tti_args *args;
	const struct tti_flight_stream *to;
};

static struct tti_call_list list_of(struct tti_call_room *room, struct alone *alone)
{
	return room ? room->list : (struct tti_call_list){ &alone->job, &alone->args, &alone->to };
}

void tti_call_run_all(struct tti_call_item *items, int n, struct tti_call_room *room)
{
	struct alone alone;
	struct tti_call_list list = list_of(room, &alone);
	int started = start_all(items, n, room ? room->runs : &alone.run, false);

	started = launch_all(items, n, &list);
	(void)tti_job_wait(list.jobs, started); /* each item has a status of its own */
	for (int i = 0; i < n; i++)
		if (items[i].run)
			finish_item(&items[i]);
}

/* -- In a stream of the program -------------------------------------------------------- */

/* The item's flight keeps what its end needs. */
static tutti_status keep_item(const struct tti_call_item *item)
{
	const struct tti_running_call *run = item->run;
	struct tti_flight_call *shown = &tti_flight_of(&run->job)->shown;

	shown->args = tti_calloc((size_t)item->nnow, sizeof(*shown->args));
	if (!shown->args)
		return tti_fail(TUTTI_ENOMEM, "%d calls in a stream: out of memory", item->nnow);
	while (shown->nargs < item->nnow) {
		shown->args[shown->nargs] = tti_args_take(&item->now[shown->nargs]);
		shown->nargs++;
	}
	shown->seq = item->comm->seq;
	shown->sign = run->sign;
	shown->split = item->now->coll == TUTTI_SEND_RECV ? 0 : run->call->split;
	return TUTTI_OK;
}

void tti_call_await_turn(const struct tti_call_item *item)
{
	tti_sequence_wait(item->comm, item->seqno);
	tti_flights_await(item->comm);
}

void tti_call_launch_all(struct tti_call_item *items, int n, struct tti_call_room *room)
{
	struct alone alone;
	struct tti_call_list list = list_of(room, &alone);

	(void)start_all(items, n, room ? room->runs : &alone.run, true);
	for (int i = 0; i < n; i++) {
		tutti_status st;

		if (!items[i].run)
			continue;
		st = keep_item(&items[i]);
		if (st != TUTTI_OK)
			items[i].run->job.status = st;
		else if (!tti_flight_has_lanes(tti_flight_of(&items[i].run->job)))
			tti_call_await_turn(&items[i]);
	}
	(void)launch_all(items, n, &list);
	for (int i = 0; i < n; i++) {
		struct tti_running_call *run = items[i].run;

		if (!run)
			continue;
		tti_flight_let_go(tti_flight_of(&run->job), &run->job, &items[i].told);
		items[i].nlaunched++;
		items[i].run = NULL;
	}
}

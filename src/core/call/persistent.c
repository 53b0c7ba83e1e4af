/* SPDX-License-Identifier: BSD-3-Clause */
#include "tutti/persistent.h"

#include <stdio.h>

#include "core/call/args.h"
#include "core/call/batch.h"
#include "core/call/call.h"
#include "core/call/group.h"
#include "core/call/stream.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/handle.h"
#include "core/prepare/prepared.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"

struct tutti_persistent {
	struct tti_stream_item item;
	tutti_comm_t handle;
	uint64_t generation; /* of the handle, when it was made */
	int pid;             /* of the process that made it     */
	struct tti_args args;
	struct tti_prepared call;
	_Atomic bool running;        /* a start on a stream that is not done */
	bool started;                /* and not waited for */
	struct tti_awaited *awaited; /* of the stream of the last start; NULL: none */
	struct tti_comm *comm;
	uint64_t seqno;
	struct tti_flight_told told; /* of its stream, of CUDA */
	tutti_status status;
	char error[TTI_ERROR_TEXT];
};

static bool can_repeat(tutti_collective coll)
{
	const struct tti_collective *what = tti_collective_get(coll);

	return (unsigned)coll < TUTTI_COLLECTIVE_COUNT && what->input != TTI_HOLDER_STATED &&
	       !what->has_counts;
}

static tutti_status make_ready(struct tti_comm *comm, struct tutti_persistent *persistent)
{
	uint64_t seqno;
	tutti_status st;

	TTI_TRY(tti_comm_usable(comm));
	TTI_TRY(tti_args_find_operator(comm, &persistent->args));
	TTI_TRY(tti_args_check(comm, &persistent->args));
	TTI_TRY(tti_sequence_may_wait(comm));
	persistent->args.algo = atomic_load(&comm->call_algo);
	seqno = tti_sequence_take(comm);
	tti_sequence_turn(comm, seqno);
	st = tti_comm_async_error(comm);
	if (st == TUTTI_OK)
		st = tti_prepared_make(comm, &persistent->args, &persistent->call);
	tti_sequence_done(comm);
	if (st == TUTTI_OK)
		persistent->args = tti_args_take(&persistent->args);
	return st;
}

/* Fields that the collective does not use have the values of its own public call. */
static struct tti_args args_of(const tutti_call *call)
{
	const tutti_collective coll = call->coll;

	if (coll == TUTTI_BARRIER)
		return (struct tti_args){ .coll = coll };
	return (struct tti_args){
		.coll = coll,
		.send = call->send,
		.recv = call->recv,
		.count = call->count,
		.type = call->type,
		.op = tti_collective_takes_op(coll) ? call->op : TUTTI_SUM,
		.root = tti_collective_is_rooted(coll) ? call->root : 0,
	};
}

static tutti_status check_call(const tutti_call *call, const tutti_persistent_t *out)
{
	if (!call || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_persistent_create(): %s is NULL",
				call ? "out" : "call");
	if (call->size != sizeof(*call))
		return tti_fail(TUTTI_EINVAL,
				"tutti_persistent_create(): call.size is %zu: fill it with "
				"TUTTI_CALL_INIT",
				call->size);
	if (!can_repeat(call->coll))
		return tti_fail(TUTTI_EINVAL,
				"tutti_persistent_create(): %s cannot be made persistent",
				tutti_collective_name(call->coll));
	if (tti_group_is_open())
		return tti_fail(TUTTI_EUSAGE,
				"tutti_persistent_create() inside a group: end it first");
	return TUTTI_OK;
}

tutti_status tutti_persistent_create(const tutti_call *call, tutti_comm_t handle,
				     tutti_persistent_t *out)
{
	struct tutti_persistent *persistent;
	struct tti_comm *comm;
	tutti_status st;

	TTI_TRY(tti_handle_note(handle, check_call(call, out)));
	TTI_TRY(tti_handle_enter(handle, &comm));
	persistent = tti_zalloc(sizeof(*persistent));
	if (persistent) {
		persistent->handle = handle;
		persistent->generation = atomic_load(&handle->generation);
		persistent->pid = handle->pid;
		persistent->args = args_of(call);
		st = make_ready(comm, persistent);
	} else {
		st = tti_fail(TUTTI_ENOMEM, "persistent call: out of memory");
	}
	if (st == TUTTI_OK) {
		*out = persistent;
	} else {
		tti_comm_note(comm, st);
		tti_free(persistent);
	}
	tti_handle_leave(handle);
	return st;
}

/* The communicator stays until its call is counted as done, so that comes last. */
static tutti_status run(struct tutti_persistent *persistent, struct tti_comm *comm, uint64_t seqno)
{
	const tutti_status st = tti_call_run(comm, seqno, &persistent->args, &persistent->call);

	persistent->status = st;
	if (st != TUTTI_OK)
		(void)snprintf(persistent->error, sizeof(persistent->error), "%s",
			       tti_error_text());
	tti_sequence_done(comm);
	return st;
}

static tutti_status run_queued(struct tti_stream_item *item)
{
	struct tutti_persistent *persistent = (struct tutti_persistent *)item;
	tutti_status st;

	tti_stream_item_check(item, persistent->comm);
	st = run(persistent, persistent->comm, persistent->seqno);
	atomic_store(&persistent->running, false);
	/* The persistent call may be gone by now. */
	return st;
}

/* -- In streams of CUDA -------------------------------------------------------------- */

static void begins(void *self)
{
	const struct tti_flight_told *told = &((struct tutti_persistent *)self)->told;

	told->begins(told->self);
}

static void landed(void *self, tutti_status status)
{
	struct tutti_persistent *persistent = self;
	const struct tti_flight_told told = persistent->told;

	persistent->status = status;
	if (status != TUTTI_OK)
		(void)snprintf(persistent->error, sizeof(persistent->error), "%s",
			       tti_error_text());
	atomic_store(&persistent->running, false);
	/* The persistent call may be gone by now. */
	told.landed(told.self, status);
}

static tutti_status launch(struct tutti_persistent *persistent, struct tti_comm *comm,
			   tutti_stream_t stream)
{
	struct tti_call_item item = {
		.comm = comm, .seqno = persistent->seqno, .args = &persistent->args, .nargs = 1
	};
	tutti_status st = tti_stream_launch(stream, &item.to, &persistent->told);

	if (st == TUTTI_OK)
		st = tti_flight_check_stream(comm, &item.to);
	if (st != TUTTI_OK) {
		tti_sequence_untake(comm);
		return st;
	}
	item.told =
		(struct tti_flight_told){ begins, landed, persistent, persistent->told.awaited };
	return tti_batch_launch(&item, 1);
}

static tutti_status push(struct tutti_persistent *persistent, struct tti_comm *comm,
			 tutti_stream_t stream)
{
	const tutti_status st = tti_stream_push(stream, &persistent->item, run_queued);

	if (st != TUTTI_OK)
		tti_sequence_untake(comm);
	return st;
}

static tutti_status queue(struct tutti_persistent *persistent, struct tti_comm *comm,
			  tutti_stream_t stream)
{
	tutti_status st;

	TTI_TRY(tti_stream_check(stream));
	persistent->comm = comm;
	persistent->item.is_awaited = true;
	persistent->seqno = tti_sequence_take(comm);
	persistent->started = true;
	tti_awaited_drop(persistent->awaited);
	persistent->awaited = tti_stream_awaited(stream);
	atomic_store(&persistent->running, true);
	st = tti_call_is_on_device(comm, &persistent->args) && tti_stream_is_cuda(stream)
		     ? launch(persistent, comm, stream)
		     : push(persistent, comm, stream);
	if (st == TUTTI_OK)
		return st;
	persistent->started = false;
	atomic_store(&persistent->running, false);
	return st;
}

static tutti_status check_handle(tutti_persistent_t persistent)
{
	return persistent ? tti_fork_check("persistent call", persistent, persistent->pid)
			  : tti_fail(TUTTI_EINVAL, "the persistent call is NULL");
}

static tutti_status start(struct tutti_persistent *persistent, struct tti_comm *comm,
			  tutti_stream_t stream)
{
	tutti_status st;

	if (tti_group_is_open() || persistent->started)
		return tti_fail(TUTTI_EUSAGE, "tutti_persistent_start() %s",
				persistent->started
					? "of a call whose last start was not waited for"
					: "inside a group: end it first");
	if (!tti_sequence_begin(comm, &st))
		return tti_handle_fail_busy(persistent->handle);
	st = tti_comm_usable(comm);
	if (st == TUTTI_OK && stream) {
		st = queue(persistent, comm, stream);
	} else if (st == TUTTI_OK) {
		st = tti_sequence_may_wait(comm);
		if (st == TUTTI_OK)
			st = run(persistent, comm, tti_sequence_take(comm));
	}
	tti_sequence_end(comm);
	return st;
}

tutti_status tutti_persistent_start(tutti_persistent_t persistent, tutti_stream_t stream)
{
	struct tti_comm *comm;

	TTI_TRY(check_handle(persistent));
	TTI_TRY(tti_handle_enter(persistent->handle, &comm));
	/* The handle may be another communicator's by now. */
	if (atomic_load(&persistent->handle->generation) == persistent->generation)
		return tti_handle_end(persistent->handle, comm, start(persistent, comm, stream));
	tti_handle_leave(persistent->handle);
	return tti_fail(TUTTI_EUSAGE, "the communicator of persistent call %p was destroyed",
			(void *)persistent);
}

/* Whether this thread may wait for its last start. */
static tutti_status check_wait(tutti_persistent_t persistent)
{
	TTI_TRY(check_handle(persistent));
	if (!atomic_load(&persistent->running) || !tti_stream_is_calling_of(persistent->awaited))
		return TUTTI_OK;
	return tti_handle_fail(
		persistent->handle, TUTTI_EUSAGE,
		"the start of the persistent call is queued on the stream whose thread runs this "
		"function of tutti_stream_call(), behind it: return first");
}

/* `stop`: TUTTI_AGAIN if this thread is interrupted. */
static tutti_status wait_for(tutti_persistent_t persistent, bool stop)
{
	tutti_status st;

	TTI_TRY(check_wait(persistent));
	if (atomic_load(&persistent->running)) {
		atomic_fetch_add(&persistent->awaited->now, 1);
		st = tti_awaited_wait(persistent->awaited, &persistent->running, stop);
		atomic_fetch_sub(&persistent->awaited->now, 1);
		if (st != TUTTI_OK)
			return st;
	}
	persistent->started = false;
	return persistent->status == TUTTI_OK
		       ? TUTTI_OK
		       : tti_fail_quiet(persistent->status, "%s", persistent->error);
}

tutti_status tutti_persistent_wait(tutti_persistent_t persistent)
{
	return wait_for(persistent, true);
}

tutti_status tutti_persistent_destroy(tutti_persistent_t persistent)
{
	tutti_status st;

	if (!persistent)
		return TUTTI_OK;
	if (persistent->pid == tti_fork_pid())
		TTI_TRY(check_wait(persistent));
	st = wait_for(persistent, false);
	tti_args_drop(&persistent->args);
	tti_prepared_release(&persistent->call);
	tti_awaited_drop(persistent->awaited);
	tti_free(persistent);
	return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/group.h"

#include <stdio.h>

#include "core/call/args.h"
#include "core/call/batch.h"
#include "core/call/call.h"
#include "core/call/counts.h"
#include "core/call/predict.h"
#include "core/call/prepared.h"
#include "core/call/stream.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/lifetime.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"
#include "util/vec.h"

/* Groups: calls are collected on the thread and run together at the end.
 *
 * At the end the calls are sorted into one batch per stream (the NULL stream is run
 * by the caller), each with one item per communicator, its sends and receives before
 * its collectives. */

struct queued_call {
	tutti_comm_t handle; /* entered until the group has run */
	struct tti_comm *comm;
	tutti_stream_t stream;
	struct tti_args args;
};

struct group {
	int depth, pid;     /* 0 deep: there is none; of the process that opened it */
	tutti_status error; /* the first, and its text */
	char text[TTI_ERROR_TEXT];
	TTI_VEC(struct queued_call) calls;
	TTI_VEC(tutti_comm_t) inits;
};

/* What is between start and end belongs to the thread that called start. */
static _Thread_local struct group group;

/* A child that was forked inside a group has the memory of it, and nothing to run it by. */
bool tti_group_is_open(void)
{
	return group.depth > 0 && group.pid == tti_fork_pid();
}

tutti_status tti_group_remember(tutti_status status)
{
	if (status < 0 && tti_group_is_open() && group.error == TUTTI_OK) {
		group.error = status;
		(void)snprintf(group.text, sizeof(group.text), "%s", tti_error_text());
	}
	return status;
}

tutti_status tti_group_add_init(tutti_comm_t handle)
{
	if (!tti_vec_push(&group.inits, handle))
		return tti_group_remember(tti_fail(TUTTI_ENOMEM, "group: out of memory"));
	return TUTTI_OK;
}

void tti_group_drop_init(tutti_comm_t handle)
{
	tti_assert(group.inits.n > 0 && group.inits.at[group.inits.n - 1] == handle);
	group.inits.n--;
}

/* -- Batches ---------------------------------------------------------------------- */

/* One allocation: items and their calls. */
struct batch {
	struct tti_stream_item item;
	int n;
	struct tti_call_item items[];
};

static bool is_transfer(const struct queued_call *call)
{
	return call->args.coll == TUTTI_SEND_RECV;
}

/* Which item of the batch is a communicator's; a new one if there is none. */
static struct tti_call_item *item_of(struct batch *batch, struct tti_comm *comm)
{
	int i = 0;

	while (i < batch->n && batch->items[i].comm != comm)
		i++;
	if (i == batch->n)
		batch->items[batch->n++] = (struct tti_call_item){ .comm = comm };
	return &batch->items[i];
}

static void free_batch(struct batch *batch)
{
	for (int i = 0; i < batch->n; i++)
		for (int k = 0; k < batch->items[i].nargs; k++)
			tti_args_drop(&batch->items[i].args[k]);
	tti_free(batch);
}

/* Copy the calls of one communicator, transfers first; a batch outlives what it is made
 * of. */
static void fill_item(struct tti_call_item *item, const struct queued_call *calls, size_t ncalls,
		      tutti_stream_t stream)
{
	for (int collectives = 0; collectives < 2; collectives++)
		for (size_t i = 0; i < ncalls; i++)
			if (calls[i].comm == item->comm && calls[i].stream == stream &&
			    is_transfer(&calls[i]) != (bool)collectives)
				item->args[item->nargs++] = tti_args_take(&calls[i].args);
}

/* The batch of one stream; NULL: out of memory. */
static struct batch *make_batch(const struct queued_call *calls, size_t ncalls,
				tutti_stream_t stream)
{
	struct batch *batch = tti_zalloc(
		sizeof(*batch) + ncalls * (sizeof(*batch->items) + sizeof(struct tti_args)));
	struct tti_args *next_args;

	_Static_assert(_Alignof(struct tti_args) == _Alignof(struct tti_call_item), "one block");
	if (!batch)
		return NULL;
	next_args = (struct tti_args *)(void *)(batch->items + ncalls);
	for (size_t i = 0; i < ncalls; i++)
		if (calls[i].stream == stream) {
			struct tti_call_item *item = item_of(batch, calls[i].comm);

			item->nargs++;
			item->ntransfers += is_transfer(&calls[i]);
		}
	for (int i = 0; i < batch->n; i++) {
		struct tti_call_item *item = &batch->items[i];

		item->args = next_args;
		next_args += item->nargs;
		item->nargs = 0;
		fill_item(item, calls, ncalls, stream);
		item->seqno = tti_sequence_take(item->comm);
	}
	return batch;
}

static tutti_status run_batch(struct tti_stream_item *item)
{
	struct batch *batch = (struct batch *)item;
	const tutti_status st = tti_batch_run(batch->items, batch->n);

	free_batch(batch);
	return st;
}

/* One that could not be queued. */
static void drop_batch(struct batch *batch)
{
	for (int i = 0; i < batch->n; i++)
		tti_sequence_untake(batch->items[i].comm);
	free_batch(batch);
}

static tutti_status start_batch(const struct queued_call *calls, size_t ncalls,
				tutti_stream_t stream)
{
	struct batch *batch;
	tutti_status st;

	for (size_t i = 0; i < ncalls && !stream; i++)
		if (!calls[i].stream)
			TTI_TRY(tti_sequence_may_wait(calls[i].comm));
	batch = make_batch(calls, ncalls, stream);
	if (!batch)
		return tti_fail(TUTTI_ENOMEM, "group of %zu calls: out of memory", ncalls);
	if (!stream)
		return run_batch(&batch->item);
	st = tti_stream_push(stream, &batch->item, run_batch);
	if (st != TUTTI_OK)
		drop_batch(batch);
	return st;
}

/* -- Submitting --------------------------------------------------------------------- */

/* It may have to be planned first. */
static tutti_status run_handoff(struct tti_comm *comm, const struct tti_args *args)
{
	struct tti_args copy = *args;
	struct tti_call_item item = {
		.comm = comm, .seqno = tti_sequence_take(comm), .args = &copy, .nargs = 1
	};

	return tti_batch_run(&item, 1);
}

static tutti_status run_now(struct tti_comm *comm, const struct tti_args *args)
{
	tutti_status st;

	TTI_TRY(tti_sequence_may_wait(comm));
	if (args->coll == TUTTI_HANDOFF)
		return run_handoff(comm, args);
	st = tti_call_run(comm, tti_sequence_take(comm), args, NULL);
	tti_sequence_done(comm);
	return st;
}

/* Until the end of the group; the communicator stays as long. */
static tutti_status keep(const struct queued_call *call)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_enter(call->handle, &comm));
	if (tti_vec_push(&group.calls, *call)) {
		(void)tti_args_take(&call->args);
		return TUTTI_OK;
	}
	tti_handle_leave(call->handle);
	return tti_fail(TUTTI_ENOMEM, "group: out of memory");
}

/* A call whose arguments are right. */
static tutti_status place(const struct queued_call *call)
{
	struct tti_comm *comm = call->comm;
	const struct tti_args *args = &call->args;

	if (tti_group_is_open())
		return keep(call);
	if (args->coll == TUTTI_SEND_RECV && args->root == comm->rank)
		return tti_fail(TUTTI_EUSAGE,
				"a send to and a receive from the own rank %d need each other: put "
				"both into one tutti_group_start/end",
				comm->rank);
	if (!call->stream)
		return run_now(comm, args);
	return start_batch(call, 1, call->stream);
}

/* Sides are copied, since the call may be queued, as the user's counts are if they may be gone before
 * it runs. */
static tutti_status submit(struct queued_call *call)
{
	struct tti_args *args = &call->args;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_comm_usable(call->comm));
	TTI_TRY(tti_args_find_operator(call->comm, args));
	TTI_TRY(tti_counts_take_in(call->comm, args));
	TTI_TRY(tti_args_check(call->comm, args));
	if (args->coll == TUTTI_HANDOFF)
		st = tti_sides_keep(args);
	else if (tti_has_counts(args->coll) && (tti_group_is_open() || call->stream))
		st = tti_counts_keep(call->comm, args);
	if (st == TUTTI_OK)
		st = place(call);
	tti_sides_drop(args->sides);
	tti_counts_drop(args->counts);
	return st;
}

/* A call that was found among those kept, now: its arguments are right, nobody is before it. */
static tutti_status run_prepared(struct tti_comm *comm, struct tti_prepared *call,
				 const struct tti_args *args)
{
	tutti_status st;

	(void)tti_sequence_take(comm);
	st = tti_call_run_prepared(comm, args, call);
	if (st != TUTTI_OK)
		tti_comm_note(comm, st);
	tti_sequence_done(comm);
	return st;
}

static tutti_status submit_new(tutti_comm_t handle, struct tti_comm *comm,
			       const struct tti_args *args, tutti_stream_t stream)
{
	struct queued_call call = {
		.handle = handle, .comm = comm, .stream = stream, .args = *args
	};
	tutti_status st;

	call.args.algo = atomic_load(&comm->call_algo);
	st = submit(&call);
	return st == TUTTI_OK ? st : tti_comm_note(comm, st);
}

tutti_status tti_submit(tutti_comm_t handle, const struct tti_args *args, tutti_stream_t stream)
{
	struct tti_prepared *call = NULL;
	struct tti_comm *comm;
	tutti_status st = tti_handle_enter(handle, &comm);

	if (st != TUTTI_OK)
		return tti_group_remember(st);
	if (!tti_sequence_begin(comm, &call)) {
		tti_handle_leave(handle);
		return tti_group_remember(tti_handle_fail_busy(handle));
	}
	if (!stream && !tti_group_is_open())
		call = tti_prepared_find(comm, args);
	st = call ? run_prepared(comm, call, args) : submit_new(handle, comm, args, stream);
	tti_sequence_end(comm);
	tti_handle_leave(handle);
	return st == TUTTI_OK ? st : tti_group_remember(st);
}

/* -- Start and end --------------------------------------------------------------------- */

/* What was queued is dropped, and the communicators are given back. */
static void close_group(void)
{
	group.error = TUTTI_OK;
	for (size_t i = 0; i < group.calls.n; i++) {
		tti_args_drop(&group.calls.at[i].args);
		tti_handle_leave(group.calls.at[i].handle);
	}
	tti_vec_release(&group.calls);
	tti_vec_release(&group.inits);
}

tutti_status tutti_group_start(void)
{
	tti_fork_watch();
	if (group.depth > 0 && !tti_group_is_open()) {
		close_group();
		group.depth = 0;
	}
	group.pid = tti_fork_pid();
	group.depth++;
	return TUTTI_OK;
}

/* A send to oneself that nothing receives would wait for ever. */
static tutti_status check_self_transfers(const struct queued_call *calls, size_t ncalls)
{
	for (size_t i = 0; i < ncalls; i++) {
		int sends = 0, recvs = 0;

		for (size_t k = 0; k < ncalls; k++)
			if (is_transfer(&calls[k]) && calls[k].comm == calls[i].comm &&
			    calls[k].args.root == calls[k].comm->rank &&
			    calls[k].stream == calls[i].stream) {
				sends += calls[k].args.is_send;
				recvs += !calls[k].args.is_send;
			}
		if (sends != recvs)
			return tti_fail(TUTTI_EUSAGE,
					"the group has %d sends to and %d receives from the own "
					"rank %d on one stream: they must be as many",
					sends, recvs, calls[i].comm->rank);
	}
	return TUTTI_OK;
}

static tutti_status wait_for_inits(void)
{
	tutti_status st = TUTTI_OK;

	for (size_t i = 0; i < group.inits.n; i++) {
		struct tti_comm *comm = atomic_load(&group.inits.at[i]->comm);

		pthread_join(comm->init_thread, NULL);
		comm->has_init_thread = false;
		if (st == TUTTI_OK && atomic_load(&comm->init_status) != TUTTI_OK)
			st = tti_fail_quiet((tutti_status)atomic_load(&comm->init_status), "%s",
					    tti_comm_last_text(comm));
		if (comm->is_outsider) {
			tti_handle_free(group.inits.at[i]);
			tti_comm_free(comm);
		}
	}
	return st;
}

/* Streams first: they run beside what the caller then does itself. */
static tutti_status start_batches(const struct queued_call *calls, size_t n)
{
	tutti_status st = TUTTI_OK;
	bool has_null = false;

	for (size_t i = 0; i < n && st == TUTTI_OK; i++) {
		size_t first = 0;

		while (calls[first].stream != calls[i].stream)
			first++;
		has_null |= !calls[i].stream;
		if (first == i && calls[i].stream)
			st = start_batch(calls, n, calls[i].stream);
	}
	if (st == TUTTI_OK && has_null)
		st = start_batch(calls, n, NULL);
	return st;
}

static tutti_status run_group(void)
{
	const struct queued_call *calls = group.calls.at;
	tutti_status st = check_self_transfers(calls, group.calls.n);
	size_t begun = 0;

	for (; begun < group.calls.n && st == TUTTI_OK; begun++)
		if (!tti_sequence_begin(calls[begun].comm, &calls))
			break;
	if (st == TUTTI_OK && begun < group.calls.n)
		st = tti_handle_fail_busy(calls[begun].handle);
	if (st == TUTTI_OK)
		st = start_batches(calls, group.calls.n);
	while (begun-- > 0)
		tti_sequence_end(calls[begun].comm);
	return st;
}

/* Each communicator's sends and receives of one stream go at the same time; the rest one after the other,
 * as if one core did them. */
static tutti_status predict_group(double *us)
{
	const struct queued_call *calls = group.calls.at;
	tutti_status st = check_self_transfers(calls, group.calls.n);

	*us = 0;
	for (size_t i = 0; i < group.calls.n && st == TUTTI_OK; i++) {
		struct tti_predicted_traffic traffic = { 0 };
		size_t k = is_transfer(&calls[i]) ? 0 : i;

		if (!is_transfer(&calls[i]))
			st = tti_predict_call(calls[i].comm, &calls[i].args, &traffic, us);
		for (; k < group.calls.n && is_transfer(&calls[i]); k++) {
			if (!is_transfer(&calls[k]) || calls[k].comm != calls[i].comm ||
			    calls[k].stream != calls[i].stream)
				continue;
			if (k < i)
				break; /* counted with the first of them */
			tti_predict_transfer(calls[k].comm, &calls[k].args, &traffic);
		}
		*us += tti_predict_traffic(calls[i].comm, &traffic);
	}
	return st;
}

/* The outermost group is over. What it holds is run, or, with `us`, predicted. */
static tutti_status end_group(double *us)
{
	tutti_status st =
		group.error == TUTTI_OK ? TUTTI_OK : tti_fail_quiet(group.error, "%s", group.text);

	if (group.inits.n > 0) {
		const tutti_status inits = wait_for_inits();

		st = st == TUTTI_OK ? inits : st;
	}
	if (st == TUTTI_OK)
		st = us ? predict_group(us) : run_group();
	close_group();
	return st;
}

/* TUTTI_OK: this is the end of the outermost group, which is to be ended; TUTTI_AGAIN: of an inner one. */
static tutti_status leave_group(void)
{
	const tutti_status st = tti_fork_check("group", &group, group.pid);

	if (--group.depth > 0)
		return st == TUTTI_OK ? TUTTI_AGAIN : st;
	if (st != TUTTI_OK)
		close_group();
	return st;
}

tutti_status tutti_group_end(void)
{
	tutti_status st;

	if (group.depth == 0)
		return tti_fail(TUTTI_EUSAGE, "tutti_group_end() without tutti_group_start()");
	st = leave_group();
	if (st == TUTTI_AGAIN)
		return TUTTI_OK;
	return st == TUTTI_OK ? end_group(NULL) : st;
}

tutti_status tutti_group_simulate_end(double *us)
{
	tutti_status st;

	if (group.depth == 0)
		return tti_fail(TUTTI_EUSAGE,
				"tutti_group_simulate_end() without tutti_group_start()");
	if (!us)
		return tti_fail(TUTTI_EINVAL, "us is NULL: pass the address of a double. The group "
					      "is still open");
	if (group.depth > 1)
		return tti_fail(
			TUTTI_EUSAGE,
			"tutti_group_simulate_end() inside %d groups: end the inner ones with "
			"tutti_group_end() first",
			group.depth);
	st = leave_group();
	return st == TUTTI_OK ? end_group(us) : st;
}

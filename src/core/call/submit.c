/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/submit.h"

#include "core/call/batch.h"
#include "core/call/call.h"
#include "core/call/counts.h"
#include "core/call/stream.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/handle.h"
#include "core/handoff/sides.h"
#include "core/prepare/prepared.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/mem.h"

/* Calls are sorted into one batch per stream (the NULL stream is run by the caller), each with one
 * item per communicator, its sends and receives before its collectives. */

/* -- Batches ---------------------------------------------------------------------- */

/* In place of a stream: all those in which kernels are launched. */
static char each;
#define EACH ((tutti_stream_t)(void *)&each)

static bool is_in(const struct tti_queued_call *call, tutti_stream_t stream)
{
	return stream == EACH ? tti_is_launched(call) : call->stream == stream;
}

/* One allocation: items and their calls. */
struct batch {
	struct tti_stream_item item;
	int n;
	struct tti_call_item items[];
};

/* The communicator's item in the batch, which is added if there is none. */
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

/* Copy the calls of one communicator, transfers first: a batch outlives the group. */
static void fill_item(struct tti_call_item *item, const struct tti_queued_call *calls,
		      size_t ncalls, tutti_stream_t stream)
{
	for (int collectives = 0; collectives < 2; collectives++)
		for (size_t i = 0; i < ncalls; i++)
			if (calls[i].comm == item->comm && is_in(&calls[i], stream) &&
			    tti_is_transfer(&calls[i]) != (bool)collectives)
				item->args[item->nargs++] = tti_args_take(&calls[i].args);
}

/* The batch of one stream; NULL: out of memory. */
static struct batch *make_batch(const struct tti_queued_call *calls, size_t ncalls,
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
		if (is_in(&calls[i], stream)) {
			struct tti_call_item *item = item_of(batch, calls[i].comm);

			item->stream = calls[i].stream;
			item->nargs++;
			item->ntransfers += tti_is_transfer(&calls[i]);
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

/* Free a batch that could not be queued. */
static void drop_batch(struct batch *batch)
{
	for (int i = 0; i < batch->n; i++)
		tti_sequence_untake(batch->items[i].comm);
	free_batch(batch);
}

/* Whether a batch is for kernels: then all its ranks have devices. */
static tutti_status find_place(const struct tti_queued_call *calls, size_t ncalls,
			       tutti_stream_t stream, bool *is_launched)
{
	size_t n = 0, ndevices = 0;

	*is_launched = false;
	if (!stream || !tti_stream_is_cuda(stream))
		return TUTTI_OK;
	for (size_t i = 0; i < ncalls; i++)
		if (calls[i].stream == stream) {
			n++;
			ndevices += calls[i].comm->device != NULL;
		}
	*is_launched = ndevices > 0;
	return ndevices == 0 || ndevices == n
		       ? TUTTI_OK
		       : tti_fail(
				 TUTTI_EUNSUPPORTED,
				 "a group has calls of %zu ranks with a device and of %zu without "
				 "one on one stream of CUDA, where kernels and the host would wait "
				 "for each other: put the second on another stream",
				 ndevices, n - ndevices);
}

static tutti_status launch_batch(struct batch *batch)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < batch->n && st == TUTTI_OK; i++) {
		struct tti_call_item *item = &batch->items[i];

		st = tti_stream_launch(item->stream, &item->to, &item->told);
		if (st == TUTTI_OK)
			st = tti_flight_check_stream(item->comm, &item->to);
	}
	if (st != TUTTI_OK) {
		drop_batch(batch);
		return st;
	}
	st = tti_batch_launch(batch->items, batch->n);
	free_batch(batch);
	return st;
}

bool tti_is_launched(const struct tti_queued_call *call)
{
	return call->stream && tti_stream_is_cuda(call->stream) && call->comm->device;
}

tutti_status tti_submit_launches(const struct tti_queued_call *calls, size_t ncalls)
{
	struct batch *batch = make_batch(calls, ncalls, EACH);

	return batch ? launch_batch(batch)
		     : tti_fail(TUTTI_ENOMEM, "group of %zu calls: out of memory", ncalls);
}

tutti_status tti_submit_batch(const struct tti_queued_call *calls, size_t ncalls,
			      tutti_stream_t stream)
{
	struct batch *batch;
	bool is_launched;
	tutti_status st;

	TTI_TRY(find_place(calls, ncalls, stream, &is_launched));
	for (size_t i = 0; i < ncalls && !stream; i++)
		if (!calls[i].stream)
			TTI_TRY(tti_sequence_may_wait(calls[i].comm));
	batch = make_batch(calls, ncalls, stream);
	if (!batch)
		return tti_fail(TUTTI_ENOMEM, "group of %zu calls: out of memory", ncalls);
	if (!stream)
		return run_batch(&batch->item);
	if (is_launched)
		return launch_batch(batch);
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

/* A call whose arguments are right. */
static tutti_status place(const struct tti_queued_call *call)
{
	struct tti_comm *comm = call->comm;
	const struct tti_args *args = &call->args;

	if (tti_group_is_open())
		return tti_group_add_call(call);
	if (args->coll == TUTTI_SEND_RECV && args->root == comm->rank)
		return tti_fail(TUTTI_EUSAGE,
				"a send to and a receive from the own rank %d need each other: put "
				"both into one tutti_group_start/end",
				comm->rank);
	if (!call->stream)
		return run_now(comm, args);
	return tti_submit_batch(call, 1, call->stream);
}

/* Sides are copied, as the call may be queued; counts only if the user may free them before it
 * runs. */
static tutti_status submit(struct tti_queued_call *call)
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

/* Run a kept call now: its arguments are right, and all calls before it are done. */
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
	struct tti_queued_call call = {
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

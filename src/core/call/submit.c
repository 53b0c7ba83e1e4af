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

/* Calls are sorted into batches: one of all calls that are launched, and one for each other stream (the
 * NULL stream is run by the caller). A batch has one item per communicator; in each stream of an item
 * sends and receives come before collectives. */

/* -- Batches ---------------------------------------------------------------------- */

/* In place of a stream: all those in which kernels are launched. */
static char each;
#define EACH ((tutti_stream_t)(void *)&each)

static bool is_in(const struct tti_queued_call *call, tutti_stream_t stream)
{
	return stream == EACH ? call->is_launched : call->stream == stream;
}

/* The first call of the group that is on the same stream. */
static size_t order_of(const struct tti_queued_call *calls, size_t i)
{
	size_t first = 0;

	while (calls[first].stream != calls[i].stream)
		first++;
	return first;
}

/* One allocation: items, their calls and these calls' places. */
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

/* Copy the calls of one communicator on one stream, transfers first: a batch outlives the group. */
static void add_calls(struct tti_call_item *item, const struct tti_queued_call *calls,
		      size_t ncalls, size_t first, struct tti_call_place *places)
{
	for (int collectives = 0; collectives < 2; collectives++)
		for (size_t i = first; i < ncalls; i++)
			if (calls[i].comm == item->comm && calls[i].stream == calls[first].stream &&
			    tti_is_transfer(&calls[i]) != (bool)collectives) {
				places[item->nargs].stream = calls[i].stream;
				places[item->nargs].order = first;
				item->args[item->nargs++] = tti_args_take(&calls[i].args);
			}
}

/* The batch of one stream, or EACH; NULL: out of memory. */
static struct batch *make_batch(const struct tti_queued_call *calls, size_t ncalls,
				tutti_stream_t stream)
{
	struct tti_call_place *places;
	struct tti_args *next_args;
	struct batch *batch =
		tti_zalloc(sizeof(*batch) +
			   ncalls * (sizeof(*batch->items) + sizeof(*next_args) + sizeof(*places)));

	_Static_assert(_Alignof(struct tti_args) == _Alignof(struct tti_call_item), "one block");
	if (!batch)
		return NULL;
	next_args = (struct tti_args *)(void *)(batch->items + ncalls);
	places = (struct tti_call_place *)(void *)(next_args + ncalls);
	/* In the order of their collectives, which all ranks have alike: transfers of one may be another's. */
	for (int transfers = 0; transfers < 2; transfers++)
		for (size_t i = 0; i < ncalls; i++)
			if (is_in(&calls[i], stream) &&
			    tti_is_transfer(&calls[i]) == (bool)transfers)
				item_of(batch, calls[i].comm)->nargs++;
	for (int i = 0; i < batch->n; i++) {
		struct tti_call_item *item = &batch->items[i];

		const int nargs = item->nargs;

		item->args = next_args;
		item->place = places;
		item->nargs = 0;
		for (size_t k = 0; k < ncalls && item->nargs < nargs; k++)
			if (is_in(&calls[k], stream) && order_of(calls, k) == k)
				add_calls(item, calls, ncalls, k, places);
		next_args += nargs;
		places += nargs;
		item->seqno = tti_sequence_take(item->comm);
	}
	return batch;
}

static tutti_status run_batch(struct tti_stream_item *item)
{
	struct batch *batch = (struct batch *)item;
	tutti_status st;

	for (int i = 0; i < batch->n; i++)
		tti_stream_item_check(item, batch->items[i].comm);
	st = tti_batch_run(batch->items, batch->n);
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

tutti_status tti_submit_place(struct tti_queued_call *calls, size_t ncalls)
{
	bool by_host = false;

	for (size_t i = 0; i < ncalls; i++)
		by_host |= calls[i].comm->device &&
			   !tti_call_is_on_device(calls[i].comm, &calls[i].args);
	for (size_t i = 0; i < ncalls; i++)
		calls[i].is_launched = !by_host && calls[i].stream && calls[i].comm->device &&
				       tti_stream_is_cuda(calls[i].stream);
	for (size_t i = 0; i < ncalls; i++)
		for (size_t k = 0; k < ncalls && calls[i].is_launched; k++)
			if (calls[k].stream == calls[i].stream && !calls[k].comm->device)
				return tti_fail(
					TUTTI_EUNSUPPORTED,
					"a group has calls of a rank with a device (%d) and "
					"of one without (%d) on one stream of CUDA, where "
					"kernels and the host would wait for each other: "
					"put the second on another stream",
					calls[i].comm->rank, calls[k].comm->rank);
	return TUTTI_OK;
}

/* Whether kernels of all calls of an item can be launched in its streams. */
static tutti_status check_streams(const struct tti_call_item *item)
{
	for (int k = 0; k < item->nargs; k++) {
		const tutti_stream_t stream = item->place[k].stream;
		struct tti_flight_stream to;
		struct tti_flight_told told;

		if (k > 0 && stream == item->place[k - 1].stream)
			continue;
		TTI_TRY(tti_stream_launch(stream, &to, &told));
		TTI_TRY(tti_flight_check_stream(item->comm, &to));
	}
	return TUTTI_OK;
}

tutti_status tti_submit_launches(const struct tti_queued_call *calls, size_t ncalls)
{
	struct batch *batch = make_batch(calls, ncalls, EACH);
	tutti_status st = TUTTI_OK;

	if (!batch)
		return tti_fail(TUTTI_ENOMEM, "group of %zu calls: out of memory", ncalls);
	for (int i = 0; i < batch->n && st == TUTTI_OK; i++)
		st = check_streams(&batch->items[i]);
	if (st != TUTTI_OK) {
		drop_batch(batch);
		return st;
	}
	st = tti_batch_launch(batch->items, batch->n);
	free_batch(batch);
	return st;
}

tutti_status tti_submit_batch(const struct tti_queued_call *calls, size_t ncalls,
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

/* A call whose arguments are right. */
static tutti_status place(struct tti_queued_call *call)
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
	TTI_TRY(tti_submit_place(call, 1));
	return call->is_launched ? tti_submit_launches(call, 1)
				 : tti_submit_batch(call, 1, call->stream);
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

	tti_sequence_take_turn(comm);
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/batch.h"

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/handoff/handoff.h"
#include "core/handoff/handoff_plan.h"
#include "core/sequence.h"
#include "core/stall.h"
#include "gpu/cuda_stream.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

static int rounds_of(const struct tti_call_item *item)
{
	return item->nargs - item->ntransfers + (item->ntransfers > 0);
}

/* Handoffs are planned by calls of the host, whose turn has to have come. */
static void plan_handoffs(struct tti_call_item *items, int n, bool launches)
{
	for (int i = 0; launches && i < n; i++) {
		if (!tti_handoff_has_calls(&items[i]))
			continue;
		tti_call_await_turn(&items[i]);
		/* Sources that are compared are what the stream is about to write. */
		if (tti_params()->check)
			items[i].status =
				tti_gpu_stream_wait(items[i].comm->device->gpu, items[i].to.cuda);
	}
	tti_handoffs_plan(items, n);
}

/* The k-th call of each communicator, all of them side by side: the k-th of one
 * never waits for a later one of another, on any rank. */
static void run_round(struct tti_call_item *items, int n, int k, struct tti_call_room *room,
		      bool launches)
{
	bool has_handoff = false;

	for (int i = 0; i < n; i++) {
		struct tti_call_item *item = &items[i];
		const bool has_transfers = item->ntransfers > 0;

		item->nnow = k >= rounds_of(item)      ? 0
			     : k == 0 && has_transfers ? item->ntransfers
						       : 1;
		if (item->nnow > 0)
			item->now = &item->args[k == 0 ? 0 : item->ntransfers + k - has_transfers];
		has_handoff |= item->nnow > 0 && item->now->coll == TUTTI_HANDOFF;
	}
	if (has_handoff)
		plan_handoffs(items, n, launches);
	if (launches)
		tti_call_launch_all(items, n, room);
	else
		tti_call_run_all(items, n, room);
}

static tutti_status no_room(const struct tti_call_item *item, int n)
{
	const tutti_status st = tti_fail(TUTTI_ENOMEM, "group of %d: out of memory", n);

	if (item->landing)
		return tti_stall_settle(item->comm, st, -1);
	return item->nargs > 0 ? tti_call_fail_alone(item->comm, item->args, st) : st;
}

/* A group of one communicator, as most are, needs no memory. */
static void run_rounds(struct tti_call_item *items, int n, bool launches)
{
	struct tti_call_room *room = n == 1 ? NULL : tti_call_room_create(n);
	int most = 0;

	for (int i = 0; i < n; i++) {
		if (n > 1 && !room)
			items[i].status = no_room(&items[i], n);
		else if (rounds_of(&items[i]) > most)
			most = rounds_of(&items[i]);
	}
	for (int k = 0; k < most; k++)
		run_round(items, n, k, room, launches);
	tti_free(room);
}

tutti_status tti_batch_run(struct tti_call_item *items, int n)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_sequence_wait(items[i].comm, items[i].seqno);
	run_rounds(items, n, false);
	for (int i = 0; i < n; i++) {
		if (st == TUTTI_OK)
			st = items[i].status;
		if (items[i].status != TUTTI_OK)
			tti_comm_note(items[i].comm, items[i].status);
		tti_sequence_done(items[i].comm);
	}
	return st;
}

/* Its turn has come, and what a launch needs is there. */
static void prepare_launch(struct tti_call_item *item)
{
	item->landing = tti_zalloc(sizeof(*item->landing));
	item->status = item->landing ? tti_flights_prepare(item->comm)
				     : tti_fail(TUTTI_ENOMEM, "a call in a stream: out of memory");
	if (item->status == TUTTI_OK)
		tti_sequence_wait_launched(item->comm, item->seqno);
}

/* The call is done when all of it is; or it never began. */
static void count_launch(struct tti_call_item *item)
{
	if (item->status != TUTTI_OK)
		tti_comm_note(item->comm, item->status);
	if (item->nlaunched > 0) {
		tti_sequence_launched(item->comm, item->seqno);
		tti_flights_count(item->comm, item->landing);
	} else {
		tti_free(item->landing);
		tti_sequence_untake(item->comm);
	}
	item->landing = NULL;
}

tutti_status tti_batch_launch(struct tti_call_item *items, int n)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		prepare_launch(&items[i]);
	run_rounds(items, n, true);
	for (int i = 0; i < n; i++) {
		if (st == TUTTI_OK)
			st = items[i].status;
		count_launch(&items[i]);
	}
	return st;
}

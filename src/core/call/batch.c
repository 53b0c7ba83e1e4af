/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/batch.h"

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/call/staged.h"
#include "core/call/stream.h"
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

static void run_on_host(struct tti_call_item *items, int n, struct tti_call_room *room)
{
	for (int i = 0; i < n; i++) {
		struct tti_call_item *item = &items[i];

		item->staged = NULL;
		if (item->nnow == 0 || item->status != TUTTI_OK)
			continue;
		item->status = tti_staged_open(item->comm, &item->now, &item->staged);
		if (item->status != TUTTI_OK)
			item->status = tti_call_fail_alone(item->comm, item->now, item->status);
	}
	tti_call_run_all(items, n, room);
	for (int i = 0; i < n; i++)
		items[i].status = tti_staged_close(items[i].staged, items[i].status);
}

/* All items that have something to run now. */
static void run_now(struct tti_call_item *items, int n, struct tti_call_room *room, bool launches)
{
	bool has_handoff = false;

	for (int i = 0; i < n; i++) {
		struct tti_call_item *item = &items[i];
		const int at = item->nbegun;

		if (item->nnow == 0)
			continue;
		item->now = &item->args[at];
		item->nbegun += item->nnow;
		has_handoff |= item->now->coll == TUTTI_HANDOFF;
		if (launches && item->place && item->status == TUTTI_OK)
			item->status =
				tti_stream_launch(item->place[at].stream, &item->to, &item->told);
	}
	if (has_handoff)
		plan_handoffs(items, n, launches);
	if (launches)
		tti_call_launch_all(items, n, room);
	else
		run_on_host(items, n, room);
}

/* The order of the stream of an item's next transfers; SIZE_MAX: a collective is next, or nothing. */
static size_t next_transfers(const struct tti_call_item *item)
{
	if (item->nbegun == item->nargs || item->args[item->nbegun].coll != TUTTI_SEND_RECV)
		return SIZE_MAX;
	return item->place ? item->place[item->nbegun].order : 0;
}

/* How many of an item's next calls are transfers; `order`: of that stream, SIZE_MAX: of any. */
static int count_transfers(const struct tti_call_item *item, size_t order)
{
	int n = 0;

	for (int k = item->nbegun; k < item->nargs; k++, n++)
		if (item->args[k].coll != TUTTI_SEND_RECV ||
		    (order != SIZE_MAX && item->place && item->place[k].order != order))
			break;
	return n;
}

/* Peers of an item's transfers, each once, if there are not lanes to all of them. */
static tutti_status find_need(const struct tti_call_item *item, struct tti_device_need *out)
{
	const struct tti_device *device = item->comm->device;
	int32_t *peers;
	int n = 0;

	for (int i = 0; i < item->nnow; i++) {
		const int32_t peer = item->now[i].root;

		n += peer != device->rank && !tti_device_is_connected(device, &peer, 1);
	}
	if (n == 0)
		return TUTTI_OK;
	peers = tti_calloc((size_t)n, sizeof(*peers));
	if (!peers)
		return tti_fail(TUTTI_ENOMEM, "lanes of %d transfers: out of memory", item->nnow);
	*out = (struct tti_device_need){ .comm = item->comm, .args = item->now, .peers = peers };
	for (int i = 0; i < item->nnow; i++) {
		const int32_t peer = item->now[i].root;
		int k = 0;

		if (peer == device->rank || tti_device_is_connected(device, &peer, 1))
			continue;
		while (k < out->npeers && peers[k] != peer)
			k++;
		peers[k] = peer;
		out->npeers += k == out->npeers;
	}
	return TUTTI_OK;
}

/* Without lanes for all of them transfers would wait for each other. */
static void fail_all(struct tti_call_item *items, int n)
{
	for (int i = 0; i < n; i++)
		if (items[i].status == TUTTI_OK && items[i].nnow > 0)
			items[i].status = tti_stall_settle(
				items[i].comm,
				tti_fail(TUTTI_ENOMEM, "lanes of a group of %d: out of memory", n),
				-1);
}

static void connect_lanes(struct tti_call_item *items, int n)
{
	struct tti_device_need *needs = tti_calloc((size_t)n, sizeof(*needs));
	int nneeds = 0;

	if (!needs) {
		fail_all(items, n);
		return;
	}
	for (int i = 0; i < n; i++) {
		struct tti_device_need *need = &needs[nneeds];

		if (items[i].status != TUTTI_OK || items[i].nnow == 0)
			continue;
		items[i].status = find_need(&items[i], need);
		if (items[i].status != TUTTI_OK)
			items[i].status = tti_stall_settle(items[i].comm, items[i].status, -1);
		else if (need->npeers > 0) {
			tti_call_await_turn(&items[i]);
			nneeds++;
		}
	}
	if (nneeds > 0)
		tti_device_connect(needs, nneeds);
	for (int i = 0, k = 0; i < n && k < nneeds; i++)
		if (items[i].comm == needs[k].comm)
			items[i].status = needs[k++].status;
	for (int k = 0; k < nneeds; k++)
		tti_free((void *)needs[k].peers);
	tti_free(needs);
}

/* All transfers that come next, stream by stream; false: there are none. Lanes for those of all
 * streams are there first: another rank of this thread may have them on other streams. */
static bool run_transfers(struct tti_call_item *items, int n, struct tti_call_room *room,
			  bool launches)
{
	bool any = false;

	for (;; any = true) {
		size_t order = SIZE_MAX;

		for (int i = 0; i < n; i++) {
			items[i].nnow = count_transfers(&items[i], SIZE_MAX);
			items[i].now = &items[i].args[items[i].nbegun];
			if (next_transfers(&items[i]) < order)
				order = next_transfers(&items[i]);
		}
		if (order == SIZE_MAX)
			return any;
		if (launches && !any)
			connect_lanes(items, n);
		for (int i = 0; i < n; i++)
			items[i].nnow = next_transfers(&items[i]) == order
						? count_transfers(&items[i], order)
						: 0;
		run_now(items, n, room, launches);
	}
}

/* The next collective of each communicator, which all transfers before it have come before; false:
 * there is none. */
static bool run_collectives(struct tti_call_item *items, int n, struct tti_call_room *room,
			    bool launches)
{
	bool any = false;

	for (int i = 0; i < n; i++) {
		items[i].nnow = items[i].nbegun < items[i].nargs;
		any |= items[i].nnow > 0;
	}
	if (any)
		run_now(items, n, room, launches);
	return any;
}

static tutti_status no_room(const struct tti_call_item *item, int n)
{
	const tutti_status st = tti_fail(TUTTI_ENOMEM, "group of %d: out of memory", n);

	if (item->landing)
		return tti_stall_settle(item->comm, st, -1);
	return item->nargs > 0 ? tti_call_fail_alone(item->comm, item->args, st) : st;
}

/* Communicators run side by side: no call waits for one that comes later here, on any rank, since as
 * many collectives are before it. A group of one communicator, as most are, needs no memory. */
static void run_rounds(struct tti_call_item *items, int n, bool launches)
{
	struct tti_call_room *room = n == 1 ? NULL : tti_call_room_create(n);
	bool more = true;

	for (int i = 0; i < n; i++)
		if (n > 1 && !room)
			items[i].status = no_room(&items[i], n);
	while (more) {
		more = run_transfers(items, n, room, launches);
		more |= run_collectives(items, n, room, launches);
	}
	tti_free(room);
}

tutti_status tti_batch_run(struct tti_call_item *items, int n)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_sequence_turn(items[i].comm, items[i].seqno);
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

/* Its turn has come, and what a launch needs is there. A call before it that the host runs in a stream uses what
 * belongs to the turn. */
static void prepare_launch(struct tti_call_item *item)
{
	tti_sequence_wait_launched(item->comm, item->seqno);
	item->landing = tti_zalloc(sizeof(*item->landing));
	item->status = item->landing ? tti_flights_prepare(item->comm)
				     : tti_fail(TUTTI_ENOMEM, "a call in a stream: out of memory");
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

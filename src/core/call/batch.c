/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/batch.h"

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm_error.h"
#include "core/handoff/handoff.h"
#include "core/handoff/handoff_plan.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/mem.h"

static int rounds_of(const struct tti_call_item *item)
{
	return item->nargs - item->ntransfers + (item->ntransfers > 0);
}

/* The k-th call of each communicator, all of them side by side: the k-th of one
 * never waits for a later one of another, on any rank. */
static void run_round(struct tti_call_item *items, int n, int k, struct tti_call_room *room)
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
		tti_handoffs_plan(items, n);
	tti_call_run_all(items, n, room);
}

static tutti_status no_room(const struct tti_call_item *item, int n)
{
	const tutti_status st = tti_fail(TUTTI_ENOMEM, "group of %d: out of memory", n);

	return item->nargs > 0 ? tti_call_fail_alone(item->comm, item->args, st) : st;
}

/* A group of one communicator, as most are, needs no memory. */
static void run_rounds(struct tti_call_item *items, int n)
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
		run_round(items, n, k, room);
	tti_free(room);
}

tutti_status tti_batch_run(struct tti_call_item *items, int n)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < n; i++)
		tti_sequence_wait(items[i].comm, items[i].seqno);
	run_rounds(items, n);
	for (int i = 0; i < n; i++) {
		if (st == TUTTI_OK)
			st = items[i].status;
		if (items[i].status != TUTTI_OK)
			tti_comm_note(items[i].comm, items[i].status);
		tti_sequence_done(items[i].comm);
	}
	return st;
}

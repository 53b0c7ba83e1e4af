/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/connect.h"
#include "engine/job.h"

/* Point-to-point batches: each direction of each peer is a list worked off in
 * order, all lists side by side. A transfer is cut into messages of a slot each;
 * an empty one is one empty message, so that it orders and is matched too. */

static void begin(struct tti_job *job, struct tti_engine *engine, struct tti_transfer *list,
		  int32_t n, int32_t *heads)
{
	*job = (struct tti_job){ .engine = engine,
				 .kind = TTI_JOB_TRANSFERS,
				 .status = n ? TUTTI_AGAIN : TUTTI_OK,
				 .mismatch_peer = -1,
				 .waiting_on = -1 };
	job->transfers.list = list;
	job->transfers.heads = heads;
	for (int32_t i = 0; i < n; i++) {
		list[i].done = 0;
		list[i].next = -1;
	}
}

void tti_job_transfers_apart(struct tti_job *job, struct tti_engine *engine,
			     struct tti_transfer *list, int32_t n, int32_t *heads)
{
	begin(job, engine, list, n, heads);
	job->transfers.nheads = n;
	for (int32_t i = 0; i < n; i++)
		heads[i] = i;
}

void tti_job_transfers(struct tti_job *job, struct tti_engine *engine, struct tti_transfer *list,
		       int32_t n, int32_t *heads)
{
	begin(job, engine, list, n, heads);
	for (int32_t i = 0; i < n; i++) {
		int32_t head = 0;

		while (head < job->transfers.nheads &&
		       (list[heads[head]].peer != list[i].peer ||
			list[heads[head]].is_send != list[i].is_send))
			head++;
		if (head == job->transfers.nheads) {
			heads[job->transfers.nheads++] = i;
			list[i].last = i;
			continue;
		}
		list[list[heads[head]].last].next = i;
		list[heads[head]].last = i;
	}
}

static size_t message_bytes(const struct tti_transfer *transfer, size_t slot_bytes)
{
	const size_t left = transfer->nbytes - transfer->done;
	const size_t most = transfer->message_bytes ? transfer->message_bytes : slot_bytes;

	return left < most ? left : most;
}

/* Whether `nbytes` more may be written. */
static bool is_free(const struct tti_transfer *transfer, size_t nbytes)
{
	const struct tti_transfer *send = transfer->after;

	return !send || send->done == send->nbytes || send->done >= transfer->done + nbytes;
}

static bool send_one(struct tti_transfer *transfer, struct tti_link *link, size_t slot_bytes)
{
	const size_t nbytes = message_bytes(transfer, slot_bytes);
	/* A message of nothing may be sent from nowhere. */
	const char *from = nbytes > 0 ? transfer->data + transfer->done : transfer->data;
	void *room;

	if (link->ops->send && link->ops->send(link, from, nbytes, transfer->tag)) {
		transfer->done += nbytes;
		return true;
	}
	room = link->ops->reserve(link, nbytes);
	if (!room)
		return false;
	if (nbytes > 0)
		memcpy(room, from, nbytes);
	link->ops->commit(link, nbytes, transfer->tag);
	transfer->done += nbytes;
	return true;
}

static bool recv_one(struct tti_job *job, struct tti_transfer *transfer, struct tti_link *link,
		     size_t slot_bytes)
{
	const size_t want = message_bytes(transfer, slot_bytes);
	uint64_t tag;
	size_t nbytes;
	const void *data = is_free(transfer, want) ? link->ops->peek(link, &nbytes, &tag) : NULL;

	if (!data)
		return false;
	if (tag != transfer->tag || nbytes != want) {
		job->mismatch_peer = link->peer;
		job->status = TUTTI_EMISMATCH;
		return false;
	}
	if (nbytes > 0)
		memcpy(transfer->data + transfer->done, data, nbytes);
	link->ops->release(link);
	transfer->done += nbytes;
	return true;
}

/* Move messages of one direction until it blocks or ends; *head is -1 at its end. */
static bool poll_direction(struct tti_job *job, int32_t *head)
{
	bool moved = false;

	while (*head >= 0 && job->status == TUTTI_AGAIN) {
		struct tti_transfer *transfer = &job->transfers.list[*head];
		const size_t slot_bytes = tti_engine_port(job->engine, transfer->peer)->slot_bytes;
		const tutti_status st = tti_engine_connect(job->engine, transfer->peer);
		struct tti_link *link = job->engine->links[transfer->peer];

		if (st < 0)
			job->status = st;
		if (st != TUTTI_OK)
			break;
		if (!(transfer->is_send ? send_one(transfer, link, slot_bytes)
					: recv_one(job, transfer, link, slot_bytes)))
			break;
		moved = true;
		if (transfer->done == transfer->nbytes)
			*head = transfer->next;
	}
	return moved;
}

bool tti_transfers_poll(struct tti_job *job)
{
	bool moved = false;
	bool busy = false;

	for (int32_t i = 0; i < job->transfers.nheads; i++) {
		moved |= poll_direction(job, &job->transfers.heads[i]);
		busy |= job->transfers.heads[i] >= 0;
	}
	if (!busy && job->status == TUTTI_AGAIN)
		job->status = TUTTI_OK;
	return moved;
}

int tti_transfers_blame(const struct tti_job *job)
{
	int blamed = -1;

	for (int32_t i = 0; i < job->transfers.nheads; i++) {
		const int32_t head = job->transfers.heads[i];

		if (head < 0)
			continue;
		blamed = job->transfers.list[head].peer;
		if (!job->transfers.list[head].is_send)
			break;
	}
	return blamed;
}

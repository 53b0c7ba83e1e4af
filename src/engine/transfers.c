/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/connect.h"
#include "engine/job.h"
#include "reduce/reduce.h"
#include "util/hash.h"
#include "util/tsan.h"

/* Point-to-point batches: each direction of each peer is a list worked off in
 * order, all lists side by side. A transfer is cut into messages, as both sides
 * compute from its length; an empty one is one empty message, so that it orders and is
 * matched too.
 *
 * Data that the peer can address is one message that names it. The receiver copies it while it
 * holds the message; once that is released, the send is done. So only the sender need know, no
 * message goes the other way, and every byte is moved once. */

/* Of a poll: other lists and jobs have something to do, too. */
#define POLL_BYTES  ((size_t)1 << 20)
/* Copied past the caches. */
#define LARGE_BYTES ((size_t)4 << 20)

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
		list[i].there = NULL;
		list[i].is_offered = false;
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

static size_t message_bytes(const struct tti_engine *engine, const struct tti_transfer *transfer)
{
	const size_t left = transfer->nbytes - transfer->done;
	const size_t most = transfer->message_bytes
				    ? transfer->message_bytes
				    : tti_transfer_piece(engine, transfer->peer, transfer->nbytes);

	return left < most ? left : most;
}

/* Whether `nbytes` more may be written. */
static bool is_free(const struct tti_transfer *transfer, size_t nbytes)
{
	const struct tti_transfer *send = transfer->after;

	return !send || send->done == send->nbytes || send->done >= transfer->done + nbytes;
}

/* -- Where the data lies ----------------------------------------------------- */

/* Offers have a tag of their own, and are too long to travel inline: those are not said to be
 * released at once. */
static uint64_t offer_tag(const struct tti_transfer *transfer)
{
	return tti_hash_mix(transfer->tag + UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

static size_t offer_bytes(const struct tti_port *port)
{
	const size_t least = sizeof(struct tti_memory_name);

	return port->inline_bytes < least ? least : port->inline_bytes + 1;
}

/* Say where the data is, then wait until the peer has it. */
static bool offer(struct tti_transfer *transfer, struct tti_link *link, const struct tti_port *port)
{
	const size_t nbytes = offer_bytes(port);
	char *room;

	if (transfer->is_offered) {
		if (!link->ops->all_released(link))
			return false;
		tti_tsan_take((uint32_t)link->peer, (uint32_t)port->rank);
		transfer->done = transfer->nbytes;
		return true;
	}
	room = link->ops->reserve(link, nbytes);
	if (!room)
		return false;
	memset(room, 0, nbytes);
	memcpy(room, &transfer->name, sizeof(transfer->name));
	tti_tsan_give((uint32_t)port->rank, (uint32_t)link->peer);
	link->ops->commit(link, nbytes, offer_tag(transfer));
	transfer->is_offered = true;
	return true;
}

static bool is_offer(const struct tti_transfer *transfer, const struct tti_port *port,
		     size_t nbytes, uint64_t tag)
{
	return port->transport->memory && transfer->done == 0 && transfer->nbytes > 0 &&
	       nbytes == offer_bytes(port) && tag == offer_tag(transfer);
}

/* The message is kept until all is copied. */
static bool take_offer(struct tti_job *job, struct tti_transfer *transfer, struct tti_port *port,
		       const void *message)
{
	struct tti_memory_name name;
	struct tti_remote there;
	tutti_status st;

	memcpy(&name, message, sizeof(name));
	tti_tsan_take((uint32_t)transfer->peer, (uint32_t)port->rank);
	st = port->transport->memory->find(port, transfer->peer, &name, transfer->nbytes, &there);
	if (st != TUTTI_OK)
		job->status = st;
	transfer->there = there.mapped;
	return st == TUTTI_OK;
}

static bool copy_some(struct tti_transfer *transfer, struct tti_link *link,
		      const struct tti_port *port)
{
	const size_t left = transfer->nbytes - transfer->done;
	const size_t nbytes = left < POLL_BYTES ? left : POLL_BYTES;

	if (!is_free(transfer, nbytes))
		return false;
	tti_copy(transfer->data + transfer->done, transfer->there + transfer->done, nbytes,
		 transfer->nbytes >= LARGE_BYTES && !transfer->after);
	transfer->done += nbytes;
	if (transfer->done == transfer->nbytes) {
		tti_tsan_give((uint32_t)port->rank, (uint32_t)link->peer);
		link->ops->release(link);
	}
	return true;
}

/* -- By messages --------------------------------------------------------------- */

static bool send_one(const struct tti_engine *engine, struct tti_transfer *transfer,
		     struct tti_link *link)
{
	const size_t nbytes = message_bytes(engine, transfer);
	/* Those that a program sends to others are whole. */
	const size_t total = transfer->message_bytes ? nbytes : transfer->nbytes;
	/* A message of nothing may be sent from nowhere. */
	const char *from = nbytes > 0 ? transfer->data + transfer->done : transfer->data;

	if (!tti_link_send_piece(link, tti_engine_port(engine, link->peer), from, nbytes, total,
				 transfer->tag))
		return false;
	transfer->done += nbytes;
	return true;
}

static bool recv_one(struct tti_job *job, struct tti_transfer *transfer, struct tti_link *link,
		     struct tti_port *port)
{
	const size_t want = message_bytes(job->engine, transfer);
	uint64_t tag;
	size_t nbytes;
	const void *data = is_free(transfer, want) ? link->ops->peek(link, &nbytes, &tag) : NULL;

	if (!data)
		return false;
	if (is_offer(transfer, port, nbytes, tag))
		return take_offer(job, transfer, port, data);
	if (tag != transfer->tag || nbytes != want) {
		job->mismatch_peer = link->peer;
		job->status = TUTTI_EMISMATCH;
		return false;
	}
	if (nbytes > 0)
		tti_copy(transfer->data + transfer->done, data, nbytes,
			 transfer->nbytes >= LARGE_BYTES && !transfer->after);
	link->ops->release(link);
	transfer->done += nbytes;
	return true;
}

static bool move_one(struct tti_job *job, struct tti_transfer *transfer, struct tti_link *link,
		     struct tti_port *port)
{
	if (!transfer->is_send)
		return transfer->there ? copy_some(transfer, link, port)
				       : recv_one(job, transfer, link, port);
	return transfer->name.address ? offer(transfer, link, port)
				      : send_one(job->engine, transfer, link);
}

/* Move messages of one direction until it blocks or ends, or some of what lies elsewhere;
 * *head is -1 at its end. */
static bool poll_direction(struct tti_job *job, int32_t *head)
{
	bool moved = false, enough = false;

	while (*head >= 0 && job->status == TUTTI_AGAIN && !enough) {
		struct tti_transfer *transfer = &job->transfers.list[*head];
		struct tti_port *port = tti_engine_port(job->engine, transfer->peer);
		const tutti_status st = tti_engine_connect(job->engine, transfer->peer);
		struct tti_link *link = job->engine->links[transfer->peer];

		if (st < 0)
			job->status = st;
		if (st != TUTTI_OK)
			break;
		enough = transfer->there != NULL;
		if (!move_one(job, transfer, link, port))
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

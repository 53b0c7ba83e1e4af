/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: what goes to the links and comes from them. All of it under the channel's lock. */
#include "core/message/message_move.h"

#include <string.h>

#include "core/message/message_request.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

/* Messages to and from each rank in one pump. */
#define MOST 8

#define TAG UINT64_C(0x656761737365746d)

enum kind { EAGER = 1, OFFER, GRANT, DATA, SPENT, LEAVE };

/* The head of each message; a short message fits into a cache line of shared memory with it. */
struct head {
	uint32_t kind;
	int32_t tag;
};

/* The body of all messages but EAGER. number: the reader's own, but in an OFFER the writer's. */
struct body {
	uint64_t number, other, nbytes;
};

/* -- Sending ----------------------------------------------------------------- */

static bool send(struct tutti_channel *channel, int rank, const struct head *head,
		 const struct body *body, const void *data, size_t nbytes)
{
	struct tti_link *link = channel->peers[rank].link;
	const size_t before = sizeof(*head) + (body ? sizeof(*body) : 0);
	uint8_t *room = link->ops->reserve(link, before + nbytes, 0);

	if (!room)
		return false;
	memcpy(room, head, sizeof(*head));
	if (body)
		memcpy(room + sizeof(*head), body, sizeof(*body));
	if (nbytes)
		memcpy(room + before, data, nbytes);
	link->ops->commit(link, before + nbytes, TAG);
	return true;
}

static size_t most_eager(const struct tutti_channel *channel)
{
	const size_t most = channel->own->slot_bytes - sizeof(struct head);

	return most < TTI_EAGER_BYTES ? most : TTI_EAGER_BYTES;
}

static bool is_eager(const struct tutti_channel *channel, const struct tti_message_peer *peer,
		     const struct tti_request *request)
{
	return request->nbytes <= most_eager(channel) &&
	       peer->owes + request->nbytes + TTI_EAGER_COST <= TTI_EAGER_KEPT;
}

/* Whether there is a send that the peer has not heard of, and the peer may keep one more. */
static bool may_announce(const struct tutti_channel *channel, const struct tti_message_peer *peer)
{
	return peer->unsent.first &&
	       (peer->offered < TTI_OFFERS_KEPT || is_eager(channel, peer, peer->unsent.first));
}

/* Tell the peer of the oldest send that it has not heard of. */
static bool announce(struct tutti_channel *channel, int rank)
{
	struct tti_message_peer *peer = &channel->peers[rank];
	struct tti_request *request = peer->unsent.first;
	const bool eager = is_eager(channel, peer, request);
	const struct head head = { eager ? EAGER : OFFER, request->tag };
	const struct body body = { .number = request->id, .nbytes = request->nbytes };

	if (!send(channel, rank, &head, eager ? NULL : &body, request->data,
		  eager ? request->nbytes : 0))
		return false;
	(void)tti_request_pop(&peer->unsent);
	if (eager) {
		peer->owes += request->nbytes + TTI_EAGER_COST;
		tti_request_end(request, TUTTI_OK);
	} else {
		request->state = TTI_REQUEST_OFFERED;
		peer->offered++;
	}
	return true;
}

static bool grant(struct tutti_channel *channel, int rank)
{
	struct tti_message_peer *peer = &channel->peers[rank];
	struct tti_request *request = peer->grants.first;
	const struct head head = { GRANT, 0 };
	const struct body body = { .number = request->other, .other = request->id };

	if (!send(channel, rank, &head, &body, NULL, 0))
		return false;
	(void)tti_request_pop(&peer->grants);
	if (!request->nbytes)
		tti_request_end(request, TUTTI_OK);
	return true;
}

static bool send_data(struct tutti_channel *channel, int rank)
{
	struct tti_message_peer *peer = &channel->peers[rank];
	struct tti_request *request = peer->moving.first;
	const size_t most = channel->own->slot_bytes - sizeof(struct head) - sizeof(struct body);
	const size_t left = request->nbytes - request->moved;
	const size_t nbytes = left < most ? left : most;
	const struct head head = { DATA, 0 };
	const struct body body = { .number = request->other };

	if (!send(channel, rank, &head, &body, request->data + request->moved, nbytes))
		return false;
	request->moved += nbytes;
	if (request->moved == request->nbytes)
		tti_request_end(tti_request_pop(&peer->moving), TUTTI_OK);
	return true;
}

static bool tell_spent(struct tutti_channel *channel, int rank)
{
	struct tti_message_peer *peer = &channel->peers[rank];
	const struct head head = { SPENT, 0 };
	const struct body body = { .nbytes = peer->spent };

	if (!send(channel, rank, &head, &body, NULL, 0))
		return false;
	peer->spent = 0;
	return true;
}

static bool tell_leave(struct tutti_channel *channel, int rank)
{
	const struct head head = { LEAVE, 0 };
	const struct body body = { 0 };

	channel->peers[rank].told_leave = send(channel, rank, &head, &body, NULL, 0);
	return channel->peers[rank].told_leave;
}

/* Send one message to a peer: first those that others wait for. */
static bool send_one(struct tutti_channel *channel, int rank)
{
	const struct tti_message_peer *peer = &channel->peers[rank];

	if (peer->told_leave)
		return false;
	if (peer->grants.first)
		return grant(channel, rank);
	if (peer->spent >= TTI_EAGER_KEPT / 2)
		return tell_spent(channel, rank);
	if (may_announce(channel, peer))
		return announce(channel, rank);
	if (peer->moving.first)
		return send_data(channel, rank);
	return peer->leaves && tell_leave(channel, rank);
}

static bool is_owed(const struct tutti_channel *channel, const struct tti_message_peer *peer)
{
	return !peer->told_leave &&
	       (peer->grants.first || peer->spent >= TTI_EAGER_KEPT / 2 ||
		may_announce(channel, peer) || peer->moving.first || peer->leaves);
}

/* -- Receiving --------------------------------------------------------------- */

/* A receive has found its message: bytes that are here, or an offer. */
static void accept(struct tutti_channel *channel, struct tti_request *request, int source, int tag,
		   size_t nbytes, const uint8_t *bytes, uint64_t offer)
{
	struct tti_message_peer *peer = &channel->peers[source];

	request->peer = source;
	request->tag = tag;
	request->nbytes = nbytes;
	if (!offer) {
		if (nbytes)
			memcpy(request->data, bytes, nbytes);
		peer->spent += nbytes + TTI_EAGER_COST;
		tti_request_end(request, TUTTI_OK);
		return;
	}
	request->state = TTI_REQUEST_MOVES;
	request->other = offer;
	tti_request_push(&peer->grants, request);
}

static void note_arrival(struct tutti_channel *channel)
{
	atomic_fetch_add(&channel->arrivals, 1);
	if (atomic_load(&channel->probers))
		tti_futex_wake(&channel->arrivals, INT32_MAX);
}

static tutti_status keep(struct tutti_channel *channel, int source, int tag, size_t nbytes,
			 const uint8_t *bytes, uint64_t offer)
{
	const size_t here = offer ? 0 : nbytes;
	struct tti_kept *kept = tti_alloc(sizeof(*kept) + here);

	if (!kept)
		return tti_fail(TUTTI_ENOMEM, "a message of %zu bytes: out of memory", nbytes);
	*kept = (struct tti_kept){ .entry = { .source = source, .tag = tag },
				   .offer = offer,
				   .nbytes = nbytes };
	if (here)
		memcpy(kept->bytes, bytes, here);
	tti_match_add(&channel->match.messages, &kept->entry);
	note_arrival(channel);
	return TUTTI_OK;
}

/* Give a message to the oldest receive that takes it. Receives without room for it end, and the
 * next one is tried. */
static tutti_status deliver(struct tutti_channel *channel, int source, int tag, size_t nbytes,
			    const uint8_t *bytes, uint64_t offer)
{
	struct tti_match_entry *entry;

	while ((entry = tti_match_find_receive(&channel->match, source, tag))) {
		struct tti_request *request = (struct tti_request *)entry;

		tti_match_remove(&channel->match.receives, entry);
		if (nbytes <= request->room) {
			accept(channel, request, source, tag, nbytes, bytes, offer);
			return TUTTI_OK;
		}
		request->peer = source;
		request->tag = tag;
		request->nbytes = nbytes;
		tti_request_end(request, TUTTI_EINVAL);
	}
	return keep(channel, source, tag, nbytes, bytes, offer);
}

/* The peer has taken an offer. */
static bool take_grant(struct tutti_channel *channel, int rank, const struct body *body)
{
	struct tti_request *request = tti_request_find(channel, body->number);

	if (!request || !request->is_send || request->peer != rank ||
	    request->state != TTI_REQUEST_OFFERED)
		return false;
	channel->peers[rank].offered--;
	request->other = body->other;
	request->state = TTI_REQUEST_MOVES;
	if (request->nbytes)
		tti_request_push(&channel->peers[rank].moving, request);
	else
		tti_request_end(request, TUTTI_OK);
	return true;
}

static bool take_data(struct tutti_channel *channel, int rank, const struct body *body,
		      const uint8_t *bytes, size_t nbytes)
{
	struct tti_request *request = tti_request_find(channel, body->number);

	if (!request || request->is_send || request->peer != rank ||
	    request->state != TTI_REQUEST_MOVES || nbytes > request->nbytes - request->moved)
		return false;
	memcpy(request->data + request->moved, bytes, nbytes);
	request->moved += nbytes;
	if (request->moved == request->nbytes)
		tti_request_end(request, TUTTI_OK);
	return true;
}

static bool take_spent(struct tti_message_peer *peer, const struct body *body)
{
	if (body->nbytes > peer->owes)
		return false;
	peer->owes -= (size_t)body->nbytes;
	return true;
}

/* TUTTI_EPROTO: it makes no sense. */
static tutti_status take(struct tutti_channel *channel, int rank, const uint8_t *data,
			 size_t nbytes)
{
	struct head head;
	struct body body;
	bool good = false;

	if (nbytes < sizeof(head))
		return TUTTI_EPROTO;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	nbytes -= sizeof(head);
	if (head.kind == EAGER)
		return head.tag < 0 ? TUTTI_EPROTO
				    : deliver(channel, rank, head.tag, nbytes, data, 0);
	if (nbytes < sizeof(body))
		return TUTTI_EPROTO;
	memcpy(&body, data, sizeof(body));
	data += sizeof(body);
	nbytes -= sizeof(body);
	switch (head.kind) {
	case OFFER:
		if (head.tag < 0 || !body.number)
			return TUTTI_EPROTO;
		return deliver(channel, rank, head.tag, (size_t)body.nbytes, NULL, body.number);
	case GRANT:
		good = take_grant(channel, rank, &body);
		break;
	case DATA:
		good = take_data(channel, rank, &body, data, nbytes);
		break;
	case SPENT:
		good = take_spent(&channel->peers[rank], &body);
		break;
	case LEAVE:
		good = true;
		channel->peers[rank].has_left = true;
		note_arrival(channel);
		break;
	default:
		break;
	}
	return good ? TUTTI_OK : TUTTI_EPROTO;
}

static bool receive(struct tutti_channel *channel, int rank)
{
	struct tti_link *link = channel->peers[rank].link;
	struct tti_port *port = channel->own->ports[channel->own->port_of[rank]];
	const uint8_t *data;
	int taken = 0;
	uint64_t tag;
	size_t nbytes;

	/* What follows is for the communicator, not for the channel. */
	while (taken < MOST && !channel->peers[rank].has_left &&
	       (data = link->ops->peek(link, &nbytes, &tag))) {
		tutti_status st;

		st = tag == TAG ? take(channel, rank, data, nbytes) : TUTTI_EPROTO;
		if (st == TUTTI_EPROTO)
			st = tti_fail(st, "rank %d sent to a channel of rank %d what cannot be",
				      rank, channel->own->rank);
		if (st != TUTTI_OK) {
			tti_port_fail(port, st, rank);
			return true;
		}
		link->ops->release(link);
		taken++;
	}
	if (taken == MOST)
		atomic_store(&channel->has_more, true);
	return taken > 0;
}

static bool send_some(struct tutti_channel *channel, int rank)
{
	int sent = 0;

	while (sent < MOST && send_one(channel, rank))
		sent++;
	if (sent == MOST)
		atomic_store(&channel->has_more, true);
	return sent > 0;
}

/* -- What others call --------------------------------------------------------- */

static bool has_failed(const struct tutti_channel *channel)
{
	for (int i = 0; i < channel->own->nports; i++)
		if (channel->own->ports[i]->failure != TUTTI_OK)
			return true;
	return false;
}

bool tti_message_pump(struct tutti_channel *channel)
{
	struct tti_engine *engine = &channel->own->engine;
	bool moved = false;

	atomic_store_explicit(&channel->has_more, false, memory_order_relaxed);
	for (int i = 0; i < engine->nactive && !channel->broken; i++)
		engine->active[i]->transport->progress(engine->active[i]);
	for (int rank = 0; rank < channel->own->n && !channel->broken; rank++) {
		moved |= receive(channel, rank);
		moved |= send_some(channel, rank);
	}
	channel->broken |= has_failed(channel);
	return moved && !channel->broken;
}

bool tti_message_is_busy(const struct tutti_channel *channel)
{
	if (channel->has_more)
		return true;
	for (int i = 0; i < channel->own->nports; i++)
		if (channel->own->ports[i]->unsent > 0)
			return true;
	for (int rank = 0; rank < channel->own->n; rank++)
		if (is_owed(channel, &channel->peers[rank]))
			return true;
	return false;
}

void tti_message_begin_send(struct tutti_channel *channel, struct tti_request *request)
{
	struct tti_message_peer *peer = &channel->peers[request->peer];
	const bool first = !peer->unsent.first;

	tti_request_push(&peer->unsent, request);
	if (first && !channel->broken && may_announce(channel, peer))
		(void)announce(channel, request->peer);
}

tutti_status tti_message_begin_receive(struct tutti_channel *channel, struct tti_request *request)
{
	const int source = request->entry.source, tag = request->entry.tag;
	struct tti_match_entry *entry = tti_match_find_message(&channel->match, source, tag);
	struct tti_kept *kept = (struct tti_kept *)entry;

	if (!entry) {
		tti_match_add(&channel->match.receives, &request->entry);
		return TUTTI_OK;
	}
	request->peer = entry->source;
	request->tag = entry->tag;
	request->nbytes = kept->nbytes;
	if (kept->nbytes > request->room)
		return TUTTI_EINVAL;
	tti_match_remove(&channel->match.messages, entry);
	accept(channel, request, entry->source, entry->tag, kept->nbytes, kept->bytes, kept->offer);
	tti_free(kept);
	return TUTTI_OK;
}

bool tti_message_take_back(struct tutti_channel *channel, struct tti_request *request)
{
	if (request->state != TTI_REQUEST_WAITS)
		return false;
	if (request->is_send)
		tti_request_drop(request);
	else
		tti_match_remove(&channel->match.receives, &request->entry);
	tti_request_end(request, TUTTI_ECANCELED);
	return true;
}

void tti_message_drop_kept(struct tutti_channel *channel)
{
	struct tti_match_entry *entry;

	while ((entry = channel->match.messages.first)) {
		tti_match_remove(&channel->match.messages, entry);
		tti_free(entry);
	}
}

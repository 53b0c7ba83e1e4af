/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/ping/probe.h"

#include <string.h>

#include "engine/connect.h"
#include "engine/wait.h"
#include "util/clock.h"
#include "util/error.h"

tutti_status tti_probe_reach(struct tti_engine *engine, int peer, int64_t deadline_ns,
			     const char **why)
{
	struct tti_port *port = tti_engine_port(engine, peer);
	const bool can_give_up = port->transport->give_up != NULL;
	struct tti_wait wait = { 0 };
	tutti_status st;

	for (;;) {
		tti_engine_progress(engine);
		st = tti_engine_connect(engine, peer);
		/* Not said to wait for the peer: asking one that is not reached what it does
		 * gives no answer, which would be taken for the end of it. */
		if (st == TUTTI_AGAIN && (!can_give_up || tti_now_ns() < deadline_ns))
			st = tti_wait_step(&wait, engine, can_give_up ? -1 : peer, true);
		else if (st == TUTTI_OK || !can_give_up)
			return st;
		else
			break;
		if (st == TUTTI_AGAIN)
			continue;
		if (!can_give_up || port->failure == TUTTI_OK || port->failed_peer != peer)
			return st;
		break;
	}
	port->transport->give_up(port, peer);
	if (port->failure != TUTTI_OK)
		return port->failure;
	*why = port->failure_text;
	return TUTTI_AGAIN;
}

/* -- Single messages ------------------------------------------------------------ */

static struct tti_link *link_of(const struct tti_probe *probe)
{
	return probe->engine->links[probe->peer];
}

tutti_status tti_probe_send(struct tti_probe *probe, const void *data, size_t nbytes)
{
	struct tti_link *link = link_of(probe);
	struct tti_wait wait = { 0 };
	void *room;

	while (!(room = link->ops->reserve(link, nbytes, 0))) {
		const tutti_status st = tti_wait_step(&wait, probe->engine, probe->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(probe->engine);
	}
	memcpy(room, data, nbytes);
	link->ops->commit(link, nbytes, probe->tag);
	return TUTTI_OK;
}

tutti_status tti_probe_recv(struct tti_probe *probe, void *data, size_t nbytes)
{
	struct tti_link *link = link_of(probe);
	struct tti_wait wait = { 0 };
	const void *message;
	uint64_t tag;
	size_t got;

	tti_engine_progress(probe->engine);
	while (!(message = link->ops->peek(link, &got, &tag))) {
		const tutti_status st = tti_wait_step(&wait, probe->engine, probe->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(probe->engine);
	}
	if (tag != probe->tag || got != nbytes) {
		probe->mismatch = true;
		return TUTTI_EMISMATCH;
	}
	memcpy(data, message, nbytes);
	link->ops->release(link);
	return TUTTI_OK;
}

static bool is_flushed(const struct tti_probe *probe)
{
	return tti_engine_port(probe->engine, probe->peer)->unsent == 0;
}

tutti_status tti_probe_flush(struct tti_probe *probe)
{
	struct tti_wait wait = { 0 };

	while (!is_flushed(probe)) {
		const tutti_status st = tti_wait_step(&wait, probe->engine, probe->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(probe->engine);
	}
	return TUTTI_OK;
}

/* -- Flows -------------------------------------------------------------------------- */

/* Messages in a row, before the other direction has its turn. */
#define ROW           4
/* Small at first, so that a slow link has not got more on its way than it can end in
 * time; on a quick one they grow to whole slots within a millisecond. */
#define MESSAGE_FIRST ((size_t)16 << 10)
/* A link has some 8 messages under way. */
#define UNDER_WAY     8

/* Bytes that came in since a moment. */
struct since {
	int64_t at_ns; /* 0: not yet */
	uint64_t nbytes, nmessages;
};

struct flowing {
	struct tti_probe *probe;
	struct tti_flow *flow;
	struct tti_link *link;
	size_t slot_bytes;
	int64_t began_ns;
	/* Sending. */
	size_t out_at, message;
	uint64_t sent;
	bool ended; /* the empty message that ends it was sent */
	/* Receiving. */
	size_t in_at;
	bool was_end;
	struct since first, warm;
	int64_t last_ns;
};

static size_t turn(size_t at, size_t nbytes, size_t slot_bytes, size_t nbuffer)
{
	at += nbytes;
	return at + slot_bytes > nbuffer ? 0 : at;
}

/* As long as what is under way fits the horizon, at the rate of what has arrived. */
static void adapt(struct flowing *fl, int64_t now)
{
	const int64_t took = now - fl->began_ns;
	const uint64_t under_way = UNDER_WAY * fl->message;
	double fits;

	if (took <= 0 || fl->sent <= under_way)
		return;
	fits = (double)(fl->sent - under_way) / (double)took * (double)fl->flow->horizon_ns /
	       UNDER_WAY;
	if (fits >= (double)fl->slot_bytes)
		fl->message = fl->slot_bytes;
	else if (fits > (double)fl->message)
		fl->message = (size_t)fits;
}

static bool send_some(struct flowing *fl)
{
	const struct tti_flow *flow = fl->flow;
	bool moved = false;

	for (int i = 0; i < ROW && !fl->ended; i++) {
		const int64_t now = tti_now_ns();
		const bool over = now - fl->began_ns >= flow->lasts_ns ||
				  (flow->most > 0 && fl->sent >= flow->most);
		size_t nbytes = over ? 0 : fl->message;
		void *room;

		if (flow->most > 0 && nbytes > flow->most - fl->sent)
			nbytes = (size_t)(flow->most - fl->sent);
		room = fl->link->ops->reserve(fl->link, nbytes, 0);
		if (!room)
			break;
		memcpy(room, flow->out + fl->out_at, nbytes);
		fl->link->ops->commit(fl->link, nbytes, fl->probe->tag);
		fl->out_at = turn(fl->out_at, nbytes, fl->slot_bytes, flow->nbuffer);
		fl->sent += nbytes;
		fl->ended = nbytes == 0;
		adapt(fl, now);
		moved = true;
	}
	return moved;
}

static void count(struct since *since, size_t nbytes, int64_t now)
{
	if (since->at_ns) {
		since->nbytes += nbytes;
		since->nmessages++;
	} else {
		since->at_ns = now;
	}
}

/* The first message begins the time; after a quarter of the whole it begins anew. */
static void account(struct flowing *fl, size_t nbytes)
{
	const int64_t now = tti_now_ns();

	count(&fl->first, nbytes, now);
	if (now - fl->first.at_ns >= fl->flow->lasts_ns / 4)
		count(&fl->warm, nbytes, now);
	fl->last_ns = now;
}

static tutti_status take_some(struct flowing *fl, bool *moved)
{
	for (int i = 0; i < ROW && !fl->was_end; i++) {
		uint64_t tag;
		size_t nbytes;
		const void *message = fl->link->ops->peek(fl->link, &nbytes, &tag);

		if (!message)
			break;
		if (tag != fl->probe->tag || nbytes > fl->slot_bytes) {
			fl->probe->mismatch = true;
			return TUTTI_EMISMATCH;
		}
		memcpy(fl->flow->in + fl->in_at, message, nbytes);
		fl->link->ops->release(fl->link);
		fl->in_at = turn(fl->in_at, nbytes, fl->slot_bytes, fl->flow->nbuffer);
		fl->was_end = nbytes == 0;
		if (nbytes > 0)
			account(fl, nbytes);
		*moved = true;
	}
	return TUTTI_OK;
}

static tutti_status flow_on(struct flowing *fl)
{
	const struct tti_flow *flow = fl->flow;
	struct tti_wait wait = { 0 };

	for (;;) {
		bool moved = false;
		tutti_status st;

		tti_engine_progress(fl->probe->engine);
		if (flow->sends)
			moved |= send_some(fl);
		if (flow->receives)
			TTI_TRY(take_some(fl, &moved));
		if ((!flow->sends || (fl->ended && is_flushed(fl->probe))) &&
		    (!flow->receives || fl->was_end))
			return TUTTI_OK;
		if (moved) {
			wait = (struct tti_wait){ 0 };
			continue;
		}
		st = tti_wait_step(&wait, fl->probe->engine, fl->probe->peer, true);
		if (st != TUTTI_AGAIN)
			return st;
	}
}

tutti_status tti_probe_flow(struct tti_probe *probe, struct tti_flow *flow)
{
	struct flowing fl = {
		.probe = probe,
		.flow = flow,
		.link = link_of(probe),
		.slot_bytes = tti_engine_port(probe->engine, probe->peer)->slot_bytes,
		.began_ns = tti_now_ns(),
	};
	const struct since *since = &fl.first;

	fl.message = fl.slot_bytes < MESSAGE_FIRST ? fl.slot_bytes : MESSAGE_FIRST;
	TTI_TRY(flow_on(&fl));
	/* Too few messages, or none, after the beginning: all of them, then. */
	if (fl.warm.nmessages >= UNDER_WAY / 2)
		since = &fl.warm;
	flow->sent = fl.sent;
	flow->nbytes = since->nbytes;
	flow->took_ns = fl.last_ns - since->at_ns;
	return TUTTI_OK;
}

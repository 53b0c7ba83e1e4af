/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/trace.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "support/layer.h"

#define EVENTS 64

struct trace_link {
	struct layer_link base;
	void *room; /* reserved, NULL: not                  */
	size_t room_bytes;
	const void *seen; /* peeked and not released, NULL: none */
	size_t seen_bytes;
	uint64_t seen_tag, seen_sum;
	uint64_t sent, received;
};

struct trace {
	struct layer layer;
	void *fan_room; /* reserved, NULL: not */
	size_t fan_bytes;
	int fan_links;
	uint64_t fans, nevents;
	struct trace_event events[EVENTS];
	char breach[256]; /* the first, "": none */
};

static void note(struct trace *trace, struct trace_event event)
{
	trace->events[trace->nevents++ % EVENTS] = event;
}

TUTTI_PRINTF(2, 3) static void fault(struct trace *trace, const char *fmt, ...)
{
	va_list args;

	if (trace->breach[0])
		return;
	va_start(args, fmt);
	vsnprintf(trace->breach, sizeof(trace->breach), fmt, args);
	va_end(args);
}

static struct trace *trace_of(const struct trace_link *self)
{
	return (struct trace *)self->base.layer;
}

/* The record of a link that is about to be used. */
static struct trace_link *use(struct tti_link *link, const char *what)
{
	struct trace_link *self = (struct trace_link *)layer_link_of(link);

	if (self->base.is_closed)
		fault(trace_of(self), "%s on the closed link to rank %d", what, link->peer);
	return self;
}

static uint64_t sum(const void *data, size_t nbytes)
{
	const uint8_t *at = data;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < nbytes; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void check_length(struct trace *trace, size_t nbytes, int peer)
{
	if (nbytes > trace->layer.port->slot_bytes)
		fault(trace, "a message of %zu bytes to rank %d, slots have %zu", nbytes, peer,
		      trace->layer.port->slot_bytes);
}

/* -- Sending ------------------------------------------------------------------------------- */

static void *reserve(struct tti_link *link, size_t nbytes, size_t whole)
{
	struct trace_link *self = use(link, "reserve");
	struct trace *trace = trace_of(self);
	void *room;

	check_length(trace, nbytes, link->peer);
	room = layer_reserve(&self->base, nbytes, whole);
	if (room && self->room && self->room != room)
		fault(trace, "a reserve to rank %d that is repeated gives another room",
		      link->peer);
	note(trace, (struct trace_event){ .kind = TRACE_RESERVE,
					  .peer = link->peer,
					  .nbytes = nbytes,
					  .fan = 1,
					  .is_refused = !room });
	self->room = room;
	self->room_bytes = nbytes;
	return room;
}

static void commit(struct tti_link *link, size_t nbytes, uint64_t tag)
{
	struct trace_link *self = use(link, "commit");
	struct trace *trace = trace_of(self);

	if (!self->room)
		fault(trace, "a commit of %zu bytes to rank %d without a reserve", nbytes,
		      link->peer);
	else if (self->room_bytes != nbytes)
		fault(trace, "a commit of %zu bytes to rank %d, %zu were reserved", nbytes,
		      link->peer, self->room_bytes);
	note(trace, (struct trace_event){ .kind = TRACE_COMMIT,
					  .peer = link->peer,
					  .nbytes = nbytes,
					  .tag = tag,
					  .fan = 1 });
	self->room = NULL;
	self->sent++;
	layer_commit(&self->base, nbytes, tag);
}

static bool send(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag)
{
	struct trace_link *self = use(link, "send");
	struct trace *trace = trace_of(self);
	bool is_sent;

	check_length(trace, nbytes, link->peer);
	is_sent = layer_send(&self->base, data, nbytes, tag);
	note(trace, (struct trace_event){ .kind = TRACE_SEND,
					  .peer = link->peer,
					  .nbytes = nbytes,
					  .tag = tag,
					  .fan = 1,
					  .is_refused = !is_sent });
	self->room = is_sent ? NULL : self->room;
	self->sent += is_sent;
	return is_sent;
}

static void *fan_reserve(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes)
{
	struct trace *trace = (struct trace *)layer_of(port);

	for (int i = 0; i < n; i++)
		use(links[i], "reserve of a fan-out");
	check_length(trace, nbytes, links[0]->peer);
	trace->fan_room = layer_fan_reserve(&trace->layer, links, n, nbytes);
	trace->fan_bytes = nbytes;
	trace->fan_links = n;
	note(trace, (struct trace_event){ .kind = TRACE_RESERVE,
					  .peer = links[0]->peer,
					  .nbytes = nbytes,
					  .fan = n,
					  .is_refused = !trace->fan_room });
	return trace->fan_room;
}

static void fan_commit(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes,
		       uint64_t tag)
{
	struct trace *trace = (struct trace *)layer_of(port);

	if (!trace->fan_room)
		fault(trace, "a commit of a fan-out of %zu bytes without a reserve", nbytes);
	else if (trace->fan_bytes != nbytes || trace->fan_links != n)
		fault(trace, "a fan-out of %zu bytes to %d ranks, %zu to %d were reserved", nbytes,
		      n, trace->fan_bytes, trace->fan_links);
	for (int i = 0; i < n; i++) {
		struct trace_link *self = use(links[i], "commit of a fan-out");

		if (self->room)
			fault(trace, "a fan-out to rank %d, to which a slot is reserved",
			      links[i]->peer);
		self->sent++;
	}
	note(trace, (struct trace_event){ .kind = TRACE_COMMIT,
					  .peer = links[0]->peer,
					  .nbytes = nbytes,
					  .tag = tag,
					  .fan = n });
	trace->fan_room = NULL;
	trace->fans++;
	layer_fan_commit(&trace->layer, links, n, nbytes, tag);
}

/* -- Receiving ----------------------------------------------------------------------------- */

static const void *peek(struct tti_link *link, size_t *nbytes, uint64_t *tag)
{
	struct trace_link *self = use(link, "peek");
	struct trace *trace = trace_of(self);
	const void *data = layer_peek(&self->base, nbytes, tag);

	if (self->seen && (data != self->seen || *nbytes != self->seen_bytes ||
			   *tag != self->seen_tag || sum(data, *nbytes) != self->seen_sum))
		fault(trace, "a peek from rank %d that is repeated gives something else",
		      link->peer);
	if (!data || self->seen)
		return data;
	self->seen = data;
	self->seen_bytes = *nbytes;
	self->seen_tag = *tag;
	self->seen_sum = sum(data, *nbytes);
	note(trace, (struct trace_event){ .kind = TRACE_PEEK,
					  .peer = link->peer,
					  .nbytes = *nbytes,
					  .tag = *tag,
					  .fan = 1 });
	return data;
}

static void release(struct tti_link *link)
{
	struct trace_link *self = use(link, "release");
	struct trace *trace = trace_of(self);

	note(trace, (struct trace_event){ .kind = TRACE_RELEASE, .peer = link->peer, .fan = 1 });
	if (!self->seen) {
		fault(trace, "a release of what rank %d sent without a peek", link->peer);
		return;
	}
	if (sum(self->seen, self->seen_bytes) != self->seen_sum)
		fault(trace, "a message of rank %d was changed before it was released", link->peer);
	self->seen = NULL;
	self->received++;
	layer_release(&self->base);
}

/* -- All of it ------------------------------------------------------------------------------ */

static void on_close(struct layer_link *link)
{
	note((struct trace *)link->layer,
	     (struct trace_event){ .kind = TRACE_CLOSE, .peer = link->link->peer });
}

struct trace *trace_create(struct tti_port *port)
{
	static const struct tti_link_ops ops = {
		.reserve = reserve, .commit = commit, .peek = peek, .release = release, .send = send
	};
	static const struct tti_fanout_ops fanout = { .reserve = fan_reserve,
						      .commit = fan_commit };
	struct trace *trace = calloc(1, sizeof(*trace));

	trace->layer.on_close = on_close;
	layer_put_on(&trace->layer, port, &ops, &fanout, sizeof(struct trace_link));
	return trace;
}

void trace_free(struct trace *trace)
{
	layer_take_off(&trace->layer);
	free(trace);
}

const char *trace_breach(const struct trace *trace)
{
	return trace->breach[0] ? trace->breach : NULL;
}

static const struct trace_link *link_to(const struct trace *trace, int peer)
{
	return (const struct trace_link *)trace->layer.links[peer];
}

uint64_t trace_sent(const struct trace *trace, int peer)
{
	return link_to(trace, peer) ? link_to(trace, peer)->sent : 0;
}

uint64_t trace_received(const struct trace *trace, int peer)
{
	return link_to(trace, peer) ? link_to(trace, peer)->received : 0;
}

uint64_t trace_fans(const struct trace *trace)
{
	return trace->fans;
}

void trace_print(const struct trace *trace, FILE *out)
{
	static const char *const names[] = {
		"reserve", "commit", "send", "peek", "release", "close"
	};
	const uint64_t first = trace->nevents > EVENTS ? trace->nevents - EVENTS : 0;

	for (uint64_t i = first; i < trace->nevents; i++) {
		const struct trace_event *event = &trace->events[i % EVENTS];

		fprintf(out, "rank %d: %s %s%d, %zu bytes, tag %llx%s\n", trace->layer.port->rank,
			names[event->kind], event->fan > 1 ? "several links, first " : "link ",
			event->peer, event->nbytes, (unsigned long long)event->tag,
			event->is_refused ? ", refused" : "");
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/layer.h"

#include <stdlib.h>

/* While a function beneath runs, the link has the table of functions of that function: it may be
 * another layer's, which finds itself by it. */
static void step_down(struct layer_link *self)
{
	self->link->ops = self->inner;
}

static void step_up(struct layer_link *self)
{
	self->link->ops = &self->ops;
}

void *layer_reserve(struct layer_link *self, size_t nbytes, size_t whole)
{
	void *room;

	step_down(self);
	room = self->inner->reserve(self->link, nbytes, whole);
	step_up(self);
	return room;
}

void layer_commit(struct layer_link *self, size_t nbytes, uint64_t tag)
{
	step_down(self);
	self->inner->commit(self->link, nbytes, tag);
	step_up(self);
}

const void *layer_peek(struct layer_link *self, size_t *nbytes, uint64_t *tag)
{
	const void *data;

	step_down(self);
	data = self->inner->peek(self->link, nbytes, tag);
	step_up(self);
	return data;
}

void layer_release(struct layer_link *self)
{
	step_down(self);
	self->inner->release(self->link);
	step_up(self);
}

bool layer_send(struct layer_link *self, const void *data, size_t nbytes, uint64_t tag)
{
	bool is_sent;

	step_down(self);
	is_sent = self->inner->send(self->link, data, nbytes, tag);
	step_up(self);
	return is_sent;
}

bool layer_all_released(struct layer_link *self)
{
	bool all;

	step_down(self);
	all = self->inner->all_released(self->link);
	step_up(self);
	return all;
}

static bool all_released(struct tti_link *link)
{
	return layer_all_released(layer_link_of(link));
}

static void fan_down(struct layer *layer, struct tti_link *const *links, int n)
{
	layer->port->transport = layer->inner;
	for (int i = 0; i < n; i++)
		step_down(layer->links[links[i]->peer]);
}

static void fan_up(struct layer *layer, struct tti_link *const *links, int n)
{
	layer->port->transport = &layer->transport;
	for (int i = 0; i < n; i++)
		step_up(layer->links[links[i]->peer]);
}

void *layer_fan_reserve(struct layer *layer, struct tti_link *const *links, int n, size_t nbytes)
{
	void *room;

	fan_down(layer, links, n);
	room = layer->inner->fanout->reserve(layer->port, links, n, nbytes);
	fan_up(layer, links, n);
	return room;
}

void layer_fan_commit(struct layer *layer, struct tti_link *const *links, int n, size_t nbytes,
		      uint64_t tag)
{
	fan_down(layer, links, n);
	layer->inner->fanout->commit(layer->port, links, n, nbytes, tag);
	fan_up(layer, links, n);
}

/* -- Putting on and taking off ----------------------------------------------------------- */

static struct layer_link *wrap(struct layer *layer, struct tti_link *link)
{
	const struct tti_link_ops *own = &layer->link_ops;
	struct layer_link *self = calloc(1, layer->link_size);

	self->layer = layer;
	self->link = link;
	self->inner = link->ops;
	self->ops = *link->ops;
	if (own->reserve)
		self->ops.reserve = own->reserve;
	if (own->commit)
		self->ops.commit = own->commit;
	if (own->peek)
		self->ops.peek = own->peek;
	if (own->release)
		self->ops.release = own->release;
	if (own->send && link->ops->send)
		self->ops.send = own->send;
	if (link->ops->all_released)
		self->ops.all_released = own->all_released ? own->all_released : all_released;
	return self;
}

static tutti_status connect_through(struct tti_port *port, int peer, struct tti_link **out)
{
	struct layer *layer = layer_of(port);
	tutti_status st;

	port->transport = layer->inner;
	st = layer->inner->connect(port, peer, out);
	port->transport = &layer->transport;
	if (st != TUTTI_OK)
		return st;
	if (!layer->links[peer])
		layer->links[peer] = wrap(layer, *out);
	layer->links[peer]->is_closed = false;
	(*out)->ops = &layer->links[peer]->ops;
	return TUTTI_OK;
}

static void close_through(struct tti_link *link)
{
	struct layer_link *self = layer_link_of(link);

	if (self->layer->on_close)
		self->layer->on_close(self);
	self->is_closed = true;
	step_down(self);
	self->layer->inner->close(link);
}

void layer_put_on(struct layer *layer, struct tti_port *port, const struct tti_link_ops *link_ops,
		  const struct tti_fanout_ops *fanout, size_t link_size)
{
	layer->inner = port->transport;
	layer->port = port;
	layer->link_ops = *link_ops;
	layer->link_size = link_size;
	layer->links = calloc((size_t)port->nranks, sizeof(struct layer_link *));
	layer->transport = *port->transport;
	layer->transport.connect = connect_through;
	layer->transport.close = close_through;
	if (port->transport->fanout) {
		layer->fanout = *fanout;
		layer->transport.fanout = &layer->fanout;
	}
	port->transport = &layer->transport;
}

void layer_take_off(struct layer *layer)
{
	for (int peer = 0; peer < layer->port->nranks; peer++) {
		struct layer_link *self = layer->links[peer];

		if (self && !self->is_closed)
			step_down(self);
		free(self);
	}
	free(layer->links);
	layer->port->transport = layer->inner;
}

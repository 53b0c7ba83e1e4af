/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/lossy.h"

#include <stdlib.h>

#include "support/layer.h"
#include "support/reference.h"

struct lossy_link {
	struct layer_link base;
	/* Refused in a row, of each kind. */
	int reserves, peeks, sends;
	bool is_reserved; /* granted and not committed: the same room must be given again */
	bool is_seen;     /* the oldest message was: it cannot go away again              */
};

struct lossy {
	struct layer layer;
	int percent, fans; /* fans: refused in a row */
	bool fan_is_reserved;
	uint64_t random, refused;
};

static bool refuses(struct lossy *lossy, int *in_a_row)
{
	if (*in_a_row >= LOSSY_IN_A_ROW ||
	    next_random(&lossy->random) % 100 >= (uint64_t)lossy->percent) {
		*in_a_row = 0;
		return false;
	}
	++*in_a_row;
	lossy->refused++;
	return true;
}

static struct lossy *lossy_of(const struct lossy_link *self)
{
	return (struct lossy *)self->base.layer;
}

static struct lossy_link *link_of(struct tti_link *link)
{
	return (struct lossy_link *)layer_link_of(link);
}

static void *reserve(struct tti_link *link, size_t nbytes, size_t whole)
{
	struct lossy_link *self = link_of(link);
	void *room;

	if (!self->is_reserved && refuses(lossy_of(self), &self->reserves))
		return NULL;
	room = layer_reserve(&self->base, nbytes, whole);
	self->is_reserved = room != NULL;
	return room;
}

static void commit(struct tti_link *link, size_t nbytes, uint64_t tag)
{
	struct lossy_link *self = link_of(link);

	self->is_reserved = false;
	layer_commit(&self->base, nbytes, tag);
}

static const void *peek(struct tti_link *link, size_t *nbytes, uint64_t *tag)
{
	struct lossy_link *self = link_of(link);
	const void *data;

	if (!self->is_seen && refuses(lossy_of(self), &self->peeks))
		return NULL;
	data = layer_peek(&self->base, nbytes, tag);
	self->is_seen = data != NULL;
	return data;
}

static void release(struct tti_link *link)
{
	struct lossy_link *self = link_of(link);

	self->is_seen = false;
	layer_release(&self->base);
}

static bool send(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag)
{
	struct lossy_link *self = link_of(link);

	if (refuses(lossy_of(self), &self->sends) || !layer_send(&self->base, data, nbytes, tag))
		return false;
	self->is_reserved = false;
	return true;
}

static void *fan_reserve(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes)
{
	struct lossy *lossy = (struct lossy *)layer_of(port);
	void *room;

	if (!lossy->fan_is_reserved && refuses(lossy, &lossy->fans))
		return NULL;
	room = layer_fan_reserve(&lossy->layer, links, n, nbytes);
	lossy->fan_is_reserved = room != NULL;
	return room;
}

static void fan_commit(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes,
		       uint64_t tag)
{
	struct lossy *lossy = (struct lossy *)layer_of(port);

	lossy->fan_is_reserved = false;
	layer_fan_commit(&lossy->layer, links, n, nbytes, tag);
}

struct lossy *lossy_create(struct tti_port *port, int percent, bool splits, uint64_t seed)
{
	static const struct tti_link_ops ops = {
		.reserve = reserve, .commit = commit, .peek = peek, .release = release, .send = send
	};
	static const struct tti_fanout_ops fanout = { .reserve = fan_reserve,
						      .commit = fan_commit };
	struct lossy *lossy = calloc(1, sizeof(*lossy));

	lossy->percent = percent;
	lossy->random = seed;
	layer_put_on(&lossy->layer, port, &ops, &fanout, sizeof(struct lossy_link));
	if (splits)
		lossy->layer.transport.fanout = NULL;
	return lossy;
}

void lossy_free(struct lossy *lossy)
{
	layer_take_off(&lossy->layer);
	free(lossy);
}

uint64_t lossy_refused(const struct lossy *lossy)
{
	return lossy->refused;
}

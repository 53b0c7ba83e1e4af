/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending to oneself: a ring of slots on the heap. */
#include <string.h>

#include "transport/transport.h"
#include "util/error.h"
#include "util/mem.h"

struct self_message {
	size_t nbytes;
	uint64_t tag;
};

struct self_link {
	struct tti_link base;
	size_t stride;
	int slots;
	int head, used; /* oldest message, how many there are */
	uint8_t *data;  /* aligned, within memory */
	void *memory;
	struct self_message message[];
};

struct self_port {
	struct tti_port base;
	int slots;
	struct self_link *link;
};

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	const struct self_link *link = (const struct self_link *)base;

	(void)nbytes;
	(void)whole;
	if (link->used == link->slots)
		return NULL;
	return link->data + (size_t)((link->head + link->used) % link->slots) * link->stride;
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct self_link *link = (struct self_link *)base;
	struct self_message *message = &link->message[(link->head + link->used) % link->slots];

	message->nbytes = nbytes;
	message->tag = tag;
	link->used++;
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	const struct self_link *link = (const struct self_link *)base;

	if (!link->used)
		return NULL;
	*nbytes = link->message[link->head].nbytes;
	*tag = link->message[link->head].tag;
	return link->data + (size_t)link->head * link->stride;
}

static void release(struct tti_link *base)
{
	struct self_link *link = (struct self_link *)base;

	link->head = (link->head + 1) % link->slots;
	link->used--;
}

static const struct tti_link_ops link_ops = {
	.reserve = reserve,
	.commit = commit,
	.peek = peek,
	.release = release,
};

static tutti_status self_open(const struct tti_port_config *config, struct tti_port **out,
			      struct tti_card *card)
{
	struct self_port *port = tti_zalloc(sizeof(*port));

	if (!port)
		return tti_fail(TUTTI_ENOMEM, "port of rank %d to itself: out of memory",
				config->rank);
	memset(card, 0, sizeof(*card));
	tti_port_init(&port->base, &tti_transport_self, config);
	port->slots = config->slots;
	*out = &port->base;
	return TUTTI_OK;
}

/* Everybody is alone in a domain. */
static tutti_status self_join(struct tti_port *port, const struct tti_card *cards, uint64_t *domain)
{
	(void)cards;
	*domain = 1 + (uint64_t)port->rank;
	return TUTTI_OK;
}

static tutti_status self_connect(struct tti_port *base, int peer, struct tti_link **out)
{
	struct self_port *port = (struct self_port *)base;
	const size_t slots = (size_t)port->slots, stride = (base->slot_bytes + 63) / 64 * 64;
	struct self_link *link = port->link;

	if (peer != base->rank)
		return tti_fail(TUTTI_EINVAL, "self connects rank %d to itself, not to rank %d",
				base->rank, peer);
	if (link) {
		*out = &link->base;
		return TUTTI_OK;
	}
	link = tti_zalloc(sizeof(*link) + slots * sizeof(link->message[0]));
	if (link) /* not zeroed: untouched it costs nothing */
		link->memory = tti_alloc(slots * stride + 63);
	if (!link || !link->memory) {
		tti_free(link);
		return tti_fail(TUTTI_ENOMEM,
				"%zu slots of %zu bytes of rank %d to itself: out of memory", slots,
				stride, peer);
	}
	link->data = (uint8_t *)(((uintptr_t)link->memory + 63) / 64 * 64);
	link->base.ops = &link_ops;
	link->base.peer = peer;
	link->stride = stride;
	link->slots = port->slots;
	port->link = link;
	*out = &link->base;
	return TUTTI_OK;
}

/* Kept until shutdown, so what was committed is there after another connect. */
static void self_close(struct tti_link *link)
{
	(void)link;
}

static void self_shutdown(struct tti_port *base)
{
	struct self_port *port = (struct self_port *)base;

	if (!port)
		return;
	if (port->link)
		tti_free(port->link->memory);
	tti_free(port->link);
	tti_free(port);
}

const struct tti_transport tti_transport_self = {
	.size = sizeof(struct tti_transport),
	.name = "self",
	.open = self_open,
	.join = self_join,
	.connect = self_connect,
	.close = self_close,
	.shutdown = self_shutdown,
};

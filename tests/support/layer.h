/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_LAYER_H
#define TESTS_SUPPORT_LAYER_H

/* A decorator of a transport: what its user calls goes through functions of the layer, which pass
 * it on to the functions that were there before. Port and links stay the same objects, so what
 * others read in them stays true; only their tables of functions are exchanged. Layers can stand
 * on each other and are taken off in reverse order.
 *
 * Owner: who put a layer on takes it off, before the port is shut down; links may be open then.
 * Threads: as the port. */

#include "transport/transport.h"

struct layer;

/* A layer's own record of a link, the first field of its larger struct. */
struct layer_link {
	struct tti_link_ops ops;          /* what the link's user calls    */
	const struct tti_link_ops *inner; /* what was there before         */
	struct layer *layer;
	struct tti_link *link;
	bool is_closed;
};

struct layer {
	struct tti_transport transport; /* what the port's user calls */
	struct tti_fanout_ops fanout;
	const struct tti_transport *inner; /* what was there before      */
	struct tti_port *port;
	struct tti_link_ops link_ops; /* of the layer, NULL: passed on */
	size_t link_size;             /* of the layer's record of a link */
	void (*on_close)(struct layer_link *link);
	struct layer_link **links; /* [nranks], NULL: not connected yet */
};

/* Put a zeroed layer on a port that has no link yet. What the transport does not have, the
 * layer's functions for it are not called. */
void layer_put_on(struct layer *layer, struct tti_port *port, const struct tti_link_ops *link_ops,
		  const struct tti_fanout_ops *fanout, size_t link_size);
void layer_take_off(struct layer *layer);

static inline struct layer_link *layer_link_of(const struct tti_link *link)
{
	return (struct layer_link *)link->ops;
}

static inline struct layer *layer_of(const struct tti_port *port)
{
	return (struct layer *)port->transport;
}

/* The functions beneath, called as if the layer were not there. */
void *layer_reserve(struct layer_link *self, size_t nbytes, size_t whole);
void layer_commit(struct layer_link *self, size_t nbytes, uint64_t tag);
const void *layer_peek(struct layer_link *self, size_t *nbytes, uint64_t *tag);
void layer_release(struct layer_link *self);
bool layer_send(struct layer_link *self, const void *data, size_t nbytes, uint64_t tag);
bool layer_all_released(struct layer_link *self);
void *layer_fan_reserve(struct layer *layer, struct tti_link *const *links, int n, size_t nbytes);
void layer_fan_commit(struct layer *layer, struct tti_link *const *links, int n, size_t nbytes,
		      uint64_t tag);

#endif

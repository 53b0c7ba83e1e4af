/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm.h"

#include "transport/shm/shm_link.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"

/* What a message costs by itself, some 0.1 us, is a quarter of what these take. */
#define PIECE_BYTES 8192

static void shm_shutdown(struct tti_port *base)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (!port)
		return;
	for (size_t i = 0; i < port->links.n; i++) {
		tti_shm_pair_unmap(&port->seg, port->links.at[i]->pair);
		tti_free(port->links.at[i]);
	}
	tti_vec_release(&port->links);
	tti_shm_views_release(port);
	tti_shm_ranges_release(&port->ranges);
	tti_shm_seg_release(&port->seg);
	tti_fd_close(&port->listener);
	tti_free(port->candidate);
	tti_free(port->process);
	tti_free(port->broadcast);
	tti_free(port);
}

static tutti_status shm_open_port(const struct tti_port_config *config, struct tti_port **out,
				  struct tti_card *card)
{
	struct tti_shm_port *port;
	struct tti_shm_layout layout;
	tutti_status st;

	if (tti_shm_layout_init(&layout, 1, config->slot_bytes, config->slots) != TUTTI_OK)
		return tti_fail(TUTTI_EINVAL, "%s", tti_error_text());
	port = tti_zalloc(sizeof(*port));
	if (!port)
		return tti_fail(TUTTI_ENOMEM, "shared memory port of rank %d: out of memory",
				config->rank);
	tti_port_init(&port->base, &tti_transport_shm, config);
	port->base.inline_bytes = TTI_SHM_INLINE;
	port->config = *config;
	port->listener = -1;
	port->seg.fd = -1;
	tti_shm_ranges_init(&port->ranges);
	st = tti_shm_listen(port, card);
	if (st != TUTTI_OK) {
		shm_shutdown(&port->base);
		return st;
	}
	*out = &port->base;
	return TUTTI_OK;
}

/* A link stays when it is closed: connected again, it goes on where it was. */
static tutti_status shm_connect(struct tti_port *base, int peer, struct tti_link **out)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);
	const int index = port->seg.base ? tti_shm_find_candidate(port, peer) : -1;
	struct tti_shm_link *link;
	struct tti_shm_pair *pair;
	tutti_status st;

	if (index < 0 || index == port->self)
		return tti_fail(TUTTI_EINVAL, "rank %d shares no memory with rank %d", base->rank,
				peer);
	for (size_t i = 0; i < port->links.n; i++)
		if (port->links.at[i]->base.peer == peer) {
			*out = &port->links.at[i]->base;
			return TUTTI_OK;
		}
	TTI_TRY(tti_shm_need_broadcast(port));
	link = tti_zalloc(sizeof(*link));
	if (!link || !tti_vec_grow(&port->links)) {
		st = tti_fail(TUTTI_ENOMEM, "link of rank %d to rank %d: out of memory", base->rank,
			      peer);
		goto fail;
	}
	st = tti_shm_pair_map(&port->seg, port->self, index, &pair);
	if (st != TUTTI_OK) {
		st = tti_shm_fail(port, st, peer, "connecting");
		goto fail;
	}
	link->port = port;
	tti_shm_link_init(link, index, pair);
	port->links.at[port->links.n++] = link;
	*out = &link->base;
	return TUTTI_OK;

fail:
	tti_free(link);
	return st;
}

static void shm_close(struct tti_link *link)
{
	(void)link;
}

void tti_shm_set_start(struct tti_port *port, uint32_t start)
{
	tti_shm_port_of(port)->start = start;
}

const struct tti_transport tti_transport_shm = {
	.size = sizeof(struct tti_transport),
	.name = "shm",
	.piece_bytes = PIECE_BYTES,
	.open = shm_open_port,
	.join = tti_shm_join,
	.settle = tti_shm_settle,
	.connect = shm_connect,
	.close = shm_close,
	.shutdown = shm_shutdown,
	.fanout = &tti_shm_fanout_ops,
	.sleep = &tti_shm_sleep_ops,
	.memory = &tti_shm_memory_ops,
};

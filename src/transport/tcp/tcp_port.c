/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/secret.h"
#include "util/strbuf.h"

#define BACKLOG      4096
#define HANDSHAKE_MS 10000

/* -- Opening --------------------------------------------------------------- */

static tutti_status check_config(const struct tti_port_config *config)
{
	if (config->slots < 1 || config->slots > TTI_TCP_SLOTS_MOST)
		return tti_fail(TUTTI_EINVAL,
				"%d slots for a TCP link; 1 to %d are possible (TUTTI_TCP_SLOTS)",
				config->slots, TTI_TCP_SLOTS_MOST);
	if (!config->slot_bytes || config->slot_bytes > UINT32_MAX / 2)
		return tti_fail(TUTTI_EINVAL,
				"slots of %zu bytes for a TCP link; 1 to %u are possible "
				"(TUTTI_TCP_SLOT)",
				config->slot_bytes, UINT32_MAX / 2);
	return TUTTI_OK;
}

static tutti_status listen_on(struct tti_tcp_port *port)
{
	struct epoll_event event = { .events = TTI_TCP_LISTENS };

	TTI_TRY(tti_listen(&port->listen_port, BACKLOG, &port->listen_fd));
	if (port->options.congestion)
		TTI_TRY(tti_tcp_check_congestion(port->listen_fd, port->options.congestion));
	port->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (port->epoll_fd < 0)
		return tti_fail(TUTTI_ESYS, "epoll_create1: %m");
	if (epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, port->listen_fd, &event))
		return tti_fail(TUTTI_ESYS, "epoll_ctl: %m");
	return TUTTI_OK;
}

static tutti_status look_around(struct tti_tcp_card *mine, struct tti_strbuf *why, bool *reachable)
{
	struct tti_ifaces ifaces;
	tutti_status status = tti_ifaces_look(&ifaces, why);
	size_t nrunning;

	if (!status) {
		tti_ifaces_measure(&ifaces);
		status = tti_tcp_card_fill(mine, &ifaces);
	}
	*reachable = tti_ifaces_offered(&ifaces, &nrunning) > 0;
	tti_ifaces_release(&ifaces);
	return status;
}

/* No address is no error here: other transports may do. */
static tutti_status describe(struct tti_tcp_port *port, struct tti_card *card)
{
	struct tti_tcp_card mine = {
		.slot_bytes = (uint32_t)port->base.slot_bytes,
		.slots = (uint16_t)port->slots,
		.port = htobe16(port->listen_port),
	};
	struct tti_strbuf why = { 0 };
	bool reachable;
	tutti_status status = look_around(&mine, &why, &reachable);
	char *text = tti_strbuf_take(&why);

	if (!status && !reachable) {
		tti_log(TTI_LOG_INFO, TTI_TCP, "rank %d takes no part in TCP: no address (%s)",
			port->base.rank, text && *text ? text : "no interface has one");
		mine.naddrs = mine.nnics = 0;
	}
	tti_tcp_nics_listen(port, &mine);
	free(text);
	tti_tcp_card_put(&mine, card);
	return status;
}

tutti_status tti_tcp_open(const struct tti_port_config *config,
			  const struct tti_tcp_options *options, struct tti_port **out,
			  struct tti_card *card)
{
	struct tti_tcp_port *port;
	tutti_status status;

	TTI_TRY(check_config(config));
	port = tti_secret_zalloc(sizeof(*port));
	if (!port)
		return tti_fail(TUTTI_ENOMEM, "TCP port");
	tti_port_init(&port->base, &tti_transport_tcp, config);
	port->options = *options;
	port->slots = config->slots;
	port->timeout_ms = config->timeout_ms;
	port->listen_fd = port->epoll_fd = -1;
	memset(port->nic_fd, -1, sizeof(port->nic_fd));
	port->lanes_at = port->accept_at = TTI_NEVER;
	port->lane_leaves = tti_tcp_lane_leaves;
	memcpy(port->secret, config->secret, sizeof(port->secret));
	port->link_of = tti_calloc((size_t)config->nranks, sizeof(struct tti_tcp_link *));
	if (!port->link_of) {
		status = tti_fail(TUTTI_ENOMEM, "TCP port of %d ranks", config->nranks);
		goto fail;
	}
	tti_fd_raise_limit();
	status = listen_on(port);
	if (status)
		goto fail;
	status = describe(port, card);
	if (status)
		goto fail;
	*out = &port->base;
	return TUTTI_OK;

fail:
	tti_tcp_shutdown(&port->base);
	return status;
}

static tutti_status open_port(const struct tti_port_config *config, struct tti_port **out,
			      struct tti_card *card)
{
	const struct tti_param_values *params = tti_params();
	const struct tti_tcp_options options = {
		.sockets = (int)params->tcp_sockets,
		.lanes = (int)params->tcp_lanes,
		.congestion = params->tcp_congestion,
		.handshake_ms = HANDSHAKE_MS,
		.encrypt = config->encrypt,
		.traffic_class = config->traffic_class,
	};

	return tti_tcp_open(config, &options, out, card);
}

/* Slots must be the same on both sides of a link: the least of all is taken. */
static void agree(struct tti_tcp_port *port, const struct tti_tcp_card *card, int rank)
{
	if (!card->naddrs ||
	    (card->slot_bytes >= port->base.slot_bytes && card->slots >= port->slots))
		return;
	tti_log(TTI_LOG_WARN, TTI_TCP,
		"rank %d has %d slots of %u bytes, rank %d %d of %zu: the least counts; set "
		"TUTTI_TCP_SLOT and TUTTI_TCP_SLOTS alike on all ranks",
		rank, card->slots, card->slot_bytes, port->base.rank, port->slots,
		port->base.slot_bytes);
	if (card->slot_bytes < port->base.slot_bytes)
		port->base.slot_bytes = port->base.inline_bytes = card->slot_bytes;
	if (card->slots < port->slots)
		port->slots = card->slots;
}

static tutti_status keep_cards(struct tti_tcp_port *port, const struct tti_card *cards,
			       uint64_t *domain)
{
	for (int rank = 0; rank < port->base.nranks; rank++) {
		struct tti_tcp_card card;
		struct tti_tcp_fault fault;

		if (tti_tcp_card_get(cards[rank].bytes, TTI_CARD_BYTES, &card, &fault))
			return tti_fail(TUTTI_EPROTO,
					"rank %d: %s of its TCP card is %llu (%llu expected); do "
					"all ranks run the same version?",
					rank, fault.field, (unsigned long long)fault.value,
					(unsigned long long)fault.most);
		agree(port, &card, rank);
		port->spares |= port->options.sockets > 1 || tti_tcp_nics_several(&card);
		TTI_TRY(tti_tcp_cards_add(&port->cards, &card));
		if (rank == port->base.rank && card.naddrs)
			*domain = 1;
	}
	return TUTTI_OK;
}

/* Every rank with an address counts as reachable from every other: trying is what
 * connect() does, with a text that says what failed. */
static tutti_status join(struct tti_port *base, const struct tti_card *cards, uint64_t *domain)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	tutti_status status;

	*domain = 0;
	status = keep_cards(port, cards, domain);
	if (status)
		tti_tcp_cards_release(&port->cards);
	return status;
}

static tutti_status lost(const struct tti_tcp_port *port, int peer)
{
	return port->base.failure ? port->base.failure
				  : tti_fail(TUTTI_EPEER, "the link to rank %d is lost", peer);
}

static tutti_status ask(struct tti_tcp_link *link)
{
	struct tti_tcp_port *port = link->port;
	tutti_status status;

	link->asked = true;
	if (link->state != TTI_TCP_LINK_NEW)
		return TUTTI_OK;
	link->asked_at = tti_now_ns();
	port->ncoming++;
	if (port->base.rank < link->base.peer)
		return TUTTI_OK;
	status = tti_tcp_dial_start(link);
	if (status) {
		link->state = TTI_TCP_LINK_LOST;
		port->ncoming--;
	}
	return status;
}

static tutti_status connect_to(struct tti_port *base, int peer, struct tti_link **out)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	struct tti_tcp_link *link;

	if (peer < 0 || peer >= base->nranks || peer == base->rank || !port->cards.of.n)
		return tti_fail(TUTTI_EINVAL, "no TCP link from rank %d to rank %d (of %d)",
				base->rank, peer, base->nranks);
	if (base->failure)
		return base->failure;
	link = port->link_of[peer];
	if (!link)
		TTI_TRY(tti_tcp_link_create(port, peer, &link));
	if (!link->asked)
		TTI_TRY(ask(link));
	switch (link->state) {
	case TTI_TCP_LINK_NEW:
		return TUTTI_AGAIN;
	case TTI_TCP_LINK_UP:
		*out = &link->base;
		return TUTTI_OK;
	case TTI_TCP_LINK_CLOSED:
		return tti_fail(TUTTI_EUSAGE, "the link to rank %d was closed", peer);
	case TTI_TCP_LINK_LOST:
		break;
	}
	return lost(port, peer);
}

/* Why the link is not up. The lower rank can only wait. */
static void give_up(struct tti_tcp_link *link)
{
	struct tti_tcp_port *port = link->port;
	const int64_t waited_ms = (tti_now_ns() - link->asked_at) / TTI_NS_PER_MS;
	tutti_status status;

	if (link->dial) {
		tti_tcp_dial_give_up(link, TUTTI_ETIMEOUT);
		return;
	}
	status = tti_fail(TUTTI_ETIMEOUT,
			  "rank %d did not connect to rank %d (port %u) within %lld ms; %llu "
			  "connections were refused",
			  link->base.peer, port->base.rank, port->listen_port, (long long)waited_ms,
			  (unsigned long long)port->dropped);
	link->state = TTI_TCP_LINK_LOST;
	port->ncoming--;
	tti_port_fail(&port->base, status, link->base.peer);
}

static void stop_trying(struct tti_port *base, int peer)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	struct tti_tcp_link *link = port->link_of[peer];

	if (!link || link->memory)
		return;
	if (link->state == TTI_TCP_LINK_NEW && link->asked)
		give_up(link);
	if (base->failed_peer != peer)
		return;
	base->failure = TUTTI_OK;
	base->failed_peer = -1;
}

const struct tti_transport tti_transport_tcp = {
	.size = sizeof(struct tti_transport),
	.name = "tcp",
	.open = open_port,
	.join = join,
	.connect = connect_to,
	.progress = tti_tcp_progress,
	.tend = tti_tcp_tend,
	.close = tti_tcp_close,
	.shutdown = tti_tcp_shutdown,
	.sleep = &tti_tcp_sleep_ops,
	.lanes = &tti_tcp_lane_ops,
	.prefer = tti_tcp_prefer,
	.assign = tti_tcp_assign,
	.give_up = stop_trying,
};

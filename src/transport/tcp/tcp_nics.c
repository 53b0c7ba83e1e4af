/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

#define BACKLOG 1024

/* -- Listening --------------------------------------------------------------- */

/* Listen on one NIC. A connection that such a socket accepts came in by that NIC, and its packets
 * leave by it, whatever the routing tables say: so a connection to its port is a rail, or fails. */
static tutti_status listen_on(struct tti_tcp_port *port, struct tti_tcp_nic *nic, int *out)
{
	struct epoll_event event = { .events = TTI_TCP_LISTENS };
	uint16_t number = 0;
	int fd;

	TTI_TRY(tti_listen(&number, BACKLOG, &fd));
	if (tti_tcp_bind_device(fd, nic->is.name) ||
	    epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		const tutti_status status =
			tti_fail_quiet(TUTTI_ESYS, "it cannot be bound to %s: %m", nic->is.name);

		tti_fd_close(&fd);
		return status;
	}
	nic->port = htobe16(number);
	*out = fd;
	return TUTTI_OK;
}

void tti_tcp_nics_listen(struct tti_tcp_port *port, struct tti_tcp_card *mine)
{
	size_t n = 0;

	for (size_t i = 0; i < mine->nnics; i++)
		n += mine->nic[i].is.kind != TTI_IFACE_LOOPBACK;
	for (size_t i = 0; i < mine->nnics && n > 1; i++) {
		if (mine->nic[i].is.kind == TTI_IFACE_LOOPBACK ||
		    !listen_on(port, &mine->nic[i], &port->nic_fd[i]))
			continue;
		tti_log(TTI_LOG_INFO, TTI_TCP, "no socket for %s alone: %s", mine->nic[i].is.name,
			tti_error_text());
	}
}

void tti_tcp_nics_release(struct tti_tcp_port *port)
{
	for (size_t i = 0; i < TTI_TCP_NICS_MOST; i++)
		tti_fd_close(&port->nic_fd[i]);
	while (port->prefer.n)
		tti_free(port->prefer.at[--port->prefer.n]);
	tti_vec_release(&port->prefer);
	tti_tcp_assignments_release(port);
}

/* -- Which first ------------------------------------------------------------- */

void tti_tcp_prefer(struct tti_port *base, const char *const *nics, int n)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);

	while (port->prefer.n)
		tti_free(port->prefer.at[--port->prefer.n]);
	for (int i = 0; i < n; i++) {
		char *name = tti_strdup(nics[i]);

		/* Without memory for a preference it has no effect. */
		if (!name || !tti_vec_push(&port->prefer, name)) {
			tti_free(name);
			return;
		}
	}
}

static size_t place_of(const struct tti_tcp_port *port, const char *name)
{
	size_t i = 0;

	while (i < port->prefer.n && strcmp(port->prefer.at[i], name) != 0)
		i++;
	return i;
}

void tti_tcp_nics_order(const struct tti_tcp_port *port, const struct tti_tcp_card *mine,
			uint8_t order[TTI_TCP_NICS_MOST])
{
	for (size_t i = 0; i < mine->nnics; i++) {
		const size_t rank = place_of(port, mine->nic[i].is.name);
		size_t at = i;

		for (; at > 0 && place_of(port, mine->nic[order[at - 1]].is.name) > rank; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t)i;
	}
}

/* -- Looking up -------------------------------------------------------------- */

/* The NICs that lanes may pair; every card also has the loopback interface. */
static size_t count_paired(const struct tti_tcp_card *card)
{
	size_t n = 0;

	for (size_t i = 0; i < card->nnics; i++)
		n += card->nic[i].is.kind != TTI_IFACE_LOOPBACK;
	return n;
}

bool tti_tcp_nics_several(const struct tti_tcp_card *card)
{
	return count_paired(card) > 1;
}

bool tti_tcp_nics_single(const struct tti_tcp_port *port, int peer)
{
	struct tti_tcp_card mine, theirs;

	if (port->options.sockets != 1)
		return false;
	tti_tcp_cards_get(&port->cards, port->base.rank, &mine);
	tti_tcp_cards_get(&port->cards, peer, &theirs);
	return !tti_tcp_nics_several(&mine) && !tti_tcp_nics_several(&theirs);
}

void tti_tcp_rail_make(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
		       const struct tti_tcp_way *way, struct tti_tcp_rail *out)
{
	const struct tti_tcp_nic *near = &mine->nic[mine->nic_of[way->from]];
	const struct tti_tcp_nic *far = &theirs->nic[theirs->nic_of[way->to]];

	*out = (struct tti_tcp_rail){
		.mine = (uint8_t)(1 + mine->nic_of[way->from]),
		.theirs = (uint8_t)(1 + theirs->nic_of[way->to]),
		.from = mine->addr[way->from],
		.to = theirs->addr[way->to],
	};
	memcpy(out->device, near->is.name, sizeof(out->device));
	out->from.port = 0;
	if (far->port)
		out->to.port = far->port;
	/* The number of the interface on the other side means nothing here. */
	if (out->to.scope)
		out->to.scope = out->from.scope;
}

void tti_tcp_lane_name(struct tti_tcp_link *link, int index, uint8_t mine, uint8_t theirs)
{
	struct tti_tcp_lane *lane = &link->lane[index];
	struct tti_tcp_card card;

	tti_tcp_cards_get(&link->port->cards, link->port->base.rank, &card);
	if (mine && mine <= card.nnics) {
		memcpy(lane->local_nic, card.nic[mine - 1].is.name, IFNAMSIZ);
		lane->local_mbps = card.nic[mine - 1].is.mbps;
	}
	tti_tcp_cards_get(&link->port->cards, link->base.peer, &card);
	if (theirs && theirs <= card.nnics) {
		memcpy(lane->remote_nic, card.nic[theirs - 1].is.name, IFNAMSIZ);
		lane->remote_mbps = card.nic[theirs - 1].is.mbps;
	}
	tti_tcp_lane_assign(link, index);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/error.h"

/* On several lanes, only each so many looks for a message goes beyond the lane on which the last
 * one came. */
#define LOOK_WIDE 4

/* The peer sends no more on this connection, in order (error 0) or not. One lane of several is
 * given up, unless all are about to end; the end of the last one is the end of the peer. */
static void end(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error)
{
	const bool others = tti_tcp_has_others(link, conn);

	if (others && (error || !link->in.ended)) {
		link->port->lane_leaves(link, conn->pass.index,
					error ? strerror(error) : "the other side closed it");
		return;
	}
	link->nconns -= tti_tcp_conn_counts(conn);
	conn->ended = true;
	conn->error = error;
	link->port->nup--;
	if (!tti_tcp_reader_idle(conn->reader)) {
		errno = error ? error : ECONNRESET;
		tti_tcp_link_lose(link, "its connection ended within a message", errno);
	} else if (error) {
		tti_tcp_link_cut(link, conn, error);
	}
}

/* Give up the lanes that the peer has given up: it sends on others what it had begun here. */
static void drop_usurped(struct tti_tcp_link *link)
{
	link->usurped = link->in.usurped;
	for (int i = 0; i < link->nlanes; i++) {
		if (link->conn[i] && link->conn[i]->reader->usurped)
			link->port->lane_leaves(link, i, "the other side has given it up");
	}
}

static void refuse(struct tti_tcp_link *link, const struct tti_tcp_conn *conn,
		   const struct tti_tcp_fault *fault)
{
	char from[TTI_ADDR_TEXT];

	if (!fault->field) {
		tti_addr_format(&link->lane[conn->pass.index].remote, from, sizeof(from));
		tti_tcp_link_fail(link,
				  tti_fail(TUTTI_EPROTO,
					   "rank %d: its connection from %s brought what rank %d "
					   "did not send: somebody on the network changed, left "
					   "out, repeated or made it up",
					   link->base.peer, from, link->base.peer));
		return;
	}
	tti_tcp_link_fail(link,
			  tti_fail(TUTTI_EPROTO,
				   "rank %d sent a frame whose %s is %llu; at most %llu is "
				   "possible here",
				   link->base.peer, fault->field, (unsigned long long)fault->value,
				   (unsigned long long)fault->most));
}

void tti_tcp_link_pull(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	while (link->state == TTI_TCP_LINK_UP && conn->state == TTI_TCP_UP && !conn->ended) {
		struct iovec iov[2];
		struct tti_tcp_fault fault;
		struct msghdr message = { .msg_iov = iov };
		size_t room;
		ssize_t got;

		message.msg_iovlen = (size_t)tti_tcp_reader_room(conn->reader, iov);
		room = iov[0].iov_len + (message.msg_iovlen > 1 ? iov[1].iov_len : 0);
		if (message.msg_iovlen == 1)
			got = recv(conn->fd, iov[0].iov_base, room, MSG_DONTWAIT);
		else
			got = recvmsg(conn->fd, &message, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got <= 0) {
			end(link, conn, got ? errno : 0);
			return;
		}
		link->heard = conn->pass.index;
		if (tti_tcp_reader_feed(conn->reader, &link->in, (size_t)got, &fault)) {
			refuse(link, conn, &fault);
			return;
		}
		if (link->in.ended)
			tti_tcp_conn_acknowledge(conn);
		if (link->in.usurped != link->usurped)
			drop_usurped(link);
		/* It read less than there was room for: nothing is left but maybe the end. */
		if ((size_t)got < room && !conn->hangup)
			return;
	}
}

/* First the lane on which something came last. */
void tti_tcp_link_look(struct tti_tcp_link *link)
{
	if (link->state != TTI_TCP_LINK_UP || (link->port->nup > TTI_TCP_FEW && link->nconns))
		return;
	if (link->conn[link->heard])
		tti_tcp_link_pull(link, link->conn[link->heard]);
	if (link->nconns == 1 || tti_tcp_inbox_oldest(&link->in) || ++link->looks % LOOK_WIDE)
		return;
	for (int i = 0; i < link->nlanes; i++) {
		if (link->conn[i] && i != link->heard)
			tti_tcp_link_pull(link, link->conn[i]);
	}
}

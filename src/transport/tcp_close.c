/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

/* How long shutdown() may take to get rid of what is unsent. */
#define FLUSH_MS 1000

void tti_tcp_close(struct tti_link *base)
{
	struct tti_tcp_link *link = (struct tti_tcp_link *)base;

	if (!link)
		return;
	if (link->state == TTI_TCP_LINK_UP)
		link->state = TTI_TCP_LINK_CLOSED;
	tti_tcp_link_push(link);
}

/* What the peer still sends is thrown away: it may wait for us to take it, and
 * closing over unread data would reset the connection and might take with it what
 * the peer has not read yet. Whether nothing more comes. */
static bool drain(struct tti_tcp_conn *conn)
{
	char waste[16384];
	ssize_t got;

	do
		got = recv(conn->fd, waste, sizeof(waste), MSG_DONTWAIT);
	while (got > 0 || (got < 0 && errno == EINTR));
	return !got || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* Whether the peer's machine has all we sent. Our end of stream counts as a byte,
 * and is not waited for: its acknowledgement is often delayed by 40 ms, and the
 * system sees to it after close(). */
static bool settle(struct tti_tcp_link *link)
{
	bool settled = true;

	if (link->state != TTI_TCP_LINK_CLOSED)
		return true;
	for (int i = 0; i < link->nconns; i++) {
		struct tti_tcp_conn *conn = link->conn[i];
		int unacked = 0;

		if (conn->ended || conn->broken)
			continue;
		if (!link->unsent && !conn->shut) {
			shutdown(conn->fd, SHUT_WR);
			conn->shut = true;
		}
		if (drain(conn))
			continue;
		settled &= conn->shut && (ioctl(conn->fd, SIOCOUTQ, &unacked) || unacked <= 1);
	}
	return settled && !link->unsent;
}

static void flush(struct tti_tcp_port *port)
{
	const int64_t deadline = tti_deadline(FLUSH_MS);
	bool settled;

	for (size_t i = 0; i < port->links.n; i++)
		tti_tcp_close(&port->links.at[i]->base);
	do {
		settled = true;
		for (size_t i = 0; i < port->links.n; i++)
			settled &= settle(port->links.at[i]);
		if (settled)
			return;
		tti_tcp_poll(port, 1);
	} while (tti_now_ns() < deadline);
	for (size_t i = 0; i < port->links.n; i++) {
		const struct tti_tcp_link *link = port->links.at[i];

		if (link->unsent)
			tti_log(TTI_LOG_WARN, TTI_TCP,
				"rank %d did not take the last %zu bytes in time", link->base.peer,
				link->unsent);
	}
}

void tti_tcp_shutdown(struct tti_port *base)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);

	if (!port)
		return;
	if (port->epoll_fd >= 0)
		flush(port);
	while (port->links.n)
		tti_tcp_link_free(port->links.at[--port->links.n]);
	while (port->rising.n)
		tti_tcp_conn_drop(port, port->rising.at[port->rising.n - 1]);
	tti_tcp_conn_reap(port);
	tti_fd_close(&port->listen_fd);
	tti_fd_close(&port->epoll_fd);
	tti_vec_release(&port->links);
	tti_vec_release(&port->rising);
	tti_free(port->link_of);
	tti_free(port->cards);
	tti_free(port->card_at);
	explicit_bzero(port->secret, sizeof(port->secret));
	tti_free(port);
}

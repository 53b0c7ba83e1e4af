/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"

/* How long shutdown() waits for peers whose machines take nothing more, and for ones that do. */
#define FLUSH_MS      1000
#define FLUSH_MOST_MS 10000

void tti_tcp_close(struct tti_link *base)
{
	struct tti_tcp_link *link = (struct tti_tcp_link *)base;

	if (!link)
		return;
	if (link->state == TTI_TCP_LINK_UP)
		link->state = TTI_TCP_LINK_CLOSED;
	tti_tcp_link_push(link);
}

/* Throw away what the peer still sends: the peer may wait for us to take it, and to close with
 * unread data would reset the connection and might destroy what the peer has not read yet. Whether
 * nothing more comes; *error: errno, 0 for an orderly end. */
static bool drain(struct tti_tcp_conn *conn, int *error)
{
	char waste[16384];
	bool some = false;
	ssize_t got;

	do {
		got = recv(conn->fd, waste, sizeof(waste), MSG_DONTWAIT);
		some |= got > 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	*error = got ? errno : 0;
	if (some)
		tti_tcp_conn_acknowledge(conn);
	return !got || (*error != EAGAIN && *error != EWOULDBLOCK);
}

/* The bytes of all lanes that the machine of the peer has not acknowledged. A lane that breaks, or
 * ends before it took all, is given up; the last one then counts for nothing. */
static size_t unacked(struct tti_tcp_link *link)
{
	size_t sum = 0;

	for (int i = 0; i < link->nlanes; i++) {
		struct tti_tcp_conn *conn = link->conn[i];
		int bytes = 0, error;

		if (!conn || conn->ended || conn->broken)
			continue;
		if (!ioctl(conn->fd, SIOCOUTQ, &bytes) && bytes > 0)
			bytes -= conn->shut;
		if (!drain(conn, &error))
			sum += (size_t)bytes;
		else if (error || bytes)
			tti_tcp_lane_leaves(link, i, error ? strerror(error) : "it was closed");
	}
	return sum;
}

static bool is_open(const struct tti_tcp_conn *conn)
{
	return conn && !conn->shut && !conn->ended && !conn->broken;
}

/* With several lanes: say END, so that lanes that end from now on do not count as lost. */
static void say_end(struct tti_tcp_link *link)
{
	for (int i = 0; i < link->nlanes && link->nconns > 1; i++) {
		struct tti_tcp_conn *conn = link->conn[i];

		if (!is_open(conn) || conn->said_end)
			continue;
		conn->said_end = true;
		tti_tcp_load_control(link, conn, TTI_TCP_END);
		tti_tcp_owe(link, conn->nout);
	}
	tti_tcp_link_push(link);
}

static void shut(struct tti_tcp_link *link)
{
	for (int i = 0; i < link->nlanes; i++) {
		struct tti_tcp_conn *conn = link->conn[i];

		if (!is_open(conn))
			continue;
		shutdown(conn->fd, SHUT_WR);
		conn->shut = true;
	}
}

/* How many bytes of what we sent the machine of the peer does not have. Our end of stream counts as
 * a byte to TCP, and is not waited for: its acknowledgement is often delayed by 40 ms, and the
 * system delivers it after close(). No lane of several is shut before all has arrived, as one may
 * have to take over from another. */
static size_t settle(struct tti_tcp_link *link)
{
	size_t left;

	if (link->state != TTI_TCP_LINK_CLOSED)
		return 0;
	if (!link->unsent)
		say_end(link);
	if (!link->unsent && link->nconns <= 1)
		shut(link);
	left = unacked(link);
	left += link->unsent;
	if (!left)
		shut(link);
	return left;
}

static void give_up(struct tti_tcp_port *port)
{
	for (size_t i = 0; i < port->links.n; i++) {
		struct tti_tcp_link *link = port->links.at[i];
		const size_t left = settle(link);

		if (left)
			tti_log(TTI_LOG_WARN, TTI_TCP,
				"rank %d did not take the last %zu bytes in time", link->base.peer,
				left);
		if (!link->unsent)
			shut(link);
	}
}

static void flush(struct tti_tcp_port *port)
{
	const int64_t last = tti_deadline(FLUSH_MOST_MS);
	int64_t deadline = 0, now;
	size_t before = SIZE_MAX;

	for (size_t i = 0; i < port->links.n; i++)
		tti_tcp_close(&port->links.at[i]->base);
	do {
		size_t left = 0;

		for (size_t i = 0; i < port->links.n; i++)
			left += settle(port->links.at[i]);
		if (!left)
			return;
		if (left < before)
			deadline = tti_deadline(FLUSH_MS);
		before = left;
		tti_tcp_poll(port, 1);
		now = tti_now_ns();
		tti_tcp_port_watch(port, now);
		tti_tcp_port_push(port);
	} while (now < deadline && now < last);
	give_up(port);
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
	if (port->dropped > 0)
		tti_log(TTI_LOG_INFO, TTI_TCP,
			"rank %d: %llu connections were dropped that did not belong here",
			port->base.rank, (unsigned long long)port->dropped);
	tti_fd_close(&port->listen_fd);
	tti_tcp_nics_release(port);
	tti_fd_close(&port->epoll_fd);
	tti_vec_release(&port->links);
	tti_vec_release(&port->rising);
	tti_free(port->link_of);
	tti_tcp_cards_release(&port->cards);
	tti_secret_free(port);
}

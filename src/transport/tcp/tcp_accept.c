/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/mem.h"

/* Most pending connections besides one per rank; the oldest gives way. */
#define PENDING_MOST 256
/* Most connections that one look at a listening socket accepts: a flood must not keep the caller
 * from its links and its timeout. The next look accepts the rest. */
#define ACCEPT_MOST  64
/* How often accept() is tried while it fails, for want of descriptors or memory. */
#define STARVED_NS   (20 * TTI_NS_PER_MS)
/* Dropped connections that are logged one by one; all are counted when the port closes. */
#define LOGGED       20

static void turn_away(struct tti_tcp_port *port, struct tti_tcp_conn *conn, const char *why)
{
	struct tti_addr local, remote = { 0 };
	char text[TTI_ADDR_TEXT] = "?";

	port->dropped++;
	if (port->dropped > LOGGED) {
		tti_tcp_conn_drop(port, conn);
		return;
	}
	if (tti_log_enabled(TTI_LOG_INFO, TTI_TCP))
		tti_tcp_conn_ends(conn, &local, &remote);
	if (remote.family)
		tti_addr_format(&remote, text, sizeof(text));
	tti_log(TTI_LOG_INFO, TTI_TCP, "connection from %s dropped (the %llu.): %s", text,
		(unsigned long long)port->dropped, why);
	tti_tcp_conn_drop(port, conn);
}

static void make_room(struct tti_tcp_port *port)
{
	size_t strangers = 0;
	struct tti_tcp_conn *oldest = NULL;

	if (port->rising.n <= PENDING_MOST)
		return;
	for (size_t i = 0; i < port->rising.n; i++) {
		struct tti_tcp_conn *conn = port->rising.at[i];

		if (conn->connector || conn->state != TTI_TCP_PROVING)
			continue;
		strangers++;
		if (!oldest)
			oldest = conn;
	}
	if (strangers > PENDING_MOST + (size_t)port->base.nranks)
		turn_away(port, oldest, "too many at a time");
}

/* A listening socket tells of each connection once. Those that are left in the backlog are looked at
 * again later, unless their connectors give up first. */
static void rest(struct tti_tcp_port *port)
{
	port->accept_at = tti_now_ns() + STARVED_NS;
}

/* Whether to accept again at once. */
static bool accept_again(struct tti_tcp_port *port)
{
	if (errno == EINTR || errno == ECONNABORTED)
		return true;
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return false;
	if (!port->starved)
		tti_log(TTI_LOG_WARN, TTI_TCP, "rank %d cannot accept: %m", port->base.rank);
	port->starved = true;
	rest(port);
	return false;
}

static void accept_from(struct tti_tcp_port *port, int listen_fd)
{
	struct epoll_event event = { .events = TTI_TCP_LISTENS };

	for (int i = 0; i < ACCEPT_MOST; i++) {
		struct tti_tcp_conn *conn;
		const int fd = tti_fork_accept(listen_fd, NULL, NULL);

		if (fd < 0) {
			if (accept_again(port))
				continue;
			return;
		}
		port->starved = false;
		make_room(port);
		if (tti_tcp_conn_create(port, fd, &conn)) {
			rest(port);
			return;
		}
		conn->state = TTI_TCP_PROVING;
		conn->deadline = tti_deadline(port->options.handshake_ms);
		if (tti_tcp_conn_tune(port, fd)) {
			turn_away(port, conn, "its options cannot be set");
			continue;
		}
		tti_auth_init(conn->auth, false, TTI_AUTH_DATA, port->secret, NULL,
			      TTI_TCP_PASS_BYTES);
		tti_tcp_accept_event(port, conn);
	}
	/* Told once more, if there are more. */
	(void)epoll_ctl(port->epoll_fd, EPOLL_CTL_MOD, listen_fd, &event);
}

void tti_tcp_accept(struct tti_tcp_port *port)
{
	port->accept_at = TTI_NEVER;
	accept_from(port, port->listen_fd);
	for (size_t i = 0; i < TTI_TCP_NICS_MOST; i++) {
		if (port->nic_fd[i] >= 0)
			accept_from(port, port->nic_fd[i]);
	}
}

/* One more lane of a link that is up, or one that was lost. */
static void admit_lane(struct tti_tcp_port *port, struct tti_tcp_link *link,
		       struct tti_tcp_conn *conn)
{
	const struct tti_tcp_pass pass = conn->pass;

	if (link->nonce != pass.nonce) {
		turn_away(port, conn, "there is a link to that rank");
		return;
	}
	conn->link = link;
	conn->state = TTI_TCP_PROVEN;
	conn->deadline = TTI_NEVER;
	tti_tcp_lane_name(link, pass.index, pass.to_nic, pass.from_nic);
	if (tti_tcp_lane_joins(link, conn))
		tti_log(TTI_LOG_INFO, TTI_TCP, "lane %d of the link to rank %d: %s", pass.index,
			link->base.peer, tti_error_text());
}

/* Its HELLO came: it is a connection of a link. */
static void admit(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	const struct tti_tcp_pass *pass = &conn->pass;
	struct tti_tcp_link *link = port->link_of[pass->from];

	if (link && link->state == TTI_TCP_LINK_UP) {
		admit_lane(port, link, conn);
		return;
	}
	if (pass->index) {
		turn_away(port, conn, "there is no link for this lane");
		return;
	}
	if (!link && tti_tcp_link_create(port, (int)pass->from, &link)) {
		turn_away(port, conn, "out of memory");
		return;
	}
	if (link->state != TTI_TCP_LINK_NEW) {
		turn_away(port, conn, "there is a link to that rank");
		return;
	}
	link->nonce = pass->nonce;
	conn->link = link;
	conn->state = TTI_TCP_PROVEN;
	conn->deadline = TTI_NEVER;
	link->conn[0] = conn;
	link->nconns = 1;
	tti_tcp_lane_name(link, 0, pass->to_nic, pass->from_nic);
	tti_tcp_link_raise(link);
}

static void greeting(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	const tutti_status status = tti_tcp_conn_greeted(conn);

	if (status == TUTTI_OK)
		admit(port, conn);
	else if (status == TUTTI_EPEER)
		/* The peer has connected over another address. */
		tti_tcp_conn_drop(port, conn);
	else if (status != TUTTI_AGAIN)
		turn_away(port, conn, "no greeting");
}

static void proving(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	const tutti_status status = tti_auth_step(conn->auth, conn->fd);
	struct tti_tcp_pass *pass = &conn->pass;

	if (status == TUTTI_AGAIN)
		return;
	if (status) {
		turn_away(port, conn, "it does not hold the secret of this communicator");
		return;
	}
	tti_tcp_pass_get(conn->auth->payload, pass);
	if (pass->to != (uint32_t)port->base.rank || pass->from <= pass->to ||
	    pass->from >= (uint32_t)port->base.nranks || pass->index >= TTI_TCP_LANES_MOST) {
		turn_away(port, conn, "it is meant for another rank");
		return;
	}
	tti_tcp_conn_proven(conn);
	conn->state = TTI_TCP_GREETING;
	/* It is a rank, which may be stopped before it goes on. */
	conn->deadline = TTI_NEVER;
	if (tti_tcp_conn_greet(conn)) {
		turn_away(port, conn, "closed");
		return;
	}
	greeting(port, conn);
}

void tti_tcp_accept_event(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	if (conn->state == TTI_TCP_PROVING)
		proving(port, conn);
	else if (conn->state == TTI_TCP_GREETING)
		greeting(port, conn);
}

void tti_tcp_accept_expire(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	turn_away(port, conn, "it took too long");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

#include "util/clock.h"
#include "util/error.h"

/* How often timers are looked at while links come up, while strangers or lanes do, lanes that may
 * be silent, and dead machines for. */
#define TIMER_NS  (5 * TTI_NS_PER_MS)
#define RISING_NS (50 * TTI_NS_PER_MS)
#define DOUBT_NS  (50 * TTI_NS_PER_MS)
#define ALIVE_NS  (1000 * TTI_NS_PER_MS)
/* How long to sleep while messages wait for a lane that is full: nothing else wakes. */
#define HELD_NS   (200 * 1000)
#define EVENTS    64

/* A connection that is not up yet. */
static void handle_rising(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	if (!conn->connector)
		tti_tcp_accept_event(port, conn);
	else if (conn->link->dial)
		tti_tcp_dial_event(conn);
	else if (tti_tcp_lanes_event(conn))
		tti_tcp_lanes_opened(conn, tti_tcp_lane_joins(conn->link, conn));
}

static void expire(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	if (!conn->connector)
		tti_tcp_accept_expire(port, conn);
	else if (conn->link->dial)
		tti_tcp_dial_expire(conn);
	else
		tti_tcp_lanes_expire(conn);
}

static void handle(struct tti_tcp_port *port, struct tti_tcp_conn *conn, uint32_t events)
{
	if (conn->state == TTI_TCP_DEAD)
		return;
	if (conn->state != TTI_TCP_UP) {
		handle_rising(port, conn);
		return;
	}
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		conn->hangup = true;
	tti_tcp_link_pull(conn->link, conn);
	if (events & EPOLLOUT) {
		tti_tcp_conn_block(port, conn, false);
		tti_tcp_link_push(conn->link);
	}
}

static void look_at_lanes(struct tti_tcp_link *link, int64_t now)
{
	const int64_t next = tti_tcp_lanes_timer(link, now);

	if (next < link->port->lanes_at)
		link->port->lanes_at = next;
}

static void look_at_timers(struct tti_tcp_port *port)
{
	const int64_t now = tti_now_ns();

	if (now < port->look_at)
		return;
	port->look_at = now + TIMER_NS;
	port->lanes_at = TTI_NEVER;
	for (size_t i = 0; i < port->rising.n;) {
		struct tti_tcp_conn *conn = port->rising.at[i];

		if (now < conn->deadline) {
			i++;
			continue;
		}
		expire(port, conn);
		i = 0;
	}
	for (size_t i = 0; i < port->links.n; i++) {
		struct tti_tcp_link *link = port->links.at[i];

		if (link->dial)
			tti_tcp_dial_timer(link, now);
		else if (link->lanes)
			look_at_lanes(link, now);
	}
}

void tti_tcp_poll(struct tti_tcp_port *port, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	bool knocks = false;
	int n;

	do {
		n = epoll_wait(port->epoll_fd, events, EVENTS, timeout_ms);
		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				handle(port, events[i].data.ptr, events[i].events);
			else
				knocks = true;
		}
		timeout_ms = 0;
	} while (n == EVENTS);
	/* Last, as each one that is accepted is a new event. */
	if (knocks || (port->accept_at != TTI_NEVER && port->accept_at <= tti_now_ns()))
		tti_tcp_accept(port);
	if (port->ncoming || port->rising.n || port->lanes_at != TTI_NEVER)
		look_at_timers(port);
	if (port->dead)
		tti_tcp_conn_reap(port);
}

void tti_tcp_progress(struct tti_port *base)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);

	if (!(++port->ticks & 1023))
		tti_tcp_port_watch(port, tti_now_ns());
	if (port->nheld)
		tti_tcp_port_push(port);
	if (port->nup <= TTI_TCP_FEW && !port->ncoming && !port->nblocked &&
	    ++port->skipped < TTI_TCP_SKIP)
		return;
	port->skipped = 0;
	tti_tcp_poll(port, 0);
}

/* How long a sleep may be, since no event reports timers, lanes and what is left in a backlog. */
static int64_t longest_nap(const struct tti_tcp_port *port, int64_t now)
{
	int64_t most = ALIVE_NS;

	if (port->nheld)
		return HELD_NS;
	if (port->ncoming)
		return TIMER_NS;
	if (port->rising.n)
		most = RISING_NS;
	if (port->lanes_at - now < most)
		most = port->lanes_at - now;
	if (port->accept_at - now < most)
		most = port->accept_at - now;
	return most > TIMER_NS ? most : TIMER_NS;
}

static void nap(struct tti_port *base, int64_t timeout_ns)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	struct pollfd fd = { .fd = port->epoll_fd, .events = POLLIN };
	const int64_t now = tti_now_ns(), most = longest_nap(port, now);
	struct timespec timeout;

	tti_tcp_port_watch(port, now);
	if (timeout_ns > most)
		timeout_ns = most;
	timeout.tv_sec = timeout_ns / 1000000000;
	timeout.tv_nsec = timeout_ns % 1000000000;
	(void)ppoll(&fd, 1, &timeout, NULL);
	port->skipped = 0;
	tti_tcp_poll(port, 0);
}

int64_t tti_tcp_tend(struct tti_port *base)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	const int64_t now = tti_now_ns();
	int64_t most;

	if (!port->spares)
		return TTI_NEVER;
	tti_tcp_port_watch(port, now);
	if (port->nheld)
		tti_tcp_port_push(port);
	port->skipped = 0;
	tti_tcp_poll(port, 0);
	most = longest_nap(port, now);
	if (most > DOUBT_NS && tti_tcp_port_doubts(port))
		most = DOUBT_NS;
	return now + (most > TIMER_NS ? most : TIMER_NS);
}

static int descriptor(const struct tti_port *base)
{
	return ((const struct tti_tcp_port *)base)->epoll_fd;
}

const struct tti_sleep_ops tti_tcp_sleep_ops = { .wait = nap, .descriptor = descriptor };

/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_conn.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/secret.h"
#include "util/wire.h"

/* A machine that answers nothing for so long is dead. */
#define KEEPALIVE_IDLE_S  5
#define KEEPALIVE_EVERY_S 5
#define KEEPALIVE_MOST    3
#define SILENT_MS         15000

tutti_status tti_tcp_conn_create(struct tti_tcp_port *port, int fd, struct tti_tcp_conn **out)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct tti_tcp_conn *conn = tti_secret_zalloc(sizeof(*conn));

	if (!conn || !(conn->auth = tti_secret_zalloc(sizeof(*conn->auth))) ||
	    !tti_vec_push(&port->rising, conn)) {
		if (conn)
			tti_secret_free(conn->auth);
		tti_secret_free(conn);
		tti_fd_close(&fd);
		return tti_fail(TUTTI_ENOMEM, "rank %d: a TCP connection", port->base.rank);
	}
	conn->fd = fd;
	event.data.ptr = conn;
	if (epoll_ctl(port->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
		const tutti_status status =
			tti_fail(TUTTI_ESYS, "rank %d: epoll_ctl: %m", port->base.rank);

		tti_tcp_conn_drop(port, conn);
		return status;
	}
	*out = conn;
	return TUTTI_OK;
}

static tutti_status set(int fd, int level, int option, int value, const char *name)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		return tti_fail(TUTTI_ESYS, "setsockopt %s to %d: %m", name, value);
	return TUTTI_OK;
}

/* A socket of IPv6 may be connected to an address of IPv4: then that of IPv4 counts. */
static tutti_status set_traffic_class(int fd, int value)
{
	int domain;
	socklen_t nbytes = sizeof(domain);

	TTI_TRY(set(fd, IPPROTO_IP, IP_TOS, value, "IP_TOS"));
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &nbytes))
		return tti_fail(TUTTI_ESYS, "getsockopt SO_DOMAIN: %m");
	return domain == AF_INET6 ? set(fd, IPPROTO_IPV6, IPV6_TCLASS, value, "IPV6_TCLASS")
				  : TUTTI_OK;
}

/* No TCP_USER_TIMEOUT: it also ends connections whose peer lives but does not read
 * for long (a zero window), and a rank may well come late. A dead machine is found
 * by keepalive when nothing is in flight, else by tti_tcp_conn_is_silent(). */
tutti_status tti_tcp_conn_tune(struct tti_tcp_port *port, int fd)
{
	TTI_TRY(set(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
	TTI_TRY(set(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
	TTI_TRY(set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S, "TCP_KEEPIDLE"));
	TTI_TRY(set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S, "TCP_KEEPINTVL"));
	TTI_TRY(set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_MOST, "TCP_KEEPCNT"));
	if (port->options.traffic_class)
		TTI_TRY(set_traffic_class(fd, port->options.traffic_class));
	if (port->options.sndbuf)
		TTI_TRY(set(fd, SOL_SOCKET, SO_SNDBUF, port->options.sndbuf, "SO_SNDBUF"));
	if (port->options.congestion)
		TTI_TRY(tti_tcp_check_congestion(fd, port->options.congestion));
	return TUTTI_OK;
}

tutti_status tti_tcp_check_congestion(int fd, const char *name)
{
	char known[256] = "";
	FILE *file;
	int error;

	if (!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)))
		return TUTTI_OK;
	error = errno;
	file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re");
	if (file) {
		if (!fgets(known, sizeof(known), file))
			known[0] = 0;
		fclose(file);
	}
	known[strcspn(known, "\n")] = 0;
	errno = error;
	return tti_fail(TUTTI_EINVAL,
			"TUTTI_TCP_CONGESTION=%s: the kernel refuses it (%m); it offers: %s", name,
			known);
}

static void leave_rising(struct tti_tcp_port *port, const struct tti_tcp_conn *conn)
{
	for (size_t i = 0; i < port->rising.n; i++) {
		if (port->rising.at[i] != conn)
			continue;
		port->rising.n--;
		memmove(&port->rising.at[i], &port->rising.at[i + 1],
			(port->rising.n - i) * sizeof(struct tti_tcp_conn *));
		return;
	}
}

void tti_tcp_conn_drop(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	if (!conn || conn->state == TTI_TCP_DEAD)
		return;
	if (conn->state != TTI_TCP_UP)
		leave_rising(port, conn);
	else if (!conn->ended)
		port->nup--;
	if (conn->blocked)
		port->nblocked--;
	/* The event that tells of its end may tell of room as well. */
	conn->blocked = false;
	tti_fd_close(&conn->fd);
	conn->state = TTI_TCP_DEAD;
	conn->next_dead = port->dead;
	port->dead = conn;
}

void tti_tcp_conn_reap(struct tti_tcp_port *port)
{
	while (port->dead) {
		struct tti_tcp_conn *conn = port->dead;

		port->dead = conn->next_dead;
		tti_secret_free(conn->auth);
		tti_free(conn->reader);
		tti_free(conn->sealed);
		tti_secret_free(conn);
	}
}

tutti_status tti_tcp_conn_raise(struct tti_tcp_port *port, struct tti_tcp_conn *conn)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = conn };

	conn->reader = tti_alloc(sizeof(*conn->reader));
	if (!conn->reader)
		return tti_fail(TUTTI_ENOMEM, "link to rank %d", conn->link->base.peer);
	memset(conn->reader, 0, offsetof(struct tti_tcp_reader, ahead));
	conn->reader->seal = &conn->in;
	conn->reader->encrypted = port->options.encrypt;
	if (port->options.encrypt) {
		conn->sealed = tti_alloc(TTI_TCP_SEALED + port->base.slot_bytes + TTI_SEAL_MAC);
		if (!conn->sealed)
			return tti_fail(TUTTI_ENOMEM, "link to rank %d", conn->link->base.peer);
	}
	if (epoll_ctl(port->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event))
		return tti_fail(TUTTI_ESYS, "link to rank %d: epoll_ctl: %m",
				conn->link->base.peer);
	leave_rising(port, conn);
	conn->state = TTI_TCP_UP;
	port->nup++;
	tti_secret_free(conn->auth);
	conn->auth = NULL;
	return TUTTI_OK;
}

void tti_tcp_conn_block(struct tti_tcp_port *port, struct tti_tcp_conn *conn, bool blocked)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = conn };

	if (conn->blocked == blocked)
		return;
	if (blocked)
		event.events |= EPOLLOUT;
	/* Cannot fail: the descriptor is registered, and no memory is needed. */
	(void)epoll_ctl(port->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event);
	conn->blocked = blocked;
	port->nblocked += blocked ? 1 : -1;
}

void tti_tcp_conn_proven(struct tti_tcp_conn *conn)
{
	const struct tti_seal_keys *keys = tti_auth_keys(conn->auth);

	tti_seal_init(&conn->in, keys->cipher, keys->in);
	tti_seal_init(&conn->out_seal, keys->cipher, keys->out);
}

tutti_status tti_tcp_conn_greet(struct tti_tcp_conn *conn)
{
	const struct tti_tcp_frame frame = {
		.type = TTI_TCP_HELLO,
		.seq = conn->pass.index,
		.tag = conn->pass.nonce,
	};
	uint8_t bytes[TTI_TCP_SEALED];

	tti_tcp_frame_put(bytes, &frame);
	tti_tcp_frame_seal(bytes, &conn->out_seal);
	if (send(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(bytes))
		return TUTTI_EPEER;
	return TUTTI_OK;
}

tutti_status tti_tcp_conn_greeted(struct tti_tcp_conn *conn)
{
	struct tti_tcp_frame frame;
	struct tti_tcp_fault fault;

	while (conn->nhello < TTI_TCP_SEALED) {
		const ssize_t got = recv(conn->fd, conn->hello + conn->nhello,
					 TTI_TCP_SEALED - conn->nhello, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return TUTTI_AGAIN;
		if (got <= 0)
			return TUTTI_EPEER;
		conn->nhello += (size_t)got;
	}
	if (tti_tcp_frame_open(conn->hello, &conn->in) ||
	    tti_tcp_frame_get(conn->hello, &frame, &fault) || frame.type != TTI_TCP_HELLO ||
	    frame.seq != conn->pass.index || frame.tag != conn->pass.nonce)
		return TUTTI_EPROTO;
	return TUTTI_OK;
}

static tutti_status stop(char why[TTI_TCP_WHY], const char *text)
{
	snprintf(why, TTI_TCP_WHY, "%s", text);
	return TUTTI_EPEER;
}

static tutti_status greeting(struct tti_tcp_conn *conn, char why[TTI_TCP_WHY])
{
	switch ((int)tti_tcp_conn_greeted(conn)) {
	case TUTTI_OK:
		conn->state = TTI_TCP_PROVEN;
		conn->deadline = TTI_NEVER;
		return TUTTI_OK;
	case TUTTI_AGAIN:
		return TUTTI_AGAIN;
	case TUTTI_EPEER:
		return stop(why, "another rank answered, or one that is closing");
	default:
		return stop(why, "answered something that is no greeting");
	}
}

static tutti_status proving(struct tti_tcp_conn *conn, char why[TTI_TCP_WHY])
{
	const tutti_status status = tti_auth_step(conn->auth, conn->fd);

	if (status == TUTTI_AGAIN)
		return status;
	if (status) {
		snprintf(why, TTI_TCP_WHY, "handshake: %s", tti_error_text());
		return TUTTI_EPEER;
	}
	tti_tcp_conn_proven(conn);
	conn->state = TTI_TCP_GREETING;
	return greeting(conn, why);
}

void tti_tcp_conn_ends(const struct tti_tcp_conn *conn, struct tti_addr *local,
		       struct tti_addr *remote)
{
	struct sockaddr_storage who;
	socklen_t size = sizeof(who);

	if (!getsockname(conn->fd, (struct sockaddr *)&who, &size))
		(void)tti_addr_from_sock((struct sockaddr *)&who, local);
	size = sizeof(who);
	if (!getpeername(conn->fd, (struct sockaddr *)&who, &size))
		(void)tti_addr_from_sock((struct sockaddr *)&who, remote);
}

bool tti_tcp_conn_info(const struct tti_tcp_conn *conn, struct tcp_info *out)
{
	socklen_t size = sizeof(*out);

	memset(out, 0, sizeof(*out));
	return !getsockopt(conn->fd, IPPROTO_TCP, TCP_INFO, out, &size);
}

/* Find out between which NICs a connection goes, where that was left to the system. */
static void find_nics(struct tti_tcp_conn *conn)
{
	struct tti_tcp_port *port = conn->link->port;
	struct tti_addr local = { 0 }, remote = { 0 };
	struct tti_tcp_card card;

	if (conn->pass.from_nic)
		return;
	tti_tcp_conn_ends(conn, &local, &remote);
	tti_tcp_cards_get(&port->cards, port->base.rank, &card);
	conn->pass.from_nic = tti_tcp_card_nic_of(&card, &local);
	tti_tcp_cards_get(&port->cards, conn->link->base.peer, &card);
	conn->pass.to_nic = tti_tcp_card_nic_of(&card, &remote);
}

static tutti_status connecting(struct tti_tcp_conn *conn, char why[TTI_TCP_WHY])
{
	struct sockaddr_storage who;
	socklen_t size = sizeof(int);
	uint8_t pass[TTI_TCP_PASS_BYTES];
	int error = 0;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	conn->error = error;
	if (error)
		return stop(why, strerror(error));
	size = sizeof(who);
	if (getpeername(conn->fd, (struct sockaddr *)&who, &size))
		return TUTTI_AGAIN;
	find_nics(conn);
	tti_tcp_pass_put(&conn->pass, pass);
	tti_auth_init(conn->auth, true, TTI_AUTH_DATA, conn->link->port->secret, pass,
		      sizeof(pass));
	conn->state = TTI_TCP_PROVING;
	return proving(conn, why);
}

tutti_status tti_tcp_conn_step(struct tti_tcp_conn *conn, char why[TTI_TCP_WHY])
{
	switch (conn->state) {
	case TTI_TCP_CONNECTING:
		return connecting(conn, why);
	case TTI_TCP_PROVING:
		return proving(conn, why);
	case TTI_TCP_GREETING:
		return greeting(conn, why);
	case TTI_TCP_PROVEN:
	case TTI_TCP_UP:
	case TTI_TCP_DEAD:
		break;
	}
	return TUTTI_AGAIN;
}

void tti_tcp_conn_acknowledge(struct tti_tcp_conn *conn)
{
	const int yes = 1;

	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
}

bool tti_tcp_conn_is_silent(struct tti_tcp_conn *conn, int64_t now)
{
	struct tcp_info info;

	if (!tti_tcp_conn_info(conn, &info))
		return false;
	/* Probes of a closed window are answered by a machine that lives. */
	if ((!info.tcpi_unacked && !info.tcpi_probes) || info.tcpi_last_ack_recv < 1000) {
		conn->silent_since = 0;
		return false;
	}
	if (!conn->silent_since)
		conn->silent_since = now;
	return now - conn->silent_since >= SILENT_MS * TTI_NS_PER_MS &&
	       info.tcpi_last_ack_recv >= SILENT_MS;
}

void tti_tcp_pass_put(const struct tti_tcp_pass *pass, uint8_t bytes[TTI_TCP_PASS_BYTES])
{
	memset(bytes, 0, TTI_TCP_PASS_BYTES);
	tti_wire_put32(bytes, pass->from);
	tti_wire_put32(bytes + 4, pass->to);
	tti_wire_put64(bytes + 8, pass->nonce);
	bytes[16] = pass->index;
	bytes[17] = pass->total;
	bytes[18] = pass->from_nic;
	bytes[19] = pass->to_nic;
}

void tti_tcp_pass_get(const uint8_t bytes[TTI_TCP_PASS_BYTES], struct tti_tcp_pass *out)
{
	out->from = tti_wire_get32(bytes);
	out->to = tti_wire_get32(bytes + 4);
	out->nonce = tti_wire_get64(bytes + 8);
	out->index = bytes[16];
	out->total = bytes[17];
	out->from_nic = bytes[18];
	out->to_nic = bytes[19];
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* The next address is tried beside the ones under way after so long: sooner
 * when none of them has even connected. */
#define STAGGER_NS           (100 * TTI_NS_PER_MS)
#define STAGGER_CONNECTED_NS (1000 * TTI_NS_PER_MS)
/* After all have failed: wait, twice as long each time, and start over. */
#define BACKOFF_MS           50
#define BACKOFF_MOST_MS      1000
/* An attempt in which nothing happens for so long has failed. */
#define ATTEMPT_MS           15000
/* So many rounds of nothing but refusals (some 3 s) are an answer. */
#define ROUNDS_MOST          7

#define NO_HANDSHAKE "connected, but it does not answer the handshake"

void tti_tcp_dial_free(struct tti_tcp_link *link)
{
	tti_free(link->dial);
	link->dial = NULL;
}

static tutti_status renew(struct tti_tcp_dial *dial)
{
	dial->next = 0;
	dial->winner = -1;
	if (getrandom(&dial->nonce, sizeof(dial->nonce), 0) != sizeof(dial->nonce))
		return tti_fail(TUTTI_ESYS, "getrandom: %m");
	return TUTTI_OK;
}

tutti_status tti_tcp_dial_start(struct tti_tcp_link *link)
{
	struct tti_tcp_port *port = link->port;
	const int peer = link->base.peer;
	const uint8_t *bytes = port->cards + port->card_at[peer];
	const size_t nbytes = port->card_at[peer + 1] - port->card_at[peer];
	struct tti_tcp_card card;
	struct tti_tcp_fault fault;
	struct tti_tcp_dial *dial;

	if (tti_tcp_card_get(bytes, nbytes, &card, &fault) || !tti_tcp_card_running(&card))
		return tti_fail(TUTTI_EINVAL, "rank %d has no address for TCP", peer);
	link->dial = dial = tti_zalloc(sizeof(*dial));
	if (!dial)
		return tti_fail(TUTTI_ENOMEM, "link to rank %d", peer);
	dial->naddrs = tti_tcp_card_running(&card);
	link->total = port->options.sockets;
	memcpy(dial->addr, card.addr, sizeof(dial->addr));
	TTI_TRY(renew(dial));
	tti_tcp_dial_timer(link, tti_now_ns());
	return TUTTI_OK;
}

/* Attempts of this link under way, and whether one has got as far as TCP goes. */
static size_t count_attempts(const struct tti_tcp_link *link, bool *connected)
{
	size_t n = 0;

	*connected = false;
	for (size_t i = 0; i < link->port->rising.n; i++) {
		const struct tti_tcp_conn *conn = link->port->rising.at[i];

		if (conn->link != link)
			continue;
		n++;
		*connected |= conn->state != TTI_TCP_CONNECTING;
	}
	return n;
}

static void drop_attempts(struct tti_tcp_link *link, const struct tti_tcp_conn *but)
{
	struct tti_tcp_port *port = link->port;

	for (size_t i = port->rising.n; i-- > 0;) {
		if (port->rising.at[i]->link == link && port->rising.at[i] != but)
			tti_tcp_conn_drop(port, port->rising.at[i]);
	}
}

static void note(struct tti_tcp_dial *dial, int candidate, bool final, const char *why)
{
	dial->final[candidate] = final;
	snprintf(dial->why[candidate], sizeof(dial->why[candidate]), "%s", why);
}

/* This attempt has failed (why: NULL if that is noted); try the next address at once. If it had come to the
 * further connections of a link, all of it starts over. */
static void failed(struct tti_tcp_conn *conn, bool final, const char *why)
{
	struct tti_tcp_link *link = conn->link;
	struct tti_tcp_dial *dial = link->dial;
	const int candidate = conn->candidate;

	if (why)
		note(dial, candidate, final, why);
	tti_tcp_conn_drop(link->port, conn);
	dial->next_at = 0;
	if (dial->winner < 0)
		return;
	drop_attempts(link, NULL);
	memset(link->conn, 0, sizeof(link->conn));
	link->nconns = 0;
	dial->winner = -1;
	dial->next = dial->naddrs;
}

/* Begin an attempt. false: failed at once, noted. */
static bool attempt(struct tti_tcp_link *link, int candidate, int index)
{
	struct tti_tcp_port *port = link->port;
	struct tti_tcp_dial *dial = link->dial;
	struct sockaddr_storage to;
	const socklen_t size = tti_addr_to_sock(&dial->addr[candidate], &to);
	struct tti_tcp_conn *conn;
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		note(dial, candidate, errno == EAFNOSUPPORT, strerror(errno));
		return false;
	}
	if (tti_tcp_conn_tune(port, fd)) {
		note(dial, candidate, true, tti_error_text());
		close(fd);
		return false;
	}
	if (connect(fd, (struct sockaddr *)&to, size) && errno != EINPROGRESS) {
		note(dial, candidate, true, strerror(errno));
		close(fd);
		return false;
	}
	if (tti_tcp_conn_create(port, fd, &conn)) {
		note(dial, candidate, false, tti_error_text());
		return false;
	}
	conn->connector = true;
	conn->link = link;
	conn->candidate = candidate;
	conn->deadline = tti_deadline(ATTEMPT_MS);
	conn->pass = (struct tti_tcp_pass){
		.from = (uint32_t)port->base.rank,
		.to = (uint32_t)link->base.peer,
		.nonce = dial->nonce,
		.index = (uint8_t)index,
		.total = (uint8_t)link->total,
	};
	note(dial, candidate, false, "no answer");
	return true;
}

void tti_tcp_dial_timer(struct tti_tcp_link *link, int64_t now)
{
	struct tti_tcp_dial *dial = link->dial;
	bool connected, all_final = true;

	if (dial->winner >= 0 || now < dial->next_at)
		return;
	while (dial->next < dial->naddrs) {
		if (!attempt(link, (int)dial->next++, 0))
			continue;
		(void)count_attempts(link, &connected);
		dial->next_at = now + (connected ? STAGGER_CONNECTED_NS : STAGGER_NS);
		return;
	}
	if (count_attempts(link, &connected))
		return;
	for (size_t i = 0; i < dial->naddrs; i++)
		all_final &= dial->final[i];
	if (++dial->rounds >= ROUNDS_MOST && all_final) {
		tti_tcp_dial_give_up(link, TUTTI_EPEER);
		return;
	}
	if (renew(dial))
		tti_port_fail(&link->port->base, TUTTI_ESYS, link->base.peer);
	dial->next_at = BACKOFF_MS << (dial->rounds < 6 ? dial->rounds : 6);
	if (dial->next_at > BACKOFF_MOST_MS)
		dial->next_at = BACKOFF_MOST_MS;
	dial->next_at = now + dial->next_at * TTI_NS_PER_MS;
}

void tti_tcp_dial_give_up(struct tti_tcp_link *link, tutti_status status)
{
	struct tti_tcp_dial *dial = link->dial;
	struct tti_strbuf text = { 0 };
	char addr[TTI_ADDR_TEXT];
	char *tried;

	for (size_t i = 0; i < dial->naddrs; i++)
		tti_strbuf_addf(&text, "%s%s: %s", i ? "; " : "",
				tti_addr_format(&dial->addr[i], addr, sizeof(addr)),
				dial->why[i][0] ? dial->why[i] : "not tried");
	tried = tti_strbuf_take(&text);
	status = tti_fail(status,
			  "rank %d cannot connect to rank %d (%s); choose interfaces with "
			  "TUTTI_SOCKET_IFNAME, or let firewalls pass these ports",
			  link->port->base.rank, link->base.peer, tried ? tried : "?");
	tti_free(tried);
	drop_attempts(link, NULL);
	memset(link->conn, 0, sizeof(link->conn));
	link->nconns = 0;
	link->state = TTI_TCP_LINK_LOST;
	link->port->ncoming--;
	tti_tcp_dial_free(link);
	tti_port_fail(&link->port->base, status, link->base.peer);
}

void tti_tcp_dial_expire(struct tti_tcp_conn *conn)
{
	failed(conn, false, NULL);
}

/* Enough connections have proven themselves: say which ones are meant. */
static void conclude(struct tti_tcp_link *link)
{
	struct tti_tcp_dial *dial = link->dial;
	char addr[TTI_ADDR_TEXT];

	for (int i = 0; i < link->total; i++) {
		if (tti_tcp_conn_greet(link->conn[i])) {
			failed(link->conn[i], false, "closed the connection");
			return;
		}
	}
	link->nonce = dial->nonce;
	tti_log(TTI_LOG_INFO, TTI_TCP, "rank %d is reached over %s", link->base.peer,
		tti_addr_format(&dial->addr[dial->winner], addr, sizeof(addr)));
	tti_tcp_link_raise(link);
}

/* The peer's HELLO came: it is the rank that is meant. */
static void proven(struct tti_tcp_conn *conn)
{
	struct tti_tcp_link *link = conn->link;
	struct tti_tcp_dial *dial = link->dial;

	conn->state = TTI_TCP_PROVEN;
	conn->deadline = TTI_NEVER;
	link->conn[conn->pass.index] = conn;
	link->nconns++;
	if (dial->winner < 0) {
		dial->winner = conn->candidate;
		drop_attempts(link, conn);
		for (int i = 1; i < link->total; i++) {
			if (attempt(link, dial->winner, i))
				continue;
			failed(conn, false, NULL);
			return;
		}
	}
	if (link->nconns == link->total)
		conclude(link);
}

static void greeting(struct tti_tcp_conn *conn)
{
	switch ((int)tti_tcp_conn_greeted(conn)) {
	case TUTTI_OK:
		proven(conn);
		return;
	case TUTTI_AGAIN:
		return;
	case TUTTI_EPEER:
		failed(conn, false, "another rank answered, or one that is closing");
		return;
	default:
		failed(conn, false, "answered something that is no greeting");
	}
}

static void proving(struct tti_tcp_conn *conn)
{
	const tutti_status status = tti_auth_step(conn->auth, conn->fd);
	char why[96];

	if (status == TUTTI_AGAIN)
		return;
	if (status) {
		snprintf(why, sizeof(why), "handshake: %s", tti_error_text());
		failed(conn, false, why);
		return;
	}
	conn->state = TTI_TCP_GREETING;
	greeting(conn);
}

static void connecting(struct tti_tcp_conn *conn)
{
	struct sockaddr_storage who;
	socklen_t size = sizeof(int);
	uint8_t pass[TTI_TCP_PASS_BYTES];
	int error = 0;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error) {
		failed(conn, error != ETIMEDOUT, strerror(error));
		return;
	}
	size = sizeof(who);
	if (getpeername(conn->fd, (struct sockaddr *)&who, &size))
		return;
	tti_tcp_pass_put(&conn->pass, pass);
	tti_auth_init(conn->auth, true, TTI_AUTH_DATA, conn->link->port->secret, pass,
		      sizeof(pass));
	note(conn->link->dial, conn->candidate, false, NO_HANDSHAKE);
	conn->state = TTI_TCP_PROVING;
	proving(conn);
}

void tti_tcp_dial_event(struct tti_tcp_conn *conn)
{
	if (conn->state == TTI_TCP_CONNECTING)
		connecting(conn);
	else if (conn->state == TTI_TCP_PROVING)
		proving(conn);
	else if (conn->state == TTI_TCP_GREETING)
		greeting(conn);
}

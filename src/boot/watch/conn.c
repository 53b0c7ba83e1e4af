/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

/* Mail leaves so much room in an outbox to questions and answers. */
#define SPARE 800

struct tti_conn *tti_conn_make(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			       struct tti_tunnel *tunnel)
{
	struct tti_conn *conn = tti_zalloc(sizeof(*conn));

	if (!conn) {
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory for a connection to rank %d", peer);
		return NULL;
	}
	conn->watcher = watcher;
	conn->role = role;
	conn->peer = peer;
	conn->tunnel = tunnel;
	conn->ack_ns = TTI_NEVER;
	return conn;
}

/* A machine without power sends nothing, nor does one behind a dead NIC: probe it now and then. A
 * connection that is given up in vain costs little (reconnect.c). */
static void set_keepalive(int fd)
{
	const int yes = 1, idle_s = 2, interval_s = 1, count = 3, timeout_ms = 5000;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

/* If the tunnel holds bytes, any event will do. */
static uint32_t wanted(const struct tti_conn *conn)
{
	return conn->out.len > 0 || tti_tunnel_holds(conn->tunnel) ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

void tti_conn_arm_ack_timer(struct tti_conn *conn, int64_t ms)
{
	conn->ack_bytes = conn->tunnel->sent;
	conn->ack_ns = tti_deadline(ms);
	if (conn->ack_ns < conn->watcher->ack_ns)
		conn->watcher->ack_ns = conn->ack_ns;
}

const struct tti_failure_node *tti_conn_next_failure(const struct tti_conn *conn)
{
	if (conn->last_failure)
		return conn->last_failure->next;
	return conn->watcher->lost ? &conn->watcher->first : NULL;
}

bool tti_conn_owes_failure(const struct tti_conn *conn)
{
	return conn->tells_failures && !conn->torn && !conn->shut && tti_conn_next_failure(conn);
}

static bool put_failure(struct tti_conn *conn)
{
	const struct tti_failure_node *next = tti_conn_next_failure(conn);

	if (!tti_conn_owes_failure(conn) ||
	    !tti_outbox_put(&conn->out, TTI_FRAME_FAILURE, 0, &next->failure, sizeof(next->failure),
			    0))
		return false;
	conn->last_failure = next;
	return true;
}

bool tti_conn_tell_failures(struct tti_conn *conn)
{
	conn->tells_failures = true;
	tti_conn_flush(conn);
	return !tti_conn_owes_failure(conn);
}

void tti_conn_flush(struct tti_conn *conn)
{
	const uint64_t sent = conn->tunnel->sent;

	do
		tti_outbox_flush(&conn->out, conn->tunnel);
	while (put_failure(conn));
	tti_loop_change(&conn->watcher->loop, conn->tunnel->fd, wanted(conn), &conn->handler);
	if (conn->ack_ns == TTI_NEVER && (conn->out.len > 0 || conn->tunnel->sent != sent))
		tti_conn_arm_ack_timer(conn, TTI_CONN_ACK_MS);
}

bool tti_conn_put(struct tti_conn *conn, enum tti_frame_type type, uint32_t seq, const void *body,
		  size_t nbytes)
{
	if (conn->torn || conn->shut || tti_conn_owes_failure(conn) ||
	    !tti_outbox_put(&conn->out, type, seq, body, nbytes,
			    type == TTI_FRAME_MAIL ? SPARE : 0))
		return false;
	tti_conn_flush(conn);
	return true;
}

/* The address that was the peer's comes first. If the peer has not told it, somebody translates
 * addresses, and it is no place to dial. */
static size_t put_first(const struct tti_addr *proven, struct tti_addr *addrs, size_t n)
{
	for (size_t i = 0; i < n && proven; i++) {
		const struct tti_addr found = addrs[i];

		if (found.family != proven->family ||
		    memcmp(found.ip, proven->ip, sizeof(found.ip)) != 0)
			continue;
		memmove(addrs + 1, addrs, i * sizeof(*addrs));
		addrs[0] = found;
		addrs[0].scope = proven->scope;
		return 1;
	}
	return 0;
}

tutti_status tti_conn_dial(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			   struct tti_dial_config *config, struct tti_dial **out)
{
	const struct tti_sock *sock = watcher->sock;
	const struct tti_wire_card *card = &sock->cards[peer];
	struct tti_addr addrs[TTI_IFACE_MOST];

	if (card->port == 0 || card->addr_bytes > TTI_CARD_ADDRS)
		return tti_fail_quiet(TUTTI_EPEER, "it has no address");
	TTI_TRY(tti_addrs_unpack(card->addrs, card->addr_bytes, card->port, addrs, TTI_IFACE_MOST,
				 &config->naddrs));
	config->nproven = put_first(config->addrs, addrs, config->naddrs);
	config->addrs = addrs;
	config->kind = role == TTI_CONN_PAIR ? TTI_AUTH_PEER : TTI_AUTH_RING;
	config->secret = sock->base.secret;
	config->who =
		(struct tti_wire_who){ sock->base.rank, peer, sock->base.nranks,
				       role == TTI_CONN_PREV ? TTI_RING_BEHIND : TTI_RING_BEFORE };
	return tti_dial_start(&watcher->loop, config, out);
}

void tti_conn_drop(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;

	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	tti_mail_queue_recall(conn);
	tti_loop_drop(&watcher->loop, conn->tunnel->fd);
	tti_tunnel_close(&conn->tunnel);
	tti_loop_free_later(&watcher->loop, &conn->handler);
	if (conn->asked)
		tti_conn_no_answer(watcher, conn->peer, false);
}

void tti_conn_leave(struct tti_conn *conn)
{
	/* Without room, it is said when there is some. */
	if (conn->watcher->bye && !conn->torn &&
	    (!tti_conn_tell_failures(conn) ||
	     !tti_conn_put(conn, TTI_FRAME_BYE, conn->watcher->lost, NULL, 0)))
		return;
	conn->torn = true;
	if (conn->out.len == 0 && !conn->shut) {
		conn->shut = true;
		(void)shutdown(conn->tunnel->fd, SHUT_WR);
	}
}

void tti_conn_replace(struct tti_conn *conn, struct tti_conn *replacement)
{
	const bool asked = conn->asked;

	(void)tti_conn_put(conn, TTI_FRAME_MOVED, 0, NULL, 0);
	conn->asked = false;
	tti_conn_drop(conn);
	if (asked)
		tti_conn_ask(replacement);
}

bool tti_conn_linked(const struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	for (const struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		if (conn->role == role && conn->peer == peer && conn->confirmed)
			return true;
	return false;
}

bool tti_conn_has_pair(const struct tti_watcher *watcher, int peer)
{
	for (const struct tti_conn *at = watcher->conns; at; at = at->next)
		if (at->role == TTI_CONN_PAIR && at->peer == peer && at->confirmed &&
		    !at->suspected)
			return true;
	return false;
}

struct tti_conn *tti_conn_find(struct tti_watcher *watcher, int peer, bool ring)
{
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		if (conn->peer == peer && !conn->torn && !conn->suspected &&
		    !(ring && conn->role == TTI_CONN_PAIR))
			return conn;
	return NULL;
}

void tti_conn_no_answer(struct tti_watcher *watcher, int peer, bool refused)
{
	if (!tti_bit_has(watcher->asked, (size_t)peer))
		return;
	tti_bit_clear(watcher->asked, (size_t)peer);
	if (!refused && !tti_bit_has(watcher->left, (size_t)peer))
		return;
	if (watcher->watching && !watcher->quitting && watcher->events.on_answer)
		watcher->events.on_answer(watcher->events.self, peer, NULL);
}

void tti_conn_ask(struct tti_conn *conn)
{
	conn->asked = true;
	conn->question = ++conn->watcher->question;
	tti_conn_ask_once_more(conn);
}

void tti_conn_ask_once_more(struct tti_conn *conn)
{
	conn->asked_ns = tti_now_ns();
	if (tti_conn_put(conn, TTI_FRAME_ASK, conn->question, NULL, 0))
		return;
	conn->asked = false;
	tti_conn_no_answer(conn->watcher, conn->peer, false);
}

void tti_conn_mark_failed(struct tti_watcher *watcher, int peer, enum tti_down how, bool for_good,
			  const char *why)
{
	tti_mail_queue_forget(watcher, peer);
	tti_dispatcher_down(&watcher->sock->base.dispatcher, peer, how, for_good, why, NULL);
}

static void note_remote(struct tti_conn *conn)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (getpeername(conn->tunnel->fd, (struct sockaddr *)&name, &len) < 0 ||
	    tti_addr_from_sock((const struct sockaddr *)&name, &conn->remote) != TUTTI_OK)
		conn->remote.family = 0;
}

void tti_conn_adopt(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;

	conn->handler.handle = conn->watcher->on_event;
	conn->next = watcher->conns;
	conn->link = &watcher->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	watcher->conns = conn;
	set_keepalive(conn->tunnel->fd);
	note_remote(conn);
	if (tti_loop_add(&watcher->loop, conn->tunnel->fd, wanted(conn), &conn->handler) !=
	    TUTTI_OK) {
		tti_conn_drop(conn);
		return;
	}
	if (conn->role == TTI_CONN_PAIR && !watcher->quitting) {
		(void)tti_conn_put(conn, TTI_FRAME_HERE, 0, NULL, 0);
		return;
	}
	/* A failure says that this rank is here as well. A rank in its init, which takes over no
	 * connections, understands nothing else. */
	conn->tells_failures = true;
	if (watcher->lost)
		tti_conn_flush(conn);
	else if (!conn->confirmed)
		(void)tti_conn_put(conn, TTI_FRAME_HERE, 0, NULL, 0);
	if (watcher->quitting)
		tti_conn_leave(conn);
}

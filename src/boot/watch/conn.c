/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/conn.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

/* Mail leaves so much of an outbox to questions and answers. */
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

/* A machine that lost its power sends nothing, nor does one behind a dead NIC: ask it now and
 * then. That a link is given up in vain costs little (reconnect.c). */
static void set_keepalive(int fd)
{
	const int yes = 1, idle_s = 2, interval_s = 1, count = 3, timeout_ms = 5000;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

/* The events to be told of. What the tunnel holds needs no event, so that is any. */
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
	/* What there is no room for is said when there is some. */
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
	/* News say that we are here as well; and a rank that is still in its init, where
	 * it takes over no connections, understands nothing else. */
	conn->tells_failures = true;
	if (watcher->lost)
		tti_conn_flush(conn);
	else if (!conn->confirmed)
		(void)tti_conn_put(conn, TTI_FRAME_HERE, 0, NULL, 0);
	if (watcher->quitting)
		tti_conn_leave(conn);
}

/* Ranks that leave together leave within this time: no bypass is made for them. */
#define BYPASS_MS    50
#define ACK_AGAIN_MS 2000
#define BROKE        "it broke the protocol:"

static void answer(struct tti_conn *conn, uint32_t question)
{
	struct tti_watcher *watcher = conn->watcher;
	struct tti_call call = { .waiting_on = -1 };

	conn->owing = !watcher->watching;
	conn->owed = question;
	if (conn->owing || watcher->quitting || !watcher->events.on_ask)
		return;
	watcher->events.on_ask(watcher->events.self, &call);
	if (call.running == TTI_CALL_LEFT)
		tti_failures_tell_dead(watcher);
	/* Over the ring the news may come later than the answer. Without room for both it asks again. */
	if (call.running != TTI_CALL_LEFT || tti_conn_tell_failures(conn))
		(void)tti_conn_put(conn, TTI_FRAME_ANSWER, question, &call, sizeof(call));
}

void tti_receive_catch_up(struct tti_watcher *watcher)
{
	tti_failures_report(watcher);
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		if (conn->owing)
			answer(conn, conn->owed);
}

static void take_answer(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;

	if (!conn->asked || conn->framer.head.seq != conn->question)
		return;
	conn->asked = false;
	tti_bit_clear(watcher->asked, (size_t)conn->peer);
	if (!watcher->quitting && watcher->events.on_answer)
		watcher->events.on_answer(watcher->events.self, conn->peer,
					  &conn->framer.body.call);
}

static void take_bye(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;
	const bool knew = conn->framer.head.seq != 0;

	tti_bit_set(watcher->left, (size_t)conn->peer);
	if (conn->role == TTI_CONN_NEXT && !watcher->quitting && !(watcher->lost && knew)) {
		watcher->gap = conn->peer;
		watcher->bypass_ns = tti_deadline(BYPASS_MS);
	}
	tti_reconnect_cancel_pair(watcher, conn->peer);
	tti_conn_mark_failed(watcher, conn->peer, TTI_DOWN_LEFT, true, "left");
	if (conn->role == TTI_CONN_PAIR)
		tti_conn_drop(conn);
	else
		tti_reconnect_end(watcher, conn->role, conn->peer);
}

/* The other end has settled on another connection; unless that one is gone meanwhile. */
static void take_moved(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;
	const enum tti_conn_role role = conn->role;
	const int peer = conn->peer;
	const bool asked = conn->asked;
	const struct tti_addr remote = conn->remote;

	conn->asked = false;
	tti_conn_drop(conn);
	if (role == TTI_CONN_PREV && !tti_conn_linked(watcher, role, peer))
		tti_reconnect_begin(watcher, role, peer, &remote, TTI_RECONNECT_SILENT);
	if (asked)
		tti_boot_reach_ask_again(watcher, peer);
}

/* -- The end of a connection --------------------------------------------------------- */

static bool was_closed(int err)
{
	return err == 0 || err == ECONNRESET || err == EPIPE;
}

/* Has our goodbye arrived? Who has read it closes the connection. */
static void end_of_leaver(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			  const struct tti_addr *remote, int err)
{
	if (err == 0)
		tti_reconnect_end(watcher, role, peer);
	else if (watcher->bye)
		tti_reconnect_begin(watcher, role, peer, remote,
				    was_closed(err) ? TTI_RECONNECT_CLOSED : TTI_RECONNECT_SILENT);
}

/* A connection that is not of the ring has ended without a goodbye. The network can do that, too: the
 * peer, if it has used the connection, is dialled before it is called dead. If there is another
 * connection, that one tells whether the peer left or died. A rank that is just leaving tells nothing
 * to whom it let in, and may close a connection that it has not used. */
static void end_of_pair(struct tti_watcher *watcher, int peer, bool confirmed, int err,
			const struct tti_addr *remote)
{
	const bool closed = was_closed(err);

	if (watcher->quitting && (confirmed || err == 0)) {
		end_of_leaver(watcher, TTI_CONN_PAIR, peer, remote, err);
	} else if (!confirmed && tti_reconnect_goes_on(watcher, TTI_CONN_PAIR, peer)) {
		return;
	} else if (watcher->quitting || tti_bit_has(watcher->left, (size_t)peer) ||
		   tti_conn_has_pair(watcher, peer)) {
		return;
	} else if (confirmed && (closed || !tti_conn_find(watcher, peer, false))) {
		tti_reconnect_begin(watcher, TTI_CONN_PAIR, peer, remote,
				    err == 0 ? TTI_RECONNECT_ENDED
				    : closed ? TTI_RECONNECT_CLOSED
					     : TTI_RECONNECT_SILENT);
	} else if (!confirmed && closed && !tti_conn_find(watcher, peer, false)) {
		tti_reconnect_begin(watcher, TTI_CONN_PAIR, peer, remote, TTI_RECONNECT_FRESH);
	}
}

/* One that closes a gap in the ring may be let in by a rank that is just leaving: it
 * has said goodbye to the neighbours it had, and never takes this one over. Only when
 * it has, and says so, we are its neighbours. Until then its death is for the old ones
 * to see, and the gap is what it was. */
static void end_of_stranger(struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	char name[TTI_BOOT_NAME];

	tti_log(TTI_LOG_INFO, TTI_BOOT, "%s closed a connection that it had not used yet",
		tti_sock_name(watcher->sock, peer, name));
	if (role == TTI_CONN_NEXT)
		tti_boot_reach_bypass(watcher, peer);
}

static void end_of_link(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			bool confirmed, int err, const struct tti_addr *remote)
{
	const bool closed = was_closed(err);

	if (watcher->quitting)
		end_of_leaver(watcher, role, peer, remote, err);
	else if (tti_bit_has(watcher->left, (size_t)peer) ||
		 (!confirmed && tti_reconnect_goes_on(watcher, role, peer)))
		return;
	else if (!confirmed && !tti_conn_linked(watcher, role, peer))
		end_of_stranger(watcher, role, peer);
	else if (closed || !tti_conn_linked(watcher, role, peer))
		tti_reconnect_begin(watcher, role, peer, remote,
				    closed ? TTI_RECONNECT_CLOSED : TTI_RECONNECT_SILENT);
}

/* The connection is at its end, or broke: err is an errno, 0: it was closed. */
static void end(struct tti_conn *conn, int err)
{
	struct tti_watcher *watcher = conn->watcher;
	const enum tti_conn_role role = conn->role;
	const int peer = conn->peer;
	const bool confirmed = conn->confirmed;
	const bool ask_again = conn->asked && !was_closed(err) && !watcher->quitting;
	const struct tti_addr remote = conn->remote;

	conn->asked &= !ask_again;
	tti_conn_drop(conn);
	if (role == TTI_CONN_PAIR)
		end_of_pair(watcher, peer, confirmed, err, &remote);
	else
		end_of_link(watcher, role, peer, confirmed, err, &remote);
	if (ask_again)
		tti_boot_reach_ask_again(watcher, peer);
}

/* -- Frames --------------------------------------------------------------------------- */

static void malformed(struct tti_conn *conn, const char *what, const char *why)
{
	struct tti_watcher *watcher = conn->watcher;
	struct tti_failure failure = { .status = TUTTI_EPROTO,
				       .failed_rank = conn->peer,
				       .origin = watcher->sock->base.rank };
	char name[TTI_BOOT_NAME];

	(void)snprintf(failure.text, sizeof(failure.text), "%s is not listened to any more: %s %s",
		       tti_sock_name(watcher->sock, conn->peer, name), what, why);
	tti_conn_drop(conn);
	tti_conn_mark_failed(watcher, failure.failed_rank, TTI_DOWN_LOST, true,
			     tti_failure_why(&failure, name));
	tti_failures_learn(watcher, &failure, NULL);
}

/* false: the connection is gone. */
static bool take_frame(struct tti_conn *conn)
{
	const struct tti_framer *framer = &conn->framer;

	if (!conn->confirmed)
		tti_reconnect_done(conn);
	conn->confirmed = true;
	switch ((enum tti_frame_type)framer->head.type) {
	case TTI_FRAME_FAILURE:
		if (framer->body.failure.failed_rank < -1 ||
		    framer->body.failure.failed_rank >= conn->watcher->sock->base.nranks) {
			malformed(conn, BROKE, "a failure of a rank that does not exist");
			return false;
		}
		tti_failures_learn(conn->watcher, &framer->body.failure, conn);
		return true;
	case TTI_FRAME_ASK:
		answer(conn, framer->head.seq);
		return true;
	case TTI_FRAME_ANSWER:
		take_answer(conn);
		return true;
	case TTI_FRAME_BYE:
		take_bye(conn);
		return false;
	case TTI_FRAME_MOVED:
		take_moved(conn);
		return false;
	case TTI_FRAME_MAIL:
		tti_dispatcher_take(&conn->watcher->sock->base, conn->peer, &framer->body.mail,
				    framer->head.nbytes);
		tti_mail_received(conn, framer->head.seq);
		return true;
	case TTI_FRAME_MAIL_ACK:
		tti_mail_queue_acked(conn, framer->head.seq);
		return true;
	case TTI_FRAME_HERE:
		return true;
	case TTI_FRAME_BLOCK:
	case TTI_FRAME_CHECKIN:
	case TTI_FRAME_NEXT:
	case TTI_FRAME_ALL:
	case TTI_FRAME_TYPES:
		break;
	}
	malformed(conn, BROKE, "an unexpected frame");
	return false;
}

void tti_receive_handle(struct tti_event_handler *handler, uint32_t events)
{
	struct tti_conn *conn = (struct tti_conn *)handler;
	uint8_t data[TTI_TUNNEL_RECORD];
	char why[TTI_TUNNEL_WHY];
	ssize_t n;

	if (events & EPOLLOUT) {
		tti_conn_flush(conn);
		if (conn->watcher->quitting)
			tti_conn_leave(conn);
	}
	n = tti_tunnel_recv(conn->tunnel, data, sizeof(data));
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0 && conn->tunnel->failed) {
		malformed(conn, "the connection", tti_tunnel_why(conn->tunnel, why));
		return;
	}
	if (n <= 0) {
		/* The system tells of an error once: sending may have heard of it. */
		end(conn, n < 0 ? errno : conn->tunnel->broken);
		return;
	}
	for (size_t at = 0, used; at < (size_t)n; at += used) {
		const tutti_status status =
			tti_framer_feed(&conn->framer, data + at, (size_t)n - at, &used);

		if (status == TUTTI_AGAIN)
			return;
		if (status < 0) {
			malformed(conn, BROKE, tti_error_text());
			return;
		}
		if (!take_frame(conn))
			return;
	}
}

/* -- Acknowledgement timeouts ----------------------------------------------------------- */

/* The question goes over another connection. This one stays, as the peer, who may only be slow, would
 * take its end without a goodbye for this rank's death. */
static void suspect(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;

	for (const struct tti_conn *at = watcher->conns; at; at = at->next)
		if (at->peer == conn->peer && at->suspected)
			return; /* one is enough: the network does not work */
	conn->suspected = true;
	conn->asked = false;
	tti_mail_queue_recall(conn);
	tti_boot_reach_ask_again(watcher, conn->peer);
}

static void check_ack(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;
	const int peer = conn->peer;
	const uint64_t sent = conn->tunnel->sent;
	int under_way = 0;

	conn->ack_ns = TTI_NEVER;
	/* On a unix socket nothing is lost, and what counts is what the peer has read. */
	if (conn->remote.family == 0)
		return;
	if (ioctl(conn->tunnel->fd, SIOCOUTQ, &under_way) < 0)
		return;
	if (under_way == 0 && conn->out.len == 0) {
		conn->suspected = false; /* it works */
		return;
	}
	/* What is under way was sent since: it has had no time yet. */
	if ((uint64_t)under_way <= sent - conn->ack_bytes) {
		tti_conn_arm_ack_timer(conn, TTI_CONN_ACK_MS);
		return;
	}
	tti_conn_arm_ack_timer(conn, ACK_AGAIN_MS);
	if (conn->role != TTI_CONN_PAIR) {
		if (!watcher->quitting || watcher->bye)
			tti_reconnect_begin(watcher, conn->role, peer, &conn->remote,
					    TTI_RECONNECT_UNACKED);
	} else if (conn->asked && !watcher->quitting) {
		suspect(conn);
	}
}

int64_t tti_receive_check_acks(struct tti_watcher *watcher)
{
	const int64_t now = tti_now_ns();

	if (now < watcher->ack_ns)
		return watcher->ack_ns;
	for (struct tti_conn *conn = watcher->conns, *next; conn; conn = next) {
		next = conn->next;
		if (conn->ack_ns <= now)
			check_ack(conn);
	}
	watcher->ack_ns = TTI_NEVER;
	for (const struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		if (conn->ack_ns < watcher->ack_ns)
			watcher->ack_ns = conn->ack_ns;
	return watcher->ack_ns;
}

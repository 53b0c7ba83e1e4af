/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes in over a connection, the end of one, and bytes that are not acknowledged in time. */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "boot/watch/conn.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"

/* Ranks that leave together leave within this time: the ring is not closed around them. */
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
	/* Over the ring failures may come later than the answer. Without room for both the peer asks again. */
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

/* The peer has decided for another connection, which may be gone meanwhile. */
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

/* This rank leaves. A peer that has read the goodbye closes the connection. */
static void end_of_leaver(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			  const struct tti_addr *remote, int err)
{
	if (err == 0)
		tti_reconnect_end(watcher, role, peer);
	else if (watcher->bye)
		tti_reconnect_begin(watcher, role, peer, remote,
				    was_closed(err) ? TTI_RECONNECT_CLOSED : TTI_RECONNECT_SILENT);
}

/* A PAIR has ended without a goodbye. The network can do that, too: a peer that has confirmed the
 * connection is dialled before it is called dead. If there is another connection, that one tells whether
 * the peer left or died. A rank that is just leaving says nothing on connections that it lets in, and
 * may close one that it has not used. */
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

/* A rank that is just leaving may let in a connection that closes a gap in the ring. It has said goodbye
 * to the neighbours that it had, and never takes this one over. Only a rank that has confirmed the
 * connection is a neighbour; until then its death is for the old neighbours to see, and the gap stays. */
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

/* The connection has ended. err: an errno; 0: it was closed in order. */
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
	char name[TTI_BOOT_NAME];
	const struct tti_failure failure =
		tti_failure_make(TUTTI_EPROTO, conn->peer, watcher->sock->base.rank,
				 "%s is not listened to any more: %s %s",
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
	switch (framer->head.type) {
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
	default:
		malformed(conn, BROKE, "an unexpected frame");
		return false;
	}
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
		/* The system reports an error once, perhaps to send(). */
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

/* The question goes over another connection. This one stays: a peer that is only slow would take its end
 * without a goodbye for this rank's death. */
static void suspect(struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;

	for (const struct tti_conn *at = watcher->conns; at; at = at->next)
		if (at->peer == conn->peer && at->suspected)
			return; /* one at a time: the network does not work */
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
	/* A unix socket loses nothing, and its count is of bytes that the peer has not read. */
	if (conn->remote.family == 0)
		return;
	if (ioctl(conn->tunnel->fd, SIOCOUTQ, &under_way) < 0)
		return;
	if (under_way == 0 && conn->out.len == 0) {
		conn->suspected = false; /* it works */
		return;
	}
	/* The bytes under way were sent after the timer was armed. */
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

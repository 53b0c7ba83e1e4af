/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail goes out over any connection to the peer. Mailboxes order mail by numbers of their own, not by its
 * arrival, and take the same mail twice without harm.
 *
 *     mail ──▶ connection ──▶ unacked ──▶ MAIL_ACK came over that connection: done
 *      ▲                         │
 *      └── the connection broke, or another one takes its place
 */
#include <string.h>

#include "boot/watch/conn.h"
#include "boot/watch/watcher.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

/* Mail is acknowledged after so many, and after so long. */
#define TELL_MOST 8
#define TELL_MS   50

/* -- Going out ------------------------------------------------------------------------ */

/* TUTTI_OK: it went out. TUTTI_AGAIN: there is no room, or no connection yet. An error: it never will. */
static tutti_status post(struct tti_watcher *watcher, struct tti_queued_mail *mail)
{
	struct tti_conn *conn = tti_conn_find(watcher, mail->peer, false);

	if (tti_bit_has(watcher->left, (size_t)mail->peer))
		return TUTTI_EPEER;
	if (!conn && tti_reconnect_is_on(watcher, mail->peer))
		return TUTTI_AGAIN;
	if (!conn)
		return tti_boot_reach_peer(watcher, mail->peer) ? TUTTI_AGAIN : TUTTI_EPEER;
	if (!tti_conn_put(conn, TTI_FRAME_MAIL, conn->mail_sent + 1, &mail->mail, mail->nbytes))
		return TUTTI_AGAIN;
	mail->by = conn;
	mail->number = ++conn->mail_sent;
	return TUTTI_OK;
}

void tti_mail_step(struct tti_watcher *watcher)
{
	struct tti_mail_queue waiting;

	tti_mail_queue_init(&waiting);
	watcher->reconnected = false;
	while (watcher->mail.first) {
		struct tti_queued_mail *mail = watcher->mail.first;
		tutti_status status;

		watcher->mail.first = mail->next;
		if (!mail->next)
			watcher->mail.end = &watcher->mail.first;
		status = post(watcher, mail);
		if (status == TUTTI_OK)
			tti_mail_queue_add(&watcher->unacked, mail);
		else if (status == TUTTI_AGAIN)
			tti_mail_queue_add(&waiting, mail);
		else
			tti_free(mail);
	}
	tti_mail_queue_move(&waiting, &watcher->mail);
}

/* -- Whether it has come --------------------------------------------------------------- */

static void tell(struct tti_conn *conn)
{
	if (tti_conn_put(conn, TTI_FRAME_MAIL_ACK, conn->mail_received, NULL, 0))
		conn->mail_acked = conn->mail_received;
}

void tti_mail_received(struct tti_conn *conn, uint32_t number)
{
	const int64_t soon_ns = tti_deadline(TELL_MS);

	conn->mail_received = number;
	if (conn->mail_received - conn->mail_acked >= TELL_MOST)
		tell(conn);
	else if (soon_ns < conn->watcher->mail_ack_ns)
		conn->watcher->mail_ack_ns = soon_ns;
}

int64_t tti_mail_send_acks(struct tti_watcher *watcher)
{
	if (tti_now_ns() < watcher->mail_ack_ns)
		return watcher->mail_ack_ns;
	watcher->mail_ack_ns = TTI_NEVER;
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next) {
		if (conn->mail_received == conn->mail_acked || conn->torn)
			continue;
		tell(conn);
		if (conn->mail_received != conn->mail_acked) /* there is no room */
			watcher->mail_ack_ns = tti_deadline(TELL_MS);
	}
	return watcher->mail_ack_ns;
}

tutti_status tti_watcher_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
			      size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	struct tti_queued_mail *out = tti_alloc(offsetof(struct tti_queued_mail, mail) + nbytes);
	bool taken = false;

	if (!out)
		return tti_fail_quiet(TUTTI_ENOMEM, "mail to rank %d: out of memory", peer);
	out->next = NULL;
	out->peer = peer;
	out->nbytes = nbytes;
	memcpy(&out->mail, mail, nbytes);
	pthread_mutex_lock(&sock->lock);
	if (sock->watcher && sock->watcher->post.watch) {
		*sock->watcher->post.mail.end = out;
		sock->watcher->post.mail.end = &out->next;
		tti_loop_wake(&sock->watcher->loop);
		taken = true;
	}
	pthread_mutex_unlock(&sock->lock);
	if (taken)
		return TUTTI_OK;
	tti_free(out);
	return tti_fail_quiet(TUTTI_EUSAGE, "mail to rank %d: the bootstrap is closed", peer);
}

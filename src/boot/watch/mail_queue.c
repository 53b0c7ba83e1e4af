/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail on its way out (mail.c): what waits, and what the peer has not acknowledged. */
#include "boot/watch/conn.h"
#include "util/mem.h"

void tti_mail_queue_init(struct tti_mail_queue *mails)
{
	mails->first = NULL;
	mails->end = &mails->first;
}

void tti_mail_queue_move(struct tti_mail_queue *from, struct tti_mail_queue *to)
{
	if (!from->first)
		return;
	*to->end = from->first;
	to->end = from->end;
	tti_mail_queue_init(from);
}

void tti_mail_queue_drop(struct tti_mail_queue *mails, int peer)
{
	struct tti_queued_mail **link = &mails->first;

	while (*link) {
		struct tti_queued_mail *mail = *link;

		if (peer >= 0 && mail->peer != peer) {
			link = &mail->next;
			continue;
		}
		*link = mail->next;
		tti_free(mail);
	}
	mails->end = link;
}

void tti_mail_queue_forget(struct tti_watcher *watcher, int peer)
{
	tti_mail_queue_drop(&watcher->mail, peer);
	tti_mail_queue_drop(&watcher->unacked, peer);
}

void tti_mail_queue_add(struct tti_mail_queue *mails, struct tti_queued_mail *mail)
{
	mail->next = NULL;
	*mails->end = mail;
	mails->end = &mail->next;
}

void tti_mail_queue_acked(struct tti_conn *conn, uint32_t number)
{
	struct tti_mail_queue *sent = &conn->watcher->unacked;
	struct tti_queued_mail **link = &sent->first;

	while (*link) {
		struct tti_queued_mail *mail = *link;

		if (mail->by != conn || (int32_t)(mail->number - number) > 0) {
			link = &mail->next;
			continue;
		}
		*link = mail->next;
		tti_free(mail);
	}
	sent->end = link;
}

/* A rank that asks goes on asking, and has no use for the answer to an earlier question. */
static bool is_worth_repeating(const struct tti_queued_mail *mail)
{
	return mail->mail.kind != TTI_MAIL_ASK && mail->mail.kind != TTI_MAIL_ANSWER;
}

void tti_mail_queue_recall(const struct tti_conn *conn)
{
	struct tti_watcher *watcher = conn->watcher;
	struct tti_queued_mail **link = &watcher->unacked.first;

	while (*link) {
		struct tti_queued_mail *mail = *link;

		if (mail->by != conn) {
			link = &mail->next;
			continue;
		}
		*link = mail->next;
		if (is_worth_repeating(mail) && !watcher->quitting)
			tti_mail_queue_add(&watcher->mail, mail);
		else
			tti_free(mail);
	}
	watcher->unacked.end = link;
}

bool tti_mail_queue_is_news(const struct tti_mail_queue *mails, int peer)
{
	for (const struct tti_queued_mail *mail = mails->first; mail; mail = mail->next)
		if (mail->peer == peer && mail->mail.kind != TTI_MAIL_FAILURE)
			return false;
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Mail on its way out: over whatever connection there is to the peer, which keeps it in
 * order of its numbers, not of its coming. */
#include <string.h>
#include <sys/eventfd.h>

#include "boot/conn.h"
#include "boot/thread.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/mem.h"

/* What news and goodbye need is kept free. */
#define SPARE 800

void tti_mails_init(struct tti_mails *mails)
{
	mails->first = NULL;
	mails->end = &mails->first;
}

void tti_mails_move(struct tti_mails *from, struct tti_mails *to)
{
	if (!from->first)
		return;
	*to->end = from->first;
	to->end = from->end;
	tti_mails_init(from);
}

void tti_mails_drop(struct tti_mails *mails, int peer)
{
	struct tti_outmail **link = &mails->first;

	while (*link) {
		struct tti_outmail *mail = *link;

		if (peer >= 0 && mail->peer != peer) {
			link = &mail->next;
			continue;
		}
		*link = mail->next;
		tti_free(mail);
	}
	mails->end = link;
}

/* Whether it went, or never will. */
static bool post(struct tti_thread *thread, const struct tti_outmail *mail)
{
	struct tti_conn *conn = tti_conn_find(thread, mail->peer, false);

	if (tti_bit_has(thread->gone, (size_t)mail->peer))
		return true;
	if (!conn)
		return !tti_reach_peer(thread, mail->peer);
	return tti_conn_put(conn, TTI_FRAME_MAIL, &mail->mail, mail->nbytes, SPARE);
}

void tti_mails_step(struct tti_thread *thread)
{
	struct tti_mails waiting;

	tti_mails_init(&waiting);
	while (thread->mails.first) {
		struct tti_outmail *mail = thread->mails.first;

		thread->mails.first = mail->next;
		if (!mail->next)
			thread->mails.end = &thread->mails.first;
		mail->next = NULL;
		if (post(thread, mail)) {
			tti_free(mail);
			continue;
		}
		*waiting.end = mail;
		waiting.end = &mail->next;
	}
	tti_mails_move(&waiting, &thread->mails);
}

tutti_status tti_thread_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
			     size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	struct tti_outmail *out = tti_alloc(offsetof(struct tti_outmail, mail) + nbytes);
	bool taken = false;

	if (!out)
		return tti_fail_quiet(TUTTI_ENOMEM, "mail to rank %d: out of memory", peer);
	out->next = NULL;
	out->peer = peer;
	out->nbytes = nbytes;
	memcpy(&out->mail, mail, nbytes);
	pthread_mutex_lock(&sock->lock);
	if (sock->thread && sock->thread->post.watch) {
		*sock->thread->post.mails.end = out;
		sock->thread->post.mails.end = &out->next;
		(void)eventfd_write(sock->thread->wake_fd, 1);
		taken = true;
	}
	pthread_mutex_unlock(&sock->lock);
	if (taken)
		return TUTTI_OK;
	tti_free(out);
	return tti_fail_quiet(TUTTI_EUSAGE, "mail to rank %d: the bootstrap is closed", peer);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/dispatcher.h"

#include <string.h>

#include "boot/base.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

/* So many closed contexts are remembered; a rank that is asked about an older one is silent. */
#define CLOSED_MOST 1024

/* Mail for a context without a mailbox yet, as MPI keeps unexpected messages. */
struct tti_unexpected_mail {
	struct tti_unexpected_mail *next;
	int from;
	size_t nbytes; /* of mail */
	struct tti_mail mail;
};

tutti_status tti_dispatcher_init(struct tti_dispatcher *dispatcher, int nranks)
{
	*dispatcher = (struct tti_dispatcher){ .nranks = nranks, .first_dead = -1 };
	dispatcher->down = tti_calloc(TTI_BITSET_WORDS(nranks), sizeof(uint64_t));
	if (!dispatcher->down)
		return tti_fail(TUTTI_ENOMEM, "mail of %d ranks: out of memory", nranks);
	pthread_mutex_init(&dispatcher->lock, NULL);
	pthread_mutex_init(&dispatcher->down_lock, NULL);
	pthread_cond_init(&dispatcher->settled, NULL);
	dispatcher->unexpected_end = &dispatcher->unexpected;
	return TUTTI_OK;
}

void tti_dispatcher_release(struct tti_dispatcher *dispatcher)
{
	if (!dispatcher->down)
		return;
	while (dispatcher->unexpected) {
		struct tti_unexpected_mail *kept = dispatcher->unexpected;

		dispatcher->unexpected = kept->next;
		tti_free(kept);
	}
	tti_free(dispatcher->closed);
	tti_free(dispatcher->down);
	dispatcher->down = NULL;
	pthread_cond_destroy(&dispatcher->settled);
	pthread_mutex_destroy(&dispatcher->down_lock);
	pthread_mutex_destroy(&dispatcher->lock);
}

bool tti_dispatcher_is_down(struct tti_dispatcher *dispatcher, int peer)
{
	bool down;

	pthread_mutex_lock(&dispatcher->lock);
	down = tti_bit_has(dispatcher->down, (size_t)peer);
	pthread_mutex_unlock(&dispatcher->lock);
	return down;
}

int tti_dispatcher_first_dead(struct tti_dispatcher *dispatcher)
{
	int first_dead;

	pthread_mutex_lock(&dispatcher->lock);
	first_dead = dispatcher->first_dead;
	pthread_mutex_unlock(&dispatcher->lock);
	return first_dead;
}

/* -- Mailboxes ----------------------------------------------------------------------- */

/* Between these two a callback runs without the lock, and the mailbox stays. The lock is held around both. */
static void begin_call(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	mailbox->calling++;
	pthread_mutex_unlock(&dispatcher->lock);
}

static void end_call(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	pthread_mutex_lock(&dispatcher->lock);
	if (--mailbox->calling == 0)
		pthread_cond_broadcast(&dispatcher->settled);
}

static struct tti_mailbox *find(struct tti_dispatcher *dispatcher, uint64_t context)
{
	struct tti_mailbox *mailbox = dispatcher->mailboxes;

	while (mailbox && mailbox->context != context)
		mailbox = mailbox->next;
	return mailbox;
}

static bool was_closed(const struct tti_dispatcher *dispatcher, uint64_t context)
{
	const size_t n = dispatcher->nclosed < CLOSED_MOST ? dispatcher->nclosed : CLOSED_MOST;

	for (size_t i = 0; i < n; i++)
		if (dispatcher->closed[i] == context)
			return true;
	return false;
}

bool tti_dispatcher_knows(struct tti_dispatcher *dispatcher, uint64_t context)
{
	bool knows;

	pthread_mutex_lock(&dispatcher->lock);
	knows = find(dispatcher, context) || was_closed(dispatcher, context);
	pthread_mutex_unlock(&dispatcher->lock);
	return knows;
}

/* Take out the first mail that was kept for this context; NULL: none. */
static struct tti_unexpected_mail *find_unexpected(struct tti_dispatcher *dispatcher,
						   uint64_t context)
{
	for (struct tti_unexpected_mail **link = &dispatcher->unexpected; *link;
	     link = &(*link)->next) {
		struct tti_unexpected_mail *kept = *link;

		if (kept->mail.context != context)
			continue;
		*link = kept->next;
		if (!*link)
			dispatcher->unexpected_end = link;
		return kept;
	}
	return NULL;
}

static void tell_missed(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	const size_t n = dispatcher->nmissed < TTI_DISPATCHER_MISSED ? dispatcher->nmissed
								     : TTI_DISPATCHER_MISSED;

	for (size_t i = 0; i < n; i++) {
		const int from = dispatcher->missed[i].from;

		if (dispatcher->missed[i].context != mailbox->context || from < 0)
			continue;
		dispatcher->missed[i].from = -1;
		if (!mailbox->missed)
			continue;
		begin_call(dispatcher, mailbox);
		mailbox->missed(mailbox, from);
		end_call(dispatcher, mailbox);
	}
}

/* A mailbox takes mail. The lock is held around it. */
static void hand_over(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox, int from,
		      const struct tti_mail *mail, size_t nbytes)
{
	if (!mailbox->take)
		return;
	begin_call(dispatcher, mailbox);
	mailbox->take(mailbox, from, mail, nbytes - TTI_MAIL_HEAD);
	end_call(dispatcher, mailbox);
}

void tti_dispatcher_open(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	struct tti_unexpected_mail *kept;

	pthread_mutex_lock(&dispatcher->lock);
	mailbox->next = dispatcher->mailboxes;
	dispatcher->mailboxes = mailbox;
	while ((kept = find_unexpected(dispatcher, mailbox->context))) {
		hand_over(dispatcher, mailbox, kept->from, &kept->mail, kept->nbytes);
		tti_free(kept);
	}
	tell_missed(dispatcher, mailbox);
	pthread_mutex_unlock(&dispatcher->lock);
}

static void settle(struct tti_dispatcher *dispatcher, const struct tti_mailbox *mailbox)
{
	while (mailbox->calling > 0)
		pthread_cond_wait(&dispatcher->settled, &dispatcher->lock);
}

void tti_dispatcher_settle(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	pthread_mutex_lock(&dispatcher->lock);
	settle(dispatcher, mailbox);
	pthread_mutex_unlock(&dispatcher->lock);
}

/* The table grows up to CLOSED_MOST, then the oldest entry goes. */
static void remember_closed(struct tti_dispatcher *dispatcher, uint64_t context)
{
	if (dispatcher->nclosed == dispatcher->closed_room &&
	    dispatcher->closed_room < CLOSED_MOST) {
		const size_t room = dispatcher->closed_room ? dispatcher->closed_room * 2 : 8;
		uint64_t *more = tti_calloc(room, sizeof(*more));

		if (!more)
			return; /* a rank that asks waits in vain, and says so */
		if (dispatcher->nclosed > 0)
			memcpy(more, dispatcher->closed, dispatcher->nclosed * sizeof(*more));
		tti_free(dispatcher->closed);
		dispatcher->closed = more;
		dispatcher->closed_room = room;
	}
	dispatcher->closed[dispatcher->nclosed++ % CLOSED_MOST] = context;
}

void tti_dispatcher_close(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox)
{
	pthread_mutex_lock(&dispatcher->lock);
	for (struct tti_mailbox **link = &dispatcher->mailboxes; *link; link = &(*link)->next)
		if (*link == mailbox) {
			*link = mailbox->next;
			break;
		}
	remember_closed(dispatcher, mailbox->context);
	settle(dispatcher, mailbox);
	pthread_mutex_unlock(&dispatcher->lock);
}

/* -- What comes ------------------------------------------------------------------------ */

static void keep(struct tti_dispatcher *dispatcher, int from, const struct tti_mail *mail,
		 size_t nbytes)
{
	struct tti_unexpected_mail *kept =
		tti_alloc(offsetof(struct tti_unexpected_mail, mail) + nbytes);

	if (!kept) {
		const size_t i = dispatcher->nmissed++ % TTI_DISPATCHER_MISSED;

		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory for mail of rank %d", from);
		dispatcher->missed[i].context = mail->context;
		dispatcher->missed[i].from = from;
		return;
	}
	kept->next = NULL;
	kept->from = from;
	kept->nbytes = nbytes;
	memcpy(&kept->mail, mail, nbytes);
	*dispatcher->unexpected_end = kept;
	dispatcher->unexpected_end = &kept->next;
}

tutti_status tti_dispatcher_send(struct tti_boot *carrier, int to, struct tti_mail *mail,
				 const void *data, size_t nbytes)
{
	if (nbytes > 0)
		memcpy(mail->data, data, nbytes);
	return carrier->ops->mail(carrier, to, mail, TTI_MAIL_HEAD + nbytes);
}

static void say_closed(struct tti_boot *carrier, int to, uint64_t context)
{
	struct tti_mail mail = { .context = context, .kind = TTI_MAIL_CLOSED };

	if (tti_dispatcher_send(carrier, to, &mail, NULL, 0) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "no answer to rank %d: %s", to, tti_error_text());
}

void tti_dispatcher_take(struct tti_boot *carrier, int from, const struct tti_mail *mail,
			 size_t nbytes)
{
	struct tti_dispatcher *dispatcher = &carrier->dispatcher;
	struct tti_mailbox *mailbox;
	bool closed;

	pthread_mutex_lock(&dispatcher->lock);
	mailbox = find(dispatcher, mail->context);
	closed = !mailbox && was_closed(dispatcher, mail->context);
	if (mailbox)
		hand_over(dispatcher, mailbox, from, mail, nbytes);
	else if (!closed && mail->kind != TTI_MAIL_ASK && mail->kind != TTI_MAIL_CLOSED)
		keep(dispatcher, from, mail, nbytes);
	pthread_mutex_unlock(&dispatcher->lock);
	if (closed && (mail->kind == TTI_MAIL_ASK || mail->kind == TTI_MAIL_FAILURE ||
		       mail->kind == TTI_MAIL_REQUEST))
		say_closed(carrier, from, mail->context);
}

static struct tti_mailbox *find_due(const struct tti_dispatcher *dispatcher)
{
	struct tti_mailbox *mailbox = dispatcher->mailboxes;

	while (mailbox && !mailbox->is_due)
		mailbox = mailbox->next;
	return mailbox;
}

void tti_dispatcher_down(struct tti_dispatcher *dispatcher, int peer, enum tti_down how,
			 bool for_good, const char *why, const struct tti_mailbox *teller)
{
	struct tti_mailbox *due;

	pthread_mutex_lock(&dispatcher->down_lock);
	pthread_mutex_lock(&dispatcher->lock);
	/* A rank that could not be reached may have died: now that is known. */
	if (how == TTI_DOWN_DIED && dispatcher->first_dead < 0)
		dispatcher->first_dead = peer;
	if (tti_bit_has(dispatcher->down, (size_t)peer)) {
		pthread_mutex_unlock(&dispatcher->lock);
		pthread_mutex_unlock(&dispatcher->down_lock);
		return;
	}
	if (for_good)
		tti_bit_set(dispatcher->down, (size_t)peer);
	/* Boxes that are there now; one that is opened later looks itself. */
	for (struct tti_mailbox *mailbox = dispatcher->mailboxes; mailbox; mailbox = mailbox->next)
		mailbox->is_due = mailbox != teller;
	while ((due = find_due(dispatcher))) {
		due->is_due = false;
		if (!due->down)
			continue;
		begin_call(dispatcher, due);
		due->down(due, peer, how, why);
		end_call(dispatcher, due);
	}
	pthread_mutex_unlock(&dispatcher->lock);
	pthread_mutex_unlock(&dispatcher->down_lock);
}

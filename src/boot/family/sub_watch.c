/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/sub.h"

#include <stdio.h>
#include <string.h>

#include "boot/net/wire.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

struct tti_sub *tti_sub_of(struct tti_mailbox *mailbox)
{
	return (struct tti_sub *)((char *)mailbox - offsetof(struct tti_sub, mailbox));
}

int tti_sub_find(const struct tti_sub *sub, int carrier_rank)
{
	for (int rank = 0; rank < sub->base.nranks; rank++)
		if (sub->member[rank] == carrier_rank)
			return rank;
	return -1;
}

const char *tti_sub_name_as(const struct tti_boot *boot, int rank, int number, char *buf)
{
	const struct tti_sub *sub = (const struct tti_sub *)boot;

	if (sub->carrier->ops->name)
		return sub->carrier->ops->name(sub->carrier, sub->member[rank], number, buf);
	(void)snprintf(buf, TTI_BOOT_NAME, "rank %d", number);
	return buf;
}

const char *tti_sub_name(const struct tti_sub *sub, int rank, char buf[TTI_BOOT_NAME])
{
	return tti_sub_name_as(&sub->base, rank, rank, buf);
}

tutti_status tti_sub_mail(struct tti_sub *sub, int peer, enum tti_mail_kind kind, uint32_t seq,
			  const void *data, size_t nbytes)
{
	struct tti_mail mail = { .context = sub->mailbox.context, .kind = kind, .seq = seq };

	return tti_dispatcher_send(sub->carrier, sub->member[peer], &mail, data, nbytes);
}

void tti_sub_end_exchange(struct tti_sub *sub)
{
	while (sub->letters) {
		struct tti_letter *letter = sub->letters;

		sub->letters = letter->next;
		tti_free(letter);
	}
	sub->letters_end = &sub->letters;
	tti_free(sub->sent);
	tti_free(sub->received);
	sub->sent = sub->received = NULL;
}

/* -- Failures ----------------------------------------------------------------------- */

static void mail_failure(struct tti_sub *sub, int peer)
{
	if (tti_sub_mail(sub, peer, TTI_MAIL_FAILURE, 0, &sub->failure, sizeof(sub->failure)) !=
	    TUTTI_OK)
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no failure notification to rank %d: %s", peer,
			tti_error_text());
}

/* The next member in that direction that is still there; the own rank: none is. The lock is held. */
static int next_member(const struct tti_sub *sub, int sign)
{
	const int n = sub->base.nranks;
	int peer = sub->base.rank;

	do
		peer = (peer + sign + n) % n;
	while (peer != sub->base.rank && tti_bit_has(sub->left, (size_t)peer));
	return peer;
}

/* Pass the failure on both ways, but not to the rank that has brought it. */
static void forward(struct tti_sub *sub, int from)
{
	int to[2];

	pthread_mutex_lock(&sub->lock);
	for (int way = 0; way < 2; way++) {
		const int peer = next_member(sub, way ? -1 : 1);

		to[way] = peer == sub->base.rank || peer == sub->notified[0] ||
					  peer == sub->notified[1] || peer == from
				  ? -1
				  : peer;
		if (peer != sub->base.rank)
			sub->notified[way] = peer;
	}
	pthread_mutex_unlock(&sub->lock);
	for (int way = 0; way < 2; way++)
		if (to[way] >= 0)
			mail_failure(sub, to[way]);
}

/* Within a process, where a chain of calls would be as deep as there are ranks. */
static void tell_all(struct tti_sub *sub)
{
	for (int peer = 0; peer < sub->base.nranks; peer++)
		if (peer != sub->base.rank)
			mail_failure(sub, peer);
}

static void tell_caller(struct tti_sub *sub)
{
	struct tti_watch_events events;
	bool tell;

	pthread_mutex_lock(&sub->lock);
	tell = sub->lost && sub->has_events && !sub->told;
	sub->told |= tell;
	events = sub->events;
	pthread_mutex_unlock(&sub->lock);
	if (tell && events.on_lost)
		events.on_lost(events.self, &sub->failure);
}

void tti_sub_learn(struct tti_sub *sub, const struct tti_failure *failure, int from)
{
	bool first;

	pthread_mutex_lock(&sub->lock);
	first = !sub->lost;
	if (first) {
		sub->failure = *failure;
		sub->lost = true;
		pthread_cond_broadcast(&sub->came);
	}
	pthread_mutex_unlock(&sub->lock);
	if (!first)
		return;
	tell_caller(sub);
	if (!sub->base.local)
		forward(sub, from);
	else if (from < 0)
		tell_all(sub);
}

/* A member is gone: the failure goes around it. */
static void skip(struct tti_sub *sub, int peer)
{
	bool again;

	pthread_mutex_lock(&sub->lock);
	tti_bit_set(sub->left, (size_t)peer);
	again = sub->lost && (sub->notified[0] == peer || sub->notified[1] == peer);
	pthread_mutex_unlock(&sub->lock);
	if (again && !sub->base.local)
		forward(sub, peer);
}

void tti_sub_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	struct tti_sub *sub = tti_sub_of(mailbox);
	const int rank = tti_sub_find(sub, peer);
	struct tti_failure failure;
	char name[TTI_BOOT_NAME];

	if (rank < 0 || rank == sub->base.rank)
		return;
	skip(sub, rank);
	/* It has closed the communicator before, or sent all that an exchange needs, or is missed there. */
	if (how == TTI_DOWN_LEFT)
		return;
	failure = tti_failure_make(TUTTI_EPEER, rank, sub->base.rank, "%s %s",
				   tti_sub_name(sub, rank, name), why);
	failure.died = how == TTI_DOWN_DIED;
	tti_sub_learn(sub, &failure, -1);
}

/* -- Questions -------------------------------------------------------------------------- */

static bool get_events(struct tti_sub *sub, struct tti_watch_events *out)
{
	bool has;

	pthread_mutex_lock(&sub->lock);
	has = sub->has_events;
	*out = sub->events;
	pthread_mutex_unlock(&sub->lock);
	return has;
}

/* A rank that does not watch yet does not answer, and is asked again. */
static void take_ask(struct tti_sub *sub, int from)
{
	struct tti_watch_events events;
	struct tti_call call = { .waiting_on = -1 };

	if (!get_events(sub, &events) || !events.on_ask)
		return;
	events.on_ask(events.self, &call);
	if (tti_sub_mail(sub, from, TTI_MAIL_ANSWER, 0, &call, sizeof(call)) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "no answer to rank %d: %s", from, tti_error_text());
}

static void answer(struct tti_sub *sub, int from, const struct tti_call *call)
{
	struct tti_watch_events events;

	if (get_events(sub, &events) && events.on_answer)
		events.on_answer(events.self, from, call);
}

/* Mail may tell of a death before this rank sees it on a connection of its own. So the other communicators
 * of the dead rank, and in time the carrier, hear of it from here as well: a rank that leaves them
 * because of that death is not to be taken for the cause. They hear first, as the caller may leave as
 * soon as it is told. This communicator hears it in the words of the rank that noticed. */
static void take_failure(struct tti_sub *sub, int from, const struct tti_failure *failure)
{
	char name[TTI_BOOT_NAME];

	if (failure->died && failure->failed_rank >= 0 && failure->failed_rank != sub->base.rank) {
		tti_dispatcher_down(
			&sub->carrier->dispatcher, sub->member[failure->failed_rank], TTI_DOWN_DIED,
			true,
			tti_failure_why(failure, tti_sub_name(sub, failure->failed_rank, name)),
			&sub->mailbox);
		skip(sub, failure->failed_rank);
	}
	tti_sub_learn(sub, failure, from);
}

void tti_sub_receive(struct tti_sub *sub, int from, const struct tti_mail *mail, size_t nbytes)
{
	struct tti_failure failure;
	struct tti_call call;

	if (mail->kind == TTI_MAIL_FAILURE && nbytes == sizeof(failure)) {
		memcpy(&failure, mail->data, sizeof(failure));
		tti_wire_clean(failure.text, sizeof(failure.text));
		if (failure.status <= TUTTI_STATUS_LOST && failure.failed_rank >= -1 &&
		    failure.failed_rank < sub->base.nranks)
			take_failure(sub, from, &failure);
	} else if (mail->kind == TTI_MAIL_ASK) {
		take_ask(sub, from);
	} else if (mail->kind == TTI_MAIL_ANSWER && nbytes == sizeof(call)) {
		memcpy(&call, mail->data, sizeof(call));
		tti_wire_clean(call.text, sizeof(call.text));
		tti_wire_clean(call.way, sizeof(call.way));
		answer(sub, from, &call);
	} else if (mail->kind == TTI_MAIL_CLOSED) {
		skip(sub, from);
		answer(sub, from, NULL);
	}
}

/* -- The watch (watch.h) ------------------------------------------------------------------ */

tutti_status tti_sub_watch_start(struct tti_boot *boot, const struct tti_watch_events *events)
{
	struct tti_sub *sub = (struct tti_sub *)boot;

	pthread_mutex_lock(&sub->lock);
	tti_sub_end_exchange(sub);
	sub->events = *events;
	sub->has_events = true;
	pthread_mutex_unlock(&sub->lock);
	tell_caller(sub);
	return TUTTI_OK;
}

void tti_sub_watch_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct tti_sub *sub = (struct tti_sub *)boot;
	struct tti_failure own = *failure;

	own.text[TTI_FAILURE_TEXT - 1] = '\0';
	tti_sub_learn(sub, &own, -1);
}

void tti_sub_watch_ask(struct tti_boot *boot, int peer)
{
	struct tti_sub *sub = (struct tti_sub *)boot;
	bool left;

	pthread_mutex_lock(&sub->lock);
	left = tti_bit_has(sub->left, (size_t)peer);
	pthread_mutex_unlock(&sub->lock);
	if (left)
		answer(sub, peer, NULL);
	else if (tti_sub_mail(sub, peer, TTI_MAIL_ASK, 0, NULL, 0) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "rank %d cannot be asked: %s", peer,
			tti_error_text());
}

void tti_sub_watch_stop(struct tti_boot *boot)
{
	struct tti_sub *sub = (struct tti_sub *)boot;

	pthread_mutex_lock(&sub->lock);
	sub->has_events = false;
	pthread_mutex_unlock(&sub->lock);
	tti_dispatcher_settle(&sub->carrier->dispatcher, &sub->mailbox);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/office.h"

#include <string.h>

#include "boot/base.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

/* Contexts that are known to be closed: who is asked about older ones is silent. */
#define CLOSED_MOST 1024

/* Mail for a context that is not here yet. */
struct tti_stray {
	struct tti_stray *next;
	int from;
	size_t nbytes; /* of mail */
	struct tti_mail mail;
};

tutti_status tti_office_init(struct tti_office *office, int nranks)
{
	*office = (struct tti_office){ .nranks = nranks, .fallen = -1 };
	office->down = tti_calloc(TTI_BITSET_WORDS(nranks), sizeof(uint64_t));
	if (!office->down)
		return tti_fail(TUTTI_ENOMEM, "mail of %d ranks: out of memory", nranks);
	pthread_mutex_init(&office->lock, NULL);
	pthread_mutex_init(&office->down_lock, NULL);
	pthread_cond_init(&office->settled, NULL);
	office->strays_end = &office->strays;
	return TUTTI_OK;
}

void tti_office_release(struct tti_office *office)
{
	if (!office->down)
		return;
	while (office->strays) {
		struct tti_stray *stray = office->strays;

		office->strays = stray->next;
		tti_free(stray);
	}
	tti_free(office->closed);
	tti_free(office->down);
	office->down = NULL;
	pthread_cond_destroy(&office->settled);
	pthread_mutex_destroy(&office->down_lock);
	pthread_mutex_destroy(&office->lock);
}

bool tti_office_is_down(struct tti_office *office, int peer)
{
	bool down;

	pthread_mutex_lock(&office->lock);
	down = tti_bit_has(office->down, (size_t)peer);
	pthread_mutex_unlock(&office->lock);
	return down;
}

int tti_office_fallen(struct tti_office *office)
{
	int fallen;

	pthread_mutex_lock(&office->lock);
	fallen = office->fallen;
	pthread_mutex_unlock(&office->lock);
	return fallen;
}

/* -- Boxes --------------------------------------------------------------------------- */

/* A box is called without the lock, and stays as long; the lock is held around both. */
static void begin_call(struct tti_office *office, struct tti_box *box)
{
	box->calling++;
	pthread_mutex_unlock(&office->lock);
}

static void end_call(struct tti_office *office, struct tti_box *box)
{
	pthread_mutex_lock(&office->lock);
	if (--box->calling == 0)
		pthread_cond_broadcast(&office->settled);
}

static struct tti_box *find(struct tti_office *office, uint64_t context)
{
	struct tti_box *box = office->boxes;

	while (box && box->context != context)
		box = box->next;
	return box;
}

static bool was_closed(const struct tti_office *office, uint64_t context)
{
	const size_t n = office->nclosed < CLOSED_MOST ? office->nclosed : CLOSED_MOST;

	for (size_t i = 0; i < n; i++)
		if (office->closed[i] == context)
			return true;
	return false;
}

bool tti_office_knows(struct tti_office *office, uint64_t context)
{
	bool knows;

	pthread_mutex_lock(&office->lock);
	knows = find(office, context) || was_closed(office, context);
	pthread_mutex_unlock(&office->lock);
	return knows;
}

/* The first stray of this context, taken out; NULL: none. */
static struct tti_stray *find_stray(struct tti_office *office, uint64_t context)
{
	for (struct tti_stray **link = &office->strays; *link; link = &(*link)->next) {
		struct tti_stray *stray = *link;

		if (stray->mail.context != context)
			continue;
		*link = stray->next;
		if (!*link)
			office->strays_end = link;
		return stray;
	}
	return NULL;
}

static void tell_missed(struct tti_office *office, struct tti_box *box)
{
	const size_t n = office->nmissed < TTI_OFFICE_MISSED ? office->nmissed : TTI_OFFICE_MISSED;

	for (size_t i = 0; i < n; i++) {
		const int from = office->missed[i].from;

		if (office->missed[i].context != box->context || from < 0)
			continue;
		office->missed[i].from = -1;
		if (!box->missed)
			continue;
		begin_call(office, box);
		box->missed(box, from);
		end_call(office, box);
	}
}

void tti_office_open(struct tti_office *office, struct tti_box *box)
{
	struct tti_stray *stray;

	pthread_mutex_lock(&office->lock);
	box->next = office->boxes;
	office->boxes = box;
	while ((stray = find_stray(office, box->context))) {
		begin_call(office, box);
		box->take(box, stray->from, &stray->mail, stray->nbytes - TTI_MAIL_HEAD);
		end_call(office, box);
		tti_free(stray);
	}
	tell_missed(office, box);
	pthread_mutex_unlock(&office->lock);
}

static void settle(struct tti_office *office, const struct tti_box *box)
{
	while (box->calling > 0)
		pthread_cond_wait(&office->settled, &office->lock);
}

void tti_office_settle(struct tti_office *office, struct tti_box *box)
{
	pthread_mutex_lock(&office->lock);
	settle(office, box);
	pthread_mutex_unlock(&office->lock);
}

/* A table that grows up to CLOSED_MOST, then round and round. */
static void remember_closed(struct tti_office *office, uint64_t context)
{
	if (office->nclosed == office->closed_room && office->closed_room < CLOSED_MOST) {
		const size_t room = office->closed_room ? office->closed_room * 2 : 8;
		uint64_t *more = tti_calloc(room, sizeof(*more));

		if (!more)
			return; /* who asks waits for an answer in vain, and says so */
		if (office->nclosed > 0)
			memcpy(more, office->closed, office->nclosed * sizeof(*more));
		tti_free(office->closed);
		office->closed = more;
		office->closed_room = room;
	}
	office->closed[office->nclosed++ % CLOSED_MOST] = context;
}

void tti_office_close(struct tti_office *office, struct tti_box *box)
{
	pthread_mutex_lock(&office->lock);
	for (struct tti_box **link = &office->boxes; *link; link = &(*link)->next)
		if (*link == box) {
			*link = box->next;
			break;
		}
	remember_closed(office, box->context);
	settle(office, box);
	pthread_mutex_unlock(&office->lock);
}

/* -- What comes ------------------------------------------------------------------------ */

static void keep(struct tti_office *office, int from, const struct tti_mail *mail, size_t nbytes)
{
	struct tti_stray *stray = tti_alloc(offsetof(struct tti_stray, mail) + nbytes);

	if (!stray) {
		const size_t i = office->nmissed++ % TTI_OFFICE_MISSED;

		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory for mail of rank %d", from);
		office->missed[i].context = mail->context;
		office->missed[i].from = from;
		return;
	}
	stray->next = NULL;
	stray->from = from;
	stray->nbytes = nbytes;
	memcpy(&stray->mail, mail, nbytes);
	*office->strays_end = stray;
	office->strays_end = &stray->next;
}

static void say_closed(struct tti_boot *carrier, int to, uint64_t context)
{
	const struct tti_mail mail = { .context = context, .kind = TTI_MAIL_CLOSED };

	if (carrier->ops->mail(carrier, to, &mail, TTI_MAIL_HEAD) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "no answer to rank %d: %s", to, tti_error_text());
}

void tti_office_take(struct tti_boot *carrier, int from, const struct tti_mail *mail, size_t nbytes)
{
	struct tti_office *office = &carrier->office;
	struct tti_box *box;
	bool closed;

	pthread_mutex_lock(&office->lock);
	box = find(office, mail->context);
	closed = !box && was_closed(office, mail->context);
	if (box) {
		begin_call(office, box);
		box->take(box, from, mail, nbytes - TTI_MAIL_HEAD);
		end_call(office, box);
	} else if (!closed && mail->kind != TTI_MAIL_ASK && mail->kind != TTI_MAIL_CLOSED) {
		keep(office, from, mail, nbytes);
	}
	pthread_mutex_unlock(&office->lock);
	if (closed && (mail->kind == TTI_MAIL_ASK || mail->kind == TTI_MAIL_NEWS))
		say_closed(carrier, from, mail->context);
}

static struct tti_box *find_due(const struct tti_office *office)
{
	struct tti_box *box = office->boxes;

	while (box && !box->is_due)
		box = box->next;
	return box;
}

void tti_office_down(struct tti_office *office, int peer, enum tti_down how, bool for_good,
		     const char *why, const struct tti_box *teller)
{
	struct tti_box *due;

	pthread_mutex_lock(&office->down_lock);
	pthread_mutex_lock(&office->lock);
	/* Also of a rank that could not be reached before: it is now known why. */
	if (how == TTI_DOWN_DIED && office->fallen < 0)
		office->fallen = peer;
	if (tti_bit_has(office->down, (size_t)peer)) {
		pthread_mutex_unlock(&office->lock);
		pthread_mutex_unlock(&office->down_lock);
		return;
	}
	if (for_good)
		tti_bit_set(office->down, (size_t)peer);
	/* Boxes that are there now; one that is opened later looks itself. */
	for (struct tti_box *box = office->boxes; box; box = box->next)
		box->is_due = box != teller;
	while ((due = find_due(office))) {
		due->is_due = false;
		begin_call(office, due);
		due->down(due, peer, how, why);
		end_call(office, due);
	}
	pthread_mutex_unlock(&office->lock);
	pthread_mutex_unlock(&office->down_lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/family/sub.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "boot/net/wire.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"
#include "util/thread.h"

/* -- What comes -------------------------------------------------------------------- */

/* That mail is lost and will not come again. */
static void lack_memory(struct tti_sub *sub, int from)
{
	const int own = sub->base.rank;
	char name[TTI_BOOT_NAME];
	const struct tti_failure failure =
		tti_failure_make(TUTTI_EPEER, own, own, "%s is out of memory for what rank %d sent",
				 tti_sub_name(sub, own, name), from);

	tti_sub_learn(sub, &failure, -1);
}

static void put_letter(struct tti_sub *sub, int from, const struct tti_mail *mail, size_t nbytes)
{
	struct tti_letter *letter = tti_alloc(sizeof(*letter) + nbytes);

	if (!letter) {
		lack_memory(sub, from);
		return;
	}
	*letter = (struct tti_letter){ .from = from, .seq = mail->seq, .nbytes = nbytes };
	memcpy(letter->data, mail->data, nbytes);
	pthread_mutex_lock(&sub->lock);
	/* The same part may come twice. */
	if (sub->received && (int32_t)(letter->seq - sub->received[from]) >= 0) {
		*sub->letters_end = letter;
		sub->letters_end = &letter->next;
		letter = NULL;
		pthread_cond_broadcast(&sub->came);
	}
	pthread_mutex_unlock(&sub->lock);
	tti_free(letter);
}

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *mail, size_t nbytes)
{
	struct tti_sub *sub = tti_sub_of(mailbox);
	const int rank = tti_sub_find(sub, from);

	if (rank < 0)
		return; /* a rank of the carrier, but not of this sub */
	if (mail->kind == TTI_MAIL_BLOCK)
		put_letter(sub, rank, mail, nbytes);
	else
		tti_sub_receive(sub, rank, mail, nbytes);
}

static void miss(struct tti_mailbox *mailbox, int from)
{
	struct tti_sub *sub = tti_sub_of(mailbox);
	const int rank = tti_sub_find(sub, from);

	if (rank >= 0)
		lack_memory(sub, rank);
}

/* -- The exchange ------------------------------------------------------------------- */

static TUTTI_PRINTF(4, 5) tutti_status
	fail(struct tti_sub *sub, tutti_status status, int failed_rank, const char *fmt, ...)
{
	const tutti_status told = status <= TUTTI_STATUS_LOST ? status : TUTTI_EPEER;
	struct tti_failure failure;
	va_list args;

	va_start(args, fmt);
	failure = tti_failure_vmake(told, failed_rank, sub->base.rank, fmt, args);
	va_end(args);
	tti_sub_learn(sub, &failure, -1);
	return tti_fail(status, "%s", failure.text);
}

/* What was sent before a goodbye may come later, over another connection. */
#define LATE_MS 300

/* Take out the next part from `peer`; NULL: it is not here yet. The lock is held. */
static struct tti_letter *find_letter(struct tti_sub *sub, int peer)
{
	for (struct tti_letter **link = &sub->letters; *link; link = &(*link)->next) {
		struct tti_letter *letter = *link;

		if (letter->from != peer || letter->seq != sub->received[peer])
			continue;
		*link = letter->next;
		if (!*link)
			sub->letters_end = link;
		sub->received[peer]++;
		return letter;
	}
	return NULL;
}

/* Why a wait for `peer` has ended without a letter. */
static tutti_status give_up(struct tti_sub *sub, int peer, const char *what, tutti_status st,
			    bool stopped)
{
	char name[TTI_BOOT_NAME];

	if (stopped && st == TUTTI_EPEER)
		return fail(
			sub, st, -1,
			"%s left %s, as a rank of the communicator that this one is made of died",
			tti_sub_name(sub, sub->base.rank, name), what);
	if (stopped)
		return fail(sub, st, -1, "%s was %s on rank %d", what,
			    st == TUTTI_EREVOKED ? "revoked" : "aborted", sub->base.rank);
	if (st == TUTTI_EPEER)
		return fail(sub, st, peer, "%s: %s left", what, tti_sub_name(sub, peer, name));
	return fail(sub, st, peer, "%s: nothing came from %s within %lld ms", what,
		    tti_sub_name(sub, peer, name), (long long)sub->timeout_ms);
}

/* Whether config.on_wait() lets the wait go on. The lock is held, but not during that call. */
static tutti_status ask(struct tti_sub *sub, int peer, bool is_late, char *text, size_t size)
{
	tutti_status st = TUTTI_AGAIN;

	if (sub->on_wait) {
		pthread_mutex_unlock(&sub->lock);
		st = sub->on_wait(sub->self, peer, is_late);
		if (st < 0)
			(void)snprintf(text, size, "%s", tti_error_text());
		pthread_mutex_lock(&sub->lock);
	}
	return st == TUTTI_AGAIN && is_late ? TUTTI_ETIMEOUT : st;
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

static tutti_status await(struct tti_sub *sub, int peer, const char *what, int64_t deadline_ns,
			  struct tti_letter **out)
{
	tutti_status st = TUTTI_AGAIN;
	int64_t late_ns = INT64_MAX;
	int64_t ask_ns = sub->on_wait ? tti_deadline(TTI_BOOT_NAP_MS) : INT64_MAX;
	bool lost, left = false, stopped = false;
	char why[TTI_FAILURE_TEXT] = "";

	pthread_mutex_lock(&sub->lock);
	while (st == TUTTI_AGAIN) {
		if (!left && tti_bit_has(sub->left, (size_t)peer)) {
			left = true;
			late_ns = tti_deadline(LATE_MS);
		}
		*out = find_letter(sub, peer);
		if (*out)
			st = TUTTI_OK;
		else if (sub->lost)
			st = (tutti_status)sub->failure.status;
		else if ((stopped = tti_boot_stopped(sub->stop)))
			st = *sub->stop < 0 ? (tutti_status)*sub->stop : TUTTI_EABORTED;
		else if (left && tti_now_ns() >= late_ns)
			st = TUTTI_EPEER;
		else if (tti_left_ms(deadline_ns, 1) == 0)
			st = ask(sub, peer, true, why, sizeof(why));
		else if (tti_now_ns() >= ask_ns) {
			ask_ns = tti_deadline(TTI_BOOT_NAP_MS);
			st = ask(sub, peer, false, why, sizeof(why));
		} else
			tti_cond_wait_until(&sub->came, &sub->lock,
					    earlier(tti_deadline(TTI_BOOT_NAP_MS), deadline_ns));
	}
	lost = sub->lost;
	pthread_mutex_unlock(&sub->lock);
	if (st == TUTTI_OK)
		return st;
	if (lost)
		return tti_fail((tutti_status)sub->failure.status, "%s", sub->failure.text);
	return *why ? fail(sub, st, -1, "%s", why) : give_up(sub, peer, what, st, stopped);
}

static tutti_status receive(struct tti_sub *sub, int peer, void *data, size_t nbytes,
			    const char *what, int64_t deadline_ns)
{
	size_t at = 0;

	do {
		const size_t left = nbytes - at;
		const size_t now = left < TTI_MAIL_DATA ? left : TTI_MAIL_DATA;
		struct tti_letter *letter = NULL;
		size_t got;

		TTI_TRY(await(sub, peer, what, deadline_ns, &letter));
		got = letter->nbytes;
		if (got == now && now > 0)
			memcpy((uint8_t *)data + at, letter->data, now);
		tti_free(letter);
		if (got != now)
			return fail(sub, TUTTI_EPROTO, peer,
				    "%s: rank %d sent %zu bytes, %zu are wanted", what, peer, got,
				    now);
		at += now;
	} while (at < nbytes);
	return TUTTI_OK;
}

/* An error is this rank's own: whoever waits for the exchange gives up. */
static tutti_status send_all(struct tti_sub *sub, int peer, const void *data, size_t nbytes)
{
	size_t at = 0;

	do {
		const size_t left = nbytes - at;
		const size_t now = left < TTI_MAIL_DATA ? left : TTI_MAIL_DATA;

		TTI_TRY(tti_sub_mail(sub, peer, TTI_MAIL_BLOCK, sub->sent[peer]++,
				     (const uint8_t *)data + at, now));
		at += now;
	} while (at < nbytes);
	return TUTTI_OK;
}

static tutti_status begin(struct tti_sub *sub)
{
	pthread_mutex_lock(&sub->lock);
	const bool lost = sub->lost;

	pthread_mutex_unlock(&sub->lock);
	if (lost)
		return tti_fail((tutti_status)sub->failure.status, "%s", sub->failure.text);
	return TUTTI_OK;
}

/* The member so many places before this one in the ring; a negative number: after it. */
static int behind(const struct tti_sub *sub, int places)
{
	const int n = sub->base.nranks;

	return ((sub->base.rank - places) % n + n) % n;
}

static tutti_status all_gather(struct tti_boot *boot, void *blobs, size_t nbytes)
{
	struct tti_sub *sub = (struct tti_sub *)boot;
	const char *what = nbytes ? "all_gather" : "barrier";
	const int64_t deadline_ns = tti_deadline(sub->timeout_ms);
	const int ahead = boot->nranks / 2, back = (boot->nranks - 1) / 2;
	uint8_t *at = blobs;

	TTI_TRY(begin(sub));
	for (int i = 0; i < ahead; i++) {
		const size_t mine = (size_t)behind(sub, i), his = (size_t)behind(sub, -i);
		const size_t in = (size_t)behind(sub, i + 1), other = (size_t)behind(sub, -i - 1);

		TTI_TRY(send_all(sub, behind(sub, -1), at + mine * nbytes, nbytes));
		if (i < back)
			TTI_TRY(send_all(sub, behind(sub, 1), at + his * nbytes, nbytes));
		TTI_TRY(receive(sub, behind(sub, 1), at + in * nbytes, nbytes, what, deadline_ns));
		if (i < back)
			TTI_TRY(receive(sub, behind(sub, -1), at + other * nbytes, nbytes, what,
					deadline_ns));
	}
	return TUTTI_OK;
}

/* To half the ring in each direction, as in the all-gather. */
static tutti_status broadcast(struct tti_boot *boot, int root, void *data, size_t nbytes)
{
	struct tti_sub *sub = (struct tti_sub *)boot;
	const int n = boot->nranks, ahead = n / 2, back = (n - 1) / 2;
	const int hops = ((boot->rank - root) % n + n) % n; /* from the root, upwards */
	const int64_t deadline_ns = tti_deadline(sub->timeout_ms);

	TTI_TRY(begin(sub));
	if (hops > 0)
		TTI_TRY(receive(sub, behind(sub, hops <= ahead ? 1 : -1), data, nbytes, "broadcast",
				deadline_ns));
	if (hops < ahead)
		TTI_TRY(send_all(sub, behind(sub, -1), data, nbytes));
	if (hops == 0 ? back > 0 : hops > ahead && n - hops < back)
		TTI_TRY(send_all(sub, behind(sub, 1), data, nbytes));
	return TUTTI_OK;
}

/* -- Opening and closing -------------------------------------------------------------- */

static void release(struct tti_sub *sub)
{
	tti_sub_end_exchange(sub);
	tti_free(sub->left);
	tti_free(sub->member);
	pthread_cond_destroy(&sub->came);
	pthread_mutex_destroy(&sub->lock);
	tti_secret_free(sub);
}

static void close_sub(struct tti_boot *boot)
{
	struct tti_sub *sub = (struct tti_sub *)boot;

	tti_dispatcher_close(&sub->carrier->dispatcher, &sub->mailbox);
	release(sub);
}

static const struct tti_boot_ops sub_ops = {
	.all_gather = all_gather,
	.broadcast = broadcast,
	.give_up = tti_sub_watch_notify,
	.close = close_sub,
	.watch_start = tti_sub_watch_start,
	.watch_notify = tti_sub_watch_notify,
	.watch_ask = tti_sub_watch_ask,
	.watch_stop = tti_sub_watch_stop,
	.name = tti_sub_name_as,
};

/* The secret follows from the carrier's and the context. */
static void derive_secret(struct tti_sub *sub)
{
	(void)crypto_generichash(
		sub->base.secret, sizeof(sub->base.secret), (const uint8_t *)&sub->mailbox.context,
		sizeof(sub->mailbox.context), sub->carrier->secret, sizeof(sub->carrier->secret));
}

struct tti_boot *tti_boot_carrier(struct tti_boot *boot)
{
	return boot->ops == &sub_ops ? ((struct tti_sub *)boot)->carrier : boot;
}

int tti_boot_carrier_rank(struct tti_boot *boot, int rank)
{
	return boot->ops == &sub_ops ? ((struct tti_sub *)boot)->member[rank] : rank;
}

int tti_boot_find_rank(struct tti_boot *boot, int carrier_rank)
{
	const bool is_rank = carrier_rank >= 0 && carrier_rank < boot->nranks;

	if (boot->ops == &sub_ops)
		return tti_sub_find((struct tti_sub *)boot, carrier_rank);
	return is_rank ? carrier_rank : -1;
}

static tutti_status fill(struct tti_sub *sub, struct tti_boot *parent, const int *ranks, int n)
{
	sub->member = tti_calloc((size_t)n, sizeof(*sub->member));
	sub->sent = tti_calloc((size_t)n, sizeof(*sub->sent));
	sub->received = tti_calloc((size_t)n, sizeof(*sub->received));
	sub->left = tti_calloc(TTI_BITSET_WORDS(n), sizeof(uint64_t));
	if (!sub->member || !sub->sent || !sub->received || !sub->left)
		return tti_fail(TUTTI_ENOMEM, "a communicator of %d ranks: out of memory", n);
	for (int rank = 0; rank < n; rank++) {
		const int old = ranks ? ranks[rank] : rank;

		sub->member[rank] = tti_boot_carrier_rank(parent, old);
		if (old == parent->rank)
			sub->base.rank = rank;
	}
	derive_secret(sub);
	return TUTTI_OK;
}

tutti_status tti_boot_sub_create(struct tti_boot *parent, uint64_t context, const int *ranks, int n,
				 const struct tti_boot_config *config, struct tti_boot **out)
{
	struct tti_sub *sub = tti_secret_zalloc(sizeof(*sub));
	tutti_status st;

	if (!sub)
		return tti_fail(TUTTI_ENOMEM, "a communicator of %d ranks: out of memory", n);
	sub->carrier = tti_boot_carrier(parent);
	sub->base = (struct tti_boot){ .ops = &sub_ops, .nranks = n, .local = sub->carrier->local };
	sub->mailbox = (struct tti_mailbox){
		.context = context, .take = take, .down = tti_sub_down, .missed = miss
	};
	sub->timeout_ms = config->timeout_ms;
	sub->stop = config->stop;
	sub->on_wait = config->on_wait;
	sub->self = config->self;
	sub->letters_end = &sub->letters;
	sub->notified[0] = sub->notified[1] = -1;
	pthread_mutex_init(&sub->lock, NULL);
	tti_cond_init(&sub->came);
	st = fill(sub, parent, ranks, n);
	if (st != TUTTI_OK) {
		release(sub);
		return st;
	}
	tti_dispatcher_open(&sub->carrier->dispatcher, &sub->mailbox);
	for (int rank = 0; rank < n; rank++)
		if (tti_dispatcher_is_down(&sub->carrier->dispatcher, sub->member[rank]))
			tti_sub_down(&sub->mailbox, sub->member[rank], TTI_DOWN_LOST, "is gone");
	*out = &sub->base;
	return TUTTI_OK;
}

/* -- Not coming ----------------------------------------------------------------------- */

void tti_boot_sub_decline(struct tti_boot *parent, uint64_t context, const int *ranks, int n,
			  int rank)
{
	struct tti_boot *carrier = tti_boot_carrier(parent);
	struct tti_mailbox mailbox = { .context = context };
	struct tti_mail mail = { .context = context, .kind = TTI_MAIL_FAILURE };
	struct tti_failure failure;
	char name[TTI_BOOT_NAME], why[TTI_FAILURE_TEXT];

	(void)snprintf(why, sizeof(why), "%s", tti_error_text());
	if (carrier->ops->name)
		(void)carrier->ops->name(carrier, tti_boot_carrier_rank(parent, parent->rank), rank,
					 name);
	else
		(void)snprintf(name, sizeof(name), "rank %d", rank);
	failure = tti_failure_of(rank, name, why);
	tti_dispatcher_open(&carrier->dispatcher, &mailbox);
	for (int i = 0; i < n; i++) {
		const int peer = ranks ? ranks[i] : i;

		if (peer != parent->rank &&
		    tti_dispatcher_send(carrier, tti_boot_carrier_rank(parent, peer), &mail,
					&failure, sizeof(failure)) != TUTTI_OK)
			tti_log(TTI_LOG_WARN, TTI_BOOT, "no failure notification to rank %d: %s",
				peer, tti_error_text());
	}
	/* Mail for it that comes from now on is not kept. */
	tti_dispatcher_close(&carrier->dispatcher, &mailbox);
	tti_error_set(why);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/agreement.h"

#include <string.h>

#include "boot/base.h"
#include "boot/family/sub.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"
#include "util/thread.h"

#define RANKS_MOST (TTI_MAIL_DATA * 8)
#define WORDS_MOST (TTI_MAIL_DATA / sizeof(uint64_t))

/* A rank that waits asks again after so long. */
#define ASK_AGAIN_MS 1000

struct tti_agreement {
	struct tti_mailbox mailbox;
	struct tti_boot *carrier;
	int rank, n;
	size_t words; /* of n bits */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool decided;
	bool excluded; /* others have decided without this rank */
	/* One bit for each rank. */
	uint64_t out[WORDS_MOST];    /* is left out in any case                       */
	uint64_t dead[WORDS_MOST];   /* as far as is known; once decided: the decision */
	uint64_t heard[WORDS_MOST];  /* something came from it                        */
	uint64_t joined[WORDS_MOST]; /* it waits for the decision                     */
	uint64_t owed[WORDS_MOST];   /* it has sent a QUERY, and gets a JOIN          */
	uint64_t asked[WORDS_MOST];  /* was sent a QUERY                              */
	int member[];                /* [n]: their ranks in the carrier               */
};

static struct tti_agreement *agreement_of(struct tti_mailbox *mailbox)
{
	return (struct tti_agreement *)((char *)mailbox - offsetof(struct tti_agreement, mailbox));
}

static void mail(struct tti_agreement *agreement, int peer, enum tti_mail_kind kind,
		 const uint64_t *bits)
{
	struct tti_mail letter = { .context = agreement->mailbox.context, .kind = kind };
	const size_t nbytes = bits ? agreement->words * sizeof(*bits) : 0;

	if (tti_dispatcher_send(agreement->carrier, agreement->member[peer], &letter, bits,
				nbytes) != TUTTI_OK)
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no mail to rank %d: %s", peer, tti_error_text());
}

/* -- What comes ------------------------------------------------------------------------ */

static int find(const struct tti_agreement *agreement, int carrier_rank)
{
	for (int rank = 0; rank < agreement->n; rank++)
		if (agreement->member[rank] == carrier_rank)
			return rank;
	return -1;
}

static void merge(struct tti_agreement *agreement, const uint64_t *dead)
{
	for (size_t i = 0; i < agreement->words; i++)
		agreement->dead[i] |= dead[i] & ~agreement->heard[i];
}

static void hear(struct tti_agreement *agreement, int from, const struct tti_mail *letter,
		 const uint64_t *bits)
{
	tti_bit_set(agreement->heard, (size_t)from);
	if (!tti_bit_has(agreement->out, (size_t)from))
		tti_bit_clear(agreement->dead, (size_t)from);
	if (letter->kind == TTI_MAIL_JOIN) {
		tti_bit_set(agreement->joined, (size_t)from);
		merge(agreement, bits);
	} else if (letter->kind == TTI_MAIL_QUERY) {
		tti_bit_set(agreement->owed, (size_t)from);
	} else if (letter->kind == TTI_MAIL_DECISION) {
		memcpy(agreement->dead, bits, agreement->words * sizeof(*bits));
		agreement->decided = true;
	}
	pthread_cond_broadcast(&agreement->changed);
}

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *letter,
		 size_t nbytes)
{
	struct tti_agreement *agreement = agreement_of(mailbox);
	const int rank = find(agreement, from);
	const size_t wanted =
		letter->kind == TTI_MAIL_QUERY ? 0 : agreement->words * sizeof(uint64_t);
	uint64_t bits[WORDS_MOST];
	bool answers = false;

	if (rank < 0 || nbytes != wanted)
		return;
	memcpy(bits, letter->data, nbytes);
	pthread_mutex_lock(&agreement->lock);
	if (!agreement->decided) {
		hear(agreement, rank, letter, bits);
	} else if (letter->kind != TTI_MAIL_DECISION) {
		answers = true;
	} else if (tti_bit_has(bits, (size_t)agreement->rank)) {
		agreement->excluded = true;
	} else {
		answers = tti_bit_has(agreement->dead, (size_t)rank);
	}
	memcpy(bits, agreement->dead, agreement->words * sizeof(*bits));
	pthread_mutex_unlock(&agreement->lock);
	if (answers)
		mail(agreement, rank, TTI_MAIL_DECISION, bits);
}

static void down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	struct tti_agreement *agreement = agreement_of(mailbox);
	const int rank = find(agreement, peer);

	(void)how;
	(void)why;
	if (rank < 0)
		return;
	pthread_mutex_lock(&agreement->lock);
	if (!agreement->decided) {
		tti_bit_set(agreement->dead, (size_t)rank);
		tti_bit_clear(agreement->heard, (size_t)rank);
		tti_bit_clear(agreement->owed, (size_t)rank);
		pthread_cond_broadcast(&agreement->changed);
	}
	pthread_mutex_unlock(&agreement->lock);
}

/* -- Opening and closing ---------------------------------------------------------------- */

tutti_status tti_agreement_create(struct tti_boot *parent, uint64_t context, const uint64_t *out,
				  struct tti_agreement **agreement_out)
{
	const int n = tti_boot_nranks(parent);
	struct tti_agreement *agreement;

	if (n > RANKS_MOST)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"an agreement of %d ranks: %d at most; name the ranks to leave out",
				n, RANKS_MOST);
	agreement = tti_zalloc(sizeof(*agreement) + (size_t)n * sizeof(*agreement->member));
	if (!agreement)
		return tti_fail(TUTTI_ENOMEM, "an agreement of %d ranks: out of memory", n);
	agreement->mailbox = (struct tti_mailbox){ .context = context, .take = take, .down = down };
	agreement->carrier = tti_boot_carrier(parent);
	agreement->rank = tti_boot_rank(parent);
	agreement->n = n;
	agreement->words = TTI_BITSET_WORDS(n);
	pthread_mutex_init(&agreement->lock, NULL);
	tti_cond_init(&agreement->changed);
	for (int rank = 0; rank < n; rank++)
		agreement->member[rank] = tti_boot_carrier_rank(parent, rank);
	memcpy(agreement->out, out, agreement->words * sizeof(*out));
	memcpy(agreement->dead, out, agreement->words * sizeof(*out));
	tti_dispatcher_open(&agreement->carrier->dispatcher, &agreement->mailbox);
	for (int rank = 0; rank < n; rank++)
		if (tti_dispatcher_is_down(&agreement->carrier->dispatcher,
					   agreement->member[rank]))
			down(&agreement->mailbox, agreement->member[rank], TTI_DOWN_LOST, "");
	*agreement_out = agreement;
	return TUTTI_OK;
}

void tti_agreement_free(struct tti_agreement *agreement)
{
	if (!agreement)
		return;
	tti_dispatcher_close(&agreement->carrier->dispatcher, &agreement->mailbox);
	pthread_cond_destroy(&agreement->changed);
	pthread_mutex_destroy(&agreement->lock);
	tti_free(agreement);
}

/* -- Waiting for it ------------------------------------------------------------------------- */

/* What to send now; the lock is held. */
struct round {
	enum tti_mail_kind kind; /* 0: nothing */
	uint64_t to[WORDS_MOST];
	uint64_t bits[WORDS_MOST];
};

static int find_coordinator(const struct tti_agreement *agreement)
{
	return (int)tti_bitset_first_clear(agreement->dead, (size_t)agreement->n);
}

static bool have_all_come(const struct tti_agreement *agreement)
{
	for (int rank = 0; rank < agreement->n; rank++)
		if (rank != agreement->rank && !tti_bit_has(agreement->dead, (size_t)rank) &&
		    !tti_bit_has(agreement->joined, (size_t)rank))
			return false;
	return true;
}

static void coordinate(struct tti_agreement *agreement, struct round *round)
{
	if (have_all_come(agreement)) {
		agreement->decided = true;
		round->kind = TTI_MAIL_DECISION;
		for (size_t i = 0; i < agreement->words; i++)
			round->to[i] = agreement->joined[i] & ~agreement->dead[i];
		return;
	}
	for (size_t i = 0; i < agreement->words; i++) {
		round->to[i] = ~agreement->dead[i] & ~agreement->asked[i];
		agreement->asked[i] |= round->to[i];
		if (round->to[i])
			round->kind = TTI_MAIL_QUERY;
	}
}

static void join(struct tti_agreement *agreement, int coordinator, int *joined_to,
		 struct round *round)
{
	memcpy(round->to, agreement->owed, agreement->words * sizeof(*round->to));
	memset(agreement->owed, 0, agreement->words * sizeof(*agreement->owed));
	if (*joined_to != coordinator)
		tti_bit_set(round->to, (size_t)coordinator);
	*joined_to = coordinator;
	for (size_t i = 0; i < agreement->words; i++)
		if (round->to[i])
			round->kind = TTI_MAIL_JOIN;
}

static void send_round(struct tti_agreement *agreement, const struct round *round)
{
	for (int rank = 0; rank < agreement->n; rank++)
		if (rank != agreement->rank && tti_bit_has(round->to, (size_t)rank))
			mail(agreement, rank, round->kind,
			     round->kind == TTI_MAIL_QUERY ? NULL : round->bits);
}

static tutti_status fail_deadline(const struct tti_agreement *agreement, int64_t timeout_ms)
{
	int *missing = tti_calloc((size_t)agreement->n, sizeof(*missing));
	const int coordinator = find_coordinator(agreement);
	char text[128];
	size_t n = 0;

	for (int rank = 0; rank < agreement->n && missing; rank++)
		if (rank != agreement->rank && !tti_bit_has(agreement->dead, (size_t)rank) &&
		    (coordinator == agreement->rank ? !tti_bit_has(agreement->joined, (size_t)rank)
						    : rank == coordinator))
			missing[n++] = rank;
	tti_format_ranks(text, sizeof(text), missing, n);
	tti_free(missing);
	return tti_fail(TUTTI_ETIMEOUT,
			"rank%s %s neither died nor shrank the communicator within %lld ms: name "
			"them to leave them out",
			n == 1 ? "" : "s", text, (long long)timeout_ms);
}

static tutti_status fail_left_out(const struct tti_agreement *agreement)
{
	return tti_fail(TUTTI_EPEER,
			"the other ranks take rank %d for dead, and go on "
			"without it",
			agreement->rank);
}

tutti_status tti_agreement_wait(struct tti_agreement *agreement,
				const struct tti_boot_config *config, uint64_t *gone)
{
	const int64_t deadline_ns = tti_deadline(config->timeout_ms);
	int64_t again_ns = tti_deadline(ASK_AGAIN_MS);
	tutti_status st = TUTTI_AGAIN;
	int joined_to = -1;

	pthread_mutex_lock(&agreement->lock);
	while (st == TUTTI_AGAIN) {
		struct round round = { .kind = 0 };
		const int coordinator = find_coordinator(agreement);

		if (agreement->decided) {
			st = TUTTI_OK;
			break;
		}
		if (tti_left_ms(again_ns, 1) == 0) {
			again_ns = tti_deadline(ASK_AGAIN_MS);
			memcpy(agreement->asked, agreement->joined,
			       agreement->words * sizeof(*agreement->asked));
			joined_to = -1;
		}
		if (coordinator == agreement->rank)
			coordinate(agreement, &round);
		else if (coordinator < agreement->n)
			join(agreement, coordinator, &joined_to, &round);
		memcpy(round.bits, agreement->dead, agreement->words * sizeof(*round.bits));
		if (round.kind) {
			pthread_mutex_unlock(&agreement->lock);
			send_round(agreement, &round);
			pthread_mutex_lock(&agreement->lock);
		} else if (tti_boot_stopped(config->stop)) {
			st = tti_fail_quiet(TUTTI_EABORTED, "shrinking was aborted");
		} else if (tti_left_ms(deadline_ns, 1) == 0) {
			st = fail_deadline(agreement, config->timeout_ms);
		} else {
			tti_cond_wait_until(&agreement->changed, &agreement->lock,
					    tti_deadline(TTI_BOOT_NAP_MS));
		}
	}
	memcpy(gone, agreement->dead, agreement->words * sizeof(*gone));
	pthread_mutex_unlock(&agreement->lock);
	if (st == TUTTI_OK && tti_bit_has(gone, (size_t)agreement->rank))
		return fail_left_out(agreement);
	return st;
}

tutti_status tti_agreement_check(struct tti_agreement *agreement)
{
	bool excluded;

	pthread_mutex_lock(&agreement->lock);
	excluded = agreement->excluded;
	pthread_mutex_unlock(&agreement->lock);
	return excluded ? fail_left_out(agreement) : TUTTI_AGAIN;
}

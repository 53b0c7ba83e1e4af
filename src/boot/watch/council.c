/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/council.h"

#include <string.h>
#include <time.h>

#include "boot/base.h"
#include "boot/family/sub.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"
#include "util/thread.h"

#define MOST_RANKS (TTI_MAIL_DATA * 8)

/* Who waits asks again after so long. */
#define ASK_AGAIN_MS 1000

struct tti_council {
	struct tti_mailbox mailbox;
	struct tti_boot *carrier;
	int rank, n;
	int *member; /* [n]: their ranks in the carrier */
	size_t words;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool decided;
	bool disowned; /* decided, and others have decided without this rank */
	/* Of each rank a bit. */
	uint64_t *out;    /* shall not be part of it                          */
	uint64_t *dead;   /* as far as is known; once decided: the verdict    */
	uint64_t *heard;  /* something came from it                           */
	uint64_t *joined; /* it waits for the verdict                         */
	uint64_t *owed;   /* it asked for a JOIN                              */
	uint64_t *asked;  /* was sent a QUERY                                 */
	uint64_t bits[];  /* of all of these                                  */
};

static struct tti_council *council_of(struct tti_mailbox *mailbox)
{
	return (struct tti_council *)((char *)mailbox - offsetof(struct tti_council, mailbox));
}

static void mail(struct tti_council *council, int peer, enum tti_mail_kind kind,
		 const uint64_t *bits)
{
	struct tti_mail letter = { .context = council->mailbox.context, .kind = kind };
	const size_t nbytes = bits ? council->words * sizeof(*bits) : 0;

	if (nbytes > 0)
		memcpy(letter.data, bits, nbytes);
	if (council->carrier->ops->mail(council->carrier, council->member[peer], &letter,
					TTI_MAIL_HEAD + nbytes) != TUTTI_OK)
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no mail to rank %d: %s", peer, tti_error_text());
}

/* -- What comes ------------------------------------------------------------------------ */

static int find(const struct tti_council *council, int carrier_rank)
{
	for (int rank = 0; rank < council->n; rank++)
		if (council->member[rank] == carrier_rank)
			return rank;
	return -1;
}

static void merge(struct tti_council *council, const uint64_t *dead)
{
	for (size_t i = 0; i < council->words; i++)
		council->dead[i] |= dead[i] & ~council->heard[i];
}

static void hear(struct tti_council *council, int from, const struct tti_mail *letter,
		 const uint64_t *bits)
{
	tti_bit_set(council->heard, (size_t)from);
	if (!tti_bit_has(council->out, (size_t)from))
		tti_bit_clear(council->dead, (size_t)from);
	if (letter->kind == TTI_MAIL_JOIN) {
		tti_bit_set(council->joined, (size_t)from);
		merge(council, bits);
	} else if (letter->kind == TTI_MAIL_QUERY) {
		tti_bit_set(council->owed, (size_t)from);
	} else if (letter->kind == TTI_MAIL_VERDICT) {
		memcpy(council->dead, bits, council->words * sizeof(*bits));
		council->decided = true;
	}
	pthread_cond_broadcast(&council->changed);
}

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *letter,
		 size_t nbytes)
{
	struct tti_council *council = council_of(mailbox);
	const int rank = find(council, from);
	const size_t wanted =
		letter->kind == TTI_MAIL_QUERY ? 0 : council->words * sizeof(uint64_t);
	uint64_t bits[TTI_MAIL_DATA / sizeof(uint64_t)];
	bool answers = false;

	if (rank < 0 || nbytes != wanted)
		return;
	memcpy(bits, letter->data, nbytes);
	pthread_mutex_lock(&council->lock);
	if (!council->decided) {
		hear(council, rank, letter, bits);
	} else if (letter->kind != TTI_MAIL_VERDICT) {
		answers = true;
	} else if (tti_bit_has(bits, (size_t)council->rank)) {
		council->disowned = true;
	} else {
		answers = tti_bit_has(council->dead, (size_t)rank);
	}
	memcpy(bits, council->dead, council->words * sizeof(*bits));
	pthread_mutex_unlock(&council->lock);
	if (answers)
		mail(council, rank, TTI_MAIL_VERDICT, bits);
}

static void down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	struct tti_council *council = council_of(mailbox);
	const int rank = find(council, peer);

	(void)how;
	(void)why;
	if (rank < 0)
		return;
	pthread_mutex_lock(&council->lock);
	if (!council->decided) {
		tti_bit_set(council->dead, (size_t)rank);
		tti_bit_clear(council->heard, (size_t)rank);
		tti_bit_clear(council->owed, (size_t)rank);
		pthread_cond_broadcast(&council->changed);
	}
	pthread_mutex_unlock(&council->lock);
}

/* -- Opening and closing ---------------------------------------------------------------- */

static tutti_status fill(struct tti_council *council, struct tti_boot *parent, const uint64_t *out)
{
	uint64_t **sets[] = { &council->out,    &council->dead, &council->heard,
			      &council->joined, &council->owed, &council->asked };

	council->member = tti_calloc((size_t)council->n, sizeof(*council->member));
	if (!council->member)
		return tti_fail(TUTTI_ENOMEM, "a council of %d ranks: out of memory", council->n);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		*sets[i] = council->bits + i * council->words;
	for (int rank = 0; rank < council->n; rank++)
		council->member[rank] = tti_boot_carrier_rank(parent, rank);
	memcpy(council->out, out, council->words * sizeof(*out));
	memcpy(council->dead, out, council->words * sizeof(*out));
	return TUTTI_OK;
}

static void release(struct tti_council *council)
{
	pthread_cond_destroy(&council->changed);
	pthread_mutex_destroy(&council->lock);
	tti_free(council->member);
	tti_free(council);
}

tutti_status tti_council_create(struct tti_boot *parent, uint64_t context, const uint64_t *out,
				struct tti_council **council_out)
{
	const int n = tti_boot_nranks(parent);
	const size_t words = TTI_BITSET_WORDS(n);
	struct tti_council *council;
	tutti_status st;

	if (n > MOST_RANKS)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"a council of %d ranks: %d at most; name the ranks to leave out", n,
				MOST_RANKS);
	council = tti_zalloc(sizeof(*council) + 6 * words * sizeof(uint64_t));
	if (!council)
		return tti_fail(TUTTI_ENOMEM, "a council of %d ranks: out of memory", n);
	council->mailbox = (struct tti_mailbox){ .context = context, .take = take, .down = down };
	council->carrier = tti_boot_carrier(parent);
	council->rank = tti_boot_rank(parent);
	council->n = n;
	council->words = words;
	pthread_mutex_init(&council->lock, NULL);
	tti_cond_init(&council->changed);
	st = fill(council, parent, out);
	if (st != TUTTI_OK) {
		release(council);
		return st;
	}
	tti_dispatcher_open(&council->carrier->dispatcher, &council->mailbox);
	for (int rank = 0; rank < n; rank++)
		if (tti_dispatcher_is_down(&council->carrier->dispatcher, council->member[rank]))
			down(&council->mailbox, council->member[rank], TTI_DOWN_LOST, "");
	*council_out = council;
	return TUTTI_OK;
}

void tti_council_free(struct tti_council *council)
{
	if (!council)
		return;
	tti_dispatcher_close(&council->carrier->dispatcher, &council->mailbox);
	release(council);
}

/* -- Holding it ------------------------------------------------------------------------- */

/* What to send now; the lock is held. */
struct round {
	enum tti_mail_kind kind; /* 0: nothing */
	uint64_t to[TTI_MAIL_DATA / sizeof(uint64_t)];
	uint64_t bits[TTI_MAIL_DATA / sizeof(uint64_t)];
};

static int find_speaker(const struct tti_council *council)
{
	return (int)tti_bitset_first_clear(council->dead, (size_t)council->n);
}

static bool have_all_come(const struct tti_council *council)
{
	for (int rank = 0; rank < council->n; rank++)
		if (rank != council->rank && !tti_bit_has(council->dead, (size_t)rank) &&
		    !tti_bit_has(council->joined, (size_t)rank))
			return false;
	return true;
}

static void speak(struct tti_council *council, struct round *round)
{
	if (have_all_come(council)) {
		council->decided = true;
		round->kind = TTI_MAIL_VERDICT;
		for (size_t i = 0; i < council->words; i++)
			round->to[i] = council->joined[i] & ~council->dead[i];
		return;
	}
	for (size_t i = 0; i < council->words; i++) {
		round->to[i] = ~council->dead[i] & ~council->asked[i];
		council->asked[i] |= round->to[i];
		if (round->to[i])
			round->kind = TTI_MAIL_QUERY;
	}
}

static void join(struct tti_council *council, int speaker, int *joined_to, struct round *round)
{
	memcpy(round->to, council->owed, council->words * sizeof(*round->to));
	memset(council->owed, 0, council->words * sizeof(*council->owed));
	if (*joined_to != speaker)
		tti_bit_set(round->to, (size_t)speaker);
	*joined_to = speaker;
	for (size_t i = 0; i < council->words; i++)
		if (round->to[i])
			round->kind = TTI_MAIL_JOIN;
}

static void send_round(struct tti_council *council, const struct round *round)
{
	for (int rank = 0; rank < council->n; rank++)
		if (rank != council->rank && tti_bit_has(round->to, (size_t)rank))
			mail(council, rank, round->kind,
			     round->kind == TTI_MAIL_QUERY ? NULL : round->bits);
}

static void nap(struct tti_council *council)
{
	const int64_t until = tti_now_ns() + TTI_BOOT_NAP_MS * TTI_NS_PER_MS;
	const struct timespec time = { .tv_sec = until / 1000000000,
				       .tv_nsec = until % 1000000000 };

	(void)pthread_cond_timedwait(&council->changed, &council->lock, &time);
}

static tutti_status fail_deadline(const struct tti_council *council, int64_t timeout_ms)
{
	int *missing = tti_calloc((size_t)council->n, sizeof(*missing));
	const int speaker = find_speaker(council);
	char text[128];
	size_t n = 0;

	for (int rank = 0; rank < council->n && missing; rank++)
		if (rank != council->rank && !tti_bit_has(council->dead, (size_t)rank) &&
		    (speaker == council->rank ? !tti_bit_has(council->joined, (size_t)rank)
					      : rank == speaker))
			missing[n++] = rank;
	tti_format_ranks(text, sizeof(text), missing, n);
	tti_free(missing);
	return tti_fail(TUTTI_ETIMEOUT,
			"rank%s %s neither died nor shrank the communicator within %lld ms: name "
			"them to leave them out",
			n == 1 ? "" : "s", text, (long long)timeout_ms);
}

static tutti_status fail_left_out(const struct tti_council *council)
{
	return tti_fail(TUTTI_EPEER,
			"the other ranks take rank %d for dead, and go on "
			"without it",
			council->rank);
}

tutti_status tti_council_hold(struct tti_council *council, const struct tti_boot_config *config,
			      uint64_t *gone)
{
	const int64_t deadline_ns = tti_deadline(config->timeout_ms);
	int64_t again_ns = tti_deadline(ASK_AGAIN_MS);
	tutti_status st = TUTTI_AGAIN;
	int joined_to = -1;

	pthread_mutex_lock(&council->lock);
	while (st == TUTTI_AGAIN) {
		struct round round = { .kind = 0 };
		const int speaker = find_speaker(council);

		if (council->decided) {
			st = TUTTI_OK;
			break;
		}
		if (tti_left_ms(again_ns, 1) == 0) {
			again_ns = tti_deadline(ASK_AGAIN_MS);
			memcpy(council->asked, council->joined,
			       council->words * sizeof(*council->asked));
			joined_to = -1;
		}
		if (speaker == council->rank)
			speak(council, &round);
		else if (speaker < council->n)
			join(council, speaker, &joined_to, &round);
		memcpy(round.bits, council->dead, council->words * sizeof(*round.bits));
		if (round.kind) {
			pthread_mutex_unlock(&council->lock);
			send_round(council, &round);
			pthread_mutex_lock(&council->lock);
		} else if (tti_boot_stopped(config->stop)) {
			st = tti_fail_quiet(TUTTI_EABORTED, "shrinking was aborted");
		} else if (tti_left_ms(deadline_ns, 1) == 0) {
			st = fail_deadline(council, config->timeout_ms);
		} else {
			nap(council);
		}
	}
	memcpy(gone, council->dead, council->words * sizeof(*gone));
	pthread_mutex_unlock(&council->lock);
	if (st == TUTTI_OK && tti_bit_has(gone, (size_t)council->rank))
		return fail_left_out(council);
	return st;
}

tutti_status tti_council_check(struct tti_council *council)
{
	bool disowned;

	pthread_mutex_lock(&council->lock);
	disowned = council->disowned;
	pthread_mutex_unlock(&council->lock);
	return disowned ? fail_left_out(council) : TUTTI_AGAIN;
}

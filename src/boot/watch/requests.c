/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/requests.h"

#include <string.h>

#include "boot/family/sub.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

#define ASK_AGAIN_MS 1000

/* What one rank has asked for last. Numbers count the requests of a rank, from 1 on. */
struct client {
	uint32_t number;
	bool is_due, is_done;
	uint8_t request[TTI_REQUEST_BYTES], answer[TTI_ANSWER_BYTES];
};

struct tti_requests {
	struct tti_requests_config config;
	struct tti_mailbox mailbox;
	struct tti_boot *carrier;

	pthread_mutex_t lock; /* of what follows; nothing is mailed while it is held */
	pthread_cond_t changed;
	struct client **clients; /* [nranks]; NULL: it has never asked */
	uint32_t number;         /* of the last request of this rank */
	struct tti_errand *asked;
	int nasked;
	bool has_thread, is_closing;
	pthread_t thread;
};

static struct tti_requests *requests_of(struct tti_mailbox *mailbox)
{
	return (struct tti_requests *)((char *)mailbox - offsetof(struct tti_requests, mailbox));
}

static void mail(struct tti_requests *requests, int peer, enum tti_mail_kind kind, uint32_t number,
		 const uint8_t *data, size_t nbytes)
{
	struct tti_mail letter = { .context = requests->mailbox.context,
				   .kind = kind,
				   .seq = number };

	if (tti_dispatcher_send(requests->carrier,
				tti_boot_carrier_rank(requests->config.boot, peer), &letter, data,
				nbytes) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "no mail to rank %d: %s", peer, tti_error_text());
}

/* -- Serving ------------------------------------------------------------------------------ */

/* A request that nobody works at; -1: there is none. The lock is held. */
static int find_due(const struct tti_requests *requests)
{
	for (int rank = 0; rank < requests->config.boot->nranks; rank++)
		if (requests->clients[rank] && requests->clients[rank]->is_due)
			return rank;
	return -1;
}

/* The lock is held, and taken away for a while. */
static void serve(struct tti_requests *requests, int rank)
{
	struct client *client = requests->clients[rank];
	const uint32_t number = client->number;
	uint8_t request[TTI_REQUEST_BYTES], answer[TTI_ANSWER_BYTES] = { 0 };

	client->is_due = false;
	memcpy(request, client->request, sizeof(request));
	pthread_mutex_unlock(&requests->lock);
	requests->config.serve(requests->config.self, rank, request, answer);
	mail(requests, rank, TTI_MAIL_REPLY, number, answer, sizeof(answer));
	pthread_mutex_lock(&requests->lock);
	if (client->number != number)
		return;
	memcpy(client->answer, answer, sizeof(answer));
	client->is_done = true;
}

static void *run(void *self)
{
	struct tti_requests *requests = self;

	pthread_mutex_lock(&requests->lock);
	while (!requests->is_closing) {
		const int rank = find_due(requests);

		if (rank >= 0)
			serve(requests, rank);
		else
			pthread_cond_wait(&requests->changed, &requests->lock);
	}
	pthread_mutex_unlock(&requests->lock);
	return NULL;
}

/* Begin with what is due. The lock is held. */
static void wake(struct tti_requests *requests)
{
	if (!requests->has_thread)
		requests->has_thread = tti_thread_start(&requests->thread, "tutti-requests", run,
							requests) == TUTTI_OK;
	if (!requests->has_thread)
		tti_log(TTI_LOG_WARN, TTI_BOOT, "requests of other ranks: %s", tti_error_text());
	pthread_cond_broadcast(&requests->changed);
}

/* *again: the request was done before, and its answer got lost. The lock is held. */
static void take_request(struct tti_requests *requests, int rank, uint32_t number,
			 const uint8_t *data, bool *again)
{
	struct client **client = &requests->clients[rank];

	if (!*client)
		*client = tti_zalloc(sizeof(**client));
	/* Without memory it comes again. */
	if (!*client || number < (*client)->number)
		return;
	if (number == (*client)->number) {
		*again = (*client)->is_done;
	} else {
		(*client)->number = number;
		(*client)->is_done = false;
		(*client)->is_due = true;
		memcpy((*client)->request, data, TTI_REQUEST_BYTES);
	}
	if ((*client)->is_due)
		wake(requests);
}

/* -- What comes --------------------------------------------------------------------------- */

/* The lock is held. */
static void settle(struct tti_requests *requests, int rank, tutti_status status,
		   const uint8_t *answer)
{
	for (int i = 0; i < requests->nasked; i++) {
		struct tti_errand *asked = &requests->asked[i];

		if (asked->peer != rank || asked->status != TUTTI_AGAIN)
			continue;
		asked->status = status;
		if (answer)
			memcpy(asked->answer, answer, sizeof(asked->answer));
		pthread_cond_broadcast(&requests->changed);
	}
}

static void take(struct tti_mailbox *mailbox, int from, const struct tti_mail *letter,
		 size_t nbytes)
{
	struct tti_requests *requests = requests_of(mailbox);
	const int rank = tti_boot_find_rank(requests->config.boot, from);
	uint8_t answer[TTI_ANSWER_BYTES];
	bool again = false;

	if (rank < 0)
		return;
	pthread_mutex_lock(&requests->lock);
	if (letter->kind == TTI_MAIL_REQUEST && nbytes == TTI_REQUEST_BYTES)
		take_request(requests, rank, letter->seq, letter->data, &again);
	else if (letter->kind == TTI_MAIL_REPLY && nbytes == TTI_ANSWER_BYTES &&
		 letter->seq == requests->number)
		settle(requests, rank, TUTTI_OK, letter->data);
	else if (letter->kind == TTI_MAIL_CLOSED)
		settle(requests, rank, TUTTI_EPEER, NULL);
	if (again)
		memcpy(answer, requests->clients[rank]->answer, sizeof(answer));
	pthread_mutex_unlock(&requests->lock);
	if (again)
		mail(requests, rank, TTI_MAIL_REPLY, letter->seq, answer, sizeof(answer));
}

static void down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	struct tti_requests *requests = requests_of(mailbox);

	(void)how;
	(void)why;
	pthread_mutex_lock(&requests->lock);
	settle(requests, tti_boot_find_rank(requests->config.boot, peer), TUTTI_EPEER, NULL);
	pthread_mutex_unlock(&requests->lock);
}

/* -- Opening and closing ------------------------------------------------------------------ */

tutti_status tti_requests_create(const struct tti_requests_config *config,
				 struct tti_requests **out)
{
	struct tti_requests *requests = tti_zalloc(sizeof(*requests));

	if (requests)
		requests->clients =
			tti_calloc((size_t)config->boot->nranks, sizeof(*requests->clients));
	if (!requests || !requests->clients) {
		tti_free(requests);
		return tti_fail(TUTTI_ENOMEM, "requests of %d ranks: out of memory",
				config->boot->nranks);
	}
	requests->config = *config;
	requests->mailbox =
		(struct tti_mailbox){ .context = config->context, .take = take, .down = down };
	requests->carrier = tti_boot_carrier(config->boot);
	pthread_mutex_init(&requests->lock, NULL);
	tti_cond_init(&requests->changed);
	tti_dispatcher_open(&requests->carrier->dispatcher, &requests->mailbox);
	*out = requests;
	return TUTTI_OK;
}

void tti_requests_free(struct tti_requests *requests)
{
	if (!requests)
		return;
	tti_dispatcher_close(&requests->carrier->dispatcher, &requests->mailbox);
	pthread_mutex_lock(&requests->lock);
	requests->is_closing = true;
	pthread_cond_broadcast(&requests->changed);
	pthread_mutex_unlock(&requests->lock);
	if (requests->has_thread)
		pthread_join(requests->thread, NULL);
	for (int rank = 0; rank < requests->config.boot->nranks; rank++)
		tti_free(requests->clients[rank]);
	tti_free(requests->clients);
	pthread_cond_destroy(&requests->changed);
	pthread_mutex_destroy(&requests->lock);
	tti_free(requests);
}

/* -- Asking ------------------------------------------------------------------------------- */

/* Ask those that have not answered. The lock is held, and taken away for a while. */
static void ask_all(struct tti_requests *requests)
{
	for (int i = 0; i < requests->nasked; i++) {
		struct tti_errand *asked = &requests->asked[i];
		const int at = tti_boot_carrier_rank(requests->config.boot, asked->peer);

		if (asked->status != TUTTI_AGAIN)
			continue;
		pthread_mutex_unlock(&requests->lock);
		if (tti_dispatcher_is_down(&requests->carrier->dispatcher, at)) {
			pthread_mutex_lock(&requests->lock);
			settle(requests, asked->peer, TUTTI_EPEER, NULL);
			continue;
		}
		mail(requests, asked->peer, TTI_MAIL_REQUEST, requests->number, asked->data,
		     sizeof(asked->data));
		pthread_mutex_lock(&requests->lock);
	}
}

static bool is_waiting(const struct tti_requests *requests)
{
	for (int i = 0; i < requests->nasked; i++)
		if (requests->asked[i].status == TUTTI_AGAIN)
			return true;
	return false;
}

/* Nobody is waited for any more. The lock is held. */
static void give_up(struct tti_requests *requests, tutti_status status)
{
	for (int i = 0; i < requests->nasked; i++)
		settle(requests, requests->asked[i].peer, status, NULL);
}

void tti_requests_ask(struct tti_requests *requests, struct tti_errand *asked, int n,
		      int64_t timeout_ms)
{
	const int64_t late_ns = timeout_ms ? tti_deadline(timeout_ms) : INT64_MAX;
	int64_t again_ns = 0;

	pthread_mutex_lock(&requests->lock);
	requests->number++;
	requests->asked = asked;
	requests->nasked = n;
	for (int i = 0; i < n; i++)
		asked[i].status = TUTTI_AGAIN;
	while (is_waiting(requests)) {
		if (tti_boot_stopped(requests->config.stop)) {
			give_up(requests, TUTTI_EABORTED);
		} else if (tti_now_ns() >= late_ns) {
			give_up(requests, TUTTI_ETIMEOUT);
		} else if (tti_now_ns() >= again_ns) {
			again_ns = tti_deadline(ASK_AGAIN_MS);
			ask_all(requests);
		} else {
			tti_cond_wait_until(&requests->changed, &requests->lock,
					    tti_deadline(TTI_BOOT_NAP_MS));
		}
	}
	requests->asked = NULL;
	requests->nasked = 0;
	pthread_mutex_unlock(&requests->lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <string.h>

#include "campaign/places.h"

static int32_t out[MOST_COUNT], in[MOST_COUNT];

static tutti_status make_channel(struct actor *a)
{
	for (size_t i = 0; i < a->count; i++)
		out[i] = place_input(a, a->rank, i);
	return a->channel ? TUTTI_OK : tutti_channel_create(a->comm, &a->channel);
}

static bool is_right(const struct actor *a, const tutti_message_info *info)
{
	bool right = info->source >= 0 && info->source < a->n && info->tag == a->step &&
		     info->bytes == a->count * sizeof(*in);

	for (size_t i = 0; i < a->count && right; i++)
		right = in[i] == place_input(a, info->source, i);
	return right;
}

static tutti_status receive(struct actor *a, int from)
{
	const size_t nbytes = a->count * sizeof(*in);
	tutti_message_info found = { from, a->step, nbytes }, info;
	tutti_status st = TUTTI_OK;

	if (a->step % 3 == 1)
		st = tutti_message_probe(a->channel, from, TUTTI_ANY_TAG, -1, &found);
	if (st == TUTTI_OK)
		st = tutti_message_recv(a->channel, in, nbytes, from, a->step, &info);
	if (st == TUTTI_OK)
		a->wrong |= info.source != from || !is_right(a, &info) ||
			    memcmp(&info, &found, sizeof(info)) != 0;
	return st;
}

/* By a call that waits, those with an even number first: they may be two beside each other. */
static tutti_status send_in_turn(struct actor *a, int to, int from)
{
	const size_t nbytes = a->count * sizeof(*out);
	const bool sends_first = a->rank % 2 == 0;
	tutti_status st = TUTTI_OK;

	if (sends_first)
		st = tutti_message_send(a->channel, out, nbytes, to, a->step);
	if (st == TUTTI_OK)
		st = receive(a, from);
	if (st == TUTTI_OK && !sends_first)
		st = tutti_message_send(a->channel, out, nbytes, to, a->step);
	return st;
}

static tutti_status send_and_wait(struct actor *a, int to, int from)
{
	tutti_request_t request;
	tutti_status st = tutti_message_isend(a->channel, out, a->count * sizeof(*out), to, a->step,
					      &request);

	if (st == TUTTI_OK)
		st = receive(a, from);
	return st ? st : tutti_message_wait(a->channel, request, -1, NULL);
}

tutti_status place_message(struct actor *a)
{
	const int to = (a->rank + 1) % a->n, from = (a->rank + a->n - 1) % a->n;
	const tutti_status st = make_channel(a);

	if (st != TUTTI_OK)
		return st;
	return a->step % 2 ? send_in_turn(a, to, from) : send_and_wait(a, to, from);
}

tutti_status place_channel(struct actor *a)
{
	tutti_status st = make_channel(a);

	if (st == TUTTI_OK)
		st = send_and_wait(a, (a->rank + 1) % a->n, (a->rank + a->n - 1) % a->n);
	if (st != TUTTI_OK)
		return st;
	st = tutti_channel_destroy(a->channel);
	a->channel = NULL;
	return st;
}

/* -- Two threads ---------------------------------------------------------------------- */

struct receiver {
	const struct actor *actor;
	tutti_status status;
	bool wrong;
};

static void *receive_all(void *self)
{
	struct receiver *receiver = self;
	const struct actor *a = receiver->actor;

	for (int left = a->n - 1; left > 0 && receiver->status == TUTTI_OK; left--) {
		tutti_message_info info;

		receiver->status = tutti_message_recv(a->channel, in, a->count * sizeof(*in),
						      TUTTI_ANY_SOURCE, a->step, &info);
		receiver->wrong |= receiver->status == TUTTI_OK && !is_right(a, &info);
	}
	return NULL;
}

static tutti_status send_all(const struct actor *a)
{
	tutti_request_t requests[MOST_RANKS];
	tutti_status st = TUTTI_OK;
	int nsent = 0;

	for (int by = 1; by < a->n && st == TUTTI_OK; by++, nsent++)
		st = tutti_message_isend(a->channel, out, a->count * sizeof(*out),
					 (a->rank + by) % a->n, a->step, &requests[nsent]);
	for (int i = 0; i < nsent && st == TUTTI_OK; i++)
		st = tutti_message_wait(a->channel, requests[i], -1, NULL);
	return st;
}

tutti_status place_message_any(struct actor *a)
{
	struct receiver receiver = { .actor = a, .status = TUTTI_OK };
	pthread_t thread;
	tutti_status st = make_channel(a);

	if (st != TUTTI_OK || pthread_create(&thread, NULL, receive_all, &receiver) != 0)
		return st ? st : TUTTI_ESYS;
	st = send_all(a);
	pthread_join(thread, NULL);
	a->wrong |= receiver.wrong;
	/* What one thread was told, all are. */
	if (receiver.status != TUTTI_OK) {
		st = tutti_message_probe(a->channel, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, 0, NULL);
		a->wrong |= st != receiver.status;
	}
	return st;
}

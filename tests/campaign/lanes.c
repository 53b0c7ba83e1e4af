/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/lanes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rank_complain(struct rank *rank, const char *what, tutti_status status)
{
	if (!atomic_exchange(&rank->told, 1))
		snprintf(rank->text, RANK_TEXT, "%s: %s %s", what, tutti_status_name(status),
			 status < 0 ? tutti_last_error(NULL) : "");
	return false;
}

/* The message that this is: in order, the oldest one of its source and tag that has not come. */
static bool claim(struct rank *rank, const tutti_message_info *info, const uint8_t *bytes)
{
	const int thread = info->tag / TRAFFIC_TAGS;

	if (info->source < 0 || info->source >= traffic.n || thread < 0 ||
	    thread >= TRAFFIC_THREADS)
		return rank_complain(rank, "a message of nobody", TUTTI_OK);
	for (int i = 0; i < traffic.nsends[info->source][thread]; i++) {
		struct message *message = &traffic.sends[info->source][thread][i];

		if (message->dest != rank->rank || message->tag != info->tag ||
		    atomic_load(&message->has_come))
			continue;
		if (message->nbytes == info->bytes && traffic_is_filled(bytes, message) &&
		    !atomic_exchange(&message->has_come, true))
			return true;
		if (!traffic.is_any)
			return rank_complain(rank, "another message than the next one", TUTTI_OK);
	}
	return rank_complain(rank, "a message that nobody sent", TUTTI_OK);
}

/* -- Sending ------------------------------------------------------------------------------ */

/* Every eighth is taken back, if that is still possible, and sent again. */
static bool send_next(struct lane *lane)
{
	struct rank *rank = lane->rank;
	const struct message *message = &traffic.sends[rank->rank][lane->thread][lane->nsent];
	tutti_request_t *request = &lane->sends[lane->nsent];
	uint8_t *bytes = malloc(message->nbytes + 1);
	tutti_status st;

	if (!bytes)
		return rank_complain(rank, "malloc", TUTTI_ENOMEM);
	lane->sent[lane->nsent++] = bytes;
	traffic_fill(bytes, message);
	st = tutti_message_isend(rank->channel, bytes, message->nbytes, message->dest, message->tag,
				 request);
	if (st != TUTTI_OK || draw(&lane->random, 8))
		return st == TUTTI_OK || rank_complain(rank, "isend", st);
	st = tutti_message_cancel(rank->channel, *request);
	if (st != TUTTI_OK)
		return st == TUTTI_AGAIN || rank_complain(rank, "cancel of a send", st);
	st = tutti_message_wait(rank->channel, *request, -1, NULL);
	if (st != TUTTI_ECANCELED)
		return rank_complain(rank, "wait for a send that was cancelled", st);
	st = tutti_message_isend(rank->channel, bytes, message->nbytes, message->dest, message->tag,
				 request);
	return st == TUTTI_OK || rank_complain(rank, "isend again", st);
}

static bool end_sends(struct lane *lane)
{
	bool good = true;

	for (int i = 0; i < lane->nsent; i++) {
		const struct message *message = &traffic.sends[lane->rank->rank][lane->thread][i];
		tutti_message_info info = { 0 };
		tutti_status st;

		if (good) {
			st = tutti_message_wait(lane->rank->channel, lane->sends[i], -1, &info);
			good = st == TUTTI_OK || rank_complain(lane->rank, "wait for a send", st);
		}
		if (good && (info.source != lane->rank->rank || info.tag != message->tag ||
			     info.bytes != message->nbytes))
			good = rank_complain(lane->rank, "what a send says it sent", TUTTI_OK);
		free(lane->sent[i]);
	}
	return good;
}

/* -- Receiving ------------------------------------------------------------------------------ */

/* Of each tag either all receives are by source, or none: a receive of any source would take what
 * another one waits for. */
static bool is_by_source(const struct lane *lane, int tag)
{
	return (tag + lane->rank->rank) % 2 == 0;
}

/* Messages of a source and tag that have neither come nor are waited for by a receive of the two. */
static int count_left(const struct lane *lane, int source, int tag)
{
	int left = 0;

	for (int i = 0; i < traffic.nsends[source][lane->thread]; i++) {
		struct message *message = &traffic.sends[source][lane->thread][i];

		left += message->dest == lane->rank->rank && message->tag == tag &&
			!atomic_load(&message->has_come);
	}
	for (int i = 0; i < lane->npending; i++)
		left -= lane->pending[i].source == source && lane->pending[i].tag == tag;
	return left;
}

/* What the next receive may be of; false: nothing is left to be taken on. */
static bool choose(struct lane *lane, int *source, int *tag)
{
	const int first_tag = (int)draw(&lane->random, TRAFFIC_TAGS),
		  first = (int)draw(&lane->random, (uint64_t)traffic.n);

	*source = TUTTI_ANY_SOURCE;
	*tag = TUTTI_ANY_TAG;
	if (traffic.is_any) {
		if (atomic_fetch_sub(&lane->rank->awaited, 1) > 0)
			return true;
		atomic_fetch_add(&lane->rank->awaited, 1);
		return false;
	}
	for (int t = 0; t < TRAFFIC_TAGS; t++) {
		const int k = (first_tag + t) % TRAFFIC_TAGS;

		*tag = lane->thread * TRAFFIC_TAGS + k;
		*source = TUTTI_ANY_SOURCE;
		if (!is_by_source(lane, *tag) && lane->nleft[k] > 0)
			return true;
		for (int s = 0; s < traffic.n && is_by_source(lane, *tag); s++) {
			*source = (first + s) % traffic.n;
			if (count_left(lane, *source, *tag) > 0)
				return true;
		}
	}
	return false;
}

/* Taken on, or not any more. */
static void count(struct lane *lane, const struct pending *pending, int by)
{
	if (!traffic.is_any)
		lane->nleft[pending->tag % TRAFFIC_TAGS] -= by;
	else if (by < 0)
		atomic_fetch_sub(&lane->rank->awaited, by);
}

static void drop(struct lane *lane, int i)
{
	lane->npending--;
	memmove(&lane->pending[i], &lane->pending[i + 1],
		(size_t)(lane->npending - i) * sizeof(*lane->pending));
}

/* Every eighth is taken back, if that is still possible. */
static bool post(struct lane *lane)
{
	struct pending *pending = &lane->pending[lane->npending];
	tutti_status st;

	if (!choose(lane, &pending->source, &pending->tag))
		return true;
	pending->room = malloc(TRAFFIC_BYTES);
	if (!pending->room)
		return rank_complain(lane->rank, "malloc", TUTTI_ENOMEM);
	st = tutti_message_irecv(lane->rank->channel, pending->room, TRAFFIC_BYTES, pending->source,
				 pending->tag, &pending->request);
	if (st != TUTTI_OK) {
		free(pending->room);
		return rank_complain(lane->rank, "irecv", st);
	}
	count(lane, pending, 1);
	lane->npending++;
	if (draw(&lane->random, 8))
		return true;
	st = tutti_message_cancel(lane->rank->channel, pending->request);
	if (st != TUTTI_OK)
		return st == TUTTI_AGAIN || rank_complain(lane->rank, "cancel of a receive", st);
	st = tutti_message_wait(lane->rank->channel, pending->request, -1, NULL);
	if (st != TUTTI_ECANCELED)
		return rank_complain(lane->rank, "wait for a receive that was cancelled", st);
	count(lane, pending, -1);
	free(pending->room);
	drop(lane, lane->npending - 1);
	return true;
}

/* The oldest receive, for at most so long. */
static bool await(struct lane *lane, int timeout_ms)
{
	const struct pending oldest = lane->pending[0];
	tutti_message_info info;
	const tutti_status st =
		tutti_message_wait(lane->rank->channel, oldest.request, timeout_ms, &info);
	bool good;

	if (st == TUTTI_AGAIN && timeout_ms >= 0)
		return true;
	good = st == TUTTI_OK ? claim(lane->rank, &info, oldest.room)
			      : rank_complain(lane->rank, "wait for a receive", st);
	free(oldest.room);
	drop(lane, 0);
	return good;
}

/* A message that is there, first with too little room. Nobody else receives of its source and tag. */
static bool probe(struct lane *lane)
{
	struct rank *rank = lane->rank;
	struct pending one = { .source = TUTTI_ANY_SOURCE };
	tutti_message_info info, same;
	tutti_status st;
	bool good = true;

	if (traffic.is_any || lane->npending || !choose(lane, &one.source, &one.tag))
		return true;
	st = tutti_message_probe(rank->channel, one.source, one.tag, (int)draw(&lane->random, 3),
				 &info);
	if (st != TUTTI_OK)
		return st == TUTTI_AGAIN || rank_complain(rank, "probe", st);
	one.room = malloc(info.bytes + 1);
	if (!one.room)
		return rank_complain(rank, "malloc", TUTTI_ENOMEM);
	if (info.bytes) {
		st = tutti_message_recv(rank->channel, one.room, info.bytes - 1, info.source,
					info.tag, NULL);
		good = st == TUTTI_EINVAL || rank_complain(rank, "a receive without room", st);
	}
	if (good) {
		st = tutti_message_recv(rank->channel, one.room, info.bytes, info.source, info.tag,
					&same);
		good = st == TUTTI_OK || rank_complain(rank, "a receive of what was found", st);
	}
	if (good)
		good = memcmp(&info, &same, sizeof(info)) == 0
			       ? claim(rank, &info, one.room)
			       : rank_complain(rank, "found and received differ", TUTTI_OK);
	count(lane, &one, 1);
	free(one.room);
	return good;
}

static bool has_more(const struct lane *lane)
{
	int left = traffic.is_any ? atomic_load(&lane->rank->awaited) : 0;

	for (int k = 0; k < TRAFFIC_TAGS && !traffic.is_any; k++)
		left += lane->nleft[k];
	return left > 0;
}

/* Nothing is waited for without end until all of this thread's messages are on their way. */
void *lane_run(void *self)
{
	struct lane *lane = self;
	const int nsends = traffic.nsends[lane->rank->rank][lane->thread];
	bool good = true, is_over = false;

	while (good && !is_over) {
		const bool has_sent = lane->nsent == nsends;

		switch (draw(&lane->random, 4)) {
		case 0:
			good = has_sent || send_next(lane);
			break;
		case 1:
			good = lane->npending == MOST_PENDING || post(lane);
			break;
		case 2:
			good = !lane->npending || await(lane, has_sent ? -1 : 0);
			break;
		default:
			good = probe(lane);
			break;
		}
		is_over = has_sent && !lane->npending && !has_more(lane);
	}
	if (good)
		good = end_sends(lane);
	lane->good = good;
	return NULL;
}

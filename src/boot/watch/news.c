/* SPDX-License-Identifier: BSD-3-Clause */
/* What has ended the communicator, and who died since, in the order in which this rank heard of it. Every
 * connection of the ring brings its peer all of that: one that is new, or made anew, from the
 * beginning, and one that has no room as soon as it has some. So no news are lost, and what is said
 * behind them comes behind them. */
#include <stdio.h>

#include "boot/watch/conn.h"
#include "util/bitset.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

static const struct tti_heard *next_for(const struct tti_conn *conn)
{
	if (conn->said)
		return conn->said->next;
	return conn->thread->lost ? &conn->thread->first : NULL;
}

bool tti_news_are_due(const struct tti_conn *conn)
{
	return conn->tells && !conn->torn && !conn->shut && next_for(conn);
}

bool tti_news_put(struct tti_conn *conn)
{
	const struct tti_heard *next = next_for(conn);

	if (!tti_news_are_due(conn) ||
	    !tti_outbox_put(&conn->out, TTI_FRAME_NEWS, 0, &next->news, sizeof(next->news), 0))
		return false;
	conn->said = next;
	return true;
}

bool tti_news_tell(struct tti_conn *conn)
{
	conn->tells = true;
	tti_conn_flush(conn);
	return !tti_news_are_due(conn);
}

void tti_news_tell_caller(struct tti_thread *thread)
{
	if (!thread->watching || thread->told || !thread->lost || thread->quitting)
		return;
	thread->told = true;
	if (thread->events.on_lost)
		thread->events.on_lost(thread->events.self, &thread->first.news);
}

/* Not whether the dispatcher knows it: there it may be by mail, of which the ring has heard nothing. */
static bool is_new_death(const struct tti_thread *thread, const struct tti_news *news)
{
	const struct tti_heard *at = thread->lost ? &thread->first : NULL;

	if (!news->died || news->failed_rank < 0 || news->failed_rank == thread->sock->base.rank)
		return false;
	while (at && !(at->news.died && at->news.failed_rank == news->failed_rank))
		at = at->next;
	return !at;
}

/* Who brought them has them: if it has all the others too, they are not due there. */
static void add(struct tti_thread *thread, const struct tti_news *news, struct tti_conn *from)
{
	struct tti_heard *heard = thread->lost ? tti_zalloc(sizeof(*heard)) : &thread->first;
	const bool has_others = from && !next_for(from);

	if (!heard) {
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory to tell other ranks: %s", news->text);
		return;
	}
	heard->news = *news;
	if (thread->lost)
		thread->last->next = heard;
	thread->last = heard;
	thread->lost = true;
	if (has_others)
		from->said = heard;
	for (struct tti_conn *conn = thread->conns; conn; conn = conn->next)
		if (tti_news_are_due(conn))
			tti_conn_flush(conn);
}

/* The first news end the communicator. Later ones matter to those that were made of it, if they tell of
 * a death. */
void tti_thread_learn(struct tti_thread *thread, const struct tti_news *news, struct tti_conn *from)
{
	const bool is_death = is_new_death(thread, news);
	char name[TTI_SOCK_NAME];

	if (!thread->lost || is_death)
		add(thread, news, from);
	tti_news_tell_caller(thread);
	if (is_death)
		tti_conn_lose_peer(
			thread, news->failed_rank, TTI_DOWN_DIED,
			tti_news_why(news, tti_sock_name(thread->sock, news->failed_rank, name)));
}

/* A communicator made of this one may have ended for that, and this rank leave before the ring has
 * found it: then its neighbours would wait for a rank that has left. */
void tti_thread_tell_fallen(struct tti_thread *thread)
{
	const int fallen = tti_dispatcher_fallen(&thread->sock->base.dispatcher);
	struct tti_news news = { .status = TUTTI_EPEER,
				 .failed_rank = fallen,
				 .origin = thread->sock->base.rank,
				 .died = true };
	char name[TTI_SOCK_NAME];

	if (fallen < 0 || tti_bit_has(thread->gone, (size_t)fallen))
		return;
	(void)snprintf(news.text, sizeof(news.text),
		       "%s closed its connection without goodbye: it died",
		       tti_sock_name(thread->sock, fallen, name));
	tti_thread_learn(thread, &news, NULL);
}

void tti_news_forget(struct tti_thread *thread)
{
	struct tti_heard *heard;

	while ((heard = thread->first.next)) {
		thread->first.next = heard->next;
		tti_free(heard);
	}
}

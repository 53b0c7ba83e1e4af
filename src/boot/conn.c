/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

/* Ranks that leave together leave within this time: no bypass is made for them. */
#define BYPASS_MS 50
/* What news and goodbye need is kept free. */
#define SPARE     400

struct tti_conn *tti_conn_make(struct tti_thread *thread, enum tti_conn_role role, int peer, int fd)
{
	struct tti_conn *conn = tti_zalloc(sizeof(*conn));

	if (!conn) {
		tti_log(TTI_LOG_WARN, TTI_BOOT, "no memory for a connection to rank %d", peer);
		return NULL;
	}
	conn->thread = thread;
	conn->role = role;
	conn->peer = peer;
	conn->fd = fd;
	return conn;
}

/* A machine that lost its power sends nothing: ask it now and then. */
static void set_keepalive(int fd)
{
	const int yes = 1, idle_s = 10, interval_s = 2, count = 3, timeout_ms = 16000;

	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}

static void flush(struct tti_conn *conn)
{
	tti_outbox_flush(&conn->out, conn->fd);
	tti_loop_change(&conn->thread->loop, conn->fd,
			EPOLLIN | (conn->out.len > 0 ? (uint32_t)EPOLLOUT : 0), &conn->ear);
}

static bool queue(struct tti_conn *conn, enum tti_frame_type type, uint32_t seq, const void *body,
		  size_t nbytes, size_t spare)
{
	if (conn->torn || conn->shut || !tti_outbox_put(&conn->out, type, seq, body, nbytes, spare))
		return false;
	flush(conn);
	return true;
}

void tti_conn_drop(struct tti_conn *conn)
{
	struct tti_thread *thread = conn->thread;

	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	tti_fd_close(&conn->fd);
	tti_loop_bury(&thread->loop, &conn->ear);
	if (conn->asked)
		tti_thread_no_answer(thread, conn->peer, false);
}

void tti_conn_leave(struct tti_conn *conn)
{
	if (conn->thread->bye)
		(void)queue(conn, TTI_FRAME_BYE, conn->thread->lost, NULL, 0, 0);
	conn->torn = true;
	if (conn->out.len == 0 && !conn->shut) {
		conn->shut = true;
		(void)shutdown(conn->fd, SHUT_WR);
	}
}

struct tti_conn *tti_conn_find(struct tti_thread *thread, int peer, bool ring)
{
	for (struct tti_conn *conn = thread->conns; conn; conn = conn->next)
		if (conn->peer == peer && !conn->torn && !(ring && conn->role == TTI_CONN_PAIR))
			return conn;
	return NULL;
}

/* -- News and questions ------------------------------------------------------------ */

static void tell_caller(struct tti_thread *thread)
{
	if (!thread->watching || thread->told || !thread->lost || thread->quitting)
		return;
	thread->told = true;
	if (thread->events.on_lost)
		thread->events.on_lost(thread->events.self, &thread->news);
}

void tti_thread_learn(struct tti_thread *thread, const struct tti_news *news,
		      const struct tti_conn *from)
{
	if (!thread->lost) {
		thread->lost = true;
		thread->news = *news;
		for (struct tti_conn *conn = thread->conns; conn; conn = conn->next)
			if (conn != from && conn->role != TTI_CONN_PAIR)
				(void)queue(conn, TTI_FRAME_NEWS, 0, news, sizeof(*news), 0);
	}
	tell_caller(thread);
}

void tti_thread_no_answer(struct tti_thread *thread, int peer, bool refused)
{
	if (!tti_bit_has(thread->asked, (size_t)peer))
		return;
	tti_bit_clear(thread->asked, (size_t)peer);
	if (!refused && !tti_bit_has(thread->gone, (size_t)peer))
		return;
	if (thread->watching && !thread->quitting && thread->events.on_answer)
		thread->events.on_answer(thread->events.self, peer, NULL);
}

void tti_conn_ask(struct tti_conn *conn)
{
	conn->asked = true;
	if (queue(conn, TTI_FRAME_ASK, 0, NULL, 0, SPARE))
		return;
	conn->asked = false;
	tti_thread_no_answer(conn->thread, conn->peer, false);
}

static void take_ask(struct tti_conn *conn)
{
	struct tti_thread *thread = conn->thread;
	struct tti_call call = { .waiting_on = -1 };

	conn->owing = !thread->watching;
	if (conn->owing || thread->quitting || !thread->events.on_ask)
		return;
	thread->events.on_ask(thread->events.self, &call);
	(void)queue(conn, TTI_FRAME_ANSWER, 0, &call, sizeof(call), SPARE);
}

void tti_thread_catch_up(struct tti_thread *thread)
{
	tell_caller(thread);
	for (struct tti_conn *conn = thread->conns; conn; conn = conn->next)
		if (conn->owing)
			take_ask(conn);
}

static void take_answer(struct tti_conn *conn)
{
	struct tti_thread *thread = conn->thread;

	if (!conn->asked)
		return;
	conn->asked = false;
	tti_bit_clear(thread->asked, (size_t)conn->peer);
	if (!thread->quitting && thread->events.on_answer)
		thread->events.on_answer(thread->events.self, conn->peer, &conn->framer.body.call);
}

static void take_bye(struct tti_conn *conn)
{
	struct tti_thread *thread = conn->thread;
	const bool knew = conn->framer.head.seq != 0;

	tti_bit_set(thread->gone, (size_t)conn->peer);
	if (conn->role == TTI_CONN_NEXT && !thread->quitting && !(thread->lost && knew)) {
		thread->gap = conn->peer;
		thread->bypass_ns = tti_deadline(BYPASS_MS);
	}
	tti_conn_drop(conn);
}

/* -- Reading ------------------------------------------------------------------------- */

/* The connection is at its end, or broke: err is an errno, 0: it was closed.
 *
 * One that closes a gap in the ring may be let in by a rank that is just leaving: it
 * has said goodbye to the neighbours it had, and never takes this one over. Only when
 * it has, and says so, we are its neighbours. Until then its death is for the old ones
 * to see, and the gap is what it was. */
static void end(struct tti_conn *conn, int err)
{
	struct tti_thread *thread = conn->thread;
	struct tti_news news = { .status = TUTTI_EPEER,
				 .culprit = conn->peer,
				 .origin = thread->sock->base.rank };
	const enum tti_conn_role role = conn->role;
	const bool met = conn->met;
	char name[TTI_SOCK_NAME];

	tti_sock_name(thread->sock, conn->peer, name);
	tti_conn_drop(conn);
	if (role == TTI_CONN_PAIR || thread->quitting)
		return;
	if (!met) {
		tti_log(TTI_LOG_INFO, TTI_BOOT, "%s closed a connection that it had not used yet",
			name);
		if (role == TTI_CONN_NEXT)
			tti_reach_bypass(thread, news.culprit);
		return;
	}
	errno = err;
	if (err == 0 || err == ECONNRESET || err == EPIPE)
		(void)snprintf(news.text, sizeof(news.text),
			       "%s closed its connection without goodbye: it died", name);
	else
		(void)snprintf(news.text, sizeof(news.text), "%s cannot be reached any more: %m",
			       name);
	if (!thread->lost)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "%s", news.text);
	tti_thread_learn(thread, &news, NULL);
}

static void malformed(struct tti_conn *conn, const char *why)
{
	struct tti_thread *thread = conn->thread;
	struct tti_news news = { .status = TUTTI_EPROTO,
				 .culprit = conn->peer,
				 .origin = thread->sock->base.rank };
	char name[TTI_SOCK_NAME];

	(void)snprintf(news.text, sizeof(news.text), "%s broke the protocol: %s",
		       tti_sock_name(thread->sock, conn->peer, name), why);
	tti_conn_drop(conn);
	tti_thread_learn(thread, &news, NULL);
}

/* false: the connection is gone. */
static bool take_frame(struct tti_conn *conn)
{
	const struct tti_framer *framer = &conn->framer;

	conn->met = true;
	switch ((enum tti_frame_type)framer->head.type) {
	case TTI_FRAME_NEWS:
		if (framer->body.news.culprit < -1 ||
		    framer->body.news.culprit >= conn->thread->sock->base.nranks) {
			malformed(conn, "news about a rank that does not exist");
			return false;
		}
		tti_thread_learn(conn->thread, &framer->body.news, conn);
		return true;
	case TTI_FRAME_ASK:
		take_ask(conn);
		return true;
	case TTI_FRAME_ANSWER:
		take_answer(conn);
		return true;
	case TTI_FRAME_BYE:
		take_bye(conn);
		return false;
	case TTI_FRAME_MESSAGE: /* sent, but never received */
	case TTI_FRAME_HERE:
		return true;
	case TTI_FRAME_BLOCK:
	case TTI_FRAME_CHECKIN:
	case TTI_FRAME_NEXT:
	case TTI_FRAME_ALL:
	case TTI_FRAME_TYPES:
		break;
	}
	malformed(conn, "an unexpected frame");
	return false;
}

static void hear_conn(struct tti_ear *ear, uint32_t events)
{
	struct tti_conn *conn = (struct tti_conn *)ear;
	uint8_t data[1024];
	ssize_t n;

	if (events & EPOLLOUT) {
		flush(conn);
		if (conn->thread->quitting)
			tti_conn_leave(conn);
	}
	n = recv(conn->fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(conn, n < 0 ? errno : 0);
		return;
	}
	for (size_t at = 0, used; at < (size_t)n; at += used) {
		const tutti_status status =
			tti_framer_feed(&conn->framer, data + at, (size_t)n - at, &used);

		if (status == TUTTI_AGAIN)
			return;
		if (status < 0) {
			malformed(conn, tti_error_text());
			return;
		}
		if (!take_frame(conn))
			return;
	}
}

void tti_conn_adopt(struct tti_conn *conn)
{
	struct tti_thread *thread = conn->thread;

	conn->ear.hear = hear_conn;
	conn->next = thread->conns;
	conn->link = &thread->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	thread->conns = conn;
	set_keepalive(conn->fd);
	if (tti_loop_add(&thread->loop, conn->fd, EPOLLIN, &conn->ear) != TUTTI_OK) {
		tti_conn_drop(conn);
		return;
	}
	if (conn->role == TTI_CONN_PAIR)
		return;
	/* News say that we are here as well; and a rank that is still in its init, where
	 * it takes over no connections, understands nothing else. */
	if (thread->lost)
		(void)queue(conn, TTI_FRAME_NEWS, 0, &thread->news, sizeof(thread->news), 0);
	else if (!conn->met)
		(void)queue(conn, TTI_FRAME_HERE, 0, NULL, 0, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/watcher.h"

#include <string.h>
#include <sys/eventfd.h>

#include "boot/watch/conn.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/thread.h"

/* Pending connections that prove nothing; all ranks may come at once in addition. */
#define PENDING_MOST   256
/* How long a rank that leaves waits until the others have read its goodbye. */
#define LINGER_MS      500
/* The same if a connection has to be made anew for it. */
#define LINGER_MOST_MS 800

/* -- Who comes --------------------------------------------------------------------- */

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	const struct tti_boot *boot = &((struct tti_watcher *)self)->sock->base;

	return (kind == TTI_AUTH_RING || kind == TTI_AUTH_PEER) && who->nranks == boot->nranks &&
	       who->to == boot->rank && who->from >= 0 && who->from < boot->nranks &&
	       who->from != boot->rank;
}

/* Before the watch, connections are for the caller; a newer one replaces one that it has not taken. If the
 * caller has one of that rank already, the rank makes the link anew: then it is the watcher's. */
static bool put_in_inbox(struct tti_sock *sock, struct tti_tunnel *tunnel, bool ring, int peer)
{
	bool taken;

	pthread_mutex_lock(&sock->lock);
	taken = sock->taken || (ring && (peer != tti_sock_prev(sock) || sock->prev_tunnel));
	if (!taken) {
		struct tti_tunnel **slot = ring ? &sock->inbox_prev : &sock->in[peer];

		tti_tunnel_close(slot);
		*slot = tunnel;
	}
	pthread_mutex_unlock(&sock->lock);
	if (!taken)
		(void)eventfd_write(sock->inbox_fd, 1);
	return !taken;
}

static void enter(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
		  const struct tti_wire_who *who)
{
	struct tti_watcher *watcher = self;
	const bool ring = kind == TTI_AUTH_RING;
	const bool behind = ring && who->what == TTI_RING_BEHIND;
	const enum tti_conn_role role = behind ? TTI_CONN_NEXT
					: ring ? TTI_CONN_PREV
					       : TTI_CONN_PAIR;

	if (!behind && put_in_inbox(watcher->sock, tunnel, ring, who->from))
		return;

	struct tti_conn *conn = tti_conn_make(watcher, role, who->from, tunnel);

	if (conn)
		tti_conn_adopt(conn);
	else
		tti_tunnel_close(&tunnel);
}

/* -- The thread ---------------------------------------------------------------------- */

struct todo {
	struct tti_conn *conns;
	bool watch, quit, vanish, has_failure, has_asks;
	struct tti_failure failure;
};

static struct todo take_post(struct tti_watcher *watcher)
{
	const size_t words = TTI_BITSET_WORDS(watcher->sock->base.nranks);
	struct todo todo;

	pthread_mutex_lock(&watcher->sock->lock);
	todo = (struct todo){ .conns = watcher->post.conns,
			      .watch = watcher->post.watch && !watcher->watching,
			      .quit = watcher->post.quit,
			      .vanish = watcher->post.vanish,
			      .has_failure = watcher->post.has_failure,
			      .has_asks = watcher->post.has_asks,
			      .failure = watcher->post.failure };
	watcher->post.conns = NULL;
	watcher->post.has_failure = false;
	if (watcher->post.ticks)
		watcher->tick_ns = 0;
	watcher->post.ticks = false;
	tti_mail_queue_move(&watcher->post.mail, &watcher->mail);
	watcher->bye = watcher->post.bye;
	if (todo.watch)
		watcher->events = watcher->post.events;
	if (todo.has_asks) {
		memcpy(watcher->asks, watcher->post.asks, words * sizeof(uint64_t));
		memset(watcher->post.asks, 0, words * sizeof(uint64_t));
		watcher->post.has_asks = false;
	}
	pthread_mutex_unlock(&watcher->sock->lock);
	return todo;
}

static void start_quitting(struct tti_watcher *watcher)
{
	watcher->quitting = true;
	if (watcher->bye)
		tti_failures_tell_dead(watcher);
	tti_boot_reach_stop(watcher);
	tti_reconnect_leave(watcher, watcher->bye);
	/* From now on the goodbye is waited for, not the mail. */
	watcher->quit_ns = TTI_NEVER;
	/* A peer whose link is broken just now hears the goodbye all the same. */
	if (!watcher->reconnects)
		tti_acceptor_close(&watcher->acceptor);
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next)
		tti_conn_leave(conn);
}

/* Mail from before the end goes out first, within the time for goodbyes. */
static bool is_mail_out(struct tti_watcher *watcher)
{
	if (watcher->quit_ns == TTI_NEVER)
		watcher->quit_ns = tti_deadline(LINGER_MS);
	tti_mail_step(watcher);
	return !watcher->mail.first || tti_now_ns() >= watcher->quit_ns;
}

/* Do what other threads have told it; false: vanish. */
static bool obey(struct tti_watcher *watcher)
{
	const size_t nranks = (size_t)watcher->sock->base.nranks;
	const struct todo todo = take_post(watcher);

	for (struct tti_conn *conn = todo.conns, *next; conn; conn = next) {
		next = conn->next;
		tti_conn_adopt(conn);
	}
	if (todo.vanish)
		return false;
	if (todo.watch) {
		watcher->watching = true;
		tti_receive_catch_up(watcher);
	}
	if (todo.has_failure) {
		tti_failures_tell_dead(watcher);
		tti_failures_learn(watcher, &todo.failure, NULL);
	}
	if (todo.has_asks && !watcher->quitting)
		for (size_t peer = tti_bitset_next(watcher->asks, nranks, 0); peer < nranks;
		     peer = tti_bitset_next(watcher->asks, nranks, peer + 1))
			tti_boot_reach_ask(watcher, (int)peer);
	if (todo.quit && !watcher->quitting && is_mail_out(watcher))
		start_quitting(watcher);
	return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What the caller does from time to time; when to look again. */
static int64_t tick_for_caller(struct tti_watcher *watcher)
{
	if (!watcher->watching || watcher->quitting || !watcher->events.on_tick)
		return TTI_NEVER;
	if (watcher->tick_ns <= tti_now_ns())
		watcher->tick_ns = watcher->events.on_tick(watcher->events.self);
	return watcher->tick_ns;
}

/* Do what is due; when to look again. */
static int64_t tick(struct tti_watcher *watcher)
{
	int64_t next_ns = earlier(tti_acceptor_expire(&watcher->acceptor), watcher->quit_ns);

	if (watcher->bypass_ns <= tti_now_ns() && !watcher->quitting) {
		watcher->bypass_ns = TTI_NEVER;
		tti_boot_reach_bypass(watcher, watcher->gap);
	}
	/* Each may leave something to do to those after it: a timeout to mail and to reaches, mail to
	 * reaches, a reach that failed to reconnects. */
	(void)tti_receive_check_acks(watcher);
	tti_mail_step(watcher);
	next_ns = earlier(next_ns, tti_boot_reach_step(watcher));
	next_ns = earlier(next_ns, tti_mail_send_acks(watcher));
	next_ns = earlier(next_ns, tti_reconnect_step(watcher));
	next_ns = earlier(next_ns, watcher->ack_ns);
	next_ns = earlier(next_ns, tick_for_caller(watcher));
	/* Mail that waited for a reconnect goes another way, or starts one. */
	if (watcher->reconnected && watcher->mail.first)
		next_ns = tti_now_ns();
	return watcher->quitting ? next_ns : earlier(next_ns, watcher->bypass_ns);
}

/* Whether a rank that leaves has done all it can for its goodbye; else when to look again. */
static bool is_over(const struct tti_watcher *watcher, int64_t since_ns, int64_t *end_ns)
{
	*end_ns = since_ns + (watcher->reconnects ? LINGER_MOST_MS : LINGER_MS) * TTI_NS_PER_MS;
	return (!watcher->conns && !watcher->reconnects) || tti_now_ns() >= *end_ns;
}

static void *run(void *self)
{
	struct tti_watcher *watcher = self;
	int64_t quitting_ns = TTI_NEVER;

	tti_log_set_rank(watcher->sock->base.rank);
	while (obey(watcher)) {
		int64_t next_ns = tick(watcher), end_ns = TTI_NEVER;

		if (watcher->quitting && quitting_ns == TTI_NEVER)
			quitting_ns = tti_now_ns();
		if (watcher->quitting && is_over(watcher, quitting_ns, &end_ns))
			break;
		tti_loop_wait(&watcher->loop, tti_loop_left(earlier(next_ns, end_ns)));
	}
	return NULL;
}

/* -- Starting and ending ----------------------------------------------------------------- */

static void release(struct tti_watcher *watcher)
{
	struct tti_conn *conn;

	watcher->quitting = true; /* no callback hears of what is dropped now */
	tti_boot_reach_stop(watcher);
	tti_reconnect_leave(watcher, false);
	while (watcher->conns)
		tti_conn_drop(watcher->conns);
	while ((conn = watcher->post.conns)) {
		watcher->post.conns = conn->next;
		tti_tunnel_close(&conn->tunnel);
		tti_free(conn);
	}
	tti_mail_queue_forget(watcher, -1);
	tti_mail_queue_drop(&watcher->post.mail, -1);
	tti_failures_release(watcher);
	tti_acceptor_close(&watcher->acceptor);
	tti_loop_release(&watcher->loop);
	tti_free(watcher->asked);
	tti_free(watcher->left);
	tti_free(watcher->asks);
	tti_free(watcher->post.asks);
	tti_free(watcher);
}

static tutti_status open_watcher(struct tti_watcher *watcher)
{
	const size_t words = TTI_BITSET_WORDS(watcher->sock->base.nranks);

	TTI_TRY(tti_loop_init(&watcher->loop));
	watcher->asked = tti_calloc(words, sizeof(uint64_t));
	watcher->left = tti_calloc(words, sizeof(uint64_t));
	watcher->asks = tti_calloc(words, sizeof(uint64_t));
	watcher->post.asks = tti_calloc(words, sizeof(uint64_t));
	if (!watcher->asked || !watcher->left || !watcher->asks || !watcher->post.asks)
		return tti_fail(TUTTI_ENOMEM, "no memory for the watch");
	return tti_acceptor_open(&watcher->acceptor);
}

tutti_status tti_watcher_start(struct tti_sock *sock, int listen_fd)
{
	struct tti_watcher *watcher = tti_zalloc(sizeof(*watcher));
	tutti_status status;

	if (!watcher) {
		tti_fd_close(&listen_fd);
		return tti_fail(TUTTI_ENOMEM, "no memory for the watch");
	}
	watcher->sock = sock;
	watcher->on_event = tti_receive_handle;
	watcher->bypass_ns = watcher->ack_ns = watcher->quit_ns = watcher->mail_ack_ns = TTI_NEVER;
	watcher->tick_ns = TTI_NEVER;
	tti_mail_queue_init(&watcher->mail);
	tti_mail_queue_init(&watcher->unacked);
	tti_mail_queue_init(&watcher->post.mail);
	watcher->acceptor = (struct tti_acceptor){ .loop = &watcher->loop,
						   .secret = sock->base.secret,
						   .listen_fd = listen_fd,
						   .most = PENDING_MOST + (size_t)sock->base.nranks,
						   .self = watcher,
						   .admit = admit,
						   .on_accept = enter };
	status = open_watcher(watcher);
	if (status == TUTTI_OK)
		status = tti_thread_start(&watcher->id, "tutti-watch", run, watcher);
	if (status != TUTTI_OK) {
		release(watcher);
		return status;
	}
	sock->watcher = watcher;
	return TUTTI_OK;
}

/* Give the watcher a connection of init, if there is one. Without memory it stays where it is. */
static tutti_status hand_one(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			     struct tti_tunnel **tunnel, bool torn)
{
	struct tti_conn *conn;

	if (!*tunnel)
		return TUTTI_OK;
	conn = tti_conn_make(watcher, role, peer, *tunnel);
	if (!conn)
		return tti_fail(TUTTI_ENOMEM, "no memory for the watch");
	conn->torn = torn || tti_tunnel_is_torn(*tunnel);
	conn->confirmed = true; /* since the ranks have joined */
	conn->next = watcher->post.conns;
	watcher->post.conns = conn;
	*tunnel = NULL;
	return TUTTI_OK;
}

/* sock->lock is held. */
static tutti_status hand_over(struct tti_sock *sock)
{
	struct tti_watcher *watcher = sock->watcher;

	sock->taken = true;
	TTI_TRY(hand_one(watcher, TTI_CONN_PREV, tti_sock_prev(sock), &sock->prev_tunnel,
			 sock->prev_torn));
	TTI_TRY(hand_one(watcher, TTI_CONN_NEXT, tti_sock_next(sock), &sock->next_tunnel,
			 sock->next_torn));
	for (int peer = 0; peer < sock->base.nranks; peer++)
		TTI_TRY(hand_one(watcher, TTI_CONN_PAIR, peer, &sock->in[peer], false));
	return TUTTI_OK;
}

tutti_status tti_watcher_take_over(struct tti_boot *boot, const struct tti_watch_events *events)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	tutti_status status;

	TTI_TRY(tti_sock_check(sock));
	pthread_mutex_lock(&sock->lock);
	status = hand_over(sock);
	if (status == TUTTI_OK) {
		sock->watcher->post.watch = true;
		sock->watcher->post.events = *events;
	}
	tti_loop_wake(&sock->watcher->loop);
	pthread_mutex_unlock(&sock->lock);
	if (status != TUTTI_OK)
		return tti_sock_break(sock, status, boot->rank, "%s", tti_error_text());
	return TUTTI_OK;
}

void tti_watcher_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	pthread_mutex_lock(&sock->lock);
	if (sock->watcher && sock->watcher->post.watch && !sock->watcher->post.has_failure) {
		sock->watcher->post.has_failure = true;
		sock->watcher->post.failure = *failure;
		sock->watcher->post.failure.text[TTI_FAILURE_TEXT - 1] = '\0';
		tti_loop_wake(&sock->watcher->loop);
	}
	pthread_mutex_unlock(&sock->lock);
}

void tti_watcher_ask(struct tti_boot *boot, int peer)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	pthread_mutex_lock(&sock->lock);
	if (sock->watcher && sock->watcher->post.watch) {
		tti_bit_set(sock->watcher->post.asks, (size_t)peer);
		sock->watcher->post.has_asks = true;
		tti_loop_wake(&sock->watcher->loop);
	}
	pthread_mutex_unlock(&sock->lock);
}

void tti_watcher_tick(struct tti_boot *boot)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	pthread_mutex_lock(&sock->lock);
	if (sock->watcher) {
		sock->watcher->post.ticks = true;
		tti_loop_wake(&sock->watcher->loop);
	}
	pthread_mutex_unlock(&sock->lock);
}

static void finish(struct tti_sock *sock, bool vanish)
{
	struct tti_watcher *watcher = sock->watcher;

	if (!watcher)
		return;
	pthread_mutex_lock(&sock->lock);
	if (!sock->taken && hand_over(sock) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "closing without goodbye: %s", tti_error_text());
	watcher->post.quit = true;
	watcher->post.vanish = vanish;
	watcher->post.bye = sock->broken.status == 0;
	tti_loop_wake(&watcher->loop);
	pthread_mutex_unlock(&sock->lock);
	(void)pthread_join(watcher->id, NULL);
	pthread_mutex_lock(&sock->lock);
	sock->watcher = NULL;
	pthread_mutex_unlock(&sock->lock);
	release(watcher);
}

void tti_watcher_stop(struct tti_boot *boot)
{
	finish((struct tti_sock *)boot, false);
}

void tti_watcher_vanish(struct tti_boot *boot)
{
	finish((struct tti_sock *)boot, true);
}

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

/* Connections that prove nothing yet; beyond them, all ranks may come at once. */
#define PENDING_MOST   256
/* How long to wait for the others to have read our goodbye. */
#define LINGER_MS      500
/* The same where a connection has to be made for it, as the old one broke. */
#define LINGER_MOST_MS 800

/* -- Who comes --------------------------------------------------------------------- */

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	const struct tti_boot *boot = &((struct tti_watcher *)self)->sock->base;

	return (kind == TTI_AUTH_RING || kind == TTI_AUTH_PEER) && who->nranks == boot->nranks &&
	       who->to == boot->rank && who->from >= 0 && who->from < boot->nranks &&
	       who->from != boot->rank;
}

/* Before the watch: for the caller. A newer one replaces what he has not taken; who has him
 * already, and comes again, makes a link anew and is the thread's. */
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
	struct tti_watcher *thread = self;
	const bool ring = kind == TTI_AUTH_RING;
	const bool behind = ring && who->what == TTI_RING_BEHIND;
	const enum tti_conn_role role = behind ? TTI_CONN_NEXT
					: ring ? TTI_CONN_PREV
					       : TTI_CONN_PAIR;

	if (!behind && put_in_inbox(thread->sock, tunnel, ring, who->from))
		return;

	struct tti_conn *conn = tti_conn_make(thread, role, who->from, tunnel);

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

static struct todo take_post(struct tti_watcher *thread)
{
	const size_t words = TTI_BITSET_WORDS(thread->sock->base.nranks);
	struct todo todo;

	pthread_mutex_lock(&thread->sock->lock);
	todo = (struct todo){ .conns = thread->post.conns,
			      .watch = thread->post.watch && !thread->watching,
			      .quit = thread->post.quit,
			      .vanish = thread->post.vanish,
			      .has_failure = thread->post.has_failure,
			      .has_asks = thread->post.has_asks,
			      .failure = thread->post.failure };
	thread->post.conns = NULL;
	thread->post.has_failure = false;
	tti_mails_move(&thread->post.mails, &thread->mails);
	thread->bye = thread->post.bye;
	if (todo.watch)
		thread->events = thread->post.events;
	if (todo.has_asks) {
		memcpy(thread->asks, thread->post.asks, words * sizeof(uint64_t));
		memset(thread->post.asks, 0, words * sizeof(uint64_t));
		thread->post.has_asks = false;
	}
	pthread_mutex_unlock(&thread->sock->lock);
	return todo;
}

static void start_quitting(struct tti_watcher *thread)
{
	thread->quitting = true;
	if (thread->bye)
		tti_failures_tell_dead(thread);
	tti_boot_reach_stop(thread);
	tti_reconnect_leave(thread, thread->bye);
	/* From now on it is the goodbye that is waited for. */
	thread->quit_ns = TTI_NEVER;
	/* Whose link is broken just now is to hear our goodbye all the same. */
	if (!thread->reconnects)
		tti_acceptor_close(&thread->acceptor);
	for (struct tti_conn *conn = thread->conns; conn; conn = conn->next)
		tti_conn_leave(conn);
}

/* What was mailed before the end goes out before it, within the time for goodbyes. */
static bool is_mail_out(struct tti_watcher *thread)
{
	if (thread->quit_ns == TTI_NEVER)
		thread->quit_ns = tti_deadline(LINGER_MS);
	tti_mails_step(thread);
	return !thread->mails.first || tti_now_ns() >= thread->quit_ns;
}

/* Do what the thread was told; false: vanish. */
static bool obey(struct tti_watcher *thread)
{
	const size_t nranks = (size_t)thread->sock->base.nranks;
	const struct todo todo = take_post(thread);

	for (struct tti_conn *conn = todo.conns, *next; conn; conn = next) {
		next = conn->next;
		tti_conn_adopt(conn);
	}
	if (todo.vanish)
		return false;
	if (todo.watch) {
		thread->watching = true;
		tti_watcher_catch_up(thread);
	}
	if (todo.has_failure) {
		tti_failures_tell_dead(thread);
		tti_failures_learn(thread, &todo.failure, NULL);
	}
	if (todo.has_asks && !thread->quitting)
		for (size_t peer = tti_bitset_next(thread->asks, nranks, 0); peer < nranks;
		     peer = tti_bitset_next(thread->asks, nranks, peer + 1))
			tti_boot_reach_ask(thread, (int)peer);
	if (todo.quit && !thread->quitting && is_mail_out(thread))
		start_quitting(thread);
	return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Do what is due; when to look again. */
static int64_t tick(struct tti_watcher *thread)
{
	int64_t next_ns = earlier(tti_acceptor_expire(&thread->acceptor), thread->quit_ns);

	if (thread->bypass_ns <= tti_now_ns() && !thread->quitting) {
		thread->bypass_ns = TTI_NEVER;
		tti_boot_reach_bypass(thread, thread->gap);
	}
	/* Each may leave something to do to those behind it: a doubt to mail and to reaches, mail to
	 * reaches, one that failed to a mend. */
	(void)tti_conn_check_acks(thread);
	tti_mails_step(thread);
	next_ns = earlier(next_ns, tti_boot_reach_step(thread));
	next_ns = earlier(next_ns, tti_mails_tell(thread));
	next_ns = earlier(next_ns, tti_reconnect_step(thread));
	next_ns = earlier(next_ns, thread->ack_ns);
	/* Mail that waited for a mend goes another way, or makes one. */
	if (thread->freed && thread->mails.first)
		next_ns = tti_now_ns();
	return thread->quitting ? next_ns : earlier(next_ns, thread->bypass_ns);
}

/* Whether a rank that leaves has done all it can for its goodbye; else when to look again. */
static bool is_over(const struct tti_watcher *thread, int64_t since_ns, int64_t *end_ns)
{
	*end_ns = since_ns + (thread->reconnects ? LINGER_MOST_MS : LINGER_MS) * TTI_NS_PER_MS;
	return (!thread->conns && !thread->reconnects) || tti_now_ns() >= *end_ns;
}

static void *run(void *self)
{
	struct tti_watcher *thread = self;
	int64_t quitting_ns = TTI_NEVER;

	tti_log_set_rank(thread->sock->base.rank);
	while (obey(thread)) {
		int64_t next_ns = tick(thread), end_ns = TTI_NEVER;

		if (thread->quitting && quitting_ns == TTI_NEVER)
			quitting_ns = tti_now_ns();
		if (thread->quitting && is_over(thread, quitting_ns, &end_ns))
			break;
		tti_loop_wait(&thread->loop, tti_loop_left(earlier(next_ns, end_ns)));
	}
	return NULL;
}

/* -- Starting and ending ----------------------------------------------------------------- */

static void release(struct tti_watcher *thread)
{
	struct tti_conn *conn;

	thread->quitting = true; /* nobody is told of what is dropped now */
	tti_boot_reach_stop(thread);
	tti_reconnect_leave(thread, false);
	while (thread->conns)
		tti_conn_drop(thread->conns);
	while ((conn = thread->post.conns)) {
		thread->post.conns = conn->next;
		tti_tunnel_close(&conn->tunnel);
		tti_free(conn);
	}
	tti_mails_forget(thread, -1);
	tti_mails_drop(&thread->post.mails, -1);
	tti_failures_release(thread);
	tti_acceptor_close(&thread->acceptor);
	tti_loop_release(&thread->loop);
	tti_free(thread->asked);
	tti_free(thread->gone);
	tti_free(thread->asks);
	tti_free(thread->post.asks);
	tti_free(thread);
}

static tutti_status open_thread(struct tti_watcher *thread)
{
	const size_t words = TTI_BITSET_WORDS(thread->sock->base.nranks);

	TTI_TRY(tti_loop_init(&thread->loop));
	thread->asked = tti_calloc(words, sizeof(uint64_t));
	thread->gone = tti_calloc(words, sizeof(uint64_t));
	thread->asks = tti_calloc(words, sizeof(uint64_t));
	thread->post.asks = tti_calloc(words, sizeof(uint64_t));
	if (!thread->asked || !thread->gone || !thread->asks || !thread->post.asks)
		return tti_fail(TUTTI_ENOMEM, "no memory for the watch");
	return tti_acceptor_open(&thread->acceptor);
}

tutti_status tti_watcher_start(struct tti_sock *sock, int listen_fd)
{
	struct tti_watcher *thread = tti_zalloc(sizeof(*thread));
	tutti_status status;

	if (!thread) {
		tti_fd_close(&listen_fd);
		return tti_fail(TUTTI_ENOMEM, "no memory for the watch");
	}
	thread->sock = sock;
	thread->bypass_ns = thread->ack_ns = thread->quit_ns = thread->tell_ns = TTI_NEVER;
	tti_mails_init(&thread->mails);
	tti_mails_init(&thread->sent);
	tti_mails_init(&thread->post.mails);
	thread->acceptor = (struct tti_acceptor){ .loop = &thread->loop,
						  .secret = sock->base.secret,
						  .listen_fd = listen_fd,
						  .most = PENDING_MOST + (size_t)sock->base.nranks,
						  .self = thread,
						  .admit = admit,
						  .on_accept = enter };
	status = open_thread(thread);
	if (status == TUTTI_OK)
		status = tti_thread_start(&thread->id, "tutti-watch", run, thread);
	if (status != TUTTI_OK) {
		release(thread);
		return status;
	}
	sock->thread = thread;
	return TUTTI_OK;
}

static void hand_one(struct tti_conn **list, struct tti_conn *conn, struct tti_tunnel **tunnel,
		     bool torn)
{
	if (!*tunnel || !conn)
		return;
	conn->tunnel = *tunnel;
	conn->torn = torn || tti_tunnel_is_torn(*tunnel);
	conn->met = true; /* since the ranks have joined */
	conn->next = *list;
	*list = conn;
	*tunnel = NULL;
}

/* Give all connections to the thread; sock->lock is held. What does not fit into
 * memory stays where it is. */
static tutti_status hand_over(struct tti_sock *sock)
{
	struct tti_watcher *thread = sock->thread;
	struct tti_conn **list = &thread->post.conns;
	tutti_status status = TUTTI_OK;

	for (int i = -2; i < sock->base.nranks && status == TUTTI_OK; i++) {
		const int peer = i == -2 ? tti_sock_prev(sock) : i == -1 ? tti_sock_next(sock) : i;
		struct tti_tunnel **tunnel = i == -2   ? &sock->prev_tunnel
					     : i == -1 ? &sock->next_tunnel
						       : &sock->in[peer];
		const enum tti_conn_role role = i == -2   ? TTI_CONN_PREV
						: i == -1 ? TTI_CONN_NEXT
							  : TTI_CONN_PAIR;
		struct tti_conn *conn = *tunnel ? tti_conn_make(thread, role, peer, *tunnel) : NULL;

		if (*tunnel && !conn)
			status = tti_fail(TUTTI_ENOMEM, "no memory for the watch");
		hand_one(list, conn, tunnel,
			 (i == -2 && sock->prev_torn) || (i == -1 && sock->next_torn));
	}
	sock->taken = true;
	return status;
}

tutti_status tti_watcher_take_over(struct tti_boot *boot, const struct tti_watch_events *events)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	tutti_status status;

	TTI_TRY(tti_sock_check(sock));
	pthread_mutex_lock(&sock->lock);
	status = hand_over(sock);
	if (status == TUTTI_OK) {
		sock->thread->post.watch = true;
		sock->thread->post.events = *events;
	}
	tti_loop_wake(&sock->thread->loop);
	pthread_mutex_unlock(&sock->lock);
	if (status != TUTTI_OK)
		return tti_sock_break(sock, status, boot->rank, "%s", tti_error_text());
	return TUTTI_OK;
}

void tti_watcher_notify(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	pthread_mutex_lock(&sock->lock);
	if (sock->thread && sock->thread->post.watch && !sock->thread->post.has_failure) {
		sock->thread->post.has_failure = true;
		sock->thread->post.failure = *failure;
		sock->thread->post.failure.text[TTI_FAILURE_TEXT - 1] = '\0';
		tti_loop_wake(&sock->thread->loop);
	}
	pthread_mutex_unlock(&sock->lock);
}

void tti_watcher_ask(struct tti_boot *boot, int peer)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	pthread_mutex_lock(&sock->lock);
	if (sock->thread && sock->thread->post.watch) {
		tti_bit_set(sock->thread->post.asks, (size_t)peer);
		sock->thread->post.has_asks = true;
		tti_loop_wake(&sock->thread->loop);
	}
	pthread_mutex_unlock(&sock->lock);
}

static void finish(struct tti_sock *sock, bool vanish)
{
	struct tti_watcher *thread = sock->thread;

	if (!thread)
		return;
	pthread_mutex_lock(&sock->lock);
	if (!sock->taken && hand_over(sock) != TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "closing without goodbye: %s", tti_error_text());
	thread->post.quit = true;
	thread->post.vanish = vanish;
	thread->post.bye = sock->broken.status == 0;
	tti_loop_wake(&thread->loop);
	pthread_mutex_unlock(&sock->lock);
	(void)pthread_join(thread->id, NULL);
	pthread_mutex_lock(&sock->lock);
	sock->thread = NULL;
	pthread_mutex_unlock(&sock->lock);
	release(thread);
}

void tti_watcher_stop(struct tti_boot *boot)
{
	finish((struct tti_sock *)boot, false);
}

void tti_watcher_vanish(struct tti_boot *boot)
{
	finish((struct tti_sock *)boot, true);
}

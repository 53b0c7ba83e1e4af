/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells of a peer that is gone: the communicators that live on its connections hear the
 * same as the ring. The watch's thread is the test's here, and the peers are ends of sockets, so that
 * everything happens in an order that is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "boot/conn.h"
#include "util/bitset.h"
#include "util/clock.h"

#define N 4

struct job {
	struct tti_sock sock;
	struct tti_thread thread;
	struct tti_box box;
	int ndown, peer;
	enum tti_down how;
	char why[400];
};

static void on_down(struct tti_box *box, int peer, enum tti_down how, const char *why)
{
	struct job *job = (struct job *)((char *)box - offsetof(struct job, box));

	job->ndown++;
	job->peer = peer;
	job->how = how;
	(void)snprintf(job->why, sizeof(job->why), "%s", why);
}

/* Rank 0. */
static struct job *begin(void)
{
	struct job *job = calloc(1, sizeof(*job));
	struct tti_thread *thread = &job->thread;

	assert_non_null(job);
	job->sock.base = (struct tti_boot){ .ops = &tti_sock_ops, .nranks = N };
	job->sock.cards = calloc(N, sizeof(*job->sock.cards));
	assert_int_equal(tti_office_init(&job->sock.base.office, N), TUTTI_OK);
	job->box = (struct tti_box){ .context = 1, .down = on_down };
	tti_office_open(&job->sock.base.office, &job->box);
	thread->sock = &job->sock;
	thread->asked = calloc(TTI_BITSET_WORDS(N), sizeof(uint64_t));
	thread->gone = calloc(TTI_BITSET_WORDS(N), sizeof(uint64_t));
	thread->bypass_ns = thread->doubt_ns = thread->quit_ns = thread->tell_ns = TTI_NEVER;
	thread->watching = true;
	tti_mails_init(&thread->mails);
	tti_mails_init(&thread->sent);
	assert_int_equal(tti_loop_init(&thread->loop), TUTTI_OK);
	return job;
}

static void finish(struct job *job)
{
	job->thread.quitting = true;
	tti_boot_reach_stop(&job->thread);
	tti_mend_stop(&job->thread);
	while (job->thread.conns)
		tti_conn_drop(job->thread.conns);
	tti_loop_release(&job->thread.loop);
	tti_office_close(&job->sock.base.office, &job->box);
	tti_office_release(&job->sock.base.office);
	free(job->thread.asked);
	free(job->thread.gone);
	free(job->sock.cards);
	free(job);
}

/* A connection to the peer, whose end is returned. */
static struct tti_tunnel *meet(struct job *job, enum tti_conn_role role, int peer)
{
	const struct tti_seal_keys keys = { .out = { 1 }, .in = { 2 }, .cipher = TTI_SEAL_XCHACHA };
	const struct tti_seal_keys theirs = { .out = { 2 }, .in = { 1 }, .cipher = keys.cipher };
	struct tti_tunnel *near, *far;
	struct tti_conn *conn;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(tti_tunnel_open(fds[0], &keys, &near), TUTTI_OK);
	assert_int_equal(tti_tunnel_open(fds[1], &theirs, &far), TUTTI_OK);
	conn = tti_conn_make(&job->thread, role, peer, near);
	assert_non_null(conn);
	tti_conn_adopt(conn);
	return far;
}

/* -- The end of patience -------------------------------------------------------------- */

/* The link to rank 1 is given up now. */
static void give_up(struct job *job, enum tti_mend_why why, bool refused)
{
	const struct tti_addr nowhere = { .family = 0 };
	struct tti_mend *mend;

	tti_mend_begin(&job->thread, TTI_CONN_NEXT, 1, &nowhere, why);
	mend = job->thread.mends;
	assert_non_null(mend);
	mend->refused = refused;
	mend->deadline_ns = tti_now_ns();
	mend->again_ns = mend->deadline_ns - 1; /* nobody answers */
	(void)tti_mend_step(&job->thread);
	assert_null(job->thread.mends);
	assert_true(job->thread.lost);
	assert_int_equal(job->ndown, 1);
	assert_int_equal(job->peer, 1);
}

static void expect_same(const struct job *job, enum tti_down how, const char *why)
{
	assert_int_equal(job->how, how);
	assert_int_equal(job->thread.news.died, how == TTI_DOWN_DIED);
	assert_string_equal(job->thread.news.text + strlen("rank 1 "), job->why);
	assert_memory_equal(job->why, why, strlen(why));
}

/* Somebody closed the link, but it is not known that nobody listens any more. */
static void a_closed_link_is_no_death(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_MEND_CLOSED, false);
	expect_same(job, TTI_DOWN_LOST, "cannot be reached any more");
	finish(job);
}

static void who_is_silent_and_refuses_is_dead(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_MEND_SILENT, true);
	expect_same(job, TTI_DOWN_DIED, "died: its connection fell silent");
	finish(job);
}

static void who_is_silent_cannot_be_reached(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_MEND_SILENT, false);
	expect_same(job, TTI_DOWN_LOST, "cannot be reached any more");
	finish(job);
}

/* What another rank has found out is handed on as it says it. */
static void news_of_a_death_keep_their_words(void **state)
{
	struct job *job = begin();
	const struct tti_news news = {
		.status = TUTTI_EPEER, .culprit = 2, .died = 1, .text = "rank 2 died: of boredom"
	};

	(void)state;
	tti_thread_learn(&job->thread, &news, NULL);
	assert_int_equal(job->how, TTI_DOWN_DIED);
	assert_string_equal(job->why, "died: of boredom");
	finish(job);
}

/* -- Connections that are not of the ring ------------------------------------------------ */

/* A rank that is just leaving hangs up on who comes: that is not called a death. */
static void an_unused_connection_is_no_death(void **state)
{
	struct job *job = begin();
	struct tti_tunnel *far = meet(job, TTI_CONN_PAIR, 2);

	(void)state;
	tti_tunnel_close(&far);
	tti_loop_wait(&job->thread.loop, 0);
	assert_int_equal(job->ndown, 1);
	assert_int_equal(job->how, TTI_DOWN_LOST);
	assert_string_equal(job->why, "closed a connection that it had not used yet");
	finish(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_link_is_no_death),
		cmocka_unit_test(who_is_silent_and_refuses_is_dead),
		cmocka_unit_test(who_is_silent_cannot_be_reached),
		cmocka_unit_test(news_of_a_death_keep_their_words),
		cmocka_unit_test(an_unused_connection_is_no_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells of a peer that is gone: the communicators that live on its connections hear the
 * same as the ring. The watch's thread is the test's here, and the peers are ends of sockets, so that
 * everything happens in an order that is chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/watch/conn.h"
#include "util/bitset.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/process.h"

#define N 4

/* The other end of a connection. */
struct far {
	struct tti_tunnel *tunnel;
	struct tti_framer framer;
	uint8_t data[TTI_TUNNEL_RECORD];
	size_t n, at;
};

struct job {
	struct far far[N];
	struct tti_sock sock;
	struct tti_watcher watcher;
	struct tti_mailbox mailbox;
	int ndown, peer;
	enum tti_down how;
	char why[400];
};

static void on_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	struct job *job = (struct job *)((char *)mailbox - offsetof(struct job, mailbox));

	job->ndown++;
	job->peer = peer;
	job->how = how;
	(void)snprintf(job->why, sizeof(job->why), "%s", why);
}

/* Rank 0. */
static struct job *begin(void)
{
	struct job *job = calloc(1, sizeof(*job));
	struct tti_watcher *watcher = &job->watcher;

	assert_non_null(job);
	job->sock.base = (struct tti_boot){ .ops = &tti_sock_ops, .nranks = N };
	job->sock.cards = calloc(N, sizeof(*job->sock.cards));
	assert_int_equal(tti_dispatcher_init(&job->sock.base.dispatcher, N), TUTTI_OK);
	job->mailbox = (struct tti_mailbox){ .context = 1, .down = on_down };
	tti_dispatcher_open(&job->sock.base.dispatcher, &job->mailbox);
	watcher->sock = &job->sock;
	watcher->on_event = tti_receive_handle;
	watcher->asked = calloc(TTI_BITSET_WORDS(N), sizeof(uint64_t));
	watcher->left = calloc(TTI_BITSET_WORDS(N), sizeof(uint64_t));
	watcher->bypass_ns = watcher->ack_ns = watcher->quit_ns = watcher->mail_ack_ns = TTI_NEVER;
	watcher->watching = true;
	tti_mail_queue_init(&watcher->mail);
	tti_mail_queue_init(&watcher->unacked);
	assert_int_equal(tti_loop_init(&watcher->loop), TUTTI_OK);
	return job;
}

static void finish(struct job *job)
{
	job->watcher.quitting = true;
	tti_boot_reach_stop(&job->watcher);
	tti_reconnect_leave(&job->watcher, false);
	while (job->watcher.conns)
		tti_conn_drop(job->watcher.conns);
	tti_failures_release(&job->watcher);
	tti_loop_release(&job->watcher.loop);
	tti_dispatcher_close(&job->sock.base.dispatcher, &job->mailbox);
	tti_dispatcher_release(&job->sock.base.dispatcher);
	for (int i = 0; i < N; i++)
		tti_tunnel_close(&job->far[i].tunnel);
	free(job->watcher.asked);
	free(job->watcher.left);
	free(job->sock.cards);
	free(job);
}

static struct tti_conn *meet(struct job *job, enum tti_conn_role role, int peer)
{
	const struct tti_seal_keys keys = { .out = { 1 }, .in = { 2 }, .cipher = TTI_SEAL_XCHACHA };
	const struct tti_seal_keys theirs = { .out = { 2 }, .in = { 1 }, .cipher = keys.cipher };
	struct tti_tunnel *near;
	struct tti_conn *conn;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(tti_tunnel_open(fds[0], &keys, &near), TUTTI_OK);
	assert_int_equal(tti_tunnel_open(fds[1], &theirs, &job->far[peer].tunnel), TUTTI_OK);
	conn = tti_conn_make(&job->watcher, role, peer, near);
	assert_non_null(conn);
	tti_conn_adopt(conn);
	return conn;
}

/* The type of the next frame that the peer gets; 0: none will come, -1: none is there. */
static int hear(struct job *job, int peer)
{
	struct far *far = &job->far[peer];
	size_t used;

	for (int i = 0; i < 3; i++) {
		ssize_t n;

		for (; far->at < far->n; far->at += used) {
			const tutti_status status = tti_framer_feed(
				&far->framer, far->data + far->at, far->n - far->at, &used);

			assert_true(status >= TUTTI_OK);
			if (status == TUTTI_OK) {
				far->at += used;
				return (int)far->framer.head.type;
			}
		}
		n = tti_tunnel_recv(far->tunnel, far->data, sizeof(far->data));
		if (n == 0)
			return 0;
		far->at = 0;
		far->n = n > 0 ? (size_t)n : 0;
		if (n > 0)
			i = -1;
		else
			tti_loop_wait(&job->watcher.loop, 0);
	}
	return -1;
}

static void expect_failure(struct job *job, int peer, int failed_rank)
{
	assert_int_equal(hear(job, peer), TTI_FRAME_FAILURE);
	assert_int_equal(job->far[peer].framer.body.failure.failed_rank, failed_rank);
}

static void learn_death(struct job *job, int rank, struct tti_conn *from)
{
	struct tti_failure failure = tti_failure_make(TUTTI_EPEER, rank, 0, "rank %d died", rank);

	failure.died = 1;
	tti_failures_learn(&job->watcher, &failure, from);
}

/* Nothing more goes out there. */
static void fill(struct tti_conn *conn)
{
	while (tti_conn_put(conn, TTI_FRAME_MAIL_ACK, 0, NULL, 0))
		;
}

/* The peer reads all that went out before. */
static void drain(struct job *job, int peer, int type)
{
	int got;

	do
		got = hear(job, peer);
	while (got == TTI_FRAME_MAIL_ACK || got == TTI_FRAME_HERE);
	assert_int_equal(got, type);
}

/* -- The end of patience -------------------------------------------------------------- */

/* The link to rank 1 is given up now. */
static void give_up(struct job *job, enum tti_reconnect_why why, bool refused)
{
	const struct tti_addr nowhere = { .family = 0 };
	struct tti_reconnect *reconnect;

	tti_reconnect_begin(&job->watcher, TTI_CONN_NEXT, 1, &nowhere, why);
	reconnect = job->watcher.reconnects;
	assert_non_null(reconnect);
	reconnect->refused = refused;
	reconnect->deadline_ns = tti_now_ns();
	reconnect->again_ns = reconnect->deadline_ns - 1; /* nobody answers */
	(void)tti_reconnect_step(&job->watcher);
	assert_null(job->watcher.reconnects);
	assert_true(job->watcher.lost);
	assert_int_equal(job->ndown, 1);
	assert_int_equal(job->peer, 1);
}

static void expect_same(const struct job *job, enum tti_down how, const char *why)
{
	assert_int_equal(job->how, how);
	assert_int_equal(job->watcher.first.failure.died, how == TTI_DOWN_DIED);
	assert_string_equal(job->watcher.first.failure.text + strlen("rank 1 "), job->why);
	assert_memory_equal(job->why, why, strlen(why));
}

/* Somebody closed the link, but it is not known that nobody listens any more. */
static void a_closed_link_is_no_death(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_RECONNECT_CLOSED, false);
	expect_same(job, TTI_DOWN_LOST, "cannot be reached any more");
	finish(job);
}

static void who_is_silent_and_refuses_is_dead(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_RECONNECT_SILENT, true);
	expect_same(job, TTI_DOWN_DIED, "died: its connection fell silent");
	finish(job);
}

static void who_is_silent_cannot_be_reached(void **state)
{
	struct job *job = begin();

	(void)state;
	give_up(job, TTI_RECONNECT_SILENT, false);
	expect_same(job, TTI_DOWN_LOST, "cannot be reached any more");
	finish(job);
}

/* What another rank has found out is handed on as it says it. */
static void a_failure_keeps_its_words(void **state)
{
	struct job *job = begin();
	const struct tti_failure failure = { .status = TUTTI_EPEER,
					     .failed_rank = 2,
					     .died = 1,
					     .text = "rank 2 died: of boredom" };

	(void)state;
	tti_failures_learn(&job->watcher, &failure, NULL);
	assert_int_equal(job->how, TTI_DOWN_DIED);
	assert_string_equal(job->why, "died: of boredom");
	finish(job);
}

/* -- Connections that are not of the ring ------------------------------------------------ */

/* Rank 2 listens, here. */
static int listen_as_two(struct job *job)
{
	struct tti_wire_card *card = &job->sock.cards[2];
	const struct tti_addr addr = { .family = 4, .ip = { 127, 0, 0, 1 } };
	uint16_t port = 0;
	int fd = -1;

	assert_int_equal(tti_listen(&port, 0, &fd), TUTTI_OK);
	card->port = htons(port);
	card->addr_bytes = (uint8_t)tti_addrs_pack(&addr, 1, card->addrs, sizeof(card->addrs));
	return fd;
}

static void tick(struct job *job)
{
	tti_loop_wait(&job->watcher.loop, 2);
	(void)tti_boot_reach_step(&job->watcher);
	(void)tti_reconnect_step(&job->watcher);
}

/* A rank that is just leaving hangs up on who comes, and listens no more: that is not called a death. */
static void an_unused_connection_is_no_death(void **state)
{
	struct job *job = begin();

	(void)state;
	close(listen_as_two(job));
	(void)meet(job, TTI_CONN_PAIR, 2);
	tti_tunnel_close(&job->far[2].tunnel);
	while (!job->ndown)
		tick(job);
	assert_int_equal(job->how, TTI_DOWN_LOST);
	finish(job);
}

/* A PAIR to rank 2 that both have used ends: in order, or by a reset, which is what a socket does that
 * is closed with something to read. */
static void part(struct job *job, bool reset)
{
	meet(job, TTI_CONN_PAIR, 2)->confirmed = true;
	if (!reset)
		assert_int_equal(hear(job, 2), TTI_FRAME_HERE);
	tti_tunnel_close(&job->far[2].tunnel);
	tti_loop_wait(&job->watcher.loop, 0);
	assert_null(job->watcher.conns);
}

/* It is dialled, what is asked of it meanwhile waits, and only if it refuses it is dead. */
static void who_still_listens_is_not_dead(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct job *job = begin();
		int fd = listen_as_two(job);
		const int64_t end_ns = tti_deadline(20000);

		part(job, reset);
		for (int i = 0; i < 20; i++)
			tick(job);
		tti_boot_reach_ask(&job->watcher, 2);
		tick(job);
		assert_null(job->watcher.reaches);
		assert_non_null(job->watcher.reconnects);
		assert_int_equal(job->ndown, 0);
		tti_fd_close(&fd);
		while (job->ndown == 0 && tti_now_ns() < end_ns)
			tick(job);
		assert_int_equal(job->ndown, 1);
		assert_int_equal(job->how, TTI_DOWN_DIED);
		assert_string_equal(job->why, "closed its connection without goodbye: it died");
		assert_false(tti_bit_has(job->watcher.asked, 2));
		finish(job);
	}
}

/* No network is between, and whoever listens there is another one by now. */
static void the_end_of_a_process_beside_us_is_its_death(void **state)
{
	struct job *job = begin();
	int fd = listen_as_two(job);

	(void)state;
	job->sock.cards[2].pid = getpid();
	job->sock.cards[2].identity = tti_process_identity(getpid());
	part(job, false);
	(void)tti_reconnect_step(&job->watcher);
	assert_int_equal(job->ndown, 1);
	assert_int_equal(job->how, TTI_DOWN_DIED);
	tti_fd_close(&fd);
	finish(job);
}

/* It is called dead when the last of its connections has ended, not before. */
static void another_connection_tells_of_the_end(void **state)
{
	struct job *job = begin();
	struct tti_tunnel *first;

	(void)state;
	job->sock.cards[2].pid = getpid();
	job->sock.cards[2].identity = tti_process_identity(getpid());
	meet(job, TTI_CONN_PAIR, 2)->confirmed = true;
	assert_int_equal(hear(job, 2), TTI_FRAME_HERE); /* it is closed in order, then */
	first = job->far[2].tunnel;
	meet(job, TTI_CONN_PAIR, 2)->confirmed = true;
	assert_int_equal(hear(job, 2), TTI_FRAME_HERE);
	tti_tunnel_close(&first);
	tti_loop_wait(&job->watcher.loop, 0);
	(void)tti_reconnect_step(&job->watcher);
	assert_non_null(job->watcher.conns);
	assert_null(job->watcher.reconnects);
	assert_int_equal(job->ndown, 0);
	tti_tunnel_close(&job->far[2].tunnel);
	tti_loop_wait(&job->watcher.loop, 0);
	(void)tti_reconnect_step(&job->watcher);
	assert_int_equal(job->ndown, 1);
	assert_int_equal(job->how, TTI_DOWN_DIED);
	finish(job);
}

/* The system tells of an error that is not the peer's doing, as when nothing was acknowledged for too
 * long. */
static void break_off(struct tti_conn *conn)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0); /* connected to nobody */

	assert_true(fd >= 0);
	assert_int_equal(dup2(fd, conn->tunnel->fd), conn->tunnel->fd);
	close(fd);
	conn->handler.handle(&conn->handler, EPOLLIN);
}

/* A connection that the peer had used and that fell silent is made anew at once, with what is asked over
 * it, unless there is another one. */
static void a_silent_pair_is_made_anew(void **state)
{
	struct job *job = begin();
	struct tti_conn *conn = meet(job, TTI_CONN_PAIR, 2);
	struct tti_tunnel *first = job->far[2].tunnel;

	(void)state;
	conn->confirmed = true;
	tti_boot_reach_ask(&job->watcher, 2);
	meet(job, TTI_CONN_PAIR, 2)->confirmed = true;
	break_off(conn);
	tti_tunnel_close(&first);
	assert_null(job->watcher.reconnects);
	assert_true(job->watcher.conns->asked);
	break_off(job->watcher.conns);
	assert_null(job->watcher.reaches);
	assert_non_null(job->watcher.reconnects);
	assert_false(job->watcher.reconnects->closed);
	assert_true(tti_bit_has(job->watcher.asked, 2));
	assert_int_equal(job->ndown, 0);
	finish(job);
}

/* Else who has not read it takes the end of a rank for its death. */
static void a_goodbye_beside_the_ring_is_repeated(void **state)
{
	struct job *job = begin();

	(void)state;
	for (int reset = 1; reset >= 0; reset--) {
		struct tti_conn *conn = meet(job, TTI_CONN_PAIR, 2);

		conn->confirmed = true;
		job->watcher.quitting = job->watcher.bye = true;
		tti_conn_leave(conn);
		if (!reset) {
			drain(job, 2, TTI_FRAME_BYE);
			assert_int_equal(hear(job, 2), 0);
		}
		tti_tunnel_close(&job->far[2].tunnel);
		tti_loop_wait(&job->watcher.loop, 0);
		assert_null(job->watcher.conns);
		assert_int_equal(job->watcher.reconnects != NULL, reset);
	}
	finish(job);
}

/* What is asked and mailed waits while there is no way to a rank, which is lost only after a while; if
 * nobody listens where it did, it may as well have left. */
static void who_has_no_way_for_a_while_is_not_lost(void **state)
{
	const struct tti_mail letter = { .context = 1, .kind = TTI_MAIL_BLOCK };

	(void)state;
	for (int refuses = 0; refuses < 2; refuses++) {
		struct job *job = begin(); /* of rank 2 no address is known, at first */
		struct tti_queued_mail *mail = calloc(1, sizeof(*mail));
		int fd = -1;

		assert_non_null(mail);
		*mail = (struct tti_queued_mail){ .peer = 2,
						  .nbytes = sizeof(letter),
						  .mail = letter };
		job->watcher.mail = (struct tti_mail_queue){ .first = mail, .end = &mail->next };
		tti_boot_reach_ask(&job->watcher, 2);
		tti_mail_step(&job->watcher);
		tick(job);
		assert_null(job->watcher.reaches);
		assert_non_null(job->watcher.reconnects);
		assert_ptr_equal(job->watcher.mail.first, mail);
		assert_true(tti_bit_has(job->watcher.asked, 2));
		assert_int_equal(job->ndown, 0);
		if (refuses) {
			fd = listen_as_two(job);
			tti_fd_close(&fd);
		} else {
			job->watcher.reconnects->deadline_ns = tti_now_ns();
		}
		for (int i = 0; i < 10000 && job->ndown == 0; i++)
			tick(job);
		assert_int_equal(job->ndown, 1);
		assert_int_equal(job->how, TTI_DOWN_LOST);
		assert_memory_equal(job->why, "cannot be reached: ", 19);
		assert_int_equal(tti_dispatcher_is_down(&job->sock.base.dispatcher, 2), refuses);
		assert_null(job->watcher.mail.first);
		assert_false(tti_bit_has(job->watcher.asked, 2));
		finish(job);
	}
}

/* -- Failures --------------------------------------------------------------------------- */

/* A peer that reads nothing for a while hears of all that happened then. */
static void failures_wait_for_room(void **state)
{
	struct job *job = begin();
	struct tti_conn *conn = meet(job, TTI_CONN_NEXT, 1);

	(void)state;
	fill(conn);
	learn_death(job, 2, NULL);
	learn_death(job, 3, NULL);
	drain(job, 1, TTI_FRAME_FAILURE);
	assert_int_equal(job->far[1].framer.body.failure.failed_rank, 2);
	expect_failure(job, 1, 3);
	assert_int_equal(hear(job, 1), -1);
	finish(job);
}

/* Nothing overtakes them: an answer may say that this rank has left because of them. */
static void nothing_overtakes_news(void **state)
{
	struct job *job = begin();
	struct tti_conn *conn = meet(job, TTI_CONN_PREV, 3);

	(void)state;
	fill(conn);
	learn_death(job, 2, NULL);
	assert_false(tti_conn_put(conn, TTI_FRAME_MAIL_ACK, 0, NULL, 0));
	drain(job, 3, TTI_FRAME_FAILURE);
	assert_true(tti_conn_put(conn, TTI_FRAME_MAIL_ACK, 0, NULL, 0));
	finish(job);
}

/* Else its end would be taken for a death. */
static void goodbyes_wait_for_room(void **state)
{
	static const enum tti_conn_role roles[] = { TTI_CONN_NEXT, TTI_CONN_PAIR };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct job *job = begin();
		struct tti_conn *conn = meet(job, roles[i], 1);

		fill(conn);
		learn_death(job, 2, NULL);
		job->watcher.quitting = job->watcher.bye = true;
		tti_conn_leave(conn);
		drain(job, 1, TTI_FRAME_FAILURE);
		assert_int_equal(hear(job, 1), TTI_FRAME_BYE);
		assert_int_equal(job->far[1].framer.head.seq, 1);
		assert_int_equal(hear(job, 1), 0);
		finish(job);
	}
}

/* What was on its way when a link broke is not known to have come. */
static void a_new_link_brings_all_news(void **state)
{
	struct job *job = begin();

	(void)state;
	learn_death(job, 2, NULL);
	learn_death(job, 3, NULL);
	(void)meet(job, TTI_CONN_NEXT, 1);
	expect_failure(job, 1, 2);
	expect_failure(job, 1, 3);
	assert_int_equal(hear(job, 1), -1);
	finish(job);
}

/* A death that this rank knows of by mail goes on along the ring when it comes there, once, and not to
 * who brought it. It is known as one even if the rank could not be reached before. */
static void a_death_known_by_mail_goes_on(void **state)
{
	struct job *job = begin();
	struct tti_conn *prev = meet(job, TTI_CONN_PREV, 3);

	(void)state;
	(void)meet(job, TTI_CONN_NEXT, 1);
	tti_dispatcher_down(&job->sock.base.dispatcher, 2, TTI_DOWN_LOST, true, "is lost", NULL);
	learn_death(job, 2, prev);
	assert_int_equal(tti_dispatcher_first_dead(&job->sock.base.dispatcher), 2);
	drain(job, 1, TTI_FRAME_FAILURE);
	tti_dispatcher_down(&job->sock.base.dispatcher, 1, TTI_DOWN_DIED, true, "died", NULL);
	learn_death(job, 1, prev);
	expect_failure(job, 1, 1);
	learn_death(job, 1, prev);
	assert_int_equal(hear(job, 1), -1);
	assert_int_equal(hear(job, 3), TTI_FRAME_HERE);
	assert_int_equal(hear(job, 3), -1);
	finish(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_link_is_no_death),
		cmocka_unit_test(who_is_silent_and_refuses_is_dead),
		cmocka_unit_test(who_is_silent_cannot_be_reached),
		cmocka_unit_test(a_failure_keeps_its_words),
		cmocka_unit_test(an_unused_connection_is_no_death),
		cmocka_unit_test(who_still_listens_is_not_dead),
		cmocka_unit_test(the_end_of_a_process_beside_us_is_its_death),
		cmocka_unit_test(another_connection_tells_of_the_end),
		cmocka_unit_test(a_silent_pair_is_made_anew),
		cmocka_unit_test(a_goodbye_beside_the_ring_is_repeated),
		cmocka_unit_test(who_has_no_way_for_a_while_is_not_lost),
		cmocka_unit_test(failures_wait_for_room),
		cmocka_unit_test(nothing_overtakes_news),
		cmocka_unit_test(goodbyes_wait_for_room),
		cmocka_unit_test(a_new_link_brings_all_news),
		cmocka_unit_test(a_death_known_by_mail_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

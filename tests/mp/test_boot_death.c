/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks are processes, and one is killed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "support/port.h"
#include "util/clock.h"
#include "util/error.h"

/* ThreadSanitizer has to see all calls. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_OWN_EPOLL
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define HAS_OWN_EPOLL
#endif

#define MOST 64

/* What a rank reports to the test. */
struct report {
	int rank;
	tutti_status status;
	int failed_rank;
	int64_t when_ns;
	char text[TTI_FAILURE_TEXT];
};

enum scene {
	IN_WATCH,    /* all are connected and watch                */
	IN_EXCHANGE, /* in the middle of all-gathers               */
	ASKING,      /* rank 3 asks rank 1 until it answers         */
	IN_INIT,     /* anywhere on the way to the watch            */
};

struct world {
	int n;
	enum scene scene;
	pid_t pids[MOST];
	int reports[2], ready[2];
	int listener[2]; /* rank 1 hands its own to the test; 0: it does not */
	tutti_unique_id id;
};

struct seen {
	_Atomic int lost, nanswers, nnull;
	struct report report;
};

/* Of the ranks that are started next. */
static bool answers_are_slow, adding_fails;

/* How often it is to fail from now on: for connections that the watch takes over. */
static _Atomic int nfailing_adds;

#ifndef HAS_OWN_EPOLL
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	if (what == EPOLL_CTL_ADD && !(event->events & EPOLLET) && nfailing_adds > 0) {
		nfailing_adds--;
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}
#endif

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct seen *seen = self;

	seen->report.status = (tutti_status)failure->status;
	seen->report.failed_rank = failure->failed_rank;
	seen->report.when_ns = tti_now_ns();
	memcpy(seen->report.text, failure->text, TTI_FAILURE_TEXT);
	seen->lost = 1;
}

static void on_ask(void *self, struct tti_call *out)
{
	(void)self;
	if (answers_are_slow)
		usleep(1200000);
	out->seq = 7;
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct seen *seen = self;

	(void)peer;
	if (call && call->seq == 7)
		seen->nanswers++;
	else
		seen->nnull++;
}

static void ask_until_answered(struct tti_boot *boot, struct seen *seen, int peer)
{
	for (int i = 0; i < 20000 && !seen->nanswers; i++) {
		tti_watch_ask(boot, peer);
		usleep(1000);
	}
}

#define ASKED "rank 3 has asked"

/* The report's failed_rank: how often rank 1 was called gone. Its text is that of the first news, which are ASKED
 * unless somebody was taken for dead. */
static tutti_status ask_on(struct tti_boot *boot, struct seen *seen)
{
	if (tti_boot_rank(boot) != 3) {
		while (!seen->lost)
			usleep(1000);
		return TUTTI_OK;
	}
	if (adding_fails) {
		ask_until_answered(boot, seen, 2); /* a neighbour: the ring is the watch's then */
		seen->nanswers = 0;
		nfailing_adds = 2;
	}
	ask_until_answered(boot, seen, 1);

	const struct tti_failure over = { .status = TUTTI_EPEER,
					  .failed_rank = seen->nnull,
					  .text = ASKED };

	tti_watch_notify(boot, &over);
	while (!seen->lost)
		usleep(1000);
	return seen->nanswers ? TUTTI_OK : TUTTI_ETIMEOUT;
}

/* Who holds it listens where this rank did, and says nothing. */
static bool hand_over_listener(int to)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec data = { (void *)(uintptr_t) "l", 1 };
	const struct msghdr message = { .msg_iov = &data,
					.msg_iovlen = 1,
					.msg_control = &control,
					.msg_controllen = sizeof(control) };

	for (int fd = 0; fd < 256; fd++) {
		int listens = 0;
		socklen_t size = sizeof(listens);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens)
			continue;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		if (sendmsg(to, &message, 0) != 1)
			return false;
	}
	return true;
}

static tutti_status act(const struct world *world, struct tti_boot *boot, struct seen *seen)
{
	const struct tti_watch_events events = { seen, on_lost, on_ask, on_answer, NULL };
	uint8_t blobs[MOST * 64] = { 0 };
	tutti_status status = TUTTI_OK;

	if (world->listener[1] && tti_boot_rank(boot) == 1 &&
	    !hand_over_listener(world->listener[1]))
		return TUTTI_EINTERNAL;
	if (write(world->ready[1], "r", 1) != 1)
		return TUTTI_EINTERNAL;
	switch (world->scene) {
	case IN_EXCHANGE:
		while (status == TUTTI_OK)
			status = tti_boot_all_gather(boot, blobs, 64);
		break;
	case ASKING:
		TTI_TRY(tti_watch_start(boot, &events));
		return ask_on(boot, seen);
	case IN_INIT:
		for (int i = 0; i < 20; i++)
			TTI_TRY(tti_boot_all_gather(boot, blobs, 64));
		/* fallthrough */
	case IN_WATCH:
		TTI_TRY(tti_watch_start(boot, &events));
		for (int i = 0; i < 20000 && !seen->lost; i++)
			usleep(1000);
		return seen->report.status;
	}
	seen->report.when_ns = tti_now_ns();
	(void)snprintf(seen->report.text, TTI_FAILURE_TEXT, "%s", tti_error_text());
	return status;
}

static void be_rank(const struct world *world, int rank)
{
	struct seen seen = { .report = { .rank = rank, .failed_rank = -1 } };
	const struct tti_boot_config config = {
		.rank = rank,
		.nranks = world->n,
		.ids = &world->id,
		.nids = 1,
		.timeout_ms = world->scene == IN_INIT ? 1500 : 60000,
	};
	struct tti_boot *boot = NULL;

	seen.report.status = tti_boot_connect(&config, &boot);
	if (seen.report.status == TUTTI_OK)
		seen.report.status = act(world, boot, &seen);
	if (seen.report.text[0] == '\0')
		(void)snprintf(seen.report.text, TTI_FAILURE_TEXT, "%s", tti_error_text());
	tti_boot_close(boot);
	if (write(world->reports[1], &seen.report, sizeof(seen.report)) < 0)
		_exit(1);
	_exit(0);
}

static void finish(struct world *world)
{
	for (int rank = 0; rank < world->n; rank++)
		waitpid(world->pids[rank], NULL, 0);
	close(world->reports[0]);
	close(world->ready[0]);
}

/* Whether all are there. The port may be another program's by now. */
static bool try_start(struct world *world)
{
	char address[64], c;
	int nready = 0;

	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port_for_later());
	assert_int_equal(
		tti_boot_id_from_address(address, "the secret of this test", 0, &world->id),
		TUTTI_OK);
	assert_int_equal(pipe(world->reports), 0);
	assert_int_equal(pipe(world->ready), 0);
	for (int rank = 0; rank < world->n; rank++) {
		world->pids[rank] = fork();
		assert_true(world->pids[rank] >= 0);
		if (world->pids[rank] == 0)
			be_rank(world, rank);
	}
	/* So that reading ends when all that could write have ended. */
	close(world->reports[1]);
	close(world->ready[1]);
	while (nready < world->n && world->scene != IN_INIT && read(world->ready[0], &c, 1) == 1)
		nready++;
	return nready == world->n || world->scene == IN_INIT;
}

static void start(struct world *world)
{
	struct report report;

	for (int i = 0; i < 3; i++) {
		if (try_start(world))
			return;
		while (read(world->reports[0], &report, sizeof(report)) == sizeof(report))
			print_message("rank %d did not come: %s\n", report.rank, report.text);
		finish(world);
	}
	fail_msg("%d ranks do not come together", world->n);
}

static void kill_one(int n, enum scene scene, int victim, int64_t most_ms)
{
	struct world world = { .n = n, .scene = scene };
	char name[32];
	int64_t start_ns, last_ns = 0;

	start(&world);
	usleep(100000);
	start_ns = tti_now_ns();
	kill(world.pids[victim], SIGKILL);
	(void)snprintf(name, sizeof(name), "rank %d (", victim);
	for (int i = 0; i < n - 1; i++) {
		struct report report;

		assert_int_equal(read(world.reports[0], &report, sizeof(report)), sizeof(report));
		if (report.status != TUTTI_EPEER || !strstr(report.text, name))
			fail_msg("rank %d: %s: %s", report.rank, tutti_status_name(report.status),
				 report.text);
		if (report.when_ns > last_ns)
			last_ns = report.when_ns;
	}
	print_message("%d ranks know after %.1f ms\n", n - 1, (double)(last_ns - start_ns) / 1e6);
	assert_in_range((last_ns - start_ns) / TTI_NS_PER_MS, 0, most_ms);
	finish(&world);
}

static void killed_in_watch(void **state)
{
	(void)state;
	kill_one(2, IN_WATCH, 0, 10000);
	kill_one(3, IN_WATCH, 2, 10000);
	kill_one(8, IN_WATCH, 5, 10000);
	kill_one(32, IN_WATCH, 11, 10000);
}

static void killed_in_an_exchange(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		kill_one(5, IN_EXCHANGE, i % 5, 10000);
}

/* Where a dead rank listened somebody else may do so by now, who takes connections and says nothing, as
 * another job's rank that computes. On one host its death is seen all the same, and not taken for a
 * machine that is busy or cut off. */
static void whose_port_is_taken_is_dead(void **state)
{
	struct world world = { .n = 4, .scene = IN_WATCH };
	struct report report;
	char bytes[256];
	struct iovec data = { bytes, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, world.listener), 0);
	start(&world);
	/* Some listener has come: it is in the queue, and so open. */
	assert_int_equal(recvmsg(world.listener[0], &message, MSG_PEEK | MSG_DONTWAIT), 1);
	kill(world.pids[1], SIGKILL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read(world.reports[0], &report, sizeof(report)), sizeof(report));
		if (report.failed_rank != 1 ||
		    !strstr(report.text, "closed its connection without goodbye: it died"))
			fail_msg("rank %d: %s", report.rank, report.text);
	}
	finish(&world);
	close(world.listener[0]);
	close(world.listener[1]);
}

/* Wherever it was: all others return, with a reason. A rank that had not even come
 * is missing at the deadline. */
static void killed_during_init(void **state)
{
	unsigned seed = 4;

	(void)state;
	for (int round = 0; round < 16; round++) {
		struct world world = { .n = 5, .scene = IN_INIT };
		const int victim = (int)(rand_r(&seed) % 5);
		int64_t start_ns;

		start(&world);
		usleep((useconds_t)(rand_r(&seed) % 12000));
		start_ns = tti_now_ns();
		kill(world.pids[victim], SIGKILL);
		for (int i = 0; i < 4; i++) {
			struct report report;

			assert_int_equal(read(world.reports[0], &report, sizeof(report)),
					 sizeof(report));
			assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 0, 30000);
			if ((report.status != TUTTI_EPEER && report.status != TUTTI_ETIMEOUT) ||
			    !strstr(report.text, "rank"))
				fail_msg("rank %d: %s: %s", report.rank,
					 tutti_status_name(report.status), report.text);
		}
		finish(&world);
	}
}

/* A stopped process has not died; it answers nothing, and wakes up unharmed. */
static void stopped_is_not_dead(void **state)
{
	struct world world = { .n = 4, .scene = IN_WATCH };
	struct report report;

	(void)state;
	start(&world);
	kill(world.pids[1], SIGSTOP);
	usleep(300000);
	kill(world.pids[1], SIGCONT);
	usleep(50000);
	kill(world.pids[3], SIGKILL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(read(world.reports[0], &report, sizeof(report)), sizeof(report));
		assert_int_equal(report.failed_rank, 3);
	}
	finish(&world);
}

/* All five tell that rank 3 was answered, and that nobody was called gone. */
static void must_be_answered(const struct world *world, int64_t since_ns, int *nafter)
{
	struct report report;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(read(world->reports[0], &report, sizeof(report)), sizeof(report));
		if (report.status != TUTTI_OK || report.failed_rank != 0 ||
		    strcmp(report.text, ASKED) != 0)
			fail_msg("rank %d: %s, rank 1 was called gone %d times: %s", report.rank,
				 tutti_status_name(report.status), report.failed_rank, report.text);
		*nafter += report.when_ns - since_ns > 3000 * TTI_NS_PER_MS;
	}
}

/* Nor is it called gone: there is no answer until it goes on. */
static void stopped_does_not_answer(void **state)
{
	struct world world = { .n = 5, .scene = ASKING };
	const int64_t start_ns = tti_now_ns();
	int nafter = 0;

	(void)state;
	start(&world);
	kill(world.pids[1], SIGSTOP);
	usleep(3500000);
	kill(world.pids[1], SIGCONT);
	must_be_answered(&world, start_ns, &nafter);
	finish(&world);
	/* The question may have been answered before the stop. */
	print_message("%d of 5 after the stop\n", nafter);
}

/* With trouble of this kind. */
static void must_be_answered_despite(bool *trouble)
{
	struct world world = { .n = 5, .scene = ASKING };
	int nafter = 0;

	*trouble = true;
	start(&world);
	*trouble = false;
	must_be_answered(&world, tti_now_ns(), &nafter);
	finish(&world);
}

/* A question that is put once more meanwhile is the same, or no answer would ever be one to the last. */
static void slow_answers_count(void **state)
{
	(void)state;
	must_be_answered_despite(&answers_are_slow);
}

#ifndef HAS_OWN_EPOLL
/* What was to be asked over it is asked over another one. */
static void a_connection_that_cannot_be_taken_over_is_made_anew(void **state)
{
	(void)state;
	must_be_answered_despite(&adding_fails);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_in_watch),
		cmocka_unit_test(whose_port_is_taken_is_dead),
		cmocka_unit_test(killed_in_an_exchange),
		cmocka_unit_test(killed_during_init),
		cmocka_unit_test(stopped_is_not_dead),
		cmocka_unit_test(stopped_does_not_answer),
		cmocka_unit_test(slow_answers_count),
#ifndef HAS_OWN_EPOLL
		cmocka_unit_test(a_connection_that_cannot_be_taken_over_is_made_anew),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

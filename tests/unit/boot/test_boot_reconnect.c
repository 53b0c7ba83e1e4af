/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of the ring that break while both ranks live: nobody hears of a death, nothing that
 * was said is lost, and a death is seen as before. What a network does, somebody between two ranks
 * does here: he passes on what they say, until he hangs up on one of them or on both. */
#include "ranks.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "boot/net/sock.h"
#include "boot/watch/watcher.h"
#include "util/fd.h"

#define MOST 8

struct spy {
	_Atomic int nlost, nanswers, nnull;
	struct tti_failure failure;
	int rank;
};

/* Between rank 0 (its next) and rank 1 (its previous one). */
struct middle {
	int ends[2]; /* towards rank 0 and 1 */
	_Atomic int stop, deaf;
	pthread_t thread;
};

struct job {
	tutti_unique_id id;
	pthread_barrier_t barrier;
	struct tti_boot *boots[MOST];
	struct spy spies[MOST];
	struct middle middle;
	bool with_middle, astray;
	_Atomic int left; /* rank 1 has */
	int fds[6];
};

/* -- The middle ----------------------------------------------------------------------- */

static void tcp_pair(int fd[2])
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	int door = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(door, (struct sockaddr *)&to, len), 0);
	assert_int_equal(listen(door, 1), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&to, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&to, len), 0);
	fd[1] = accept(door, NULL, NULL);
	assert_true(fd[1] >= 0);
	close(door);
}

static void *pass_on(void *self)
{
	struct middle *middle = self;
	char data[4096];

	while (!middle->stop) {
		struct pollfd fds[2] = { { .fd = middle->ends[0], .events = POLLIN },
					 { .fd = middle->ends[1], .events = POLLIN } };

		if (middle->deaf || poll(fds, 2, 1) <= 0) {
			usleep(500);
			continue;
		}
		for (int i = 0; i < 2; i++) {
			const ssize_t n =
				fds[i].revents ? recv(fds[i].fd, data, sizeof(data), MSG_DONTWAIT)
					       : 0;

			if (n > 0)
				(void)!send(fds[1 - i].fd, data, (size_t)n, MSG_NOSIGNAL);
		}
	}
	return NULL;
}

static void come_between(struct job *job)
{
	struct tti_sock *zero = (struct tti_sock *)job->boots[0];
	struct tti_sock *one = (struct tti_sock *)job->boots[1];
	struct middle *middle = &job->middle;
	int pair[2];

	tcp_pair(pair);
	tti_fd_close(&zero->next_tunnel->fd);
	zero->next_tunnel->fd = pair[0];
	middle->ends[0] = pair[1];
	tcp_pair(pair);
	tti_fd_close(&one->prev_tunnel->fd);
	one->prev_tunnel->fd = pair[0];
	middle->ends[1] = pair[1];
	pthread_create(&middle->thread, NULL, pass_on, middle);
}

static void stop_passing(struct middle *middle)
{
	if (!middle->stop) {
		middle->stop = 1;
		pthread_join(middle->thread, NULL);
	}
}

/* What rank 0 knows of rank 1's address leads nowhere: to a port whose backlog is full. */
static void lead_astray(struct job *job)
{
	struct tti_sock *zero = (struct tti_sock *)job->boots[0];
	uint16_t port = 0;

	CHECK_OK(tti_listen(&port, 0, &job->fds[0]));
	for (int i = 1; i < 6; i++) {
		const struct sockaddr_in to = { .sin_family = AF_INET,
						.sin_port = htons(port),
						.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

		job->fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(job->fds[i], (const struct sockaddr *)&to, sizeof(to));
	}
	zero->cards[1].port = htons(port);
}

/* Hang up on rank 0 or 1. */
static void hang_up(struct middle *middle, int side, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	stop_passing(middle);
	if (reset)
		(void)setsockopt(middle->ends[side], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	tti_fd_close(&middle->ends[side]);
}

/* Break connections of this process, each with a probability of 1 / 2, in either or both
 * directions. By number: who owns them does not know; system calls, as a sanitizer would miss the
 * lock that cannot be there. */
static void break_some(unsigned *seed)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if (syscall(SYS_getpeername, fd, &peer, &len) == 0 && peer.ss_family != AF_UNIX &&
		    rand_r(seed) % 2)
			(void)syscall(SYS_shutdown, fd, rand_r(seed) % 3);
	}
}

/* -- Ranks ---------------------------------------------------------------------------- */

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct spy *spy = self;

	spy->failure = *failure;
	spy->nlost++;
}

static void on_ask(void *self, struct tti_call *out)
{
	out->seq = (uint64_t)((struct spy *)self)->rank + 100;
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct spy *spy = self;

	if (!call || call->seq != (uint64_t)peer + 100)
		spy->nnull++;
	spy->nanswers++;
}

static tutti_status watch(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const struct tti_watch_events events = { spy, on_lost, on_ask, on_answer, NULL };

	spy->rank = rank->rank;
	TTI_TRY(rank_connect(rank, &job->id, 1, 60000, NULL));
	job->boots[rank->rank] = rank->boot;
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 0 && job->with_middle)
		come_between(job);
	if (rank->rank == 0 && job->astray)
		lead_astray(job);
	pthread_barrier_wait(&job->barrier);
	TTI_TRY(tti_watch_start(rank->boot, &events));
	pthread_barrier_wait(&job->barrier);
	return TUTTI_OK;
}

static bool within(int ms, const _Atomic int *word, int value)
{
	for (int i = 0; i < ms && *word != value; i++)
		usleep(1000);
	return *word == value;
}

static void stop(struct rank *rank)
{
	tti_watch_stop(rank->boot);
	tti_boot_close(rank->boot);
}

static tutti_status no_news(struct rank *rank)
{
	const struct spy *spy = &((struct job *)rank->arg)->spies[rank->rank];

	return spy->nlost ? tti_fail(TUTTI_EINTERNAL, "false failure notification at %d: %s",
				     rank->rank, spy->failure.text)
			  : TUTTI_OK;
}

/* All get the same failure, in time and once. */
static tutti_status hear(struct rank *rank, int failed_rank, const char *text)
{
	struct spy *spy = &((struct job *)rank->arg)->spies[rank->rank];

	if (!within(15000, &spy->nlost, 1))
		return tti_fail(TUTTI_EINTERNAL, "no failure notification at %d", rank->rank);
	if (spy->failure.failed_rank != failed_rank || !strstr(spy->failure.text, text))
		return tti_fail(TUTTI_EINTERNAL, "wrong failure notification at %d: %s", rank->rank,
				spy->failure.text);
	return TUTTI_OK;
}

static tutti_status vanish(struct rank *rank)
{
	tti_watcher_vanish(rank->boot);
	tti_boot_close(rank->boot);
	return TUTTI_OK;
}

static void run(int n, rank_fn what, bool with_middle, bool astray)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->with_middle = with_middle;
	job->astray = astray;
	memset(job->fds, -1, sizeof(job->fds));
	job->middle.ends[0] = job->middle.ends[1] = -1;
	CHECK_OK(tti_boot_id_create(&job->id));
	pthread_barrier_init(&job->barrier, NULL, (unsigned)n);
	ranks_run(n, what, job);
	if (with_middle)
		stop_passing(&job->middle);
	tti_fd_close(&job->middle.ends[0]);
	tti_fd_close(&job->middle.ends[1]);
	for (int i = 0; i < 6; i++)
		tti_fd_close(&job->fds[i]);
	pthread_barrier_destroy(&job->barrier);
	free(job);
}

/* -- Anything may break ----------------------------------------------------------------- */

/* A failure is told at the very moment. */
static tutti_status tell_while_it_breaks(struct rank *rank)
{
	struct job *job = rank->arg;
	const struct tti_failure failure = { .status = TUTTI_EPEER,
					     .failed_rank = 1,
					     .text = "enough" };
	unsigned seed = 7 * (unsigned)rank->nranks;
	tutti_status status;

	TTI_TRY(watch(rank));
	for (int round = 0; round < 12; round++) {
		if (rank->rank == 0)
			break_some(&seed);
		usleep(round % 3 == 0 ? 60000 : 1000 * (useconds_t)(round % 7));
	}
	status = no_news(rank);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == rank->nranks - 1) {
		break_some(&seed);
		tti_watch_notify(rank->boot, &failure);
		break_some(&seed);
	}
	if (status == TUTTI_OK)
		status = hear(rank, 1, "enough");
	usleep(200 * 1000);
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK && job->spies[rank->rank].nlost != 1)
		status = tti_fail(TUTTI_EINTERNAL, "the same failure twice");
	stop(rank);
	return status;
}

static void failures_pass_links_that_break(void **state)
{
	(void)state;
	for (int n = 2; n <= MOST; n += 3)
		run(n, tell_while_it_breaks, false, false);
}

/* How many saw the death of rank 1 late: no sooner than one that does not answer is given up. */
static _Atomic int nlate;

/* After all that has been made anew, a death is seen as fast as ever, and no goodbye is one. */
static tutti_status die_after_breaks(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status;
	unsigned seed = 3;

	TTI_TRY(watch(rank));
	for (int round = 0; round < 5; round++) {
		if (rank->rank == 0)
			break_some(&seed);
		usleep(30000);
	}
	usleep(500 * 1000);
	status = no_news(rank);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 4)
		stop(rank);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 4)
		return status == TUTTI_OK ? no_news(rank) : status;
	usleep(200 * 1000);
	if (rank->rank == 1)
		return vanish(rank);

	const int64_t start_ns = tti_now_ns();

	if (status == TUTTI_OK)
		status = hear(rank, 1, "it died");
	if (tti_now_ns() - start_ns > 3500 * TTI_NS_PER_MS)
		nlate++;
	stop(rank);
	return status;
}

static void a_death_is_seen_after_breaks(void **state)
{
	int tries = 5;

	(void)state;
	/* A busy machine may take as long now and then; a rank that waits does so every time. */
	do {
		nlate = 0;
		run(6, die_after_breaks, false, false);
	} while (nlate && --tries);
	assert_int_equal(nlate, 0);
}

/* Questions go on, and all are answered. */
static tutti_status ask_while_it_breaks(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const int peer = (rank->rank + 1) % rank->nranks;
	tutti_status status = TUTTI_OK;
	unsigned seed = 99;

	TTI_TRY(watch(rank));
	for (int round = 0; round < 20 && status == TUTTI_OK; round++) {
		const int before = spy->nanswers;

		if (rank->rank == 0 && round % 4 == 0)
			break_some(&seed);
		for (int i = 0; i < 1000 && spy->nanswers == before; i++) {
			tti_watch_ask(rank->boot, peer);
			(void)within(30, &spy->nanswers, before + 1);
		}
		if (spy->nanswers == before || spy->nnull)
			status = tti_fail(TUTTI_EINTERNAL, "%d answers in round %d, %d are wrong",
					  spy->nanswers, round, spy->nnull);
	}
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK)
		status = no_news(rank);
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	return status;
}

static void questions_pass_links_that_break(void **state)
{
	(void)state;
	run(3, ask_while_it_breaks, false, false);
}

/* -- One end sees it, the other does not -------------------------------------------------- */

/* One of the two is hung up on; the other one hears nothing, or later. */
static tutti_status half_open(struct rank *rank)
{
	struct job *job = rank->arg;
	const int side = rank->nranks % 2;
	const struct tti_failure failure = { .status = TUTTI_EPEER,
					     .failed_rank = 0,
					     .text = "half" };
	tutti_status status;

	TTI_TRY(watch(rank));
	if (rank->rank == 0)
		hang_up(&job->middle, side, side);
	usleep(150 * 1000);
	pthread_barrier_wait(&job->barrier);
	status = no_news(rank);
	if (rank->rank == 0)
		hang_up(&job->middle, 1 - side, side);
	usleep(150 * 1000);
	if (status == TUTTI_OK)
		status = no_news(rank);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 1)
		tti_watch_notify(rank->boot, &failure);
	if (status == TUTTI_OK)
		status = hear(rank, 0, "half");
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	return status;
}

static void one_end_may_not_notice(void **state)
{
	(void)state;
	for (int n = 2; n < 6; n++)
		run(n, half_open, true, false);
}

/* Rank 1 says goodbye into a connection that is reset: it says so again. */
static tutti_status leave_unheard(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	tutti_status status;

	TTI_TRY(watch(rank));
	job->middle.deaf = 1;
	usleep(5000);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 1) {
		stop(rank);
		job->left = 1;
	}
	if (rank->rank == 0) {
		usleep(100 * 1000);
		hang_up(&job->middle, 1, true);
		usleep(300 * 1000);
		hang_up(&job->middle, 0, true);
		(void)within(20000, &job->left, 1);
		tti_watch_ask(rank->boot, 1);
		(void)within(15000, &spy->nanswers, 1);
	}
	usleep(600 * 1000);
	pthread_barrier_wait(&job->barrier);
	status = no_news(rank);
	if (rank->rank == 0 && status == TUTTI_OK && (spy->nanswers != 1 || spy->nnull != 1))
		status = tti_fail(TUTTI_EINTERNAL, "rank 1 is not known to have left");
	if (rank->rank != 1)
		stop(rank);
	return status;
}

static void a_goodbye_is_repeated(void **state)
{
	(void)state;
	run(3, leave_unheard, true, false);
}

/* -- Mail ------------------------------------------------------------------------------------ */

/* An exchange by mail, and whether it brought what it should. */
static tutti_status gather(struct rank *rank, uint64_t context)
{
	const struct tti_boot_config config = { .timeout_ms = 60000 };
	uint64_t all[MOST] = { 0 };
	struct tti_boot *sub;
	tutti_status status;

	TTI_TRY(tti_boot_sub_create(rank->boot, context, NULL, rank->nranks, &config, &sub));
	all[rank->rank] = context + (uint64_t)rank->rank;
	status = tti_boot_all_gather(sub, all, sizeof(*all));
	tti_boot_close(sub);
	for (int i = 0; i < rank->nranks && status == TUTTI_OK; i++)
		if (all[i] != context + (uint64_t)i)
			status = tti_fail(TUTTI_EINTERNAL, "rank %d sent %llu in exchange %llu", i,
					  (unsigned long long)all[i], (unsigned long long)context);
	return status;
}

/* Ranks 0 and 1 have mailed to each other, and who is between them hangs up before it arrives. */
static tutti_status mail_into_the_void(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status;

	TTI_TRY(watch(rank));
	job->middle.deaf = 1;
	usleep(5000);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 2) {
		usleep(200 * 1000);
		hang_up(&job->middle, 0, true);
		hang_up(&job->middle, 1, true);
	}
	status = gather(rank, 1);
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK)
		status = no_news(rank);
	stop(rank);
	return status;
}

static void lost_mail_goes_again(void **state)
{
	(void)state;
	run(3, mail_into_the_void, true, false);
}

/* Exchange after exchange; a rank that is through breaks what the others still use. */
static tutti_status mail_while_it_breaks(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status = TUTTI_OK;
	unsigned seed = 5;

	TTI_TRY(watch(rank));
	for (uint64_t round = 1; round <= 60 && status == TUTTI_OK; round++) {
		status = gather(rank, round);
		if (rank->rank == 0 && round % 6 == 0)
			break_some(&seed);
	}
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK)
		status = no_news(rank);
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	return status;
}

static void mail_passes_links_that_break(void **state)
{
	(void)state;
	run(2, mail_while_it_breaks, false, false);
	run(3, mail_while_it_breaks, false, false);
}

/* -- Nobody answers ----------------------------------------------------------------------- */

static tutti_status wait_in_vain(struct rank *rank)
{
	struct job *job = rank->arg;
	int64_t start_ns = 0, took_ms;
	tutti_status status = TUTTI_OK;

	TTI_TRY(watch(rank));
	if (rank->rank == 0) {
		start_ns = tti_now_ns();
		hang_up(&job->middle, 0, false);
		(void)within(40000, &job->spies[0].nlost, 1);
		took_ms = (tti_now_ns() - start_ns) / TTI_NS_PER_MS;
		if (took_ms < 3500 || took_ms > 39000)
			status = tti_fail(TUTTI_EINTERNAL, "the failure came after %lld ms",
					  (long long)took_ms);
	}
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK)
		status = hear(rank, 1, "cannot be reached any more at any of its addresses");
	stop(rank);
	return status;
}

static void who_cannot_be_reached_is_lost(void **state)
{
	(void)state;
	run(3, wait_in_vain, true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_pass_links_that_break),
		cmocka_unit_test(a_death_is_seen_after_breaks),
		cmocka_unit_test(questions_pass_links_that_break),
		cmocka_unit_test(one_end_may_not_notice),
		cmocka_unit_test(a_goodbye_is_repeated),
		cmocka_unit_test(lost_mail_goes_again),
		cmocka_unit_test(mail_passes_links_that_break),
		cmocka_unit_test(who_cannot_be_reached_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

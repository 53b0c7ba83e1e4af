/* SPDX-License-Identifier: BSD-3-Clause */
/* Who connects to a rank that is just leaving, or asks it. What is hard to time with a
 * real rank, somebody does who has taken over the port of one that has left. */
#include "ranks.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/net/acceptor.h"
#include "boot/net/sock.h"
#include "boot/watch/watcher.h"
#include "support/sanitizer.h"
#include "util/fd.h"

#define MANY   (SANITIZED ? 64 : 200)
#define ROUNDS 3

struct spy {
	_Atomic int nlost, nanswers, nnull;
	struct tti_failure failure;
	struct job *job;
	unsigned seed; /* the watch thread's */
};

/* An acceptor that lets in whoever has the secret, and then just closes. */
struct house {
	struct tti_loop loop;
	struct tti_acceptor acceptor;
	uint8_t secret[TTI_SECRET_BYTES];
	uint16_t port;
	_Atomic int stop, nentered;
	pthread_t thread;
};

struct job {
	tutti_unique_id id;
	pthread_barrier_t barrier;
	struct house house;
	bool slow;
	unsigned seed;
	_Atomic int done;
	struct spy spies[MANY];
};

/* -- The house ---------------------------------------------------------------------- */

static bool admit(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who)
{
	(void)self;
	(void)kind;
	(void)who;
	return true;
}

static void on_accept(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
		      const struct tti_wire_who *who)
{
	struct house *house = self;

	(void)kind;
	(void)who;
	tti_tunnel_close(&tunnel);
	house->nentered++;
}

static void *serve(void *self)
{
	struct house *house = self;

	while (!house->stop) {
		(void)tti_acceptor_expire(&house->acceptor);
		tti_loop_wait(&house->loop, 5);
	}
	return NULL;
}

/* Remember where this rank can be reached. */
static void plan_house(struct house *house, const struct tti_boot *boot)
{
	const struct tti_sock *sock = (const struct tti_sock *)boot;

	house->port = ntohs(sock->cards[boot->rank].port);
	memcpy(house->secret, boot->secret, sizeof(house->secret));
}

static tutti_status open_house(struct house *house)
{
	house->acceptor = (struct tti_acceptor){ .loop = &house->loop,
						 .secret = house->secret,
						 .most = 100,
						 .self = house,
						 .admit = admit,
						 .on_accept = on_accept };
	TTI_TRY(tti_listen(&house->port, 64, &house->acceptor.listen_fd));
	TTI_TRY(tti_loop_init(&house->loop));
	TTI_TRY(tti_acceptor_open(&house->acceptor));
	house->stop = house->nentered = 0;
	pthread_create(&house->thread, NULL, serve, house);
	return TUTTI_OK;
}

static void close_house(struct house *house)
{
	house->stop = 1;
	pthread_join(house->thread, NULL);
	tti_acceptor_close(&house->acceptor);
	tti_loop_release(&house->loop);
}

/* -- Ranks --------------------------------------------------------------------------- */

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct spy *spy = self;

	spy->failure = *failure;
	spy->nlost++;
}

/* A machine that is too busy. */
static void on_ask(void *self, struct tti_call *out)
{
	struct spy *spy = self;

	(void)out;
	if (spy->job->slow)
		usleep((useconds_t)rand_r(&spy->seed) % 40000);
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct spy *spy = self;

	(void)peer;
	if (!call)
		spy->nnull++;
	spy->nanswers++;
}

static tutti_status watch(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const struct tti_watch_events events = { spy, on_lost, on_ask, on_answer, NULL };

	spy->job = job;
	spy->seed = (unsigned)rank->rank;
	TTI_TRY(rank_connect(rank, &job->id, 1, 60000, NULL));
	TTI_TRY(tti_watch_start(rank->boot, &events));
	pthread_barrier_wait(&job->barrier);
	return TUTTI_OK;
}

static bool within(int ms, const _Atomic int *word, int least)
{
	for (int i = 0; i < ms && *word < least; i++)
		usleep(1000);
	return *word >= least;
}

/* Say goodbye, or not; no failure may have come. */
static tutti_status leave(struct rank *rank, bool vanish)
{
	struct job *job = rank->arg;
	const struct spy *spy = &job->spies[rank->rank];

	if (vanish)
		tti_watcher_vanish(rank->boot);
	else
		tti_watch_stop(rank->boot);
	tti_boot_close(rank->boot);
	return spy->nlost ? tti_fail(TUTTI_EINTERNAL, "false failure notification at %d: %s",
				     rank->rank, spy->failure.text)
			  : TUTTI_OK;
}

/* Hear that one of first to last has died, and leave. */
static tutti_status hear_of(struct rank *rank, int first, int last)
{
	struct job *job = rank->arg;
	const struct spy *spy = &job->spies[rank->rank];
	const bool heard = within(20000, &spy->nlost, 1);

	tti_watch_stop(rank->boot);
	tti_boot_close(rank->boot);
	if (!heard || spy->failure.failed_rank < first || spy->failure.failed_rank > last ||
	    spy->failure.status != TUTTI_EPEER)
		return tti_fail(TUTTI_EINTERNAL, "rank %d has heard: %s", rank->rank,
				heard ? spy->failure.text : "nothing");
	return TUTTI_OK;
}

static void run(int n, rank_fn what, bool slow, unsigned seed)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->slow = slow;
	job->seed = seed;
	CHECK_OK(tti_boot_id_create(&job->id));
	pthread_barrier_init(&job->barrier, NULL, (unsigned)n);
	ranks_run(n, what, job);
	pthread_barrier_destroy(&job->barrier);
	free(job);
}

/* -- Tests --------------------------------------------------------------------------- */

/* 2 leaves, then 1 does, and 0, which was told of 1 only, tries 2: that lets it in and
 * closes. This is no failure; a death is. */
static tutti_status try_a_leaver(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status = TUTTI_OK;

	TTI_TRY(watch(rank));
	if (rank->rank == 2) {
		plan_house(&job->house, rank->boot);
		status = leave(rank, false);
		if (status == TUTTI_OK)
			status = open_house(&job->house);
	}
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 1)
		status = leave(rank, false);
	if (rank->rank == 2 && status == TUTTI_OK) {
		if (!within(20000, &job->house.nentered, 1))
			status = tti_fail(TUTTI_EINTERNAL, "nobody tried rank 2");
		usleep(200 * 1000);
		close_house(&job->house);
	}
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 4)
		status = leave(rank, true);
	return rank->rank == 0 || rank->rank == 3 ? hear_of(rank, 4, 4) : status;
}

static void a_leaver_that_lets_one_in_has_not_died(void **state)
{
	(void)state;
	run(5, try_a_leaver, false, 0);
}

/* All odd ranks leave: of the others each is connected by new connections only. */
static tutti_status die_among_leavers(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status = TUTTI_OK;

	TTI_TRY(watch(rank));
	if (rank->rank % 2 == 1)
		status = leave(rank, false);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank % 2 == 1)
		return status;
	usleep(500 * 1000);
	job->done++;
	while (job->done < rank->nranks / 2)
		usleep(1000);
	return rank->rank == 4 ? leave(rank, true) : hear_of(rank, 4, 4);
}

static void a_death_is_seen_over_a_new_connection(void **state)
{
	(void)state;
	run(8, die_among_leavers, false, 0);
}

/* At the same moment 3 leaves, 4 and 5 die: 6 is an old neighbour of 5. */
static tutti_status die_next_to_a_leaver(struct rank *rank)
{
	TTI_TRY(watch(rank));
	if (rank->rank < 3 || rank->rank > 5)
		return hear_of(rank, 4, 5);
	(void)leave(rank, rank->rank > 3);
	return TUTTI_OK;
}

static void a_death_next_to_a_goodbye_is_seen(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++)
		run(9, die_next_to_a_leaver, false, 0);
}

/* What 0 hears when it asks 2, which has left without its knowing. */
static tutti_status ask_in_vain(struct rank *rank, struct job *job)
{
	struct spy *spy = &job->spies[0];
	int fds[6] = { -1, -1, -1, -1, -1, -1 };

	TTI_TRY(open_house(&job->house));
	tti_watch_ask(rank->boot, 2);
	const bool entered = within(20000, &job->house.nentered, 1);

	usleep(200 * 1000);
	close_house(&job->house);
	if (!entered || spy->nanswers)
		return tti_fail(TUTTI_EINTERNAL, "closed in between: %d answers", spy->nanswers);

	TTI_TRY(tti_listen(&job->house.port, 0, &fds[0]));
	for (int i = 1; i < 6; i++) {
		const struct sockaddr_in to = { .sin_family = AF_INET,
						.sin_port = htons(job->house.port),
						.sin_addr = { htonl(INADDR_LOOPBACK) } };

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fds[i], (const struct sockaddr *)&to, sizeof(to));
	}
	usleep(10 * 1000);
	tti_watch_ask(rank->boot, 2);
	usleep(3500 * 1000);
	for (int i = 0; i < 6; i++)
		tti_fd_close(&fds[i]);
	if (spy->nanswers)
		return tti_fail(TUTTI_EINTERNAL, "too busy: %d answers", spy->nanswers);

	tti_watch_ask(rank->boot, 2);
	if (!within(20000, &spy->nanswers, 1) || spy->nnull != 1)
		return tti_fail(TUTTI_EINTERNAL, "gone: %d answers", spy->nanswers);
	return TUTTI_OK;
}

static tutti_status ask_a_leaver(struct rank *rank)
{
	struct job *job = rank->arg;
	tutti_status status = TUTTI_OK, left;

	TTI_TRY(watch(rank));
	if (rank->rank == 2) {
		plan_house(&job->house, rank->boot);
		status = leave(rank, false);
	}
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 0)
		status = ask_in_vain(rank, job);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 2)
		return status;
	left = leave(rank, false);
	return status == TUTTI_OK ? left : status;
}

static void silence_is_not_goodbye(void **state)
{
	(void)state;
	run(5, ask_a_leaver, false, 0);
}

/* Ranks leave in any order, while others keep them busy. */
static tutti_status leave_at_random(struct rank *rank)
{
	struct job *job = rank->arg;
	unsigned seed = job->seed + (unsigned)rank->rank * 977;
	const int naps = rand_r(&seed) % 20;

	TTI_TRY(watch(rank));
	for (int i = 0; i < naps; i++) {
		tti_watch_ask(rank->boot, (rank->rank + 1 + rand_r(&seed) % 4) % rank->nranks);
		usleep((useconds_t)rand_r(&seed) % 40000);
	}
	return leave(rank, false);
}

static void many_leave_and_none_has_died(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++)
		run(MANY, leave_at_random, true, round * 7919 + 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaver_that_lets_one_in_has_not_died),
		cmocka_unit_test(a_death_is_seen_over_a_new_connection),
		cmocka_unit_test(a_death_next_to_a_goodbye_is_seen),
		cmocka_unit_test(silence_is_not_goodbye),
		cmocka_unit_test(many_leave_and_none_has_died),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

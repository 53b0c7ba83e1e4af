/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that hears of a death by mail alone, and then leaves, aborts or closes another communicator,
 * is not taken for the cause. */
#include "ranks.h"

#include <sched.h>
#include <unistd.h>

#include "boot/net/dial.h"
#include "boot/net/sock.h"
#include "boot/watch/watcher.h"

/* Rank 0 dies. Ranks 1 and 5, its neighbours in the ring, do nothing meanwhile, so the ring does not
 * find it. Rank 2 has a connection to it and a child with it and rank 4, which has no connection to
 * it and hears of the death from rank 2. */
#define N       6
#define VICTIM  0
#define WITNESS 2
#define LEAVER  4

enum way { LEAVES, LEAVES_BY_PAIR, ABORTS, SAYS_IT_LEFT, CLOSES_A_SIBLING };

struct spy {
	struct job *job;
	_Atomic int nlost, nanswers, nlost_then; /* nlost at the last answer */
	struct tti_failure failure;
	bool is_held; /* from its first question on */
};

struct job {
	enum way way;
	int checker; /* who has to hear of it */
	tutti_unique_id id;
	pthread_barrier_t barrier;
	_Atomic int nheld, has_acted, done;
	struct spy world[N], child[N], sibling[N];
};

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct spy *spy = self;

	spy->failure = *failure;
	spy->nlost++;
}

static void on_ask(void *self, struct tti_call *out)
{
	struct spy *spy = self;
	struct job *job = spy->job;

	if (job->way == SAYS_IT_LEFT && job->has_acted && spy == &job->world[LEAVER])
		out->running = TTI_CALL_LEFT;
	if (!spy->is_held)
		return;
	job->nheld++;
	while (!job->done)
		usleep(1000);
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct spy *spy = self;

	(void)peer;
	(void)call;
	spy->nlost_then = spy->nlost;
	spy->nanswers++;
}

static bool within(int ms, const _Atomic int *word, int least)
{
	for (int i = 0; i < ms && *word < least; i++)
		usleep(1000);
	return *word >= least;
}

static tutti_status watch(struct tti_boot *boot, struct job *job, struct spy *spy)
{
	const struct tti_watch_events events = { spy, on_lost, on_ask, on_answer, NULL };

	spy->job = job;
	return tti_watch_start(boot, &events);
}

static tutti_status make_sub(struct rank *rank, uint64_t context, const int *ranks,
			     struct spy *spies, struct tti_boot **out)
{
	const struct tti_boot_config config = { .timeout_ms = 60000 };

	TTI_TRY(tti_boot_sub_create(rank->boot, context, ranks, 3, &config, out));
	return watch(*out, rank->arg, &spies[rank->rank]);
}

static void stop(struct tti_boot *boot)
{
	tti_watch_stop(boot);
	tti_boot_close(boot);
}

static bool is_held(const struct job *job, int rank)
{
	return rank == 1 || rank == 5 || (rank == 3 && job->way == LEAVES_BY_PAIR);
}

/* Rank 4, as soon as it hears of the death. */
static tutti_status act(struct rank *rank, struct tti_boot *child, struct tti_boot *sibling)
{
	struct job *job = rank->arg;
	const struct tti_failure aborted = { .status = TUTTI_EPEER,
					     .failed_rank = LEAVER,
					     .origin = LEAVER,
					     .text = "rank 4 was aborted" };

	for (int64_t end = tti_deadline(20000); !job->child[LEAVER].nlost && tti_now_ns() < end;)
		sched_yield();
	if (sibling)
		stop(sibling);
	stop(child);
	if (job->way == ABORTS)
		tti_watch_notify(rank->boot, &aborted);
	if (job->way == LEAVES || job->way == LEAVES_BY_PAIR)
		stop(rank->boot);
	job->has_acted = 1;
	if (!job->child[LEAVER].nlost)
		return tti_fail(TUTTI_EINTERNAL, "no failure in the child");
	/* Rank 1 there is the witness. */
	if (job->child[LEAVER].failure.origin != 1)
		return tti_fail(TUTTI_EINTERNAL, "rank %d of the child has noticed it",
				job->child[LEAVER].failure.origin);
	return TUTTI_OK;
}

/* The first failure is the death, and in time. */
static tutti_status check(struct rank *rank)
{
	struct job *job = rank->arg;
	const bool in_sibling = job->way == CLOSES_A_SIBLING;
	struct spy *spy = in_sibling ? &job->sibling[rank->rank] : &job->world[rank->rank];
	const int failed_rank = in_sibling ? 2 : VICTIM;

	if (!within(30000, &job->has_acted, 1))
		return tti_fail(TUTTI_EINTERNAL, "rank 4 has not acted");
	if (job->way == SAYS_IT_LEFT) {
		tti_watch_ask(rank->boot, LEAVER);
		if (!within(10000, &spy->nanswers, 1) || !spy->nlost_then)
			return tti_fail(TUTTI_EINTERNAL, "it left, is said before why");
	}
	if (!within(5000, &spy->nlost, 1))
		return tti_fail(TUTTI_EINTERNAL, "the death was not told");
	if (spy->failure.failed_rank != failed_rank || !strstr(spy->failure.text, "died"))
		return tti_fail(TUTTI_EINTERNAL, "wrong failure notification: %s",
				spy->failure.text);
	return TUTTI_OK;
}

/* Whom rank 0 is to hold is asked by it, and rank 2 has a connection to it that both have used. */
static tutti_status prepare(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->world[rank->rank];
	const int nheld = job->way == LEAVES_BY_PAIR ? 3 : 2;

	TTI_TRY(rank_connect(rank, &job->id, 1, 60000, NULL));
	spy->is_held = is_held(job, rank->rank);
	TTI_TRY(watch(rank->boot, job, spy));
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == WITNESS) {
		tti_watch_ask(rank->boot, VICTIM);
		assert_true(within(20000, &spy->nanswers, 1));
	}
	pthread_barrier_wait(&job->barrier);
	for (int peer = 0; peer < N && rank->rank == VICTIM; peer++)
		if (is_held(job, peer))
			tti_watch_ask(rank->boot, peer);
	assert_true(within(20000, &job->nheld, nheld));
	pthread_barrier_wait(&job->barrier);
	return TUTTI_OK;
}

static tutti_status live(struct rank *rank)
{
	static const int in_child[] = { VICTIM, WITNESS, LEAVER },
			 in_sibling[] = { LEAVER, 3, VICTIM };
	struct job *job = rank->arg;
	struct tti_boot *child = NULL, *sibling = NULL;
	const int me = rank->rank;
	tutti_status status = TUTTI_OK;

	TTI_TRY(prepare(rank));
	if (me == WITNESS || me == LEAVER)
		TTI_TRY(make_sub(rank, 77, in_child, job->child, &child));
	if (job->way == CLOSES_A_SIBLING && (me == LEAVER || me == 3))
		TTI_TRY(make_sub(rank, 78, in_sibling, job->sibling, &sibling));
	pthread_barrier_wait(&job->barrier);
	if (me == VICTIM) {
		tti_watcher_vanish(rank->boot);
		tti_boot_close(rank->boot);
		return TUTTI_OK;
	}
	if (me == LEAVER)
		status = act(rank, child, sibling);
	if (me == job->checker) {
		status = check(rank);
		job->done = 1;
	}
	(void)within(60000, &job->done, 1);
	if (child && me != LEAVER)
		stop(child);
	if (sibling && me != LEAVER)
		stop(sibling);
	if (me != LEAVER || (job->way != LEAVES && job->way != LEAVES_BY_PAIR))
		stop(rank->boot);
	return status;
}

static void run(enum way way, int checker)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->way = way;
	job->checker = checker;
	CHECK_OK(tti_boot_id_create(&job->id));
	pthread_barrier_init(&job->barrier, NULL, N);
	ranks_run(N, live, job);
	pthread_barrier_destroy(&job->barrier);
	free(job);
}

static void who_leaves_tells(void **state)
{
	(void)state;
	run(LEAVES, 3);
}

/* Both neighbours of rank 4 in the ring do nothing: rank 2 hears of it with the goodbye. */
static void who_leaves_tells_others_than_the_ring(void **state)
{
	(void)state;
	run(LEAVES_BY_PAIR, WITNESS);
}

static void who_aborts_tells_of_the_death_first(void **state)
{
	(void)state;
	run(ABORTS, 3);
}

/* A communicator is closed, but its connections stay for those that were made of it. */
static void who_says_it_left_tells_first(void **state)
{
	(void)state;
	run(SAYS_IT_LEFT, 3);
}

static void another_child_hears_before_it_is_closed(void **state)
{
	(void)state;
	run(CLOSES_A_SIBLING, 3);
}

/* -- A connection that was never used ------------------------------------------------------ */

static void heard(void *self)
{
	(void)self; /* the dial is stepped anyway */
}

/* Connect to rank 3 as rank 1 does, and close that again. */
static void come_and_go(const struct tti_boot *boot)
{
	const struct tti_wire_card *card = &((const struct tti_sock *)boot)->cards[3];
	struct tti_addr addrs[TTI_IFACE_MOST];
	struct tti_dial_config config = { .addrs = addrs,
					  .kind = TTI_AUTH_PEER,
					  .secret = boot->secret,
					  .who = { 1, 3, boot->nranks, 0 },
					  .deadline_ns = tti_deadline(20000),
					  .on_ready = heard };
	struct tti_tunnel *tunnel = NULL;
	struct tti_dial *dial;
	struct tti_loop loop;
	tutti_status status;
	int64_t again_ns;

	CHECK_OK(tti_addrs_unpack(card->addrs, card->addr_bytes, card->port, addrs, TTI_IFACE_MOST,
				  &config.naddrs));
	CHECK_OK(tti_loop_init(&loop));
	CHECK_OK(tti_dial_start(&loop, &config, &dial));
	while ((status = tti_dial_step(dial, &tunnel, &again_ns)) == TUTTI_AGAIN)
		tti_loop_wait(&loop, 5);
	CHECK_OK(status);
	tti_tunnel_close(&tunnel);
	tti_dial_stop(dial);
	tti_loop_release(&loop);
}

static tutti_status be_visited(struct rank *rank)
{
	static const int ranks[] = { 1, 2, 3 };
	struct job *job = rank->arg;
	struct tti_boot *child = NULL;

	TTI_TRY(rank_connect(rank, &job->id, 1, 60000, NULL));
	TTI_TRY(watch(rank->boot, job, &job->world[rank->rank]));
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 3) {
		TTI_TRY(make_sub(rank, 77, ranks, job->child, &child));
		tti_watch_ask(rank->boot, 1);
		assert_true(within(20000, &job->world[3].nanswers, 1));
		come_and_go(rank->boot);
		usleep(200 * 1000); /* for its end to be seen, if it is */
		stop(child);
	}
	pthread_barrier_wait(&job->barrier);
	stop(rank->boot);
	if (job->child[rank->rank].nlost)
		return tti_fail(TUTTI_EINTERNAL, "false failure notification: %s",
				job->child[rank->rank].failure.text);
	return TUTTI_OK;
}

/* A rank that drops a connection which it has not used lives on by another one. */
static void an_unused_connection_tells_nothing(void **state)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)state;
	assert_non_null(job);
	CHECK_OK(tti_boot_id_create(&job->id));
	pthread_barrier_init(&job->barrier, NULL, N);
	ranks_run(N, be_visited, job);
	pthread_barrier_destroy(&job->barrier);
	free(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_leaves_tells),
		cmocka_unit_test(who_leaves_tells_others_than_the_ring),
		cmocka_unit_test(who_aborts_tells_of_the_death_first),
		cmocka_unit_test(who_says_it_left_tells_first),
		cmocka_unit_test(another_child_hears_before_it_is_closed),
		cmocka_unit_test(an_unused_connection_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

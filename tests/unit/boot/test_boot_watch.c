/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures, questions, goodbyes: for both kinds of bootstrap. */
#include "ranks.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "boot/watch/watcher.h"

#define MOST       1024
#define ASKED_MOST 8 /* ranks that are asked */

/* How long a rank that is slow to answer takes: much longer than until its connection is doubted. */
#define SLOW_MS 3000

struct spy {
	_Atomic int nlost, nasks, nanswers;
	_Atomic unsigned answered, left; /* a bit for each rank that has */
	struct tti_failure failure;
	struct tti_call calls[ASKED_MOST]; /* the first answer of each rank */
	bool slow;                         /* to its first question */
	int rank;
	bool stopped;
};

struct job {
	tutti_unique_id id;
	struct tti_boot **local;
	struct spy spies[MOST];
	pthread_barrier_t barrier;
	int failed_rank;
	_Atomic int nready;
	unsigned seed;
};

static void on_lost(void *self, const struct tti_failure *failure)
{
	struct spy *spy = self;

	if (spy->stopped)
		abort();
	spy->failure = *failure;
	spy->nlost++;
}

static void on_ask(void *self, struct tti_call *out)
{
	struct spy *spy = self;

	if (spy->stopped)
		abort();
	if (spy->slow && spy->nasks == 0)
		usleep(SLOW_MS * 1000);
	spy->nasks++;
	out->seq = (uint64_t)spy->rank + 100;
	out->running = 1;
	(void)snprintf(out->text, sizeof(out->text), "call of %d", spy->rank);
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct spy *spy = self;

	if (spy->stopped)
		abort();
	if (!call)
		spy->left |= 1u << peer;
	else if (peer < ASKED_MOST && !(spy->answered >> peer & 1))
		spy->calls[peer] = *call;
	spy->answered |= 1u << peer;
	spy->nanswers++;
}

static tutti_status watch(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const struct tti_watch_events events = { spy, on_lost, on_ask, on_answer, NULL };

	spy->rank = rank->rank;
	if (job->local)
		rank->boot = job->local[rank->rank];
	else
		TTI_TRY(rank_connect(rank, &job->id, 1, 60000, NULL));
	return tti_watch_start(rank->boot, &events);
}

static bool within(int ms, const _Atomic int *word)
{
	for (int i = 0; i < ms && !*word; i++)
		usleep(1000);
	return *word != 0;
}

/* Until there is an answer about that rank; one about another may still come. The local kind: a rank
 * that does not watch yet does not answer. */
static void ask_until_answered(struct rank *rank, struct spy *spy, int peer)
{
	for (int ms = 0; ms < 20000 && !(spy->answered >> peer & 1); ms++) {
		if (ms % 100 == 0)
			tti_watch_ask(rank->boot, peer);
		usleep(1000);
	}
}

static void stop(struct rank *rank)
{
	struct job *job = rank->arg;

	tti_watch_stop(rank->boot);
	job->spies[rank->rank].stopped = true;
	tti_boot_close(rank->boot);
}

static struct job *make_job(int n, bool local)
{
	struct job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	if (local) {
		job->local = calloc((size_t)n, sizeof(*job->local));
		CHECK_OK(tti_boot_local_create(n, NULL, job->local));
	} else {
		CHECK_OK(tti_boot_id_create(&job->id));
	}
	pthread_barrier_init(&job->barrier, NULL, (unsigned)n);
	return job;
}

static void free_job(struct job *job)
{
	pthread_barrier_destroy(&job->barrier);
	free(job->local);
	free(job);
}

/* -- Failures -------------------------------------------------------------------- */

static tutti_status see_failure(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const struct tti_failure failure = { TUTTI_EMISMATCH, 1, 0, 0, "hello" };

	TTI_TRY(watch(rank));
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == rank->nranks / 2) {
		tti_watch_notify(rank->boot, &failure);
		tti_watch_notify(rank->boot, &failure);
	}
	if (!within(10000, &spy->nlost))
		return tti_fail(TUTTI_EINTERNAL, "no failure at %d", rank->rank);
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	if (spy->nlost != 1 || spy->failure.status != TUTTI_EMISMATCH ||
	    spy->failure.failed_rank != 1 || strcmp(spy->failure.text, "hello") != 0)
		return tti_fail(TUTTI_EINTERNAL, "wrong failure at %d: %d times, %s", rank->rank,
				spy->nlost, spy->failure.text);
	return TUTTI_OK;
}

static void failures_reach_all(void **state)
{
	static const int counts[] = { 1, 2, 3, 8, 64 };

	(void)state;
	for (int local = 0; local < 2; local++) {
		for (int i = 0; i < 5; i++) {
			struct job *job = make_job(counts[i], local);

			ranks_run(counts[i], see_failure, job);
			free_job(job);
		}
	}
}

/* -- Deaths ---------------------------------------------------------------------- */

static tutti_status die(struct rank *rank)
{
	tti_watcher_vanish(rank->boot);
	stop(rank);
	return TUTTI_OK;
}

static tutti_status see_death(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	char name[16];

	TTI_TRY(watch(rank));
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == job->failed_rank)
		return die(rank);
	if (!within(10000, &spy->nlost))
		return tti_fail(TUTTI_EINTERNAL, "no failure at %d", rank->rank);
	stop(rank);
	(void)snprintf(name, sizeof(name), "rank %d (", job->failed_rank);
	if (spy->nlost != 1 || spy->failure.status != TUTTI_EPEER ||
	    spy->failure.failed_rank != job->failed_rank ||
	    strncmp(spy->failure.text, name, strlen(name)) != 0)
		return tti_fail(TUTTI_EINTERNAL, "wrong failure at %d: %d times, %s", rank->rank,
				spy->nlost, spy->failure.text);
	return TUTTI_OK;
}

static void a_death_is_seen_by_all(void **state)
{
	static const int counts[] = { 2, 3, 4, 16, 64 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct job *job = make_job(counts[i], false);

		job->failed_rank = counts[i] / 3;
		ranks_run(counts[i], see_death, job);
		free_job(job);
	}
}

/* A rank leaves, time passes, then another one dies: the ring was closed again. */
static tutti_status see_death_past_gaps(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	const bool leaves = rank->rank % 4 == 1 || rank->rank % 4 == 2;

	TTI_TRY(watch(rank));
	pthread_barrier_wait(&job->barrier);
	if (leaves)
		stop(rank);
	pthread_barrier_wait(&job->barrier);
	if (leaves)
		return spy->nlost
			       ? tti_fail(TUTTI_EINTERNAL, "false failure: %s", spy->failure.text)
			       : TUTTI_OK;
	usleep(400 * 1000);
	if (spy->nlost)
		return tti_fail(TUTTI_EINTERNAL, "false failure: %s", spy->failure.text);
	job->nready++;
	while (job->nready < rank->nranks / 2)
		usleep(1000);
	if (rank->rank == job->failed_rank)
		return die(rank);
	if (!within(10000, &spy->nlost))
		return tti_fail(TUTTI_EINTERNAL, "no failure at %d", rank->rank);
	stop(rank);
	return spy->failure.failed_rank == job->failed_rank
		       ? TUTTI_OK
		       : tti_fail(TUTTI_EINTERNAL, "wrong failure: %s", spy->failure.text);
}

static void failures_pass_the_gaps_of_those_who_left(void **state)
{
	struct job *job = make_job(16, false);

	(void)state;
	job->failed_rank = 7;
	ranks_run(16, see_death_past_gaps, job);
	free_job(job);
}

/* -- Goodbyes ---------------------------------------------------------------------- */

static tutti_status leave_at_random(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	unsigned seed = job->seed + (unsigned)rank->rank * 977;

	TTI_TRY(watch(rank));
	if (rand_r(&seed) % 3 == 0)
		tti_watch_ask(rank->boot, (rank->rank + 1 + rand_r(&seed) % 3) % rank->nranks);
	usleep((useconds_t)(rand_r(&seed) % 3 == 0 ? rand_r(&seed) % 80000 : rand_r(&seed) % 2000));
	stop(rank);
	return spy->nlost ? tti_fail(TUTTI_EINTERNAL, "false failure at %d: %s", rank->rank,
				     spy->failure.text)
			  : TUTTI_OK;
}

static void goodbyes_are_no_failures(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		const int n = 2 + round % 9;
		struct job *job = make_job(n, round % 4 == 3);

		job->seed = (unsigned)round * 7919 + 5;
		ranks_run(n, leave_at_random, job);
		free_job(job);
	}
}

/* -- Questions ------------------------------------------------------------------------ */

static tutti_status ask_all(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	tutti_status status = TUTTI_OK;

	TTI_TRY(watch(rank));
	for (int peer = 0; peer < rank->nranks && status == TUTTI_OK; peer++) {
		const struct tti_call *call = &spy->calls[peer];

		if (peer == rank->rank)
			continue;
		ask_until_answered(rank, spy, peer);
		if (spy->left || call->seq != (uint64_t)peer + 100 || !call->running)
			status = tti_fail(TUTTI_EINTERNAL, "wrong answer of %d to %d: %s", peer,
					  rank->rank, call->text);
	}
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	return status;
}

static tutti_status ask_who_left(struct rank *rank)
{
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	tutti_status status = TUTTI_OK;

	TTI_TRY(watch(rank));
	pthread_barrier_wait(&job->barrier);
	if (rank->rank != 0)
		stop(rank);
	pthread_barrier_wait(&job->barrier);
	for (int peer = 1; peer < rank->nranks && rank->rank == 0; peer++) {
		ask_until_answered(rank, spy, peer);
		if (spy->left != (2u << peer) - 2)
			status = tti_fail(TUTTI_EINTERNAL, "no answer about %d", peer);
	}
	if (rank->rank == 0)
		stop(rank);
	return status;
}

/* -- A rank that is slow ------------------------------------------------------------ */

#define LETTERS 24000 /* more than the kernel keeps for one connection */

struct slow_box {
	struct tti_mailbox mailbox;
	_Atomic int ncame, ndown;
};

static void count_letter(struct tti_mailbox *mailbox, int from, const struct tti_mail *mail,
			 size_t nbytes)
{
	(void)from;
	(void)mail;
	(void)nbytes;
	((struct slow_box *)mailbox)->ncame++;
}

static void count_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why)
{
	(void)peer;
	(void)how;
	(void)why;
	((struct slow_box *)mailbox)->ndown++;
}

/* Rank 2 reads nothing for a while, and rank 0, which is no neighbour of it, asks it something and
 * has much to tell it. */
static tutti_status ask_who_is_slow(struct rank *rank)
{
	static struct slow_box mailbox;
	struct job *job = rank->arg;
	struct spy *spy = &job->spies[rank->rank];
	struct tti_mail letter = { .context = 77, .kind = TTI_MAIL_BLOCK };

	spy->slow = rank->rank == 2;
	TTI_TRY(watch(rank));
	if (rank->rank == 2) {
		mailbox = (struct slow_box){
			.mailbox = { .context = 77, .take = count_letter, .down = count_down }
		};
		tti_dispatcher_open(&rank->boot->dispatcher, &mailbox.mailbox);
	}
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 0) {
		tti_watch_ask(rank->boot, 2);
		for (int i = 0; i < LETTERS; i++)
			assert_int_equal(
				rank->boot->ops->mail(rank->boot, 2, &letter, sizeof(letter)),
				TUTTI_OK);
		assert_true(within(60000, &spy->nanswers));
	}
	for (int i = 0; rank->rank == 2 && i < 60000 && mailbox.ncame < LETTERS; i++)
		usleep(1000);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 2) {
		usleep(200000); /* for the end of a connection to be seen, if there is one */
		assert_true(mailbox.ncame >= LETTERS);
		assert_int_equal(mailbox.ndown, 0);
		tti_dispatcher_close(&rank->boot->dispatcher, &mailbox.mailbox);
	}
	pthread_barrier_wait(&job->barrier);
	stop(rank);
	return TUTTI_OK;
}

/* A connection that a slow rank does not read is left for another, but not closed: the slow rank
 * would take that for the death of who closed it. */
static void who_is_slow_is_asked_another_way(void **state)
{
	struct job *job = make_job(4, false);

	(void)state;
	ranks_run(4, ask_who_is_slow, job);
	free_job(job);
}

static void questions_are_answered(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		struct job *job = make_job(6, local);

		ranks_run(6, ask_all, job);
		free_job(job);
		job = make_job(5, local);
		ranks_run(5, ask_who_left, job);
		free_job(job);
	}
}

/* -- Connections that are not of the ring --------------------------------------------------- */

static uint32_t port_of(int fd, long call)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);

	if (syscall(call, fd, &at, &len) < 0 || at.ss_family == AF_UNIX)
		return 0;
	return at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
					: ((struct sockaddr_in *)&at)->sin_port;
}

/* The connections over a network that this process has: the ports of each, by its number. */
static void list_conns(uint32_t ports[256])
{
	for (int fd = 0; fd < 256; fd++) {
		const uint32_t peer = port_of(fd, SYS_getpeername);

		ports[fd] = peer ? peer << 16 | port_of(fd, SYS_getsockname) : 0;
	}
}

/* Reset those that are not in the list: both ends are told so. */
static int reset_others(const uint32_t before[256])
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	uint32_t now[256];
	int n = 0;

	list_conns(now);
	for (int fd = 0; fd < 256; fd++)
		if (now[fd] && now[fd] != before[fd]) {
			(void)syscall(SYS_connect, fd, &nowhere, sizeof(nowhere));
			n++;
		}
	return n;
}

/* Rank 0 asks rank 2, and the connection that was made for it is reset, again and again. */
static tutti_status reset_rounds(struct rank *rank, const uint32_t before[256])
{
	struct spy *spy = &((struct job *)rank->arg)->spies[0];

	for (int round = 0; round < 3; round++) {
		spy->nanswers = 0;
		for (int i = 0; i < 100 && !spy->nanswers; i++) {
			tti_watch_ask(rank->boot, 2);
			(void)within(200, &spy->nanswers);
		}
		if (!spy->nanswers || spy->left)
			return tti_fail(TUTTI_EINTERNAL, "no answer in round %d", round);
		usleep(50000);
		/* That may have been one more answer of the round before. */
		while (reset_others(before) == 0)
			usleep(1000);
		usleep(100000);
	}
	return TUTTI_OK;
}

/* The child of ranks 0 and 2 hears of a death; and so do all. */
static tutti_status hear_death(const struct spy *child, const struct spy *own)
{
	if (child && (!within(15000, &child->nlost) || !strstr(child->failure.text, "it died")))
		return tti_fail(TUTTI_EINTERNAL, "wrong failure in the child: %s",
				child->failure.text);
	if (!within(15000, &own->nlost) || own->failure.failed_rank != 2)
		return tti_fail(TUTTI_EINTERNAL, "wrong failure: %s", own->failure.text);
	return TUTTI_OK;
}

/* Ranks 0 and 2 have a child, and a connection that is reset while both live; then rank 2 dies. */
static tutti_status reset_a_pair(struct rank *rank)
{
	static const int in_child[] = { 0, 2 };
	struct job *job = rank->arg;
	struct spy *own = &job->spies[rank->rank], of_child = { 0 };
	const struct tti_watch_events events = { &of_child, on_lost, on_ask, on_answer, NULL };
	const struct tti_boot_config config = { .timeout_ms = 60000 };
	struct tti_boot *child = NULL;
	tutti_status status = TUTTI_OK;
	uint32_t before[256];

	TTI_TRY(watch(rank));
	pthread_barrier_wait(&job->barrier);
	list_conns(before);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank % 2 == 0) {
		TTI_TRY(tti_boot_sub_create(rank->boot, 1, in_child, 2, &config, &child));
		TTI_TRY(tti_watch_start(child, &events));
	}
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 0)
		status = reset_rounds(rank, before);
	pthread_barrier_wait(&job->barrier);
	if (status == TUTTI_OK && (of_child.nlost || own->nlost))
		status = tti_fail(TUTTI_EINTERNAL, "false failure: %s%s", of_child.failure.text,
				  own->failure.text);
	pthread_barrier_wait(&job->barrier);
	if (rank->rank == 2)
		tti_watcher_vanish(rank->boot);
	else if (status == TUTTI_OK)
		status = hear_death(child ? &of_child : NULL, own);
	if (child) {
		tti_watch_stop(child);
		tti_boot_close(child);
	}
	if (rank->rank == 2)
		tti_boot_close(rank->boot);
	else
		stop(rank);
	return status;
}

static void a_reset_is_no_death(void **state)
{
	struct job *job = make_job(4, false);

	(void)state;
	ranks_run(4, reset_a_pair, job);
	free_job(job);
}

/* -- Phases ---------------------------------------------------------------------------- */

static tutti_status misuse(struct rank *rank)
{
	struct job *job = rank->arg;
	const struct tti_watch_events none = { 0 };

	TTI_TRY(watch(rank));
	assert_int_equal(tti_boot_all_gather(rank->boot, NULL, 0), TUTTI_EUSAGE);
	assert_int_equal(tti_watch_start(rank->boot, &none), TUTTI_EUSAGE);
	pthread_barrier_wait(&job->barrier);
	tti_watch_stop(rank->boot);
	tti_watch_stop(rank->boot);
	tti_watch_ask(rank->boot, 0);
	tti_boot_close(rank->boot);
	return TUTTI_OK;
}

static void the_phases_do_not_mix(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		struct job *job = make_job(3, local);

		ranks_run(3, misuse, job);
		free_job(job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_reach_all),
		cmocka_unit_test(a_death_is_seen_by_all),
		cmocka_unit_test(failures_pass_the_gaps_of_those_who_left),
		cmocka_unit_test(goodbyes_are_no_failures),
		cmocka_unit_test(questions_are_answered),
		cmocka_unit_test(who_is_slow_is_asked_another_way),
		cmocka_unit_test(a_reset_is_no_death),
		cmocka_unit_test(the_phases_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

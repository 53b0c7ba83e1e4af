/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags between threads, in shared memory and over TCP: order, any source, lengths,
 * cancelling, many threads, errors. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/world.h"

#define ROOM ((size_t)1200 * 1000)

static const size_t sizes[] = { 0, 1, 8, 40, 41, 4000, 16384, 16385, 70000, 300001, 1100000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static void fill(unsigned char *data, size_t nbytes, unsigned seed)
{
	for (size_t i = 0; i < nbytes; i++)
		data[i] = (unsigned char)(i * 7 + seed * 31 + (i >> 9));
}

static bool is_filled(const unsigned char *data, size_t nbytes, unsigned seed)
{
	size_t i = 0;

	while (i < nbytes && data[i] == (unsigned char)(i * 7 + seed * 31 + (i >> 9)))
		i++;
	return i == nbytes;
}

static bool is_info(const tutti_message_info *info, int source, int tag, size_t bytes)
{
	return info->source == source && info->tag == tag && info->bytes == bytes;
}

/* Everybody sends to everybody, the own rank too, before anybody receives; of unknown length. */
static void all_to_all(tutti_channel_t channel, tutti_comm_t comm, int rank, int n)
{
	unsigned char *out = malloc(ROOM), *in = malloc(ROOM);
	tutti_request_t *requests = calloc((size_t)n * NSIZES, sizeof(*requests));
	tutti_message_info info;

	fill(out, ROOM, (unsigned)rank);
	for (int peer = 0; peer < n; peer++)
		for (size_t i = 0; i < NSIZES; i++)
			CHECK_OK(tutti_message_isend(channel, out, sizes[i], peer, (int)i,
						     &requests[(size_t)peer * NSIZES + i]));
	for (int left = n * (int)NSIZES; left > 0; left--) {
		if (!CHECK_OK(tutti_message_probe(channel, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, -1,
						  &info)))
			break;
		CHECK(info.bytes == sizes[info.tag]);
		memset(in, 0, info.bytes);
		CHECK_OK(tutti_message_recv(channel, in, info.bytes, info.source, info.tag, &info));
		CHECK(info.bytes == sizes[info.tag] &&
		      is_filled(in, info.bytes, (unsigned)info.source));
	}
	for (size_t i = 0; i < (size_t)n * NSIZES; i++) {
		CHECK_OK(tutti_message_wait(channel, requests[i], -1, &info));
		CHECK(is_info(&info, rank, (int)(i % NSIZES), sizes[i % NSIZES]));
	}
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK(tutti_message_probe(channel, TUTTI_ANY_SOURCE, TUTTI_ANY_TAG, 0, NULL) ==
	      TUTTI_AGAIN);
	CHECK_OK(tutti_barrier(comm, NULL));
	free(requests);
	free(in);
	free(out);
}

/* Many of one tag, short and long ones mixed, are received in their order, though receives wait
 * for some of them already, and for others not. */
static void in_order(tutti_channel_t channel, int rank, int n)
{
	enum { MANY = 200, AHEAD = 16 };
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	unsigned *out = calloc(MANY, 20000), *in = calloc(AHEAD, 20000);
	tutti_request_t sends[MANY], receives[AHEAD];
	tutti_message_info info;

	for (unsigned i = 0; i < MANY; i++) {
		out[i * 5000] = i;
		CHECK_OK(tutti_message_isend(channel, &out[i * 5000], i % 3 ? 4 + i : 20000, next,
					     5, &sends[i]));
	}
	for (unsigned i = 0; i < MANY + AHEAD; i++) {
		if (i >= AHEAD) {
			const unsigned was = i - AHEAD;

			CHECK_OK(tutti_message_wait(channel, receives[i % AHEAD], -1, &info));
			CHECK(is_info(&info, prev, 5, was % 3 ? 4 + was : 20000));
			CHECK(in[i % AHEAD * 5000] == was);
		}
		if (i < MANY)
			CHECK_OK(tutti_message_irecv(channel, &in[i % AHEAD * 5000], 20000,
						     i % 2 ? prev : TUTTI_ANY_SOURCE,
						     i % 5 ? 5 : TUTTI_ANY_TAG,
						     &receives[i % AHEAD]));
	}
	for (int i = 0; i < MANY; i++)
		CHECK_OK(tutti_message_wait(channel, sends[i], -1, NULL));
	free(out);
	free(in);
}

/* Nobody receives: a send that the receiver does not keep is not over, and what it keeps is
 * bounded. */
static void is_bounded(tutti_channel_t channel, tutti_comm_t comm, int rank, int n)
{
	enum { MANY = 1000, BYTES = 1000 };
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	unsigned char *out = calloc(MANY, BYTES), in[BYTES];
	tutti_request_t requests[MANY];
	int nover = 0;

	for (int i = 0; i < MANY; i++)
		CHECK_OK(tutti_message_isend(channel, &out[i * BYTES], BYTES, next, 1,
					     &requests[i]));
	CHECK_OK(tutti_barrier(comm, NULL));
	for (int i = 0; i < MANY; i++)
		if (tutti_message_wait(channel, requests[i], 0, NULL) == TUTTI_OK) {
			requests[i] = 0;
			nover++;
		}
	CHECK(nover > 0 && nover * BYTES < 256 * 1024);
	CHECK_OK(tutti_barrier(comm, NULL));
	for (int i = 0; i < MANY; i++)
		CHECK_OK(tutti_message_recv(channel, in, BYTES, prev, 1, NULL));
	for (int i = 0; i < MANY; i++)
		if (requests[i])
			CHECK_OK(tutti_message_wait(channel, requests[i], -1, NULL));
	free(out);
}

/* A message that is too long for its receive stays, whichever comes first. */
static void too_long(tutti_channel_t channel, tutti_comm_t comm, int rank, int n)
{
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	unsigned char out[100], *long_one = malloc(ROOM), in[100];
	tutti_request_t early, send;
	tutti_message_info info;

	fill(out, sizeof(out), 3);
	fill(long_one, ROOM, 4);
	CHECK_OK(tutti_message_irecv(channel, in, 99, prev, 7, &early));
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_message_send(channel, out, sizeof(out), next, 7));
	CHECK(tutti_message_wait(channel, early, -1, &info) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "message of 100 bytes") &&
	      strstr(tutti_last_error(comm), "the 99 bytes"));
	CHECK(tutti_message_recv(channel, in, 10, prev, 7, NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_message_recv(channel, in, 100, prev, TUTTI_ANY_TAG, &info));
	CHECK(is_info(&info, prev, 7, 100) && is_filled(in, 100, 3));
	CHECK_OK(tutti_message_isend(channel, long_one, ROOM, next, 8, &send));
	CHECK_OK(tutti_message_probe(channel, prev, 8, -1, &info));
	CHECK(is_info(&info, prev, 8, ROOM));
	CHECK(tutti_message_recv(channel, in, 100, prev, 8, NULL) == TUTTI_EINVAL);
	/* Into what is sent from elsewhere meanwhile nothing is written. */
	unsigned char *room = malloc(ROOM);

	CHECK_OK(tutti_message_recv(channel, room, ROOM, prev, 8, NULL));
	CHECK(is_filled(room, ROOM, 4));
	CHECK_OK(tutti_message_wait(channel, send, -1, NULL));
	CHECK_OK(tutti_barrier(comm, NULL));
	free(room);
	free(long_one);
}

static void bad_arguments(tutti_channel_t channel, int n)
{
	char byte = 0;
	tutti_request_t request;

	CHECK(tutti_message_send(channel, &byte, 1, n, 0) == TUTTI_EINVAL);
	CHECK(tutti_message_send(channel, &byte, 1, TUTTI_ANY_SOURCE, 0) == TUTTI_EINVAL);
	CHECK(tutti_message_send(channel, &byte, 1, 0, TUTTI_ANY_TAG) == TUTTI_EINVAL);
	CHECK(tutti_message_send(channel, NULL, 1, 0, 0) == TUTTI_EINVAL);
	CHECK(tutti_message_recv(channel, &byte, 1, n, 0, NULL) == TUTTI_EINVAL);
	CHECK(tutti_message_recv(channel, &byte, 1, 0, -2, NULL) == TUTTI_EINVAL);
	CHECK(tutti_message_isend(channel, &byte, 1, 0, 0, NULL) == TUTTI_EINVAL);
	CHECK(tutti_message_probe(NULL, 0, 0, 0, NULL) == TUTTI_EINVAL);
	CHECK(tutti_message_wait(channel, 0, 0, NULL) == TUTTI_EINVAL);
	CHECK(tutti_message_cancel(channel, 12345) == TUTTI_EINVAL);
	CHECK_OK(tutti_message_irecv(channel, &byte, 1, 0, 99, &request));
	CHECK(tutti_message_wait(channel, request, 0, NULL) == TUTTI_AGAIN);
	CHECK(tutti_message_wait(channel, request, 20, NULL) == TUTTI_AGAIN);
	CHECK_OK(tutti_message_cancel(channel, request));
	CHECK(tutti_message_cancel(channel, request) == TUTTI_AGAIN);
	CHECK(tutti_message_wait(channel, request, -1, NULL) == TUTTI_ECANCELED);
	CHECK(tutti_message_wait(channel, request, -1, NULL) == TUTTI_EINVAL);
}

static void all_of_it(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;

	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	all_to_all(channel, comm, rank, n);
	in_order(channel, rank, n);
	is_bounded(channel, comm, rank, n);
	too_long(channel, comm, rank, n);
	bad_arguments(channel, n);
	/* What nobody receives is dropped. */
	CHECK_OK(tutti_message_send(channel, &rank, sizeof(rank), (rank + 1) % n, 77));
	CHECK_OK(tutti_channel_destroy(channel));
}

static void over_shared_memory(void **unused)
{
	(void)unused;
	for (int n = 1; n <= 4; n++)
		assert_int_equal(world_run(&(struct world){ .n = n }, all_of_it, NULL), 0);
}

static void over_tcp(void **unused)
{
	(void)unused;
	for (int n = 2; n <= 3; n++)
		assert_int_equal(
			world_run(&(struct world){ .n = n, .transport = "tcp" }, all_of_it, NULL),
			0);
}

/* -- Threads ----------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  (SANITIZED ? 60 : 300)

struct worker {
	tutti_channel_t channel;
	int rank, n, number;
};

/* Ping-pong with the same thread of the next rank, while the communicator is used for sums, and
 * other threads receive from any source. */
static void *ping_pong(void *self)
{
	const struct worker *me = self;
	const int next = (me->rank + 1) % me->n, prev = (me->rank + me->n - 1) % me->n;
	unsigned char *out = malloc(70000), *in = malloc(70000);

	for (int round = 0; round < ROUNDS; round++) {
		const size_t nbytes = sizes[(size_t)(round + me->number) % 9];
		tutti_request_t request;

		fill(out, nbytes, (unsigned)(round + me->number));
		if (!CHECK_OK(tutti_message_isend(me->channel, out, nbytes, next, me->number,
						  &request)) ||
		    !CHECK_OK(tutti_message_recv(me->channel, in, 70000, prev, me->number, NULL)) ||
		    !CHECK_OK(tutti_message_wait(me->channel, request, -1, NULL)))
			break;
		CHECK(is_filled(in, nbytes, (unsigned)(round + me->number)));
	}
	free(out);
	free(in);
	return NULL;
}

/* Anybody's, until one says that it is the last. */
static void *serve(void *self)
{
	const struct worker *me = self;
	tutti_message_info info;
	int value;

	for (int left = me->n; left > 0;) {
		if (!CHECK_OK(tutti_message_recv(me->channel, &value, sizeof(value),
						 TUTTI_ANY_SOURCE, 1000, &info)))
			break;
		CHECK(info.bytes == sizeof(value) && value <= ROUNDS);
		left -= value == ROUNDS;
		value++;
		if (!CHECK_OK(tutti_message_send(me->channel, &value, sizeof(value), info.source,
						 1001)))
			break;
	}
	return NULL;
}

static void *ask(void *self)
{
	const struct worker *me = self;
	int answer = 0;

	for (int round = 0; round <= ROUNDS; round++)
		for (int peer = 0; peer < me->n; peer++) {
			CHECK_OK(
				tutti_message_send(me->channel, &round, sizeof(round), peer, 1000));
			CHECK_OK(tutti_message_recv(me->channel, &answer, sizeof(answer), peer,
						    1001, NULL));
			CHECK(answer == round + 1);
		}
	return NULL;
}

/* Receives are cancelled by one thread while others send to them: each message comes once, to a
 * receive that was not cancelled. */
static void *receive_or_be_cancelled(void *self)
{
	const struct worker *me = self;
	int want = 0, value = -1;
	bool good = true;

	while (good && want < ROUNDS) {
		tutti_request_t request;
		tutti_status st;

		good = CHECK_OK(tutti_message_irecv(me->channel, &value, sizeof(value), me->rank,
						    2000, &request));
		if (want % 3)
			(void)CHECK(tutti_message_cancel(me->channel, request) >= 0);
		st = tutti_message_wait(me->channel, request, -1, NULL);
		good = good && CHECK(st == TUTTI_OK || st == TUTTI_ECANCELED);
		if (st == TUTTI_OK)
			good = good && CHECK(value == want++);
	}
	return NULL;
}

static void *send_to_self(void *self)
{
	const struct worker *me = self;

	for (int i = 0; i < ROUNDS; i++)
		CHECK_OK(tutti_message_send(me->channel, &i, sizeof(i), me->rank, 2000));
	return NULL;
}

static void many_threads(tutti_comm_t comm, int rank, int n, void *arg)
{
	void *(*const runs[])(
		void *) = { ping_pong, ping_pong, ping_pong,    ping_pong,
			    serve,     ask,       send_to_self, receive_or_be_cancelled };
	enum { NRUNS = sizeof(runs) / sizeof(runs[0]) };
	struct worker workers[NRUNS];
	pthread_t threads[NRUNS];
	tutti_channel_t channel;

	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &channel)))
		return;
	for (int i = 0; i < NRUNS; i++) {
		workers[i] = (struct worker){ channel, rank, n, i };
		CHECK(pthread_create(&threads[i], NULL, runs[i], &workers[i]) == 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		CHECK(world_sum_over(comm, rank) == n * (n - 1) / 2);
	for (int i = 0; i < NRUNS; i++)
		pthread_join(threads[i], NULL);
	CHECK_OK(tutti_channel_destroy(channel));
}

static void threads_share_a_channel(void **unused)
{
	(void)unused;
	assert_int_equal(world_run(&(struct world){ .n = 2 }, many_threads, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 3 }, many_threads, NULL), 0);
	assert_int_equal(
		world_run(&(struct world){ .n = 2, .transport = "tcp" }, many_threads, NULL), 0);
}

/* -- The end ------------------------------------------------------------------------- */

/* A blocked receive ends with its communicator, however that ends. */
static void *wait_for_ever(void *self)
{
	const struct worker *me = self;
	int value;
	const tutti_status st =
		tutti_message_recv(me->channel, &value, sizeof(value), TUTTI_ANY_SOURCE, 5, NULL);

	CHECK(st == TUTTI_EREVOKED);
	CHECK(tutti_message_send(me->channel, &value, sizeof(value), me->rank, 5) ==
	      TUTTI_EREVOKED);
	return NULL;
}

static void is_revoked(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct worker worker = { .rank = rank, .n = n };
	pthread_t thread;

	(void)arg;
	if (!CHECK_OK(tutti_channel_create(comm, &worker.channel)))
		return;
	CHECK(pthread_create(&thread, NULL, wait_for_ever, &worker) == 0);
	(void)!tutti_barrier(comm, NULL); /* which may end by it */
	if (rank == 0)
		CHECK_OK(tutti_comm_revoke(comm));
	pthread_join(thread, NULL);
	CHECK(tutti_channel_destroy(worker.channel) == TUTTI_EREVOKED);
}

/* A channel on which rank 0 has waited for a message of rank 1, and got that error instead; NULL:
 * there is none. */
static tutti_channel_t receive_in_vain(tutti_comm_t comm, int rank, tutti_status status,
				       const char *text)
{
	tutti_channel_t channel = NULL;
	int value;

	if (CHECK_OK(tutti_channel_create(comm, &channel)) && rank == 0) {
		CHECK(tutti_message_recv(channel, &value, sizeof(value), 1, 5, NULL) == status);
		CHECK(strstr(tutti_last_error(comm), text));
	}
	return channel;
}

static void times_out(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel =
		receive_in_vain(comm, rank, TUTTI_ETIMEOUT, "message of rank 1 with tag 5");

	(void)arg;
	(void)n;
	if (!channel)
		return;
	/* A test with a limit of its own loses nothing. */
	while (rank == 1 && tutti_message_probe(channel, 0, 6, 10, NULL) == TUTTI_AGAIN)
		;
	CHECK(tutti_message_probe(channel, 0, 6, 0, NULL) == TUTTI_ETIMEOUT);
	(void)tutti_channel_destroy(channel);
	/* The communicator is as it was. */
	CHECK(world_sum_over(comm, 1) == 2);
}

/* Who has destroyed its channel sends nothing more. */
static void leaves(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel =
		receive_in_vain(comm, rank, TUTTI_EPEER, "has destroyed its channel");

	(void)arg;
	(void)n;
	CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
}

/* The communicator first. */
static void outlives_it(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;
	tutti_comm_t child;
	int value = 0;

	(void)arg;
	(void)n;
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	if (!CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	CHECK_OK(tutti_message_send(channel, &rank, sizeof(rank), rank, 1));
	CHECK_OK(tutti_comm_destroy(child));
	CHECK(tutti_message_recv(channel, &value, sizeof(value), rank, 1, NULL) == TUTTI_EUSAGE);
	CHECK_OK(tutti_channel_destroy(channel));
	CHECK_OK(tutti_group_start());
	CHECK(tutti_channel_create(comm, &channel) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_end());
}

/* A watchdog aborts the communicator while another thread destroys the channel: the abort still holds
 * it, for the sake of a third thread that is asked whether it shall wait. */
struct held {
	tutti_comm_t comm;
	tutti_channel_t channel;
	sem_t asked, answer, destroyed;
};

static int ask_slowly(void *arg)
{
	struct held *held = arg;

	CHECK(sem_post(&held->asked) == 0);
	CHECK(sem_wait(&held->answer) == 0);
	CHECK(sem_post(&held->answer) == 0);
	return 0;
}

static void *wait_in_a_call(void *arg)
{
	struct held *held = arg;

	tutti_set_interrupt(ask_slowly, held);
	CHECK(tutti_barrier(held->comm, NULL) == TUTTI_EABORTED);
	return NULL;
}

static void *abort_it(void *arg)
{
	struct held *held = arg;

	CHECK_OK(tutti_comm_abort(held->comm));
	return NULL;
}

static void *destroy_it(void *arg)
{
	struct held *held = arg;

	(void)tutti_channel_destroy(held->channel);
	CHECK(sem_post(&held->destroyed) == 0);
	return NULL;
}

static void is_aborted(tutti_comm_t comm, int rank, int n, void *arg)
{
	static void *(*const runs[])(void *) = { wait_in_a_call, abort_it, destroy_it };
	struct held held;
	pthread_t threads[3];
	int self;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &held.comm, NULL));
	if (!CHECK_OK(tutti_channel_create(held.comm, &held.channel)))
		return;
	if (rank == 1) {
		/* Only now has the other one aborted it. */
		CHECK(world_sum_over(comm, 1) == 2);
		(void)tutti_channel_destroy(held.channel);
		CHECK(tutti_barrier(held.comm, NULL) == TUTTI_EPEER);
		CHECK_OK(tutti_comm_destroy(held.comm));
		return;
	}
	sem_init(&held.asked, 0, 0);
	sem_init(&held.answer, 0, 0);
	sem_init(&held.destroyed, 0, 0);
	CHECK(pthread_create(&threads[0], NULL, runs[0], &held) == 0);
	CHECK(sem_wait(&held.asked) == 0);
	CHECK(pthread_create(&threads[1], NULL, runs[1], &held) == 0);
	while (tutti_comm_rank(held.comm, &self) == TUTTI_OK)
		;
	CHECK(pthread_create(&threads[2], NULL, runs[2], &held) == 0);
	/* Were it freed now, the abort would still look at it. */
	nanosleep(&(struct timespec){ .tv_nsec = 200 * 1000 * 1000 }, NULL);
	CHECK(sem_trywait(&held.destroyed) != 0);
	CHECK(sem_post(&held.answer) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(world_sum_over(comm, 1) == 2);
	sem_destroy(&held.asked);
	sem_destroy(&held.answer);
	sem_destroy(&held.destroyed);
}

/* One rank is in the destroy of its channel when another aborts the communicator without one. */
static void is_aborted_late(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_channel_t channel;
	tutti_comm_t child;

	(void)arg;
	(void)n;
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	if (!CHECK_OK(tutti_channel_create(child, &channel)))
		return;
	if (rank == 0) {
		CHECK(tutti_channel_destroy(channel) == TUTTI_EPEER);
		CHECK_OK(tutti_comm_destroy(child));
		return;
	}
	/* The other one comes there meanwhile, most likely. */
	CHECK(tutti_message_probe(channel, 0, 1, 100, NULL) == TUTTI_AGAIN);
	CHECK_OK(tutti_comm_abort(child));
	CHECK_OK(tutti_channel_destroy(channel));
}

static void ends_with_its_communicator(void **unused)
{
	(void)unused;
	tutti_log_errors(0);
	assert_int_equal(world_run(&(struct world){ .n = 3 }, is_revoked, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 2, .timeout_ms = 5000 }, times_out, NULL),
			 0);
	assert_int_equal(world_run(&(struct world){ .n = 2 }, leaves, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 3 }, outlives_it, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 2 }, is_aborted, NULL), 0);
	assert_int_equal(world_run(&(struct world){ .n = 2 }, is_aborted_late, NULL), 0);
	tutti_log_errors(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_shared_memory),
		cmocka_unit_test(over_tcp),
		cmocka_unit_test(threads_share_a_channel),
		cmocka_unit_test(ends_with_its_communicator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

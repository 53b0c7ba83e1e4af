/* SPDX-License-Identifier: BSD-3-Clause */
/* Timeouts: of init, of a communicator, of one call; which of several a call goes by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/comm.h"
#include "core/handle.h"
#include "core/sequence.h"
#include "support/world.h"
#include "transport/tcp/tcp.h"

#define SHORT_MS 200

static void nap(int ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&pause, NULL);
}

static void hold(tutti_status status, void *gate)
{
	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(gate) == 0);
}

struct sender {
	tutti_comm_t comm;
	bool waits; /* until it may; else it sends after some time */
	_Atomic bool may_send;
};

static void *send_late(void *self)
{
	struct sender *sender = self;
	const int value = 7;
	tutti_status st;

	do
		nap(sender->waits ? 1 : 3 * SHORT_MS);
	while (sender->waits && !sender->may_send);
	st = tutti_send(&value, 1, TUTTI_INT32, 0, sender->comm, NULL);
	CHECK(st == TUTTI_OK || st == TUTTI_ETIMEOUT);
	return NULL;
}

/* Whether rank 0's receive, which rank 1 answers late, or only when it is over, is over in time. */
static tutti_status receive_late(const tutti_config *config, bool is_answered)
{
	struct sender sender = { .waits = !is_answered };
	tutti_comm_t comms[2];
	pthread_t thread;
	tutti_status st;
	int value = 0;

	assert_int_equal(tutti_comm_init_all(comms, 2, config), TUTTI_OK);
	sender.comm = comms[1];
	assert_int_equal(pthread_create(&thread, NULL, send_late, &sender), 0);
	st = tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], NULL);
	sender.may_send = true;
	pthread_join(thread, NULL);
	tutti_comm_destroy(comms[0]);
	tutti_comm_destroy(comms[1]);
	return st;
}

/* -- The environment ------------------------------------------------------------------ */

static tutti_status join_alone(int64_t boot_timeout_ms)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_unique_id id;
	tutti_comm_t comm;

	config.boot_timeout_ms = boot_timeout_ms;
	if (tutti_get_unique_id(&id) != TUTTI_OK)
		return TUTTI_EINTERNAL;
	return tutti_comm_init_rank_config(&comm, 2, id, 0, &config);
}

/* Variables that are set win, also with the value of the default. Before this process has read its
 * own. */
static void variables_win(void **state)
{
	pid_t pid;
	int how;

	(void)state;
	pid = fork();
	if (pid == 0) {
		tutti_config config = TUTTI_CONFIG_INIT;

		setenv("TUTTI_BOOT_TIMEOUT_MS", "4000", 1);
		setenv("TUTTI_TIMEOUT_MS", "0", 1);
		config.timeout_ms = SHORT_MS;
		if (receive_late(&config, true) != TUTTI_OK)
			_exit(1);
		if (join_alone(1000000) != TUTTI_ETIMEOUT)
			_exit(2);
		/* From when the id was made. */
		_exit(strstr(tutti_last_error(NULL), "rank 1 of 2 did not come within ") ? 0 : 3);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &how, 0), pid);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
}

/* -- Init ------------------------------------------------------------------------------- */

static void init_has_its_own(void **state)
{
	(void)state;
	assert_int_equal(join_alone(4000), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tutti_last_error(NULL), "rank 1 of 2"));
	assert_non_null(strstr(tutti_last_error(NULL), "config.boot_timeout_ms"));
	assert_int_equal(join_alone(-1), TUTTI_EINVAL);
}

/* A child takes it from its parent, with a config of its own, too. */
static void children_have_it(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT, plain = TUTTI_CONFIG_INIT;
	tutti_comm_t comms[2], child;

	(void)state;
	config.boot_timeout_ms = 4000; /* enough for what comes before the child */
	for (int round = 0; round < 2; round++) {
		assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
		assert_int_equal(tutti_comm_dup(comms[0], &child, round == 0 ? NULL : &plain),
				 TUTTI_ETIMEOUT);
		assert_non_null(strstr(tutti_last_error(comms[0]), "4000 ms"));
		tutti_comm_destroy(comms[0]);
		tutti_comm_destroy(comms[1]);
	}
}

/* Two ranks over TCP, which have 100 ms to reach each other's machine. */
static void join_two(tutti_comm_t comms[2])
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.transport = "tcp";
	assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
	for (int rank = 0; rank < 2; rank++) {
		struct tti_comm *comm = atomic_load(&comms[rank]->comm);
		bool found = false;

		for (int i = 0; i < comm->nports; i++) {
			if (comm->ports[i]->transport != &tti_transport_tcp)
				continue;
			tti_tcp_port_of(comm->ports[i])->timeout_ms = 100;
			found = true;
		}
		assert_true(found);
	}
}

struct coming {
	tutti_comm_t comm;
	int late_ms;
	tutti_status status;
};

static void *come_late(void *self)
{
	struct coming *coming = self;

	nap(coming->late_ms);
	coming->status = tutti_barrier(coming->comm, NULL);
	return NULL;
}

/* A rank that comes late to the first call is waited for, whichever of the two connects. */
static void the_first_call_waits_for_late_ranks(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct coming coming = { .late_ms = 1000 };
		tutti_comm_t comms[2];
		pthread_t thread;

		join_two(comms);
		coming.comm = comms[late];
		assert_int_equal(pthread_create(&thread, NULL, come_late, &coming), 0);
		assert_int_equal(tutti_barrier(comms[1 - late], NULL), TUTTI_OK);
		pthread_join(thread, NULL);
		assert_int_equal(coming.status, TUTTI_OK);
		tutti_comm_destroy(comms[0]);
		tutti_comm_destroy(comms[1]);
	}
}

/* The timeout of the call ends such a wait, and says who has not come. */
static void the_first_call_has_its_timeout(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		tutti_comm_t comms[2];
		char name[64];

		join_two(comms);
		assert_int_equal(tutti_comm_set_timeout(comms[1 - late], 2000), TUTTI_OK);
		assert_int_equal(tutti_barrier(comms[1 - late], NULL), TUTTI_ETIMEOUT);
		snprintf(name, sizeof(name),
			 "for rank %d, which has not come: it has made no call yet", late);
		assert_non_null(strstr(tutti_last_error(comms[1 - late]), name));
		assert_non_null(strstr(tutti_last_error(comms[1 - late]), "2000 ms"));
		tutti_comm_destroy(comms[0]);
		tutti_comm_destroy(comms[1]);
	}
}

/* -- Calls ------------------------------------------------------------------------------- */

static void a_communicator_is_given_one(void **state)
{
	tutti_comm_t comms[2];
	int value = 0;

	(void)state;
	assert_int_equal(tutti_comm_init_all(comms, 2, NULL), TUTTI_OK);
	assert_int_equal(tutti_comm_set_timeout(NULL, 1), TUTTI_EINVAL);
	assert_int_equal(tutti_comm_set_timeout(comms[0], -1), TUTTI_EINVAL);
	assert_int_equal(tutti_comm_set_timeout(comms[0], SHORT_MS), TUTTI_OK);
	assert_int_equal(tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], NULL), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tutti_last_error(comms[0]), "200 ms (tutti_comm_set_timeout())"));
	assert_non_null(strstr(tutti_last_error(comms[0]), "rank 1"));
	tutti_comm_destroy(comms[0]);
	assert_int_equal(tutti_comm_set_timeout(comms[0], 1), TUTTI_EUSAGE);
	tutti_comm_destroy(comms[1]);
}

static void it_can_be_taken_back(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	struct sender sender = { 0 };
	tutti_comm_t comms[2];
	pthread_t thread;
	int value = 0;

	(void)state;
	config.timeout_ms = SHORT_MS;
	assert_int_equal(receive_late(&config, false), TUTTI_ETIMEOUT);
	assert_int_equal(tutti_comm_init_all(comms, 2, &config), TUTTI_OK);
	assert_int_equal(tutti_comm_set_timeout(comms[0], 0), TUTTI_OK);
	sender.comm = comms[1];
	assert_int_equal(pthread_create(&thread, NULL, send_late, &sender), 0);
	assert_int_equal(tutti_recv(&value, 1, TUTTI_INT32, 1, comms[0], NULL), TUTTI_OK);
	pthread_join(thread, NULL);
	assert_int_equal(value, 7);
	tutti_comm_destroy(comms[0]);
	tutti_comm_destroy(comms[1]);
}

/* Two receives are queued with one timeout each, on a stream that is held meanwhile, in a group or
 * not: none of the first, so it waits for what comes late; the second times out. */
static void queue_with(bool in_group)
{
	struct sender sender = { 0 };
	tutti_comm_t comms[2];
	tutti_stream_t stream;
	pthread_t thread;
	int values[2] = { 0 };
	sem_t gate;

	sem_init(&gate, 0, 0);
	assert_int_equal(tutti_comm_init_all(comms, 2, NULL), TUTTI_OK);
	assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
	assert_int_equal(tutti_stream_call(stream, hold, &gate), TUTTI_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tutti_comm_set_timeout(comms[0], i == 0 ? 0 : SHORT_MS), TUTTI_OK);
		if (in_group)
			assert_int_equal(tutti_group_start(), TUTTI_OK);
		assert_int_equal(tutti_recv(&values[i], 1, TUTTI_INT32, 1, comms[0], stream),
				 TUTTI_OK);
		if (in_group)
			assert_int_equal(tutti_group_end(), TUTTI_OK);
	}
	assert_int_equal(tutti_comm_set_timeout(comms[0], 0), TUTTI_OK);
	assert_int_equal(sem_post(&gate), 0);
	sender.comm = comms[1];
	assert_int_equal(pthread_create(&thread, NULL, send_late, &sender), 0);
	assert_int_equal(tutti_stream_synchronize(stream), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tutti_last_error(NULL), "200 ms (tutti_comm_set_timeout())"));
	assert_int_equal(values[0], 7);
	pthread_join(thread, NULL);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_ETIMEOUT);
	tutti_comm_destroy(comms[0]);
	tutti_comm_destroy(comms[1]);
	sem_destroy(&gate);
}

static void queued_calls_keep_theirs(void **state)
{
	(void)state;
	queue_with(false);
	queue_with(true);
}

/* Calls 0, 1, ... of a communicator, of which call i goes by i + 1 ms; the one that is done moves
 * behind. What nobody goes by any more is not kept. */
static void each_call_goes_by_its_own(void **state)
{
	tutti_comm_t handle;
	struct tti_comm *comm;

	(void)state;
	assert_int_equal(tutti_comm_init_all(&handle, 1, NULL), TUTTI_OK);
	comm = atomic_load(&handle->comm);
	for (int i = 0; i < 1000; i++) {
		/* Twice: the second is what counts. */
		assert_int_equal(tutti_comm_set_timeout(handle, 5), TUTTI_OK);
		assert_int_equal(tutti_comm_set_timeout(handle, i + 1), TUTTI_OK);
		assert_int_equal(tutti_comm_set_timeout(handle, i + 1), TUTTI_OK);
		assert_int_equal(tti_sequence_take(comm), i);
		assert_int_equal(tti_timeout_newest(comm).ms, i + 1);
		if (i < 10)
			continue;
		assert_int_equal(tti_timeout_of_call(comm).ms, i - 9);
		tti_sequence_done(comm);
		assert_true(comm->timeouts.later.n <= 11);
	}
	while (!tti_sequence_is_idle(comm))
		tti_sequence_done(comm);
	assert_int_equal(tti_timeout_of_call(comm).ms, 1000);
	tutti_comm_destroy(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variables_win),
		cmocka_unit_test(init_has_its_own),
		cmocka_unit_test(children_have_it),
		cmocka_unit_test(the_first_call_waits_for_late_ranks),
		cmocka_unit_test(the_first_call_has_its_timeout),
		cmocka_unit_test(a_communicator_is_given_one),
		cmocka_unit_test(it_can_be_taken_back),
		cmocka_unit_test(queued_calls_keep_theirs),
		cmocka_unit_test(each_call_goes_by_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

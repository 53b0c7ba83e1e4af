/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti_comm_set_algorithm(): which of several texts a call goes by, wherever it waits for its turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "support/world.h"
#include "tutti/inspect.h"

#define N     4
#define COUNT 300
#define LONG  100000 /* elements that no memory program is too long for */

static const char *last_algorithm(tutti_comm_t comm)
{
	struct tutti_call_report report = { 0 };

	CHECK_OK(tutti_comm_last_call(comm, &report));
	return report.algorithm;
}

static bool sum_is_right(tutti_comm_t comm, int rank, int n, int count)
{
	static _Thread_local int32_t values[LONG];

	for (int i = 0; i < count; i++)
		values[i] = i + rank;
	CHECK_OK(tutti_all_reduce(values, values, (size_t)count, TUTTI_INT32, TUTTI_SUM, comm,
				  NULL));
	for (int i = 0; i < count; i++)
		if (values[i] != n * i + n * (n - 1) / 2)
			return false;
	return true;
}

static void each_call_has_its_own(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const char *const texts[] = { "all_reduce:ring", "all_reduce:double_tree",
					     "all_reduce:recursive_doubling", "all_reduce:direct" };
	const int ntexts = sizeof(texts) / sizeof(texts[0]);
	char usual[64];

	(void)arg;
	for (int count = COUNT; count <= LONG; count += LONG - COUNT) {
		CHECK(sum_is_right(comm, rank, n, count));
		(void)snprintf(usual, sizeof(usual), "%s", last_algorithm(comm));
		for (int i = 0; i < 5 * ntexts; i++) {
			CHECK_OK(tutti_comm_set_algorithm(comm, texts[i % ntexts]));
			CHECK(sum_is_right(comm, rank, n, count));
			CHECK(!strcmp(last_algorithm(comm), strchr(texts[i % ntexts], ':') + 1));
			/* Back, for one call. */
			CHECK_OK(tutti_comm_set_algorithm(comm, NULL));
			CHECK(sum_is_right(comm, rank, n, count));
			CHECK(!strcmp(last_algorithm(comm), usual));
		}
	}
}

static void by_each_transport(void **state)
{
	struct world world = { .n = N };

	(void)state;
	assert_int_equal(world_run(&world, each_call_has_its_own, NULL), 0);
	world.transport = "tcp";
	assert_int_equal(world_run(&world, each_call_has_its_own, NULL), 0);
}

/* -- Calls that wait for their turn ------------------------------------------------------ */

struct seen {
	tutti_comm_t comm;
	sem_t gate;
	const char *algorithm[3];
	int n;
};

static void wait_at_gate(tutti_status status, void *arg)
{
	struct seen *seen = arg;

	CHECK(status == TUTTI_OK);
	CHECK(sem_wait(&seen->gate) == 0);
}

static void note(tutti_status status, void *arg)
{
	struct seen *seen = arg;

	CHECK(status == TUTTI_OK);
	seen->algorithm[seen->n++] = last_algorithm(seen->comm);
}

/* All are queued before the first of them runs. */
static void queued_calls_keep_theirs(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const char *const texts[] = { "ring", "double_tree", "direct" };
	struct seen seen = { .comm = comm };
	int32_t sums[3];
	tutti_stream_t stream;

	(void)arg;
	CHECK(sem_init(&seen.gate, 0, 0) == 0);
	CHECK_OK(tutti_stream_create(&stream));
	CHECK_OK(tutti_stream_call(stream, wait_at_gate, &seen));
	for (int i = 0; i < 3; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "all_reduce:%s", texts[i]);
		sums[i] = rank;
		CHECK_OK(tutti_comm_set_algorithm(comm, text));
		CHECK_OK(tutti_all_reduce(&sums[i], &sums[i], 1, TUTTI_INT32, TUTTI_SUM, comm,
					  stream));
		CHECK_OK(tutti_stream_call(stream, note, &seen));
	}
	CHECK_OK(tutti_comm_set_algorithm(comm, NULL));
	CHECK(sem_post(&seen.gate) == 0);
	CHECK_OK(tutti_stream_synchronize(stream));
	for (int i = 0; i < 3; i++) {
		CHECK(sums[i] == n * (n - 1) / 2);
		CHECK(i < seen.n && !strcmp(seen.algorithm[i], texts[i]));
	}
	CHECK_OK(tutti_stream_destroy(stream));
	CHECK(sem_destroy(&seen.gate) == 0);
}

/* What a group's calls had is not the last text, nor that of its end. */
static void calls_of_a_group_keep_theirs(tutti_comm_t comm, int rank, int n, void *arg)
{
	int32_t sum = rank, other = rank, all[N];

	(void)arg;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_gather:ring"));
	CHECK_OK(tutti_all_gather(&rank, all, 1, TUTTI_INT32, comm, NULL));
	CHECK_OK(tutti_comm_set_algorithm(comm, "double_tree"));
	CHECK_OK(tutti_all_reduce(&sum, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:ring"));
	CHECK_OK(tutti_all_reduce(&other, &other, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:direct"));
	CHECK_OK(tutti_group_end());
	CHECK(!strcmp(last_algorithm(comm), "ring"));
	CHECK(sum == n * (n - 1) / 2 && other == sum);
	for (int i = 0; i < n; i++)
		CHECK(all[i] == i);
}

static void a_plan_keeps_its_own(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t plan;
	int32_t value;

	(void)arg;
	call.coll = TUTTI_ALL_REDUCE;
	call.send = call.recv = &value;
	call.count = 1;
	call.type = TUTTI_INT32;
	call.op = TUTTI_SUM;
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:ring"));
	CHECK_OK(tutti_persistent_create(&call, comm, &plan));
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:direct"));
	for (int i = 0; i < 3; i++) {
		value = rank;
		CHECK_OK(tutti_persistent_start(plan, NULL));
		CHECK_OK(tutti_persistent_wait(plan));
		CHECK(value == n * (n - 1) / 2);
		CHECK(!strcmp(last_algorithm(comm), "ring"));
		CHECK(sum_is_right(comm, rank, n, COUNT));
		CHECK(!strcmp(last_algorithm(comm), "direct"));
	}
	CHECK_OK(tutti_persistent_destroy(plan));
}

static void waiting_calls(void **state)
{
	const struct world world = { .n = N };

	(void)state;
	assert_int_equal(world_run(&world, queued_calls_keep_theirs, NULL), 0);
	assert_int_equal(world_run(&world, calls_of_a_group_keep_theirs, NULL), 0);
	assert_int_equal(world_run(&world, a_plan_keeps_its_own, NULL), 0);
}

/* -- Beside the configuration ------------------------------------------------------------- */

static void beside_the_configuration(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t child;

	(void)arg;
	CHECK(sum_is_right(comm, rank, n, COUNT));
	CHECK(!strcmp(last_algorithm(comm), "ring"));
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:double_tree"));
	CHECK(sum_is_right(comm, rank, n, COUNT));
	CHECK(!strcmp(last_algorithm(comm), "double_tree"));
	/* A child has its parent's configuration. */
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	CHECK(sum_is_right(child, rank, n, COUNT));
	CHECK(!strcmp(last_algorithm(child), "ring"));
	CHECK_OK(tutti_comm_destroy(child));
	/* Nothing is asked for: a vector of one element does not go around a ring. */
	CHECK_OK(tutti_comm_set_algorithm(comm, ""));
	CHECK(sum_is_right(comm, rank, n, 1));
	CHECK(strcmp(last_algorithm(comm), "ring") != 0);
	CHECK_OK(tutti_comm_set_algorithm(comm, NULL));
	CHECK(sum_is_right(comm, rank, n, 1));
	CHECK(!strcmp(last_algorithm(comm), "ring"));
}

static void of_a_configuration(void **state)
{
	const struct world world = { .n = N, .algo = "all_reduce:ring" };

	(void)state;
	assert_int_equal(world_run(&world, beside_the_configuration, NULL), 0);
}

/* -- What is wrong ------------------------------------------------------------------------ */

static void wrong_words(tutti_comm_t comm, int rank, int n, void *arg)
{
	float value = (float)rank;

	(void)arg;
	CHECK(tutti_comm_set_algorithm(comm, "all_reduce:rnig") == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "tutti_comm_set_algorithm()"));
	CHECK(strstr(tutti_last_error(comm), "\"rnig\""));
	CHECK(strstr(tutti_last_error(comm), "double_tree"));
	CHECK(tutti_comm_set_algorithm(comm, "all_redcue:ring") == TUTTI_EINVAL);
	CHECK(tutti_comm_set_algorithm(NULL, "ring") == TUTTI_EINVAL);
	/* What was set before stays. */
	CHECK(sum_is_right(comm, rank, n, COUNT));
	/* Right words, by which this call cannot be made: all ranks are told, and go on. */
	CHECK_OK(tutti_comm_set_algorithm(comm, "all_reduce:ring"));
	CHECK(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT32, tutti_op_reproducible(TUTTI_SUM),
			       comm, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "\"all_reduce:ring\""));
	CHECK(strstr(tutti_last_error(comm), "leaves no algorithm for all_reduce"));
	CHECK_OK(tutti_comm_set_algorithm(comm, NULL));
	CHECK_OK(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT32,
				  tutti_op_reproducible(TUTTI_SUM), comm, NULL));
	CHECK(value == (float)(n * (n - 1) / 2));
}

static void wrong(void **state)
{
	const struct world world = { .n = N };

	(void)state;
	assert_int_equal(world_run(&world, wrong_words, NULL), 0);
}

static void ranks_differ(tutti_comm_t comm, int rank, int n, void *all_have_set)
{
	int32_t value = 1;

	(void)n;
	CHECK_OK(tutti_comm_set_algorithm(comm, rank == 1 ? "all_reduce:ring"
							  : "all_reduce:double_tree"));
	/* The first two ranks that meet end the communicator, on which nothing can be set then. */
	pthread_barrier_wait(all_have_set);
	CHECK(tutti_all_reduce(&value, &value, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL) ==
	      TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "in different ways"));
	CHECK(strstr(tutti_last_error(comm), "ring"));
	CHECK(strstr(tutti_last_error(comm), "double_tree"));
}

static void differing_ranks(void **state)
{
	const struct world world = { .n = N };
	pthread_barrier_t all_have_set;

	(void)state;
	assert_int_equal(pthread_barrier_init(&all_have_set, NULL, N), 0);
	assert_int_equal(world_run(&world, ranks_differ, &all_have_set), 0);
	assert_int_equal(pthread_barrier_destroy(&all_have_set), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_each_transport),  cmocka_unit_test(waiting_calls),
		cmocka_unit_test(of_a_configuration), cmocka_unit_test(wrong),
		cmocka_unit_test(differing_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

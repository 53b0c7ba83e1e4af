/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a group should take: nothing of it runs, and what is predicted is in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

#define COUNT   ((size_t)1 << 16)
#define NAN_OUT (-1.0)

static float sent[8][COUNT * 4], got[8][COUNT * 4];

static tutti_status all_reduce(tutti_comm_t comm, int rank, size_t count, tutti_stream_t stream)
{
	return tutti_all_reduce(sent[rank], got[rank], count, TUTTI_FLOAT32, TUTTI_SUM, comm,
				stream);
}

static double time_of(tutti_comm_t comm, int rank, size_t count, int ncalls, tutti_stream_t stream)
{
	double us = NAN_OUT;

	CHECK_OK(tutti_group_start());
	for (int i = 0; i < ncalls; i++)
		CHECK_OK(all_reduce(comm, rank, count, stream));
	CHECK_OK(tutti_group_simulate_end(&us));
	return us;
}

/* Only this rank has "made" these calls; then all make one, and are in step. */
static void predict(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_stream_t stream = NULL;
	double none, few, many, twice, queued;

	(void)arg;
	got[rank][0] = -1;
	if (rank == 0) {
		none = time_of(comm, rank, 0, 0, NULL);
		few = time_of(comm, rank, 1, 1, NULL);
		many = time_of(comm, rank, COUNT, 1, NULL);
		twice = time_of(comm, rank, COUNT, 2, NULL);
		CHECK(none == 0);
		CHECK(few > 0 && many > few);
		CHECK(twice > many * 1.99 && twice < many * 2.01);
		CHECK_OK(tutti_stream_create(&stream));
		queued = time_of(comm, rank, COUNT, 1, stream);
		CHECK(queued == many);
		CHECK_OK(tutti_stream_destroy(stream));
		CHECK(got[rank][0] == -1);
	}
	sent[rank][0] = (float)rank;
	CHECK_OK(all_reduce(comm, rank, 1, NULL));
	CHECK(got[rank][0] == (float)(n * (n - 1) / 2));
}

static void nothing_runs(void **state)
{
	(void)state;
	for (int n = 1; n <= 8; n = n * 2 + (n == 2)) {
		const struct world world = { .n = n };

		assert_int_equal(world_run(&world, predict, NULL), 0);
	}
}

/* A call of each kind, of so many bytes for each rank. */
static double time_of_kind(tutti_comm_t comm, int rank, int n, int kind, size_t count)
{
	const tutti_side half = { (const int[]){ 0 }, 1, 0 }, rest = { (const int[]){ 1 }, 1, 0 };
	const size_t counts[4] = { count, count, count, count };
	const size_t displs[4] = { 0, count, 2 * count, 3 * count };
	float *in = sent[rank], *out = got[rank];
	double us = NAN_OUT;

	CHECK_OK(tutti_group_start());
	switch (kind) {
	case 0:
		CHECK_OK(tutti_broadcast(in, out, count, TUTTI_FLOAT32, 0, comm, NULL));
		break;
	case 1:
		CHECK_OK(tutti_all_gather(in, out, count, TUTTI_FLOAT32, comm, NULL));
		break;
	case 2:
		CHECK_OK(tutti_all_to_all(in, out, count, TUTTI_FLOAT32, comm, NULL));
		break;
	case 3:
		CHECK_OK(tutti_all_to_all_v(in, counts, displs, out, counts, displs, TUTTI_FLOAT32,
					    comm, NULL));
		break;
	case 4:
		CHECK_OK(tutti_gather_v(in, count, out, counts, displs, TUTTI_FLOAT32, 0, comm,
					NULL));
		break;
	case 5:
		CHECK_OK(tutti_send(in, count, TUTTI_FLOAT32, (rank + 1) % n, comm, NULL));
		CHECK_OK(tutti_recv(out, count, TUTTI_FLOAT32, (rank + n - 1) % n, comm, NULL));
		break;
	default:
		CHECK_OK(tutti_handoff(in, out, count, TUTTI_FLOAT32, &half, &rest, comm, NULL));
		break;
	}
	CHECK_OK(tutti_group_simulate_end(&us));
	return us;
}

static void predict_each(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)arg;
	for (int kind = 0; kind < 7; kind++) {
		const double few = time_of_kind(comm, rank, n, kind, 16);
		const double many = time_of_kind(comm, rank, n, kind, COUNT);

		/* Ranks 2 and 3 have nothing to do with the handoff. */
		CHECK(kind == 6 && rank > 1 ? few == 0 && many == 0 : few > 0 && many > few);
	}
	world_check_place(comm, rank, n);
}

static void every_kind_has_a_time(void **state)
{
	static const char *const transports[] = { "auto", "tcp,self" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct world world = { .n = 4, .transport = transports[i] };

		assert_int_equal(world_run(&world, predict_each, NULL), 0);
	}
}

/* As many sends as there are at the same time, they share what carries them. */
static void predict_sends(tutti_comm_t comm, int rank, int n, void *arg)
{
	double one, three = NAN_OUT;

	(void)arg;
	one = time_of_kind(comm, rank, n, 5, COUNT);
	CHECK_OK(tutti_group_start());
	for (int i = 0; i < 3; i++) {
		CHECK_OK(tutti_send(sent[rank], COUNT, TUTTI_FLOAT32, (rank + 1) % n, comm, NULL));
		CHECK_OK(tutti_recv(got[rank], COUNT, TUTTI_FLOAT32, (rank + n - 1) % n, comm,
				    NULL));
	}
	CHECK_OK(tutti_group_simulate_end(&three));
	CHECK(three > 2 * one && three < 3 * one);
}

static void sends_go_at_the_same_time(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, predict_sends, NULL), 0);
}

static void misuse(tutti_comm_t comm, int rank, int n, void *arg)
{
	double us = NAN_OUT;

	(void)n;
	(void)arg;
	CHECK(tutti_group_simulate_end(&us) == TUTTI_EUSAGE);
	CHECK_OK(tutti_group_start());
	CHECK(tutti_group_simulate_end(NULL) == TUTTI_EINVAL);
	CHECK_OK(tutti_group_start());
	CHECK(tutti_group_simulate_end(&us) == TUTTI_EUSAGE);
	CHECK(strstr(tutti_last_error(NULL), "inside 2 groups") != NULL);
	CHECK(us == NAN_OUT);
	CHECK_OK(tutti_group_end());
	/* A call that is wrong is the group's error here, too. */
	CHECK(all_reduce(comm, rank, SIZE_MAX / 4, NULL) == TUTTI_EINVAL);
	CHECK(tutti_group_simulate_end(&us) == TUTTI_EINVAL);
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_send(sent[rank], 1, TUTTI_FLOAT32, rank, comm, NULL));
	CHECK(tutti_group_simulate_end(&us) == TUTTI_EUSAGE);
	/* It has ended. */
	CHECK(tutti_group_end() == TUTTI_EUSAGE);
}

static void misuse_is_told(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, misuse, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_runs),
		cmocka_unit_test(every_kind_has_a_time),
		cmocka_unit_test(sends_go_at_the_same_time),
		cmocka_unit_test(misuse_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

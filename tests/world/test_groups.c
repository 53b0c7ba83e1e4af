/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: sends and receives in any order, several communicators on one thread,
 * calls and transfers mixed, init inside a group, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

/* Everybody sends to everybody, itself included, in an order of its own. */
static void all_to_all(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t count = *(const size_t *)arg;
	const size_t nn = (size_t)n;
	int *send = malloc((nn * count + 1) * sizeof(*send));
	int *recv = malloc((nn * count + 1) * sizeof(*recv));

	for (size_t i = 0; i < nn * count; i++)
		send[i] = rank * 1000000 + (int)i;
	CHECK_OK(tutti_group_start());
	for (int k = 0; k < n; k++) {
		const int to = (rank * 7 + k) % n;
		const int from = (k * (n > 1 ? n - 1 : 1) + rank) % n;

		if (k % 2 == rank % 2) {
			CHECK_OK(tutti_send(send + (size_t)to * count, count, TUTTI_INT32, to, comm,
					    NULL));
			CHECK_OK(tutti_recv(recv + (size_t)from * count, count, TUTTI_INT32, from,
					    comm, NULL));
		} else {
			CHECK_OK(tutti_recv(recv + (size_t)from * count, count, TUTTI_INT32, from,
					    comm, NULL));
			CHECK_OK(tutti_send(send + (size_t)to * count, count, TUTTI_INT32, to, comm,
					    NULL));
		}
	}
	CHECK_OK(tutti_group_end());
	for (int peer = 0; peer < n; peer++)
		for (size_t i = 0; i < count; i++)
			if (!CHECK(recv[(size_t)peer * count + i] ==
				   peer * 1000000 + (int)((size_t)rank * count + i)))
				peer = n, i = count;
	free(send);
	free(recv);
}

static void transfers_in_any_order(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };
	static const size_t counts[] = { 0, 1, 100, 200000 };

	(void)state;
	for (int t = 0; t < 2; t++)
		for (int n = 1; n <= 5; n += 2)
			for (int c = 0; c < 4; c++) {
				const struct world world = { .n = n, .transport = transports[t] };

				assert_int_equal(world_run(&world, all_to_all, (void *)&counts[c]),
						 0);
			}
}

/* Several messages of one pair match in order; a collective in the same group. */
static void mixed_group(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int next = (rank + 1) % n;
	const int prev = (rank + n - 1) % n;
	double in[3] = { rank + 1, rank * 2, rank * 3 };
	double got[3] = { 0 };
	double sum = 0;
	double mine = rank;

	(void)arg;
	for (int round = 0; round < 20; round++) {
		CHECK_OK(tutti_group_start());
		if (rank % 2)
			CHECK_OK(tutti_all_reduce(&mine, &sum, 1, TUTTI_FLOAT64, TUTTI_SUM, comm,
						  NULL));
		for (int i = 0; i < 3; i++) {
			CHECK_OK(tutti_send(&in[i], 1, TUTTI_FLOAT64, next, comm, NULL));
			CHECK_OK(tutti_recv(&got[i], 1, TUTTI_FLOAT64, prev, comm, NULL));
		}
		if (rank % 2 == 0)
			CHECK_OK(tutti_all_reduce(&mine, &sum, 1, TUTTI_FLOAT64, TUTTI_SUM, comm,
						  NULL));
		CHECK_OK(tutti_group_end());
		CHECK(got[0] == prev + 1 && got[1] == prev * 2 && got[2] == prev * 3);
		CHECK(sum == n * (n - 1) / 2);
	}
}

static void collectives_beside_transfers(void **state)
{
	const struct world world = { .n = 4 };

	(void)state;
	assert_int_equal(world_run(&world, mixed_group, NULL), 0);
}

/* Ranks of one thread, not all of which send or receive before the collective of all. */
static void one_thread_sends_and_sums(void **state)
{
	int sum[3] = { 1, 10, 100 }, got = 0;
	tutti_comm_t comm[3];

	(void)state;
	assert_int_equal(tutti_comm_init_all(comm, 3, NULL), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	assert_int_equal(tutti_send(&sum[1], 1, TUTTI_INT32, 0, comm[1], NULL), TUTTI_OK);
	assert_int_equal(tutti_recv(&got, 1, TUTTI_INT32, 1, comm[0], NULL), TUTTI_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tutti_all_reduce(&sum[i], &sum[i], 1, TUTTI_INT32, TUTTI_SUM,
						  comm[i], NULL),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	assert_int_equal(got, 10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sum[i], 111);
		assert_int_equal(tutti_comm_destroy(comm[i]), TUTTI_OK);
	}
}

/* A collective sees what the receives of its group brought, wherever it stands among them. */
static void sum_of_received(tutti_comm_t comm, int rank, int n, void *arg)
{
	const double mine = rank + 1;
	double got = -1000, sum = 0;

	(void)arg;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_all_reduce(&got, &sum, 1, TUTTI_FLOAT64, TUTTI_SUM, comm, NULL));
	CHECK_OK(tutti_recv(&got, 1, TUTTI_FLOAT64, (rank + n - 1) % n, comm, NULL));
	CHECK_OK(tutti_send(&mine, 1, TUTTI_FLOAT64, (rank + 1) % n, comm, NULL));
	CHECK_OK(tutti_group_end());
	CHECK(sum == n * (n + 1) / 2);
}

static void transfers_run_before_collectives(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 3, .transport = transports[t] };

		assert_int_equal(world_run(&world, sum_of_received, NULL), 0);
	}
}

/* One thread plays all ranks. */
static void one_thread_many_ranks(void **state)
{
	enum { N = 5 };
	tutti_comm_t comms[N];
	float in[N][1000], out[N][1000];

	(void)state;
	assert_int_equal(tutti_comm_init_all(comms, N, NULL), TUTTI_OK);
	for (int round = 0; round < 10; round++) {
		assert_int_equal(tutti_group_start(), TUTTI_OK);
		for (int rank = 0; rank < N; rank++) {
			for (int i = 0; i < 1000; i++)
				in[rank][i] = (float)(rank + i % 7 + round);
			assert_int_equal(tutti_all_reduce(in[rank], out[rank], 1000, TUTTI_FLOAT32,
							  TUTTI_SUM, comms[rank], NULL),
					 TUTTI_OK);
		}
		assert_int_equal(tutti_group_end(), TUTTI_OK);
		for (int rank = 0; rank < N; rank++)
			for (int i = 0; i < 1000; i++)
				assert_true(out[rank][i] == (float)(10 + N * (i % 7 + round)));
	}
	for (int rank = 0; rank < N; rank++)
		assert_int_equal(tutti_comm_destroy(comms[rank]), TUTTI_OK);
}

static void init_inside_a_group(void **state)
{
	tutti_comm_t comms[3] = { NULL };
	tutti_unique_id id;
	int sum[3], one = 1;

	(void)state;
	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(tutti_comm_init_rank(&comms[rank], 3, id, rank), TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < 3; rank++)
		assert_int_equal(tutti_all_reduce(&one, &sum[rank], 1, TUTTI_INT32, TUTTI_SUM,
						  comms[rank], NULL),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(sum[rank], 3);
		assert_int_equal(tutti_comm_destroy(comms[rank]), TUTTI_OK);
	}
}

static void errors_in_groups(void **state)
{
	tutti_comm_t comm;
	int value = 1;

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_EUSAGE);
	/* A bad call spoils the group: nothing of it runs. */
	int sum = 7;

	assert_int_equal(tutti_group_start(), TUTTI_OK);
	assert_int_equal(tutti_all_reduce(&value, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL),
			 TUTTI_OK);
	assert_int_equal(tutti_send(&value, 1, TUTTI_INT32, 9, comm, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_group_end(), TUTTI_EINVAL);
	assert_int_equal(sum, 7);
	/* A send to oneself without a receive would wait for ever. */
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	assert_int_equal(tutti_send(&value, 1, TUTTI_INT32, 0, comm, NULL), TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_EUSAGE);
	assert_int_equal(tutti_send(&value, 1, TUTTI_INT32, 0, comm, NULL), TUTTI_EUSAGE);
	/* And the thread is free again. */
	assert_int_equal(tutti_all_reduce(&value, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL),
			 TUTTI_OK);
	assert_int_equal(sum, 1);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transfers_in_any_order),
		cmocka_unit_test(one_thread_sends_and_sums),
		cmocka_unit_test(collectives_beside_transfers),
		cmocka_unit_test(transfers_run_before_collectives),
		cmocka_unit_test(one_thread_many_ranks),
		cmocka_unit_test(init_inside_a_group),
		cmocka_unit_test(errors_in_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

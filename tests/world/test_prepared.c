/* SPDX-License-Identifier: BSD-3-Clause */
/* Short calls are kept with what was found right of them: a call that only looks like one of
 * them is looked at as any other, and what is kept never gets in the way of a later call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

#define RANKS  3
#define ROUNDS 3
#define MOST   40 /* counts in turn: several times as many as are kept */

static void run(const struct world *world, world_fn fn)
{
	assert_int_equal(world_run(world, fn, NULL), 0);
}

static void on_all(world_fn fn)
{
	run(&(struct world){ .n = RANKS }, fn);
	run(&(struct world){ .n = RANKS, .transport = "tcp" }, fn);
	run(&(struct world){ .n = RANKS, .reproducible = 1 }, fn);
}

/* The call that follows is the same again, and so is what it makes. */
static void check_sum(tutti_comm_t comm, int rank, int n)
{
	int in[4] = { rank, 1, 2, 3 }, out[4] = { 0 };

	CHECK_OK(tutti_all_reduce(in, out, 4, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK(out[0] == n * (n - 1) / 2 && out[1] == n && out[2] == 2 * n && out[3] == 3 * n);
}

static bool is_refused(tutti_status status, const char *fragment)
{
	return CHECK(status == TUTTI_EINVAL) && CHECK(strstr(tutti_last_error(NULL), fragment));
}

static void nearly_the_same(tutti_comm_t comm, int rank, int n, void *arg)
{
	int a[16] = { 0 }, b[16] = { 0 };

	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		check_sum(comm, rank, n);
		is_refused(tutti_all_reduce(NULL, b, 4, TUTTI_INT32, TUTTI_SUM, comm, NULL),
			   "send buffer of 16 bytes is NULL");
		is_refused(tutti_all_reduce(a, NULL, 4, TUTTI_INT32, TUTTI_SUM, comm, NULL),
			   "receive buffer of 16 bytes is NULL");
		is_refused(tutti_all_reduce(a, a + 1, 4, TUTTI_INT32, TUTTI_SUM, comm, NULL),
			   "overlap");
		is_refused(tutti_all_reduce((void *)(UINTPTR_MAX - 3), b, 4, TUTTI_INT32, TUTTI_SUM,
					    comm, NULL),
			   "past the end of memory");
		/* Another operation that is kept, and another root, if more than the bits that a
		 * type or an operation has were looked at. */
		CHECK_OK(tutti_all_reduce(a, b, 4, TUTTI_INT32, (tutti_op)(TUTTI_SUM + 1), comm,
					  NULL));
		is_refused(tutti_all_reduce(a, b, 4, (tutti_type)(TUTTI_INT32 + 256), TUTTI_SUM,
					    comm, NULL),
			   "type");
		CHECK_OK(tutti_reduce(a, b, 4, TUTTI_INT32, TUTTI_SUM, 1, comm, NULL));
		is_refused(tutti_reduce(a, b, 4, TUTTI_INT32, (tutti_op)(TUTTI_SUM + 65536), 0,
					comm, NULL),
			   "there is no operation");
		is_refused(tutti_all_reduce(a, b, SIZE_MAX, TUTTI_INT8, TUTTI_SUM, comm, NULL),
			   "overflow");
		CHECK_OK(tutti_all_gather(a + rank, a, 1, TUTTI_INT32, comm, NULL));
		is_refused(tutti_all_gather(a + (rank + 1) % n, a, 1, TUTTI_INT32, comm, NULL),
			   "overlap");
	}
}

static void what_looks_the_same_is_looked_at(void **state)
{
	(void)state;
	on_all(nearly_the_same);
}

static void in_turn(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in[MOST], out[MOST];

	(void)arg;
	for (int i = 0; i < MOST; i++)
		in[i] = i + rank;
	for (int round = 0; round < ROUNDS; round++)
		for (int count = 1; count <= MOST; count++) {
			memset(out, 0, sizeof(out));
			CHECK_OK(tutti_all_reduce(in, out, (size_t)count, TUTTI_INT32, TUTTI_SUM,
						  comm, NULL));
			for (int i = 0; i < count; i++)
				CHECK(out[i] == n * i + n * (n - 1) / 2);
			memcpy(out, in, sizeof(out));
			CHECK_OK(tutti_broadcast(out, out, (size_t)count, TUTTI_INT32, count % n,
						 comm, NULL));
			for (int i = 0; i < count; i++)
				CHECK(out[i] == i + count % n);
		}
}

static void more_than_are_kept(void **state)
{
	(void)state;
	on_all(in_turn);
}

/* In place on some ranks, and in every other round. */
static void in_place(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in[RANKS], out[RANKS];

	(void)arg;
	for (int round = 0; round < 4 * ROUNDS; round++) {
		int *const to = (round + rank) % 3 ? out : in;

		for (int i = 0; i < n; i++)
			in[i] = 100 * rank + i;
		CHECK_OK(tutti_all_to_all(in, to, 1, TUTTI_INT32, comm, NULL));
		for (int i = 0; i < n; i++)
			CHECK(to[i] == 100 * i + rank);
		in[0] = rank;
		CHECK_OK(tutti_all_reduce(in, to, 1, TUTTI_INT32, TUTTI_MAX, comm, NULL));
		CHECK(to[0] == n - 1);
	}
}

static void in_place_or_not(void **state)
{
	(void)state;
	on_all(in_place);
}

static void check_scaled(tutti_comm_t comm, int n, float factor)
{
	tutti_op op;

	CHECK_OK(tutti_op_create_premul_sum(&op, &factor, TUTTI_FLOAT32, TUTTI_SCALAR_NOW, comm));
	for (int i = 0; i < ROUNDS; i++) {
		const float one = 1;
		float sum = 0;

		CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_FLOAT32, op, comm, NULL));
		CHECK(sum == (float)n * factor);
	}
	CHECK_OK(tutti_op_destroy(op, comm));
}

/* The second operator has the first one's value. */
static void operators(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)rank;
	(void)arg;
	check_scaled(comm, n, 2);
	check_scaled(comm, n, 3);
}

static void operators_are_not_remembered(void **state)
{
	(void)state;
	on_all(operators);
}

/* Both are kept on all ranks. */
static void different(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in[8] = { 0 }, out[8];

	(void)n;
	(void)arg;
	for (int round = 0; round < 2 * ROUNDS; round++)
		CHECK_OK(tutti_all_reduce(in, out, round % 2 ? 4 : 8, TUTTI_INT32, TUTTI_SUM, comm,
					  NULL));
	CHECK(tutti_all_reduce(in, out, rank ? 4 : 8, TUTTI_INT32, TUTTI_SUM, comm, NULL) ==
	      TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), "all_reduce(8 x int32, sum"));
	CHECK(tutti_all_reduce(in, out, 4, TUTTI_INT32, TUTTI_SUM, comm, NULL) == TUTTI_EMISMATCH);
}

static void ranks_that_differ_find_out(void **state)
{
	(void)state;
	on_all(different);
}

/* Ranks 0 and 1, to and fro; beside them calls of all. */
static void to_and_fro(tutti_comm_t comm, int rank, int n, void *arg)
{
	int out[8], in[8];

	(void)arg;
	for (int round = 0; round < 4 * ROUNDS; round++) {
		const size_t count = (size_t)(round % 5);

		for (int i = 0; i < 8; i++)
			out[i] = 10 * round + i + rank;
		memset(in, 0, sizeof(in));
		if (rank == 0) {
			CHECK_OK(tutti_send(out, count, TUTTI_INT32, 1, comm, NULL));
			CHECK_OK(tutti_recv(in, 8, TUTTI_INT32, 1, comm, NULL));
			CHECK(in[7] == 10 * round + 8);
			is_refused(tutti_send(NULL, 4, TUTTI_INT32, 1, comm, NULL), "is NULL");
		} else if (rank == 1) {
			CHECK_OK(tutti_recv(count ? in : NULL, count, TUTTI_INT32, 0, comm, NULL));
			CHECK(count == 0 || in[count - 1] == 10 * round + (int)count - 1);
			CHECK(count == 8 || in[count] == 0);
			CHECK_OK(tutti_send(out, 8, TUTTI_INT32, 0, comm, NULL));
		}
		check_sum(comm, rank, n);
	}
	if (rank == 0) {
		CHECK_OK(tutti_send(out, 4, TUTTI_INT32, 1, comm, NULL));
		CHECK(tutti_recv(in, 8, TUTTI_INT32, 1, comm, NULL) < 0);
	} else if (rank == 1) {
		CHECK(tutti_recv(in, 3, TUTTI_INT32, 0, comm, NULL) == TUTTI_EMISMATCH);
		CHECK(strstr(tutti_last_error(comm),
			     "sends 4 x int32 to rank 1, which receives 3 x int32"));
	}
}

static void sends_and_receives(void **state)
{
	(void)state;
	on_all(to_and_fro);
}

static void finalized(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int one = 1;
	int sum;

	(void)arg;
	check_sum(comm, rank, n);
	check_sum(comm, rank, n);
	CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK_OK(tutti_comm_finalize(comm));
	CHECK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL) == TUTTI_EUSAGE);
	CHECK(strstr(tutti_last_error(NULL), "finalized"));
}

static void nothing_after_the_end(void **state)
{
	(void)state;
	on_all(finalized);
}

/* Calls on a stream and calls of the caller's thread share what is kept. */
static void beside_a_stream(tutti_comm_t comm, int rank, int n, void *arg)
{
	int in[ROUNDS], out[ROUNDS], sum;
	tutti_stream_t stream;

	(void)arg;
	CHECK_OK(tutti_stream_create(&stream));
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < ROUNDS; i++) {
			in[i] = rank + i + round;
			CHECK_OK(tutti_all_reduce(&in[i], &out[i], 1, TUTTI_INT32, TUTTI_SUM, comm,
						  stream));
		}
		CHECK_OK(tutti_all_reduce(&rank, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
		CHECK(sum == n * (n - 1) / 2);
		CHECK_OK(tutti_stream_synchronize(stream));
		for (int i = 0; i < ROUNDS; i++)
			CHECK(out[i] == sum + n * (i + round));
	}
	CHECK_OK(tutti_stream_destroy(stream));
}

static void streams_take_their_turn(void **state)
{
	(void)state;
	on_all(beside_a_stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_looks_the_same_is_looked_at),
		cmocka_unit_test(more_than_are_kept),
		cmocka_unit_test(in_place_or_not),
		cmocka_unit_test(operators_are_not_remembered),
		cmocka_unit_test(ranks_that_differ_find_out),
		cmocka_unit_test(sends_and_receives),
		cmocka_unit_test(nothing_after_the_end),
		cmocka_unit_test(streams_take_their_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

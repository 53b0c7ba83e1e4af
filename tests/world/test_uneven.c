/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with a count for each rank: in groups, on streams, with TUTTI_CHECK=1, and what does
 * not fit together. What they give is part of test_matrix.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/calls.h"
#include "support/world.h"

/* Nothing that is right is taken for an overlap. */
static void all_checked(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_collective colls[] = { TUTTI_ALL_TO_ALL_V, TUTTI_GATHER_V,
						  TUTTI_SCATTER_V, TUTTI_ALL_GATHER_V,
						  TUTTI_REDUCE_SCATTER_V };

	(void)arg;
	for (uint64_t k = 0; k < 5 * CALL_SPREADS * 4; k++) {
		const struct call call = { .coll = colls[k / 4 / CALL_SPREADS],
					   .type = TUTTI_FLOAT32,
					   .count = 200,
					   .root = (int)k % n,
					   .in_place = k / 2 % 2,
					   .spread = (enum call_spread)(k / 4 % CALL_SPREADS),
					   .seed = k };

		call_and_check(&call, comm, rank, n, NULL);
	}
}

static void checked(void **state)
{
	const struct world world = { .n = 4 };

	(void)state;
	assert_int_equal(world_run(&world, all_checked, NULL), 0);
}

/* -- In groups, on streams ----------------------------------------------------------- */

#define RANKS 4

/* What each rank has for each other: other counts both ways. */
static size_t count_of(int from, int to)
{
	return (size_t)(100 + 30 * from + 7 * to);
}

static float value_of(int from, int to, size_t i)
{
	return (float)(from * 1000 + to * 100 + (int)(i % 91));
}

struct lists {
	size_t send_counts[RANKS], send_displs[RANKS], recv_counts[RANKS], recv_displs[RANKS];
	float send[RANKS * 300], recv[RANKS * 300];
};

static void fill(struct lists *l, int rank)
{
	size_t sends = 0, recvs = 0;

	for (int peer = 0; peer < RANKS; peer++) {
		l->send_counts[peer] = count_of(rank, peer);
		l->recv_counts[peer] = count_of(peer, rank);
		l->send_displs[peer] = sends;
		l->recv_displs[peer] = recvs;
		for (size_t i = 0; i < l->send_counts[peer]; i++)
			l->send[sends + i] = value_of(rank, peer, i);
		sends += l->send_counts[peer];
		recvs += l->recv_counts[peer];
	}
}

static bool is_right(const struct lists *l, int rank)
{
	size_t at = 0;

	for (int from = 0; from < RANKS; from++)
		for (size_t i = 0; i < count_of(from, rank); i++)
			if (l->recv[at++] != value_of(from, rank, i))
				return false;
	return true;
}

/* Arrays are the caller's again as soon as the call has returned. */
static void queued(tutti_comm_t comm, int rank, int n, void *arg)
{
	const bool on_stream = *(const bool *)arg;
	struct lists *l = calloc(1, sizeof(*l));
	int out = rank + 1, in = 0;
	tutti_stream_t stream = NULL;

	fill(l, rank);
	if (on_stream)
		CHECK_OK(tutti_stream_create(&stream));
	else
		CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_all_to_all_v(l->send, l->send_counts, l->send_displs, l->recv,
				    l->recv_counts, l->recv_displs, TUTTI_FLOAT32, comm, stream));
	memset(l, 0xff, offsetof(struct lists, send));
	CHECK_OK(tutti_send_recv(&out, 1, (rank + 1) % n, &in, 1, (rank + n - 1) % n, TUTTI_INT32,
				 comm, stream));
	if (on_stream)
		CHECK_OK(tutti_stream_synchronize(stream));
	else
		CHECK_OK(tutti_group_end());
	CHECK(in == (rank + n - 1) % n + 1);
	CHECK(is_right(l, rank));
	CHECK(tutti_stream_destroy(stream) == TUTTI_OK);
	free(l);
}

static void groups_and_streams(void **state)
{
	const struct world world = { .n = RANKS };

	(void)state;
	for (int on_stream = 0; on_stream < 2; on_stream++)
		assert_int_equal(world_run(&world, queued, &(bool){ on_stream }), 0);
}

/* -- What does not fit together ------------------------------------------------------- */

static void refused(tutti_status st, const char *fragment)
{
	if (!CHECK(st == TUTTI_EMISMATCH) || !CHECK(strstr(tutti_last_error(NULL), fragment)))
		fprintf(stderr, "  %d, \"%s\" lacks \"%s\"\n", (int)st, tutti_last_error(NULL),
			fragment);
}

/* A rank whose part is over may learn of it in the next call. */
static tutti_status then_barrier(tutti_status st, tutti_comm_t comm)
{
	return st == TUTTI_OK ? tutti_barrier(comm, NULL) : st;
}

static void wrong_pair(tutti_comm_t comm, int rank, int n, void *arg)
{
	size_t sends[3] = { 4, 4, 4 }, recvs[3] = { 4, 4, 4 }, displs[3] = { 0, 4, 8 };
	int a[16] = { 0 }, b[16];

	(void)n;
	(void)arg;
	if (rank == 1)
		sends[2] = 3;
	refused(then_barrier(tutti_all_to_all_v(a, sends, displs, b, recvs, displs, TUTTI_INT32,
						comm, NULL),
			     comm),
		"rank 2 takes 4 elements from rank 1, which sends another number");
}

/* The same, but rank 1 is in the next call when it is asked, and waits for another one there. */
static void wrong_pair_long_ago(tutti_comm_t comm, int rank, int n, void *arg)
{
	size_t sends[3] = { 4, 4, 4 }, recvs[3] = { 4, 4, 4 }, displs[3] = { 0, 4, 8 };
	int a[16] = { 0 }, b[16];
	tutti_status st;

	(void)n;
	(void)arg;
	if (rank == 1)
		sends[2] = 3;
	st = tutti_all_to_all_v(a, sends, displs, b, recvs, displs, TUTTI_INT32, comm, NULL);
	if (rank == 0)
		nanosleep(&(struct timespec){ .tv_nsec = 900 * 1000 * 1000 }, NULL);
	refused(then_barrier(st, comm),
		"rank 2 takes 4 elements from rank 1, which sends another number");
}

static void wrong_part(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, 2, 2 }, displs[3] = { 0, 2, 4 };
	int a[8] = { 0 }, b[8];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_gather_v(a, rank == 2 ? 5 : 2, b, counts, displs, TUTTI_INT32, 0,
					    comm, NULL),
			     comm),
		"rank 0 takes 2 elements from rank 2, which sends another number");
}

static void wrong_root(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, 2, 2 }, displs[3] = { 0, 2, 4 };
	int a[8] = { 0 }, b[8];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_scatter_v(a, counts, displs, b, 2, TUTTI_INT32,
					     rank == 2 ? 2 : 0, comm, NULL),
			     comm),
		"called different things");
}

static void wrong_counts(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[3] = { 2, rank == 1 ? 1 : 2, rank == 1 ? 3 : 2 };
	const size_t displs[3] = { 0, 3, 6 };
	int a[8] = { 0 }, b[12];

	(void)n;
	(void)arg;
	refused(then_barrier(tutti_all_gather_v(a, b, counts, displs, TUTTI_INT32, comm, NULL),
			     comm),
		"6 x int32 in all, counts ");
}

static void mismatches(void **state)
{
	static const world_fn cases[] = { wrong_pair, wrong_pair_long_ago, wrong_part, wrong_root,
					  wrong_counts };
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t t = 0; t < 2; t++) {
			const struct world world = { .n = 3,
						     .transport = transports[t],
						     .timeout_ms = 20000 };

			if (world_run(&world, cases[i], NULL) > 0)
				fail_msg("case %zu over %s", i, transports[t]);
		}
}

/* TUTTI_CHECK=1: the second rank's part would lie over the first one's. */
static void one_place_for_two(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[2] = { 3, 3 }, displs[2] = { 0, 2 };
	int a[4] = { 0 }, b[8];

	(void)rank;
	(void)n;
	(void)arg;
	CHECK(tutti_all_gather_v(a, b, counts, displs, TUTTI_INT32, comm, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(NULL), "data of two ranks would be received into one place"));
}

static void parts_that_overlap(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, one_place_for_two, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checked),
		cmocka_unit_test(groups_and_streams),
		cmocka_unit_test(mismatches),
		cmocka_unit_test(parts_that_overlap),
	};

	/* Read once, by the first call. */
	setenv("TUTTI_CHECK", "1", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

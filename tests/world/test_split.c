/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators made of others: who is in them, that they work, that they are apart from
 * their parent and outlive it, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/sanitizer.h"
#include "support/world.h"

static const struct world worlds[] = {
	{ .n = 5 },
	{ .n = 5, .sockets = true },
	{ .n = 4, .sockets = true, .transport = "tcp" },
	{ .n = 2, .sockets = true },
};

static void on_all_worlds(world_fn fn)
{
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		assert_int_equal(world_run(&worlds[i], fn, NULL), 0);
}

/* Even and odd ranks, in reverse order. */
static void by_parity(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int color = rank % 2, size = (n + 1 - color) / 2;
	int expected = 0;
	tutti_comm_t half = NULL;

	(void)arg;
	if (!CHECK_OK(tutti_comm_split(comm, color, -rank, &half, NULL)))
		return;
	world_check_place(half, size - 1 - rank / 2, size);
	for (int i = color; i < n; i += 2)
		expected += 1 << i;
	CHECK(world_sum_over(half, 1 << rank) == expected);
	CHECK(world_sum_over(comm, 1) == n);
	world_check_large(half, size);
	world_check_large(comm, n);
	CHECK(world_sum_over(half, 1) == size);
	CHECK_OK(tutti_comm_destroy(half));
	CHECK(world_sum_over(comm, 2) == 2 * n);
}

static void halves(void **state)
{
	(void)state;
	on_all_worlds(by_parity);
}

/* Equal keys: by rank; only some take part; a child of a child; the parents go first. */
static void some_of_some(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t some = (tutti_comm_t)arg, copy = NULL, pair = NULL, own = NULL;

	CHECK_OK(tutti_comm_split(comm, rank == 0 ? TUTTI_NOCOLOR : 9, 3, &some, NULL));
	CHECK((some == NULL) == (rank == 0));
	CHECK_OK(tutti_comm_dup(comm, &own, NULL));
	if (rank == 0) {
		world_check_place(own, rank, n);
		CHECK(world_sum_over(own, 1) == n);
		CHECK_OK(tutti_comm_destroy(own));
		return;
	}
	world_check_place(some, rank - 1, n - 1);
	CHECK_OK(tutti_comm_dup(some, &copy, NULL));
	CHECK_OK(tutti_comm_split(copy, rank < 3 ? 0 : 1, rank, &pair, NULL));
	CHECK_OK(tutti_comm_destroy(copy));
	CHECK_OK(tutti_comm_destroy(some));
	CHECK(world_sum_over(own, 1) == n);
	CHECK(world_sum_over(pair, 1) == (rank < 3 ? (n > 2 ? 2 : 1) : n - 3));
	CHECK_OK(tutti_comm_destroy(own));
	CHECK_OK(tutti_comm_destroy(pair));
}

static void nested(void **state)
{
	(void)state;
	on_all_worlds(some_of_some);
}

/* -- Children outlive their root ------------------------------------------------------- */

struct member {
	tutti_comm_t root;
	int rank, n;
	pthread_t thread;
	tutti_unique_id id;
};

static void *outlive(void *self)
{
	struct member *member = self;
	tutti_comm_t child = NULL, other = NULL;

	if (!member->root &&
	    !CHECK_OK(tutti_comm_init_rank(&member->root, member->n, member->id, member->rank)))
		return NULL;
	CHECK_OK(tutti_comm_dup(member->root, &child, NULL));
	CHECK_OK(tutti_comm_destroy(member->root));
	CHECK(world_sum_over(child, 1) == member->n);
	CHECK_OK(tutti_comm_split(child, member->rank / 2, 0, &other, NULL));
	CHECK_OK(tutti_comm_destroy(child));
	CHECK(world_sum_over(other, 1) == 2);
	CHECK_OK(tutti_comm_destroy(other));
	return NULL;
}

static void orphans(void **state)
{
	(void)state;
	for (int sockets = 0; sockets < 2; sockets++) {
		tutti_comm_t comms[4] = { NULL };
		struct member members[4];
		tutti_unique_id id;

		if (sockets)
			assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
		else
			assert_int_equal(tutti_comm_init_all(comms, 4, NULL), TUTTI_OK);
		for (int rank = 0; rank < 4; rank++) {
			members[rank] =
				(struct member){ .root = comms[rank], .rank = rank, .n = 4 };
			if (sockets)
				members[rank].id = id;
			assert_int_equal(pthread_create(&members[rank].thread, NULL, outlive,
							&members[rank]),
					 0);
		}
		for (int rank = 0; rank < 4; rank++)
			pthread_join(members[rank].thread, NULL);
	}
	assert_int_equal(world_failures(), 0);
}

/* -- Beside what runs --------------------------------------------------------------------- */

/* The call on the parent has begun on rank 0 alone when all split; it ends afterwards. */
static void beside_a_call(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_stream_t stream = NULL;
	tutti_comm_t child = NULL;
	int one = 1, sum = 0;

	(void)arg;
	CHECK_OK(tutti_stream_create(&stream));
	if (rank == 0)
		CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK_OK(tutti_comm_split(comm, 0, rank, &child, NULL));
	CHECK(world_sum_over(child, 1) == n);
	if (rank == 0)
		CHECK(tutti_stream_query(stream) == TUTTI_AGAIN);
	CHECK(world_sum_over(child, 1) == n);
	if (rank != 0)
		CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK_OK(tutti_stream_destroy(stream));
	CHECK(sum == n);
	CHECK_OK(tutti_comm_destroy(child));
}

static void in_flight(void **state)
{
	(void)state;
	on_all_worlds(beside_a_call);
}

/* One thread, all ranks: splits of several in one group. */
static void grouped(void **state)
{
	tutti_comm_t comms[6], halves_of[6] = { NULL };
	int sums[6];

	(void)state;
	assert_int_equal(tutti_comm_init_all(comms, 6, NULL), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < 6; rank++)
		assert_int_equal(tutti_comm_split(comms[rank], rank == 5 ? TUTTI_NOCOLOR : rank % 2,
						  0, &halves_of[rank], NULL),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	assert_null(halves_of[5]);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < 5; rank++) {
		sums[rank] = 1;
		assert_int_equal(tutti_all_reduce(&sums[rank], &sums[rank], 1, TUTTI_INT32,
						  TUTTI_SUM, halves_of[rank], NULL),
				 TUTTI_OK);
	}
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int rank = 0; rank < 5; rank++) {
		assert_int_equal(sums[rank], rank % 2 ? 2 : 3);
		tutti_comm_destroy(halves_of[rank]);
	}
	for (int rank = 0; rank < 6; rank++)
		tutti_comm_destroy(comms[rank]);
}

/* Made aside, asked until it is there. */
static void made_aside(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_status status = TUTTI_AGAIN;
	tutti_comm_t child = NULL;

	(void)arg;
	config.blocking = 0;
	CHECK_OK(tutti_comm_split(comm, 0, rank, &child, &config));
	while (status == TUTTI_AGAIN)
		CHECK_OK(tutti_comm_get_async_error(child, &status));
	CHECK_OK(status);
	CHECK(world_sum_over(child, 1) == n);
	CHECK_OK(tutti_comm_destroy(child));
}

static void nonblocking(void **state)
{
	(void)state;
	on_all_worlds(made_aside);
}

/* -- What it takes -------------------------------------------------------------------------- */

static int count_segments(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:tutti") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

static pthread_barrier_t all_have;

/* A rank alone: it works, and there is no more shared memory than before. */
static void one_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	int before, after;
	tutti_comm_t alone = NULL;

	(void)arg;
	(void)n;
	pthread_barrier_wait(&all_have);
	before = count_segments();
	pthread_barrier_wait(&all_have);
	CHECK_OK(tutti_comm_split(comm, rank, 0, &alone, NULL));
	world_check_place(alone, 0, 1);
	CHECK(world_sum_over(alone, 7) == 7);
	world_check_large(alone, 1);
	CHECK_OK(tutti_barrier(alone, NULL));
	pthread_barrier_wait(&all_have);
	after = count_segments();
	CHECK(after == before);
	pthread_barrier_wait(&all_have);
	CHECK_OK(tutti_comm_destroy(alone));
}

static void alone_without_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		pthread_barrier_init(&all_have, NULL, (unsigned)worlds[i].n);
		assert_int_equal(world_run(&worlds[i], one_rank, NULL), 0);
		pthread_barrier_destroy(&all_have);
	}
}

/* -- What is refused ------------------------------------------------------------------------- */

static void wrong_use(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t child = NULL;

	(void)arg;
	CHECK(tutti_comm_split(comm, -2, 0, &child, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(NULL), "color is -2") != NULL);
	CHECK(tutti_comm_split(comm, 0, 0, NULL, NULL) == TUTTI_EINVAL);
	CHECK(tutti_comm_split(NULL, 0, 0, &child, NULL) == TUTTI_EINVAL);
	config.timeout_ms = -1;
	CHECK(tutti_comm_split(comm, 0, 0, &child, &config) == TUTTI_EINVAL);
	config.timeout_ms = 0;
	config.algo = rank == 0 ? "all_reduce:ring" : "all_reduce:direct";
	CHECK(tutti_comm_split(comm, 0, 0, &child, &config) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(NULL), "configure") != NULL);
	/* None of it did harm. */
	CHECK_OK(tutti_comm_split(comm, 0, 0, &child, NULL));
	CHECK(world_sum_over(child, 1) == n);
	CHECK_OK(tutti_comm_destroy(child));
}

static void refused(void **state)
{
	(void)state;
	on_all_worlds(wrong_use);
}

/* A child that is lost leaves its parent and its sister alone; a lost parent has no more
 * children. */
static void lost_child(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t child = NULL, sister = NULL, late = NULL;
	int one = 1;

	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	CHECK_OK(tutti_comm_dup(comm, &sister, NULL));
	/* Ranks call different things: all of them hear of it. */
	if (rank == 0)
		CHECK(tutti_barrier(child, NULL) == TUTTI_EMISMATCH);
	else
		CHECK(tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, child, NULL) ==
		      TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(child), "called different things") != NULL);
	CHECK(tutti_comm_dup(child, &late, NULL) == TUTTI_EMISMATCH);
	CHECK(world_sum_over(comm, 1) == n);
	CHECK(world_sum_over(sister, 1) == n);
	CHECK_OK(tutti_comm_destroy(child));
	CHECK(world_sum_over(sister, 1) == n);
	CHECK_OK(tutti_comm_destroy(sister));
}

static void losses_are_apart(void **state)
{
	(void)state;
	on_all_worlds(lost_child);
}

/* Connections in steady use for seconds, by more ranks than there are cores. */
static void many_in_a_row(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t copy;

	(void)arg;
	for (int i = 0; i < 24; i++) {
		if (!CHECK_OK(tutti_comm_dup(comm, &copy, NULL)))
			return;
		world_check_place(copy, rank, n);
		CHECK_OK(tutti_comm_destroy(copy));
	}
}

static void duplicated_again_and_again(void **state)
{
	const struct world world = { .n = SANITIZED ? 12 : 32, .sockets = true };

	(void)state;
	assert_int_equal(world_run(&world, many_in_a_row, NULL), 0);
}

/* A rank that has closed a child is missed there, by those who still call it. */
static void left_child(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t child = NULL;

	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &child, NULL));
	CHECK(world_sum_over(child, 1) == n);
	if (rank != n - 1)
		CHECK(tutti_barrier(child, NULL) == TUTTI_EPEER);
	CHECK_OK(tutti_comm_destroy(child));
	CHECK(world_sum_over(comm, 1) == n);
}

static void left(void **state)
{
	(void)state;
	on_all_worlds(left_child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves),
		cmocka_unit_test(nested),
		cmocka_unit_test(orphans),
		cmocka_unit_test(in_flight),
		cmocka_unit_test(grouped),
		cmocka_unit_test(nonblocking),
		cmocka_unit_test(alone_without_memory),
		cmocka_unit_test(refused),
		cmocka_unit_test(losses_are_apart),
		cmocka_unit_test(duplicated_again_and_again),
		cmocka_unit_test(left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

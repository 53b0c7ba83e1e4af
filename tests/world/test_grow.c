/* SPDX-License-Identifier: BSD-3-Clause */
/* New ranks join: in which order they are, that it works, that parent and child do not need
 * each other, and that the parent works on when it fails. New ranks that die are
 * tests/mp/test_grow.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/world.h"

static const struct world worlds[] = {
	{ .n = 1 },
	{ .n = 3 },
	{ .n = 3, .sockets = true },
	{ .n = 1, .sockets = true, .transport = "tcp" },
	{ .n = 3, .sockets = true, .transport = "tcp" },
};

#define MOST 8

/* A world that grows, and by how many. */
struct growth {
	const struct world *world;
	int more;
};

static void on_all_worlds(world_fn fn)
{
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		struct growth growth = { &worlds[i], worlds[i].n == 1 ? 1 : 2 };

		assert_int_equal(world_run(&worlds[i], fn, &growth), 0);
	}
}

/* What all ranks of what has grown do, old and new. */
static void use(tutti_comm_t comm, int rank, int n, struct growth *growth)
{
	(void)growth;
	world_check_place(comm, rank, n);
	CHECK(world_sum_over(comm, 1 << rank) == (1 << n) - 1);
	world_check_large(comm, n);
}

typedef void (*use_fn)(tutti_comm_t comm, int rank, int n, struct growth *growth);

/* -- New ranks, as threads ------------------------------------------------------------ */

struct recruit {
	pthread_t thread;
	tutti_unique_id id;
	int rank, n;
	struct growth *growth;
	use_fn use;
	tutti_status expected;
};

static void *join(void *self)
{
	struct recruit *recruit = self;
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;

	config.transport = recruit->growth->world->transport;
	CHECK(tutti_comm_grow(NULL, recruit->n, &recruit->id, recruit->rank, &comm, &config) ==
	      recruit->expected);
	if (comm)
		recruit->use(comm, recruit->rank, recruit->n, recruit->growth);
	CHECK_OK(tutti_comm_destroy(comm));
	return NULL;
}

/* Ranks first .. n-1 of n. */
static void recruit(struct recruit *recruits, const tutti_unique_id *id, int first, int n,
		    struct growth *growth, use_fn fn)
{
	for (int rank = first; rank < n; rank++) {
		struct recruit *new = &recruits[rank - first];

		*new = (struct recruit){
			.id = *id, .rank = rank, .n = n, .growth = growth, .use = fn
		};
		if (pthread_create(&new->thread, NULL, join, new) != 0)
			abort();
	}
}

static void discharge(struct recruit *recruits, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(recruits[i].thread, NULL);
}

/* Grow from n to `total`; `maker` makes the id, which it alone passes, and the new ranks.
 * All use what comes out. */
static void grow(tutti_comm_t comm, int rank, int n, int total, int maker, struct growth *growth,
		 use_fn fn)
{
	struct recruit recruits[MOST];
	tutti_comm_t grown = NULL;
	tutti_unique_id id;

	if (rank == maker) {
		CHECK_OK(tutti_get_unique_id(&id));
		recruit(recruits, &id, n, total, growth, fn);
	}
	if (CHECK_OK(tutti_comm_grow(comm, total, rank == maker ? &id : NULL, -1, &grown, NULL)))
		fn(grown, rank, total, growth);
	CHECK_OK(tutti_comm_destroy(grown));
	if (rank == maker)
		discharge(recruits, total - n);
}

/* -- What works ------------------------------------------------------------------------ */

static void grow_twice(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct growth *growth = arg;

	CHECK(world_sum_over(comm, 1) == n);
	grow(comm, rank, n, n + growth->more, 0, growth, use);
	CHECK(world_sum_over(comm, 1) == n);
	grow(comm, rank, n, n + 1, n - 1, growth, use);
	CHECK(world_sum_over(comm, 2) == 2 * n);
}

static void it_grows(void **state)
{
	(void)state;
	on_all_worlds(grow_twice);
}

/* What has grown has children, and grows again, by a rank that was new. */
static void use_and_grow(tutti_comm_t comm, int rank, int n, struct growth *growth)
{
	tutti_comm_t copy = NULL, half = NULL;

	CHECK_OK(tutti_comm_dup(comm, &copy, NULL));
	CHECK_OK(tutti_comm_split(comm, rank % 2, -rank, &half, NULL));
	use(comm, rank, n, growth);
	use(copy, rank, n, growth);
	CHECK(world_sum_over(half, 1) == (n + 1 - rank % 2) / 2);
	CHECK_OK(tutti_comm_destroy(half));
	grow(copy, rank, n, n + 1, n - 1, growth, use);
	CHECK_OK(tutti_comm_destroy(copy));
	use(comm, rank, n, growth);
}

/* The parent, itself a child, goes while its child is there. */
static void grow_a_child(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct growth *growth = arg;
	struct recruit recruits[MOST];
	tutti_comm_t parent = NULL, grown = NULL;
	const int total = n + growth->more;
	tutti_unique_id id;

	CHECK_OK(tutti_comm_dup(comm, &parent, NULL));
	if (rank == 0) {
		CHECK_OK(tutti_get_unique_id(&id));
		recruit(recruits, &id, n, total, growth, use_and_grow);
	}
	CHECK_OK(tutti_comm_grow(parent, total, rank == 0 ? &id : NULL, rank, &grown, NULL));
	CHECK_OK(tutti_comm_destroy(parent));
	if (grown)
		use_and_grow(grown, rank, total, growth);
	CHECK_OK(tutti_comm_destroy(grown));
	if (rank == 0)
		discharge(recruits, growth->more);
	CHECK(world_sum_over(comm, 1) == n);
}

static void nested(void **state)
{
	(void)state;
	on_all_worlds(grow_a_child);
}

/* One has left: what is left grows to as many as before. */
static void replace_one(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct growth *growth = arg;
	tutti_comm_t rest = NULL, grown = NULL;

	if (rank == 1)
		return; /* its communicator is destroyed */
	if (n == 1) {
		CHECK_OK(tutti_comm_revoke(comm));
		CHECK(tutti_comm_grow(comm, 2, NULL, -1, &grown, NULL) == TUTTI_EREVOKED);
	}
	CHECK_OK(tutti_comm_shrink(comm, NULL, 0, &rest, NULL, TUTTI_SHRINK_FAILED));
	CHECK(tutti_comm_grow(comm, n, NULL, -1, &grown, NULL) <= TUTTI_STATUS_LOST);
	grow(rest, rank == 0 ? 0 : rank - 1, n == 1 ? 1 : n - 1, n == 1 ? 2 : n, 0, growth, use);
	CHECK_OK(tutti_comm_destroy(rest));
}

static void replaced(void **state)
{
	(void)state;
	on_all_worlds(replace_one);
}

static void await(tutti_comm_t comm)
{
	const struct timespec nap = { .tv_nsec = 200 * 1000 };
	tutti_status status = TUTTI_AGAIN;

	while (status == TUTTI_AGAIN) {
		CHECK_OK(tutti_comm_get_async_error(comm, &status));
		nanosleep(&nap, NULL);
	}
	CHECK(status == TUTTI_OK);
}

/* Without waiting: beside calls on the parent; two at once, which are told apart. */
static void grow_aside(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct growth *growth = arg;
	struct recruit recruits[2][MOST];
	const int total[2] = { n + growth->more, n + 1 };
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t grown[2] = { NULL };
	tutti_unique_id id[2];

	config.blocking = 0;
	for (int i = 0; i < 2; i++) {
		if (rank == 0)
			CHECK_OK(tutti_get_unique_id(&id[i]));
		CHECK_OK(tutti_comm_grow(comm, total[i], rank == 0 ? &id[i] : NULL, -1, &grown[i],
					 &config));
	}
	world_check_large(comm, n);
	for (int i = 1; i >= 0; i--) {
		if (rank == 0)
			recruit(recruits[i], &id[i], n, total[i], growth, use);
		await(grown[i]);
		use(grown[i], rank, total[i], growth);
		CHECK_OK(tutti_comm_destroy(grown[i]));
	}
	for (int i = 0; i < 2 && rank == 0; i++)
		discharge(recruits[i], total[i] - n);
}

static void aside(void **state)
{
	(void)state;
	on_all_worlds(grow_aside);
}

/* -- What does not ------------------------------------------------------------------------- */

/* All ranks are told alike, at once, and the next one is not confused by it. */
static void wrong_use(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t grown = NULL;
	tutti_unique_id id, *given = rank == 0 ? &id : NULL;

	CHECK_OK(tutti_get_unique_id(&id));
	CHECK(tutti_comm_grow(comm, n + 1, NULL, -1, &grown, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "passes an id") != NULL);
	CHECK(tutti_comm_grow(comm, n, given, -1, &grown, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "cannot grow to") != NULL);
	CHECK(tutti_comm_grow(comm, n + 1, given, rank == 0 ? n : -1, &grown, NULL) ==
	      TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "rank 0 wants to be rank") != NULL);
	if (n > 1) {
		CHECK(tutti_comm_grow(comm, n + rank, given, -1, &grown, NULL) == TUTTI_EINVAL);
		CHECK(strstr(tutti_last_error(comm), "rank 1 wants") != NULL);
		CHECK(tutti_comm_grow(comm, n + 1, &id, -1, &grown, NULL) == TUTTI_EINVAL);
		CHECK(strstr(tutti_last_error(comm), "different ids") != NULL);
	}
	id.bytes[40] ^= 1;
	CHECK(tutti_comm_grow(comm, n + 1, given, -1, &grown, NULL) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(comm), "damaged") != NULL);
	CHECK(tutti_comm_grow(comm, n + 1, given, -1, NULL, NULL) == TUTTI_EINVAL);
	CHECK(tutti_comm_grow(NULL, n + 1, NULL, n, &grown, NULL) == TUTTI_EINVAL);
	CHECK(grown == NULL);
	grow(comm, rank, n, n + 1, 0, arg, use);
}

static void refused(void **state)
{
	(void)state;
	on_all_worlds(wrong_use);
}

/* As wrong_use(), but it is the new rank's mistake. */
static void try_with(tutti_comm_t comm, int rank, int n, struct recruit wrong, const char *text)
{
	tutti_comm_t grown = NULL;
	tutti_unique_id id;

	if (rank == 0) {
		CHECK_OK(tutti_get_unique_id(&id));
		wrong.id = id;
		wrong.use = use;
		wrong.expected = TUTTI_EMISMATCH;
		CHECK(pthread_create(&wrong.thread, NULL, join, &wrong) == 0);
	}
	CHECK(tutti_comm_grow(comm, n + 1, rank == 0 ? &id : NULL, -1, &grown, NULL) ==
	      TUTTI_EMISMATCH);
	CHECK(strstr(tutti_last_error(comm), text) != NULL);
	if (rank == 0)
		pthread_join(wrong.thread, NULL);
	CHECK(world_sum_over(comm, 1) == n);
}

static void wrong_recruit(tutti_comm_t comm, int rank, int n, void *arg)
{
	try_with(comm, rank, n, (struct recruit){ .rank = n, .n = n + 2, .growth = arg },
		 "pass the same to all");
	try_with(comm, rank, n, (struct recruit){ .rank = 0, .n = n + 1, .growth = arg },
		 "rank 0 came twice");
	grow(comm, rank, n, n + 1, 0, arg, use);
}

static void misled(void **state)
{
	(void)state;
	on_all_worlds(wrong_recruit);
}

/* The id that the parent was made by is served no more: that need not be waited for. */
static void used_id(void **state)
{
	tutti_comm_t comm = NULL, copy = NULL, grown = NULL;
	tutti_unique_id id;

	(void)state;
	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_comm_init_rank(&comm, 1, id, 0), TUTTI_OK);
	assert_int_equal(tutti_comm_dup(comm, &copy, NULL), TUTTI_OK);
	assert_int_equal(tutti_comm_grow(comm, 2, &id, -1, &grown, NULL), TUTTI_EINVAL);
	assert_non_null(strstr(tutti_last_error(comm), "was made by"));
	assert_int_equal(tutti_comm_grow(copy, 2, &id, -1, &grown, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(copy), TUTTI_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows), cmocka_unit_test(nested),  cmocka_unit_test(replaced),
		cmocka_unit_test(aside),    cmocka_unit_test(refused), cmocka_unit_test(misled),
		cmocka_unit_test(used_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that some ranks make without the others: who is in them, many at a time, beside calls on
 * their parent, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

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

/* -- Any groups, from several threads ------------------------------------------------------ */

#define THREADS 3
#define ROUNDS  6

/* Which ranks, in which order, in a round of a thread: alike on all. */
static int choose(int thread, int round, int n, int *ranks)
{
	unsigned seed = (unsigned)(thread * 1000 + round + n * 77);
	int count = 0;

	for (int rank = 0; rank < n; rank++)
		if (rand_r(&seed) % 3)
			ranks[count++] = rank;
	if (!count)
		ranks[count++] = round % n;
	for (int i = count - 1; i > 0; i--) {
		const int k = rand_r(&seed) % (i + 1), kept = ranks[i];

		ranks[i] = ranks[k];
		ranks[k] = kept;
	}
	return count;
}

struct maker {
	tutti_comm_t comm;
	int thread, rank, n;
	pthread_t id;
};

/* What descends from it works like any other. */
static void use_descendants(tutti_comm_t group, int place, int count)
{
	tutti_comm_t half = NULL, rest = NULL, again = NULL;
	const int last = count - 1;
	int all[8];

	CHECK_OK(tutti_comm_split(group, place % 2, -place, &half, NULL));
	CHECK(world_sum_over(half, 1) == (count + 1 - place % 2) / 2);
	CHECK_OK(tutti_comm_destroy(half));
	if (place != last) {
		CHECK_OK(tutti_comm_shrink(group, &last, 1, &rest, NULL, TUTTI_SHRINK_DEFAULT));
		world_check_place(rest, place, count - 1);
		CHECK_OK(tutti_comm_destroy(rest));
	}
	for (int i = 0; i < count; i++)
		all[i] = last - i;
	CHECK_OK(tutti_comm_create_group(group, all, count, 0, &again, NULL));
	world_check_place(again, last - place, count);
	CHECK(world_sum_over(again, 1) == count);
	CHECK_OK(tutti_comm_destroy(again));
}

static void *make_groups(void *self)
{
	const struct maker *maker = self;

	for (int round = 0; round < ROUNDS; round++) {
		int ranks[8], place = -1, expected = 0;
		/* The same ranks twice in a row are two communicators. */
		const int count = choose(maker->thread, round / 2, maker->n, ranks);
		tutti_comm_t group = NULL;

		for (int i = 0; i < count; i++) {
			expected += 1 << ranks[i];
			if (ranks[i] == maker->rank)
				place = i;
		}
		if (place < 0)
			continue;
		if (!CHECK_OK(tutti_comm_create_group(maker->comm, ranks, count, maker->thread,
						      &group, NULL)))
			break;
		world_check_place(group, place, count);
		CHECK(world_sum_over(group, 1 << maker->rank) == expected);
		world_check_large(group, count);
		if (round == maker->thread)
			use_descendants(group, place, count);
		CHECK_OK(tutti_comm_destroy(group));
	}
	return NULL;
}

static void beside_the_parent(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct maker makers[THREADS];

	(void)arg;
	for (int i = 0; i < THREADS; i++) {
		makers[i] = (struct maker){ .comm = comm, .thread = i, .rank = rank, .n = n };
		CHECK(pthread_create(&makers[i].id, NULL, make_groups, &makers[i]) == 0);
	}
	for (int i = 0; i < 20; i++)
		CHECK(world_sum_over(comm, 1) == n);
	for (int i = 0; i < THREADS; i++)
		pthread_join(makers[i].id, NULL);
	CHECK(world_sum_over(comm, 2) == 2 * n);
}

static void many_at_a_time(void **state)
{
	(void)state;
	on_all_worlds(beside_the_parent);
}

/* -- By one thread at a time ----------------------------------------------------------------- */

/* Ranks 0 and last, then 0 and 1, in one group of calls; the others are in a barrier of the parent. */
static void in_a_group(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int far[] = { n - 1, 0 }, near[] = { 0, 1 };
	tutti_comm_t first = NULL, second = NULL, own = NULL;

	(void)arg;
	CHECK_OK(tutti_group_start());
	if (rank == 0 || rank == n - 1)
		CHECK_OK(tutti_comm_create_group(comm, far, 2, 7, &first, NULL));
	if (rank < 2)
		CHECK_OK(tutti_comm_create_group(comm, near, 2, 8, &second, NULL));
	CHECK_OK(tutti_comm_create_group(comm, &rank, 1, 9, &own, NULL));
	CHECK_OK(tutti_group_end());
	CHECK_OK(tutti_barrier(comm, NULL));
	world_check_place(own, 0, 1);
	if (first)
		world_check_place(first, rank == 0, 2);
	if (second)
		world_check_place(second, rank, 2);
	CHECK((first != NULL) == (rank == 0 || rank == n - 1));
	CHECK((second != NULL) == (rank < 2));
	CHECK_OK(tutti_comm_destroy(own));
	CHECK_OK(tutti_comm_destroy(first));
	CHECK_OK(tutti_comm_destroy(second));
}

static void grouped(void **state)
{
	(void)state;
	on_all_worlds(in_a_group);
}

/* A group goes on when its parent is gone. */
static void outlives(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t copy = NULL, group = NULL;
	tutti_status st = TUTTI_AGAIN;
	int ranks[8];

	(void)arg;
	for (int i = 0; i < n; i++)
		ranks[i] = (i + 1) % n;
	config.blocking = 0;
	CHECK_OK(tutti_comm_dup(comm, &copy, NULL));
	CHECK_OK(tutti_comm_create_group(copy, ranks, n, 0, &group, &config));
	while (st == TUTTI_AGAIN)
		if (!CHECK_OK(tutti_comm_get_async_error(group, &st)))
			return;
	CHECK_OK(st);
	CHECK_OK(tutti_comm_destroy(copy));
	world_check_place(group, (rank + n - 1) % n, n);
	CHECK(world_sum_over(group, 1) == n);
	CHECK_OK(tutti_comm_destroy(group));
}

static void parents_go_first(void **state)
{
	(void)state;
	on_all_worlds(outlives);
}

/* -- Mistakes ------------------------------------------------------------------------------- */

static void refused(tutti_comm_t comm, tutti_status expected, const char *text, tutti_status status)
{
	CHECK(status == expected);
	CHECK(strstr(tutti_last_error(comm), text) != NULL);
}

static void alone(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int none[] = { (rank + 1) % n }, twice[] = { rank, rank }, outside[] = { rank, n },
		  below[] = { -1, rank };
	tutti_comm_t out = NULL;

	(void)arg;
	refused(comm, TUTTI_EINVAL, "and is not among the 1 ranks",
		tutti_comm_create_group(comm, none, 1, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "which is there before",
		tutti_comm_create_group(comm, twice, 2, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "there are 0 to",
		tutti_comm_create_group(comm, outside, 2, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "there are 0 to",
		tutti_comm_create_group(comm, below, 2, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "pass 1 to",
		tutti_comm_create_group(comm, NULL, 1, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "pass 1 to",
		tutti_comm_create_group(comm, none, 0, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "pass 1 to",
		tutti_comm_create_group(comm, none, -1, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "pass 1 to",
		tutti_comm_create_group(comm, none, n + 1, 0, &out, NULL));
	refused(comm, TUTTI_EINVAL, "tag is -1",
		tutti_comm_create_group(comm, &rank, 1, -1, &out, NULL));
	refused(comm, TUTTI_EINVAL, "out is NULL",
		tutti_comm_create_group(comm, &rank, 1, 0, NULL, NULL));
	CHECK(out == NULL);
	CHECK(world_sum_over(comm, 1) == n);
}

static void wrong_arguments(void **state)
{
	(void)state;
	on_all_worlds(alone);
}

/* All members are told, by what both sides passed, and the parent goes on. */
static void different(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int all[] = { 0, 1, 2, 3, 4 }, other[] = { 1, 0 }, some[] = { n - 1, 0 };
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t out = NULL;
	int sum;

	(void)arg;
	if (rank < 2) {
		refused(comm, TUTTI_EMISMATCH, "passes ranks 1, 0",
			tutti_comm_create_group(comm, rank ? other : all, 2, 5, &out, NULL));
		CHECK(strstr(tutti_last_error(comm), "passes ranks 0, 1") != NULL);
	}
	/* The last rank would make another one with rank 0 alone. */
	if (n > 2) {
		refused(comm, TUTTI_EMISMATCH, "passes ranks 0, 1, 2",
			rank == n - 1 ? tutti_comm_create_group(comm, some, 2, 6, &out, NULL)
				      : tutti_comm_create_group(comm, all, n, 6, &out, NULL));
		CHECK(strstr(tutti_last_error(comm), "with tag 6") != NULL);
	}
	config.reproducible = rank == 1;
	refused(comm, TUTTI_EINVAL, "ranks 0 and 1 configure",
		tutti_comm_create_group(comm, all, n, 7, &out, &config));
	/* With another tag the same ranks make one. */
	CHECK_OK(tutti_comm_create_group(comm, all, n, 8, &out, NULL));
	sum = world_sum_over(out, 1);
	CHECK(sum == n);
	CHECK_OK(tutti_comm_destroy(out));
	CHECK(world_sum_over(comm, 1) == n);
}

static void different_ranks(void **state)
{
	(void)state;
	on_all_worlds(different);
}

/* Rank 1 comes to a call that rank 0 has given up, is told so, and both meet in the next. */
static void one_is_late(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int pair[] = { 0, 1 };
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t out = NULL;

	(void)arg;
	config.blocking = 0;
	if (rank == 0) {
		CHECK_OK(tutti_comm_create_group(comm, pair, 2, 1, &out, &config));
		CHECK_OK(tutti_comm_abort(out));
	}
	CHECK(world_sum_over(comm, 1) == n);
	if (rank == 1)
		refused(comm, TUTTI_EABORTED, "aborted on rank 0",
			tutti_comm_create_group(comm, pair, 2, 1, &out, NULL));
	if (rank < 2 && CHECK_OK(tutti_comm_create_group(comm, pair, 2, 1, &out, NULL))) {
		CHECK(world_sum_over(out, 1) == 2);
		CHECK_OK(tutti_comm_destroy(out));
	}
}

static void a_call_that_was_given_up(void **state)
{
	(void)state;
	on_all_worlds(one_is_late);
}

static _Atomic bool is_told;

static void *make_a_pair(void *self)
{
	const struct maker *maker = self;
	const int pair[] = { 0, 1 };
	tutti_comm_t out = NULL;
	tutti_status st;

	do
		st = tutti_comm_create_group(maker->comm, pair, 2, 3, &out, NULL);
	while (st == TUTTI_EUSAGE); /* the other thread was first */
	CHECK_OK(st);
	CHECK_OK(tutti_comm_destroy(out));
	return NULL;
}

/* Rank 1 comes when rank 0 was told that it is in a call with that tag already. */
static void one_tag(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct maker maker = { .comm = comm, .rank = rank, .n = n };
	tutti_status st = TUTTI_OK;

	(void)arg;
	if (rank == 0) {
		CHECK(pthread_create(&maker.id, NULL, make_a_pair, &maker) == 0);
		while (st == TUTTI_OK) {
			tutti_comm_t own = NULL;

			st = tutti_comm_create_group(comm, &rank, 1, 3, &own, NULL);
			tutti_comm_destroy(own);
		}
		CHECK(st == TUTTI_EUSAGE);
		CHECK(strstr(tutti_last_error(NULL), "with tag 3") != NULL);
		is_told = true;
		pthread_join(maker.id, NULL);
	} else if (rank == 1) {
		while (!is_told)
			sched_yield();
		make_a_pair(&maker);
	}
}

static void the_same_tag_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		is_told = false;
		assert_int_equal(world_run(&worlds[i], one_tag, NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_at_a_time),           cmocka_unit_test(grouped),
		cmocka_unit_test(parents_go_first),         cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(different_ranks),          cmocka_unit_test(the_same_tag_twice),
		cmocka_unit_test(a_call_that_was_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

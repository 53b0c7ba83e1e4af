/* SPDX-License-Identifier: BSD-3-Clause */
/* Revoked, and shrunk: by name, without those that have left, and what is refused. Ranks
 * that die are tests/mp/test_shrink.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/world.h"
#include "util/clock.h"

static const struct world worlds[] = {
	{ .n = 5 },
	{ .n = 5, .sockets = true },
	{ .n = 4, .sockets = true, .transport = "tcp" },
};

static void on_all_worlds(world_fn fn)
{
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		assert_int_equal(world_run(&worlds[i], fn, NULL), 0);
}

/* Ranks 1 and 2 do not come along; the parent goes on. */
static void by_name(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int exclude[] = { 2, 1 };
	tutti_comm_t rest = NULL, less = NULL;
	int place = -1;

	(void)arg;
	if (rank != 1 && rank != 2) {
		CHECK_OK(tutti_comm_shrink(comm, exclude, 2, &rest, NULL, TUTTI_SHRINK_DEFAULT));
		CHECK_OK(tutti_comm_rank(rest, &place));
		CHECK(place == (rank == 0 ? 0 : rank - 2));
		CHECK(world_sum_over(rest, 1) == n - 2);
		if (place > 0) {
			CHECK_OK(tutti_comm_shrink(rest, (int[]){ 0 }, 1, &less, NULL, 0));
			CHECK(world_sum_over(less, 1) == n - 3);
			CHECK_OK(tutti_comm_destroy(less));
		}
		CHECK_OK(tutti_comm_destroy(rest));
	}
	CHECK(world_sum_over(comm, 1) == n);
}

static void named(void **state)
{
	(void)state;
	on_all_worlds(by_name);
}

/* Others are left out the second time: rank 2 has shrunk less often than those that it meets. */
static void by_other_names(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	(void)arg;
	config.boot_timeout_ms = 60000;
	for (int time = 0; time < 3; time++)
		for (int out = n - 1; out > 0; out--) {
			tutti_comm_t rest = NULL;

			if (rank == out)
				continue;
			CHECK_OK(tutti_comm_shrink(comm, &out, 1, &rest, &config,
						   TUTTI_SHRINK_DEFAULT));
			CHECK(world_sum_over(rest, 1) == n - 1);
			CHECK_OK(tutti_comm_destroy(rest));
		}
	CHECK(world_sum_over(comm, 1) == n);
}

static void named_again(void **state)
{
	(void)state;
	on_all_worlds(by_other_names);
}

static void nap_ms(int ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000L };

	nanosleep(&nap, NULL);
}

/* How many ranks other than the last are where it may revoke. */
static _Atomic int nready;

static void await_others(int n)
{
	while (nready < n - 1)
		nap_ms(1);
	nready = 0;
}

/* All but the last are in a call when it revokes; then all shrink, and nobody is missing. */
static void revoked(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t again = NULL, late = NULL;
	tutti_status status = TUTTI_OK;

	(void)arg;
	CHECK(world_sum_over(comm, 1) == n);
	if (rank == n - 1) {
		await_others(n);
		nap_ms(30);
		CHECK_OK(tutti_comm_revoke(comm));
	} else {
		nready++;
		CHECK(tutti_barrier(comm, NULL) == TUTTI_EREVOKED);
		CHECK(strstr(tutti_last_error(comm), "revoked the communicator") != NULL);
	}
	CHECK(tutti_barrier(comm, NULL) == TUTTI_EREVOKED);
	CHECK_OK(tutti_comm_get_async_error(comm, &status));
	CHECK(status == TUTTI_EREVOKED);
	CHECK(tutti_comm_split(comm, 0, 0, &late, NULL) == TUTTI_EREVOKED);
	CHECK(tutti_comm_shrink(comm, NULL, 0, &late, NULL, 0) == TUTTI_EREVOKED);
	CHECK_OK(tutti_comm_revoke(comm));
	CHECK_OK(tutti_comm_shrink(comm, NULL, 0, &again, NULL, TUTTI_SHRINK_FAILED));
	CHECK(world_sum_over(again, 1) == n);
	CHECK_OK(tutti_comm_destroy(again));
}

static void revoke(void **state)
{
	(void)state;
	on_all_worlds(revoked);
}

/* The last rank does not come but revokes: nobody waits for it. */
static void revoked_meanwhile(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int64_t begin = tti_now_ns();
	tutti_unique_id id;
	tutti_comm_t child = NULL;
	tutti_status st;

	if (rank == n - 1) {
		nap_ms(100);
		CHECK_OK(tutti_comm_revoke(comm));
		return;
	}
	if (rank == 0)
		CHECK_OK(tutti_get_unique_id(&id));
	if (*(const bool *)arg)
		st = tutti_comm_grow(comm, n + 1, rank == 0 ? &id : NULL, -1, &child, NULL);
	else
		st = tutti_comm_split(comm, 0, 0, &child, NULL);
	CHECK(st == TUTTI_EREVOKED);
	CHECK(strstr(tutti_last_error(NULL), "revoked"));
	CHECK(!child);
	CHECK(tti_now_ns() - begin < 20 * INT64_C(1000000000));
}

/* All of the old ranks have come, and wait for a new one. */
static void revoked_before_it_joins(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t child = NULL;
	tutti_status st = TUTTI_AGAIN;
	tutti_unique_id id;

	(void)arg;
	if (rank == 0)
		CHECK_OK(tutti_get_unique_id(&id));
	config.blocking = 0;
	CHECK_OK(tutti_comm_grow(comm, n + 1, rank == 0 ? &id : NULL, -1, &child, &config));
	if (rank == n - 1) {
		await_others(n);
		nap_ms(100);
		CHECK_OK(tutti_comm_revoke(comm));
	} else {
		nready++;
	}
	for (; st == TUTTI_AGAIN; nap_ms(2))
		CHECK_OK(tutti_comm_get_async_error(child, &st));
	CHECK(st == TUTTI_EREVOKED);
	CHECK_OK(tutti_comm_abort(child));
}

static void pending(void **state)
{
	bool grows = false;

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		for (int k = 0; k < 2; k++) {
			grows = k;
			assert_int_equal(world_run(&worlds[i], revoked_meanwhile, &grows), 0);
		}
		assert_int_equal(world_run(&worlds[i], revoked_before_it_joins, NULL), 0);
	}
}

/* One has left altogether; those that stay shrink twice, once with one named besides. */
static void one_left(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t rest = NULL, less = NULL;
	int count = 0;
	tutti_status st;

	(void)arg;
	if (rank == 1)
		return; /* its communicator is destroyed */
	CHECK_OK(tutti_comm_shrink(comm, NULL, 0, &rest, NULL, TUTTI_SHRINK_FAILED));
	CHECK_OK(tutti_comm_count(rest, &count));
	CHECK(count == n - 1);
	CHECK(world_sum_over(rest, rank) == n * (n - 1) / 2 - 1);
	/* To shrink revokes: all have their sum before anybody does, if not the end of this. */
	st = tutti_barrier(rest, NULL);
	CHECK(st == TUTTI_OK || st == TUTTI_EREVOKED);
	CHECK(tutti_barrier(comm, NULL) <= TUTTI_STATUS_LOST);
	if (rank != 0) {
		CHECK_OK(
			tutti_comm_shrink(rest, (int[]){ 0 }, 1, &less, NULL, TUTTI_SHRINK_FAILED));
		CHECK(world_sum_over(less, 1) == n - 2);
		CHECK_OK(tutti_comm_destroy(less));
	}
	CHECK_OK(tutti_comm_destroy(rest));
}

static void who_left(void **state)
{
	(void)state;
	on_all_worlds(one_left);
}

static void wrong_use(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_comm_t rest = NULL;

	(void)arg;
	CHECK(tutti_comm_shrink(comm, &n, 1, &rest, NULL, 0) == TUTTI_EINVAL);
	CHECK(strstr(tutti_last_error(NULL), "to be left out") != NULL);
	CHECK(tutti_comm_shrink(comm, &rank, 1, &rest, NULL, 0) == TUTTI_EINVAL);
	CHECK(tutti_comm_shrink(comm, NULL, 1, &rest, NULL, 0) == TUTTI_EINVAL);
	CHECK(tutti_comm_shrink(comm, NULL, 0, &rest, NULL, 8) == TUTTI_EINVAL);
	CHECK(tutti_comm_shrink(comm, NULL, 0, NULL, NULL, 0) == TUTTI_EINVAL);
	CHECK(tutti_comm_revoke(NULL) == TUTTI_EINVAL);
	CHECK(world_sum_over(comm, 1) == n);
}

static void refused(void **state)
{
	(void)state;
	on_all_worlds(wrong_use);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(named),   cmocka_unit_test(named_again), cmocka_unit_test(revoke),
		cmocka_unit_test(pending), cmocka_unit_test(who_left),    cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

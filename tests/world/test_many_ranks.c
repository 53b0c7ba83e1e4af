/* SPDX-License-Identifier: BSD-3-Clause */
/* Many ranks on one small machine: how long they take to start and to all-reduce
 * 8 bytes, and what a pair of ranks costs. TEST_RANKS says how many (256, and 64 under sanitizers); with
 * 1024 the figures of docs/performance.md come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/world.h"

/* What a pair in use may cost. With a bootstrap over sockets every rank also knows the
 * addresses of all others and has a watch of its own. A sanitizer's own memory is no
 * business of ours. */
#define KIB_PER_PAIR(sockets) (TTI_SANITIZED ? 4096 : (sockets) ? 128 : 64)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory of this process in KiB, each page counted once however often it is mapped. */
static long memory_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

struct figures {
	_Atomic int reduced;
	_Atomic long memory; /* when all have reduced */
};

static void reduce_once(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct figures *figures = arg;
	double mine = rank, sum = 0;

	CHECK_OK(tutti_all_reduce(&mine, &sum, 1, TUTTI_FLOAT64, TUTTI_SUM, comm, NULL));
	CHECK(sum == (double)n * (n - 1) / 2);
	if (atomic_fetch_add(&figures->reduced, 1) == n - 1)
		atomic_store(&figures->memory, memory_kib());
	CHECK_OK(tutti_barrier(comm, NULL));
}

static int asked_ranks(int usual)
{
	const char *asked = getenv("TEST_RANKS");

	return asked ? atoi(asked) : usual;
}

static void many(int n, bool sockets)
{
	const struct world world = { .n = n, .sockets = sockets };
	const long before = memory_kib();
	const double begin = now();
	struct figures figures = { 0 };
	long per_pair;
	int pairs = 0;

	assert_int_equal(world_run(&world, reduce_once, &figures), 0);
	/* Recursive doubling: each rank talks to log2 n others. */
	for (int step = 1; step < n; step *= 2)
		pairs += n / 2;
	per_pair = (figures.memory - before) / pairs;
	printf("%d ranks, %s bootstrap: %.2f s, %ld KiB a pair of %d in use\n", n,
	       sockets ? "socket" : "local", now() - begin, per_pair, pairs);
	assert_true(per_pair < KIB_PER_PAIR(sockets));
}

static void local_bootstrap(void **state)
{
	(void)state;
	many(asked_ranks(SANITIZED ? 64 : 256), false);
}

static void socket_bootstrap(void **state)
{
	(void)state;
	many(asked_ranks(SANITIZED ? 32 : 128), true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_bootstrap),
		cmocka_unit_test(socket_bootstrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

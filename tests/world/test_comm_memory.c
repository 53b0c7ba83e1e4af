/* SPDX-License-Identifier: BSD-3-Clause */
/* What a communicator of the same ranks costs until it is used: heap, and pages of shared
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <malloc.h>
#include <pthread.h>

#include "support/sanitizer.h"
#include "support/world.h"

#define DUPS      16
#define WARM_UP   8 /* before them: what threads keep of freed memory counts as in use */
#define MOST_EACH 10240.0

static pthread_barrier_t all_here;

/* In use on the heap, and touched of shared memory, each page once. */
static double bytes_in_use(void)
{
	const struct mallinfo2 heap = mallinfo2();
	FILE *maps = fopen("/proc/self/smaps", "r");
	double bytes = (double)(heap.uordblks + heap.hblkhd);
	bool is_segment = false;
	char line[512];

	if (!CHECK(maps))
		return 0;
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to, kib;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_segment = strstr(line, "memfd:tutti");
		else if (is_segment && sscanf(line, "Pss: %lu kB", &kib) == 1)
			bytes += (double)kib * 1024;
	}
	fclose(maps);
	return bytes;
}

/* All ranks are here, and nobody goes on before it is counted. */
static void count(int rank, double *out)
{
	pthread_barrier_wait(&all_here);
	if (rank == 0)
		*out = bytes_in_use();
	pthread_barrier_wait(&all_here);
}

static void destroy_all(tutti_comm_t *comms, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_OK(tutti_comm_destroy(comms[i]));
}

static void make_many(tutti_comm_t comm, int rank, int n, void *arg)
{
	double before = 0, unused = 0, used = 0;
	tutti_comm_t dups[DUPS] = { NULL };
	int sum = 0;

	(void)arg;
	for (int i = 0; i < WARM_UP; i++)
		CHECK_OK(tutti_comm_dup(comm, &dups[i], NULL));
	destroy_all(dups, WARM_UP);
	count(rank, &before);
	for (int i = 0; i < DUPS; i++)
		CHECK_OK(tutti_comm_dup(comm, &dups[i], NULL));
	count(rank, &unused);
	for (int i = 0; i < DUPS; i++) {
		const int one = 1;

		CHECK_OK(tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, dups[i], NULL));
		CHECK(sum == n);
	}
	count(rank, &used);
	if (rank == 0) {
		const double each = (unused - before) / DUPS / n,
			     first = (used - unused) / DUPS / n;

		printf("%d ranks: %.1f KiB each, %.1f more with its first call\n", n, each / 1024,
		       first / 1024);
		CHECK(each < MOST_EACH);
		/* They are counted at all; and what is put off is there. */
		CHECK(each > 1024);
		CHECK(first > each);
	}
	destroy_all(dups, DUPS);
}

static void costs_little(void **state)
{
	static const struct world worlds[] = {
		{ .n = 2 },
		{ .n = 8 },
		{ .n = 2, .sockets = true },
		{ .n = 16, .sockets = true },
		{ .n = 2, .sockets = true, .transport = "tcp" },
		{ .n = 16, .sockets = true, .transport = "tcp" },
		{ .n = 32, .sockets = true, .transport = "tcp" },
	};

	(void)state;
	if (TTI_SANITIZED)
		skip(); /* the heap is the sanitizer's */
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++) {
		pthread_barrier_init(&all_here, NULL, (unsigned)worlds[i].n);
		assert_int_equal(world_run(&worlds[i], make_many, NULL), 0);
		pthread_barrier_destroy(&all_here);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

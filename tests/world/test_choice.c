/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that would run one call by different algorithms: an error on all ranks, which names both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"

#define N     4
#define ODD   2 /* the rank that goes its own way */
#define LARGE 200000

struct trial {
	size_t count;
	bool group;
};

static tutti_status sum(const struct trial *trial, const float *send, float *recv,
			tutti_comm_t comm)
{
	if (trial->group)
		CHECK_OK(tutti_group_start());

	const tutti_status st =
		tutti_all_reduce(send, recv, trial->count, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);

	return trial->group ? tutti_group_end() : st;
}

/* Nobody compares the algorithms that are asked for when a communicator is shrunk. */
static void run_ring_and_direct(tutti_comm_t parent, int rank, int n, void *arg)
{
	const struct trial *trial = arg;
	float *send = calloc(LARGE, sizeof(*send)), *recv = calloc(LARGE, sizeof(*recv));
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	const char *text;

	(void)n;
	config.algo = rank == ODD ? "all_reduce:ring" : "all_reduce:direct";
	CHECK(send && recv);
	if (rank != N - 1) {
		CHECK_OK(tutti_comm_shrink(parent, (int[]){ N - 1 }, 1, &comm, &config, 0));
		CHECK(sum(trial, send, recv, comm) == TUTTI_EMISMATCH);
		text = tutti_last_error(comm);
		if (!CHECK(strstr(text, "in different ways") && strstr(text, "by ring (") &&
			   strstr(text, "by direct (") && strstr(text, "rank 2 by ring")))
			fprintf(stderr, "  %s\n", text);
		CHECK_OK(tutti_comm_destroy(comm));
	}
	free(send);
	free(recv);
}

static void are_told(void **state)
{
	const struct world worlds[] = {
		{ .n = N },
		{ .n = N, .sockets = true, .transport = "tcp" },
	};
	struct trial trials[] = { { 1, false }, { LARGE, false }, { 1, true }, { LARGE, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		for (size_t k = 0; k < sizeof(trials) / sizeof(trials[0]); k++)
			if (world_run(&worlds[i], run_ring_and_direct, &trials[k]) > 0)
				fail_msg("%zu values, world %zu", trials[k].count, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Handoffs go the way that TUTTI_ALGO names, or fail on all ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"
#include "tutti/inspect.h"

struct pinned {
	const char *algo, *transport;
	int n;
	size_t count;
	const char *way; /* NULL: it fails */
};

static struct pinned pinned[] = {
	{ NULL, "shm", 3, 2, "direct" },
	{ "handoff:memory", "shm", 3, 2, "memory" },
	{ "handoff:direct", "shm", 3, 1 << 18, "direct" },
	{ "direct", "shm", 3, 1 << 18, "direct" },
	{ "memory", "shm", 3, 2, "memory" },
	{ "handoff:memory", "tcp", 3, 2, NULL },
	{ "handoff:memory,direct", "tcp", 3, 2, "direct" },
	{ "memory", "tcp", 3, 2, "direct" },
	{ "handoff:memory", "shm", 1, 2, "direct" },
};

static void hand_over(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const int ranks[] = { 0, 1, 2 };
	const struct pinned *p = arg;
	const tutti_side from = { ranks, 1, 0 };
	const tutti_side to = { n > 1 ? ranks + 1 : ranks, n > 1 ? n - 1 : 1, 0 };
	struct tutti_call_report report;
	void *memory = NULL;
	float *data;
	tutti_status st;

	CHECK_OK(tutti_mem_alloc(&memory, p->count * sizeof(*data), comm));
	data = memory;
	for (size_t i = 0; i < p->count; i++)
		data[i] = rank == 0 ? (float)i : -1;
	st = tutti_handoff(rank == 0 ? data : NULL, rank > 0 || n == 1 ? data : NULL, p->count,
			   TUTTI_FLOAT32, &from, &to, comm, NULL);
	if (!p->way) {
		CHECK(st != TUTTI_OK);
		CHECK(strstr(tutti_last_error(comm), "\"handoff:memory,direct\""));
		return;
	}
	CHECK_OK(st);
	for (size_t i = 0; i < p->count; i++)
		if (!CHECK(data[i] == (float)i))
			break;
	CHECK_OK(tutti_comm_last_call(comm, &report));
	CHECK(!strcmp(report.algorithm, p->way));
	CHECK_OK(tutti_mem_free(memory, comm));
}

static void handoffs_go_as_they_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
		const struct world world = { pinned[i].n, .transport = pinned[i].transport,
					     .algo = pinned[i].algo };

		if (world_run(&world, hand_over, &pinned[i]))
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handoffs_go_as_they_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

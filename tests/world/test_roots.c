/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that name different roots in one short call: the next call, the end of the communicator, and
 * with TUTTI_CHECK=1 the call itself say so on all ranks, with both roots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"
#include "tutti/inspect.h"

#define COUNT 100

static void call(tutti_collective coll, const float *send, float *recv, int root, tutti_comm_t comm,
		 tutti_status want)
{
	tutti_status st = TUTTI_EINTERNAL;

	if (coll == TUTTI_BROADCAST)
		st = tutti_broadcast(send, recv, COUNT, TUTTI_FLOAT32, root, comm, NULL);
	else if (coll == TUTTI_REDUCE)
		st = tutti_reduce(send, recv, COUNT, TUTTI_FLOAT32, TUTTI_SUM, root, comm, NULL);
	CHECK(st == want);
}

/* All ranks get one text, which names two roots. */
static void check_text(const char *text, const char *coll)
{
	if (!CHECK(strstr(text, "ranks named different roots") && strstr(text, coll) &&
		   strstr(text, "named root")))
		fprintf(stderr, "  %s\n", text);
}

enum end { NEXT_CALL, FINALIZE, DESTROY };

struct trial {
	tutti_collective coll;
	enum end end;
};

static void name_own(tutti_comm_t parent, int rank, int n, void *arg)
{
	const struct trial *trial = arg;
	const char *name = tutti_collective_name(trial->coll);
	float send[COUNT] = { 0 }, recv[COUNT];
	tutti_comm_t comm = NULL;

	(void)n;
	CHECK_OK(tutti_comm_dup(parent, &comm, NULL));
	/* Right ones before it are kept, too, and must not be taken for it. */
	for (int root = 0; root < 2; root++)
		call(trial->coll, send, recv, root, comm, TUTTI_OK);
	call(trial->coll, send, recv, rank, comm, TUTTI_OK);
	CHECK_OK(tutti_barrier(parent, NULL));
	if (trial->end == DESTROY) {
		CHECK(tutti_comm_destroy(comm) == TUTTI_EMISMATCH);
		check_text(tutti_last_error(NULL), name);
		CHECK_OK(tutti_barrier(parent, NULL));
		return;
	}
	CHECK((trial->end == FINALIZE ? tutti_comm_finalize(comm) : tutti_barrier(comm, NULL)) ==
	      TUTTI_EMISMATCH);
	check_text(tutti_last_error(comm), name);
	CHECK_OK(tutti_barrier(parent, NULL));
	CHECK_OK(tutti_comm_destroy(comm));
}

static void run(tutti_collective coll, enum end end, const char *transport)
{
	struct trial trial = { coll, end };
	const struct world world = { .n = 3, .transport = transport };

	if (world_run(&world, name_own, &trial) > 0)
		fail_msg("%s, end %d over %s", tutti_collective_name(coll), (int)end, transport);
}

static void the_next_call_names_both(void **state)
{
	(void)state;
	run(TUTTI_BROADCAST, NEXT_CALL, "shm");
	run(TUTTI_BROADCAST, NEXT_CALL, "tcp");
}

static void the_end_names_both(void **state)
{
	(void)state;
	run(TUTTI_BROADCAST, FINALIZE, "shm");
	run(TUTTI_BROADCAST, DESTROY, "shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_call_names_both),
		cmocka_unit_test(the_end_names_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

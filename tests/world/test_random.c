/* SPDX-License-Identifier: BSD-3-Clause */
/* Random sequences of calls, the same on all ranks, on one communicator: what one call
 * leaves behind must not disturb the next. TEST_SEED repeats a run,
 * TEST_ROUNDS makes more of them (6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/world.h"

#define CALLS (SANITIZED ? 40 : 150)

static size_t random_count(unsigned *seed)
{
	const unsigned bits = (unsigned)rand_r(seed) % 17;

	return (size_t)rand_r(seed) % ((size_t)1 << bits);
}

/* A ring of messages, several at once, among the collectives. */
static void pass_around(tutti_comm_t comm, int rank, int n, size_t count)
{
	int *send = calloc(count + 1, sizeof(*send));
	int *recv = calloc(count + 1, sizeof(*recv));
	const int prev = (rank + n - 1) % n;

	for (size_t i = 0; i < count; i++)
		send[i] = rank * 7 + (int)i;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_recv(recv, count, TUTTI_INT32, prev, comm, NULL));
	CHECK_OK(tutti_send(send, count, TUTTI_INT32, (rank + 1) % n, comm, NULL));
	CHECK_OK(tutti_group_end());
	for (size_t i = 0; i < count; i++)
		if (!CHECK(recv[i] == prev * 7 + (int)i))
			break;
	free(send);
	free(recv);
}

static void random_calls(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64, TUTTI_UINT64,
					    TUTTI_INT32 };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };
	unsigned seed = *(const unsigned *)arg;

	for (int i = 0; i < CALLS; i++) {
		static const int colls[] = { TUTTI_ALL_REDUCE, TUTTI_BROADCAST,      TUTTI_REDUCE,
					     TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER, TUTTI_BARRIER,
					     TUTTI_SEND_RECV,  TUTTI_ALL_TO_ALL,     TUTTI_GATHER,
					     TUTTI_SCATTER };
		const int coll = colls[(size_t)rand_r(&seed) % (sizeof(colls) / sizeof(colls[0]))];
		struct call call = { .coll = (tutti_collective)coll };

		call.type = types[(unsigned)rand_r(&seed) % 5];
		call.op = ops[(unsigned)rand_r(&seed) % 3];
		call.count = random_count(&seed);
		call.root = rand_r(&seed) % n;
		call.in_place = rand_r(&seed) % 2;
		if (coll == TUTTI_SEND_RECV)
			pass_around(comm, rank, n, call.count);
		else
			call_and_check(&call, comm, rank, n, NULL);
	}
}

static void random_sequences(void **state)
{
	static const char *const transports[] = { "shm", "tcp", NULL };
	const char *asked_seed = getenv("TEST_SEED");
	const char *asked_rounds = getenv("TEST_ROUNDS");
	const int rounds = asked_rounds ? atoi(asked_rounds) : 6;
	unsigned seed = asked_seed ? (unsigned)strtoul(asked_seed, NULL, 10) : (unsigned)time(NULL);

	(void)state;
	for (int round = 0; round < rounds; round++, seed++) {
		unsigned shape = seed;
		const struct world world = { .n = 1 + rand_r(&shape) % (SANITIZED ? 5 : 9),
					     .transport = transports[rand_r(&shape) % 3] };

		printf("seed %u: %d ranks over %s\n", seed, world.n,
		       world.transport ? world.transport : "what is chosen");
		assert_int_equal(world_run(&world, random_calls, &seed), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

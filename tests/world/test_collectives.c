/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective against the serial result: ranks, counts, types, operations,
 * roots, in place, algorithms, transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/world.h"
#include "tutti/inspect.h"

/* Small integers: exact in every type, whatever the order. */
static int value_of(int rank, size_t i)
{
	return (int)((i * 7 + (size_t)rank * 3) % 5);
}

static void put(void *data, tutti_type type, size_t i, int value)
{
	switch (type) {
	case TUTTI_INT8:
	case TUTTI_UINT8:
		((signed char *)data)[i] = (signed char)value;
		return;
	case TUTTI_INT32:
	case TUTTI_UINT32:
		((int *)data)[i] = value;
		return;
	case TUTTI_INT64:
	case TUTTI_UINT64:
		((long long *)data)[i] = value;
		return;
	case TUTTI_FLOAT32:
		((float *)data)[i] = (float)value;
		return;
	case TUTTI_FLOAT64:
		((double *)data)[i] = value;
		return;
	case TUTTI_FLOAT16:
	case TUTTI_BFLOAT16:
	case TUTTI_FLOAT8_E4M3:
	case TUTTI_FLOAT8_E5M2:
		break; /* the kernels' own tests */
	}
	abort();
}

static int reduced(int n, size_t i, tutti_op op)
{
	int result = value_of(0, i);

	for (int rank = 1; rank < n; rank++) {
		const int value = value_of(rank, i);

		if (op == TUTTI_MAX)
			result = result > value ? result : value;
		else if (op == TUTTI_MIN)
			result = result < value ? result : value;
		else
			result += value;
	}
	return result;
}

struct job {
	tutti_collective coll;
	tutti_type type;
	tutti_op op;
	size_t count;
	int root;
	bool in_place;
};

static tutti_status call(const struct job *job, const void *send, void *recv, tutti_comm_t comm)
{
	switch (job->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(send, recv, job->count, job->type, job->op, comm, NULL);
	case TUTTI_REDUCE:
		return tutti_reduce(send, recv, job->count, job->type, job->op, job->root, comm,
				    NULL);
	case TUTTI_BROADCAST:
		return tutti_broadcast(send, recv, job->count, job->type, job->root, comm, NULL);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(send, recv, job->count, job->type, comm, NULL);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(send, recv, job->count, job->type, job->op, comm, NULL);
	case TUTTI_BARRIER:
		return tutti_barrier(comm, NULL);
	case TUTTI_SEND_RECV:
		break;
	}
	return TUTTI_EINVAL;
}

/* What must be in recv[i] on this rank; -1: anything. */
static int expected(const struct job *job, int rank, int n, size_t i)
{
	switch (job->coll) {
	case TUTTI_ALL_REDUCE:
		return reduced(n, i, job->op);
	case TUTTI_REDUCE:
		return rank == job->root ? reduced(n, i, job->op) : -1;
	case TUTTI_BROADCAST:
		return value_of(job->root, i);
	case TUTTI_ALL_GATHER:
		return value_of((int)(i / job->count), i % job->count);
	case TUTTI_REDUCE_SCATTER:
		return reduced(n, (size_t)rank * job->count + i, job->op);
	case TUTTI_BARRIER:
	case TUTTI_SEND_RECV:
		break;
	}
	return -1;
}

static void one_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct job *job = arg;
	const size_t size = tutti_type_size(job->type);
	const size_t nn = (size_t)n;
	const bool gathers = job->coll == TUTTI_ALL_GATHER;
	const bool scatters = job->coll == TUTTI_REDUCE_SCATTER;
	const size_t sends = job->count * (scatters ? nn : 1);
	const size_t recvs = job->count * (gathers ? nn : 1);
	const size_t own = (size_t)rank * job->count * size;
	char *memory = calloc(nn * job->count * 2 + 64, size);
	char *send = memory;
	char *recv = memory + (nn * job->count + 32) * size;
	char *want = calloc(recvs + 1, size);

	if (job->in_place && gathers)
		send = recv + own;
	else if (job->in_place && scatters)
		recv = send + own;
	else if (job->in_place)
		recv = send;
	memset(memory, 0x55, (nn * job->count * 2 + 64) * size);
	for (size_t i = 0; i < sends; i++)
		put(send, job->type, i, value_of(rank, i));
	if (CHECK_OK(call(job, send, recv, comm))) {
		for (size_t i = 0; i < recvs; i++) {
			const int value = expected(job, rank, n, i);

			if (value < 0)
				memcpy(want + i * size, recv + i * size, size);
			else
				put(want, job->type, i, value);
		}
		if (!CHECK(memcmp(want, recv, recvs * size) == 0))
			fprintf(stderr, "  %s n=%d rank=%d count=%zu root=%d in_place=%d type=%s\n",
				tutti_collective_name(job->coll), n, rank, job->count, job->root,
				job->in_place, tutti_type_name(job->type));
	}
	free(memory);
	free(want);
}

/* All sizes and flavours one after the other on one communicator. */
struct plan {
	tutti_collective coll;
	const size_t *counts;
	size_t ncounts;
};

static void all_jobs(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct plan *plan = arg;
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_INT8, TUTTI_FLOAT64 };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };

	for (size_t c = 0; c < plan->ncounts; c++)
		for (int in_place = 0; in_place < 2; in_place++) {
			struct job job = { .coll = plan->coll,
					   .type = types[c % 3],
					   .op = ops[(c + (size_t)in_place) % 3],
					   .count = plan->counts[c],
					   .root = (int)(c + (size_t)in_place) % n,
					   .in_place = in_place };

			one_rank(comm, rank, n, &job);
		}
}

#if SANITIZED
static const size_t counts[] = { 0, 1, 63, 4097, 70001 };
#else
static const size_t counts[] = { 0, 1, 3, 8, 63, 100, 1000, 4097, 65536, 300001 };
#endif
#define NCOUNTS (sizeof(counts) / sizeof(counts[0]))

static void every_algorithm(const char *transport, const int *ranks, size_t nranks, size_t ncounts)
{
	for (int coll = 0; coll < TUTTI_SEND_RECV; coll++)
		for (int a = 0; tutti_algorithm_name((tutti_collective)coll, a); a++)
			for (size_t r = 0; r < nranks; r++) {
				struct plan plan = { (tutti_collective)coll, counts, ncounts };
				char algo[128];

				snprintf(algo, sizeof(algo), "%s:%s",
					 tutti_collective_name(plan.coll),
					 tutti_algorithm_name(plan.coll, a));
				const struct world world = { .n = ranks[r],
							     .transport = transport,
							     .algo = algo };

				if (world_run(&world, all_jobs, &plan) > 0)
					fail_msg("%s over %s, %d ranks", algo, transport, ranks[r]);
			}
}

static void shm_every_algorithm(void **state)
{
	static const int ranks[] = { 1, 3, 4, 2, 7, 8 };

	(void)state;
	every_algorithm("shm", ranks, SANITIZED ? 3 : 6, NCOUNTS);
}

static void tcp_every_algorithm(void **state)
{
	static const int ranks[] = { 3, 2, 5 };

	(void)state;
	every_algorithm("tcp", ranks, SANITIZED ? 1 : 3, NCOUNTS - 1);
}

static void chosen_algorithms(void **state)
{
	static const int ranks[] = { 2, 5, SANITIZED ? 8 : 16 };

	(void)state;
	for (int coll = 0; coll < TUTTI_SEND_RECV; coll++)
		for (size_t r = 0; r < 3; r++) {
			struct plan plan = { (tutti_collective)coll, counts, NCOUNTS };
			const struct world world = { .n = ranks[r], .sockets = true };

			assert_int_equal(world_run(&world, all_jobs, &plan), 0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shm_every_algorithm),
		cmocka_unit_test(tcp_every_algorithm),
		cmocka_unit_test(chosen_algorithms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

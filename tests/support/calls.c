/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/world.h"

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

static tutti_status make(const struct call *call, const void *send, void *recv, tutti_comm_t comm)
{
	switch (call->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(send, recv, call->count, call->type, call->op, comm, NULL);
	case TUTTI_REDUCE:
		return tutti_reduce(send, recv, call->count, call->type, call->op, call->root, comm,
				    NULL);
	case TUTTI_BROADCAST:
		return tutti_broadcast(send, recv, call->count, call->type, call->root, comm, NULL);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(send, recv, call->count, call->type, comm, NULL);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(send, recv, call->count, call->type, call->op, comm,
					    NULL);
	case TUTTI_BARRIER:
		return tutti_barrier(comm, NULL);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(send, recv, call->count, call->type, comm, NULL);
	case TUTTI_GATHER:
		return tutti_gather(send, recv, call->count, call->type, call->root, comm, NULL);
	case TUTTI_SCATTER:
		return tutti_scatter(send, recv, call->count, call->type, call->root, comm, NULL);
	case TUTTI_SEND_RECV:
	case TUTTI_HANDOFF:
	case TUTTI_ALL_TO_ALL_V: /* test_uneven.c */
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		break;
	}
	return TUTTI_EINVAL;
}

/* What must be in recv[i] on this rank; -1: anything. */
static int expected(const struct call *call, int rank, int n, size_t i)
{
	switch (call->coll) {
	case TUTTI_ALL_REDUCE:
		return reduced(n, i, call->op);
	case TUTTI_REDUCE:
		return rank == call->root ? reduced(n, i, call->op) : -1;
	case TUTTI_BROADCAST:
		return value_of(call->root, i);
	case TUTTI_ALL_GATHER:
		return value_of((int)(i / call->count), i % call->count);
	case TUTTI_REDUCE_SCATTER:
		return reduced(n, (size_t)rank * call->count + i, call->op);
	case TUTTI_ALL_TO_ALL:
		return value_of((int)(i / call->count),
				(size_t)rank * call->count + i % call->count);
	case TUTTI_GATHER:
		return rank == call->root ? value_of((int)(i / call->count), i % call->count) : -1;
	case TUTTI_SCATTER:
		return value_of(call->root, (size_t)rank * call->count + i);
	case TUTTI_BARRIER:
	case TUTTI_SEND_RECV:
	case TUTTI_HANDOFF:
	case TUTTI_ALL_TO_ALL_V: /* test_uneven.c */
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		break;
	}
	return -1;
}

size_t call_bytes(const struct call *call, int n)
{
	return ((size_t)n * call->count * 2 + 64) * tutti_type_size(call->type);
}

void call_and_check(const struct call *call, tutti_comm_t comm, int rank, int n)
{
	char *memory = malloc(call_bytes(call, n));

	if (CHECK(memory != NULL))
		call_and_check_in(call, comm, rank, n, memory);
	free(memory);
}

void call_and_check_in(const struct call *call, tutti_comm_t comm, int rank, int n, char *memory)
{
	const size_t size = tutti_type_size(call->type);
	const size_t nn = (size_t)n;
	const bool pairs = call->coll == TUTTI_ALL_TO_ALL;
	const bool gathers = call->coll == TUTTI_ALL_GATHER || call->coll == TUTTI_GATHER;
	const bool scatters = call->coll == TUTTI_REDUCE_SCATTER || call->coll == TUTTI_SCATTER;
	const size_t sends = call->count * (scatters || pairs ? nn : 1);
	const size_t recvs = call->count * (gathers || pairs ? nn : 1);
	const size_t own = (size_t)rank * call->count * size;
	char *send = memory;
	char *recv = memory + (nn * call->count + 32) * size;
	char *want = calloc(recvs + 1, size);

	if (call->in_place && gathers)
		send = recv + own;
	else if (call->in_place && scatters)
		recv = send + own;
	else if (call->in_place)
		recv = send;
	memset(memory, 0x55, call_bytes(call, n));
	for (size_t i = 0; i < sends; i++)
		put(send, call->type, i, value_of(rank, i));
	if (CHECK_OK(make(call, send, recv, comm))) {
		for (size_t i = 0; i < recvs; i++) {
			const int value = expected(call, rank, n, i);

			if (value < 0)
				memcpy(want + i * size, recv + i * size, size);
			else
				put(want, call->type, i, value);
		}
		if (!CHECK(memcmp(want, recv, recvs * size) == 0))
			fprintf(stderr, "  %s n=%d rank=%d count=%zu root=%d in_place=%d type=%s\n",
				tutti_collective_name(call->coll), n, rank, call->count, call->root,
				call->in_place, tutti_type_name(call->type));
	}
	free(want);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "soak.h"

#include <string.h>

static const tutti_collective colls[] = {
	TUTTI_ALL_REDUCE,     TUTTI_ALL_REDUCE, TUTTI_BROADCAST, TUTTI_REDUCE,  TUTTI_ALL_GATHER,
	TUTTI_REDUCE_SCATTER, TUTTI_ALL_TO_ALL, TUTTI_GATHER,    TUTTI_SCATTER, TUTTI_SEND_RECV,
};
static const tutti_type types[] = { TUTTI_INT8,    TUTTI_UINT8,   TUTTI_INT32, TUTTI_UINT64,
				    TUTTI_FLOAT32, TUTTI_FLOAT64, TUTTI_INT64 };
static const tutti_op ops[] = { TUTTI_SUM, TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };

#define PICK(list, random) (list)[soak_random(random) % (sizeof(list) / sizeof((list)[0]))]

uint64_t soak_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Whether the input, or the output, of a collective has a part for each rank. */
static bool sends_parts(tutti_collective coll)
{
	return coll == TUTTI_REDUCE_SCATTER || coll == TUTTI_ALL_TO_ALL || coll == TUTTI_SCATTER;
}

static bool gets_parts(tutti_collective coll)
{
	return coll == TUTTI_ALL_GATHER || coll == TUTTI_ALL_TO_ALL || coll == TUTTI_GATHER;
}

static bool reduces(tutti_collective coll)
{
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE || coll == TUTTI_REDUCE_SCATTER;
}

void soak_draw(struct soak_call *out, int n, uint64_t number, uint64_t seed, bool is_small)
{
	uint64_t random = seed ^ number * UINT64_C(0xd1342543de82ef95);
	const uint64_t bits = soak_random(&random) % (is_small ? 13 : 22);
	size_t most;

	*out = (struct soak_call){ .n = n, .number = number };
	out->coll = PICK(colls, &random);
	out->type = PICK(types, &random);
	out->op = PICK(ops, &random);
	out->root = (int)(soak_random(&random) % (uint64_t)n);
	out->count = 1 + soak_random(&random) % (UINT64_C(1) << bits);
	most = SOAK_BYTES / tutti_type_size(out->type);
	if (sends_parts(out->coll) || gets_parts(out->coll))
		most /= (size_t)n;
	if (out->count > most)
		out->count = most;
	/* A rank that sends and receives in place would send what it has received. */
	out->in_place = soak_random(&random) % 3 == 0 && out->coll != TUTTI_SEND_RECV &&
			out->coll != TUTTI_GATHER && out->coll != TUTTI_SCATTER;
	out->buffers = (enum soak_buffers)(soak_random(&random) % SOAK_KINDS);
	out->stream = (int)(soak_random(&random) % 2);
	out->ntimes = soak_random(&random) % 4 ? 1 : 3;
}

/* -- Places ---------------------------------------------------------------------------------- */

static bool has_input(const struct soak_call *call, int rank)
{
	return (call->coll != TUTTI_BROADCAST && call->coll != TUTTI_SCATTER) || rank == call->root;
}

static bool has_output(const struct soak_call *call, int rank)
{
	return (call->coll != TUTTI_REDUCE && call->coll != TUTTI_GATHER) || rank == call->root;
}

struct soak_place soak_place(const struct soak_call *call, int rank)
{
	const size_t one = call->count * tutti_type_size(call->type), all = one * (size_t)call->n;
	struct soak_place place = { 0 };

	if (has_input(call, rank))
		place.in_bytes = sends_parts(call->coll) ? all : one;
	if (has_output(call, rank))
		place.out_bytes = gets_parts(call->coll) ? all : one;
	if (call->in_place && call->coll == TUTTI_ALL_GATHER)
		place.in_at = (size_t)rank * one;
	if (call->in_place && call->coll == TUTTI_REDUCE_SCATTER)
		place.out_at = (size_t)rank * one;
	return place;
}

/* -- Values ---------------------------------------------------------------------------------- */

/* Element `at` of a rank's input: 1 to 5, so that the sum of 8 ranks fits into all types. */
static uint64_t value_of(const struct soak_call *call, int rank, int time, size_t at)
{
	return 1 + (at * 7 + (size_t)rank * 3 + call->number + (size_t)time * 2 + at / 97) % 5;
}

static void put(tutti_type type, void *at, size_t i, uint64_t value)
{
	switch ((int)type) {
	case TUTTI_INT8:
	case TUTTI_UINT8:
		((uint8_t *)at)[i] = (uint8_t)value;
		break;
	case TUTTI_INT32:
		((int32_t *)at)[i] = (int32_t)value;
		break;
	case TUTTI_FLOAT32:
		((float *)at)[i] = (float)value;
		break;
	case TUTTI_FLOAT64:
		((double *)at)[i] = (double)value;
		break;
	default:
		((uint64_t *)at)[i] = value;
		break;
	}
}

static uint64_t reduced(const struct soak_call *call, int time, size_t at)
{
	uint64_t value = value_of(call, 0, time, at);

	for (int rank = 1; rank < call->n; rank++) {
		const uint64_t other = value_of(call, rank, time, at);

		if (call->op == TUTTI_SUM)
			value += other;
		else if ((call->op == TUTTI_MAX) == (other > value))
			value = other;
	}
	return value;
}

/* Element `at` of what a rank gets. */
static uint64_t wanted(const struct soak_call *call, int rank, int time, size_t at)
{
	const size_t part = at / call->count, within = at % call->count;
	const size_t own = (size_t)rank * call->count + within;

	if (call->coll == TUTTI_SEND_RECV)
		return value_of(call, (rank + call->n - 1) % call->n, time, at);
	if (reduces(call->coll))
		return reduced(call, time, call->coll == TUTTI_REDUCE_SCATTER ? own : at);
	if (call->coll == TUTTI_BROADCAST)
		return value_of(call, call->root, time, at);
	if (call->coll == TUTTI_SCATTER)
		return value_of(call, call->root, time, own);
	return value_of(call, (int)part, time, call->coll == TUTTI_ALL_TO_ALL ? own : within);
}

void soak_fill(const struct soak_call *call, int rank, int time, void *input)
{
	const size_t n = soak_place(call, rank).in_bytes / tutti_type_size(call->type);

	for (size_t i = 0; i < n; i++)
		put(call->type, input, i, value_of(call, rank, time, i));
}

size_t soak_first_wrong(const struct soak_call *call, int rank, int time, const void *output)
{
	const size_t size = tutti_type_size(call->type);
	const size_t n = soak_place(call, rank).out_bytes / size;
	size_t i = 0;

	for (; i < n; i++) {
		uint64_t want[2];

		put(call->type, want, 0, wanted(call, rank, time, i));
		if (memcmp((const char *)output + i * size, want, size) != 0)
			break;
	}
	return i;
}

/* -- The call --------------------------------------------------------------------------------- */

static tutti_status round_the_ring(const struct soak_call *call, int rank, const void *input,
				   void *output, tutti_comm_t comm, tutti_stream_t stream)
{
	const int n = call->n;
	tutti_status sent, received, ended;

	sent = tutti_group_start();
	if (sent != TUTTI_OK)
		return sent;
	sent = tutti_send(input, call->count, call->type, (rank + 1) % n, comm, stream);
	received = tutti_recv(output, call->count, call->type, (rank + n - 1) % n, comm, stream);
	ended = tutti_group_end();
	return sent != TUTTI_OK ? sent : received != TUTTI_OK ? received : ended;
}

tutti_status soak_submit(const struct soak_call *call, int rank, const void *input, void *output,
			 tutti_comm_t comm, tutti_stream_t stream)
{
	const size_t count = call->count;
	const tutti_type type = call->type;

	switch ((int)call->coll) {
	case TUTTI_ALL_REDUCE:
		return tutti_all_reduce(input, output, count, type, call->op, comm, stream);
	case TUTTI_BROADCAST:
		return tutti_broadcast(input, output, count, type, call->root, comm, stream);
	case TUTTI_REDUCE:
		return tutti_reduce(input, output, count, type, call->op, call->root, comm, stream);
	case TUTTI_ALL_GATHER:
		return tutti_all_gather(input, output, count, type, comm, stream);
	case TUTTI_REDUCE_SCATTER:
		return tutti_reduce_scatter(input, output, count, type, call->op, comm, stream);
	case TUTTI_ALL_TO_ALL:
		return tutti_all_to_all(input, output, count, type, comm, stream);
	case TUTTI_GATHER:
		return tutti_gather(input, output, count, type, call->root, comm, stream);
	case TUTTI_SCATTER:
		return tutti_scatter(input, output, count, type, call->root, comm, stream);
	default:
		return round_the_ring(call, rank, input, output, comm, stream);
	}
}

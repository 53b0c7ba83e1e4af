/* SPDX-License-Identifier: BSD-3-Clause */
/* All collectives with all types and operators. Inputs are small numbers, so that every result is exact
 * and the order in which elements are combined does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nccl/ranks.h"
#include "support/reference.h"

#define COUNT 37

/* Where a call puts its elements. */
struct buffers {
	unsigned char *send, *recv;
	size_t bytes;
};

static void put(ncclDataType_t type, unsigned char *at, double value)
{
	const struct format *format = &formats[type];

	code_put(at, format->bytes,
		 format->ebits ? encode(format, value, true) : (code_t)(int64_t)value);
}

static double input(int rank, size_t index, ncclRedOp_t op)
{
	const double value = (double)((index * 7 + (size_t)rank * 5) % 4);

	return op == ncclProd ? 1 + (double)((size_t)value % 2) : value;
}

static double combined(ncclRedOp_t op, int n, size_t index)
{
	double value = input(0, index, op);

	for (int rank = 1; rank < n; rank++) {
		const double other = input(rank, index, op);

		if (op == ncclProd)
			value *= other;
		else if (op == ncclMax)
			value = value > other ? value : other;
		else if (op == ncclMin)
			value = value < other ? value : other;
		else
			value += other;
	}
	return op == ncclAvg ? value / n : value;
}

static void fill(const struct buffers *buffers, ncclDataType_t type, ncclRedOp_t op, int rank,
		 size_t count)
{
	memset(buffers->recv, 0xee, buffers->bytes);
	for (size_t i = 0; i < count; i++)
		put(type, buffers->send + i * (size_t)formats[type].bytes, input(rank, i, op));
}

static bool has(const unsigned char *at, ncclDataType_t type, double value)
{
	unsigned char wanted[16];

	put(type, wanted, formats[type].ebits ? value : (double)(int64_t)value);
	return !memcmp(at, wanted, (size_t)formats[type].bytes);
}

/* Whether recv[i] is the combination of all ranks' elements first + i. */
static bool is_combined(const struct buffers *buffers, ncclDataType_t type, ncclRedOp_t op, int n,
			size_t first)
{
	for (size_t i = 0; i < COUNT; i++)
		if (!has(buffers->recv + i * (size_t)formats[type].bytes, type,
			 combined(op, n, first + i)))
			return false;
	return true;
}

/* Whether recv[part * COUNT + i] is element first + i of rank `from`. */
static bool is_from(const struct buffers *buffers, ncclDataType_t type, int part, int from,
		    size_t first)
{
	const unsigned char *at = buffers->recv + (size_t)(part * COUNT * formats[type].bytes);

	for (size_t i = 0; i < COUNT; i++)
		if (!has(at + i * (size_t)formats[type].bytes, type,
			 input(from, first + i, ncclSum)))
			return false;
	return true;
}

static void reductions(ncclComm_t comm, int rank, int n, const struct buffers *b,
		       ncclDataType_t type, ncclRedOp_t op)
{
	const ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	const int root = n - 1;

	fill(b, type, op, rank, COUNT);
	CHECK_OK(ncclAllReduce(b->send, b->recv, COUNT, type, op, comm, NULL));
	CHECK(is_combined(b, type, op, n, 0));
	fill(b, type, op, rank, COUNT);
	CHECK_OK(ncclAllReduceConfig(b->send, b->recv, COUNT, type, op, comm, NULL, &config));
	CHECK(is_combined(b, type, op, n, 0));
	fill(b, type, op, rank, COUNT);
	CHECK_OK(ncclReduce(b->send, b->recv, COUNT, type, op, root, comm, NULL));
	CHECK(rank != root || is_combined(b, type, op, n, 0));
	fill(b, type, op, rank, COUNT);
	CHECK_OK(ncclReduceConfig(b->send, b->recv, COUNT, type, op, root, comm, NULL, &config));
	CHECK(rank != root || is_combined(b, type, op, n, 0));
	fill(b, type, op, rank, COUNT * (size_t)n);
	CHECK_OK(ncclReduceScatter(b->send, b->recv, COUNT, type, op, comm, NULL));
	CHECK(is_combined(b, type, op, n, COUNT * (size_t)rank));
	fill(b, type, op, rank, COUNT * (size_t)n);
	CHECK_OK(ncclReduceScatterConfig(b->send, b->recv, COUNT, type, op, comm, NULL, &config));
	CHECK(is_combined(b, type, op, n, COUNT * (size_t)rank));
}

static void copies(ncclComm_t comm, int rank, int n, const struct buffers *b, ncclDataType_t type,
		   const ncclCollConfig_t *config)
{
	const size_t all = COUNT * (size_t)n;
	const int root = 1 % n;

	fill(b, type, ncclSum, rank, COUNT);
	CHECK_OK(config ? ncclBroadcastConfig(b->send, b->recv, COUNT, type, root, comm, NULL,
					      config)
			: ncclBroadcast(b->send, b->recv, COUNT, type, root, comm, NULL));
	CHECK(is_from(b, type, 0, root, 0));
	fill(b, type, ncclSum, rank, COUNT);
	CHECK_OK(config ? ncclAllGatherConfig(b->send, b->recv, COUNT, type, comm, NULL, config)
			: ncclAllGather(b->send, b->recv, COUNT, type, comm, NULL));
	for (int from = 0; from < n; from++)
		CHECK(is_from(b, type, from, from, 0));
	fill(b, type, ncclSum, rank, COUNT);
	CHECK_OK(config ? ncclGatherConfig(b->send, b->recv, COUNT, type, root, comm, NULL, config)
			: ncclGather(b->send, b->recv, COUNT, type, root, comm, NULL));
	for (int from = 0; rank == root && from < n; from++)
		CHECK(is_from(b, type, from, from, 0));
	fill(b, type, ncclSum, rank, all);
	CHECK_OK(config ? ncclScatterConfig(b->send, b->recv, COUNT, type, root, comm, NULL, config)
			: ncclScatter(b->send, b->recv, COUNT, type, root, comm, NULL));
	CHECK(is_from(b, type, 0, root, COUNT * (size_t)rank));
	fill(b, type, ncclSum, rank, all);
	CHECK_OK(config ? ncclAlltoAllConfig(b->send, b->recv, COUNT, type, comm, NULL, config)
			: ncclAlltoAll(b->send, b->recv, COUNT, type, comm, NULL));
	for (int from = 0; from < n; from++)
		CHECK(is_from(b, type, from, from, COUNT * (size_t)rank));
	/* In place, so that what is sent is what is got. */
	fill(b, type, ncclSum, rank, COUNT);
	memcpy(b->recv, b->send, COUNT * (size_t)formats[type].bytes);
	CHECK_OK(ncclBcast(b->recv, COUNT, type, root, comm, NULL));
	CHECK(is_from(b, type, 0, root, 0));
}

/* Twice each rank's input: as a sum of two ranks has it, n times. */
static void made_operators(ncclComm_t comm, int rank, int n, const struct buffers *b,
			   ncclDataType_t type)
{
	unsigned char scalar[16];
	ncclRedOp_t op;

	for (int residence = 0; residence < 2; residence++) {
		/* What counts is read by the call, or at once. */
		put(type, scalar, residence == ncclScalarDevice ? 1 : 2);
		CHECK_OK(ncclRedOpCreatePreMulSum(&op, scalar, type,
						  (ncclScalarResidence_t)residence, comm));
		put(type, scalar, residence == ncclScalarDevice ? 2 : 1);
		CHECK(op >= ncclNumOps);
		fill(b, type, ncclSum, rank, COUNT);
		CHECK_OK(ncclAllReduce(b->send, b->recv, COUNT, type, op, comm, NULL));
		for (size_t i = 0; i < COUNT; i++)
			CHECK(has(b->recv + i * (size_t)formats[type].bytes, type,
				  2 * combined(ncclSum, n, i)));
		CHECK_OK(ncclRedOpDestroy(op, comm));
	}
}

/* Sums are 24 at most, which 8 bits hold. */
static void all_calls(ncclComm_t comm, int rank, int n, void *arg)
{
	const ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	struct buffers b = { .bytes = COUNT * 8 * (size_t)n };

	(void)arg;
	b.send = calloc(1, b.bytes);
	b.recv = calloc(1, b.bytes);
	for (int type = 0; CHECK(b.send && b.recv) && type < ncclNumTypes; type++) {
		for (int op = 0; op < ncclNumOps; op++)
			reductions(comm, rank, n, &b, (ncclDataType_t)type, (ncclRedOp_t)op);
		copies(comm, rank, n, &b, (ncclDataType_t)type, NULL);
		copies(comm, rank, n, &b, (ncclDataType_t)type, &config);
		made_operators(comm, rank, n, &b, (ncclDataType_t)type);
	}
	free(b.send);
	free(b.recv);
}

static void every_collective_with_every_type_and_operator(void **state)
{
	static const int ranks[] = { 1, 2, 4 };

	(void)state;
	for (size_t at = 0; at < sizeof(ranks) / sizeof(ranks[0]); at++)
		assert_int_equal(ranks_run(ranks[at], all_calls, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_with_every_type_and_operator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

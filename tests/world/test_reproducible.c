/* SPDX-License-Identifier: BSD-3-Clause */
/* Reproducible reductions, against the one order that is documented: over 1 to 9 ranks, any
 * shape, each algorithm that can keep it, all types, values of very different sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/comm.h"
#include "core/handle.h"
#include "support/numbers.h"
#include "support/reductions.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/world.h"

static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_REDUCE, TUTTI_REDUCE_SCATTER };
static const size_t counts[] = { 1, 5, 777, 4096, SANITIZED ? 9001 : 30011 };

/* Over many seeds each operation meets each type. */
static void run_types(tutti_comm_t comm, int rank, int n, int flag, size_t seed)
{
	for (size_t i = 0; i < 3 * TUTTI_TYPE_COUNT; i++) {
		const tutti_type type = (tutti_type)(i / 3);
		const size_t k = i + seed;
		const struct reduction r = {
			.coll = colls[i % 3],
			.type = type,
			.op = (tutti_op)(numbers_op_for(type, (int)(k % TUTTI_OP_COUNT)) + flag),
			.count = counts[k % 5],
			.root = (int)(k % (size_t)n),
			.in_place = k / 2 % 2,
			.seed = k,
			.expect = expect_kernel,
		};

		if (!CHECK(reduction_run(&r, comm, rank, n, NULL)))
			return;
	}
}

/* By the communicator, or by the call; over a shape that is drawn. */
static void over_a_shape(tutti_comm_t handle, int rank, int n, void *arg)
{
	const size_t seed = *(const size_t *)arg;
	struct tti_comm *comm = NULL;

	if (!CHECK_OK(tti_handle_enter(handle, &comm)))
		return;
	tti_shape_free(comm->shape);
	comm->shape = shape_draw(n, (enum shape_kind)(seed % SHAPE_KINDS), seed);
	run_types(handle, rank, n, comm->reproducible ? 0 : TUTTI_OP_REPRODUCIBLE, seed);
	tti_handle_leave(handle);
}

static void bits_depend_on_inputs_alone(void **state)
{
	static const char *const pins[] = {
		NULL,
		"all_reduce:exchange;reduce:flat;reduce_scatter:direct",
		"all_reduce:ordered,direct;reduce:ordered,flat;reduce_scatter:ordered,direct",
		"all_reduce:^exchange;reduce:^chain",
	};
	size_t seed = 0;

	(void)state;
	for (int n = 1; n <= 9; n += SANITIZED ? 4 : n < 3 ? 1 : 3)
		for (int p = 0; p < 8; p += SANITIZED ? 3 : p < 4 ? 1 : 2, seed++) {
			const struct world world = { .n = n,
						     .transport = p < 4 ? "shm" : "tcp",
						     .algo = pins[p % 4],
						     .reproducible = p % 2 };

			if (world_run(&world, over_a_shape, &seed) > 0)
				fail_msg("%d ranks over %s, %s", n, world.transport,
					 world.algo ? world.algo : "as chosen");
		}
}

/* The same inputs, not asked to be the same: a ring begins elsewhere for each part. */
static void not_asked(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct reduction r = { .coll = TUTTI_ALL_REDUCE,
			       .type = TUTTI_FLOAT32,
			       .op = TUTTI_SUM,
			       .count = 30011,
			       .seed = 1,
			       .quiet = true,
			       .expect = expect_kernel };

	(void)arg;
	CHECK(!reduction_run(&r, comm, rank, n, NULL));
	r.quiet = false;
	r.op = tutti_op_reproducible(TUTTI_SUM);
	CHECK(reduction_run(&r, comm, rank, n, NULL));
}

static void other_orders_give_other_bits(void **state)
{
	const struct world world = { .n = 5, .algo = "all_reduce:ring,direct" };

	(void)state;
	assert_int_equal(world_run(&world, not_asked, NULL), 0);
}

/* A communicator's reductions with a count for each rank are among those it means. */
static void uneven(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t lengths[] = { 3, 0, 2 };
	const float send[] = { 1, 2, 3, 4, 5 };
	struct tutti_call_report report = { 0 };
	float recv[3] = { 0 };

	(void)n;
	(void)arg;
	CHECK_OK(tutti_reduce_scatter_v(send, recv, lengths, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	CHECK(lengths[rank] == 0 || recv[0] == (rank == 0 ? 3.0f : 12.0f));
	CHECK_OK(tutti_comm_last_call(comm, &report));
	CHECK(strcmp(report.algorithm, "direct") == 0);
}

static void uneven_counts_are_meant_too(void **state)
{
	const struct world world = { .n = 3,
				     .algo = "reduce_scatter:ring,direct",
				     .reproducible = 1 };

	(void)state;
	assert_int_equal(world_run(&world, uneven, NULL), 0);
}

/* Registered memory is another way through the same call. */
static void on_registered_memory(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t count = 300000;
	uint16_t *halves = NULL, *plain;
	struct tutti_call_report report = { 0 };

	(void)arg;
	if (!CHECK_OK(tutti_mem_alloc((void **)&halves, 2 * count * sizeof(*halves), comm)))
		return;
	plain = halves + count;
	for (size_t i = 0; i < count; i++)
		halves[i] = (uint16_t)(((i * 2654435761u + (size_t)rank * 40503u) >> 7 & 0x8fff) |
				       0x3000);
	CHECK_OK(tutti_all_reduce(halves, plain, count, TUTTI_FLOAT16,
				  tutti_op_reproducible(TUTTI_SUM), comm, NULL));
	CHECK_OK(tutti_comm_last_call(comm, &report));
	CHECK(n == 1 || report.algorithm[0] == 'm');
	uint16_t *own = malloc(count * sizeof(*own)), *result = malloc(count * sizeof(*own));

	for (size_t i = 0; own && i < count; i++)
		own[i] = halves[i];
	CHECK(own && result);
	CHECK_OK(tutti_all_reduce(own, result, count, TUTTI_FLOAT16,
				  tutti_op_reproducible(TUTTI_SUM), comm, NULL));
	for (size_t i = 0; result && i < count; i++)
		if (!CHECK(result[i] == plain[i]))
			break;
	free(own);
	free(result);
	CHECK_OK(tutti_mem_free(halves, comm));
}

static void registered_memory_gives_the_same(void **state)
{
	const struct world world = { .n = 4, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, on_registered_memory, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_depend_on_inputs_alone),
		cmocka_unit_test(other_orders_give_other_bits),
		cmocka_unit_test(registered_memory_gives_the_same),
		cmocka_unit_test(uneven_counts_are_meant_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Pre-multiplied sums and the user's operators: scalars that round, what an operator is called
 * with, when it is read, and what is refused. What they give in every algorithm is part of
 * test_matrix.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/reductions.h"
#include "support/sanitizer.h"
#include "support/world.h"

static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_REDUCE, TUTTI_REDUCE_SCATTER };
static const size_t counts[] = { 1, 100, 3000 };
#define NCOUNTS   (sizeof(counts) / sizeof(counts[0]))
#define PLAN_MOST 9000 /* more than a short call has */

/* Over everything the ranks run one after the other. */
static void run_counts(struct reduction r, tutti_comm_t comm, int rank, int n, tutti_stream_t s)
{
	for (size_t c = 0; c < NCOUNTS * sizeof(colls) / sizeof(colls[0]); c++) {
		r.coll = colls[c / NCOUNTS];
		r.count = counts[c % NCOUNTS];
		r.root = (int)(c % (size_t)n);
		r.in_place = c % 2;
		r.seed = c + 1;
		if (!CHECK(reduction_run(&r, comm, rank, n, s)))
			return;
	}
}

static void largest(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	const int *from = in;
	int *to = inout, *calls = arg;

	++*calls;
	for (size_t i = 0; i < count && type == TUTTI_INT32; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

static void expect_largest(const struct reduction *r, void *out, const void *const *inputs, int n,
			   size_t count)
{
	struct reduction max = *r;

	max.op = TUTTI_MAX;
	expect_kernel(&max, out, inputs, n, count);
}

static void maxima(tutti_comm_t comm, int rank, int n, void *arg)
{
	int calls = 0;
	struct reduction r = { .type = TUTTI_INT32, .expect = expect_largest };

	(void)arg;
	if (!CHECK_OK(tutti_op_create(&r.op, largest, &calls, 1, comm)))
		return;
	run_counts(r, comm, rank, n, NULL);
	r.op = tutti_op_reproducible(r.op);
	run_counts(r, comm, rank, n, NULL);
	/* Who reduces nothing is not called. */
	CHECK(calls > 0 || n == 1);
	CHECK_OK(tutti_op_destroy(r.op, comm));
}

static void premul_of_type(tutti_comm_t comm, int rank, int n, tutti_type type, const void *scalars)
{
	const char *own = (const char *)scalars + (size_t)rank * tutti_type_size(type);
	struct reduction r = { .type = type, .expect = expect_premul, .scalars = scalars };

	/* Integers are the same in any order. */
	if (!CHECK_OK(tutti_op_create_premul_sum(&r.op, own, type, TUTTI_SCALAR_NOW, comm)))
		return;
	if (type == TUTTI_INT32 || type == TUTTI_UINT8 || type == TUTTI_BOOL)
		run_counts(r, comm, rank, n, NULL);
	r.op = tutti_op_reproducible(r.op);
	run_counts(r, comm, rank, n, NULL);
	CHECK_OK(tutti_op_destroy(r.op, comm));
}

static void premul_sums(tutti_comm_t comm, int rank, int n, void *arg)
{
	/* Any bits are integers; floats that are none but these. */
	static const float floats[] = { 0.5f, 3, -1.1f, 1e-3f, 2,    7,  1, 0,  9,
					-4,   1, 0.3f,  2,     1e4f, -1, 8, -2, 5 };
	static const uint16_t halves[] = { 0x3c00, 0xc001, 0x3555, 0x4200, 0x3c01,
					   0x4000, 0xbc00, 0x3800, 0x4900 };
	static const double turns[][2] = { { 1, 2 },    { -0.3, 1.1 }, { 3, 0 },
					   { 0, -1 },   { 7, 1e-3 },   { 1, 1 },
					   { -2, 0.7 }, { 9, 9 },      { 0.1, -5 } };

	(void)arg;
	premul_of_type(comm, rank, n, TUTTI_INT32, floats);
	premul_of_type(comm, rank, n, TUTTI_UINT8, floats);
	premul_of_type(comm, rank, n, TUTTI_FLOAT32, floats);
	premul_of_type(comm, rank, n, TUTTI_FLOAT16, halves);
	premul_of_type(comm, rank, n, TUTTI_BFLOAT16, halves);
	premul_of_type(comm, rank, n, TUTTI_BOOL, halves);
	premul_of_type(comm, rank, n, TUTTI_COMPLEX64, floats);
	premul_of_type(comm, rank, n, TUTTI_COMPLEX128, turns);
}

static void sums_of_multiplied_inputs(void **state)
{
	static const struct world worlds[] = { { .n = 1 },
					       { .n = SANITIZED ? 4 : 9, .transport = "shm" },
					       { .n = 3, .transport = "tcp" } };

	(void)state;
	for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); w++)
		assert_int_equal(world_run(&worlds[w], premul_sums, NULL), 0);
}

static void users_operator(void **state)
{
	const struct world alone = { .n = 1 }, some = { .n = 5, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&alone, maxima, NULL), 0);
	assert_int_equal(world_run(&some, maxima, NULL), 0);
}

/* A scalar that is read at the call: as it is when the stream comes to it. */
static void later(tutti_comm_t comm, int rank, int n, void *arg)
{
	int32_t scalar = 0, in = rank + 1, first = 0, second = 0;
	const int32_t sum = n * (n + 1) / 2;
	tutti_stream_t stream = NULL;
	tutti_op op, again = TUTTI_SUM;

	(void)arg;
	if (!CHECK_OK(tutti_op_create_premul_sum(&op, &scalar, TUTTI_INT32, TUTTI_SCALAR_AT_CALL,
						 comm)) ||
	    !CHECK_OK(tutti_stream_create(&stream)))
		return;
	scalar = 3;
	CHECK_OK(tutti_all_reduce(&in, &first, 1, TUTTI_INT32, op, comm, NULL));
	CHECK(first == 3 * sum);
	scalar = 5;
	CHECK_OK(tutti_all_reduce(&in, &first, 1, TUTTI_INT32, op, comm, stream));
	/* Queued calls keep it; its value may be another's. */
	CHECK_OK(tutti_op_destroy(op, comm));
	CHECK_OK(tutti_op_create(&again, largest, NULL, 1, comm));
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK(first == 5 * sum);
	CHECK_OK(tutti_op_destroy(again, comm));
	scalar = 2;
	CHECK_OK(tutti_op_create_premul_sum(&op, &scalar, TUTTI_INT32, TUTTI_SCALAR_NOW, comm));
	scalar = 9;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_all_reduce(&in, &first, 1, TUTTI_INT32, op, comm, NULL));
	CHECK_OK(tutti_all_reduce(&in, &second, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL));
	CHECK_OK(tutti_op_destroy(op, comm));
	CHECK_OK(tutti_group_end());
	CHECK(first == 2 * sum && second == sum);
	CHECK_OK(tutti_stream_destroy(stream));
}

/* Whatever the length, each start has the scalar of its time, also beside other calls. */
static void later_of_plans(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const size_t lengths[] = { 1, 3, PLAN_MOST };
	const int32_t sum = n * (n + 1) / 2;
	int32_t scalar = 1, in[PLAN_MOST], out[PLAN_MOST];
	tutti_call call = { .size = sizeof(call),
			    .coll = TUTTI_ALL_REDUCE,
			    .send = in,
			    .recv = out,
			    .type = TUTTI_INT32 };
	tutti_persistent_t plan = NULL;

	(void)arg;
	for (size_t i = 0; i < PLAN_MOST; i++)
		in[i] = rank + 1;
	if (!CHECK_OK(tutti_op_create_premul_sum(&call.op, &scalar, TUTTI_INT32,
						 TUTTI_SCALAR_AT_CALL, comm)))
		return;
	for (size_t c = 0; c < sizeof(lengths) / sizeof(lengths[0]); c++) {
		scalar = 1;
		call.count = lengths[c];
		if (!CHECK_OK(tutti_persistent_create(&call, comm, &plan)))
			return;
		for (scalar = 2; scalar < 10; scalar += 2) {
			CHECK_OK(tutti_persistent_start(plan, NULL));
			CHECK_OK(tutti_persistent_wait(plan));
			CHECK(out[0] == scalar * sum && out[call.count - 1] == scalar * sum);
			scalar++;
			CHECK_OK(tutti_all_reduce(in, out, 1, TUTTI_INT32, call.op, comm, NULL));
			CHECK(out[0] == scalar * sum);
		}
		CHECK_OK(tutti_persistent_destroy(plan));
	}
	CHECK_OK(tutti_op_destroy(call.op, comm));
}

static void scalars_are_read_when_they_should(void **state)
{
	const struct world world = { .n = 3 };

	(void)state;
	assert_int_equal(world_run(&world, later, NULL), 0);
	assert_int_equal(world_run(&world, later_of_plans, NULL), 0);
}

static void refused(tutti_status got, tutti_comm_t comm, const char *words)
{
	if (!CHECK(got == TUTTI_EINVAL) || !CHECK(strstr(tutti_last_error(comm), words)))
		fprintf(stderr, "  %s, not %s\n", tutti_last_error(comm), words);
}

static void mistakes(tutti_comm_t comm, int rank, int n, void *arg)
{
	float one = 1, in = 1, out = 0;
	tutti_op op = TUTTI_SUM, ordered;

	(void)rank, (void)arg;
	refused(tutti_op_create(NULL, largest, NULL, 1, comm), NULL, "out is NULL");
	refused(tutti_op_create(&op, NULL, NULL, 1, comm), NULL, "fn is NULL");
	refused(tutti_op_create_premul_sum(&op, NULL, TUTTI_INT8, TUTTI_SCALAR_NOW, comm), NULL,
		"scalar is NULL");
	refused(tutti_op_create_premul_sum(&op, &one, (tutti_type)99, TUTTI_SCALAR_NOW, comm), NULL,
		"type 99");
	refused(tutti_op_create_premul_sum(&op, &one, TUTTI_FLOAT32, (tutti_scalar_when)7, comm),
		NULL, "when is 7");
	refused(tutti_op_destroy(TUTTI_SUM, comm), comm, "operation 0 was not created");
	refused(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, (tutti_op)300, comm, NULL), comm,
		"all_reduce: there is no operation 300");
	refused(tutti_reduce_scatter_v(&in, &out, (const size_t[2]){ 1 }, TUTTI_FLOAT32,
				       (tutti_op)300, comm, NULL),
		comm, "reduce_scatter_v: there is no operation 300");
	CHECK_OK(tutti_op_create_premul_sum(&op, &one, TUTTI_FLOAT32, TUTTI_SCALAR_NOW, comm));
	refused(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT16, op, comm, NULL), comm,
		"all_reduce of float16 with a pre-multiplied sum whose scalar is float32");
	CHECK_OK(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, op, comm, NULL));
	CHECK(out == (float)n);
	CHECK_OK(tutti_op_destroy(op, comm));
	refused(tutti_reduce(&in, &out, 1, TUTTI_FLOAT32, op, 0, comm, NULL), comm,
		"reduce: there is no operation 256");
	/* The pin leaves a ring alone. */
	CHECK_OK(tutti_op_create(&ordered, largest, NULL, 0, comm));
	refused(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, ordered, comm, NULL), comm,
		"reduces in the order of ranks");
	refused(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, tutti_op_reproducible(TUTTI_SUM),
				 comm, NULL),
		comm, "add one of exchange, direct, ordered");
	/* And the communicator is as good as before. */
	CHECK_OK(tutti_all_reduce(&in, &out, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	CHECK(out == (float)n);
	for (int i = 1; i < 256; i++)
		CHECK_OK(tutti_op_create(&op, largest, NULL, 0, comm));
	refused(tutti_op_create(&op, largest, NULL, 0, comm), comm, "256 operators of a kind");
	CHECK_OK(tutti_op_create(&op, largest, NULL, 1, comm));
}

static void mistakes_are_named(void **state)
{
	const struct world world = { .n = 2, .algo = "all_reduce:ring" };

	(void)state;
	assert_int_equal(world_run(&world, mistakes, NULL), 0);
}

/* By rank 0 alone: nothing is sent, or rank 1 would be in a call that differs. */
static void odd_pairs(tutti_comm_t comm, int rank, int n, void *arg)
{
	char in[16] = "", out[16] = "";
	const tutti_call planned = { sizeof(planned), TUTTI_ALL_REDUCE, in,       out, 1,
				     TUTTI_FLOAT64,   TUTTI_LXOR,       .root = 0 };
	tutti_persistent_t plan = NULL;

	(void)n, (void)arg;
	if (rank == 0) {
		refused(tutti_all_reduce(in, out, 1, TUTTI_FLOAT32, TUTTI_BAND, comm, NULL), comm,
			"all_reduce: there is no band of float32, whose operators are sum, prod, "
			"max, min, avg, and those of tutti_op_create()");
		refused(tutti_reduce_scatter(in, out, 0, TUTTI_COMPLEX64,
					     tutti_op_reproducible(TUTTI_MAX), comm, NULL),
			comm,
			"reduce_scatter: there is no max of complex64, whose operators are sum, "
			"prod, avg, and");
		refused(tutti_reduce(in, out, 1, TUTTI_BOOL, TUTTI_AVG, 0, comm, NULL), comm,
			"reduce: there is no avg of bool, whose operators are sum, prod, max, min, "
			"band, bor, bxor, land, lor, lxor, and");
		refused(tutti_persistent_create(&planned, comm, &plan), comm,
			"all_reduce: there is no lxor of float64");
	}
	in[0] = (char)(rank + 1);
	CHECK_OK(tutti_all_reduce(in, out, 2, TUTTI_BOOL, TUTTI_LAND, comm, NULL));
	CHECK(out[0] == 1 && out[1] == 0);
}

static void pairs_that_do_not_exist_are_refused(void **state)
{
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, odd_pairs, NULL), 0);
}

struct differing {
	tutti_type type;
	tutti_op of_rank[2];
	bool creates; /* of rank 0 a sum of multiplied inputs, of rank 1 an operator */
	const char *words;
};

static void differ(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct differing *d = arg;
	const float one = 1;
	double in[2] = { 1, 0 }, out[2];
	tutti_op op = d->of_rank[rank];

	(void)n;
	if (d->creates && rank == 0)
		CHECK_OK(tutti_op_create_premul_sum(&op, &one, TUTTI_FLOAT32, TUTTI_SCALAR_NOW,
						    comm));
	if (d->creates && rank == 1)
		CHECK_OK(tutti_op_create(&op, largest, NULL, 1, comm));
	CHECK(tutti_all_reduce(in, out, 1, d->type, op, comm, NULL) == TUTTI_EMISMATCH);
	if (!CHECK(strstr(tutti_last_error(comm), d->words)))
		fprintf(stderr, "  %s\n", tutti_last_error(comm));
}

static void ranks_that_differ_are_told(void **state)
{
	struct differing reproducible = { .type = TUTTI_FLOAT32,
					  .of_rank = { TUTTI_SUM,
						       (tutti_op)(TUTTI_OP_REPRODUCIBLE) },
					  .words = "all_reduce(1 x float32, sum, reproducible)" };
	struct differing kinds = { .type = TUTTI_FLOAT32,
				   .creates = true,
				   .words = "all_reduce(1 x float32, premul_sum 0)" };
	struct differing bits = { .type = TUTTI_UINT16,
				  .of_rank = { TUTTI_LXOR, TUTTI_BXOR },
				  .words = "all_reduce(1 x uint16, lxor)" };
	struct differing parts = { .type = TUTTI_COMPLEX128,
				   .of_rank = { TUTTI_PROD, TUTTI_SUM },
				   .words = "all_reduce(1 x complex128, prod)" };
	const struct world world = { .n = 2 };

	(void)state;
	assert_int_equal(world_run(&world, differ, &reproducible), 0);
	assert_int_equal(world_run(&world, differ, &kinds), 0);
	assert_int_equal(world_run(&world, differ, &bits), 0);
	assert_int_equal(world_run(&world, differ, &parts), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_multiplied_inputs),
		cmocka_unit_test(users_operator),
		cmocka_unit_test(scalars_are_read_when_they_should),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(pairs_that_do_not_exist_are_refused),
		cmocka_unit_test(ranks_that_differ_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

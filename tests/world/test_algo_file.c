/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms of files, run: results against the serial ones, on every transport, and that
 * it is they that ran. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/calls.h"
#include "support/msccl.h"
#include "support/sanitizer.h"
#include "support/world.h"

#define KIB 1024

static const struct msccl_spec specs[] = {
	{ .kind = MSCCL_EXCHANGE, .n = 4, .channels = 1, .max_bytes = KIB },
	{ .kind = MSCCL_ALL_PAIRS,
	  .n = 4,
	  .channels = 2,
	  .min_bytes = KIB + 1,
	  .max_bytes = 64 * KIB },
	{ .kind = MSCCL_HALVING,
	  .n = 4,
	  .channels = 1,
	  .in_place = true,
	  .min_bytes = 64 * KIB + 1,
	  .max_bytes = 256 * KIB },
	{ .kind = MSCCL_RING, .n = 4, .channels = 3, .in_place = true, .min_bytes = 256 * KIB + 1 },
	{ .kind = MSCCL_HIERARCHICAL, .n = 6, .channels = 1, .group = 3, .in_place = true },
	{ .kind = MSCCL_RING, .coll = TUTTI_ALL_GATHER, .n = 4, .channels = 2 },
	{ .kind = MSCCL_RING, .coll = TUTTI_REDUCE_SCATTER, .n = 4, .channels = 1 },
	{ .kind = MSCCL_EXCHANGE, .coll = TUTTI_ALL_TO_ALL, .n = 4, .channels = 2 },
	{ .kind = MSCCL_CHAIN, .coll = TUTTI_BROADCAST, .n = 4, .channels = 3, .root = 1 },
	{ .kind = MSCCL_CHAIN, .coll = TUTTI_REDUCE, .n = 4, .channels = 1, .root = 2 },
};
#define NSPECS (sizeof(specs) / sizeof(specs[0]))

static const char *const kinds[] = { "my_ring",    "my_all_pairs",    "my_exchange",
				     "my_halving", "my_hierarchical", "my_chain" };

/* The file for a vector, NULL: none. */
static const char *expected(tutti_collective coll, int n, int root, size_t nbytes)
{
	for (size_t i = 0; i < NSPECS; i++) {
		const struct msccl_spec *spec = &specs[i];
		const bool rooted = coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE;

		if (spec->coll == coll && spec->n == n && (!rooted || spec->root == root) &&
		    nbytes >= (size_t)spec->min_bytes &&
		    (!spec->max_bytes || nbytes <= (size_t)spec->max_bytes))
			return kinds[spec->kind];
	}
	return NULL;
}

static void check_algorithm(tutti_comm_t comm, const struct call *call, int n)
{
	const bool by_rank = call->coll == TUTTI_ALL_GATHER || call->coll == TUTTI_REDUCE_SCATTER ||
			     call->coll == TUTTI_ALL_TO_ALL;
	const size_t nbytes = call->count * tutti_type_size(call->type) * (size_t)(by_rank ? n : 1);
	const char *name = expected(call->coll, n, call->root, nbytes);
	struct tutti_call_report report = { 0 };

	CHECK_OK(tutti_comm_last_call(comm, &report));
	if (name)
		CHECK(strcmp(report.algorithm, name) == 0);
	else
		CHECK(strncmp(report.algorithm, "my_", 3) != 0);
}

static void all_jobs(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const size_t counts[] = {
		1, 63, 256, 257, 4097, 16385, 70001, SANITIZED ? 1 : 300001
	};
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE,     TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER, TUTTI_BROADCAST,
						  TUTTI_REDUCE,         TUTTI_ALL_TO_ALL };
	static const tutti_op ops[] = { TUTTI_SUM, TUTTI_MAX, TUTTI_MIN };

	(void)arg;
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
			for (int in_place = 0; in_place < 2; in_place++) {
				const struct call call = { .coll = colls[i],
							   .type = TUTTI_FLOAT32,
							   .op = (int)ops[c % 3],
							   .count = counts[c],
							   .root = (int)(c + (size_t)in_place) % n,
							   .in_place = in_place };

				call_and_check(&call, comm, rank, n, NULL);
				check_algorithm(comm, &call, n);
			}
}

static void run_over(const char *transport, int n, const char *algo, world_fn fn)
{
	const struct world world = { .n = n, .transport = transport, .algo = algo };

	assert_int_equal(world_run(&world, fn, NULL), 0);
}

static void results_are_right_everywhere(void **state)
{
	(void)state;
	run_over("shm", 4, NULL, all_jobs);
	run_over("tcp", 4, NULL, all_jobs);
	run_over(NULL, 6, NULL, all_jobs);
	/* None is for these: the library's own run. */
	run_over(NULL, 3, NULL, all_jobs);
}

static const char *name_of_a_call(tutti_comm_t comm, tutti_op op)
{
	struct tutti_call_report report = { 0 };
	float value = 1;

	CHECK_OK(tutti_all_reduce(&value, &value, 1, TUTTI_FLOAT32, op, comm, NULL));
	CHECK_OK(tutti_comm_last_call(comm, &report));
	return report.algorithm;
}

static void excluded_by_pin(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)rank;
	(void)n;
	(void)arg;
	CHECK(strcmp(name_of_a_call(comm, TUTTI_SUM), "exchange") == 0);
}

static void named_by_pin(tutti_comm_t comm, int rank, int n, void *arg)
{
	(void)rank;
	(void)n;
	(void)arg;
	CHECK(strcmp(name_of_a_call(comm, TUTTI_SUM), "my_exchange") == 0);
}

/* A pin goes before files, and may name them. */
static void pins_and_files(void **state)
{
	(void)state;
	run_over("shm", 4, "all_reduce:exchange", excluded_by_pin);
	run_over("shm", 4, "all_reduce:^my_exchange", excluded_by_pin);
	run_over("shm", 4, "all_reduce:my_exchange,ring", named_by_pin);
}

static void list_files(char *list, size_t size, const char *dir)
{
	size_t used = 0;

	for (size_t i = 0; i < NSPECS; i++)
		used += (size_t)snprintf(list + used, size - used, "%s%s/%zu.xml", i ? ":" : "",
					 dir, i);
}

static void write_files(const char *dir)
{
	for (size_t i = 0; i < NSPECS; i++) {
		char path[300], *text = msccl_text(&specs[i]);
		FILE *file;

		(void)snprintf(path, sizeof(path), "%s/%zu.xml", dir, i);
		file = fopen(path, "w");
		if (!file || fputs(text, file) < 0 || fclose(file) != 0)
			abort();
		free(text);
	}
}

static void remove_files(const char *dir)
{
	char path[300];

	for (size_t i = 0; i < NSPECS; i++) {
		(void)snprintf(path, sizeof(path), "%s/%zu.xml", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_right_everywhere),
		cmocka_unit_test(pins_and_files),
	};
	char dir[] = "/tmp/tutti_algo_XXXXXX", list[4096];
	int failed;

	if (!mkdtemp(dir))
		return 1;
	/* The first thing that the library does is to read the environment. */
	list_files(list, sizeof(list), dir);
	setenv("TUTTI_ALGO_FILE", list, 1);
	write_files(dir);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_files(dir);
	return failed;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* TUTTI_REPRODUCIBLE: the same bits wherever ranks sit, however slots are cut, whatever is
 * pinned; ranks are processes, hosts are told apart by TUTTI_HOST_ID. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/reductions.h"
#include "support/sanitizer.h"

#define N 6

struct variant {
	const char *hosts; /* of rank i the i-th letter */
	const char *variables[4][2];
};

static const struct variant *variant;

static const struct variant variants[] = {
	{ "aaaaaa", { { NULL } } },
	{ "aaabbb", { { NULL } } },
	{ "ababab", { { "TUTTI_SLICE", "4K" } } },
	{ "aabbcc", { { "TUTTI_TCP_SLOT", "4K" }, { "TUTTI_TCP_SLOTS", "1" } } },
	{ "abbbbc",
	  { { "TUTTI_ALGO", "all_reduce:ordered,direct;reduce:ordered,flat;"
			    "reduce_scatter:ordered,direct" } } },
	{ "abcacb", { { "TUTTI_SLICE", "1000" }, { "TUTTI_ALGO", "all_reduce:exchange" } } },
	{ "aaaaaa",
	  { { "TUTTI_SHM_SLOT", "4K" },
	    { "TUTTI_SHM_SLOTS", "1" },
	    { "TUTTI_ALGO", "reduce:flat" } } },
	{ "bbbbba", { { "TUTTI_SLICE", "100K" }, { "TUTTI_ALGO", "all_reduce:direct" } } },
	{ "aaaaaa", { { "TUTTI_TRANSPORT", "tcp" } } },
};

static void prepare(struct crew *crew, int rank)
{
	const char host[] = { variant->hosts[rank], '\0' };

	(void)crew;
	setenv("TUTTI_REPRODUCIBLE", "1", 1);
	setenv("TUTTI_HOST_ID", host, 1);
	for (size_t i = 0; i < 4 && variant->variables[i][0]; i++)
		setenv(variant->variables[i][0], variant->variables[i][1], 1);
}

static tutti_status reduce_all(struct crew *crew, int rank, tutti_comm_t comm)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_REDUCE,
						  TUTTI_REDUCE_SCATTER };
	static const tutti_type types[] = { TUTTI_FLOAT32, TUTTI_FLOAT16, TUTTI_BFLOAT16,
					    TUTTI_FLOAT64 };
	static const size_t counts[] = { 3, 1000, SANITIZED ? 20011 : 70001 };

	/* A step that meets each kind, type and count. */
	for (size_t i = 0; i < 3 * 4 * 3; i += SANITIZED ? 5 : 1) {
		const struct reduction r = { .coll = colls[i % 3],
					     .type = types[i / 3 % 4],
					     .op = i % 5 ? TUTTI_SUM : TUTTI_AVG,
					     .count = counts[i / 12],
					     .root = (int)(i % N),
					     .in_place = i % 2,
					     .seed = i,
					     .expect = expect_kernel };

		if (!reduction_run(&r, comm, rank, N, NULL))
			return TUTTI_EINTERNAL;
	}
	/* All others are in their last call, or through with it. */
	atomic_store(&crew->stop, 1);
	return TUTTI_OK;
}

static void bits_do_not_depend_on_places(void **state)
{
	(void)state;
	for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); v++) {
		struct crew *crew = crew_create(N, NULL, reduce_all);

		variant = &variants[v];
		crew->prepare = prepare;
		crew->timeout_ms = 60000;
		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, 100000, -1), 0);
		for (int rank = 0; rank < N; rank++)
			if (crew->rank[rank].status != TUTTI_OK || !crew->rank[rank].done)
				fail_msg("hosts %s, %s %s: rank %d: %s", variant->hosts,
					 variant->variables[0][0], variant->variables[0][1], rank,
					 crew->rank[rank].text);
		crew_free(crew);
	}
}

static void some_only(struct crew *crew, int rank)
{
	(void)crew;
	setenv("TUTTI_REPRODUCIBLE", rank == 2 ? "1" : "0", 1);
}

static void ranks_must_agree(void **state)
{
	struct crew *crew = crew_create(3, NULL, reduce_all);

	(void)state;
	crew->prepare = some_only;
	assert_int_not_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < 3; rank++) {
		assert_int_equal(crew->rank[rank].status, TUTTI_EINVAL);
		assert_non_null(strstr(crew->rank[rank].text,
				       "rank 2 has another TUTTI_REPRODUCIBLE, or `reproducible`"));
	}
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_do_not_depend_on_places),
		cmocka_unit_test(ranks_must_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

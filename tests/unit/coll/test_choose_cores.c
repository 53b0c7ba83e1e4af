/* SPDX-License-Identifier: BSD-3-Clause */
/* What is taken on one host where ranks have cores of their own, and where they share them; and where
 * kernels of GPUs run calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coll/choose/choose.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* Short calls of many ranks that have cores of their own save messages; where ranks share cores they save
 * changes of process. */
static void own_cores_choose_trees(void **state)
{
	static const struct {
		tutti_collective coll;
		int n;
		size_t nbytes;
		const char *own, *shared;
	} cases[] = {
		{ TUTTI_ALL_REDUCE, 8, 8, "exchange", "exchange" },
		{ TUTTI_ALL_REDUCE, 16, 8, "recursive_doubling", "exchange" },
		{ TUTTI_ALL_REDUCE, 16, 4 * KIB, "recursive_doubling", "exchange" },
		{ TUTTI_ALL_REDUCE, 16, 64 * KIB, "direct", "direct" },
		{ TUTTI_BROADCAST, 2, 8, "flat", "flat" },
		{ TUTTI_BROADCAST, 4, 8, "binomial", "flat" },
		{ TUTTI_BROADCAST, 16, 4 * KIB, "binomial", "flat" },
		{ TUTTI_BROADCAST, 16, 64 * KIB, "flat", "flat" },
		{ TUTTI_BARRIER, 4, 0, "exchange", "exchange" },
		{ TUTTI_BARRIER, 16, 0, "dissemination", "exchange" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tti_choice_input input = { .coll = cases[i].coll,
						  .n = cases[i].n,
						  .nbytes = cases[i].nbytes,
						  .nhosts = 1,
						  .slot_bytes = 1 << 18 };

		for (input.oversubscribed = 0; input.oversubscribed < 2; input.oversubscribed++) {
			struct tti_choice out;

			assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
			assert_string_equal(out.algo->name,
					    input.oversubscribed ? cases[i].shared : cases[i].own);
		}
	}
}

/* A kernel does nothing else while it waits for a part. */
static void kernels_have_rounds_of_one_part(void **state)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tti_choice_input input = { .coll = colls[i],
						  .n = 4,
						  .nbytes = 64 * MIB,
						  .nhosts = 4,
						  .slot_bytes = 256 * KIB };
		struct tti_choice out;

		assert_int_equal(tti_choose(&input, "ring", 0, &out), TUTTI_OK);
		assert_int_equal(out.split.parts, 8);
		input.in_order = true;
		assert_int_equal(tti_choose(&input, "ring", 0, &out), TUTTI_OK);
		assert_int_equal(out.split.parts, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_cores_choose_trees),
		cmocka_unit_test(kernels_have_rounds_of_one_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* When algorithms that work where the data lies are taken, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/choose.h"
#include "util/error.h"

static struct tti_choice choose(tutti_collective coll, int n, size_t nbytes, enum tti_order order,
				bool reaches, const char *pin)
{
	const struct tti_choice_input input = { .coll = coll,
						.n = n,
						.nbytes = nbytes,
						.nhosts = 1,
						.order = order,
						.reaches_memory = reaches,
						.slot_bytes = 1 << 18 };
	struct tti_choice out = { 0 };

	if (tti_choose(&input, pin, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return out;
}

static const char *name(tutti_collective coll, bool reaches, const char *pin)
{
	return choose(coll, 4, 1 << 20, TTI_ORDER_ANY, reaches, pin).algo->name;
}

/* Where all reach all buffers it is taken, for every size, number of ranks and order that it is
 * there for; a barrier has no buffers. */
static void it_is_taken_where_it_can_be(void **state)
{
	(void)state;
	for (int coll = 0; coll < TUTTI_BARRIER; coll++)
		for (int n = 1; n <= 200; n += 13)
			for (size_t nbytes = 1; nbytes <= (size_t)1 << 30; nbytes *= 64) {
				const enum tti_order order =
					tti_collective_reduces((tutti_collective)coll)
						? TTI_ORDER_ONE_PASS
						: TTI_ORDER_ANY;
				const struct tti_choice got = choose((tutti_collective)coll, n,
								     nbytes, order, true, NULL);

				assert_string_equal(got.algo->name, "memory");
				assert_true(got.algo->needs_memory);
				assert_int_equal(got.by, TTI_CHOICE_BY_RULE);
			}
	assert_string_equal(name(TUTTI_BARRIER, true, NULL), "exchange");
}

/* Whatever is asked for, it is not taken where a buffer is not reached. */
static void it_is_never_taken_elsewhere(void **state)
{
	static const char *const pins[] = { NULL, "memory", "^direct", "^exchange,direct,flat" };

	(void)state;
	for (int coll = 0; coll < TUTTI_BARRIER; coll++)
		for (size_t pin = 0; pin < sizeof(pins) / sizeof(pins[0]); pin++)
			for (int n = 1; n <= 200; n += 13) {
				/* Nothing else is left of a few. */
				const bool all = coll == TUTTI_REDUCE || coll == TUTTI_ALL_REDUCE ||
						 coll == TUTTI_BROADCAST;

				if (pin == 3 && !all)
					continue;
				assert_false(choose((tutti_collective)coll, n, 1 << 20,
						    TTI_ORDER_ANY, false, pins[pin])
						     .algo->needs_memory);
			}
}

/* A call on other buffers goes as if nothing was said of memory. */
static void pins_go_before_it(void **state)
{
	(void)state;
	assert_string_equal(name(TUTTI_ALL_REDUCE, true, "ring"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, true, "^memory"), "direct");
	assert_string_equal(name(TUTTI_ALL_REDUCE, true, "memory,ring"), "memory");
	assert_string_equal(name(TUTTI_ALL_REDUCE, true, "ring,memory"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, false, "memory,ring"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, false, "memory"), "direct");
	assert_int_equal(choose(TUTTI_ALL_REDUCE, 4, 1 << 20, TTI_ORDER_ANY, true, "memory").by,
			 TTI_CHOICE_BY_PIN);
	assert_int_equal(choose(TUTTI_ALL_REDUCE, 4, 1 << 20, TTI_ORDER_ANY, false, "memory").by,
			 TTI_CHOICE_BY_RULE);
}

/* By the kernel only what has a memory program, more readily where ranks have cores of their own, and
 * nothing short. */
static void the_kernel_copies_what_gains(void **state)
{
	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (size_t nbytes = 1; nbytes <= (size_t)1 << 32; nbytes *= 2) {
			const bool own =
				tti_choice_copies((tutti_collective)coll, 3, false, nbytes);
			const bool shared =
				tti_choice_copies((tutti_collective)coll, 3, true, nbytes);

			assert_false(shared && !own);
			assert_false(own && nbytes < (256 << 10));
			assert_false(own && !tti_algorithm_find((tutti_collective)coll, "memory"));
			assert_false(tti_choice_copies((tutti_collective)coll, 5, true, nbytes));
		}
	assert_true(tti_choice_copies(TUTTI_ALL_TO_ALL, 2, false, 1 << 20));
	assert_true(tti_choice_copies(TUTTI_ALL_GATHER, 4, true, 1 << 20));
	assert_false(tti_choice_copies(TUTTI_ALL_REDUCE, 4, true, 1 << 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_taken_where_it_can_be),
		cmocka_unit_test(it_is_never_taken_elsewhere),
		cmocka_unit_test(pins_go_before_it),
		cmocka_unit_test(the_kernel_copies_what_gains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* When algorithms that work where the data lies are taken, and when not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/choose/choose.h"
#include "plan/tune/tune.h"
#include "util/error.h"

static struct tti_choice choose(tutti_collective coll, int n, size_t nbytes, enum tti_order order,
				enum tti_reach reach, const char *forced)
{
	const struct tti_choice_input input = { .coll = coll,
						.n = n,
						.nbytes = nbytes,
						.nhosts = 1,
						.order = order,
						.reach = reach,
						.slot_bytes = 1 << 18 };
	struct tti_choice out = { 0 };

	if (tti_choose(&input, forced, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return out;
}

static const char *name(tutti_collective coll, enum tti_reach reach, const char *forced)
{
	return choose(coll, 4, 1 << 20, TTI_ORDER_ANY, reach, forced).algo->name;
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
				const struct tti_choice got =
					choose((tutti_collective)coll, n, nbytes, order,
					       TTI_REACH_MAPPED, NULL);

				assert_string_equal(got.algo->name, "memory");
				assert_true(got.algo->needs_memory);
				assert_int_equal(got.by, TTI_CHOICE_BY_RULE);
			}
	assert_string_equal(name(TUTTI_BARRIER, TTI_REACH_MAPPED, NULL), "exchange");
}

/* Whatever is asked for, it is not taken where a buffer is not reached. */
static void it_is_never_taken_elsewhere(void **state)
{
	static const char *const forced_algorithms[] = { NULL, "memory", "^direct",
							 "^exchange,direct,flat" };

	(void)state;
	for (int coll = 0; coll < TUTTI_BARRIER; coll++)
		for (size_t forced = 0;
		     forced < sizeof(forced_algorithms) / sizeof(forced_algorithms[0]); forced++)
			for (int n = 1; n <= 200; n += 13) {
				/* Nothing else is left of a few. */
				const bool all = coll == TUTTI_REDUCE || coll == TUTTI_ALL_REDUCE ||
						 coll == TUTTI_BROADCAST;

				if (forced == 3 && !all)
					continue;
				assert_false(choose((tutti_collective)coll, n, 1 << 20,
						    TTI_ORDER_ANY, TTI_REACH_SLOTS,
						    forced_algorithms[forced])
						     .algo->needs_memory);
			}
}

/* A call on other buffers goes as if nothing was said of memory. */
static void pins_go_before_it(void **state)
{
	(void)state;
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_MAPPED, "ring"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_MAPPED, "^memory"), "direct");
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_MAPPED, "memory,ring"), "memory");
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_MAPPED, "ring,memory"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_SLOTS, "memory,ring"), "ring");
	assert_string_equal(name(TUTTI_ALL_REDUCE, TTI_REACH_SLOTS, "memory"), "direct");
	assert_int_equal(
		choose(TUTTI_ALL_REDUCE, 4, 1 << 20, TTI_ORDER_ANY, TTI_REACH_MAPPED, "memory").by,
		TTI_CHOICE_FORCED);
	assert_int_equal(
		choose(TUTTI_ALL_REDUCE, 4, 1 << 20, TTI_ORDER_ANY, TTI_REACH_SLOTS, "memory").by,
		TTI_CHOICE_BY_RULE);
}

/* As measured on a machine where the kernel carries 12 GB/s, and slots a fifth less. */
static const struct tti_reach_figures measured = {
	.call_ns = 700,
	.copied_64k = 9700,
	.copied_512k = 11850,
	.slots_64k = 8900,
	.slots_512k = 9300,
};

/* Whether a call goes by the kernel, where that takes as long as `figures` say. */
static bool copies(const struct tti_reach_figures *figures, tutti_collective coll, int n,
		   bool oversubscribed, size_t nbytes)
{
	const struct tti_choice_input input = { .coll = coll,
						.n = n,
						.nbytes = nbytes,
						.nhosts = 1,
						.oversubscribed = oversubscribed,
						.reach = TTI_REACH_COPIED,
						.figures = figures,
						.slot_bytes = 1 << 18 };
	struct tti_choice out;

	assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
	return out.algo->needs_memory;
}

/* By the kernel only what has a memory program, less readily the more ranks copy, and nothing short. */
static void the_kernel_copies_what_gains(void **state)
{
	(void)state;
	for (int i = 0; i < TUTTI_BARRIER; i++)
		for (size_t nbytes = 1; nbytes <= (size_t)1 << 32; nbytes *= 2) {
			const tutti_collective coll = (tutti_collective)i;
			const bool few = copies(&measured, coll, 2, false, nbytes);
			const bool many = copies(&measured, coll, 16, false, nbytes);

			assert_false(many && !few);
			assert_false(few && nbytes < (64 << 10));
			assert_false(copies(&measured, coll, 5, true, nbytes));
			assert_false(copies(NULL, coll, 3, false, nbytes));
		}
	assert_true(copies(&measured, TUTTI_ALL_TO_ALL, 2, false, 1 << 20));
	assert_true(copies(&measured, TUTTI_ALL_GATHER, 4, true, 1 << 20));
	assert_true(copies(&measured, TUTTI_ALL_GATHER, 2, false, 256 << 10));
	assert_false(copies(&measured, TUTTI_ALL_GATHER, 16, false, 256 << 10));
	assert_true(copies(&measured, TUTTI_ALL_GATHER, 16, false, 4 << 20));
	assert_false(copies(&measured, TUTTI_ALL_REDUCE, 4, true, 1 << 20));
	assert_false(copies(&measured, TUTTI_REDUCE_SCATTER, 2, false, 8 << 20));
	assert_false(copies(&measured, TUTTI_REDUCE, 2, false, 8 << 20));
}

/* From where on follows from what was measured: the more the kernel saves, the shorter. */
static void the_border_follows_the_figures(void **state)
{
	struct tti_reach_figures figures = measured;
	size_t least[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		static const uint32_t slots[] = { 11000, 9300, 5000 };

		figures.slots_512k = slots[i];
		for (least[i] = 1 << 10; !copies(&figures, TUTTI_ALL_TO_ALL, 2, false, least[i]);)
			least[i] *= 2;
	}
	assert_true(least[0] > least[1] && least[1] > least[2]);
	figures.slots_512k = figures.copied_512k;
	assert_false(copies(&figures, TUTTI_ALL_TO_ALL, 2, false, 16 << 20));
}

/* A line of a tune file holds for the memory that it names, and no other. */
static void lines_hold_for_their_memory(void **state)
{
	static const char text[] = "choose all_reduce inf ring ranks 4\n"
				   "choose all_to_all inf direct ranks 4 reach mapped\n"
				   "choose all_gather inf direct ranks 4 reach copied\n"
				   "choose reduce_scatter 256K memory ranks 4 reach copied\n";
	static const struct {
		tutti_collective coll;
		const char *taken[3]; /* by slots, mapped, copied */
	} cases[] = {
		{ TUTTI_ALL_REDUCE, { "ring", "memory", "memory" } },
		{ TUTTI_ALL_TO_ALL, { "direct", "direct", "memory" } },
		{ TUTTI_ALL_GATHER, { "direct", "memory", "direct" } },
		{ TUTTI_REDUCE_SCATTER, { "direct", "memory", "direct" } }, /* it is too long */
	};
	struct tti_choice_input input = { .n = 4, .nhosts = 1, .slot_bytes = 1 << 18 };
	struct tti_tune_table *table;
	struct tti_choice out;

	(void)state;
	assert_int_equal(tti_tune_read(text, sizeof(text) - 1, "lines", &table), TUTTI_OK);
	input.tune = table;
	input.figures = &measured;
	input.nbytes = 1 << 20;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int reach = 0; reach <= TTI_REACH_COPIED; reach++) {
			input.coll = cases[i].coll;
			input.reach = (enum tti_reach)reach;
			assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
			assert_string_equal(out.algo->name, cases[i].taken[reach]);
		}
	input.nbytes = 256 << 10;
	assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "memory");
	assert_int_equal(out.by, TTI_CHOICE_BY_TUNE_FILE);
	tti_tune_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_taken_where_it_can_be),
		cmocka_unit_test(it_is_never_taken_elsewhere),
		cmocka_unit_test(pins_go_before_it),
		cmocka_unit_test(the_kernel_copies_what_gains),
		cmocka_unit_test(the_border_follows_the_figures),
		cmocka_unit_test(lines_hold_for_their_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/choose.h"
#include "plan/tune.h"
#include "util/error.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static struct tti_choice_input input_of(tutti_collective coll, int n, size_t nbytes, int nhosts)
{
	return (struct tti_choice_input){ .coll = coll,
					  .n = n,
					  .nbytes = nbytes,
					  .nhosts = nhosts,
					  .slot_bytes = 256 * KIB,
					  .inline_bytes = 256 };
}

static const char *choice(tutti_collective coll, int n, size_t nbytes, int nhosts, const char *pin)
{
	const struct tti_choice_input input = input_of(coll, n, nbytes, nhosts);
	struct tti_choice out = { 0 };

	if (tti_choose(&input, pin, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	assert_int_equal(out.algo->coll, coll);
	return out.algo->name;
}

static void defaults(void **state)
{
	(void)state;
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, NULL), "exchange");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 3 * KIB, 1, NULL), "exchange");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 64 * KIB, 1, NULL), "direct");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 128 * MIB, 1, NULL), "direct");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 128, 8, 1, NULL), "recursive_doubling");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 128, 64 * KIB, 1, NULL), "double_tree");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 128, 64 * MIB, 1, NULL), "ring");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, MIB, 1, NULL), "flat");
	assert_string_equal(choice(TUTTI_BARRIER, 4, 0, 1, NULL), "exchange");
}

static const char *chosen(const struct tti_choice_input *input, const char *pin)
{
	struct tti_choice out = { 0 };

	if (tti_choose(input, pin, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return out.algo->name;
}

/* Between hosts of `size` ranks each. */
static const char *far_choice(tutti_collective coll, uint32_t nhosts, uint32_t size, size_t nbytes,
			      const char *pin)
{
	struct tti_choice_input input = input_of(coll, (int)(nhosts * size), nbytes, (int)nhosts);
	uint32_t group_of[64];
	struct tti_shape *shape = NULL;
	const char *name;

	for (uint32_t rank = 0; rank < nhosts * size; rank++)
		group_of[rank] = rank / size;
	assert_int_equal(tti_shape_of_groups(group_of, nhosts * size, &shape), TUTTI_OK);
	input.shape = shape;
	name = chosen(&input, pin);
	tti_shape_free(shape);
	return name;
}

/* What plan/tune.h predicts, which has tests of its own: little data in few hops, much
 * in few bytes between hosts. */
static void between_hosts(void **state)
{
	(void)state;
	assert_string_equal(far_choice(TUTTI_ALL_REDUCE, 2, 8, 8, NULL), "recursive_doubling");
	assert_string_equal(far_choice(TUTTI_ALL_REDUCE, 2, 8, MIB, NULL), "hierarchical_doubling");
	assert_string_equal(far_choice(TUTTI_ALL_REDUCE, 4, 8, 64 * MIB, NULL), "hierarchical");
	assert_string_equal(far_choice(TUTTI_ALL_GATHER, 4, 8, MIB, NULL), "hierarchical");
	assert_string_equal(far_choice(TUTTI_REDUCE_SCATTER, 4, 8, MIB, NULL), "hierarchical");
	assert_string_equal(far_choice(TUTTI_BROADCAST, 2, 4, 8, NULL), "binomial");
	assert_string_equal(far_choice(TUTTI_BARRIER, 2, 4, 0, NULL), "dissemination");
	assert_string_equal(far_choice(TUTTI_ALL_REDUCE, 2, 8, MIB,
				       "all_reduce:^hierarchical,hierarchical_doubling"),
			    "double_tree");
	/* Who is where is not known. */
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 16, MIB, 2, NULL), "double_tree");
	assert_string_equal(choice(TUTTI_ALL_GATHER, 32, MIB, 4, NULL), "ring");
}

/* Where one rank is alone on its host there is one lane, which takes all in. */
static void shapes_and_machines(void **state)
{
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 9, 64 * MIB, 2);
	const uint32_t uneven[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct tti_tune_machine machine = tti_tune_machine_of_groups(9, 2, 5, 4);
	struct tti_shape *shape = NULL;

	(void)state;
	assert_int_equal(tti_shape_of_groups(uneven, 9, &shape), TUTTI_OK);
	input.shape = shape;
	assert_string_equal(chosen(&input, NULL), "double_tree");
	input.machine = &machine;
	assert_string_equal(chosen(&input, NULL), "hierarchical_doubling");
	machine.gpu = true;
	assert_string_equal(chosen(&input, NULL), "hierarchical_doubling");
	machine.nnodes = 3;
	assert_string_equal(chosen(&input, NULL), "double_tree");
	tti_shape_free(shape);
}

static void rules_of_a_file(void **state)
{
	static const char text[] = "choose all_reduce 1K ring\nchoose all_reduce 64K double_tree\n"
				   "choose broadcast inf chain\nchoose all_reduce 64K flat\n";
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 8, KIB, 1);
	struct tti_tune_table *table = NULL;
	struct tti_choice out = { 0 };

	(void)state;
	assert_int_equal(tti_tune_read(text, strlen(text), "test", &table), TUTTI_OK);
	input.tune = table;
	assert_string_equal(chosen(&input, NULL), "ring");
	assert_int_equal(tti_choose(&input, "all_reduce:^ring", 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "double_tree");
	assert_int_equal(tti_choose(&input, "all_reduce:direct", 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "direct");
	input.nbytes = 64 * KIB;
	assert_string_equal(chosen(&input, NULL), "double_tree");
	input.nhosts = 2;
	assert_string_equal(chosen(&input, NULL), "double_tree");
	input.nhosts = 1;
	input.nbytes = 65 * KIB;
	assert_string_equal(chosen(&input, NULL), "direct");
	input.coll = TUTTI_BROADCAST;
	assert_string_equal(chosen(&input, NULL), "chain");
	tti_tune_table_free(table);
}

/* Only where their link would hold direct up, and is known. */
static void sockets(void **state)
{
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 32, 16 * MIB, 1);
	uint32_t group_of[32];
	struct tti_shape *shape = NULL;

	(void)state;
	for (uint32_t rank = 0; rank < 32; rank++)
		group_of[rank] = rank / 16;
	assert_int_equal(tti_shape_of_groups(group_of, 32, &shape), TUTTI_OK);
	assert_string_equal(chosen(&input, NULL), "direct");
	input.shape = shape;
	assert_string_equal(chosen(&input, NULL), "direct");
	shape->ring_gbps = 20;
	assert_string_equal(chosen(&input, NULL), "hierarchical");
	shape->ring_gbps = 100;
	assert_string_equal(chosen(&input, NULL), "direct");
	shape->ring_gbps = 20;
	input.nbytes = 64 * KIB;
	assert_string_equal(chosen(&input, NULL), "direct");
	input.nbytes = 1 * KIB;
	assert_string_equal(chosen(&input, NULL), "exchange");
	tti_shape_free(shape);
}

/* Where ranks share cores a hop costs more than bytes. */
static void crowds(void **state)
{
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 4, 32 * KIB, 1);
	struct tti_choice out;

	(void)state;
	assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "direct");
	input.crowded = 1;
	assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "exchange");
	input.nbytes = 64 * KIB;
	assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "direct");
}

/* There is an algorithm for everything, and slices fit slots. */
static void nothing_is_left_without(void **state)
{
	static const int ranks[] = { 1, 2, 3, 8, 33, 64, 65, 1000, 4096 };
	static const size_t slots[] = { 4 * KIB, 64 * KIB, 64 * MIB };

	(void)state;
	for (int coll = 0; coll < TUTTI_SEND_RECV; coll++)
		for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++)
			for (size_t nbytes = 0; nbytes < SIZE_MAX / 8; nbytes = 4 * nbytes + 1)
				for (int k = 0; k < 6; k++) {
					struct tti_choice_input input =
						input_of((tutti_collective)coll, ranks[r], nbytes,
							 1 + k % 2);
					struct tti_choice out = { 0 };

					input.slot_bytes = slots[k / 2];
					assert_int_equal(tti_choose(&input, NULL, 0, &out),
							 TUTTI_OK);
					assert_non_null(out.algo);
					assert_true(out.slice_bytes >= 1);
					assert_true(out.slice_bytes <= input.slot_bytes);
					assert_int_equal(out.slice_bytes % 64, 0);
				}
}

static void slices(void **state)
{
	const struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 8, 64 * MIB, 1);
	struct tti_choice out = { 0 };

	(void)state;
	assert_int_equal(tti_choose(&input, NULL, 100 * KIB, &out), TUTTI_OK);
	assert_int_equal(out.slice_bytes, 100 * KIB);
	assert_int_equal(tti_choose(&input, NULL, 100 * MIB, &out), TUTTI_OK);
	assert_int_equal(out.slice_bytes, 256 * KIB);
	assert_int_equal(tti_choose(&input, NULL, 10, &out), TUTTI_OK);
	assert_int_equal(out.slice_bytes, 10);
}

static void pins(void **state)
{
	(void)state;
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:ring"), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "broadcast:chain;all_reduce:ring"),
			    "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, " all_reduce : ring , direct ; "),
			    "ring");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "broadcast:chain,binomial"), "chain");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "all_reduce:ring"), "flat");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, ""), "flat");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:ring,;"), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:^exchange"), "direct");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:^exchange,direct"),
			    "recursive_doubling");
	assert_string_equal(choice(TUTTI_ALL_GATHER, 4, 8, 1, "all_gather:^direct,bruck"), "ring");
	/* No rule names it: any other will do. */
	assert_string_equal(choice(TUTTI_REDUCE, 40, 8, 1, "reduce:^binomial,chain"), "flat");
}

static void refused(const char *pin, const char *expected)
{
	const struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 4, 8, 1);
	struct tti_choice out;

	assert_int_equal(tti_choose(&input, pin, 0, &out), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

/* Also in entries for other collectives than the one that is called. */
static void mistakes_in_pins_are_named(void **state)
{
	(void)state;
	refused("ring", "no collective \"ring\"");
	refused("allreduce:ring", "no collective \"allreduce\"; write all_reduce:ring");
	refused("all_reduce", "no algorithm after \"all_reduce\"");
	refused("all_reduce:", "no algorithm after \"all_reduce:\"");
	refused("all_reduce:^", "has no algorithm \"\"");
	refused("all_reduce:rign", "all_reduce has no algorithm \"rign\": it has exchange, direct");
	refused("all_reduce:ring,,direct", "has no algorithm \"\"");
	refused("broadcast:ring", "broadcast has no algorithm \"ring\": it has flat");
	refused("all_reduce:ring;all_reduce:direct", "names all_reduce twice");
	refused("all_reduce:ring,^direct", "^ stands before the list");
	refused("all_reduce:ring direct", "has no algorithm \"ring direct\"");
	refused("send_recv:ring", "send_recv has no algorithm \"ring\"");
	refused("all_reduce:^exchange,direct,ring,recursive_doubling,double_tree,hierarchical,"
		"hierarchical_doubling",
		"leaves no algorithm for all_reduce of 4 ranks");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(between_hosts),
		cmocka_unit_test(shapes_and_machines),
		cmocka_unit_test(rules_of_a_file),
		cmocka_unit_test(sockets),
		cmocka_unit_test(crowds),
		cmocka_unit_test(nothing_is_left_without),
		cmocka_unit_test(slices),
		cmocka_unit_test(pins),
		cmocka_unit_test(mistakes_in_pins_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
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

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static struct tti_choice_input input_of(tutti_collective coll, int n, size_t nbytes, int nhosts)
{
	return (struct tti_choice_input){
		.coll = coll, .n = n, .nbytes = nbytes, .nhosts = nhosts, .slot_bytes = 256 * KIB
	};
}

static const char *choice(tutti_collective coll, int n, size_t nbytes, int nhosts,
			  const char *forced)
{
	const struct tti_choice_input input = input_of(coll, n, nbytes, nhosts);
	struct tti_choice out = { 0 };

	if (tti_choose(&input, forced, 0, &out) != TUTTI_OK)
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

static const char *chosen(const struct tti_choice_input *input, const char *forced)
{
	struct tti_choice out = { 0 };

	if (tti_choose(input, forced, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return out.algo->name;
}

/* Between hosts of `size` ranks each. */
static const char *far_choice(tutti_collective coll, uint32_t nhosts, uint32_t size, size_t nbytes,
			      const char *forced)
{
	struct tti_choice_input input = input_of(coll, (int)(nhosts * size), nbytes, (int)nhosts);
	uint32_t group_of[64];
	struct tti_shape *shape = NULL;
	const char *name;

	for (uint32_t rank = 0; rank < nhosts * size; rank++)
		group_of[rank] = rank / size;
	assert_int_equal(tti_shape_of_groups(group_of, nhosts * size, &shape), TUTTI_OK);
	input.shape = shape;
	name = chosen(&input, forced);
	tti_shape_free(shape);
	return name;
}

/* What plan/tune/tune.h predicts, which has tests of its own: little data in few hops, much
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

/* Who is alone on its host takes all in, in as many stripes as the other host needs. */
static void shapes_and_machines(void **state)
{
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 9, 64 * MIB, 2);
	const uint32_t uneven[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1 };
	struct tti_tune_machine machine = tti_tune_machine_of_groups(9, 2, 5, 4);
	struct tti_shape *shape = NULL;

	(void)state;
	assert_int_equal(tti_shape_of_groups(uneven, 9, &shape), TUTTI_OK);
	input.shape = shape;
	assert_string_equal(chosen(&input, NULL), "hierarchical");
	input.machine = &machine;
	input.nbytes = MIB;
	assert_string_equal(chosen(&input, NULL), "hierarchical_doubling");
	machine.nnodes = 3;
	assert_string_equal(chosen(&input, NULL), "hierarchical");
	tti_shape_free(shape);
}

static struct tti_choice far_split(tutti_collective coll, uint32_t nhosts, uint32_t size,
				   size_t nbytes, double gbps, int oversubscribed)
{
	struct tti_choice_input input = input_of(coll, (int)(nhosts * size), nbytes, (int)nhosts);
	struct tti_tune_machine machine =
		tti_tune_machine_of_groups(nhosts * size, nhosts, size, size);
	struct tti_choice out = { 0 };
	uint32_t group_of[64];

	for (uint32_t rank = 0; rank < nhosts * size; rank++)
		group_of[rank] = rank / size;
	machine.node_gbps = gbps;
	input.oversubscribed = oversubscribed;
	input.machine = &machine;
	assert_int_equal(tti_shape_of_groups(group_of, nhosts * size,
					     (struct tti_shape **)(uintptr_t)&input.shape),
			 TUTTI_OK);
	if (tti_choose(&input, NULL, 0, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	tti_shape_free((struct tti_shape *)(uintptr_t)input.shape);
	return out;
}

/* Where cores are few as many stripes as keep the wires busy, else what is best; parts where
 * there is enough to cut. */
static void cuts(void **state)
{
	const struct tti_choice slow = far_split(TUTTI_ALL_REDUCE, 4, 4, 64 * MIB, 0.125, 1);
	const struct tti_choice fast = far_split(TUTTI_ALL_REDUCE, 4, 4, 64 * MIB, 25, 1);
	const struct tti_choice few = far_split(TUTTI_ALL_REDUCE, 4, 1, 64 * KIB, 0.125, 0);
	const struct tti_choice alone = far_split(TUTTI_ALL_REDUCE, 4, 1, 16 * MIB, 0.125, 0);
	const struct tti_choice own = far_split(TUTTI_ALL_GATHER, 2, 4, 64 * MIB, 0.125, 1);

	(void)state;
	assert_string_equal(slow.algo->name, "hierarchical");
	assert_int_equal(slow.split.stripes, 1);
	assert_int_equal(slow.split.parts, 8);
	assert_string_equal(fast.algo->name, "hierarchical");
	assert_int_equal(fast.split.stripes, 4);
	assert_int_equal(few.split.parts, 1);
	assert_string_equal(alone.algo->name, "ring");
	assert_int_equal(alone.split.parts, 8);
	assert_int_equal(alone.slice_bytes, 96 * KIB);
	/* Each rank's chunk is a part. */
	assert_string_equal(own.algo->name, "hierarchical");
	assert_int_equal(own.split.stripes, 1);
	assert_int_equal(own.split.parts, 2);
	assert_int_equal(far_split(TUTTI_ALL_GATHER, 2, 4, 64 * MIB, 25, 1).split.parts, 8);
	assert_int_equal(far_split(TUTTI_BROADCAST, 2, 4, 64 * MIB, 0.125, 1).split.parts, 1);
}

/* Hosts of any sizes, any speed. */
static void cuts_of_uneven_hosts(void **state)
{
	static const uint32_t group_of[] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2 };
	struct tti_shape *shape = NULL;

	(void)state;
	for (uint32_t n = 9; n <= 11; n++) {
		assert_int_equal(tti_shape_of_groups(group_of, n, &shape), TUTTI_OK);
		for (int coll = 0; coll < TUTTI_SEND_RECV; coll++)
			for (size_t nbytes = 0; nbytes < SIZE_MAX / 8; nbytes = 4 * nbytes + 1)
				for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
					struct tti_choice_input input =
						input_of((tutti_collective)coll, (int)n, nbytes,
							 (int)shape->ngroups);
					struct tti_choice out = { 0 };

					input.shape = shape;
					input.oversubscribed = oversubscribed;
					assert_int_equal(tti_choose(&input, NULL, 0, &out),
							 TUTTI_OK);
					assert_in_range(out.split.parts, 1, 8);
					assert_in_range(out.split.stripes, 0, 8);
				}
		tti_shape_free(shape);
	}
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

/* What was measured among four ranks of one host says nothing of others. */
static void rules_of_some_sizes_and_ranks(void **state)
{
	static const char text[] = "choose all_reduce 1025-4K ring ranks 4\n";
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 4, 4 * KIB, 1);
	struct tti_tune_table *table = NULL;

	(void)state;
	assert_int_equal(tti_tune_read(text, strlen(text), "test", &table), TUTTI_OK);
	input.tune = table;
	assert_string_equal(chosen(&input, NULL), "ring");
	input.nbytes = 1024;
	assert_string_not_equal(chosen(&input, NULL), "ring");
	input.nbytes = 4 * KIB + 1;
	assert_string_not_equal(chosen(&input, NULL), "ring");
	input = input_of(TUTTI_ALL_REDUCE, 3, 4 * KIB, 1);
	input.tune = table;
	assert_string_not_equal(chosen(&input, NULL), "ring");
	/* Over two hosts it is what would be taken without the file. */
	input = input_of(TUTTI_ALL_REDUCE, 4, 4 * KIB, 2);
	assert_string_not_equal(chosen(&input, NULL), "ring");
	input.tune = table;
	assert_string_not_equal(chosen(&input, NULL), "ring");
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
	assert_string_equal(chosen(&input, NULL), "recursive_doubling");
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
	input.oversubscribed = 1;
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
					assert_true(out.split.parts >= 1);
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

static size_t direct_slice(tutti_collective coll, int n, int nhosts, int oversubscribed)
{
	struct tti_choice_input input = input_of(coll, n, 64 * MIB, nhosts);
	struct tti_choice out = { 0 };

	input.oversubscribed = oversubscribed;
	assert_int_equal(tti_choose(&input, "direct", 0, &out), TUTTI_OK);
	assert_string_equal(out.algo->name, "direct");
	return out.slice_bytes;
}

/* Two ranks that have a core each, and send as much as they get, do it in few messages. */
static void slices_of_two(void **state)
{
	static const tutti_collective both[] = { TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER,
						 TUTTI_REDUCE_SCATTER, TUTTI_ALL_TO_ALL };

	(void)state;
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		assert_int_equal(direct_slice(both[i], 2, 1, 0), 256 * KIB);
		assert_int_equal(direct_slice(both[i], 2, 1, 1), 64 * KIB);
		assert_int_equal(direct_slice(both[i], 3, 1, 0), 64 * KIB);
		assert_int_equal(direct_slice(both[i], 2, 2, 0), 64 * KIB);
	}
}

static void forced_algorithms(void **state)
{
	(void)state;
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:ring"), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "broadcast:chain;all_reduce:ring"),
			    "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, " all_reduce : ring , direct ; "),
			    "ring");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "broadcast:chain,binomial"), "chain");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "all_reduce:ring"), "binomial");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, ""), "binomial");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:ring,;"), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:^exchange"),
			    "recursive_doubling");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:^exchange,direct"),
			    "recursive_doubling");
	assert_string_equal(choice(TUTTI_ALL_GATHER, 4, 8, 1, "all_gather:^direct,bruck"), "ring");
	/* No rule names it: any other will do. */
	assert_string_equal(choice(TUTTI_REDUCE, 40, 8, 1, "reduce:^binomial,chain"), "flat");
}

/* By size, for all collectives that have one, and by a word of the name. */
static void pins_by_size_and_for_all(void **state)
{
	static const char by_size[] = "all_reduce@-1K:tree;all_reduce@2K-64K:ring,direct";

	(void)state;
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 0, 1, by_size), "double_tree");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 1 * KIB, 1, by_size), "double_tree");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 1 * KIB + 1, 1, by_size), "exchange");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 2 * KIB, 1, by_size), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 64 * KIB, 1, by_size), "ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 64 * KIB + 1, 1, by_size), "direct");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "ring"), "ring");
	assert_string_equal(choice(TUTTI_ALL_GATHER, 4, 8, 1, "ring"), "ring");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "ring"), "binomial");
	assert_string_equal(choice(TUTTI_BROADCAST, 4, 8, 1, "ring,chain"), "chain");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "^exchange"), "recursive_doubling");
	assert_string_equal(choice(TUTTI_BARRIER, 4, 0, 1, "^exchange"), "dissemination");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "ring;all_reduce:direct"), "direct");
	assert_string_equal(
		choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:ring,tree;broadcast:^binomial"),
		"ring");
	assert_string_equal(choice(TUTTI_ALL_REDUCE, 4, 8, 1, "all_reduce:hierarchical"),
			    "hierarchical");
}

static enum tti_choice_by decided_by(const struct tti_choice_input *input, const char *forced)
{
	struct tti_choice out = { 0 };

	assert_int_equal(tti_choose(input, forced, 0, &out), TUTTI_OK);
	return out.by;
}

static void who_decided_is_said(void **state)
{
	const struct tti_choice_input near = input_of(TUTTI_ALL_REDUCE, 4, 8, 1);
	struct tti_choice_input far = input_of(TUTTI_ALL_REDUCE, 4, 8, 2);
	struct tti_tune_table *tune = NULL;
	static const char rule[] = "choose all_reduce inf ring\n";

	(void)state;
	assert_string_equal(tti_choice_by_text(decided_by(&near, NULL)), "measured");
	assert_string_equal(tti_choice_by_text(decided_by(&near, "^exchange")), "measured");
	assert_string_equal(tti_choice_by_text(decided_by(&near, "all_reduce:ring")), "TUTTI_ALGO");
	assert_string_equal(tti_choice_by_text(decided_by(&far, NULL)), "predicted");
	assert_int_equal(tti_tune_read(rule, sizeof(rule) - 1, "rule", &tune), TUTTI_OK);
	far.tune = tune;
	assert_string_equal(tti_choice_by_text(decided_by(&far, NULL)), "tune file");
	tti_tune_table_free(tune);
}

static void refused(const char *forced, const char *expected)
{
	const struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 4, 8, 1);
	struct tti_choice out;

	assert_int_equal(tti_choose(&input, forced, 0, &out), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

/* Also in entries for other collectives than the one that is called. */
static void mistakes_in_pins_are_named(void **state)
{
	(void)state;
	refused("rign", "no collective has one algorithm \"rign\"");
	refused("allreduce:ring", "no collective \"allreduce\": there are all_reduce, broadcast");
	refused("all_reduce", "no algorithm after \"all_reduce\"");
	refused("all_reduce:", "no algorithm after \"all_reduce:\"");
	refused("all_reduce:^", "has no algorithm \"\"");
	refused("all_reduce:rign", "all_reduce has no algorithm \"rign\": it has exchange, direct");
	refused("all_reduce:ring,,direct", "has no algorithm \"\"");
	refused("broadcast:ring", "broadcast has no algorithm \"ring\": it has flat");
	refused("all_reduce:ring;all_reduce:direct", "names all_reduce twice for 8 bytes");
	refused("all_reduce@-1K:ring;all_reduce@8-:direct", "names all_reduce twice for 8 bytes");
	refused("all_reduce@64K:ring", "\"64K\" is no range of sizes");
	refused("all_reduce@:ring", "\"\" is no range of sizes");
	refused("broadcast@1M-64K:chain", "\"1M-64K\" is no range of sizes");
	refused("all_reduce@-12345678901:ring", "\"-12345678901\" is no range of sizes");
	refused("all_reduce@1T-:ring", "\"1T-\" is no range of sizes");
	refused("all_reduce:doubling", "all_reduce has more than one algorithm \"doubling\"");
	refused("^ring,^tree", "^ stands before the list");
	refused("all_reduce:ring,^direct", "^ stands before the list");
	refused("all_reduce:ring direct", "has no algorithm \"ring direct\"");
	refused("send_recv:ring", "send_recv has no algorithm \"ring\": it has direct, memory");
	refused("handoff:ring", "handoff has no algorithm \"ring\": it has direct, memory");
	refused("all_reduce:^exchange,direct,ring,recursive_doubling,double_tree,hierarchical,"
		"hierarchical_doubling,ordered",
		"leaves no algorithm for all_reduce of 4 ranks");
}

/* What a pin leaves of handoffs, and what it says of other calls. */
static void ways_of_a_handoff(void **state)
{
	static const struct {
		const char *forced;
		unsigned ways;
	} cases[] = {
		{ NULL, TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY },
		{ "send_recv:direct", TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY },
		{ "handoff:direct", TTI_SEND_BY_MESSAGES },
		{ "handoff:^memory", TTI_SEND_BY_MESSAGES },
		{ "handoff:memory", TTI_SEND_BY_MEMORY | TTI_SEND_IS_FORCED },
		{ "handoff:memory,direct",
		  TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY | TTI_SEND_IS_FORCED },
		{ "memory", TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY | TTI_SEND_IS_FORCED },
		{ "memory;handoff:direct", TTI_SEND_BY_MESSAGES },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned ways;

		assert_int_equal(tti_choose_ways(TUTTI_HANDOFF, 8, cases[i].forced, NULL, &ways),
				 TUTTI_OK);
		assert_int_equal(ways, cases[i].ways);
	}
}

static const char *ordered_choice(struct tti_choice_input input, enum tti_order order,
				  const uint32_t *group_of, const char *forced)
{
	struct tti_shape *shape = NULL;
	const char *name;

	input.order = order;
	assert_int_equal(tti_shape_of_groups(group_of, (uint32_t)input.n, &shape), TUTTI_OK);
	input.shape = shape;
	name = chosen(&input, forced);
	tti_shape_free(shape);
	return name;
}

/* Where an order must be kept, what keeps it is chosen, of any size and number of ranks. */
static void orders(void **state)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_REDUCE,
						  TUTTI_REDUCE_SCATTER };
	static const int ranks[] = { 1, 2, 8, 40, 64, 1000 };
	const uint32_t one[] = { 0, 0, 0, 0, 0, 0, 0, 0 }, blocks[] = { 0, 0, 0, 0, 1, 1, 1, 1 };
	const uint32_t dealt[] = { 0, 1, 0, 1, 0, 1, 0, 1 };

	(void)state;
	for (size_t i = 0; i < 3 * 6 * 5; i++) {
		struct tti_choice_input input =
			input_of(colls[i % 3], ranks[i / 3 % 6], (size_t)8 << 7 * (i / 18), 1);
		struct tti_choice out = { 0 };

		for (int order = TTI_ORDER_ANY; order <= TTI_ORDER_ONE_PASS; order++) {
			input.order = (enum tti_order)order;
			assert_int_equal(tti_choose(&input, NULL, 0, &out), TUTTI_OK);
			assert_true(out.algo->order >= input.order);
		}
	}
	struct tti_choice_input far = input_of(TUTTI_ALL_REDUCE, 8, 64 * MIB, 2);
	struct tti_choice_input near = input_of(TUTTI_ALL_REDUCE, 8, 64 * MIB, 1);

	assert_string_equal(ordered_choice(near, TTI_ORDER_RANKS, one, NULL), "direct");
	assert_string_equal(ordered_choice(far, TTI_ORDER_ANY, blocks, NULL), "hierarchical");
	assert_string_equal(ordered_choice(far, TTI_ORDER_RANKS, blocks, NULL), "ordered");
	assert_string_equal(ordered_choice(far, TTI_ORDER_ONE_PASS, blocks, NULL), "direct");
	assert_string_equal(ordered_choice(far, TTI_ORDER_RANKS, dealt, NULL), "direct");
	far.nbytes = 8;
	assert_string_equal(ordered_choice(far, TTI_ORDER_ONE_PASS, blocks, NULL), "exchange");
	/* A pin that holds for all calls may name one for those. */
	assert_string_equal(ordered_choice(near, TTI_ORDER_RANKS, one, "all_reduce:ring,exchange"),
			    "exchange");
	assert_string_equal(ordered_choice(near, TTI_ORDER_ANY, one, "all_reduce:ring,exchange"),
			    "ring");
}

static void pins_that_keep_no_order_are_named(void **state)
{
	struct tti_choice_input input = input_of(TUTTI_ALL_REDUCE, 4, 8, 1);
	struct tti_choice out;

	(void)state;
	input.order = TTI_ORDER_ONE_PASS;
	assert_int_equal(tti_choose(&input, "all_reduce:ring,ordered", 0, &out), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "that reduces in the order of ranks in one pass"));
	assert_non_null(strstr(tti_error_text(), "add one of exchange, direct"));
	assert_null(strstr(tti_error_text(), "direct, ordered"));
	input.order = TTI_ORDER_RANKS;
	assert_int_equal(tti_choose(&input, "all_reduce:^exchange,direct,ordered", 0, &out),
			 TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "add one of exchange, direct, ordered"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(between_hosts),
		cmocka_unit_test(shapes_and_machines),
		cmocka_unit_test(cuts),
		cmocka_unit_test(cuts_of_uneven_hosts),
		cmocka_unit_test(rules_of_a_file),
		cmocka_unit_test(rules_of_some_sizes_and_ranks),
		cmocka_unit_test(sockets),
		cmocka_unit_test(crowds),
		cmocka_unit_test(nothing_is_left_without),
		cmocka_unit_test(slices),
		cmocka_unit_test(slices_of_two),
		cmocka_unit_test(forced_algorithms),
		cmocka_unit_test(pins_by_size_and_for_all),
		cmocka_unit_test(who_decided_is_said),
		cmocka_unit_test(mistakes_in_pins_are_named),
		cmocka_unit_test(ways_of_a_handoff),
		cmocka_unit_test(orders),
		cmocka_unit_test(pins_that_keep_no_order_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

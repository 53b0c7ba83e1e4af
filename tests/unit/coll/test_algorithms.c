/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm, proven for 1 to 33 ranks, and what each promises to cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "util/error.h"

#define RANKS 33

static void build(const struct tti_algorithm *algo, const struct tti_shape *shape, int n, int root,
		  struct tti_program *prog)
{
	for (int rank = 0; rank < n; rank++)
		assert_int_equal(tti_program_build(algo, shape, rank, n, root, &prog[rank]),
				 TUTTI_OK);
}

static void build_named(tutti_collective coll, const char *name, int n, struct tti_program *prog)
{
	const struct tti_algorithm *algo = tti_algorithm_find(coll, name);

	assert_non_null(algo);
	build(algo, NULL, n, 0, prog);
}

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
}

static bool is_rooted(tutti_collective coll)
{
	return coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE;
}

static void prove(const struct tti_algorithm *algo, const struct tti_shape *shape, int n, int root)
{
	static const int slots[] = { 1, 2, 8 };
	struct tti_program prog[RANKS];

	build(algo, shape, n, root, prog);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (tti_program_check(prog, n, slots[i]) != TUTTI_OK)
			fail_msg("%s %s, %d ranks, %u groups, root %d: %s",
				 tutti_collective_name(algo->coll), algo->name, n,
				 shape ? shape->ngroups : 0, root, tti_error_text());
	release(prog, n);
}

static void all_are_proven(void **state)
{
	const struct tti_algorithm *algo;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n++) {
				prove(algo, NULL, n, 0);
				if (!is_rooted(algo->coll) || n == 1)
					continue;
				prove(algo, NULL, n, 1);
				prove(algo, NULL, n, n - 1);
				prove(algo, NULL, n, n / 2);
			}
}

/* Over rings in any order, any trees, groups of any sizes. */
static void all_are_proven_over_shapes(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 1;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 9 ? 3 : 1)
				for (int kind = 0; kind < SHAPE_KINDS; kind++) {
					struct tti_shape *shape =
						shape_draw(n, (enum shape_kind)kind, seed++);

					prove(algo, shape, n, (int)(seed % (uint64_t)n));
					tti_shape_free(shape);
				}
}

static int count(const struct tti_program *prog, enum tti_step_kind kind)
{
	int found = 0;

	for (size_t i = 0; i < prog->steps.n; i++)
		found += prog->steps.at[i].kind == kind;
	return found;
}

/* How many ranks a rank sends to. */
static int fan(const struct tti_program *prog)
{
	bool seen[RANKS] = { false };
	int found = 0;

	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];

		if (step->kind != TTI_SEND || seen[step->peer])
			continue;
		seen[step->peer] = true;
		found++;
	}
	return found;
}

static int log2_up(int n)
{
	int rounds = 0;

	while (1 << rounds < n)
		rounds++;
	return rounds;
}

/* 2(n-1) chunks of 1/n are the least an all_reduce can send. */
static void rings_and_direct_send_the_least(void **state)
{
	struct tti_program prog[RANKS];

	(void)state;
	for (int n = 2; n <= RANKS; n++) {
		build_named(TUTTI_ALL_REDUCE, "ring", n, prog);
		for (int rank = 0; rank < n; rank++) {
			assert_int_equal(count(&prog[rank], TTI_SEND), 2 * (n - 1));
			assert_int_equal(count(&prog[rank], TTI_RECV_REDUCE), n - 1);
			assert_int_equal(fan(&prog[rank]), 1);
		}
		release(prog, n);
		build_named(TUTTI_ALL_REDUCE, "direct", n, prog);
		for (int rank = 0; rank < n; rank++)
			assert_int_equal(count(&prog[rank], TTI_SEND), 2 * (n - 1));
		release(prog, n);
		build_named(TUTTI_REDUCE_SCATTER, "ring", n, prog);
		for (int rank = 0; rank < n; rank++)
			assert_int_equal(count(&prog[rank], TTI_SEND), n - 1);
		release(prog, n);
	}
}

/* What all ranks together send to other groups. */
static int crossing(const struct tti_program *prog, int n, const struct tti_shape *shape)
{
	int found = 0;

	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < prog[rank].steps.n; i++) {
			const struct tti_step *step = &prog[rank].steps.at[i];

			found += step->kind == TTI_SEND &&
				 shape->group_of[rank] != shape->group_of[step->peer];
		}
	return found;
}

/* That the vector goes between groups `times` times for each group but one. */
static void crosses(tutti_collective coll, int n, const struct tti_shape *shape, int times)
{
	struct tti_program prog[RANKS];

	build(tti_algorithm_find(coll, "hierarchical"), shape, n, n / 2, prog);
	assert_int_equal(crossing(prog, n, shape),
			 times * ((int)shape->ngroups - 1) * prog[0].nchunks);
	release(prog, n);
}

/* Which is the least there is, whatever the sizes of the groups. */
static void hierarchies_cross_as_little_as_can_be(void **state)
{
	(void)state;
	for (int n = 1; n <= RANKS; n++)
		for (uint64_t seed = 1; seed < 10; seed++) {
			struct tti_shape *shape = shape_draw(n, SHAPE_GROUPS, seed);

			crosses(TUTTI_ALL_REDUCE, n, shape, 2);
			crosses(TUTTI_ALL_GATHER, n, shape, 1);
			crosses(TUTTI_REDUCE_SCATTER, n, shape, 1);
			crosses(TUTTI_BROADCAST, n, shape, 1);
			crosses(TUTTI_REDUCE, n, shape, 1);
			tti_shape_free(shape);
		}
}

/* A round is a peer that is sent to; the chunks are the least again. */
static void rounds_are_logarithmic(void **state)
{
	struct tti_program prog[RANKS];

	(void)state;
	for (int n = 1; n <= RANKS; n++) {
		build_named(TUTTI_ALL_GATHER, "bruck", n, prog);
		for (int rank = 0; rank < n; rank++) {
			assert_int_equal(fan(&prog[rank]), log2_up(n));
			assert_int_equal(count(&prog[rank], TTI_SEND), n - 1);
		}
		release(prog, n);
		build_named(TUTTI_BARRIER, "dissemination", n, prog);
		for (int rank = 0; rank < n; rank++)
			assert_int_equal(count(&prog[rank], TTI_SEND), log2_up(n));
		release(prog, n);
		build_named(TUTTI_BROADCAST, "binomial", n, prog);
		for (int rank = 0; rank < n; rank++)
			assert_true(count(&prog[rank], TTI_SEND) <= log2_up(n));
		assert_int_equal(count(&prog[0], TTI_SEND), log2_up(n));
		release(prog, n);
		build_named(TUTTI_ALL_REDUCE, "recursive_doubling", n, prog);
		for (int rank = 0; rank < n; rank++)
			assert_true(count(&prog[rank], TTI_SEND) <= log2_up(n) + 1);
		release(prog, n);
	}
}

/* Whom a rank gets its complete half from in tree `tree`; -1: it is the root. */
static int tree_parent(const struct tti_program *prog, int tree)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].kind == TTI_RECV && prog->steps.at[i].chunk == tree)
			return prog->steps.at[i].peer;
	return -1;
}

static bool is_inner(const struct tti_program *prog, int tree)
{
	for (size_t i = 0; i < prog->steps.n; i++)
		if (prog->steps.at[i].kind == TTI_RECV_REDUCE && prog->steps.at[i].chunk == tree)
			return true;
	return false;
}

static void double_trees_share_the_work(void **state)
{
	static struct tti_program prog[300];

	(void)state;
	for (int n = 1; n <= 300; n += n < 70 ? 1 : 23) {
		build_named(TUTTI_ALL_REDUCE, "double_tree", n, prog);
		for (int rank = 0; rank < n; rank++) {
			assert_false(is_inner(&prog[rank], 0) && is_inner(&prog[rank], 1));
			assert_true(count(&prog[rank], TTI_RECV_REDUCE) <= 2);
			for (int tree = 0; tree < 2; tree++) {
				int depth = 0;

				for (int at = rank; tree_parent(&prog[at], tree) >= 0; depth++) {
					at = tree_parent(&prog[at], tree);
					assert_true(depth < 10);
				}
				assert_true(1 << depth <= n);
			}
		}
		release(prog, n);
	}
}

static void table_finds_what_it_lists(void **state)
{
	const struct tti_algorithm *algo;
	struct tti_program prog;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++) {
			assert_int_equal(algo->coll, coll);
			assert_ptr_equal(tti_algorithm_find(algo->coll, algo->name), algo);
			assert_true(strlen(algo->help) > 10);
		}
	assert_null(tti_algorithm_find(TUTTI_ALL_REDUCE, "bruck"));
	assert_null(tti_algorithm_at(TUTTI_ALL_REDUCE, -1));
	assert_null(tti_algorithm_at(TUTTI_SEND_RECV, 0));

	algo = tti_algorithm_find(TUTTI_ALL_REDUCE, "ring");
	assert_int_equal(tti_program_build(algo, NULL, 4, 4, 0, &prog), TUTTI_EINVAL);
	assert_int_equal(tti_program_build(algo, NULL, 0, 4, -1, &prog), TUTTI_EINVAL);
	assert_int_equal(tti_program_build(algo, NULL, 0, 0, 0, &prog), TUTTI_EINVAL);
	assert_int_equal(tti_program_build(algo, NULL, 0, TTI_PROGRAM_RANKS_MAX + 1, 0, &prog),
			 TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_proven),
		cmocka_unit_test(all_are_proven_over_shapes),
		cmocka_unit_test(rings_and_direct_send_the_least),
		cmocka_unit_test(hierarchies_cross_as_little_as_can_be),
		cmocka_unit_test(rounds_are_logarithmic),
		cmocka_unit_test(double_trees_share_the_work),
		cmocka_unit_test(table_finds_what_it_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

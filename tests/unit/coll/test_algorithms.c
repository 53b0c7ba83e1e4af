/* SPDX-License-Identifier: BSD-3-Clause */
/* Every algorithm, proven for 1 to 33 ranks, and what each promises to cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "util/error.h"

#define RANKS (SANITIZED ? 24 : 33)

static void build_split(const struct tti_algorithm *algo, const struct tti_shape *shape,
			struct tti_split split, int n, int root, struct tti_program *prog)
{
	for (int rank = 0; rank < n; rank++) {
		const struct tti_program_spec how = {
			.shape = shape, .split = split, .rank = rank, .n = n, .root = root
		};

		assert_int_equal(tti_program_build(algo, &how, &prog[rank]), TUTTI_OK);
	}
}

static void build(const struct tti_algorithm *algo, const struct tti_shape *shape, int n, int root,
		  struct tti_program *prog)
{
	build_split(algo, shape, (struct tti_split){ 0 }, n, root, prog);
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

static void prove_cut(const struct tti_algorithm *algo, const struct tti_shape *shape,
		      struct tti_split split, int n, int root)
{
	static const int slots[] = { 1, 2, 8 };
	struct tti_program prog[RANKS];

	build_split(algo, shape, split, n, root, prog);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (tti_program_check(prog, n, slots[i], TTI_ORDER_ANY) != TUTTI_OK)
			fail_msg("%s %s, %d ranks, %u groups, root %d, %d parts, %d stripes: %s",
				 tutti_collective_name(algo->coll), algo->name, n,
				 shape ? shape->ngroups : 0, root, split.parts, split.stripes,
				 tti_error_text());
	release(prog, n);
}

static void prove(const struct tti_algorithm *algo, const struct tti_shape *shape, int n, int root)
{
	prove_cut(algo, shape, (struct tti_split){ 0 }, n, root);
}

static void all_are_proven(void **state)
{
	const struct tti_algorithm *algo;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 5 ? 9 : 1) {
				prove(algo, NULL, n, 0);
				if (!tti_collective_is_rooted(algo->coll) || n == 1)
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
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 5 ? 9 : 1)
				for (int kind = 0; kind < SHAPE_KINDS; kind++) {
					struct tti_shape *shape =
						shape_draw(n, (enum shape_kind)kind, seed++);

					prove(algo, shape, n, (int)(seed % (uint64_t)n));
					tti_shape_free(shape);
				}
}

/* However the data is cut. */
static void all_are_proven_in_cuts(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 7;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS; n += SANITIZED && n > 5 ? 9 : 1) {
				struct tti_shape *shape = shape_draw(n, SHAPE_GROUPS, seed++);
				const int most = 1 + (int)(seed % (uint64_t)n);

				prove_cut(algo, shape, (struct tti_split){ 3, 0 }, n, most - 1);
				prove_cut(algo, shape, (struct tti_split){ 2, most }, n, n / 2);
				prove_cut(algo, NULL, (struct tti_split){ 2, 1 }, n, 0);
				tti_shape_free(shape);
			}
}

/* Whether the algorithm keeps an order there. */
static bool keeps(const struct tti_algorithm *algo, const struct tti_shape *shape,
		  struct tti_split split, int n, int root, enum tti_order order)
{
	struct tti_program prog[RANKS];
	bool kept;

	build_split(algo, shape, split, n, root, prog);
	kept = tti_program_check(prog, n, 1, order) == TUTTI_OK;
	release(prog, n);
	return kept;
}

/* What table.c promises, whoever sits where and however the data is cut. */
static void orders_are_kept(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 11;
	int found = 0;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= RANKS && algo->order; n += SANITIZED && n > 5 ? 9 : 1)
				for (int kind = 0; kind <= SHAPE_KINDS; kind++) {
					const struct tti_split split = { 1 + (int)(seed % 3),
									 (int)(seed % 4) };
					struct tti_shape *shape =
						kind < SHAPE_KINDS
							? shape_draw(n, (enum shape_kind)kind, seed)
							: NULL;
					const int root = (int)(seed++ % (uint64_t)n);

					if (!keeps(algo, shape, split, n, root, algo->order) ||
					    !keeps(algo, shape, split, n, root, TTI_ORDER_RANKS))
						fail_msg("%s %s, %d ranks, root %d: %s",
							 tutti_collective_name(algo->coll),
							 algo->name, n, root, tti_error_text());
					tti_shape_free(shape);
					found++;
				}
	assert_true(found > 100);
}

/* Else the proof would prove nothing. */
static void others_keep_none(void **state)
{
	static const struct {
		tutti_collective coll;
		const char *name;
	} others[] = {
		{ TUTTI_ALL_REDUCE, "ring" },        { TUTTI_ALL_REDUCE, "recursive_doubling" },
		{ TUTTI_ALL_REDUCE, "double_tree" }, { TUTTI_REDUCE, "chain" },
		{ TUTTI_REDUCE, "binomial" },        { TUTTI_REDUCE, "double_tree" },
		{ TUTTI_REDUCE_SCATTER, "ring" },
	};
	const uint32_t hosts[] = { 0, 0, 1, 1 };
	const struct tti_split whole = { 0 };
	struct tti_shape *shape = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(keeps(tti_algorithm_find(others[i].coll, others[i].name), NULL, whole,
				   4, 1, TTI_ORDER_RANKS));
	assert_int_equal(tti_shape_of_groups(hosts, 4, &shape), TUTTI_OK);
	assert_false(keeps(tti_algorithm_find(TUTTI_ALL_REDUCE, "hierarchical"), shape, whole, 4, 0,
			   TTI_ORDER_RANKS));
	/* What comes from the other host is combined already. */
	assert_false(keeps(tti_algorithm_find(TUTTI_ALL_REDUCE, "ordered"), shape, whole, 4, 0,
			   TTI_ORDER_ONE_PASS));
	tti_shape_free(shape);
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

/* Chunks that leave each group, and that come into it. */
struct crossing {
	int out[RANKS], in[RANKS], all;
};

static struct crossing cross(const struct tti_program *prog, int n, const struct tti_shape *shape)
{
	struct crossing found = { .all = 0 };

	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < prog[rank].steps.n; i++) {
			const struct tti_step *step = &prog[rank].steps.at[i];
			const uint32_t from = shape->group_of[rank],
				       to = shape->group_of[step->peer];

			if (step->kind != TTI_SEND || from == to)
				continue;
			found.out[from]++;
			found.in[to]++;
			found.all++;
		}
	return found;
}

/* What must leave a group, and come into it, for a collective to be done, in chunks. Of an
 * all_reduce what rings take, which is the least if all shall have the same: 2 (G - 1) of
 * G parts. */
static void least_of(const struct tti_program *prog, const struct tti_shape *shape, int group,
		     int *out, int *in)
{
	const int groups = (int)shape->ngroups, chunks = prog->nchunks;
	const int size = (int)shape->group_size[group];
	const int next = (int)shape->group_size[(group + 1) % groups];
	const int before = (int)shape->group_size[(group + groups - 1) % groups];
	const int root = (int)shape->group_of[prog->root];
	const int parts = chunks / prog->n;

	if (prog->coll == TUTTI_ALL_REDUCE) {
		*out = *in = chunks / groups * 2 * (groups - 1);
	} else if (prog->coll == TUTTI_ALL_GATHER) { /* all but what the next one has */
		*in = chunks - size * parts;
		*out = chunks - next * parts;
	} else if (prog->coll == TUTTI_REDUCE_SCATTER) { /* all but its own */
		*out = chunks - size * parts;
		*in = chunks - before * parts;
	} else if (prog->coll == TUTTI_BROADCAST) {
		*in = group != root ? chunks : 0;
		*out = (group + 1) % groups != root ? chunks : 0;
	} else {
		*out = group != root ? chunks : 0;
		*in = (root + 1) % groups != group ? chunks : 0;
	}
}

/* No byte crosses a NIC twice: what enters and leaves each group is what has to. */
static void crosses_least(tutti_collective coll, int n, const struct tti_shape *shape,
			  struct tti_split split)
{
	struct tti_program prog[RANKS];
	struct crossing found;

	build_split(tti_algorithm_find(coll, "hierarchical"), shape, split, n, n / 2, prog);
	found = cross(prog, n, shape);
	for (int group = 0; group < (int)shape->ngroups && shape->ngroups > 1; group++) {
		int out = 0, in = 0;

		least_of(&prog[0], shape, group, &out, &in);
		assert_int_equal(found.out[group], out);
		assert_int_equal(found.in[group], in);
	}
	assert_int_equal(found.all, (coll == TUTTI_ALL_REDUCE ? 2 : 1) * ((int)shape->ngroups - 1) *
					    prog[0].nchunks);
	release(prog, n);
}

static void hierarchies_cross_as_little_as_can_be(void **state)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER, TUTTI_BROADCAST,
						  TUTTI_REDUCE };
	static const struct tti_split cuts[] = { { 0, 0 }, { 4, 0 }, { 1, 2 }, { 3, 1 } };

	(void)state;
	for (int n = 1; n <= RANKS; n++)
		for (uint64_t seed = 1; seed < 10; seed++) {
			struct tti_shape *shape = shape_draw(n, SHAPE_GROUPS, seed);

			for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++)
				crosses_least(colls[i], n, shape, cuts[seed % 4]);
			tti_shape_free(shape);
		}
}

/* All members of the largest group talk to others; of a smaller one all that it has. */
static void stripes_recruit_all(void **state)
{
	struct tti_program prog[RANKS];

	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct tti_shape *shape = shape_draw(RANKS, SHAPE_GROUPS, seed);
		bool talks[RANKS] = { false };

		build(tti_algorithm_find(TUTTI_ALL_REDUCE, "hierarchical"), shape, RANKS, 0, prog);
		for (int rank = 0; rank < RANKS; rank++)
			for (size_t i = 0; i < prog[rank].steps.n; i++) {
				const int peer = prog[rank].steps.at[i].peer;

				talks[rank] |= shape->group_of[rank] != shape->group_of[peer];
			}
		for (int rank = 0; rank < RANKS; rank++)
			assert_int_equal(talks[rank], shape->ngroups > 1);
		release(prog, RANKS);
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

/* Between groups each chunk goes once, and each rank hears from one rank of each. */
static void all_to_all_crosses_once(void **state)
{
	const struct tti_algorithm *algo = tti_algorithm_find(TUTTI_ALL_TO_ALL, "hierarchical");
	uint64_t seed = 11;

	(void)state;
	for (int n = 2; n <= RANKS; n++) {
		struct tti_shape *shape = shape_draw(n, SHAPE_GROUPS, seed++);
		struct tti_program prog[RANKS];
		int crossing[RANKS * RANKS] = { 0 };

		build(algo, shape, n, 0, prog);
		for (int rank = 0; rank < n; rank++) {
			int from[RANKS];

			memset(from, -1, sizeof(from));
			for (size_t i = 0; i < prog[rank].steps.n; i++) {
				const struct tti_step *step = &prog[rank].steps.at[i];
				const uint32_t group = shape->group_of[step->peer];

				if (step->kind != TTI_RECV || group == shape->group_of[rank])
					continue;
				crossing[step->chunk]++;
				assert_true(from[group] < 0 || from[group] == step->peer);
				from[group] = step->peer;
			}
		}
		for (int chunk = 0; chunk < n * n; chunk++)
			assert_int_equal(crossing[chunk],
					 shape->group_of[chunk / n] != shape->group_of[chunk % n]);
		release(prog, n);
		tti_shape_free(shape);
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
	assert_null(tti_algorithm_at(TUTTI_ALL_TO_ALL_V, 0));

	algo = tti_algorithm_find(TUTTI_ALL_REDUCE, "ring");
	assert_int_equal(
		tti_program_build(algo, &(struct tti_program_spec){ .rank = 4, .n = 4 }, &prog),
		TUTTI_EINVAL);
	assert_int_equal(
		tti_program_build(algo, &(struct tti_program_spec){ .n = 4, .root = -1 }, &prog),
		TUTTI_EINVAL);
	assert_int_equal(tti_program_build(algo, &(struct tti_program_spec){ .n = 0 }, &prog),
			 TUTTI_EINVAL);
	assert_int_equal(
		tti_program_build(
			algo, &(struct tti_program_spec){ .n = TTI_PROGRAM_RANKS_MAX + 1 }, &prog),
		TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_proven),
		cmocka_unit_test(all_are_proven_over_shapes),
		cmocka_unit_test(all_are_proven_in_cuts),
		cmocka_unit_test(orders_are_kept),
		cmocka_unit_test(others_keep_none),
		cmocka_unit_test(rings_and_direct_send_the_least),
		cmocka_unit_test(hierarchies_cross_as_little_as_can_be),
		cmocka_unit_test(all_to_all_crosses_once),
		cmocka_unit_test(stripes_recruit_all),
		cmocka_unit_test(rounds_are_logarithmic),
		cmocka_unit_test(double_trees_share_the_work),
		cmocka_unit_test(table_finds_what_it_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* From plans to shapes: rings visit all, trees hang together, shares are small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/shape.h"
#include "plan/plan.h"
#include "util/error.h"
#include "util/mem.h"

/* What tti_shape_of_plan() reads of a plan, made up. */
struct made {
	struct tti_plan plan;
	uint64_t state;
};

static uint32_t draw(struct made *made, uint32_t n)
{
	made->state = made->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(made->state >> 33) % n;
}

static void *room(struct made *made, size_t nbytes)
{
	void *at = tti_arena_alloc(&made->plan.arena, nbytes + 1);

	assert_non_null(at);
	return at;
}

/* All ranks in any order, those of a node together. */
static uint32_t *draw_order(struct made *made)
{
	const uint32_t n = made->plan.nranks;
	uint32_t *order = room(made, n * sizeof(*order)), count = 0;
	const uint32_t turn = draw(made, made->plan.nnodes);

	for (uint32_t i = 0; i < made->plan.nnodes; i++) {
		const uint32_t node = (i + turn) % made->plan.nnodes, first = count;

		for (uint32_t rank = 0; rank < n; rank++)
			if (made->plan.ranks[rank].node == node) {
				const uint32_t at = first + draw(made, count - first + 1);

				order[count++] = order[at];
				order[at] = rank;
			}
	}
	assert_int_equal(count, n);
	return order;
}

static float draw_bw(struct made *made, uint32_t kind)
{
	return kind == 0   ? 12.5f
	       : kind == 1 ? (float)(1 + draw(made, 4)) * 3.0f
	       : kind == 2 ? (float)draw(made, 1000000) * 1e-5f
			   : (float)(1u << draw(made, 30)) * 1e-6f;
}

static void draw_pattern(struct made *made, struct tti_plan_pattern *out, enum tti_pattern pattern,
			 bool pairs)
{
	const uint32_t n = made->plan.nranks, kind = draw(made, 4);

	*out = (struct tti_plan_pattern){ .pattern = pattern };
	out->nchannels = (1 + draw(made, 20)) * (1 + pairs);
	out->channels = room(made, out->nchannels * sizeof(*out->channels));
	for (uint32_t i = 0; i < out->nchannels; i++) {
		struct tti_plan_channel *channel = &out->channels[i];

		channel->bw_gbps = pairs && i % 2 ? channel[-1].bw_gbps : draw_bw(made, kind);
		channel->ranks = draw_order(made);
		channel->nranks = n;
		out->total_gbps += (double)channel->bw_gbps;
		if (pattern == TTI_PATTERN_RING)
			continue;
		channel->parent = room(made, n * sizeof(*channel->parent));
		for (uint32_t place = 0; place < n; place++)
			channel->parent[channel->ranks[place]] =
				place ? channel->ranks[draw(made, place)] : UINT32_MAX;
	}
}

static void draw_plan(struct made *made, uint64_t seed)
{
	*made = (struct made){ .state = seed };
	made->plan.nnodes = 1 + draw(made, 5);
	made->plan.nranks = made->plan.nnodes + draw(made, 20);
	made->plan.ranks = room(made, made->plan.nranks * sizeof(*made->plan.ranks));
	for (uint32_t rank = 0; rank < made->plan.nranks; rank++)
		made->plan.ranks[rank].node =
			rank < made->plan.nnodes ? rank : draw(made, made->plan.nnodes);
	made->plan.patterns = room(made, 3 * sizeof(*made->plan.patterns));
	if (draw(made, 5))
		draw_pattern(made, &made->plan.patterns[made->plan.npatterns++], TTI_PATTERN_RING,
			     false);
	if (draw(made, 5))
		draw_pattern(made, &made->plan.patterns[made->plan.npatterns++], TTI_PATTERN_TREE,
			     made->plan.nnodes > 1);
	if (draw(made, 2))
		draw_pattern(made, &made->plan.patterns[made->plan.npatterns++],
			     TTI_PATTERN_BALANCED_TREE, made->plan.nnodes > 1);
}

static void check_rings(const struct tti_shape *shape)
{
	uint32_t parts = 0;

	assert_true(shape->nrings >= 1);
	for (uint32_t i = 0; i < shape->nrings; i++) {
		const struct tti_shape_ring *ring = &shape->rings[i];
		uint64_t seen = 0;

		for (uint32_t place = 0; place < shape->n; place++) {
			assert_true(ring->order[place] < shape->n);
			assert_int_equal(ring->place[ring->order[place]], place);
			seen |= UINT64_C(1) << ring->order[place];
		}
		assert_true(seen == (UINT64_C(1) << shape->n) - 1);
		assert_true(ring->share >= 1);
		parts += ring->share;
	}
	assert_true(parts <= TTI_SHAPE_PARTS);
}

static void check_trees(const struct tti_shape *shape)
{
	uint32_t parts = 0;

	assert_true(shape->ntrees >= 1);
	for (uint32_t i = 0; i < shape->ntrees; i++) {
		const struct tti_shape_tree *tree = &shape->trees[i];
		uint32_t nroots = 0;

		for (uint32_t rank = 0; rank < shape->n; rank++) {
			uint32_t at = rank, depth = 0;

			nroots += tree->parent[rank] == UINT32_MAX;
			while (tree->parent[at] != UINT32_MAX) {
				at = tree->parent[at];
				assert_true(at < shape->n && ++depth < shape->n);
			}
		}
		assert_int_equal(nroots, 1);
		assert_true(tree->share >= 1);
		parts += tree->share;
	}
	assert_true(parts <= TTI_SHAPE_PARTS);
}

static void check_groups(const struct tti_shape *shape)
{
	uint32_t at = 0;
	bool even = true;

	for (uint32_t group = 0; group < shape->ngroups; group++) {
		assert_int_equal(shape->first_member[group], at);
		assert_true(shape->group_size[group] >= 1);
		even &= shape->group_size[group] == shape->group_size[0];
		for (uint32_t i = 0; i < shape->group_size[group]; i++, at++) {
			assert_int_equal(shape->group_of[shape->members[at]], group);
			/* In the order of the first ring. */
			assert_true(i == 0 || shape->rings[0].place[shape->members[at - 1]] <
						      shape->rings[0].place[shape->members[at]]);
		}
		assert_true(
			group == 0 ||
			shape->rings[0].place[shape->members[shape->first_member[group - 1]]] <
				shape->rings[0].place[shape->members[shape->first_member[group]]]);
	}
	assert_int_equal(at, shape->n);
	assert_int_equal(shape->even, even);
}

static void same(const struct tti_shape *a, const struct tti_shape *b)
{
	const size_t nbytes = a->n * sizeof(uint32_t);

	assert_int_equal(a->nrings, b->nrings);
	assert_int_equal(a->ntrees, b->ntrees);
	assert_int_equal(a->ngroups, b->ngroups);
	assert_memory_equal(a->members, b->members, nbytes);
	assert_memory_equal(a->group_of, b->group_of, nbytes);
	for (uint32_t i = 0; i < a->nrings; i++) {
		assert_memory_equal(a->rings[i].order, b->rings[i].order, nbytes);
		assert_int_equal(a->rings[i].share, b->rings[i].share);
	}
	for (uint32_t i = 0; i < a->ntrees; i++) {
		assert_memory_equal(a->trees[i].parent, b->trees[i].parent, nbytes);
		assert_int_equal(a->trees[i].share, b->trees[i].share);
	}
}

static void any_plan(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct tti_shape *shape = NULL, *again = NULL;
		struct made made;

		draw_plan(&made, seed);
		assert_int_equal(tti_shape_of_plan(&made.plan, &shape), TUTTI_OK);
		assert_int_equal(tti_shape_of_plan(&made.plan, &again), TUTTI_OK);
		assert_int_equal(shape->n, made.plan.nranks);
		assert_int_equal(shape->ngroups, made.plan.nnodes);
		check_rings(shape);
		check_trees(shape);
		check_groups(shape);
		same(shape, again);
		tti_shape_free(shape);
		tti_shape_free(again);
		tti_arena_release(&made.plan.arena);
	}
}

/* The shares of rings of these bandwidths, 0 at the end. */
static void shares(const float *bw, const uint32_t *expected)
{
	struct tti_plan_rank ranks[2] = { { .name = "GPU0" }, { .name = "GPU1" } };
	uint32_t order[] = { 0, 1 }, found = 0, n = 0;
	struct tti_plan_channel channels[32];
	struct tti_plan_pattern pattern = { .pattern = TTI_PATTERN_RING, .channels = channels };
	const struct tti_plan plan = {
		.nranks = 2, .nnodes = 1, .ranks = ranks, .patterns = &pattern, .npatterns = 1
	};
	struct tti_shape *shape = NULL;

	for (; bw[n] > 0; n++)
		channels[n] =
			(struct tti_plan_channel){ .bw_gbps = bw[n], .ranks = order, .nranks = 2 };
	pattern.nchannels = n;
	assert_int_equal(tti_shape_of_plan(&plan, &shape), TUTTI_OK);
	for (uint32_t i = 0; i < n; i++)
		if (expected[i])
			assert_int_equal(shape->rings[found++].share, expected[i]);
	assert_int_equal(shape->nrings, found);
	tti_shape_free(shape);
}

static void bandwidths_become_shares(void **state)
{
	(void)state;
	shares((const float[]){ 12.5f, 0 }, (const uint32_t[]){ 1 });
	shares((const float[]){ 5, 5, 5, 0 }, (const uint32_t[]){ 1, 1, 1 });
	shares((const float[]){ 20, 10, 10, 0 }, (const uint32_t[]){ 2, 1, 1 });
	shares((const float[]){ 30, 50, 0 }, (const uint32_t[]){ 3, 5 });
	shares((const float[]){ 20, 0.01f, 20, 0 }, (const uint32_t[]){ 1, 0, 1 });
	/* Of twenty alike sixteen are kept. */
	shares((const float[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0 },
	       (const uint32_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0 });
}

static void groups_without_a_plan(void **state)
{
	const uint32_t group_of[] = { 2, 0, 2, 0, 1, 2 }, order[] = { 0, 2, 5, 1, 3, 4 };
	const uint32_t wrong[] = { 0, 1, 6, 0, 0, 0 }, halves[] = { 0, 0, 0, 1, 1, 1 };
	struct tti_shape *shape = NULL;
	uint32_t crossing = 0;

	(void)state;
	assert_int_equal(tti_shape_of_groups(wrong, 6, &shape), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "rank 2 is in group 6"));
	assert_int_equal(tti_shape_of_groups(wrong, 0, &shape), TUTTI_EINVAL);
	assert_int_equal(tti_shape_of_groups(group_of, 6, &shape), TUTTI_OK);
	check_rings(shape);
	check_trees(shape);
	check_groups(shape);
	assert_int_equal(shape->ngroups, 3);
	assert_false(shape->even);
	assert_memory_equal(shape->members, order, sizeof(order));
	assert_memory_equal(shape->rings[0].order, order, sizeof(order));
	assert_int_equal(shape->ntrees, 2);
	for (uint32_t rank = 0; rank < 6; rank++)
		crossing += shape->trees[0].parent[rank] != UINT32_MAX &&
			    group_of[rank] != group_of[shape->trees[0].parent[rank]];
	assert_int_equal(crossing, 2);

	assert_int_equal(tti_shape_group(shape, halves), TUTTI_OK);
	assert_int_equal(shape->ngroups, 2);
	assert_true(shape->even);
	check_groups(shape);
	assert_int_equal(tti_shape_group(shape, wrong), TUTTI_EINVAL);
	tti_shape_free(shape);
	tti_shape_free(NULL);
}

/* Of some ranks of six in three groups: nobody is left over, and who stays keeps the order,
 * whom it hangs on as far as there is one, and its group. */
static void some_of_them(void **state)
{
	const uint32_t group_of[] = { 2, 0, 2, 0, 1, 2 }, order[] = { 2, 0, 3, 1 };
	const int ranks[] = { 5, 4, 0, 1 }, all[] = { 0, 1, 2, 3, 4, 5 };
	struct tti_shape *shape = NULL, *part = NULL;

	(void)state;
	assert_int_equal(tti_shape_of_groups(group_of, 6, &shape), TUTTI_OK);
	assert_int_equal(tti_shape_project(shape, ranks, 4, &part), TUTTI_OK);
	check_rings(part);
	check_trees(part);
	check_groups(part);
	/* The ring was 0 2 5 1 3 4. */
	assert_memory_equal(part->rings[0].order, order, sizeof(order));
	assert_int_equal(part->rings[0].share, shape->rings[0].share);
	assert_int_equal(part->ngroups, 3);
	assert_int_equal(part->group_of[0], part->group_of[2]);
	tti_shape_free(part);

	assert_int_equal(tti_shape_project(shape, all, 6, &part), TUTTI_OK);
	assert_memory_equal(part->members, shape->members, 6 * sizeof(*part->members));
	for (uint32_t i = 0; i < shape->ntrees; i++)
		assert_memory_equal(part->trees[i].parent, shape->trees[i].parent,
				    6 * sizeof(uint32_t));
	tti_shape_free(part);
	for (int rank = 0; rank < 6; rank++) {
		assert_int_equal(tti_shape_project(shape, &all[rank], 1, &part), TUTTI_OK);
		check_trees(part);
		tti_shape_free(part);
	}
	tti_shape_free(shape);
}

/* One who has freed it does not take it from the other. */
static void two_hold_one(void **state)
{
	const uint32_t group_of[] = { 0, 1, 0 };
	struct tti_shape *shape = NULL, *same;

	(void)state;
	assert_int_equal(tti_shape_of_groups(group_of, 3, &shape), TUTTI_OK);
	same = tti_shape_hold(shape);
	assert_ptr_equal(same, shape);
	tti_shape_free(shape);
	check_rings(same);
	check_trees(same);
	check_groups(same);
	tti_shape_free(same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_plan),
		cmocka_unit_test(bandwidths_become_shares),
		cmocka_unit_test(groups_without_a_plan),
		cmocka_unit_test(some_of_them),
		cmocka_unit_test(two_hold_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

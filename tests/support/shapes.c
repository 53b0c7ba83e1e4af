/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % n;
}

static uint32_t *room(struct tti_shape *shape)
{
	uint32_t *at = tti_arena_alloc(&shape->arena, shape->n * sizeof(*at));

	assert_non_null(at);
	return at;
}

static uint32_t *draw_order(struct tti_shape *shape, uint64_t *state)
{
	uint32_t *order = room(shape);

	for (uint32_t rank = 0; rank < shape->n; rank++) {
		const uint32_t at = draw(state, rank + 1);

		order[rank] = order[at];
		order[at] = rank;
	}
	return order;
}

/* Up to three rings and trees of shares up to three, in place of those there are. */
static void draw_channels(struct tti_shape *shape, uint64_t *state)
{
	shape->nrings = 1 + draw(state, 3);
	shape->ntrees = 1 + draw(state, 3);
	for (uint32_t i = 0; i < shape->nrings; i++) {
		struct tti_shape_ring *ring = &shape->rings[i];

		ring->order = draw_order(shape, state);
		ring->place = room(shape);
		ring->share = 1 + draw(state, 3);
		for (uint32_t place = 0; place < shape->n; place++)
			ring->place[ring->order[place]] = place;
	}
	for (uint32_t i = 0; i < shape->ntrees; i++) {
		const uint32_t *order = draw_order(shape, state);
		struct tti_shape_tree *tree = &shape->trees[i];

		tree->parent = room(shape);
		tree->share = 1 + draw(state, 3);
		for (uint32_t place = 0; place < shape->n; place++)
			tree->parent[order[place]] = place ? order[draw(state, place)] : UINT32_MAX;
	}
}

struct tti_shape *shape_draw(int n, enum shape_kind kind, uint64_t seed)
{
	uint32_t *group_of = calloc((size_t)n, sizeof(*group_of));
	const uint32_t ngroups = 1 + draw(&seed, n < 7 ? (uint32_t)n : 7);
	struct tti_shape *shape = NULL;

	assert_non_null(group_of);
	for (uint32_t rank = 0; rank < (uint32_t)n; rank++)
		group_of[rank] = kind == SHAPE_ONES   ? rank
				 : kind == SHAPE_EVEN ? rank * ngroups / (uint32_t)n
						      : draw(&seed, ngroups);
	assert_int_equal(tti_shape_of_groups(group_of, (uint32_t)n, &shape), TUTTI_OK);
	if (kind == SHAPE_ANY) {
		draw_channels(shape, &seed);
		assert_int_equal(tti_shape_group(shape, group_of), TUTTI_OK);
	}
	free(group_of);
	return shape;
}

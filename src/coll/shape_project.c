/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of some of the ranks, from that of all: rings leave the others out, and who
 * hung on one of them hangs on whom that one hung. */
#include "coll/shape.h"

#include <string.h>

#include "util/error.h"
#include "util/mem.h"

#define NOBODY UINT32_MAX

/* Numbers of the ranks among the new ones, NOBODY: it is none. */
static uint32_t *number_ranks(const struct tti_shape *of, const int *ranks, uint32_t n)
{
	uint32_t *number = tti_calloc(of->n, sizeof(*number));

	if (!number)
		return NULL;
	memset(number, 0xff, of->n * sizeof(*number));
	for (uint32_t rank = 0; rank < n; rank++)
		number[ranks[rank]] = rank;
	return number;
}

static bool add_ring(const struct tti_shape_ring *of, uint32_t of_n, const uint32_t *number,
		     struct tti_shape *shape)
{
	struct tti_shape_ring *ring = &shape->rings[shape->nrings];
	uint32_t n = 0;

	ring->order = tti_arena_alloc(&shape->arena, shape->n * sizeof(*ring->order));
	ring->place = tti_arena_alloc(&shape->arena, shape->n * sizeof(*ring->place));
	if (!ring->order || !ring->place)
		return false;
	for (uint32_t place = 0; place < of_n; place++) {
		const uint32_t rank = number[of->order[place]];

		if (rank == NOBODY)
			continue;
		ring->place[rank] = n;
		ring->order[n++] = rank;
	}
	ring->share = of->share;
	shape->nrings++;
	return true;
}

/* The nearest new rank above; NOBODY: there is none. */
static uint32_t find_above(const struct tti_shape_tree *of, const uint32_t *number, uint32_t old)
{
	uint32_t above = of->parent[old];

	while (above != NOBODY && number[above] == NOBODY)
		above = of->parent[above];
	return above == NOBODY ? NOBODY : number[above];
}

/* Of several that have nobody above them the first is the root, and the others hang on
 * it. */
static bool add_tree(const struct tti_shape_tree *of, const int *ranks, const uint32_t *number,
		     struct tti_shape *shape)
{
	struct tti_shape_tree *tree = &shape->trees[shape->ntrees];
	uint32_t root = NOBODY;

	tree->parent = tti_arena_alloc(&shape->arena, shape->n * sizeof(*tree->parent));
	if (!tree->parent)
		return false;
	for (uint32_t rank = 0; rank < shape->n; rank++) {
		tree->parent[rank] = find_above(of, number, (uint32_t)ranks[rank]);
		if (tree->parent[rank] != NOBODY)
			continue;
		if (root == NOBODY)
			root = rank;
		else
			tree->parent[rank] = root;
	}
	tree->share = of->share;
	shape->ntrees++;
	return true;
}

/* Groups by the lowest new rank of each. */
static tutti_status add_groups(const struct tti_shape *of, const int *ranks,
			       struct tti_shape *shape)
{
	uint32_t *label = tti_calloc(shape->n, sizeof(*label));
	uint32_t *first = tti_calloc(of->ngroups, sizeof(*first));
	tutti_status st = TUTTI_OK;

	if (!label || !first)
		st = tti_fail(TUTTI_ENOMEM, "the shape of %u ranks: out of memory", shape->n);
	if (st == TUTTI_OK)
		memset(first, 0xff, of->ngroups * sizeof(*first));
	for (uint32_t rank = 0; rank < shape->n && st == TUTTI_OK; rank++) {
		const uint32_t group = of->group_of[ranks[rank]];

		if (first[group] == NOBODY)
			first[group] = rank;
		label[rank] = first[group];
	}
	if (st == TUTTI_OK)
		st = tti_shape_group(shape, label);
	tti_free(label);
	tti_free(first);
	return st;
}

static bool fill(const struct tti_shape *of, const int *ranks, const uint32_t *number,
		 struct tti_shape *shape)
{
	shape->rings = tti_arena_alloc(&shape->arena, TTI_SHAPE_PARTS * sizeof(*shape->rings));
	shape->trees = tti_arena_alloc(&shape->arena, TTI_SHAPE_PARTS * sizeof(*shape->trees));
	if (!number || !shape->rings || !shape->trees)
		return false;
	for (uint32_t i = 0; i < of->nrings; i++)
		if (!add_ring(&of->rings[i], of->n, number, shape))
			return false;
	for (uint32_t i = 0; i < of->ntrees; i++)
		if (!add_tree(&of->trees[i], ranks, number, shape))
			return false;
	return true;
}

tutti_status tti_shape_project(const struct tti_shape *of, const int *ranks, uint32_t n,
			       struct tti_shape **out)
{
	struct tti_shape *shape = tti_zalloc(sizeof(*shape));
	uint32_t *number = shape ? number_ranks(of, ranks, n) : NULL;
	tutti_status st;

	if (shape) {
		shape->n = n;
		shape->ring_gbps = of->ring_gbps;
		shape->tree_gbps = of->tree_gbps;
	}
	st = number && fill(of, ranks, number, shape)
		     ? add_groups(of, ranks, shape)
		     : tti_fail(TUTTI_ENOMEM, "the shape of %u ranks: out of memory", n);
	tti_free(number);
	if (st == TUTTI_OK)
		*out = shape;
	else
		tti_shape_free(shape);
	return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of some of the ranks, from that of all. Rings skip the other ranks; in trees their
 * children move up to the nearest ancestor that is left. */
#include "coll/shape_parts.h"

#include <string.h>

#include "util/error.h"

#define NOBODY UINT32_MAX

struct projection {
	const struct tti_shape *of;
	const int *ranks; /* of the new ones, their old numbers             */
	uint32_t *number; /* of the old ones, the new numbers; NOBODY: none */
	struct tti_shape *shape;
	uint32_t *list; /* of as many as either shape has ranks           */
	struct tti_arena arena;
};

static tutti_status add_ring(const struct projection *p, const struct tti_shape_ring *of)
{
	uint32_t n = 0;

	for (uint32_t place = 0; place < p->of->n; place++)
		if (p->number[of->order[place]] != NOBODY)
			p->list[n++] = p->number[of->order[place]];
	return tti_shape_add_ring(p->shape, p->list, of->share);
}

/* The nearest new rank above; NOBODY: there is none. */
static uint32_t find_above(const struct projection *p, const struct tti_shape_tree *of,
			   uint32_t old)
{
	uint32_t above = of->parent[old];

	while (above != NOBODY && p->number[above] == NOBODY)
		above = of->parent[above];
	return above == NOBODY ? NOBODY : p->number[above];
}

/* If several ranks have nobody above them, the first is the root and the parent of the
 * others. */
static tutti_status add_tree(const struct projection *p, const struct tti_shape_tree *of)
{
	uint32_t root = NOBODY;

	for (uint32_t rank = 0; rank < p->shape->n; rank++) {
		p->list[rank] = find_above(p, of, (uint32_t)p->ranks[rank]);
		if (p->list[rank] != NOBODY)
			continue;
		if (root == NOBODY)
			root = rank;
		else
			p->list[rank] = root;
	}
	return tti_shape_add_tree(p->shape, p->list, of->share);
}

/* Groups by the lowest new rank of each; `first` is room for one of each old group. */
static tutti_status add_groups(const struct projection *p, uint32_t *first)
{
	memset(first, 0xff, p->of->ngroups * sizeof(*first));
	for (uint32_t rank = 0; rank < p->shape->n; rank++) {
		const uint32_t group = p->of->group_of[p->ranks[rank]];

		if (first[group] == NOBODY)
			first[group] = rank;
		p->list[rank] = first[group];
	}
	return tti_shape_group(p->shape, p->list);
}

static tutti_status project(struct projection *p)
{
	const struct tti_shape *of = p->of;
	uint32_t *first = tti_arena_alloc(&p->arena, of->ngroups * sizeof(*first));

	p->number = tti_arena_alloc(&p->arena, of->n * sizeof(*p->number));
	p->list = tti_arena_alloc(&p->arena, of->n * sizeof(*p->list));
	if (!first || !p->number || !p->list)
		return tti_fail(TUTTI_ENOMEM, "the shape of %u ranks: out of memory", p->shape->n);
	memset(p->number, 0xff, of->n * sizeof(*p->number));
	for (uint32_t rank = 0; rank < p->shape->n; rank++)
		p->number[p->ranks[rank]] = rank;
	p->shape->ring_gbps = of->ring_gbps;
	p->shape->tree_gbps = of->tree_gbps;
	for (uint32_t i = 0; i < of->nrings; i++)
		TTI_TRY(add_ring(p, &of->rings[i]));
	for (uint32_t i = 0; i < of->ntrees; i++)
		TTI_TRY(add_tree(p, &of->trees[i]));
	return add_groups(p, first);
}

tutti_status tti_shape_project(const struct tti_shape *of, const int *ranks, uint32_t n,
			       struct tti_shape **out)
{
	struct projection p = { .of = of, .ranks = ranks };
	tutti_status st;

	TTI_TRY(tti_shape_create(n, &p.shape));
	st = project(&p);
	tti_arena_release(&p.arena);
	if (st == TUTTI_OK)
		*out = p.shape;
	else
		tti_shape_free(p.shape);
	return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

static struct tti_ring by_number(const struct tti_program *prog)
{
	return (struct tti_ring){ .n = prog->n, .place = prog->rank };
}

static struct tti_ring of_shape(const struct tti_program *prog, const struct tti_shape_ring *ring)
{
	return (struct tti_ring){ .order = ring->order,
				  .place_of = ring->place,
				  .n = prog->n,
				  .place = (int)ring->place[prog->rank] };
}

struct tti_ring tti_ring_first(const struct tti_program *prog)
{
	if (!prog->shape || !prog->shape->nrings)
		return by_number(prog);
	return of_shape(prog, &prog->shape->rings[0]);
}

int tti_rings_of(const struct tti_program *prog, struct tti_ring rings[TTI_SHAPE_PARTS])
{
	int parts = 0;

	if (!prog->shape || !prog->shape->nrings) {
		rings[0] = by_number(prog);
		return 1;
	}
	for (uint32_t i = 0; i < prog->shape->nrings; i++)
		for (uint32_t k = 0; k < prog->shape->rings[i].share && parts < TTI_SHAPE_PARTS;
		     k++)
			rings[parts++] = of_shape(prog, &prog->shape->rings[i]);
	return parts;
}

struct tti_groups tti_groups_of(const struct tti_program *prog)
{
	const struct tti_shape *shape = prog->shape;
	struct tti_groups g = { .ngroups = 1, .index = prog->rank, .size = prog->n };

	if (!shape || !shape->ngroups)
		return g;
	g.shape = shape;
	g.ngroups = (int)shape->ngroups;
	g.group = (int)shape->group_of[prog->rank];
	g.size = tti_group_size(&g, g.group);
	for (g.index = 0; tti_group_member(&g, g.group, g.index) != prog->rank;)
		g.index++;
	return g;
}

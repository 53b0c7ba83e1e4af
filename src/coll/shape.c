/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/shape.h"

#include <math.h>
#include <string.h>

#include "coll/shape_parts.h"
#include "plan/connect/connect.h"
#include "util/error.h"
#include "util/mem.h"

/* Fewer shares make fewer and larger messages, so the fewest are taken that carry this
 * much of what the best number of them would, in percent. */
#define ENOUGH 97

static tutti_status no_memory(uint32_t n)
{
	return tti_fail(TUTTI_ENOMEM, "the shape of %u ranks: out of memory", n);
}

/* -- Groups ------------------------------------------------------------------------ */

/* The rank that stands at a place of a walk; by number without one. */
static uint32_t walked(const uint32_t *walk, uint32_t place)
{
	return walk ? walk[place] : place;
}

/* Groups by `label` of each rank, all below `nlabels`, in the order in which `walk`
 * comes to them. `number` is room for a number of each label. */
static void fill_groups(struct tti_shape *shape, const uint32_t *walk, const uint32_t *label,
			uint32_t *number, uint32_t nlabels)
{
	memset(number, -1, nlabels * sizeof(*number));
	memset(shape->group_size, 0, shape->n * sizeof(*shape->group_size));
	shape->ngroups = 0;
	for (uint32_t place = 0; place < shape->n; place++) {
		const uint32_t rank = walked(walk, place);

		if (number[label[rank]] == UINT32_MAX)
			number[label[rank]] = shape->ngroups++;
		shape->group_of[rank] = number[label[rank]];
		shape->group_size[shape->group_of[rank]]++;
	}
	shape->even = true;
	for (uint32_t group = 0, first = 0; group < shape->ngroups; group++) {
		shape->first_member[group] = first;
		first += shape->group_size[group];
		shape->even &= shape->group_size[group] * shape->ngroups == shape->n;
		shape->group_size[group] = 0;
	}
	for (uint32_t place = 0; place < shape->n; place++) {
		const uint32_t rank = walked(walk, place), group = shape->group_of[rank];

		shape->members[shape->first_member[group] + shape->group_size[group]++] = rank;
	}
}

static tutti_status make_groups(struct tti_shape *shape, const uint32_t *walk,
				const uint32_t *label, uint32_t nlabels)
{
	const size_t nbytes = shape->n * sizeof(uint32_t);
	uint32_t *number = tti_calloc(nlabels, sizeof(*number));

	shape->group_of = tti_arena_alloc(&shape->arena, nbytes);
	shape->group_size = tti_arena_alloc(&shape->arena, nbytes);
	shape->first_member = tti_arena_alloc(&shape->arena, nbytes);
	shape->members = tti_arena_alloc(&shape->arena, nbytes);
	if (!number || !shape->group_of || !shape->group_size || !shape->first_member ||
	    !shape->members) {
		tti_free(number);
		return no_memory(shape->n);
	}
	fill_groups(shape, walk, label, number, nlabels);
	tti_free(number);
	return TUTTI_OK;
}

tutti_status tti_shape_group(struct tti_shape *shape, const uint32_t *group_of)
{
	for (uint32_t rank = 0; rank < shape->n; rank++)
		if (group_of[rank] >= shape->n)
			return tti_fail(TUTTI_EINVAL, "rank %u is in group %u of %u ranks", rank,
					group_of[rank], shape->n);
	return make_groups(shape, shape->nrings ? shape->rings[0].order : NULL, group_of, shape->n);
}

tutti_status tti_shape_group_by_name(struct tti_shape *shape, const struct tti_plan *plan)
{
	uint32_t *first = tti_calloc(plan->nranks, sizeof(*first));
	tutti_status st;

	if (!first)
		return no_memory(plan->nranks);
	for (uint32_t rank = 0; rank < plan->nranks; rank++)
		while (strcmp(plan->ranks[first[rank]].name, plan->ranks[rank].name) != 0)
			first[rank]++;
	st = tti_shape_group(shape, first);
	tti_free(first);
	return st;
}

/* -- Shares ------------------------------------------------------------------------ */

/* The channel, of n, that takes longest for its share: its share by its bandwidth is the
 * largest. `next`: the channel that would take the least time with one share more. */
static uint32_t find_extreme(const uint64_t *bw, const uint32_t *share, uint32_t n, bool next)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < n; i++) {
		const uint64_t here = (share[i] + next) * bw[found];
		const uint64_t there = (share[found] + next) * bw[i];

		if (next ? here < there : here > there)
			found = i;
	}
	return found;
}

/* At most `most` shares in all, so that the slowest channel, for its share, is as fast
 * as it can be (greedy is exact here). Whole numbers: the same on every machine. */
static void divide(const uint64_t *bw, uint32_t n, uint32_t most, uint32_t *share)
{
	uint32_t given[TTI_SHAPE_PARTS], parts = 0;
	uint64_t carried[TTI_SHAPE_PARTS], best = 0;

	memset(share, 0, n * sizeof(*share));
	for (uint32_t i = 0; i < most; i++) {
		uint32_t slowest;

		given[i] = find_extreme(bw, share, n, true);
		share[given[i]]++;
		slowest = find_extreme(bw, share, n, false);
		carried[i] = (i + 1) * bw[slowest] / share[slowest];
		best = carried[i] > best ? carried[i] : best;
	}
	while (carried[parts++] * 100 < best * ENOUGH)
		;
	for (uint32_t i = parts; i < most; i++)
		share[given[i]]--;
}

/* A channel's bandwidth in units of 10 kB/s, which is how finely plans are made. */
static uint64_t whole_bw(const struct tti_plan_channel *channel)
{
	const double bw = (double)channel->bw_gbps * 1e5;

	return bw < 1 ? 1 : bw > 1e12 ? UINT64_C(1000000000000) : (uint64_t)llround(bw);
}

/* The share of each channel; of trees that come in pairs (step 2), of each pair. */
static uint32_t *shares_of(const struct tti_plan_pattern *pattern, uint32_t step)
{
	const uint32_t n = pattern->nchannels / step;
	uint64_t *bw = tti_calloc(n, sizeof(*bw));
	uint32_t *share = tti_calloc(n, sizeof(*share));

	if (bw && share) {
		for (uint32_t i = 0; i < n; i++)
			bw[i] = whole_bw(&pattern->channels[i * step]);
		divide(bw, n, TTI_SHAPE_PARTS / step, share);
	} else {
		tti_free(share);
		share = NULL;
	}
	tti_free(bw);
	return share;
}

/* -- Rings ------------------------------------------------------------------------- */

tutti_status tti_shape_add_ring(struct tti_shape *shape, const uint32_t *order, uint32_t share)
{
	struct tti_shape_ring *ring = &shape->rings[shape->nrings];
	const size_t nbytes = shape->n * sizeof(*order);

	ring->order = tti_arena_alloc(&shape->arena, nbytes);
	ring->place = tti_arena_alloc(&shape->arena, nbytes);
	if (!ring->order || !ring->place)
		return no_memory(shape->n);
	memcpy(ring->order, order, nbytes);
	for (uint32_t place = 0; place < shape->n; place++)
		ring->place[order[place]] = place;
	ring->share = share;
	shape->nrings++;
	return TUTTI_OK;
}

/* -- Trees ------------------------------------------------------------------------- */

tutti_status tti_shape_add_tree(struct tti_shape *shape, const uint32_t *parent, uint32_t share)
{
	struct tti_shape_tree *tree = &shape->trees[shape->ntrees];
	const size_t nbytes = shape->n * sizeof(*parent);

	tree->parent = tti_arena_alloc(&shape->arena, nbytes);
	if (!tree->parent)
		return no_memory(shape->n);
	memcpy(tree->parent, parent, nbytes);
	tree->share = share;
	shape->ntrees++;
	return TUTTI_OK;
}

/* The channels of a pattern of rings or trees; `step`: of trees that come in pairs, 2. */
static tutti_status take_channels(struct tti_shape *shape, const struct tti_plan_pattern *pattern,
				  uint32_t step)
{
	uint32_t *share = shares_of(pattern, step);
	tutti_status st = share ? TUTTI_OK : no_memory(shape->n);

	for (uint32_t i = 0; i < pattern->nchannels && st == TUTTI_OK; i++) {
		const struct tti_plan_channel *channel = &pattern->channels[i];

		if (!share[i / step])
			continue;
		st = channel->parent ? tti_shape_add_tree(shape, channel->parent, share[i / step])
				     : tti_shape_add_ring(shape, channel->ranks, share[i / step]);
	}
	tti_free(share);
	return st;
}

/* The member that the tree inside a group hangs on. */
static uint32_t head_of(const struct tti_shape *shape, uint32_t group, bool second)
{
	const uint32_t size = shape->group_size[group];
	uint32_t place = 0;

	while (tti_double_tree(size, place, second).parent != UINT32_MAX)
		place++;
	return shape->members[shape->first_member[group] + place];
}

/* A tree over the groups, as few of its edges between them as there can be, and a tree
 * inside each. */
static void grow_tree(const struct tti_shape *shape, bool second, uint32_t *parent)
{
	for (uint32_t group = 0; group < shape->ngroups; group++) {
		const uint32_t *members = shape->members + shape->first_member[group];
		const uint32_t above = tti_double_tree(shape->ngroups, group, second).parent;
		const uint32_t head = head_of(shape, group, second);

		for (uint32_t i = 0; i < shape->group_size[group]; i++) {
			const uint32_t up =
				tti_double_tree(shape->group_size[group], i, second).parent;

			parent[members[i]] = up == UINT32_MAX ? UINT32_MAX : members[up];
		}
		if (above != UINT32_MAX)
			parent[head] = head_of(shape, above, second);
	}
}

static tutti_status grow_trees(struct tti_shape *shape)
{
	uint32_t *parent = tti_calloc(shape->n, sizeof(*parent));
	tutti_status st = parent ? TUTTI_OK : no_memory(shape->n);

	for (int second = 0; second < 2 && st == TUTTI_OK; second++) {
		grow_tree(shape, second, parent);
		st = tti_shape_add_tree(shape, parent, 1);
	}
	tti_free(parent);
	return st;
}

/* -- All together ------------------------------------------------------------------ */

tutti_status tti_shape_create(uint32_t n, struct tti_shape **out)
{
	struct tti_shape *shape = n ? tti_zalloc(sizeof(*shape)) : NULL;

	if (!n)
		return tti_fail(TUTTI_EINVAL, "the shape of no ranks");
	if (!shape)
		return no_memory(n);
	shape->n = n;
	shape->rings = tti_arena_alloc(&shape->arena, TTI_SHAPE_PARTS * sizeof(*shape->rings));
	shape->trees = tti_arena_alloc(&shape->arena, TTI_SHAPE_PARTS * sizeof(*shape->trees));
	if (!shape->rings || !shape->trees) {
		tti_shape_free(shape);
		return no_memory(n);
	}
	*out = shape;
	return TUTTI_OK;
}

struct tti_shape *tti_shape_hold(struct tti_shape *shape)
{
	atomic_fetch_add_explicit(&shape->more_holders, 1, memory_order_relaxed);
	return shape;
}

void tti_shape_free(struct tti_shape *shape)
{
	if (!shape || atomic_fetch_sub_explicit(&shape->more_holders, 1, memory_order_acq_rel) > 0)
		return;
	tti_arena_release(&shape->arena);
	tti_free(shape);
}

/* Add one ring or two trees along the groups, if a shape has none yet. */
static tutti_status complete(struct tti_shape *shape)
{
	if (!shape->nrings)
		TTI_TRY(tti_shape_add_ring(shape, shape->members, 1));
	return shape->ntrees ? TUTTI_OK : grow_trees(shape);
}

static tutti_status take_plan(struct tti_shape *shape, const struct tti_plan *plan)
{
	const struct tti_plan_pattern *ring = tti_plan_pattern(plan, TTI_PATTERN_RING);
	const struct tti_plan_pattern *tree = tti_plan_best_trees(plan);
	uint32_t *node = tti_calloc(plan->nranks, sizeof(*node));
	tutti_status st = node ? TUTTI_OK : no_memory(shape->n);

	for (uint32_t rank = 0; rank < plan->nranks && node; rank++)
		node[rank] = plan->ranks[rank].node;
	if (st == TUTTI_OK && ring && ring->nchannels) {
		shape->ring_gbps = (float)ring->total_gbps;
		st = take_channels(shape, ring, 1);
	}
	if (st == TUTTI_OK)
		st = make_groups(shape, shape->nrings ? shape->rings[0].order : NULL, node,
				 plan->nnodes);
	if (st == TUTTI_OK && tree) {
		shape->tree_gbps = (float)tree->total_gbps;
		st = take_channels(shape, tree,
				   plan->nnodes > 1 && tree->nchannels % 2 == 0 ? 2 : 1);
	}
	tti_free(node);
	return st == TUTTI_OK ? complete(shape) : st;
}

tutti_status tti_shape_of_plan(const struct tti_plan *plan, struct tti_shape **out)
{
	struct tti_shape *shape = NULL;
	tutti_status st = tti_shape_create(plan->nranks, &shape);

	if (st == TUTTI_OK)
		st = take_plan(shape, plan);
	if (st == TUTTI_OK)
		*out = shape;
	else
		tti_shape_free(shape);
	return st;
}

tutti_status tti_shape_of_groups(const uint32_t *group_of, uint32_t n, struct tti_shape **out)
{
	struct tti_shape *shape = NULL;
	tutti_status st = tti_shape_create(n, &shape);

	if (st == TUTTI_OK)
		st = tti_shape_group(shape, group_of);
	if (st == TUTTI_OK)
		st = complete(shape);
	if (st == TUTTI_OK)
		*out = shape;
	else
		tti_shape_free(shape);
	return st;
}

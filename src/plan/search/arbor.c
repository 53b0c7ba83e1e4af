/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/arbor.h"

#include <math.h>

#include "util/error.h"
#include "util/mem.h"

/* A node is added above all members; on it hangs the root. Prices of ways that exist
 * are far below NO_WAY, and hanging one more member on top is dearer than a NO_WAY for
 * each of a thousand: so one does, and small prices keep their digits. */
#define NO_WAY 1e4
#define TOP    1e7

/* One level of contraction: m nodes, node 0 is the one above all. */
struct level {
	uint32_t m;
	double *cost;      /* [from * m + to]                                     */
	uint32_t *parent;  /* the cheapest way in, then the result                */
	uint32_t *mark;    /* which walk came by; of a circle: its node           */
	uint32_t *smaller; /* its number one level down                           */
	uint32_t *enters;  /* from a node outside: which of the circle it reaches */
	uint32_t *leaves;  /* to a node outside: from which of the circle         */
};

static void release(struct level *level)
{
	tti_free(level->cost);
	tti_free(level->parent);
}

static tutti_status prepare(struct level *level, uint32_t m)
{
	*level = (struct level){ .m = m };
	level->cost = tti_calloc((size_t)m * m, sizeof(*level->cost));
	level->parent = tti_calloc(m, 5 * sizeof(*level->parent));
	if (!level->cost || !level->parent) {
		release(level);
		return tti_fail(TUTTI_ENOMEM, "tree of %u members: out of memory", m);
	}
	level->mark = level->parent + m;
	level->smaller = level->mark + m;
	level->enters = level->smaller + m;
	level->leaves = level->enters + m;
	return TUTTI_OK;
}

static void choose_parents(struct level *level)
{
	for (uint32_t to = 1; to < level->m; to++) {
		uint32_t best = to == 1 ? 0 : 1;

		for (uint32_t from = 0; from < level->m; from++)
			if (from != to &&
			    level->cost[from * level->m + to] < level->cost[best * level->m + to])
				best = from;
		level->parent[to] = best;
	}
}

/* A node on a circle of parents, 0 if there is none. */
static uint32_t find_circle(struct level *level)
{
	for (uint32_t i = 0; i < level->m; i++)
		level->mark[i] = 0;
	for (uint32_t i = 1; i < level->m; i++) {
		uint32_t at = i;

		while (at != 0 && level->mark[at] == 0) {
			level->mark[at] = i;
			at = level->parent[at];
		}
		if (at != 0 && level->mark[at] == i)
			return at;
	}
	return 0;
}

/* Number the nodes anew: those outside the circle keep their order, the circle is last.
 * mark becomes 1 on the circle. Returns how many there are. */
static uint32_t number(struct level *level, uint32_t on)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < level->m; i++)
		level->mark[i] = 0;
	for (uint32_t at = on; !level->mark[at]; at = level->parent[at])
		level->mark[at] = 1;
	for (uint32_t i = 0; i < level->m; i++)
		if (!level->mark[i])
			level->smaller[i] = count++;
	for (uint32_t i = 0; i < level->m; i++)
		if (level->mark[i])
			level->smaller[i] = count;
	return count + 1;
}

/* Entering the circle at a node saves the way that came to it within the circle. */
static void contract(struct level *level, struct level *down)
{
	const uint32_t m = level->m;

	for (uint32_t i = 0; i < down->m * down->m; i++)
		down->cost[i] = 2 * TOP;
	for (uint32_t from = 0; from < m; from++)
		for (uint32_t to = 0; to < m; to++) {
			double cost = level->cost[from * m + to];
			double *least =
				&down->cost[level->smaller[from] * down->m + level->smaller[to]];

			if (level->smaller[from] == level->smaller[to])
				continue;
			if (level->mark[to])
				cost -= level->cost[level->parent[to] * m + to];
			if (!(cost < *least))
				continue;
			*least = cost;
			if (level->mark[to])
				level->enters[from] = to;
			if (level->mark[from])
				level->leaves[to] = from;
		}
}

static void expand(struct level *level, const struct level *down)
{
	const uint32_t circle = down->m - 1;

	for (uint32_t to = 1; to < level->m; to++) {
		const uint32_t from = down->parent[level->smaller[to]];

		if (level->mark[to])
			continue;
		if (from == circle) {
			level->parent[to] = level->leaves[to];
			continue;
		}
		for (uint32_t i = 0; i < level->m; i++)
			if (!level->mark[i] && level->smaller[i] == from)
				level->parent[to] = i;
	}
	for (uint32_t i = 0; i < level->m; i++)
		if (!level->mark[i] && level->smaller[i] == down->parent[circle])
			level->parent[level->enters[i]] = i;
}

static tutti_status solve(struct level *level)
{
	struct level down;
	uint32_t on;
	tutti_status st;

	choose_parents(level);
	on = find_circle(level);
	if (on == 0)
		return TUTTI_OK;
	TTI_TRY(prepare(&down, number(level, on)));
	contract(level, &down);
	st = solve(&down);
	if (st == TUTTI_OK)
		expand(level, &down);
	release(&down);
	return st;
}

static double bounded(double cost)
{
	return cost < NO_WAY ? cost : NO_WAY;
}

tutti_status tti_arbor_best(const struct tti_arbor_input *in, uint32_t *parent_out,
			    double *cost_out)
{
	const uint32_t n = in->n, m = n + 1;
	struct level level;
	tutti_status st;

	TTI_TRY(prepare(&level, m));
	for (uint32_t to = 0; to < n; to++) {
		level.cost[to + 1] = TOP + bounded(in->begin[to]);
		for (uint32_t from = 0; from < n; from++)
			level.cost[(from + 1) * m + to + 1] =
				from == to ? NO_WAY : bounded(in->hop[from * n + to]);
	}
	st = solve(&level);
	*cost_out = 0;
	for (uint32_t i = 0; st == TUTTI_OK && i < n; i++) {
		const uint32_t from = level.parent[i + 1];

		parent_out[i] = from == 0 ? TTI_ARBOR_NO_PARENT : from - 1;
		*cost_out += from == 0 ? in->begin[i] : in->hop[(from - 1) * n + i];
	}
	release(&level);
	return st;
}

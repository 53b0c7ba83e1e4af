/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/connect/nic_affinity.h"

#include "util/error.h"
#include "util/mem.h"

#define NONE  UINT32_MAX
#define PARTS 1000 /* what a route lacks of the widest, in so many parts */

/* The assignment of one node under way. */
struct work {
	const struct tti_nic_affinity_node *node;
	uint32_t nranks, nnets;
	double *speed;
	uint32_t *must, *may; /* ranks that a NIC has at least, and at most     */
	uint32_t *count;
	int64_t *cost; /* [rank * nnets + net]                           */
	uint32_t *own; /* of each rank, NONE: not yet                    */
	/* Scratch: distances, the NIC before and the rank that moves from there, and of two
	 * NICs the rank that costs least to move and what it costs. */
	int64_t *far, *step;
	uint32_t *before, *mover, *moves;
};

/* -- Rails ------------------------------------------------------------------------- */

static bool knows_all(const struct tti_nic_affinity_node *node)
{
	for (uint32_t i = 0; node->rail && i < node->nnets; i++)
		if (node->rail[i] == 0)
			return false;
	return node->rail != NULL;
}

bool tti_nic_affinity_share_rails(const struct tti_nic_affinity_node *one,
				  const struct tti_nic_affinity_node *other)
{
	if (!knows_all(one) || !knows_all(other))
		return false;
	for (uint32_t i = 0; i < one->nnets; i++)
		for (uint32_t k = 0; k < other->nnets; k++)
			if (one->rail[i] == other->rail[k])
				return true;
	return false;
}

bool tti_nic_affinity_same_rail(const struct tti_nic_affinity_node *one, uint32_t a,
				const struct tti_nic_affinity_node *other, uint32_t b)
{
	return tti_nic_affinity_share_rails(one, other) ? one->rail[a] == other->rail[b] : a == b;
}

/* -- What a choice costs ----------------------------------------------------------- */

static const struct tti_route *route_to(const struct work *w, uint32_t rank, uint32_t net)
{
	return tti_routes_get(w->node->routes, w->node->members[rank], w->node->nets[net]);
}

static bool leads_there(const struct tti_route *route)
{
	return route && route->type < TTI_PATH_NET && route->bw_gbps > 0;
}

static double widest(const struct work *w)
{
	double most = 0;

	for (uint32_t rank = 0; rank < w->nranks; rank++)
		for (uint32_t net = 0; net < w->nnets; net++) {
			const struct tti_route *route = route_to(w, rank, net);

			if (leads_there(route) && (double)route->bw_gbps > most)
				most = (double)route->bw_gbps;
		}
	return most;
}

/* One rail amiss is 1; a part of bandwidth is more than all rails, a type of route more
 * than all parts, and no way at all more than all types. */
static void price(struct work *w, const struct tti_nic_affinity_node *first,
		  const uint32_t *first_own)
{
	const int64_t part = (int64_t)w->nranks + 1;
	const int64_t type = part * (PARTS * (int64_t)w->nranks + 1);
	const int64_t no_way = type * TTI_PATH_DIS * ((int64_t)w->nranks + 1);
	const double most = widest(w);

	for (uint32_t rank = 0; rank < w->nranks; rank++)
		for (uint32_t net = 0; net < w->nnets; net++) {
			const struct tti_route *route = route_to(w, rank, net);
			int64_t *cost = &w->cost[(size_t)rank * w->nnets + net];

			*cost = leads_there(route)
					? type * route->type +
						  part * (int64_t)(PARTS *
								   (1 -
								    (double)route->bw_gbps / most))
					: no_way;
			if (first && rank < first->nranks &&
			    !tti_nic_affinity_same_rail(w->node, net, first, first_own[rank]))
				*cost += 1;
		}
}

static double speed_of(const struct tti_nic_affinity_node *node, uint32_t net)
{
	const struct tti_graph *graph = node->routes->paths->graph;
	const struct tti_topo_link *link = tti_graph_link(
		graph, graph->nodes[node->nets[net]].parent, node->nets[net], TTI_LINK_NET);

	return link && link->bw_gbps > 0 ? (double)link->bw_gbps : 1e-3;
}

static double load_with_one_more(const struct work *w, uint32_t net)
{
	return (w->must[net] + 1) / w->speed[net];
}

/* How many ranks each NIC has: `must` in every best assignment, one more in some. */
static void count_slots(struct work *w)
{
	double level = 0;

	for (uint32_t rank = 0; rank < w->nranks; rank++) {
		uint32_t best = 0;

		for (uint32_t net = 1; net < w->nnets; net++)
			if (load_with_one_more(w, net) < load_with_one_more(w, best))
				best = net;
		level = load_with_one_more(w, best);
		w->must[best]++;
	}
	for (uint32_t net = 0; net < w->nnets; net++) {
		if (w->must[net] && w->must[net] / w->speed[net] > level * (1 - 1e-9))
			w->must[net]--;
		w->may[net] =
			w->must[net] + (load_with_one_more(w, net) < level * (1 + 1e-9) ? 1 : 0);
	}
}

/* -- Rank after rank --------------------------------------------------------------- */

/* A slot that must be taken is worth any detour. */
static bool is_better_end(const struct work *w, uint32_t a, uint32_t b)
{
	const bool must_a = w->count[a] < w->must[a], must_b = w->count[b] < w->must[b];

	return must_a != must_b ? must_a : w->far[a] < w->far[b];
}

/* step[a * nnets + b]: what it costs to move one of the ranks of a to b, the cheapest. */
static void find_moves(struct work *w)
{
	for (size_t i = 0; i < (size_t)w->nnets * w->nnets; i++)
		w->moves[i] = NONE;
	for (uint32_t rank = 0; rank < w->nranks; rank++) {
		const int64_t *cost = w->cost + (size_t)rank * w->nnets;
		const uint32_t own = w->own[rank];

		for (uint32_t net = 0; own != NONE && net < w->nnets; net++) {
			const size_t at = (size_t)own * w->nnets + net;

			if (net != own &&
			    (w->moves[at] == NONE || cost[net] - cost[own] < w->step[at])) {
				w->moves[at] = rank;
				w->step[at] = cost[net] - cost[own];
			}
		}
	}
}

/* Bellman and Ford: there is no circle of negative cost, as what is assigned is best. */
static void find_ways(struct work *w, uint32_t rank)
{
	bool again = true;

	for (uint32_t net = 0; net < w->nnets; net++) {
		w->far[net] = w->cost[(size_t)rank * w->nnets + net];
		w->before[net] = NONE;
		w->mover[net] = rank;
	}
	for (uint32_t round = 0; again && round < w->nnets; round++) {
		again = false;
		for (uint32_t a = 0; a < w->nnets; a++)
			for (uint32_t b = 0; b < w->nnets; b++) {
				const size_t at = (size_t)a * w->nnets + b;

				if (w->moves[at] == NONE || w->far[a] + w->step[at] >= w->far[b])
					continue;
				w->far[b] = w->far[a] + w->step[at];
				w->before[b] = a;
				w->mover[b] = w->moves[at];
				again = true;
			}
	}
}

static void place(struct work *w, uint32_t rank)
{
	uint32_t best = NONE;

	find_moves(w);
	find_ways(w, rank);
	for (uint32_t net = 0; net < w->nnets; net++)
		if (w->count[net] < w->may[net] && (best == NONE || is_better_end(w, net, best)))
			best = net;
	w->count[best]++;
	for (uint32_t net = best; net != NONE; net = w->before[net])
		w->own[w->mover[net]] = net;
}

/* -- The rest of the order --------------------------------------------------------- */

/* Nearer first; of those as near, from the own one on in turn. */
static bool is_before(const struct work *w, uint32_t rank, uint32_t a, uint32_t b)
{
	const struct tti_route *one = route_to(w, rank, a), *other = route_to(w, rank, b);
	const uint32_t own = w->own[rank], n = w->nnets;

	if (a == own || b == own)
		return a == own;
	if (!leads_there(one) || !leads_there(other))
		return leads_there(one) || (!leads_there(other) && a < b);
	if (one->type != other->type)
		return one->type < other->type;
	if (one->bw_gbps < other->bw_gbps || one->bw_gbps > other->bw_gbps)
		return one->bw_gbps > other->bw_gbps;
	return (a + n - own) % n < (b + n - own) % n;
}

static void sort(const struct work *w, uint32_t *order)
{
	for (uint32_t rank = 0; rank < w->nranks; rank++) {
		uint32_t *list = order + (size_t)rank * w->nnets;

		for (uint32_t net = 0; net < w->nnets; net++) {
			uint32_t at = net;

			for (; at > 0 && is_before(w, rank, net, list[at - 1]); at--)
				list[at] = list[at - 1];
			list[at] = net;
		}
	}
}

/* -- All of it --------------------------------------------------------------------- */

static bool work_init(struct work *w, const struct tti_nic_affinity_node *node,
		      struct tti_arena *arena)
{
	const size_t ranks = node->nranks, nets = node->nnets;

	*w = (struct work){ .node = node, .nranks = node->nranks, .nnets = node->nnets };
	w->speed = tti_arena_alloc(arena, nets * sizeof(*w->speed));
	w->must = tti_arena_alloc(arena, 5 * nets * sizeof(*w->must));
	w->cost = tti_arena_alloc(arena, ranks * nets * sizeof(*w->cost) + 1);
	w->own = tti_arena_alloc(arena, ranks * sizeof(*w->own) + 1);
	w->far = tti_arena_alloc(arena, nets * sizeof(*w->far));
	w->step = tti_arena_alloc(arena, nets * nets * sizeof(*w->step));
	w->moves = tti_arena_alloc(arena, nets * nets * sizeof(*w->moves));
	if (!w->speed || !w->must || !w->cost || !w->own || !w->far || !w->step || !w->moves)
		return false;
	w->may = w->must + nets;
	w->count = w->may + nets;
	w->before = w->count + nets;
	w->mover = w->before + nets;
	for (uint32_t net = 0; net < w->nnets; net++)
		w->speed[net] = speed_of(node, net);
	for (uint32_t rank = 0; rank < w->nranks; rank++)
		w->own[rank] = NONE;
	return true;
}

/* The first NIC of each rank into own_out, which lives in `scratch`. */
static bool assign(const struct tti_nic_affinity_node *node,
		   const struct tti_nic_affinity_node *first, const uint32_t *first_own,
		   struct tti_arena *scratch, uint32_t *order, uint32_t **own_out)
{
	struct work w;

	if (!work_init(&w, node, scratch))
		return false;
	count_slots(&w);
	price(&w, first, first_own);
	for (uint32_t rank = 0; rank < w.nranks; rank++)
		place(&w, rank);
	sort(&w, order);
	*own_out = w.own;
	return true;
}

tutti_status tti_nic_affinity_assign(const struct tti_nic_affinity_node *nodes, uint32_t nnodes,
				     struct tti_arena *arena, uint32_t ***order_out)
{
	uint32_t **order = tti_arena_alloc(arena, nnodes * sizeof(*order) + 1);
	const struct tti_nic_affinity_node *first = NULL;
	struct tti_arena kept = { NULL };
	uint32_t *first_own = NULL;
	bool good = order != NULL;

	for (uint32_t i = 0; good && i < nnodes; i++) {
		const struct tti_nic_affinity_node *node = &nodes[i];
		struct tti_arena scratch = { NULL };
		uint32_t *own;

		if (node->nnets == 0)
			continue;
		order[i] = tti_arena_alloc(
			arena, (size_t)node->nranks * node->nnets * sizeof(**order) + 1);
		good = order[i] &&
		       assign(node, first, first_own, first ? &scratch : &kept, order[i], &own);
		if (good && !first) {
			first = node;
			first_own = own;
		}
		tti_arena_release(&scratch);
	}
	tti_arena_release(&kept);
	if (!good)
		return tti_fail(TUTTI_ENOMEM, "NICs for the ranks of %u nodes: out of memory",
				nnodes);
	*order_out = order;
	return TUTTI_OK;
}

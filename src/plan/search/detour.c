/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/detour.h"

#include <math.h>

#include "plan/search/column.h"
#include "util/error.h"

/* Cheaper than the direct way by less than that is no reason. */
#define GAIN 1e-9

static bool leads_over_cpus(uint8_t type)
{
	return type >= TTI_PATH_PHB;
}

static bool is_gpu(const struct tti_graph *graph, uint32_t node)
{
	return graph->nodes[node].type == TTI_NODE_GPU;
}

tutti_status tti_detour_nets(const struct tti_members *members, uint32_t nnets, uint32_t *out)
{
	const struct tti_graph *graph = members->routes->paths->graph;

	*out = 0;
	if (nnets < 2 || graph->nhosts > 1)
		return TUTTI_OK;
	TTI_TRY(tti_routes_want_all(members->routes));
	for (uint32_t i = 0; i < members->n; i++)
		for (uint32_t k = 0; is_gpu(graph, members->nodes[i]) && k < members->n; k++) {
			const uint32_t from = members->nodes[i], to = members->nodes[k];

			if (from == to || !is_gpu(graph, to) ||
			    !leads_over_cpus(tti_routes_get(members->routes, from, to)->type))
				continue;
			*out = nnets;
			return TUTTI_OK;
		}
	return TUTTI_OK;
}

bool tti_way_exists(const struct tti_loads *loads, struct tti_way way)
{
	return way.out < loads->ninner && way.in < loads->ninner &&
	       loads->cable[way.out] != loads->cable[way.in] &&
	       loads->fabric[way.out] != TTI_NODE_NONE &&
	       loads->fabric[way.out] == loads->fabric[way.in];
}

uint32_t tti_way_hops(const struct tti_loads *loads, const struct tti_way *way, uint32_t from,
		      uint32_t to, const struct tti_hop *hops[2])
{
	if (tti_way_is_direct(way, to)) {
		hops[0] = tti_hop(loads, from, to);
		return 1;
	}
	hops[0] = tti_hop_out(loads, way[to].out, from);
	hops[1] = tti_hop_in(loads, way[to].in, to);
	return 2;
}

uint32_t tti_way_hops_back(const struct tti_loads *loads, const struct tti_way *way, uint32_t from,
			   uint32_t to, const struct tti_hop *hops[2])
{
	if (tti_way_is_direct(way, to)) {
		hops[0] = tti_hop(loads, to, from);
		return 1;
	}
	hops[0] = tti_hop_out(loads, way[to].in, to);
	hops[1] = tti_hop_in(loads, way[to].out, from);
	return 2;
}

/* -- Prices ------------------------------------------------------------------------ */

static bool may_detour(const struct tti_loads *loads, uint32_t from, uint32_t to)
{
	const struct tti_graph *graph = loads->routes->paths->graph;

	return from != to && leads_over_cpus(tti_hop(loads, from, to)->type) &&
	       is_gpu(graph, loads->nodes[from]) && is_gpu(graph, loads->nodes[to]);
}

static bool on_one_cable(const struct tti_loads *loads, uint32_t a, uint32_t b)
{
	return a != TTI_NO_NET && b != TTI_NO_NET && loads->cable[a] == loads->cable[b];
}

static void offer(const struct tti_loads *loads, struct tti_ends *ends, double price, uint32_t net)
{
	const bool same = on_one_cable(loads, net, ends->net[0]);

	if (price < ends->price[0]) {
		if (!same) {
			ends->price[1] = ends->price[0];
			ends->net[1] = ends->net[0];
		}
		ends->price[0] = price;
		ends->net[0] = net;
	} else if (price < ends->price[1] && !same) {
		ends->price[1] = price;
		ends->net[1] = net;
	}
}

static void find_ends(const struct tti_pool *pool, uint32_t fabric, const double *price,
		      struct tti_ends *ends)
{
	const struct tti_loads *loads = pool->loads;

	for (uint32_t i = 0; i < loads->n; i++) {
		ends[i] = (struct tti_ends){ { INFINITY, INFINITY }, { TTI_NO_NET, TTI_NO_NET } };
		for (uint32_t net = fabric; net < loads->ninner; net++)
			if (loads->fabric[net] == fabric)
				offer(loads, &ends[i], price[net * loads->n + i], net);
	}
}

/* The cheapest two NICs on two ports. */
static double join(const struct tti_loads *loads, const struct tti_ends *out,
		   const struct tti_ends *in, struct tti_way *way)
{
	const bool same = on_one_cable(loads, out->net[0], in->net[0]);
	const bool yields = out->price[1] + in->price[0] <= out->price[0] + in->price[1];
	const uint32_t a = same && yields, b = same && !yields;

	*way = (struct tti_way){ out->net[a], in->net[b] };
	return out->price[a] + in->price[b];
}

void tti_detour_price(struct tti_pool *pool, double *hop, const double *out, const double *in)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t n = loads->n;

	for (uint32_t i = 0; i < n * n; i++)
		pool->way[i] = (struct tti_way){ TTI_NO_NET, TTI_NO_NET };
	for (uint32_t fabric = 0; fabric < loads->ninner; fabric++) {
		if (loads->fabric[fabric] != fabric)
			continue;
		find_ends(pool, fabric, out, pool->leave);
		find_ends(pool, fabric, in, pool->enter);
		for (uint32_t i = 0; i < n * n; i++) {
			const uint32_t from = i / n, to = i % n;
			struct tti_way way;
			double price;

			if (!may_detour(loads, from, to))
				continue;
			price = join(loads, &pool->leave[from], &pool->enter[to], &way) +
				TTI_DETOUR_FAR * pool->charge;
			if (!isfinite(price) || price >= hop[i] * (1 - GAIN))
				continue;
			hop[i] = price;
			pool->way[i] = way;
		}
	}
}

/* -- Columns ----------------------------------------------------------------------- */

void tti_detour_choose(struct tti_pool *pool, struct tti_column *column)
{
	const uint32_t n = pool->loads->n;
	bool any = false;

	column->way = NULL;
	if (!pool->detours)
		return;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t to = column->order[i];
		const uint32_t from =
			column->parent ? column->parent[to] : column->order[(i + n - 1) % n];

		pool->ways[to] = from == UINT32_MAX ? (struct tti_way){ TTI_NO_NET, TTI_NO_NET }
						    : pool->way[from * n + to];
		any |= pool->ways[to].out != TTI_NO_NET;
	}
	if (any)
		column->way = pool->ways;
}

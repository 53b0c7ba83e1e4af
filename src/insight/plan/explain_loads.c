/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/explain.h"
#include "insight/plan/job.h"
#include "plan/search/colocated.h"
#include "plan/search/detour.h"
#include "util/error.h"

/* The members of a node by name in a graph that may be another than its own: with a NIC
 * more, say. All NICs of that graph are in: `nets`: channels end at them. */
static tutti_status find_members(struct tti_arena *arena, const struct tti_job_node *node,
				 const struct tti_routes *routes, bool nets,
				 struct tti_members *out)
{
	const struct tti_graph *from = node->routes->paths->graph, *to = routes->paths->graph;
	struct tti_colocated colocated;
	uint32_t *nodes, nnets;

	TTI_TRY(tti_colocated_find(arena, node->members, node->nranks, &colocated));
	nodes = tti_arena_alloc(arena, colocated.nendpoints * sizeof(*nodes));
	if (!nodes)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	for (uint32_t i = 0; i < colocated.nendpoints; i++) {
		const struct tti_node *member = &from->nodes[colocated.nodes[i]];

		nodes[i] = from == to ? colocated.nodes[i]
				      : tti_graph_find(to, member->type, member->full_name);
		if (nodes[i] == TTI_NODE_NONE)
			return tti_fail(TUTTI_EINTERNAL, "%s is gone from a changed topology",
					member->name);
	}
	*out = (struct tti_members){ .routes = routes, .nodes = nodes, .n = colocated.nendpoints };
	out->nets = node->nets;
	nnets = node->nnets;
	if (from != to)
		TTI_TRY(tti_plan_nets_of(to, arena, &out->nets, &nnets));
	if (!nets)
		return tti_detour_nets(out, nnets, &out->ninner);
	out->nnets = nnets;
	return TUTTI_OK;
}

tutti_status tti_explain_loads(const struct tti_job_node *node, const struct tti_routes *routes,
			       bool nets, struct tti_loads **out)
{
	struct tti_arena arena = { 0 };
	struct tti_members members;
	tutti_status st = find_members(&arena, node, routes, nets, &members);

	if (st == TUTTI_OK)
		st = tti_loads_build(&members, out);
	tti_arena_release(&arena);
	return st;
}

const char *tti_explain_member(const struct tti_explain *explain, uint32_t member)
{
	const struct tti_loads *loads = explain->loads;

	return loads->routes->paths->graph->nodes[loads->nodes[member]].full_name;
}

const char *tti_explain_net(const struct tti_explain *explain, uint32_t net)
{
	const struct tti_loads *loads = explain->loads;

	return loads->routes->paths->graph->nodes[loads->nets[net]].full_name;
}

bool tti_explain_needs(const struct tti_explain *explain, const struct tti_hop *hop, uint32_t row)
{
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		if (explain->loads->loads[i].row == row)
			return true;
	return false;
}

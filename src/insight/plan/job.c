/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/job.h"

#include <stdio.h>

#include "boot/net/iface.h"
#include "plan/plan.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/vec.h"

/* A job and the arrays that its nodes borrow; nodes of one kind share theirs. */
struct own_job {
	struct tti_plan_job job;
	struct tti_arena arena;
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "job: out of memory");
}

static bool has_rank(const struct tti_node *node)
{
	return node->gpu.rank >= 0;
}

/* The endpoints that are ranks: GPUs with a rank, else GPUs that a driver knows, else
 * all GPUs, else HOSTs; in order of rank, where there is one, else of the graph. */
static uint32_t choose_members(const struct tti_graph *graph, uint32_t *members)
{
	const uint32_t ngpus = graph->ntype[TTI_NODE_GPU];
	uint32_t nranked = 0, ndriven = 0, n = 0;

	for (uint32_t i = 0; i < ngpus; i++) {
		const struct tti_node *gpu = &graph->nodes[graph->by_type[TTI_NODE_GPU][i]];

		nranked += has_rank(gpu);
		ndriven += !gpu->gpu.bare;
	}
	for (uint32_t i = 0; i < ngpus; i++) {
		const uint32_t node = graph->by_type[TTI_NODE_GPU][i];
		const struct tti_node *gpu = &graph->nodes[node];
		uint32_t at = n;

		if ((nranked && !has_rank(gpu)) || (ndriven && gpu->gpu.bare))
			continue;
		while (at > 0 && nranked &&
		       graph->nodes[members[at - 1]].gpu.rank > gpu->gpu.rank) {
			members[at] = members[at - 1];
			at--;
		}
		members[at] = node;
		n++;
	}
	for (uint32_t i = 0; ngpus == 0 && i < graph->ntype[TTI_NODE_HOST]; i++)
		members[n++] = graph->by_type[TTI_NODE_HOST][i];
	return n;
}

static bool is_asked_for(const char *name)
{
	const char *list = tti_params()->socket_ifname;

	return list && *list && *list != '^' && tti_iface_passes(list, name);
}

tutti_status tti_plan_nets_of(const struct tti_graph *graph, struct tti_arena *arena,
			      const uint32_t **out, uint32_t *n_out)
{
	const uint32_t *all = graph->by_type[TTI_NODE_NET];
	const uint32_t most = graph->ntype[TTI_NODE_NET];
	uint32_t *nets = tti_arena_alloc(arena, most * sizeof(*nets) + 1);
	uint32_t n = 0;

	if (!nets)
		return no_memory();
	for (uint32_t i = 0; i < most; i++) {
		const struct tti_node *net = &graph->nodes[all[i]];

		if (!net->net.is_virtual || is_asked_for(net->name))
			nets[n++] = all[i];
	}
	*out = n ? nets : all;
	*n_out = n ? n : most;
	return TUTTI_OK;
}

/* The endpoints and NICs of a node; its ranks are not there yet. */
static tutti_status fill_node(struct own_job *own, const struct tti_routes *routes,
			      struct tti_job_node *out)
{
	const struct tti_graph *graph = routes->paths->graph;
	const uint32_t most = graph->ntype[TTI_NODE_GPU] + graph->ntype[TTI_NODE_HOST];
	uint32_t *endpoints = tti_arena_alloc(&own->arena, most * sizeof(*endpoints) + 1);

	if (!endpoints)
		return no_memory();
	out->nranks = choose_members(graph, endpoints);
	if (out->nranks == 0)
		return tti_fail(TUTTI_EINVAL,
				"%s: there is neither a GPU nor a NUMA node with CPUs",
				graph->source);
	out->routes = routes;
	out->members = endpoints;
	out->group = -1;
	return tti_plan_nets_of(graph, &own->arena, &out->nets, &out->nnets);
}

/* More ranks than endpoints share them in turn; fewer have the first ones. Nodes with the
 * same endpoints and as many ranks share one list. */
static tutti_status give_members(struct own_job *own, struct tti_job_node *nodes, uint32_t node,
				 uint32_t nranks)
{
	struct tti_job_node *this = &nodes[node];
	const uint32_t nendpoints = this->nranks;
	uint32_t *members;

	this->nranks = nranks;
	if (nranks <= nendpoints)
		return TUTTI_OK;
	for (uint32_t other = 0; other < node; other++)
		if (nodes[other].routes == this->routes && nodes[other].nranks == nranks) {
			this->members = nodes[other].members;
			return TUTTI_OK;
		}
	members = tti_arena_alloc(&own->arena, nranks * sizeof(*members));
	if (!members)
		return no_memory();
	for (uint32_t i = 0; i < nranks; i++)
		members[i] = this->members[i % nendpoints];
	this->members = members;
	return TUTTI_OK;
}

static tutti_status name_node(struct own_job *own, const char *const *names, uint32_t index,
			      struct tti_job_node *node)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "node%u", index);
	node->name = tti_arena_strdup(&own->arena, names ? names[index] : number);
	return node->name ? TUTTI_OK : no_memory();
}

/* How many ranks each node has. */
static tutti_status count_ranks(const struct tti_job_layout *layout,
				const struct tti_job_node *nodes, uint32_t *count)
{
	for (uint32_t node = 0; node < layout->nnodes; node++)
		count[node] = layout->node_of_rank     ? 0
			      : layout->ranks_per_node ? layout->ranks_per_node
						       : nodes[node].nranks;
	for (uint32_t rank = 0; layout->node_of_rank && rank < layout->nranks; rank++) {
		if (layout->node_of_rank[rank] >= layout->nnodes)
			return tti_fail(TUTTI_EINVAL, "rank %u is on node %u: there are %u nodes",
					rank, layout->node_of_rank[rank], layout->nnodes);
		count[layout->node_of_rank[rank]]++;
	}
	for (uint32_t node = 0; node < layout->nnodes; node++)
		if (count[node] == 0)
			return tti_fail(TUTTI_EINVAL, "node %u has no ranks", node);
	return TUTTI_OK;
}

static tutti_status deal_ranks(struct own_job *own, const struct tti_job_layout *layout,
			       struct tti_job_node *nodes, uint32_t *count)
{
	uint32_t **ranks = tti_arena_alloc(&own->arena, layout->nnodes * sizeof(*ranks));

	if (!ranks)
		return no_memory();
	TTI_TRY(count_ranks(layout, nodes, count));
	for (uint32_t node = 0; node < layout->nnodes; node++) {
		ranks[node] = tti_arena_alloc(&own->arena, count[node] * sizeof(**ranks));
		if (!ranks[node])
			return no_memory();
		TTI_TRY(give_members(own, nodes, node, count[node]));
		nodes[node].ranks = ranks[node];
		for (uint32_t i = 0; !layout->node_of_rank && i < count[node]; i++)
			ranks[node][i] = own->job.nranks++;
	}
	if (!layout->node_of_rank)
		return TUTTI_OK;
	for (uint32_t rank = 0; rank < layout->nranks; rank++)
		*ranks[layout->node_of_rank[rank]]++ = rank;
	own->job.nranks = layout->nranks;
	return TUTTI_OK;
}

static tutti_status fill(struct own_job *own, const struct tti_job_layout *layout)
{
	struct tti_job_node *nodes =
		tti_arena_alloc(&own->arena, layout->nnodes * sizeof(*nodes) + 1);
	uint32_t *count = tti_arena_alloc(&own->arena, layout->nnodes * sizeof(*count) + 1);

	if (!nodes || !count)
		return no_memory();
	own->job.nodes = nodes;
	own->job.nnodes = layout->nnodes;
	for (uint32_t node = 0; node < layout->nnodes; node++) {
		if (node > 0 && layout->routes[node] == layout->routes[node - 1])
			nodes[node] = nodes[node - 1];
		else
			TTI_TRY(fill_node(own, layout->routes[node], &nodes[node]));
		TTI_TRY(name_node(own, layout->names, node, &nodes[node]));
		if (layout->group)
			nodes[node].group = layout->group[node];
	}
	return deal_ranks(own, layout, nodes, count);
}

tutti_status tti_job_lay_out(const struct tti_job_layout *layout, struct tti_plan_job **out)
{
	struct own_job *own = tti_zalloc(sizeof(*own));
	tutti_status st;

	if (!own)
		return no_memory();
	st = fill(own, layout);
	if (st == TUTTI_OK)
		*out = &own->job;
	else
		tti_plan_job_free(&own->job);
	return st;
}

tutti_status tti_plan_job_of(const struct tti_routes *const *kinds, uint32_t nkinds, uint32_t count,
			     uint32_t ranks_per_node, struct tti_plan_job **out)
{
	const uint32_t nnodes = nkinds * count;
	const struct tti_routes **routes = tti_calloc(nnodes + 1, sizeof(*routes));
	const struct tti_job_layout layout = { .routes = routes,
					       .nnodes = nnodes,
					       .ranks_per_node = ranks_per_node };
	tutti_status st;

	if (!routes)
		return no_memory();
	for (uint32_t node = 0; node < nnodes; node++)
		routes[node] = kinds[node / count];
	st = tti_job_lay_out(&layout, out);
	tti_free(routes);
	return st;
}

void tti_plan_job_free(struct tti_plan_job *job)
{
	struct own_job *own = (struct own_job *)job;

	if (!own)
		return;
	tti_arena_release(&own->arena);
	tti_free(own);
}

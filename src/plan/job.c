/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "plan/plan.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* A job and the arrays that its nodes borrow; nodes of one kind share theirs. */
struct own_job {
	struct tti_job job;
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

/* More ranks than endpoints share them in turn; fewer: the first ones. */
static tutti_status fill_node(struct own_job *own, const struct tti_routes *routes,
			      uint32_t ranks_per_node, struct tti_job_node *out)
{
	const struct tti_graph *graph = routes->paths->graph;
	const uint32_t most = graph->ntype[TTI_NODE_GPU] + graph->ntype[TTI_NODE_HOST];
	uint32_t *endpoints = tti_arena_alloc(&own->arena, most * sizeof(*endpoints) + 1);
	uint32_t *members, n;

	if (!endpoints)
		return no_memory();
	n = choose_members(graph, endpoints);
	if (n == 0)
		return tti_fail(TUTTI_EINVAL,
				"%s: there is neither a GPU nor a NUMA node with CPUs",
				graph->source);
	out->nranks = ranks_per_node ? ranks_per_node : n;
	members = tti_arena_alloc(&own->arena, out->nranks * sizeof(*members));
	if (!members)
		return no_memory();
	for (uint32_t i = 0; i < out->nranks; i++)
		members[i] = endpoints[i % n];
	out->routes = routes;
	out->members = members;
	out->nets = graph->by_type[TTI_NODE_NET];
	out->nnets = graph->ntype[TTI_NODE_NET];
	out->group = -1;
	return TUTTI_OK;
}

static tutti_status number_ranks(struct own_job *own, struct tti_job_node *node, uint32_t index)
{
	uint32_t *ranks = tti_arena_alloc(&own->arena, node->nranks * sizeof(*ranks));
	char *name = tti_arena_alloc(&own->arena, 16);

	if (!ranks || !name)
		return no_memory();
	(void)snprintf(name, 16, "node%u", index);
	for (uint32_t i = 0; i < node->nranks; i++)
		ranks[i] = own->job.nranks++;
	node->ranks = ranks;
	node->name = name;
	return TUTTI_OK;
}

static tutti_status fill(struct own_job *own, const struct tti_routes *const *kinds,
			 uint32_t nkinds, uint32_t count, uint32_t ranks_per_node)
{
	struct tti_job_node *nodes =
		tti_arena_alloc(&own->arena, (size_t)nkinds * count * sizeof(*nodes) + 1);

	if (!nodes)
		return no_memory();
	own->job.nodes = nodes;
	for (uint32_t kind = 0; kind < nkinds; kind++) {
		struct tti_job_node first = { .routes = NULL };

		TTI_TRY(fill_node(own, kinds[kind], ranks_per_node, &first));
		for (uint32_t i = 0; i < count; i++) {
			struct tti_job_node *node = &nodes[own->job.nnodes];

			*node = first;
			TTI_TRY(number_ranks(own, node, own->job.nnodes));
			own->job.nnodes++;
		}
	}
	return TUTTI_OK;
}

tutti_status tti_job_of(const struct tti_routes *const *kinds, uint32_t nkinds, uint32_t count,
			uint32_t ranks_per_node, struct tti_job **out)
{
	struct own_job *own = tti_zalloc(sizeof(*own));
	tutti_status st;

	if (!own)
		return no_memory();
	st = fill(own, kinds, nkinds, count, ranks_per_node);
	if (st == TUTTI_OK)
		*out = &own->job;
	else
		tti_job_free(&own->job);
	return st;
}

void tti_job_free(struct tti_job *job)
{
	struct own_job *own = (struct own_job *)job;

	if (!own)
		return;
	tti_arena_release(&own->arena);
	tti_free(own);
}

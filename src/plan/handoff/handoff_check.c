/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "plan/handoff/handoff.h"
#include "util/error.h"
#include "util/mem.h"

/* From the plan, the job and its routes alone: each link with what crosses it, and each
 * receiver with what it gets. */

#define EPS 1e-5

struct checker {
	const struct tti_handoff_job *handoff;
	const struct tti_handoff_plan *plan;
	struct tti_arena arena;
	uint32_t *node_of, *member_of; /* of each rank: its node, its endpoint  */
	bool *is_from, *is_to;
	double **used;       /* of each node, by link */
	double *landed;      /* scratch, by node of a graph */
	uint32_t *first_way; /* of each node; nways: none comes into it */
	bool *served;        /* of each node: the part at hand is there, or nobody wants it */
};

#define breach(...) tti_fail(TUTTI_EINTERNAL, "handoff plan: " __VA_ARGS__)

static bool near(double a, double b)
{
	return fabs(a - b) <= EPS * (1 + fabs(b));
}

static const struct tti_job_node *node_at(const struct checker *c, uint32_t node)
{
	return &c->handoff->job->nodes[node];
}

static const struct tti_graph *graph_of(const struct checker *c, uint32_t node)
{
	return node_at(c, node)->routes->paths->graph;
}

/* -- Links ------------------------------------------------------------------------- */

/* Ports that are several NETs have one cable: that of the first. */
static uint32_t cable_of(const struct checker *c, uint32_t node, uint32_t link)
{
	const struct tti_graph *graph = graph_of(c, node);
	const bool out = graph->nodes[graph->links[link].to].type == TTI_NODE_NET;
	const struct tti_node *net =
		&graph->nodes[out ? graph->links[link].to : graph->links[link].from];

	for (uint32_t i = 0; i < node_at(c, node)->nnets; i++) {
		const struct tti_node *other = &graph->nodes[node_at(c, node)->nets[i]];

		if (other->host == net->host && other->net.asic == net->net.asic &&
		    other->net.port == net->net.port)
			return out ? graph->links[other->first_link].reverse : other->first_link;
	}
	return link;
}

static void use_path(struct checker *c, uint32_t node, uint32_t from, uint32_t to, double gbps,
		     double pci)
{
	const struct tti_paths *paths = node_at(c, node)->routes->paths;
	const struct tti_path *path = tti_paths_get(paths, from, to);
	const uint32_t *hops = tti_paths_hops(paths, from, to);

	for (uint32_t i = 0; i < path->nhops; i++) {
		const struct tti_topo_link *link = &paths->graph->links[hops[i]];
		uint32_t at = hops[i];

		if (link->type == TTI_LINK_LOC && (double)link->bw_gbps >= TTI_LOC_GBPS &&
		    path->type != TTI_PATH_LOC)
			continue;
		if (link->type == TTI_LINK_NET)
			at = cable_of(c, node, at);
		c->used[node][at] += link->type == TTI_LINK_PCI ? pci * gbps : gbps;
	}
}

static tutti_status use(struct checker *c, uint32_t node, uint32_t from, uint32_t to, double gbps)
{
	const struct tti_route *route = tti_routes_get(node_at(c, node)->routes, from, to);
	const double pci = route->why == TTI_ROUTE_OVERHEAD ? 1.2 : 1;

	if (from == to)
		return TUTTI_OK;
	if (route->type >= TTI_PATH_NET)
		return breach("nothing leads from %s to %s in node %u",
			      graph_of(c, node)->nodes[from].full_name,
			      graph_of(c, node)->nodes[to].full_name, node);
	if (route->via == TTI_NODE_NONE) {
		use_path(c, node, from, to, gbps, pci);
	} else {
		use_path(c, node, from, route->via, gbps, pci);
		use_path(c, node, route->via, to, gbps, pci);
	}
	return TUTTI_OK;
}

static tutti_status use_ways(struct checker *c)
{
	for (uint32_t i = 0; i < c->plan->nways; i++) {
		const struct tti_handoff_way *way = &c->plan->ways[i];
		const uint32_t a = c->node_of[way->from], b = c->node_of[way->to];

		if (c->first_way[b] == c->plan->nways)
			c->first_way[b] = i;
		else if (c->node_of[c->plan->ways[i - 1].to] != b)
			return breach("ways into node %u do not stand together", b);

		if (!near(way->gbps, way->share * c->plan->gbps))
			return breach("way %u carries %g, and %g of %g", i, way->gbps, way->share,
				      c->plan->gbps);
		if (a == b) {
			TTI_TRY(use(c, a, c->member_of[way->from], c->member_of[way->to],
				    way->gbps));
			continue;
		}
		if (way->net_out >= node_at(c, a)->nnets || way->net_in >= node_at(c, b)->nnets)
			return breach("way %u goes by a NIC that there is not", i);
		TTI_TRY(use(c, a, c->member_of[way->from], node_at(c, a)->nets[way->net_out],
			    way->gbps));
		TTI_TRY(use(c, b, node_at(c, b)->nets[way->net_in], c->member_of[way->to],
			    way->gbps));
	}
	return TUTTI_OK;
}

static tutti_status use_trees(struct checker *c)
{
	for (uint32_t i = 0; i < c->plan->ntrees; i++) {
		const struct tti_handoff_tree *tree = &c->plan->trees[i];

		for (uint32_t k = 1; k < tree->n; k++) {
			if (tree->parent[k] >= k)
				return breach("tree %u: a child before its parent", i);
			TTI_TRY(use(c, tree->node, c->member_of[tree->ranks[tree->parent[k]]],
				    c->member_of[tree->ranks[k]], tree->share * c->plan->gbps));
		}
	}
	return TUTTI_OK;
}

static tutti_status check_links(struct checker *c)
{
	TTI_TRY(use_ways(c));
	TTI_TRY(use_trees(c));
	for (uint32_t node = 0; node < c->plan->nnodes; node++)
		for (uint32_t i = 0; i < graph_of(c, node)->nlinks; i++) {
			const struct tti_graph *graph = graph_of(c, node);
			const struct tti_topo_link *link = &graph->links[i];

			if (c->used[node][i] > (double)link->bw_gbps * (1 + EPS))
				return breach("%s to %s of node %u has %g GB/s and carries %g",
					      graph->nodes[link->from].full_name,
					      graph->nodes[link->to].full_name, node,
					      (double)link->bw_gbps, c->used[node][i]);
		}
	return TUTTI_OK;
}

/* -- What gets where --------------------------------------------------------------- */

/* Whether a rank has a part (WHOLE: any) when node `to` is being served. */
static bool has(const struct checker *c, uint32_t rank, uint32_t part)
{
	if (part == TTI_HANDOFF_WHOLE ? c->is_from[rank] && !c->handoff->from_sharded
				      : c->handoff->from[part] == rank)
		return true;
	return !c->handoff->to_sharded && c->is_to[rank] && c->served[c->node_of[rank]];
}

static bool wants(const struct checker *c, uint32_t node, uint32_t member)
{
	for (uint32_t i = 0; i < c->handoff->nto; i++)
		if (c->node_of[c->handoff->to[i]] == node &&
		    c->member_of[c->handoff->to[i]] == member)
			return true;
	return false;
}

static bool reaches(const struct checker *c, const struct tti_handoff_tree *tree, uint32_t member)
{
	for (uint32_t i = 0; i < tree->n; i++)
		if (c->member_of[tree->ranks[i]] == member)
			return true;
	return false;
}

/* All that landed at an endpoint goes on to all others, in trees that reach them. */
static tutti_status check_spread(const struct checker *c, uint32_t node, uint32_t part,
				 uint32_t root)
{
	const struct tti_handoff_job *handoff = c->handoff;
	double spread = 0;
	bool others = false;

	for (uint32_t i = 0; i < handoff->nto; i++)
		others |=
			c->node_of[handoff->to[i]] == node && c->member_of[handoff->to[i]] != root;
	for (uint32_t i = 0; i < c->plan->ntrees; i++) {
		const struct tti_handoff_tree *tree = &c->plan->trees[i];

		if (tree->node != node || tree->part != part ||
		    c->member_of[tree->ranks[0]] != root)
			continue;
		spread += tree->share;
		for (uint32_t k = 0; k < handoff->nto; k++)
			if (c->node_of[handoff->to[k]] == node &&
			    !reaches(c, tree, c->member_of[handoff->to[k]]))
				return breach("tree %u does not reach rank %u", i, handoff->to[k]);
	}
	if (others && !near(spread, c->landed[root]))
		return breach("%g lands at %s of node %u, and %g is spread from there",
			      c->landed[root], graph_of(c, node)->nodes[root].full_name, node,
			      spread);
	return TUTTI_OK;
}

/* What is on a node already: of a part, of the whole vector. */
static bool is_there(const struct checker *c, uint32_t node, uint32_t part)
{
	for (uint32_t i = 0; i < c->handoff->nfrom; i++)
		if (c->node_of[c->handoff->from[i]] == node &&
		    (part == TTI_HANDOFF_WHOLE || part == i))
			return true;
	return false;
}

/* Trees of a node whose sources have it: all of it goes to whoever is no source. */
static tutti_status check_there(const struct checker *c, uint32_t node, uint32_t part, double share)
{
	double spread = 0;
	bool missing = false;

	for (uint32_t i = 0; i < c->handoff->nto; i++) {
		const uint32_t to = c->handoff->to[i];
		bool read = false;

		for (uint32_t k = 0; k < c->handoff->nfrom; k++)
			read |= (part == TTI_HANDOFF_WHOLE || part == k) &&
				c->node_of[c->handoff->from[k]] == node &&
				c->member_of[c->handoff->from[k]] == c->member_of[to];
		missing |= c->node_of[to] == node && !read;
	}
	for (uint32_t i = 0; i < c->plan->ntrees; i++) {
		const struct tti_handoff_tree *tree = &c->plan->trees[i];
		bool held = false;

		if (tree->node != node || tree->part != part)
			continue;
		for (uint32_t k = 0; k < c->handoff->nfrom; k++)
			held |= (part == TTI_HANDOFF_WHOLE || part == k) &&
				c->member_of[c->handoff->from[k]] == c->member_of[tree->ranks[0]];
		if (!held)
			return breach("tree %u begins at a rank that has nothing", i);
		spread += tree->share;
	}
	/* A tree in which nobody hangs on the root is left out: all have it. */
	if (missing && !near(spread, share))
		return breach("%g of %g spread in node %u, which has it", spread, share, node);
	return TUTTI_OK;
}

/* The first way into a node from ways[i] on: those of a node stand together. */
static uint32_t next_way(const struct checker *c, uint32_t node, uint32_t i)
{
	if (i > 0 && (i == c->plan->nways || c->node_of[c->plan->ways[i].to] != node))
		return c->plan->nways;
	return i > 0 ? i : c->first_way[node];
}

static tutti_status check_part(struct checker *c, uint32_t node, uint32_t part, double share)
{
	const struct tti_graph *graph = graph_of(c, node);
	double sum = 0;

	if (is_there(c, node, part))
		return check_there(c, node, part, share);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		c->landed[i] = 0;
	for (uint32_t i = next_way(c, node, 0); i < c->plan->nways; i = next_way(c, node, i + 1)) {
		const struct tti_handoff_way *way = &c->plan->ways[i];

		if (way->part != part)
			continue;
		if (!wants(c, node, c->member_of[way->to]))
			return breach("rank %u gets what it shall not", way->to);
		c->landed[c->member_of[way->to]] += way->share;
		sum += way->share;
	}
	if (!near(sum, share))
		return breach("node %u gets %g of %g", node, sum, share);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (c->landed[i] > 0)
			TTI_TRY(check_spread(c, node, part, i));
	return TUTTI_OK;
}

/* Whether all who send a part into a node have it. */
static bool is_ready(const struct checker *c, uint32_t node, uint32_t part)
{
	for (uint32_t i = next_way(c, node, 0); i < c->plan->nways; i = next_way(c, node, i + 1))
		if (c->plan->ways[i].part == part && !has(c, c->plan->ways[i].from, part))
			return false;
	return true;
}

/* Nodes as soon as whatever comes into them is there. */
static tutti_status check_all_nodes(struct checker *c, uint32_t part, double share)
{
	const struct tti_handoff_job *handoff = c->handoff;
	uint32_t left = 0, before = 0;

	for (uint32_t node = 0; node < c->plan->nnodes; node++)
		c->served[node] = true;
	for (uint32_t i = 0; i < handoff->nto; i++)
		c->served[c->node_of[handoff->to[i]]] = false;
	do {
		before = left;
		left = 0;
		for (uint32_t node = 0; node < c->plan->nnodes; node++) {
			if (c->served[node])
				continue;
			if (!is_ready(c, node, part)) {
				left++;
				continue;
			}
			TTI_TRY(check_part(c, node, part, share));
			c->served[node] = true;
		}
	} while (left > 0 && left != before);
	return left ? breach("ranks of %u nodes are sent what nobody has", left) : TUTTI_OK;
}

static tutti_status check_whole(struct checker *c)
{
	const uint32_t n = c->handoff->nfrom;

	if (!c->handoff->from_sharded)
		return check_all_nodes(c, TTI_HANDOFF_WHOLE, 1);
	for (uint32_t part = 0; part < n; part++)
		TTI_TRY(check_all_nodes(c, part, 1.0 / n));
	return TUTTI_OK;
}

static tutti_status check_parts(struct checker *c)
{
	const struct tti_handoff_job *handoff = c->handoff;

	for (uint32_t i = 0; i < handoff->nto; i++) {
		const uint32_t to = handoff->to[i];
		double sum = 0;

		for (uint32_t k = 0; k < c->plan->nways; k++) {
			const struct tti_handoff_way *way = &c->plan->ways[k];

			if (way->to == to && !has(c, way->from, way->part))
				return breach("rank %u sends what it has not", way->from);
			sum += way->to == to ? way->share : 0;
		}
		for (uint32_t k = 0; k < handoff->nfrom; k++) {
			const double begin =
				fmax((double)k / handoff->nfrom, (double)i / handoff->nto);
			const double end =
				fmin((k + 1.0) / handoff->nfrom, (i + 1.0) / handoff->nto);

			if (handoff->from[k] != to)
				continue;
			sum += !handoff->from_sharded ? 1.0 / handoff->nto
			       : end > begin          ? end - begin
						      : 0;
		}
		if (!near(sum, 1.0 / handoff->nto))
			return breach("rank %u has %g of its part %g", to, sum, 1.0 / handoff->nto);
	}
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

static bool prepare(struct checker *c)
{
	const struct tti_plan_job *job = c->handoff->job;
	uint32_t most = 0;

	c->node_of = tti_arena_alloc(&c->arena, job->nranks * sizeof(*c->node_of));
	c->member_of = tti_arena_alloc(&c->arena, job->nranks * sizeof(*c->member_of));
	c->is_from = tti_arena_alloc(&c->arena, job->nranks);
	c->is_to = tti_arena_alloc(&c->arena, job->nranks);
	c->served = tti_arena_alloc(&c->arena, job->nnodes);
	c->first_way = tti_arena_alloc(&c->arena, job->nnodes * sizeof(*c->first_way));
	c->used = tti_arena_alloc(&c->arena, job->nnodes * sizeof(*c->used));
	if (!c->node_of || !c->member_of || !c->is_from || !c->is_to || !c->served ||
	    !c->first_way || !c->used)
		return false;
	for (uint32_t i = 0; i < job->nnodes; i++) {
		const struct tti_graph *graph = graph_of(c, i);

		c->first_way[i] = c->plan->nways;

		most = graph->nnodes > most ? graph->nnodes : most;
		c->used[i] = tti_arena_alloc(&c->arena, graph->nlinks * sizeof(double) + 1);
		if (!c->used[i])
			return false;
		for (uint32_t k = 0; k < job->nodes[i].nranks; k++) {
			c->node_of[job->nodes[i].ranks[k]] = i;
			c->member_of[job->nodes[i].ranks[k]] = job->nodes[i].members[k];
		}
	}
	for (uint32_t i = 0; i < c->handoff->nfrom; i++)
		c->is_from[c->handoff->from[i]] = true;
	for (uint32_t i = 0; i < c->handoff->nto; i++)
		c->is_to[c->handoff->to[i]] = true;
	c->landed = tti_arena_alloc(&c->arena, most * sizeof(*c->landed));
	return c->landed != NULL;
}

static tutti_status check(struct checker *c)
{
	const struct tti_handoff_plan *plan = c->plan;

	if (!prepare(c))
		return tti_fail(TUTTI_ENOMEM, "check of a handoff: out of memory");
	if (plan->gbps > plan->best_gbps * (1 + EPS) || plan->gbps > plan->bound_gbps * (1 + EPS))
		return breach("%g GB/s, above the best %g or the bound %g", plan->gbps,
			      plan->best_gbps, plan->bound_gbps);
	TTI_TRY(check_links(c));
	return c->handoff->to_sharded ? check_parts(c) : check_whole(c);
}

tutti_status tti_handoff_plan_check(const struct tti_handoff_job *handoff,
				    const struct tti_handoff_plan *plan)
{
	struct checker c = { .handoff = handoff, .plan = plan };
	const tutti_status st = check(&c);

	tti_arena_release(&c.arena);
	return st;
}

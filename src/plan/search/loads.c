/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/loads.h"

#include <string.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* NCCL's figures for what traffic takes besides its own bandwidth: writes into a GPU
 * before sm 80 cost an eighth on the way back, and GPU to GPU over an Intel root
 * complex a fifth more of each PCI link (its graph search, 2.30). */
#define BACK_SHARE     0.125f
#define BACK_BEFORE_SM 80
#define INTEL_SHARE    1.2f

struct builder {
	const struct tti_members *members;
	const struct tti_graph *graph;
	struct tti_loads *out;
	uint32_t *row_of; /* of each link, UINT32_MAX: none yet */
	TTI_VEC(struct tti_load) loads;
	TTI_VEC(uint32_t) links;
	bool failed;
};

static bool same_port(const struct tti_graph *graph, uint32_t net, uint32_t other)
{
	const struct tti_net_info *a = &graph->nodes[net].net, *b = &graph->nodes[other].net;

	return graph->nodes[net].host == graph->nodes[other].host && a->asic == b->asic &&
	       a->port == b->port;
}

/* Several NETs may be one port of one card: they share one cable, the first's. */
static uint32_t same_cable(const struct builder *b, uint32_t link)
{
	const struct tti_graph *graph = b->graph;
	const bool out = graph->nodes[graph->links[link].to].type == TTI_NODE_NET;
	const uint32_t net = out ? graph->links[link].to : graph->links[link].from;

	if (graph->links[link].type != TTI_LINK_NET)
		return link;
	for (uint32_t i = 0; i < b->members->nnets + b->members->ninner; i++) {
		const uint32_t down = graph->nodes[b->members->nets[i]].first_link;

		if (same_port(graph, net, b->members->nets[i]))
			return out ? graph->links[down].reverse : down;
	}
	return link;
}

static uint32_t row_of(struct builder *b, uint32_t link)
{
	link = same_cable(b, link);
	if (b->row_of[link] == UINT32_MAX) {
		b->row_of[link] = (uint32_t)b->links.n;
		b->failed |= !tti_vec_push(&b->links, link);
	}
	return b->row_of[link];
}

/* Within one hop a link counts once with all it takes. */
static void load(struct builder *b, const struct tti_hop *hop, uint32_t link, float amount)
{
	const uint32_t row = row_of(b, link);

	for (size_t i = hop->first; i < b->loads.n; i++)
		if (b->loads.at[i].row == row) {
			b->loads.at[i].amount += amount;
			return;
		}
	b->failed |= !tti_vec_push(&b->loads, ((struct tti_load){ row, amount }));
}

static bool writes_cost_back(const struct tti_graph *graph, uint32_t to)
{
	const struct tti_node *node = &graph->nodes[to];

	return graph->model == TTI_MODEL_NCCL && node->type == TTI_NODE_GPU && node->gpu.sm > 0 &&
	       node->gpu.sm < BACK_BEFORE_SM;
}

/* Links inside a device are never the limit of a way that leaves it. */
static bool never_limits(const struct tti_topo_link *link, const struct tti_path *path)
{
	return link->type == TTI_LINK_LOC && (double)link->bw_gbps >= TTI_LOC_GBPS &&
	       path->type != TTI_PATH_LOC;
}

/* NCCL counts what a GPU sends over an Intel root complex a fifth more, to NICs too; we
 * count it between GPUs. */
static float pci_share(const struct builder *b, uint32_t from, uint32_t to)
{
	const struct tti_graph *graph = b->graph;
	const struct tti_route *route = tti_routes_get(b->members->routes, from, to);
	const struct tti_path *path = tti_paths_get(b->members->routes->paths, from, to);
	const uint32_t *hops = tti_paths_hops(b->members->routes->paths, from, to);

	if (graph->nodes[from].type != TTI_NODE_GPU)
		return 1;
	if (graph->model != TTI_MODEL_NCCL)
		return route->why == TTI_ROUTE_OVERHEAD ? INTEL_SHARE : 1;
	for (uint32_t i = 0; path->type == TTI_PATH_PHB && i < path->nhops; i++) {
		const struct tti_node *node = &graph->nodes[graph->links[hops[i]].to];

		if (node->type == TTI_NODE_CPU && !strcmp(node->cpu.arch, "x86_64") &&
		    !strcmp(node->cpu.vendor, "GenuineIntel"))
			return INTEL_SHARE;
	}
	return 1;
}

/* The links of the wires from one endpoint to another. */
static void load_path(struct builder *b, struct tti_hop *hop, uint32_t from, uint32_t to,
		      float share)
{
	const struct tti_paths *paths = b->members->routes->paths;
	const struct tti_path *path = tti_paths_get(paths, from, to);
	const uint32_t *hops = tti_paths_hops(paths, from, to);

	for (uint32_t i = 0; i < path->nhops; i++) {
		const uint32_t at = hops[i];
		const struct tti_topo_link *link = &b->graph->links[at];

		if (never_limits(link, path))
			continue;
		load(b, hop, at, link->type == TTI_LINK_PCI ? share : 1.0f);
		if (link->type == TTI_LINK_PCI && writes_cost_back(b->graph, to))
			load(b, hop, link->reverse, BACK_SHARE);
	}
}

/* One for leaving the PCI switches, one more for the way to another socket, and one for each
 * time that host memory is written and read again. */
static uint8_t far_of(const struct tti_graph *graph, const struct tti_route *route)
{
	const bool bounces =
		route->via != TTI_NODE_NONE && graph->nodes[route->via].type == TTI_NODE_HOST;

	return (uint8_t)((route->type >= TTI_PATH_PHB) + (route->type >= TTI_PATH_SYS) + bounces);
}

static void make_hop(struct builder *b, struct tti_hop *hop, uint32_t from, uint32_t to)
{
	const struct tti_route *route = tti_routes_get(b->members->routes, from, to);

	*hop = (struct tti_hop){ .first = (uint32_t)b->loads.n,
				 .bw_gbps = route->bw_gbps,
				 .latency_ns = route->latency_ns,
				 .type = route->type,
				 .far = far_of(b->graph, route) };
	if (route->type >= TTI_PATH_NET) {
		hop->bw_gbps = 0;
	} else if (route->via != TTI_NODE_NONE) {
		load_path(b, hop, from, route->via, pci_share(b, from, to));
		load_path(b, hop, route->via, to, pci_share(b, from, to));
	} else {
		load_path(b, hop, from, to, pci_share(b, from, to));
	}
	hop->n = (uint32_t)b->loads.n - hop->first;
}

/* Between a GPU and the NVLink switch it hangs on. */
static void make_switch_hops(struct builder *b, uint32_t member)
{
	const struct tti_graph *graph = b->graph;
	const uint32_t node = b->members->nodes[member];
	const uint32_t device = graph->nodes[node].parent;
	struct tti_hop *to = &b->out->sw[2 * member], *from = to + 1;

	b->out->nvs[member] = TTI_NODE_NONE;
	if (graph->nodes[node].type != TTI_NODE_GPU)
		return;
	for (uint32_t i = 0; i < graph->nodes[device].nlinks; i++) {
		const uint32_t at = graph->nodes[device].first_link + i;
		const struct tti_topo_link *link = &graph->links[at];

		if (link->type != TTI_LINK_NVL || graph->nodes[link->to].type != TTI_NODE_NVS)
			continue;
		b->out->nvs[member] = link->to;
		*to = (struct tti_hop){ (uint32_t)b->loads.n, 1, link->bw_gbps, link->latency_ns,
					TTI_PATH_NVL,         0 };
		load(b, to, at, 1);
		*from = (struct tti_hop){ (uint32_t)b->loads.n,
					  1,
					  graph->links[link->reverse].bw_gbps,
					  link->latency_ns,
					  TTI_PATH_NVL,
					  0 };
		load(b, from, link->reverse, 1);
		return;
	}
}

/* What is known of where a cable leads: InfiniBand is not Ethernet, one plane is not
 * another, what is known is not what is unknown. Rails have a spine. */
static bool same_fabric(const struct tti_graph *graph, uint32_t net, uint32_t other)
{
	const struct tti_node *a = &graph->nodes[net], *b = &graph->nodes[other];

	return graph->nodes[a->parent].pci.class_code >> 8 ==
		       graph->nodes[b->parent].pci.class_code >> 8 &&
	       a->net.plane == b->net.plane;
}

/* A NIC whose speed is not stated may have no cable. */
static bool has_fabric(const struct tti_graph *graph, uint32_t net)
{
	return graph->nodes[net].net.speed_mbps > 0;
}

/* The number of a fabric, and of a port, is that of its first NIC. */
static void find_fabrics(struct builder *b)
{
	const struct tti_graph *graph = b->graph;
	struct tti_loads *out = b->out;

	for (uint32_t net = 0; net < out->nnets + out->ninner; net++) {
		const bool known = has_fabric(graph, out->nets[net]);
		uint32_t first = 0, cable = 0;

		while (known && !(has_fabric(graph, out->nets[first]) &&
				  same_fabric(graph, out->nets[net], out->nets[first])))
			first++;
		while (!same_port(graph, out->nets[net], out->nets[cable]))
			cable++;
		out->fabric[net] = known ? first : TTI_NODE_NONE;
		out->cable[net] = cable;
	}
}

static void make_hops(struct builder *b)
{
	const struct tti_members *members = b->members;
	struct tti_loads *out = b->out;

	for (uint32_t from = 0; from < out->n; from++)
		for (uint32_t to = 0; to < out->n; to++)
			if (from != to)
				make_hop(b, &out->hop[from * out->n + to], members->nodes[from],
					 members->nodes[to]);
	for (uint32_t i = 0; i < out->n; i++)
		make_switch_hops(b, i);
	for (uint32_t net = 0; net < out->nnets + out->ninner; net++)
		for (uint32_t i = 0; i < out->n; i++) {
			make_hop(b, &out->in[net * out->n + i], members->nets[net],
				 members->nodes[i]);
			make_hop(b, &out->out[net * out->n + i], members->nodes[i],
				 members->nets[net]);
		}
}

static tutti_status finish(struct builder *b)
{
	struct tti_loads *out = b->out;

	out->nrows = (uint32_t)b->links.n;
	out->capacity = tti_arena_alloc(&out->arena, b->links.n * sizeof(*out->capacity));
	out->link = tti_arena_alloc(&out->arena, b->links.n * sizeof(*out->link));
	out->loads = tti_arena_alloc(&out->arena, b->loads.n * sizeof(*out->loads));
	if (b->failed || !out->capacity || !out->link || !out->loads)
		return tti_fail(TUTTI_ENOMEM, "loads of %u members and %u NICs: out of memory",
				out->n, out->nnets + out->ninner);
	for (uint32_t row = 0; row < out->nrows; row++) {
		out->link[row] = b->links.at[row];
		out->capacity[row] = (double)b->graph->links[b->links.at[row]].bw_gbps;
	}
	for (size_t i = 0; i < b->loads.n; i++)
		out->loads[i] = b->loads.at[i];
	return TUTTI_OK;
}

static uint32_t *copy(struct tti_arena *arena, const uint32_t *from, uint32_t n)
{
	uint32_t *to = tti_arena_alloc(arena, n * sizeof(*to) + 1);

	for (uint32_t i = 0; to && i < n; i++)
		to[i] = from[i];
	return to;
}

tutti_status tti_loads_build(const struct tti_members *members, struct tti_loads **out)
{
	struct tti_loads *loads = tti_zalloc(sizeof(*loads));
	struct builder b = { .members = members,
			     .graph = members->routes->paths->graph,
			     .out = loads };
	const size_t nhops = (size_t)members->n * members->n;
	const uint32_t nnets = members->nnets + members->ninner;
	const size_t nends = (size_t)members->n * nnets;
	tutti_status st = tti_routes_want_all(members->routes);

	if (st != TUTTI_OK)
		goto out;
	b.row_of = tti_calloc(b.graph->nlinks + 1, sizeof(*b.row_of));
	if (!loads || !b.row_of)
		goto fail;
	loads->routes = members->routes;
	loads->n = members->n;
	loads->nnets = members->nnets;
	loads->ninner = members->ninner;
	loads->nodes = copy(&loads->arena, members->nodes, members->n);
	loads->nets = copy(&loads->arena, members->nets, nnets);
	loads->fabric = copy(&loads->arena, members->nets, nnets);
	loads->cable = copy(&loads->arena, members->nets, nnets);
	loads->hop = tti_arena_alloc(&loads->arena, nhops * sizeof(*loads->hop) + 1);
	loads->in = tti_arena_alloc(&loads->arena, nends * sizeof(*loads->in) + 1);
	loads->out = tti_arena_alloc(&loads->arena, nends * sizeof(*loads->out) + 1);
	loads->sw = tti_arena_alloc(&loads->arena, 2 * members->n * sizeof(*loads->sw) + 1);
	loads->nvs = tti_arena_alloc(&loads->arena, members->n * sizeof(*loads->nvs) + 1);
	if (!loads->nodes || !loads->nets || !loads->fabric || !loads->cable || !loads->hop ||
	    !loads->in || !loads->out || !loads->sw || !loads->nvs)
		goto fail;
	for (uint32_t link = 0; link < b.graph->nlinks; link++)
		b.row_of[link] = UINT32_MAX;
	make_hops(&b);
	find_fabrics(&b);
	st = finish(&b);
	goto out;

fail:
	st = tti_fail(TUTTI_ENOMEM, "loads of %u members and %u NICs: out of memory", members->n,
		      nnets);
out:
	tti_free(b.row_of);
	tti_vec_release(&b.loads);
	tti_vec_release(&b.links);
	if (st == TUTTI_OK)
		*out = loads;
	else
		tti_loads_free(loads);
	return st;
}

void tti_loads_free(struct tti_loads *loads)
{
	if (!loads)
		return;
	tti_arena_release(&loads->arena);
	tti_free(loads);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/route_rules.h"

#include <string.h>

#include "util/error.h"
#include "util/mem.h"

#define UNKNOWN (TTI_NODE_NONE - 1)

/* The share of a link that PCI to PCI traffic gets if it crosses an Intel root complex. */
#define OVERHEAD_SHARE (5.0F / 6)

/* -- What depends on no pair --------------------------------------------------------------- */

static void find_overheads(struct tti_route_rules *rules, const struct tti_graph *graph)
{
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		const uint32_t node = graph->by_type[TTI_NODE_CPU][i];
		const struct tti_cpu_info *cpu = &graph->nodes[node].cpu;

		rules->overhead[node] = tti_graph_cpu_model(cpu).p2p_overhead;
	}
}

/* NETs are at one place if the first node above them that has GPUs below it is the same. These
 * NETs choose among the same GPUs. */
static void find_turns(struct tti_route_rules *rules, const struct tti_graph *graph,
		       bool *above_gpu, uint32_t *count)
{
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_DEV]; i++) {
		uint32_t at = graph->by_type[TTI_NODE_DEV][i];

		for (; at != TTI_NODE_NONE && !above_gpu[at]; at = graph->nodes[at].parent)
			above_gpu[at] = true;
	}
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_NET]; i++) {
		const uint32_t net = graph->by_type[TTI_NODE_NET][i];
		uint32_t at = net;

		while (!above_gpu[at] && graph->nodes[at].parent != TTI_NODE_NONE)
			at = graph->nodes[at].parent;
		rules->turn[net] = count[at]++;
	}
}

static bool prepare(struct tti_route_rules *rules, const struct tti_graph *graph)
{
	const size_t n = graph->nnodes;
	bool *above_gpu = tti_calloc(n, sizeof(*above_gpu));
	uint32_t *count = tti_calloc(n, sizeof(*count));

	rules->overhead = tti_calloc(n, sizeof(*rules->overhead));
	rules->turn = tti_calloc(n, sizeof(*rules->turn));
	rules->nearby = tti_calloc(n, sizeof(*rules->nearby));
	if (above_gpu && count && rules->overhead && rules->turn && rules->nearby) {
		find_overheads(rules, graph);
		find_turns(rules, graph, above_gpu, count);
		for (size_t i = 0; i < n; i++)
			rules->nearby[i] = UNKNOWN;
	}
	tti_free(above_gpu);
	tti_free(count);
	return above_gpu && count && rules->overhead && rules->turn && rules->nearby;
}

/* On AMD machines with one or two GPUs, direct access across CPUs disturbs nothing else. */
static bool is_small_amd(const struct tti_graph *graph)
{
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		const uint32_t node = graph->by_type[TTI_NODE_CPU][i];

		if (strcmp(graph->nodes[node].cpu.vendor, "AuthenticAMD") != 0)
			return false;
	}
	return graph->ntype[TTI_NODE_CPU] > 0 && graph->ntype[TTI_NODE_GPU] <= 2;
}

tutti_status tti_route_rules_init(struct tti_route_rules *rules, const struct tti_paths *paths,
				  const struct tti_routes_config *config)
{
	tutti_status status = TUTTI_OK;

	*rules = (struct tti_route_rules){ .wires = paths, .paths = paths, .config = *config };
	if (config->p2p_auto && is_small_amd(paths->graph))
		rules->config.p2p_level = TTI_PATH_SYS;
	if (!prepare(rules, paths->graph))
		status = tti_fail(TUTTI_ENOMEM, "no memory for routes");
	else if (config->nvb_disable)
		status = tti_paths_build_without_nvb(paths->graph, &rules->own);
	if (status != TUTTI_OK)
		tti_route_rules_release(rules);
	else if (rules->own)
		rules->paths = rules->own;
	return status;
}

void tti_route_rules_release(struct tti_route_rules *rules)
{
	tti_paths_free(rules->own);
	tti_free(rules->overhead);
	tti_free(rules->turn);
	tti_free(rules->nearby);
	*rules = (struct tti_route_rules){ 0 };
}

/* -- What is near -------------------------------------------------------------------------- */

static const struct tti_node *node_of(const struct tti_route_rules *rules, uint32_t node)
{
	return &rules->wires->graph->nodes[node];
}

static bool is_better(const struct tti_path *a, const struct tti_path *b)
{
	return a->type < b->type || (a->type == b->type && a->bw_gbps > b->bw_gbps);
}

/* *out: the nodes of a type on the same host to which `from` has the best path take turns, and
 * this is the turn-th of them; NONE: there is none. */
static bool find_near(const struct tti_route_rules *rules, uint32_t from, enum tti_node_type type,
		      uint32_t turn, uint32_t *out)
{
	const struct tti_graph *graph = rules->wires->graph;
	const struct tti_path *best = NULL;
	uint32_t n = 0, at = 0;

	*out = TTI_NODE_NONE;
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < graph->ntype[type]; i++) {
			const uint32_t node = graph->by_type[type][i];
			const struct tti_path *path;

			if (graph->nodes[node].host != graph->nodes[from].host)
				continue;
			path = tti_paths_get(rules->paths, from, node);
			if (!path)
				return false;
			if (path->type >= TTI_PATH_NET || (best && is_better(best, path)))
				continue;
			if (pass == 1 && at++ == turn % n)
				*out = node;
			if (pass == 0) {
				n = best && !is_better(path, best) ? n + 1 : 1;
				best = path;
			}
		}
	return true;
}

/* The HOST of a GPU, the GPU of a NET. */
static bool near(struct tti_route_rules *rules, uint32_t node, uint32_t *out)
{
	const bool gpu = node_of(rules, node)->type == TTI_NODE_GPU;

	if (rules->nearby[node] == UNKNOWN &&
	    !find_near(rules, node, gpu ? TTI_NODE_HOST : TTI_NODE_GPU, gpu ? 0 : rules->turn[node],
		       &rules->nearby[node])) {
		rules->nearby[node] = UNKNOWN;
		return false;
	}
	*out = rules->nearby[node];
	return true;
}

/* -- Routes -------------------------------------------------------------------------------- */

static struct tti_route as_wired(const struct tti_path *path)
{
	return (struct tti_route){ .type = path->type,
				   .why = path->type == TTI_PATH_DIS ? TTI_ROUTE_NO_WAY
								     : TTI_ROUTE_WIRED,
				   .via = TTI_NODE_NONE,
				   .bw_gbps = path->bw_gbps,
				   .latency_ns = path->latency_ns };
}

/* One path after the other. */
static bool join(const struct tti_route_rules *rules, uint32_t from, uint32_t via, uint32_t to,
		 struct tti_route *out)
{
	const struct tti_path *a = tti_paths_get(rules->paths, from, via);
	const struct tti_path *b = tti_paths_get(rules->paths, via, to);

	if (!a || !b)
		return false;
	out->via = via;
	out->type = a->type > b->type ? a->type : b->type;
	out->bw_gbps = a->bw_gbps < b->bw_gbps ? a->bw_gbps : b->bw_gbps;
	out->latency_ns = a->latency_ns + b->latency_ns;
	return true;
}

/* Through the memory of the HOST nearest to a GPU; as the wires run if there is none. */
static bool bounce(struct tti_route_rules *rules, uint32_t from, uint32_t to, uint32_t gpu,
		   enum tti_route_why why, struct tti_route *out)
{
	uint32_t host;

	out->why = (uint8_t)why;
	if (!near(rules, gpu, &host))
		return false;
	return host == TTI_NODE_NONE || join(rules, from, host, to, out);
}

/* -- GPU to GPU ---------------------------------------------------------------------------- */

/* PCI to PCI traffic through a root complex that is slow at it. */
static bool add_overhead(const struct tti_route_rules *rules, uint32_t from, uint32_t to,
			 const struct tti_path *path, struct tti_route *out)
{
	const struct tti_graph *graph = rules->wires->graph;
	const uint32_t *hops = tti_paths_hops(rules->paths, from, to);
	bool hinders = false;

	if (!hops)
		return false;
	for (size_t i = 0; i < path->nhops; i++)
		hinders = hinders || rules->overhead[graph->links[hops[i]].to];
	for (size_t i = 0; i < path->nhops && hinders; i++) {
		const struct tti_topo_link *link = &graph->links[hops[i]];
		const float left = link->bw_gbps * OVERHEAD_SHARE;

		if (link->type == TTI_LINK_PCI && left < out->bw_gbps) {
			out->bw_gbps = left;
			out->why = TTI_ROUTE_OVERHEAD;
		}
	}
	return true;
}

static bool p2p_is_off(const struct tti_route_rules *rules)
{
	return rules->config.p2p_disable || rules->config.p2p_level == TTI_PATH_LOC;
}

static bool gpu_to_gpu(struct tti_route_rules *rules, uint32_t from, uint32_t to,
		       const struct tti_path *path, struct tti_route *out)
{
	const bool nvlink = path->type == TTI_PATH_NVL || path->type == TTI_PATH_NVB;
	const struct tti_path *wire = tti_paths_get(rules->wires, from, to);

	if (!wire)
		return false;
	if (path->type >= TTI_PATH_NET)
		return true;
	if (path->type != TTI_PATH_LOC && p2p_is_off(rules))
		return bounce(rules, from, to, to, TTI_ROUTE_P2P_OFF, out);
	if (!nvlink && path->type > rules->config.p2p_level)
		return bounce(rules, from, to, to, TTI_ROUTE_P2P_FAR, out);
	out->p2p = true;
	if (wire->type != path->type)
		out->why = TTI_ROUTE_NVB_OFF;
	if (path->type == TTI_PATH_PHB || path->type == TTI_PATH_SYS)
		return add_overhead(rules, from, to, path, out);
	return true;
}

/* -- GPU and NET --------------------------------------------------------------------------- */

static bool has_nvlink_peer(const struct tti_graph *graph, uint32_t gpu)
{
	const struct tti_node *dev = &graph->nodes[graph->nodes[gpu].parent];

	for (uint32_t i = dev->first_link; i < dev->first_link + dev->nlinks; i++)
		if (graph->links[i].type == TTI_LINK_NVL &&
		    graph->nodes[graph->links[i].to].type != TTI_NODE_CPU)
			return true;
	return false;
}

static bool may_read(const struct tti_route_rules *rules, uint32_t gpu)
{
	const struct tti_graph *graph = rules->wires->graph;

	if (rules->config.gdr_read >= 0)
		return rules->config.gdr_read > 0;
	return graph->nodes[gpu].gpu.sm >= 80 || graph->ntype[TTI_NODE_GPU] == 1 ||
	       has_nvlink_peer(graph, gpu);
}

/* WIRED: the NIC may reach the memory of the GPU. P2C goes through the CPU, but not through
 * the memory of the CPU. */
static enum tti_route_why judge_gdr(const struct tti_route_rules *rules, uint32_t gpu, uint32_t net,
				    const struct tti_path *path, bool sends)
{
	const enum tti_path_type level = rules->config.gdr_level;

	if (!node_of(rules, gpu)->gpu.gdr)
		return TTI_ROUTE_GDR_NO_GPU;
	if (!node_of(rules, net)->net.gdr)
		return TTI_ROUTE_GDR_NO_NIC;
	if (path->type > level && !(path->type == TTI_PATH_P2C && level >= TTI_PATH_PXB))
		return TTI_ROUTE_GDR_FAR;
	if (sends && !may_read(rules, gpu))
		return TTI_ROUTE_GDR_READ_OFF;
	return TTI_ROUTE_WIRED;
}

/* Whether data for a NIC shall go through `peer`. */
static bool is_worth(const struct tti_route_rules *rules, const struct tti_path *own,
		     const struct tti_path *to_peer, const struct tti_path *from_peer,
		     uint32_t peer, uint32_t net)
{
	return to_peer->type <= TTI_PATH_NVL && from_peer->type <= TTI_PATH_P2C &&
	       (from_peer->bw_gbps > own->bw_gbps || own->type > TTI_PATH_PXN) &&
	       judge_gdr(rules, peer, net, from_peer, true) == TTI_ROUTE_WIRED;
}

static bool try_pxn(struct tti_route_rules *rules, uint32_t gpu, uint32_t net,
		    const struct tti_path *own, struct tti_route *out, bool *done_out)
{
	const struct tti_path *to_peer, *from_peer;
	uint32_t peer;

	*done_out = false;
	if (rules->config.pxn_disable || p2p_is_off(rules))
		return true;
	if (!near(rules, net, &peer))
		return false;
	if (peer == TTI_NODE_NONE || peer == gpu ||
	    node_of(rules, peer)->host != node_of(rules, gpu)->host)
		return true;
	to_peer = tti_paths_get(rules->paths, gpu, peer);
	from_peer = tti_paths_get(rules->paths, peer, net);
	if (!to_peer || !from_peer)
		return false;
	if (!is_worth(rules, own, to_peer, from_peer, peer, net))
		return true;
	*done_out = true;
	out->gdr = true;
	out->why = TTI_ROUTE_PXN;
	if (!join(rules, gpu, peer, net, out))
		return false;
	out->type = TTI_PATH_PXN;
	return true;
}

static bool gpu_and_net(struct tti_route_rules *rules, uint32_t from, uint32_t to,
			const struct tti_path *path, struct tti_route *out)
{
	const bool sends = node_of(rules, from)->type == TTI_NODE_GPU;
	const uint32_t gpu = sends ? from : to, net = sends ? to : from;
	enum tti_route_why why;
	bool done = false;

	if (path->type >= TTI_PATH_NET)
		return true;
	if (sends && (!try_pxn(rules, gpu, net, path, out, &done) || done))
		return done;
	why = judge_gdr(rules, gpu, net, path, sends);
	out->gdr = why == TTI_ROUTE_WIRED;
	return out->gdr || bounce(rules, from, to, gpu, why, out);
}

bool tti_route_rules_apply(struct tti_route_rules *rules, uint32_t from, uint32_t to,
			   struct tti_route *out)
{
	const struct tti_path *path = tti_paths_get(rules->paths, from, to);
	const enum tti_node_type a = node_of(rules, from)->type, b = node_of(rules, to)->type;

	if (!path)
		return false;
	*out = as_wired(path);
	if (a == TTI_NODE_GPU && b == TTI_NODE_GPU)
		return gpu_to_gpu(rules, from, to, path, out);
	if ((a == TTI_NODE_GPU && b == TTI_NODE_NET) || (a == TTI_NODE_NET && b == TTI_NODE_GPU))
		return gpu_and_net(rules, from, to, path, out);
	return true;
}

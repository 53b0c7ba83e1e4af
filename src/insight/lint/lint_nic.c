/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

/* A 400 Gb/s port on 16 lanes of 32 GT/s, 50 of 48 GB/s, is as good as it gets. */
#define LESS(a, b) ((a) < (b)*0.9)

static bool is_down(const struct tti_linter *linter, uint32_t net)
{
	const char *state = tti_lint_attr(linter, net, "tutti_state");

	return state && strcmp(state, "down") == 0;
}

/* The GPU of its host that reaches a NET best, NONE: there is none. */
static uint32_t nearest_gpu(const struct tti_linter *linter, uint32_t net)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_path *least = NULL;
	uint32_t best = TTI_NODE_NONE;

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const struct tti_path *way = tti_paths_get(linter->paths, gpu, net);

		if (graph->nodes[gpu].host != graph->nodes[net].host)
			continue;
		if (!least || way->type < least->type ||
		    (way->type == least->type && way->bw_gbps > least->bw_gbps)) {
			least = way;
			best = gpu;
		}
	}
	return best;
}

/* -- Where NICs are ---------------------------------------------------------------------------- */

static bool shares_socket(const struct tti_linter *linter, uint32_t net)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU)
		if (graph->nodes[gpu].host == graph->nodes[net].host &&
		    tti_lint_package(linter, gpu) == tti_lint_package(linter, net))
			return true;
	return false;
}

void tti_lint_nic_far(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	if (!tti_lint_has_tables(linter) || tti_lint_is_part(linter))
		return;
	TTI_LINT_EACH (net, graph, TTI_NODE_NET) {
		const uint32_t gpu = nearest_gpu(linter, net);
		const struct tti_path *way;
		struct tti_finding finding = { 0 };
		double pci;

		if (gpu == TTI_NODE_NONE || graph->nodes[net].net.is_virtual)
			continue;
		way = tti_paths_get(linter->paths, gpu, net);
		if (way->type != TTI_PATH_SYS || shares_socket(linter, net))
			continue;
		pci = tti_lint_uplink(linter, graph->nodes[net].parent);
		finding.have_gbps = (double)way->bw_gbps;
		finding.want_gbps =
			tti_lint_uplink(linter, net) < pci ? tti_lint_uplink(linter, net) : pci;
		finding.what = tti_lint_say(linter, "all GPUs are on other sockets than that of %s",
					    graph->nodes[tti_graph_cpu_of(graph, net)].name);
		finding.consequence =
			tti_lint_say(linter, "%s to %s crosses sockets: %s", graph->nodes[gpu].name,
				     graph->nodes[net].name, tti_lint_figures(linter, &finding));
		tti_lint_add(linter, net, &finding);
	}
}

/* The GPUs and NICs of one socket. */
struct socket {
	uint32_t cpu; /* its first one */
	uint32_t gpus, nets;
	double gbps;
};

/* How far the lists of nodes, which are sorted by host, are counted. */
struct counted {
	uint32_t cpus, gpus, nets;
};

/* The next node of `type` that is on `host`, NONE: there are no more. */
static uint32_t next_of(const struct tti_graph *graph, enum tti_node_type type, uint32_t host,
			uint32_t *at)
{
	const uint32_t node = *at < graph->ntype[type] ? graph->by_type[type][*at] : TTI_NODE_NONE;

	if (node == TTI_NODE_NONE || graph->nodes[node].host != host)
		return TTI_NODE_NONE;
	(*at)++;
	return node;
}

/* The sockets of the next host; how many CPUs it has, which are no fewer. */
static size_t count_host(struct tti_linter *linter, uint32_t host, struct counted *counted,
			 struct socket *sockets)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t first = counted->cpus;
	uint32_t node;

	for (uint32_t i = first; next_of(graph, TTI_NODE_CPU, host, &i) != TTI_NODE_NONE;)
		sockets[i - 1 - first] = (struct socket){ .cpu = TTI_NODE_NONE };
	while ((node = next_of(graph, TTI_NODE_CPU, host, &counted->cpus)) != TTI_NODE_NONE)
		if (sockets[graph->nodes[node].cpu.package].cpu == TTI_NODE_NONE)
			sockets[graph->nodes[node].cpu.package].cpu = node;
	while ((node = next_of(graph, TTI_NODE_GPU, host, &counted->gpus)) != TTI_NODE_NONE)
		sockets[tti_lint_package(linter, node)].gpus++;
	while ((node = next_of(graph, TTI_NODE_NET, host, &counted->nets)) != TTI_NODE_NONE) {
		struct socket *socket = &sockets[tti_lint_package(linter, node)];

		if (graph->nodes[node].net.is_virtual)
			continue;
		socket->nets++;
		socket->gbps += tti_lint_uplink(linter, node);
	}
	return counted->cpus - first;
}

static double share_of(const struct socket *socket)
{
	return socket->gbps / socket->gpus;
}

/* Report sockets whose GPUs have less than half of the network bandwidth of the best socket. */
static void compare_sockets(struct tti_linter *linter, const struct socket *sockets, size_t n)
{
	const struct tti_graph *graph = linter->graph;
	const struct socket *best = NULL;
	size_t nets = 0, with_gpus = 0;

	for (size_t i = 0; i < n; i++) {
		nets += sockets[i].nets;
		with_gpus += sockets[i].gpus > 0;
		if (sockets[i].gpus && (!best || share_of(&sockets[i]) > share_of(best)))
			best = &sockets[i];
	}
	if (nets < with_gpus) /* too few to be spread */
		return;
	for (size_t i = 0; i < n; i++) {
		struct tti_finding finding = { 0 };

		if (!sockets[i].gpus || share_of(&sockets[i]) >= share_of(best) / 2)
			continue;
		finding.have_gbps = share_of(&sockets[i]);
		finding.want_gbps = share_of(best);
		finding.what = tti_lint_say(
			linter, "its socket has %u GPUs and %u nets, that of %s has %u and %u",
			sockets[i].gpus, sockets[i].nets, graph->nodes[best->cpu].name, best->gpus,
			best->nets);
		finding.consequence = tti_lint_say(
			linter,
			"%.1f instead of %.1f GB/s of network for each GPU, or the sockets' link",
			finding.have_gbps, finding.want_gbps);
		tti_lint_add(linter, sockets[i].cpu, &finding);
	}
}

void tti_lint_nic_unbalanced(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	struct socket *sockets = tti_calloc(graph->ntype[TTI_NODE_CPU] + 1, sizeof(*sockets));
	struct counted counted = { 0 };

	linter->failed |= !sockets;
	for (uint32_t host = 0; sockets && host < graph->nhosts; host++) {
		const size_t n = count_host(linter, host, &counted, sockets);

		compare_sockets(linter, sockets, n);
	}
	tti_free(sockets);
}

/* -- What NICs can do -------------------------------------------------------------------------- */

void tti_lint_nic_no_gdr(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	if (!tti_lint_has_tables(linter))
		return;
	TTI_LINT_EACH (net, graph, TTI_NODE_NET) {
		const uint32_t gpu =
			graph->nodes[net].net.gdr ? TTI_NODE_NONE : nearest_gpu(linter, net);
		const char *why = tti_lint_attr(linter, net, "tutti_gdr_why");
		const struct tti_route *route;
		struct tti_finding finding = { 0 };

		if (gpu == TTI_NODE_NONE || tti_lint_is_plain_net(linter, net) ||
		    graph->nodes[net].net.is_virtual)
			continue;
		route = tti_routes_get(linter->routes, gpu, net);
		if (route->why != TTI_ROUTE_GDR_NO_NIC)
			continue;
		finding.have_gbps = (double)route->bw_gbps;
		finding.want_gbps = (double)tti_paths_get(linter->paths, gpu, net)->bw_gbps;
		finding.what = tti_lint_say(linter, "it does not reach GPU memory%s%s",
					    why ? ": " : " (gdr=\"0\")", why ? why : "");
		finding.consequence =
			tti_lint_say(linter, "%s to %s is copied through host memory: %s",
				     graph->nodes[gpu].name, graph->nodes[net].name,
				     tti_lint_figures(linter, &finding));
		tti_lint_add(linter, net, &finding);
	}
}

void tti_lint_nic_too_fast(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (net, graph, TTI_NODE_NET) {
		const uint32_t nic = graph->nodes[net].parent;
		struct tti_finding finding = {
			.have_gbps = tti_lint_uplink(linter, nic),
			.want_gbps = tti_lint_uplink(linter, net),
		};

		if (!LESS(finding.have_gbps, finding.want_gbps) ||
		    tti_lint_is_virtual(linter, nic) ||
		    graph->nodes[net].net.speed_mbps > TTI_LINT_MOST_MBPS ||
		    !(graph->nodes[nic].pci.gts > 0))
			continue;
		finding.what = tti_lint_say(
			linter,
			"the port is faster than the PCI link of its card (%g GT/s, %d lanes)",
			graph->nodes[nic].pci.gts, graph->nodes[nic].pci.width);
		finding.consequence =
			tti_lint_say(linter, "%s: %.1f instead of %.1f GB/s",
				     graph->nodes[net].name, finding.have_gbps, finding.want_gbps);
		tti_lint_add(linter, net, &finding);
	}
}

/* -- Nets -------------------------------------------------------------------------------------- */

void tti_lint_net_name_twice(struct tti_linter *linter)
{
	TTI_LINT_EACH (net, linter->graph, TTI_NODE_NET) {
		const struct tti_node *node = &linter->graph->nodes[net];
		const char *name = tti_lint_attr(linter, net, "name");
		struct tti_finding finding = { 0 };

		if (name && *name ? strcmp(name, node->name) == 0 : !strchr(node->name, '#'))
			continue;
		if (name && *name)
			finding.what = tti_lint_say(
				linter, "another net of this host is also called %s", name);
		else
			finding.what = tti_lint_say(
				linter,
				"another net of this host without a name also has dev=\"%d\"",
				node->net.dev);
		finding.consequence = tti_lint_say(
			linter,
			"traffic for either may go over one of them: its %.1f GB/s for both",
			tti_lint_uplink(linter, net));
		tti_lint_add(linter, net, &finding);
	}
}

static int by_guid(const void *left, const void *right, void *context)
{
	const struct tti_graph *graph = context;
	const struct tti_node *a = &graph->nodes[*(const uint32_t *)left];
	const struct tti_node *b = &graph->nodes[*(const uint32_t *)right];

	if (a->net.guid != b->net.guid)
		return a->net.guid < b->net.guid ? -1 : 1;
	if (a->net.port != b->net.port)
		return a->net.port < b->net.port ? -1 : 1;
	return (a > b) - (a < b);
}

/* Virtual functions have the port of their card. */
static bool is_twice(const struct tti_linter *linter, uint32_t a, uint32_t b)
{
	const struct tti_node *x = &linter->graph->nodes[a], *y = &linter->graph->nodes[b];

	return x->net.guid == y->net.guid && x->net.port == y->net.port && x->parent != y->parent &&
	       !tti_lint_attr(linter, a, "tutti_vf_of") && !tti_lint_attr(linter, b, "tutti_vf_of");
}

void tti_lint_net_guid_twice(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t *at = tti_calloc(graph->ntype[TTI_NODE_NET] + 1, sizeof(*at));
	size_t n = 0;

	linter->failed |= !at;
	TTI_LINT_EACH (net, graph, TTI_NODE_NET)
		if (at && graph->nodes[net].net.guid)
			at[n++] = net;
	if (n)
		qsort_r(at, n, sizeof(*at), by_guid, (void *)(uintptr_t)graph);
	for (size_t i = 1; i < n; i++) {
		struct tti_finding finding = { .have_gbps = tti_lint_uplink(linter, at[i]) };

		if (!is_twice(linter, at[i - 1], at[i]))
			continue;
		finding.want_gbps = finding.have_gbps + tti_lint_uplink(linter, at[i - 1]);
		finding.what = tti_lint_say(linter, "guid and port are also those of %s",
					    graph->nodes[at[i - 1]].name);
		finding.consequence =
			tti_lint_say(linter, "both count as one port: %.1f instead of %.1f GB/s",
				     finding.have_gbps, finding.want_gbps);
		tti_lint_add(linter, at[i], &finding);
	}
	tti_free(at);
}

static void add_speed(struct tti_linter *linter, const struct tti_note *note)
{
	const struct tti_node *net = &linter->graph->nodes[note->node];
	struct tti_finding finding = { 0 };

	if (is_down(linter, note->node) || net->net.is_virtual)
		return;
	finding.what = tti_lint_say(linter, "%s", note->text);
	finding.consequence = tti_lint_say(linter, "%s: planned with %.2f GB/s", net->name,
					   tti_lint_uplink(linter, note->node));
	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_net_speed(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ASSUMED_NET, add_speed);
}

void tti_lint_net_virtual(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	bool others = false;

	TTI_LINT_EACH (net, graph, TTI_NODE_NET)
		others |= !graph->nodes[net].net.is_virtual;
	TTI_LINT_EACH (net, graph, TTI_NODE_NET) {
		const struct tti_finding finding = {
			.what = "it is virtual, by its name: a bridge, a tunnel, or an end in a "
				"container",
			.consequence = others ? "plans leave it out: what goes over it takes "
						"another NIC of the host"
					      : "planned with, as there is no other NIC",
		};

		if (graph->nodes[net].net.is_virtual)
			tti_lint_add(linter, net, &finding);
	}
}

void tti_lint_net_down(struct tti_linter *linter)
{
	TTI_LINT_EACH (net, linter->graph, TTI_NODE_NET) {
		struct tti_finding finding = { .want_gbps = tti_lint_uplink(linter, net) };

		if (!is_down(linter, net))
			continue;
		finding.what = "the port is down";
		finding.consequence =
			tti_lint_say(linter, "%s: 0 instead of %.1f GB/s",
				     linter->graph->nodes[net].name, finding.want_gbps);
		tti_lint_add(linter, net, &finding);
	}
}

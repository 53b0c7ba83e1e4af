/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <stdlib.h>
#include <string.h>

#include "topo/tree/busid.h"
#include "util/mem.h"

static bool same_host(const struct tti_graph *graph, uint32_t a, uint32_t b)
{
	return graph->nodes[a].host == graph->nodes[b].host;
}

static const struct tti_path *path(const struct tti_linter *linter, uint32_t from, uint32_t to)
{
	return tti_paths_get(linter->paths, from, to);
}

/* The NET of its host that a GPU reaches best, NONE: there is none. */
static uint32_t nearest_net(const struct tti_linter *linter, uint32_t gpu)
{
	uint32_t best = TTI_NODE_NONE;

	TTI_LINT_EACH (net, linter->graph, TTI_NODE_NET) {
		const struct tti_path *way = path(linter, gpu, net), *least;

		if (!same_host(linter->graph, gpu, net) || linter->graph->nodes[net].net.is_virtual)
			continue;
		least = best == TTI_NODE_NONE ? NULL : path(linter, gpu, best);
		if (!least || way->type < least->type ||
		    (way->type == least->type && way->bw_gbps > least->bw_gbps))
			best = net;
	}
	return best;
}

/* -- Distance to the network ------------------------------------------------------------------ */

static void compare_distance(struct tti_linter *linter, uint32_t gpu, uint32_t net, uint32_t other,
			     uint32_t other_net)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_path *have = path(linter, gpu, net);
	const struct tti_path *want = path(linter, other, other_net);
	struct tti_finding finding = {
		.have_gbps = (double)have->bw_gbps,
		.want_gbps = (double)want->bw_gbps,
	};

	finding.what = tti_lint_say(linter, "its nearest NIC is %s (%s), while %s has %s (%s)",
				    graph->nodes[net].name, tti_path_type_name(have->type),
				    graph->nodes[other].name, graph->nodes[other_net].name,
				    tti_path_type_name(want->type));
	if (have->bw_gbps < want->bw_gbps) {
		finding.consequence = tti_lint_say(linter, "%s to %s: %.1f instead of %.1f GB/s",
						   graph->nodes[gpu].name, graph->nodes[net].name,
						   finding.have_gbps, finding.want_gbps);
	} else {
		finding.consequence = tti_lint_say(
			linter, "%s to %s: %.1f GB/s over the CPU, or through another GPU",
			graph->nodes[gpu].name, graph->nodes[net].name, finding.have_gbps);
		finding.have_gbps = finding.want_gbps = 0;
	}
	tti_lint_add(linter, gpu, &finding);
}

static void compare_distances(struct tti_linter *linter, const uint32_t *nets)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t *gpus = graph->by_type[TTI_NODE_GPU];
	uint32_t near = TTI_NODE_NONE; /* the first of a host that has a NIC near */

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_GPU]; i++) {
		if (nets[i] == TTI_NODE_NONE)
			continue;
		if (near == TTI_NODE_NONE || !same_host(graph, gpus[i], gpus[near])) {
			near = i; /* by_type is sorted by host */
			while (near < graph->ntype[TTI_NODE_GPU] &&
			       same_host(graph, gpus[i], gpus[near]) &&
			       path(linter, gpus[near], nets[near])->type >= TTI_PATH_PHB)
				near++;
			if (near == graph->ntype[TTI_NODE_GPU] ||
			    !same_host(graph, gpus[i], gpus[near])) {
				near = TTI_NODE_NONE;
				continue;
			}
		}
		if (path(linter, gpus[i], nets[i])->type >= TTI_PATH_PHB)
			compare_distance(linter, gpus[i], nets[i], gpus[near], nets[near]);
	}
}

void tti_lint_gpu_far_nic(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t *nets;

	if (!tti_lint_has_tables(linter))
		return;
	nets = tti_calloc(graph->ntype[TTI_NODE_GPU] + 1, sizeof(*nets));
	linter->failed |= !nets;
	for (uint32_t i = 0; nets && i < graph->ntype[TTI_NODE_GPU]; i++)
		nets[i] = nearest_net(linter, graph->by_type[TTI_NODE_GPU][i]);
	if (nets)
		compare_distances(linter, nets);
	tti_free(nets);
}

/* The GPU's way to its nearest NIC, if it leads through host memory because of the GPU. */
void tti_lint_gpu_no_gdr(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	if (!tti_lint_has_tables(linter))
		return;
	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const struct tti_gpu_info *info = &graph->nodes[gpu].gpu;
		const uint32_t net =
			info->gdr || info->bare ? TTI_NODE_NONE : nearest_net(linter, gpu);
		const char *why = tti_lint_attr(linter, gpu, "tutti_gdr_why");
		const struct tti_route *route;
		struct tti_finding finding = { 0 };

		if (net == TTI_NODE_NONE || tti_lint_is_plain_net(linter, net))
			continue;
		route = tti_routes_get(linter->routes, gpu, net);
		if (route->why != TTI_ROUTE_GDR_NO_GPU)
			continue;
		finding.have_gbps = (double)route->bw_gbps;
		finding.want_gbps = (double)path(linter, gpu, net)->bw_gbps;
		finding.what = tti_lint_say(linter, "NICs cannot reach its memory%s%s",
					    why ? ": " : " (gdr=\"0\")", why ? why : "");
		finding.consequence =
			tti_lint_say(linter, "%s to %s is copied through host memory: %s",
				     graph->nodes[gpu].name, graph->nodes[net].name,
				     tti_lint_figures(linter, &finding));
		tti_lint_add(linter, gpu, &finding);
	}
}

/* -- Drivers and numbers ------------------------------------------------------------------------ */

void tti_lint_gpu_bare(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const uint32_t dev = graph->nodes[gpu].parent;
		struct tti_finding finding = { .want_gbps = tti_lint_uplink(linter, dev) };

		if (!graph->nodes[gpu].gpu.bare)
			continue;
		finding.what = tti_lint_say(
			linter, "PCI function %s is a GPU or accelerator without a driver",
			graph->nodes[dev].name);
		finding.consequence =
			tti_lint_say(linter, "%s is not used: 0 instead of %.1f GB/s over PCI",
				     graph->nodes[gpu].name, finding.want_gbps);
		tti_lint_add(linter, gpu, &finding);
	}
}

void tti_lint_gpu_dev_twice(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t last = TTI_NODE_NONE;

	/* Names follow numbers, so that equal numbers are side by side. */
	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const struct tti_node *node = &graph->nodes[gpu];
		const struct tti_node *before = last == TTI_NODE_NONE ? NULL : &graph->nodes[last];
		struct tti_finding finding = { 0 };

		last = gpu;
		if (!before || before->host != node->host || node->gpu.dev < 0 ||
		    node->gpu.dev != before->gpu.dev || node->parent == before->parent)
			continue;
		finding.what = tti_lint_say(linter, "dev=\"%d\" is also that of %s", node->gpu.dev,
					    before->name);
		finding.consequence =
			"a rank that asks for this number gets one of them: two ranks "
			"may share a GPU, with half of its GB/s each";
		tti_lint_add(linter, gpu, &finding);
	}
}

static int by_rank(const void *left, const void *right, void *context)
{
	const struct tti_graph *graph = context;
	const struct tti_node *a = &graph->nodes[*(const uint32_t *)left];
	const struct tti_node *b = &graph->nodes[*(const uint32_t *)right];

	if (a->gpu.rank != b->gpu.rank)
		return a->gpu.rank < b->gpu.rank ? -1 : 1;
	return (a > b) - (a < b);
}

/* The GPUs that have a rank, by rank; NULL: no memory. */
static uint32_t *sort_ranks(struct tti_linter *linter, size_t *n_out)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t *at = tti_calloc(graph->ntype[TTI_NODE_GPU] + 1, sizeof(*at));
	size_t n = 0;

	linter->failed |= !at;
	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU)
		if (at && graph->nodes[gpu].gpu.rank >= 0)
			at[n++] = gpu;
	if (n)
		qsort_r(at, n, sizeof(*at), by_rank, (void *)(uintptr_t)graph);
	*n_out = n;
	return at;
}

void tti_lint_gpu_rank_twice(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	size_t n;
	uint32_t *at = sort_ranks(linter, &n);

	for (size_t i = 1; i < n; i++) {
		struct tti_finding finding = { 0 };

		if (graph->nodes[at[i]].gpu.rank != graph->nodes[at[i - 1]].gpu.rank)
			continue;
		finding.what =
			tti_lint_say(linter, "rank %d is also that of %s",
				     graph->nodes[at[i]].gpu.rank, graph->nodes[at[i - 1]].name);
		finding.consequence = "both are planned for, as two ranks: what another program "
				      "says of this rank, such as a graph file, may be meant for "
				      "either";
		tti_lint_add(linter, at[i], &finding);
	}
	tti_free(at);
}

void tti_lint_gpu_rank_missing(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	size_t n;
	uint32_t *at = sort_ranks(linter, &n);

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		struct tti_finding finding = { .what = "it has no rank, though others have" };

		if (!n || graph->nodes[gpu].gpu.rank >= 0 || graph->nodes[gpu].gpu.bare)
			continue;
		finding.consequence =
			tti_lint_say(linter, "%s is not used: 0 GB/s", graph->nodes[gpu].name);
		tti_lint_add(linter, gpu, &finding);
	}
	for (size_t i = 1; i < n; i++) {
		const int before = graph->nodes[at[i - 1]].gpu.rank;
		const int rank = graph->nodes[at[i]].gpu.rank;
		struct tti_finding finding = { 0 };

		if (rank - before <= 1)
			continue;
		finding.what = tti_lint_say(linter, "no GPU has the ranks between %d and %d",
					    before, rank);
		finding.consequence =
			"a plan for these ranks finds no GPU: its links count as 0 GB/s";
		tti_lint_add(linter, at[i], &finding);
	}
	tti_free(at);
}

/* -- Kinds ---------------------------------------------------------------------------------------- */

void tti_lint_gpu_mixed(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t first = TTI_NODE_NONE;
	bool told = false;

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const struct tti_node *node = &graph->nodes[gpu];
		struct tti_finding finding = { 0 };

		if (!node->gpu.sm)
			continue;
		if (first == TTI_NODE_NONE || !same_host(graph, gpu, first)) {
			first = gpu;
			told = false;
		}
		if (told || node->gpu.sm == graph->nodes[first].gpu.sm)
			continue;
		told = true;
		finding.what = tti_lint_say(
			linter, "compute capability %d.%d, where %s has %d.%d", node->gpu.sm / 10,
			node->gpu.sm % 10, graph->nodes[first].name,
			graph->nodes[first].gpu.sm / 10, graph->nodes[first].gpu.sm % 10);
		finding.consequence = tti_lint_say(
			linter, "one NVLink of %s carries %.1f GB/s, of %s %.1f GB/s", node->name,
			tti_model_nvlink_gbps(node->gpu.sm), graph->nodes[first].name,
			tti_model_nvlink_gbps(graph->nodes[first].gpu.sm));
		tti_lint_add(linter, gpu, &finding);
	}
}

/* tutti_no_p2p="0000:3b:00.0 0000:5e:00.0": the GPUs whose memory this one may not access. */
void tti_lint_gpu_no_p2p(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (gpu, graph, TTI_NODE_GPU) {
		const char *list = tti_lint_attr(linter, gpu, "tutti_no_p2p");
		char busid[TTI_BUSID_TEXT] = "";
		struct tti_finding finding = { 0 };
		const struct tti_path *way;
		uint32_t peer;

		if (!list || !*list)
			continue;
		memcpy(busid, list, strnlen(list, sizeof(busid) - 1));
		busid[strcspn(busid, " ")] = '\0';
		peer = tti_graph_find(graph, TTI_NODE_DEV, busid);
		peer = peer == TTI_NODE_NONE ? peer : tti_lint_endpoint(linter, peer);
		finding.what = tti_lint_say(linter, "the driver does not let it access %s", list);
		way = peer == TTI_NODE_NONE ? NULL : tti_lint_path(linter, gpu, peer);
		if (way) {
			finding.consequence = tti_lint_say(
				linter,
				"%s to %s goes through host memory: the wires have %.1f GB/s",
				graph->nodes[gpu].name, graph->nodes[peer].name,
				(double)way->bw_gbps);
		} else {
			finding.consequence = tti_lint_say(linter, "%s goes through host memory",
							   graph->nodes[gpu].name);
		}
		tti_lint_add(linter, gpu, &finding);
	}
}

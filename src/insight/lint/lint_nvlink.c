/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <stdlib.h>

#include "util/mem.h"

static double path_gbps(const struct tti_linter *linter, uint32_t from_dev, uint32_t to_dev)
{
	const uint32_t from = tti_lint_endpoint(linter, from_dev);
	const uint32_t to = tti_lint_endpoint(linter, to_dev);

	const struct tti_path *way = from == TTI_NODE_NONE || to == TTI_NODE_NONE
					     ? NULL
					     : tti_lint_path(linter, from, to);

	return way ? (double)way->bw_gbps : 0;
}

static double one_link_gbps(const struct tti_linter *linter, uint32_t dev)
{
	const struct tti_gpu_info *gpu = &linter->graph->nodes[dev].gpu;
	const double xgmi = tti_model_xgmi_gbps(gpu->gcn);
	const double nvlink = tti_model_nvlink_gbps(gpu->sm);

	return xgmi > 0 ? xgmi : nvlink > 0 ? nvlink : TTI_NVLINK_GBPS;
}

/* -- What building left out or made even ------------------------------------------------------ */

static void add_zero(struct tti_linter *linter, const struct tti_note *note)
{
	struct tti_finding finding = { .what = tti_lint_say(linter, "%s", note->text) };

	if (note->peer == TTI_NODE_NONE || linter->graph->nodes[note->peer].type != TTI_NODE_DEV) {
		finding.consequence = tti_lint_say(linter, "%s: nothing goes this way",
						   tti_lint_user(linter, note->node));
	} else {
		finding.have_gbps = path_gbps(linter, note->node, note->peer);
		finding.want_gbps = one_link_gbps(linter, note->node);
		finding.consequence = tti_lint_say(
			linter,
			"%s to %s: %.1f GB/s without it; each link that is up has %.1f GB/s",
			tti_lint_user(linter, note->node), tti_lint_user(linter, note->peer),
			finding.have_gbps, finding.want_gbps);
		if (finding.have_gbps >= finding.want_gbps)
			finding.have_gbps = finding.want_gbps = 0;
	}
	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_nvlink_zero(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ZERO_LINK, add_zero);
}

static void add_no_target(struct tti_linter *linter, const struct tti_note *note)
{
	const bool gpu = linter->graph->nodes[note->node].type == TTI_NODE_DEV;
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.consequence =
			tti_lint_say(linter, "%s: the link is left out; each would add %.1f GB/s",
				     tti_lint_user(linter, note->node),
				     gpu ? one_link_gbps(linter, note->node)
					 : tti_lint_uplink(linter, note->node)),
	};

	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_nvlink_no_target(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_NO_TARGET, add_no_target);
}

static double direction_gbps(const struct tti_linter *linter, uint32_t from, uint32_t to)
{
	const struct tti_topo_link *link = tti_graph_link(linter->graph, from, to, TTI_LINK_NVL);

	return link ? (double)link->bw_gbps : 0;
}

static void add_one_way(struct tti_linter *linter, const struct tti_note *note)
{
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.consequence = tti_lint_say(
			linter, "%s to %s: counted as %.1f GB/s, which may not be there",
			tti_lint_user(linter, note->peer), tti_lint_user(linter, note->node),
			direction_gbps(linter, note->peer, note->node)),
	};

	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_nvlink_one_way(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ONE_WAY, add_one_way);
}

static void add_uneven(struct tti_linter *linter, const struct tti_note *note)
{
	const double there = direction_gbps(linter, note->node, note->peer);
	const double back = direction_gbps(linter, note->peer, note->node);
	struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.have_gbps = there < back ? there : back,
		.want_gbps = there < back ? back : there,
	};

	finding.consequence = tti_lint_say(linter, "%s to %s: %.1f GB/s one way, %.1f the other",
					   tti_lint_user(linter, note->node),
					   tti_lint_user(linter, note->peer), there, back);
	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_nvlink_uneven(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_UNEVEN, add_uneven);
}

static void add_assumed(struct tti_linter *linter, const struct tti_note *note)
{
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.consequence = tti_lint_say(linter, "%s: planned with %.1f GB/s for each link",
					    tti_lint_user(linter, note->node), TTI_NVLINK_GBPS),
	};

	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_nvlink_assumed(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ASSUMED_NVLINK, add_assumed);
}

/* -- Equal GPUs with unequal numbers of links -------------------------------------------------- */

struct total {
	uint32_t count;
	double gbps;
};

static struct total total_of(const struct tti_graph *graph, uint32_t dev)
{
	const struct tti_node *node = &graph->nodes[dev];
	struct total total = { 0 };

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[node->first_link + i];

		if (link->type == TTI_LINK_NVL) {
			total.count += link->count;
			total.gbps += (double)link->bw_gbps;
		}
	}
	return total;
}

/* The GPU with the most links among those of one host that have the capability of `like`. */
static uint32_t most_links(const struct tti_graph *graph, const uint32_t *devs, size_t n,
			   const struct tti_node *like)
{
	uint32_t best = devs[0];
	struct total most = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct total total = total_of(graph, devs[i]);

		if (graph->nodes[devs[i]].gpu.sm == like->gpu.sm && total.count > most.count) {
			most = total;
			best = devs[i];
		}
	}
	return best;
}

static bool is_like(const struct tti_graph *graph, uint32_t dev, const struct tti_node *like)
{
	return graph->nodes[dev].gpu.sm == like->gpu.sm && !graph->nodes[dev].gpu.bare;
}

static int by_number(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* Whether different numbers of links are by design, as those of the two halves of an MI250X: each
 * number occurs on equally many GPUs, and on at least three. A link that is down shows on only two
 * GPUs. */
static bool is_by_design(struct tti_linter *linter, const uint32_t *devs, size_t n,
			 const struct tti_node *like)
{
	uint32_t *counts = tti_calloc(n + 1, sizeof(*counts));
	size_t ncounts = 0, run = 0, each = 0;
	bool equal = true;

	linter->failed |= !counts;
	for (size_t i = 0; counts && i < n; i++)
		if (is_like(linter->graph, devs[i], like))
			counts[ncounts++] = total_of(linter->graph, devs[i]).count;
	if (ncounts)
		qsort(counts, ncounts, sizeof(*counts), by_number);
	for (size_t i = 0; equal && i < ncounts; i++) {
		run++;
		if (i + 1 < ncounts && counts[i + 1] == counts[i])
			continue;
		equal = counts[i] > 0 && run >= 3 && (!each || run == each);
		each = run;
		run = 0;
	}
	tti_free(counts);
	return equal;
}

static void compare_host(struct tti_linter *linter, const uint32_t *devs, size_t n)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t best = TTI_NODE_NONE;
	bool by_design = false;

	for (size_t i = 0; i < n; i++) {
		const struct tti_node *node = &graph->nodes[devs[i]];
		const struct total total = total_of(graph, devs[i]);
		const char *kind = tti_graph_is_amd(graph, devs[i]) ? "xGMI link" : "NVLink";
		struct tti_finding finding = { .have_gbps = total.gbps };
		struct total most;

		if (best == TTI_NODE_NONE || graph->nodes[best].gpu.sm != node->gpu.sm) {
			best = most_links(graph, devs, n, node);
			by_design = is_by_design(linter, devs, n, node);
		}
		most = total_of(graph, best);
		if (by_design || node->gpu.bare || graph->nodes[best].gpu.sm != node->gpu.sm ||
		    total.count >= most.count)
			continue;
		finding.want_gbps = most.gbps;
		finding.what = tti_lint_say(linter, "%u %ss, where %s has %u", total.count, kind,
					    tti_lint_user(linter, best), most.count);
		finding.consequence =
			tti_lint_say(linter, "%s: %.1f instead of %.1f GB/s over %s",
				     tti_lint_user(linter, devs[i]), total.gbps, most.gbps, kind);
		tti_lint_add(linter, devs[i], &finding);
	}
}

void tti_lint_nvlink_fewer(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t *devs = graph->by_type[TTI_NODE_DEV];
	const uint32_t n = graph->ntype[TTI_NODE_DEV];

	if (tti_lint_is_part(linter))
		return;
	for (uint32_t from = 0, to = 0; from < n; from = to) {
		while (to < n && graph->nodes[devs[to]].host == graph->nodes[devs[from]].host)
			to++;
		compare_host(linter, &devs[from], to - from);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/plan_report.h"

#include <stdio.h>
#include <string.h>

#include "insight/cluster/cluster.h"
#include "plan/plan_words.h"
#include "topo/graph/words.h"
#include "topo/paths/paths.h"

/* If there are more channels, the rest is only counted. */
#define MOST_ROWS 24

static const char *bold(const struct tti_report *report)
{
	return report->color ? "\033[1m" : "";
}

static const char *plain(const struct tti_report *report)
{
	return report->color ? "\033[0m" : "";
}

/* -- The job ------------------------------------------------------------------------ */

/* The length of the name that all endpoints of a node share, without hosts and numbers: "GPU";
 * 0: they share none. */
static size_t common_prefix(const struct tti_plan *plan, const struct tti_plan_node *node)
{
	const char *first = tti_plan_bare_name(plan->ranks[node->ranks[0]].name);
	const size_t len = strcspn(first, "0123456789");

	for (uint32_t i = 0; i < node->nranks; i++) {
		const char *name = tti_plan_bare_name(plan->ranks[node->ranks[i]].name);

		if (strncmp(name, first, len) != 0 || !name[len] ||
		    name[len + strspn(name + len, "0123456789")])
			return 0;
	}
	return len;
}

/* NULL: not known. */
static const struct tti_graph *graph_of(const struct tti_report *report, uint32_t node)
{
	return report->job ? report->job->nodes[node].routes->paths->graph : NULL;
}

static void add_kind(const struct tti_report *report, uint32_t kind, struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	const struct tti_plan_node *node = NULL;
	const struct tti_graph *graph;
	uint32_t count = 0, first = 0;

	for (uint32_t i = plan->nnodes; i-- > 0;)
		if (plan->nodes[i].kind == kind) {
			node = &plan->nodes[i];
			first = i;
			count++;
		}
	if (!node)
		return;
	graph = graph_of(report, first);
	if (plan->nnodes > 1)
		tti_strbuf_addf(out, "  %u x ", count);
	else
		tti_strbuf_add(out, "  ");
	tti_strbuf_addf(out, "%u rank%s", node->nranks, node->nranks == 1 ? "" : "s");
	if (node->nnets)
		tti_strbuf_addf(out, ", %u NIC%s", node->nnets, node->nnets == 1 ? "" : "s");
	if (graph && graph->nhosts > 1) {
		tti_strbuf_addf(out, ", %u hosts of one NVLink domain: ", graph->nhosts);
		tti_words_names(graph->hosts, graph->nhosts, out);
	} else if (node->nnets) {
		tti_strbuf_add(out, ": ");
		tti_words_names(node->nets, node->nnets, out);
	}
	tti_strbuf_add(out, "\n");
}

/* Whether NVLink may lead out of a host: GPUs on their own CPUs by C2C and on NVLink switches
 * are built into racks. */
static bool may_leave(const struct tti_graph *graph)
{
	if (graph->nhosts > 1 || graph->ntype[TTI_NODE_NVS] == 0)
		return false;
	for (uint32_t i = 0; i < graph->nlinks; i++)
		if (graph->links[i].type == TTI_LINK_C2C)
			return true;
	return false;
}

/* Warn that NVLink between nodes may be missing in the topology, and say how to state it. */
static void add_what_is_missing(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_graph *last = NULL;

	for (uint32_t i = 0; report->docs && report->plan->nnodes > 1 && i < report->plan->nnodes;
	     i++) {
		const struct tti_graph *graph = graph_of(report, i);

		if (!graph || graph == last)
			continue;
		last = graph;
		if (!may_leave(graph) || tti_cluster_fabric_of(report->docs[i]))
			continue;
		tti_strbuf_add(out, "NVLink between nodes is not counted: ");
		tti_words_text(graph->source, out);
		tti_strbuf_add(out,
			       " does not name the NVLink domain of its GPUs. If it leads from "
			       "node to node, give each <gpu> of the file "
			       "tutti_fabric=\"DOMAIN.CLIQUE\", as detection does\n");
		return;
	}
}

static void add_job(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;

	tti_strbuf_addf(out, "%s%u rank%s on %u node%s%s", bold(report), plan->nranks,
			plan->nranks == 1 ? "" : "s", plan->nnodes, plan->nnodes == 1 ? "" : "s",
			plain(report));
	if (plan->nkinds > 1)
		tti_strbuf_addf(out, " of %u kinds", plan->nkinds);
	tti_strbuf_add(out, "\n");
	for (uint32_t kind = 0; kind < plan->nkinds; kind++)
		add_kind(report, kind, out);
	add_what_is_missing(report, out);
}

/* -- Patterns ------------------------------------------------------------------------ */

static double gap_of(const struct tti_plan_pattern *pattern)
{
	if (!(pattern->bound_gbps > pattern->total_gbps))
		return 0;
	return 100 * (1 - pattern->total_gbps / pattern->bound_gbps);
}

static void add_summary(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	char total[24], bound[24];

	tti_strbuf_addf(out, "\n%s%-14s  %8s  %8s  %8s  %7s  %9s  %s%s\n", bold(report), "pattern",
			"channels", "GB/s", "at most", "gap", "search ms", "limited by",
			plain(report));
	for (uint32_t i = 0; i < plan->npatterns; i++) {
		const struct tti_plan_pattern *pattern = &plan->patterns[i];

		tti_gbps_words(pattern->total_gbps, total);
		tti_gbps_words(pattern->bound_gbps, bound);
		tti_strbuf_addf(out, "%-14s  %8u  %8s  %8s  %5.2f %%  %9.1f  ",
				tti_pattern_name(pattern->pattern), pattern->nchannels, total,
				bound, gap_of(pattern), pattern->search_ms);
		tti_words_text(pattern->limit && pattern->limit[0] ? pattern->limit : "-", out);
		tti_strbuf_add(out, "\n");
	}
}

/* -- Channels ------------------------------------------------------------------------ */

struct rows {
	const struct tti_report *report;
	bool by_rank; /* several ranks share a device: its name says too little */
	const struct tti_plan_pattern *pattern;
	const struct tti_plan_node *node; /* whose part is shown: the first */
	uint32_t index;
	size_t prefix, net_width, type_width;
	const char **last; /* the name before in this row; NULL */
	struct tti_strbuf *out;
};

static bool same_host(const char *a, const char *b)
{
	const ptrdiff_t len = tti_plan_bare_name(a) - a;

	return len == tti_plan_bare_name(b) - b && memcmp(a, b, (size_t)len) == 0;
}

/* Its host is said where it is another than that of the name before. */
static void add_name(const struct rows *rows, uint32_t rank)
{
	const char *name = rows->report->plan->ranks[rank].name;
	const char *bare = tti_plan_bare_name(name);

	if (rows->by_rank) {
		tti_strbuf_addf(rows->out, "%u", rank);
		return;
	}
	if (bare != name && (!*rows->last || !same_host(*rows->last, name)))
		tti_strbuf_addf(rows->out, "%.*s", (int)(bare - name), name);
	tti_strbuf_add(rows->out, bare + rows->prefix);
	*rows->last = name;
}

static bool share_devices(const struct tti_plan *plan, const struct tti_plan_node *node)
{
	for (uint32_t i = 0; i < node->nranks; i++)
		for (uint32_t k = 0; k < i; k++)
			if (!strcmp(plan->ranks[node->ranks[i]].name,
				    plan->ranks[node->ranks[k]].name))
				return true;
	return false;
}

static bool is_here(const struct rows *rows, uint32_t rank)
{
	return rows->report->plan->ranks[rank].node == rows->index;
}

static void add_order(const struct rows *rows, const struct tti_plan_channel *channel)
{
	bool first = true;

	for (uint32_t i = 0; i < channel->nranks; i++)
		if (is_here(rows, channel->ranks[i])) {
			tti_strbuf_add(rows->out, first ? "" : " ");
			add_name(rows, channel->ranks[i]);
			first = false;
		}
}

static uint32_t next_child(const struct rows *rows, const struct tti_plan_channel *channel,
			   uint32_t parent, uint32_t after)
{
	const struct tti_plan_node *node = rows->node;

	for (uint32_t i = after; i < node->nranks; i++)
		if (channel->parent[node->ranks[i]] == parent)
			return i;
	return UINT32_MAX;
}

/* "0-1-(2-3)(4)": a chain with minus signs, branches in brackets. */
static void add_subtree(const struct rows *rows, const struct tti_plan_channel *channel,
			uint32_t rank, uint32_t depth)
{
	const uint32_t first = next_child(rows, channel, rank, 0);
	const bool branches =
		first != UINT32_MAX && next_child(rows, channel, rank, first + 1) != UINT32_MAX;

	add_name(rows, rank);
	if (depth > rows->node->nranks)
		return;
	if (first != UINT32_MAX)
		tti_strbuf_add(rows->out, "-");
	for (uint32_t i = first; i != UINT32_MAX; i = next_child(rows, channel, rank, i + 1)) {
		tti_strbuf_add(rows->out, branches ? "(" : "");
		add_subtree(rows, channel, rows->node->ranks[i], depth + 1);
		tti_strbuf_add(rows->out, branches ? ")" : "");
	}
}

static void add_shape(const struct rows *rows, const struct tti_plan_channel *channel)
{
	if (!channel->parent) {
		add_order(rows, channel);
		return;
	}
	for (uint32_t i = 0; i < rows->node->nranks; i++) {
		const uint32_t rank = rows->node->ranks[i], parent = channel->parent[rank];

		if (parent == UINT32_MAX || !is_here(rows, parent))
			add_subtree(rows, channel, rank, 0);
	}
}

/* "; 3-4 by mlx5_0, mlx5_2": the hops that leave the node and come back. */
static void add_ways(const struct rows *rows, const struct tti_plan_channel *channel)
{
	for (uint32_t i = 0; channel->ways && i < channel->nranks; i++) {
		const uint32_t to = channel->ranks[i];

		if (tti_plan_hop_is_direct(channel, to))
			continue;
		tti_strbuf_add(rows->out, "; ");
		add_name(rows, tti_plan_before(channel, i));
		tti_strbuf_add(rows->out, "-");
		add_name(rows, to);
		tti_strbuf_add(rows->out, " by ");
		tti_words_text(rows->node->nets[channel->ways[to].out], rows->out);
		tti_strbuf_add(rows->out, ", ");
		tti_words_text(rows->node->nets[channel->ways[to].in], rows->out);
	}
}

static size_t net_width(const struct tti_plan_node *node)
{
	size_t width = 6;

	for (uint32_t i = 0; i < node->nnets; i++)
		if (strlen(node->nets[i]) > width)
			width = strlen(node->nets[i]);
	return width;
}

/* "NVL", "XGMI", "NVL/PIX" */
static size_t type_width(const struct tti_report *report)
{
	return strlen(tti_words_path_type(graph_of(report, 0), TTI_PATH_NVL)) +
	       (report->plan->nnodes > 1 ? strlen("/PIX") : 0);
}

static const char *type_name(const struct rows *rows, uint8_t type)
{
	return tti_words_path_type(graph_of(rows->report, 0), (enum tti_path_type)type);
}

/* "SYS"; of several nodes with the way to the NICs: "NVL/PIX". */
static void add_types(const struct rows *rows, const struct tti_plan_channel *channel)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%s%s%s", type_name(rows, channel->type_intra),
		       channel->ends ? "/" : "",
		       channel->ends ? type_name(rows, channel->type_inter) : "");
	tti_strbuf_addf(rows->out, "%-*s  ", (int)rows->type_width, text);
}

static void add_row(const struct rows *rows, uint32_t at, bool pair)
{
	const struct tti_plan_channel *channel = &rows->pattern->channels[at];
	char number[24], gbps[24];

	(void)snprintf(number, sizeof(number), pair ? "%u,%u" : "%u", at, at + 1);
	tti_gbps_words((double)channel->bw_gbps * (pair ? 2 : 1), gbps);
	tti_strbuf_addf(rows->out, "%8s  %7s  ", number, gbps);
	if (channel->ends)
		tti_strbuf_addf(rows->out, "%-*s  %-*s  ", (int)rows->net_width,
				rows->node->nets[channel->ends[rows->index].in],
				(int)rows->net_width,
				rows->node->nets[channel->ends[rows->index].out]);
	add_types(rows, channel);
	*rows->last = NULL;
	add_shape(rows, channel);
	add_ways(rows, channel);
	tti_strbuf_add(rows->out, "\n");
}

/* The two trees of a pair are the same inside a node. */
static bool in_pairs(const struct tti_plan *plan, enum tti_pattern pattern)
{
	return plan->nnodes > 1 &&
	       (pattern == TTI_PATTERN_TREE || pattern == TTI_PATTERN_BALANCED_TREE ||
		pattern == TTI_PATTERN_SPLIT_TREE);
}

static void add_channels(const struct tti_report *report, const struct tti_plan_pattern *pattern,
			 struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	const struct tti_plan_node *node = &plan->nodes[0];
	const bool pairs = in_pairs(plan, pattern->pattern);
	const bool by_rank = share_devices(plan, node);
	const char *last = NULL;
	const struct rows rows = { .report = report,
				   .by_rank = by_rank,
				   .pattern = pattern,
				   .node = node,
				   .prefix = by_rank ? 0 : common_prefix(plan, node),
				   .net_width = net_width(node),
				   .type_width = type_width(report),
				   .last = &last,
				   .out = out };
	const uint32_t step = pairs ? 2 : 1, nrows = pattern->nchannels / step;

	tti_strbuf_addf(out, "\n%s%s%s", bold(report), tti_pattern_name(pattern->pattern),
			plain(report));
	if (plan->nnodes > 1)
		tti_strbuf_addf(out, " in %s%s", node->name,
				pairs ? "; two trees over the nodes carry half each" : "");
	tti_strbuf_addf(out, "\n%s%8s  %7s  ", bold(report), "channel", "GB/s");
	if (plan->nnodes > 1)
		tti_strbuf_addf(out, "%-*s  %-*s  ", (int)rows.net_width, "in", (int)rows.net_width,
				"out");
	tti_strbuf_addf(out, "%-*s  ", (int)rows.type_width, plan->nnodes > 1 ? "types" : "type");
	tti_strbuf_addf(out, "%.*s%s\n", rows.prefix ? (int)rows.prefix : 5,
			by_rank       ? "ranks"
			: rows.prefix ? tti_plan_bare_name(plan->ranks[node->ranks[0]].name)
				      : "order",
			plain(report));
	for (uint32_t i = 0; i < nrows && i < MOST_ROWS; i++)
		add_row(&rows, i * step, pairs);
	if (nrows > MOST_ROWS)
		tti_strbuf_addf(out, "%8s  and %u more, see --json\n", "", nrows - MOST_ROWS);
}

/* In which order a ring runs through the nodes, if not as they are numbered. */
static void add_node_order(const struct tti_report *report, const struct tti_plan_pattern *ring,
			   struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	const struct tti_plan_channel *channel = &ring->channels[0];
	uint32_t last = UINT32_MAX, count = 0;
	bool sorted = true;

	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t node = plan->ranks[channel->ranks[i]].node;

		sorted &= last == UINT32_MAX || node >= last;
		last = node;
	}
	if (sorted)
		return;
	last = UINT32_MAX;
	tti_strbuf_add(out, "\nthe nodes follow each other as");
	for (uint32_t i = 0; i < channel->nranks && count < MOST_ROWS; i++) {
		const uint32_t node = plan->ranks[channel->ranks[i]].node;

		if (node != last)
			tti_strbuf_addf(out, "%s %s", count++ ? "," : "", plan->nodes[node].name);
		last = node;
	}
	tti_strbuf_add(out, count == MOST_ROWS && plan->nnodes > count ? ", ...\n" : "\n");
}

void tti_plan_table(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	const struct tti_plan_pattern *ring = tti_plan_pattern(plan, TTI_PATTERN_RING);

	add_job(report, out);
	if (plan->npatterns == 0) {
		tti_strbuf_add(out, "no pattern has a way through all ranks\n");
		return;
	}
	add_summary(report, out);
	for (uint32_t i = 0; i < plan->npatterns; i++)
		if (report->config->patterns || plan->patterns[i].pattern == TTI_PATTERN_RING ||
		    plan->patterns[i].pattern == TTI_PATTERN_TREE)
			add_channels(report, &plan->patterns[i], out);
	if (ring && plan->nnodes > 1)
		add_node_order(report, ring, out);
}

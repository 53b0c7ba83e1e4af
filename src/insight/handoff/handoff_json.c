/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/handoff/handoff_print.h"
#include "insight/handoff/handoff_report.h"
#include "util/json.h"

/* One object; a pair and a tree stand on one line each. */

static void add_net(struct tti_json *json, const char *key, const struct tti_handoff_view *view,
		    uint32_t node, uint32_t net)
{
	if (net == TTI_NO_NET)
		tti_json_addf(json, key, "null");
	else
		tti_json_text(json, key, tti_handoff_net_name(view, node, net));
}

static void add_share(struct tti_json *json, double share, double gbps)
{
	tti_json_addf(json, "share", "%.6f", share);
	tti_json_addf(json, "gbps", "%.5f", gbps);
}

static void add_part(struct tti_json *json, uint32_t part)
{
	if (part == TTI_HANDOFF_WHOLE)
		tti_json_addf(json, "part", "null");
	else
		tti_json_addf(json, "part", "%u", part);
}

static void add_ranks(struct tti_json *json, const char *key, const uint32_t *ranks, uint32_t n)
{
	tti_json_open(json, key, "[");
	for (uint32_t i = 0; i < n; i++)
		tti_json_addf(json, NULL, "%u", ranks[i]);
	tti_json_close(json);
}

static void add_way(struct tti_json *json, const struct tti_handoff_view *view,
		    const struct tti_handoff_way *way)
{
	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "from", "%u", way->from);
	tti_json_text(json, "from_endpoint", tti_handoff_end_name(view, way->from));
	add_net(json, "net_out", view, view->node_of[way->from], way->net_out);
	add_net(json, "net_in", view, view->node_of[way->to], way->net_in);
	tti_json_addf(json, "to", "%u", way->to);
	tti_json_text(json, "to_endpoint", tti_handoff_end_name(view, way->to));
	add_share(json, way->share, way->gbps);
	tti_json_bool(json, "straight", way->straight);
	add_part(json, way->part);
	tti_json_close(json);
}

static void add_leg(struct tti_json *json, const struct tti_handoff_view *view,
		    const struct tti_handoff_leg *leg)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "from_node", tti_handoff_node_name(view, leg->from_node));
	tti_json_text(json, "to_node", tti_handoff_node_name(view, leg->to_node));
	add_share(json, leg->share, leg->gbps);
	tti_json_open(json, "pairs", "[\n");
	for (uint32_t i = leg->first; i < leg->first + leg->n; i++)
		add_way(json, view, &view->plan->ways[i]);
	tti_json_close(json);
	tti_json_close(json);
}

static void add_tree(struct tti_json *json, const struct tti_handoff_view *view,
		     const struct tti_handoff_tree *tree)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "node", tti_handoff_node_name(view, tree->node));
	add_share(json, tree->share, tree->share * view->plan->gbps);
	add_part(json, tree->part);
	add_ranks(json, "ranks", tree->ranks, tree->n);
	tti_json_open(json, "parents", "[");
	tti_json_addf(json, NULL, "-1");
	for (uint32_t i = 1; i < tree->n; i++)
		tti_json_addf(json, NULL, "%u", tree->ranks[tree->parent[i]]);
	tti_json_close(json);
	tti_json_close(json);
}

static void add_figures(struct tti_json *json, const struct tti_handoff_view *view)
{
	const struct tti_handoff_plan *plan = view->plan;
	const struct tti_handoff_time time = tti_handoff_plan_time(plan, view->nbytes);

	tti_json_addf(json, "gbps", "%.5f", plan->gbps);
	tti_json_addf(json, "best_gbps", "%.5f", plan->best_gbps);
	tti_json_addf(json, "bound_gbps", "%.5f", plan->bound_gbps);
	tti_json_addf(json, "naive_gbps", "%.5f", plan->naive_gbps);
	tti_json_text(json, "limit", plan->limit);
	tti_json_text(json, "bound", plan->bound);
	tti_json_addf(json, "bytes", "%.0f", view->nbytes);
	tti_json_addf(json, "us", "%.2f", time.us);
	tti_json_addf(json, "latency_us", "%.2f", time.latency_us);
	tti_json_addf(json, "slice_bytes", "%.0f", time.slice_bytes);
	tti_json_addf(json, "bound_us", "%.2f", time.bound_us);
	tti_json_addf(json, "naive_us", "%.2f", time.naive_us);
}

void tti_handoff_json(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
		      double nbytes, struct tti_strbuf *out)
{
	struct tti_json json = { .out = out };
	struct tti_handoff_view view;

	if (!tti_handoff_view_open(handoff, plan, nbytes, &view)) {
		out->failed = true;
		return;
	}
	tti_json_open(&json, NULL, "{\n");
	tti_json_addf(&json, "nodes", "%u", plan->nnodes);
	tti_json_addf(&json, "ranks", "%u", plan->nranks);
	add_ranks(&json, "from", handoff->from, handoff->nfrom);
	tti_json_bool(&json, "from_sharded", plan->from_sharded);
	add_ranks(&json, "to", handoff->to, handoff->nto);
	tti_json_bool(&json, "to_sharded", plan->to_sharded);
	add_figures(&json, &view);
	tti_json_open(&json, "legs", "[\n");
	for (uint32_t i = 0; i < plan->nlegs; i++)
		add_leg(&json, &view, &plan->legs[i]);
	tti_json_close(&json);
	tti_json_open(&json, "trees", "[\n");
	for (uint32_t i = 0; i < plan->ntrees; i++)
		add_tree(&json, &view, &plan->trees[i]);
	tti_json_close(&json);
	tti_json_close(&json);
	tti_strbuf_add(out, "\n");
	tti_handoff_view_close(&view);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/handoff/handoff_print.h"
#include "insight/handoff/handoff_report.h"

/* One object; a pair, a tree a line. */

static void add_net(struct tti_strbuf *out, const struct tti_handoff_view *view, uint32_t node,
		    uint32_t net)
{
	if (net == TTI_NO_NET)
		tti_strbuf_add(out, "null");
	else
		tti_plan_json_text(out, tti_handoff_net_name(view, node, net));
}

static void add_part(struct tti_strbuf *out, uint32_t part)
{
	if (part == TTI_HANDOFF_WHOLE)
		tti_strbuf_add(out, ",\"part\":null");
	else
		tti_strbuf_addf(out, ",\"part\":%u", part);
}

static void add_ranks(struct tti_strbuf *out, const uint32_t *ranks, uint32_t n)
{
	tti_strbuf_add(out, "[");
	for (uint32_t i = 0; i < n; i++)
		tti_strbuf_addf(out, "%s%u", i ? "," : "", ranks[i]);
	tti_strbuf_add(out, "]");
}

static void add_way(struct tti_strbuf *out, const struct tti_handoff_view *view,
		    const struct tti_handoff_way *way)
{
	tti_strbuf_addf(out, "      {\"from\":%u,\"from_endpoint\":", way->from);
	tti_plan_json_text(out, tti_handoff_end_name(view, way->from));
	tti_strbuf_add(out, ",\"net_out\":");
	add_net(out, view, view->node_of[way->from], way->net_out);
	tti_strbuf_add(out, ",\"net_in\":");
	add_net(out, view, view->node_of[way->to], way->net_in);
	tti_strbuf_addf(out, ",\"to\":%u,\"to_endpoint\":", way->to);
	tti_plan_json_text(out, tti_handoff_end_name(view, way->to));
	tti_strbuf_addf(out, ",\"share\":%.6f,\"gbps\":%.5f,\"straight\":%s", way->share, way->gbps,
			way->straight ? "true" : "false");
	add_part(out, way->part);
	tti_strbuf_add(out, "}");
}

static void add_leg(struct tti_strbuf *out, const struct tti_handoff_view *view,
		    const struct tti_handoff_leg *leg)
{
	tti_strbuf_add(out, "    {\"from_node\":");
	tti_plan_json_text(out, tti_handoff_node_name(view, leg->from_node));
	tti_strbuf_add(out, ",\"to_node\":");
	tti_plan_json_text(out, tti_handoff_node_name(view, leg->to_node));
	tti_strbuf_addf(out, ",\"share\":%.6f,\"gbps\":%.5f,\"pairs\":[\n", leg->share, leg->gbps);
	for (uint32_t i = 0; i < leg->n; i++) {
		add_way(out, view, &view->plan->ways[leg->first + i]);
		tti_strbuf_add(out, i + 1 < leg->n ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "    ]}");
}

static void add_tree(struct tti_strbuf *out, const struct tti_handoff_view *view,
		     const struct tti_handoff_tree *tree)
{
	tti_strbuf_add(out, "    {\"node\":");
	tti_plan_json_text(out, tti_handoff_node_name(view, tree->node));
	tti_strbuf_addf(out, ",\"share\":%.6f,\"gbps\":%.5f", tree->share,
			tree->share * view->plan->gbps);
	add_part(out, tree->part);
	tti_strbuf_add(out, ",\"ranks\":");
	add_ranks(out, tree->ranks, tree->n);
	tti_strbuf_add(out, ",\"parents\":[-1");
	for (uint32_t i = 1; i < tree->n; i++)
		tti_strbuf_addf(out, ",%u", tree->ranks[tree->parent[i]]);
	tti_strbuf_add(out, "]}");
}

static void add_figures(struct tti_strbuf *out, const struct tti_handoff_view *view)
{
	const struct tti_handoff_plan *plan = view->plan;
	const struct tti_handoff_time time = tti_handoff_plan_time(plan, view->nbytes);

	tti_strbuf_addf(out,
			"  \"gbps\":%.5f,\n  \"best_gbps\":%.5f,\n  \"bound_gbps\":%.5f,\n"
			"  \"naive_gbps\":%.5f,\n  \"limit\":",
			plan->gbps, plan->best_gbps, plan->bound_gbps, plan->naive_gbps);
	tti_plan_json_text(out, plan->limit);
	tti_strbuf_add(out, ",\n  \"bound\":");
	tti_plan_json_text(out, plan->bound);
	tti_strbuf_addf(out,
			",\n  \"bytes\":%.0f,\n  \"us\":%.2f,\n  \"latency_us\":%.2f,\n"
			"  \"slice_bytes\":%.0f,\n  \"bound_us\":%.2f,\n  \"naive_us\":%.2f,\n",
			view->nbytes, time.us, time.latency_us, time.slice_bytes, time.bound_us,
			time.naive_us);
}

void tti_handoff_json(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
		      double nbytes, struct tti_strbuf *out)
{
	struct tti_handoff_view view;

	if (!tti_handoff_view_open(handoff, plan, nbytes, &view)) {
		out->failed = true;
		return;
	}
	tti_strbuf_addf(out, "{\n  \"nodes\":%u,\n  \"ranks\":%u,\n  \"from\":", plan->nnodes,
			plan->nranks);
	add_ranks(out, handoff->from, handoff->nfrom);
	tti_strbuf_addf(
		out, ",\n  \"from_sharded\":%s,\n  \"to\":", plan->from_sharded ? "true" : "false");
	add_ranks(out, handoff->to, handoff->nto);
	tti_strbuf_addf(out, ",\n  \"to_sharded\":%s,\n", plan->to_sharded ? "true" : "false");
	add_figures(out, &view);
	tti_strbuf_add(out, "  \"legs\":[\n");
	for (uint32_t i = 0; i < plan->nlegs; i++) {
		add_leg(out, &view, &plan->legs[i]);
		tti_strbuf_add(out, i + 1 < plan->nlegs ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "  ],\n  \"trees\":[\n");
	for (uint32_t i = 0; i < plan->ntrees; i++) {
		add_tree(out, &view, &plan->trees[i]);
		tti_strbuf_add(out, i + 1 < plan->ntrees ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "  ]\n}\n");
	tti_handoff_view_close(&view);
}

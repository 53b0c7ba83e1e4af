/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "insight/handoff/handoff_print.h"
#include "insight/handoff/handoff_report.h"
#include "topo/graph/words.h"
#include "util/mem.h"

/* Explains a handoff: the chosen pairs and why, the way of the bytes, and the links that limit
 * it. */

static void add_name(const char *name, struct tti_strbuf *out)
{
	tti_words_text(name, out);
}

/* By its GPU, which is one rank's; a NUMA node may be that of many. */
static void add_rank(const struct tti_handoff_view *view, uint32_t rank, struct tti_strbuf *out)
{
	const struct tti_graph *graph = tti_handoff_graph(view, view->node_of[rank]);

	if (graph->nodes[tti_handoff_end(view, rank)].type == TTI_NODE_GPU)
		add_name(tti_handoff_end_name(view, rank), out);
	else
		tti_strbuf_addf(out, "rank %u", rank);
}

/* -- Between nodes ------------------------------------------------------------------------- */

static const struct tti_route *route_of(const struct tti_handoff_view *view, uint32_t rank,
					uint32_t net, bool outwards)
{
	const struct tti_job_node *node = tti_handoff_job_node(view, view->node_of[rank]);
	const uint32_t end = tti_handoff_end(view, rank), at = node->nets[net];

	return outwards ? tti_routes_get(node->routes, end, at)
			: tti_routes_get(node->routes, at, end);
}

/* "same switch", "same NUMA node", "another socket". */
static const char *place_words(enum tti_path_type type)
{
	if (type <= TTI_PATH_PIX)
		return "on the same switch";
	if (type <= TTI_PATH_PXN)
		return "beside it over switches";
	return type <= TTI_PATH_PHB ? "on the same NUMA node" : "on another socket";
}

/* The ranks of a leg that use a NIC, each once. */
static void say_users(const struct tti_handoff_view *view, const struct tti_handoff_leg *leg,
		      uint32_t net, bool outwards, struct tti_strbuf *out)
{
	enum tti_path_type worst = TTI_PATH_LOC;
	uint32_t n = 0;

	for (uint32_t i = leg->first; i < leg->first + leg->n; i++) {
		const struct tti_handoff_way *way = &view->plan->ways[i];
		const uint32_t rank = outwards ? way->from : way->to;
		bool said = false;

		if ((outwards ? way->net_out : way->net_in) != net)
			continue;
		for (uint32_t k = leg->first; k < i; k++)
			said |= (outwards ? view->plan->ways[k].from : view->plan->ways[k].to) ==
					rank &&
				(outwards ? view->plan->ways[k].net_out
					  : view->plan->ways[k].net_in) == net;
		if (said)
			continue;
		if (n++ < 8) {
			tti_strbuf_add(out, n > 1 ? ", " : "");
			add_rank(view, rank, out);
		}
		if (route_of(view, rank, net, outwards)->type > worst)
			worst = (enum tti_path_type)route_of(view, rank, net, outwards)->type;
	}
	if (n > 8)
		tti_strbuf_addf(out, " and %u more", n - 8);
	tti_strbuf_addf(out, ", %s (%s)", place_words(worst), tti_path_type_name(worst));
}

static double carried(const struct tti_handoff_view *view, const struct tti_handoff_leg *leg,
		      uint32_t net, bool outwards)
{
	double gbps = 0;

	for (uint32_t i = leg->first; i < leg->first + leg->n; i++) {
		const struct tti_handoff_way *way = &view->plan->ways[i];

		if ((outwards ? way->net_out : way->net_in) == net)
			gbps += way->gbps;
	}
	return gbps;
}

/* The cable of a NIC, in one direction. */
static double cable_gbps(const struct tti_handoff_view *view, uint32_t node, uint32_t net)
{
	const struct tti_graph *graph = tti_handoff_graph(view, node);
	const uint32_t at = tti_handoff_job_node(view, node)->nets[net];
	const struct tti_topo_link *link =
		tti_graph_link(graph, graph->nodes[at].parent, at, TTI_LINK_NET);

	return link ? (double)link->bw_gbps : 0;
}

static void say_nics(const struct tti_handoff_view *view, const struct tti_handoff_leg *leg,
		     bool outwards, struct tti_strbuf *out)
{
	const uint32_t node = outwards ? leg->from_node : leg->to_node;
	char gbps[24], cable[24];

	for (uint32_t net = 0; net < tti_handoff_job_node(view, node)->nnets; net++) {
		const double carries = carried(view, leg, net, outwards);

		tti_strbuf_add(out, outwards ? "  out by " : "  in by ");
		add_name(tti_handoff_net_name(view, node, net), out);
		if (carries <= 0) {
			tti_strbuf_add(out, ": nothing, it is not needed or nobody is near it\n");
			continue;
		}
		tti_gbps_words(cable_gbps(view, node, net), cable);
		tti_gbps_words(carries < cable_gbps(view, node, net) ? carries
								     : cable_gbps(view, node, net),
			       gbps);
		tti_strbuf_addf(out, ": %s of %s GB/s, %s ", gbps, cable, outwards ? "from" : "to");
		say_users(view, leg, net, outwards, out);
		tti_strbuf_add(out, "\n");
	}
}

static void say_leg(const struct tti_handoff_view *view, const struct tti_handoff_leg *leg,
		    struct tti_strbuf *out)
{
	char share[TTI_HANDOFF_WORDS];

	if (leg->from_node == leg->to_node)
		return;
	tti_handoff_share_words(leg->share, share);
	add_name(tti_handoff_node_name(view, leg->from_node), out);
	tti_strbuf_add(out, " to ");
	add_name(tti_handoff_node_name(view, leg->to_node), out);
	tti_strbuf_addf(out, ": %s of it once, over %u pair%s\n", share, leg->n,
			leg->n == 1 ? "" : "s");
	say_nics(view, leg, true, out);
	say_nics(view, leg, false, out);
}

/* -- Inside nodes ------------------------------------------------------------------------------ */

/* The busiest hop of a node. */
static void say_busiest(const struct tti_handoff_view *view, uint32_t node, struct tti_strbuf *out)
{
	const struct tti_handoff_plan *plan = view->plan;
	const uint32_t nranks = tti_handoff_job_node(view, node)->nranks;
	double *used = tti_calloc((size_t)nranks * nranks, sizeof(*used)), most = 0;
	uint32_t from = 0, to = 0;
	char gbps[24];

	if (!used) {
		out->failed = true;
		return;
	}
	for (uint32_t i = 0; i < plan->ntrees; i++) {
		const struct tti_handoff_tree *tree = &plan->trees[i];

		for (uint32_t k = 1; tree->node == node && k < tree->n; k++) {
			const uint32_t a = tree->ranks[tree->parent[k]], b = tree->ranks[k];
			double *at = &used[(size_t)view->place_of[a] * nranks + view->place_of[b]];

			*at += tree->share * plan->gbps;
			if (*at > most * (1 + 1e-9)) {
				most = *at;
				from = a;
				to = b;
			}
		}
	}
	tti_free(used);
	if (most <= 0)
		return;
	tti_gbps_words(most, gbps);
	tti_strbuf_add(out, "; most goes from ");
	add_name(tti_handoff_end_name(view, from), out);
	tti_strbuf_add(out, " to ");
	add_name(tti_handoff_end_name(view, to), out);
	tti_strbuf_addf(out, ", %s GB/s", gbps);
}

static void say_inside(const struct tti_handoff_view *view, uint32_t node, struct tti_strbuf *out)
{
	uint32_t ntrees = 0, nroots = 0;

	for (uint32_t i = 0; i < view->plan->ntrees; i++) {
		bool seen = false;

		if (view->plan->trees[i].node != node)
			continue;
		ntrees++;
		for (uint32_t k = 0; k < i; k++)
			seen |= view->plan->trees[k].node == node &&
				view->plan->trees[k].ranks[0] == view->plan->trees[i].ranks[0];
		nroots += !seen;
	}
	if (ntrees == 0)
		return;
	tti_strbuf_add(out, "inside ");
	add_name(tti_handoff_node_name(view, node), out);
	tti_strbuf_addf(out,
			": while later slices come in, what landed at %u place%s goes on to all "
			"others, along %u tree%s",
			nroots, nroots == 1 ? "" : "s", ntrees, ntrees == 1 ? "" : "s");
	say_busiest(view, node, out);
	tti_strbuf_add(out, "\n");
}

/* -- What limits it ---------------------------------------------------------------------------- */

static void say_limits(const struct tti_handoff_view *view, struct tti_strbuf *out)
{
	const struct tti_handoff_plan *plan = view->plan;
	char gbps[24], best[24], bound[24];

	tti_gbps_words(plan->gbps, gbps);
	tti_gbps_words(plan->best_gbps, best);
	tti_gbps_words(plan->bound_gbps, bound);
	tti_strbuf_addf(out, "%s GB/s in all", gbps);
	if (plan->limit[0]) {
		tti_strbuf_add(out, "; what counts most is ");
		tti_words_text(plan->limit, out);
	}
	tti_strbuf_addf(out, "\n  other shares of these ways, and other trees, bring %s%s\n",
			plan->best_gbps > plan->gbps * 1.001 ? "at most GB/s " : "no more",
			plan->best_gbps > plan->gbps * 1.001 ? best : "");
	tti_strbuf_addf(out, "  no method exceeds %s GB/s: ", bound);
	tti_words_text(plan->bound[0] ? plan->bound : "nothing limits it", out);
	tti_strbuf_addf(out, "\n  a copy for each receiver would do %.3g: %.2f times as long\n",
			plan->naive_gbps, plan->gbps / plan->naive_gbps);
}

static void say_time(const struct tti_handoff_view *view, struct tti_strbuf *out)
{
	const struct tti_handoff_time time = tti_handoff_plan_time(view->plan, view->nbytes);
	char bytes[TTI_HANDOFF_WORDS], us[TTI_HANDOFF_WORDS], bound[TTI_HANDOFF_WORDS];
	char slice[TTI_HANDOFF_WORDS], latency[TTI_HANDOFF_WORDS];

	tti_handoff_bytes_words(view->nbytes, bytes);
	tti_handoff_time_words(time.us, us);
	tti_handoff_time_words(time.bound_us, bound);
	tti_handoff_bytes_words(time.slice_bytes, slice);
	tti_handoff_time_words(time.latency_us, latency);
	tti_strbuf_addf(out,
			"  %s take %s, %.2f times the bound of %s: %s until the first byte is "
			"through %u stage%s, then slices of %s\n",
			bytes, us, time.bound_us > 0 ? time.us / time.bound_us : 0.0, bound,
			latency, view->plan->depth + view->plan->inner_depth,
			view->plan->depth + view->plan->inner_depth == 1 ? "" : "s", slice);
}

void tti_handoff_explain(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
			 double nbytes, struct tti_strbuf *out)
{
	struct tti_handoff_view view;

	if (!tti_handoff_view_open(handoff, plan, nbytes, &view)) {
		out->failed = true;
		return;
	}
	if (plan->gbps > 0) {
		for (uint32_t i = 0; i < plan->nlegs; i++)
			say_leg(&view, &plan->legs[i], out);
		for (uint32_t node = 0; node < plan->nnodes; node++)
			say_inside(&view, node, out);
		say_limits(&view, out);
		say_time(&view, out);
	} else {
		tti_strbuf_add(out, "all who get it have it: nothing is to be moved\n");
	}
	tti_handoff_view_close(&view);
}

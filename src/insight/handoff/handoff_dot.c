/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "insight/handoff/handoff_print.h"
#include "insight/handoff/handoff_report.h"
#include "insight/write/dot.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* Two nodes side by side: the first one that sends and the first one that receives. Devices
 * below one switch, and those of one socket, share a frame. Each pair has a stripe of its own
 * colour, from rank to NIC to NIC to rank. A table beside the nodes shows how the bytes spread
 * inside the receiving node. */

/* A table of more ranks is not drawn: nobody could read it. */
#define MOST_RANKS 32

struct drawing {
	const struct tti_handoff_view *view;
	const struct tti_handoff_leg *leg;
	struct tti_strbuf *out;
	TTI_VEC(uint32_t) ends; /* of the node at hand, in the order of their frames */
};

/* -- Boxes -------------------------------------------------------------------------------- */

/* The switch that something hangs below; NONE: on the CPU itself. */
static uint32_t switch_of(const struct tti_graph *graph, uint32_t node)
{
	const uint32_t cpu = tti_graph_cpu_of(graph, node);
	uint32_t at = graph->nodes[node].parent;

	for (uint32_t depth = 0; at != TTI_NODE_NONE && at != cpu && depth < 64; depth++) {
		if (graph->nodes[at].type == TTI_NODE_PCI)
			return at;
		at = graph->nodes[at].parent;
	}
	return TTI_NODE_NONE;
}

static bool is_shown(const struct drawing *d, uint32_t node, uint32_t end)
{
	const struct tti_job_node *job = tti_handoff_job_node(d->view, node);

	for (uint32_t i = 0; i < job->nranks; i++)
		if (job->members[i] == end)
			return true;
	for (uint32_t i = 0; i < job->nnets; i++)
		if (job->nets[i] == end)
			return true;
	return false;
}

static bool is_on(const uint32_t *ranks, uint32_t n, uint32_t rank)
{
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i] == rank)
			return true;
	return false;
}

/* "ranks 8, 9": those of the side that is drawn. */
static void add_ranks(const struct drawing *d, uint32_t node, uint32_t end, struct tti_strbuf *out)
{
	const struct tti_job_node *job = tti_handoff_job_node(d->view, node);
	const struct tti_handoff_job *handoff = d->view->handoff;
	const bool sends = node == d->leg->from_node;
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->nranks; i++) {
		if (job->members[i] != end ||
		    !is_on(sends ? handoff->from : handoff->to,
			   sends ? handoff->nfrom : handoff->nto, job->ranks[i]))
			continue;
		if (n++ < 4)
			tti_strbuf_addf(out, "%s%u", n == 1 ? "rank " : ", ", job->ranks[i]);
	}
	if (n > 4)
		tti_strbuf_addf(out, " and %u more", n - 4);
	if (n == 0)
		tti_strbuf_add(out, "takes no part");
}

static void add_speed(const struct tti_graph *graph, uint32_t net, struct tti_strbuf *out)
{
	const struct tti_topo_link *link =
		tti_graph_link(graph, graph->nodes[net].parent, net, TTI_LINK_NET);
	char gbps[24];

	tti_gbps_words(link ? (double)link->bw_gbps : 0, gbps);
	tti_strbuf_addf(out, "%s GB/s", gbps);
}

static void add_box(struct drawing *d, uint32_t node, uint32_t end)
{
	const struct tti_graph *graph = tti_handoff_graph(d->view, node);
	const bool net = graph->nodes[end].type == TTI_NODE_NET;
	struct tti_strbuf small = { 0 };

	if (!net && !tti_vec_push(&d->ends, end))
		d->out->failed = true;
	tti_dot_box(d->out,
		    net                                      ? TTI_DOT_NIC
		    : graph->nodes[end].type == TTI_NODE_GPU ? TTI_DOT_GPU
							     : TTI_DOT_CPU,
		    false, "n%u_%u", node, end);
	if (net)
		add_speed(graph, end, &small);
	else
		add_ranks(d, node, end, &small);
	tti_dot_line(d->out, graph->nodes[end].full_name, NULL);
	tti_dot_line(d->out, NULL, small.text);
	tti_dot_box_end(d->out);
	d->out->failed |= small.failed;
	tti_strbuf_release(&small);
}

/* -- Frames --------------------------------------------------------------------------------- */

static void open_frame(const struct drawing *d, uint32_t node, uint32_t at, const char *fill)
{
	tti_strbuf_addf(d->out,
			"\tsubgraph cluster_%u_%u {\n\tstyle=\"rounded,filled\"; "
			"color=\"#cccccc\"; fillcolor=\"%s\"; fontsize=10; label=<",
			node, at, fill);
}

static void add_ends(struct drawing *d, uint32_t node, uint32_t cpu, uint32_t below)
{
	const struct tti_graph *graph = tti_handoff_graph(d->view, node);

	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const enum tti_node_type type = graph->nodes[i].type;

		if ((type == TTI_NODE_GPU || type == TTI_NODE_HOST || type == TTI_NODE_NET) &&
		    is_shown(d, node, i) && tti_graph_cpu_of(graph, i) == cpu &&
		    switch_of(graph, i) == below)
			add_box(d, node, i);
	}
}

static bool has_below(const struct drawing *d, uint32_t node, uint32_t at)
{
	const struct tti_graph *graph = tti_handoff_graph(d->view, node);

	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (is_shown(d, node, i) && switch_of(graph, i) == at)
			return true;
	return false;
}

static void add_cpu(struct drawing *d, uint32_t node, uint32_t cpu)
{
	const struct tti_graph *graph = tti_handoff_graph(d->view, node);

	open_frame(d, node, cpu, "#fafafa");
	tti_dot_text(d->out, graph->nodes[cpu].name);
	tti_strbuf_add(d->out, ">;\n");
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_PCI]; i++) {
		const uint32_t at = graph->by_type[TTI_NODE_PCI][i];

		if (tti_graph_cpu_of(graph, at) != cpu || !has_below(d, node, at))
			continue;
		open_frame(d, node, at, "#ececec");
		tti_strbuf_add(d->out, "switch ");
		tti_dot_text(d->out, graph->nodes[at].full_name);
		tti_strbuf_add(d->out, ">;\n");
		add_ends(d, node, cpu, at);
		tti_strbuf_add(d->out, "\t}\n");
	}
	add_ends(d, node, cpu, TTI_NODE_NONE);
	tti_strbuf_add(d->out, "\t}\n");
}

static void add_node(struct drawing *d, uint32_t node)
{
	const struct tti_graph *graph = tti_handoff_graph(d->view, node);

	tti_strbuf_addf(d->out,
			"\tsubgraph cluster_node%u {\n\tstyle=rounded; color=\"#888888\"; "
			"fontsize=13; label=<<b>",
			node);
	tti_dot_text(d->out, tti_handoff_node_name(d->view, node));
	tti_strbuf_add(d->out, "</b>>;\n");
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++)
		add_cpu(d, node, graph->by_type[TTI_NODE_CPU][i]);
	add_ends(d, node, TTI_NODE_NONE, TTI_NODE_NONE);
	tti_strbuf_add(d->out, "\t}\n");
}

static bool has_way(const struct drawing *d, uint32_t end, bool sends)
{
	for (uint32_t i = 0; i < d->leg->n; i++) {
		const struct tti_handoff_way *way = &d->view->plan->ways[d->leg->first + i];

		if (tti_handoff_end(d->view, sends ? way->from : way->to) == end)
			return true;
	}
	return false;
}

/* All ranks, and all NICs, of a node stand in one column: from left to right ranks, NICs,
 * NICs, ranks. */
static void add_columns(const struct drawing *d, uint32_t node, bool sends)
{
	const struct tti_job_node *job = tti_handoff_job_node(d->view, node);

	tti_strbuf_add(d->out, "\t{ rank=same;");
	for (size_t i = 0; i < d->ends.n; i++)
		tti_strbuf_addf(d->out, " n%u_%u;", node, d->ends.at[i]);
	tti_strbuf_add(d->out, " }\n\t{ rank=same;");
	for (uint32_t i = 0; i < job->nnets; i++)
		tti_strbuf_addf(d->out, " n%u_%u;", node, job->nets[i]);
	tti_strbuf_add(d->out, " }\n");
	for (size_t i = 0; i < d->ends.n && job->nnets; i++) {
		const uint32_t end = d->ends.at[i], net = job->nets[0];

		if (has_way(d, end, sends))
			continue;
		tti_strbuf_addf(d->out, "\tn%u_%u -> n%u_%u [style=invis, weight=0];\n", node,
				sends ? end : net, node, sends ? net : end);
	}
}

/* Keeps ranks in the order of their frames: a column of invisible ports with several edges from
 * each, as it costs Graphviz more to cross several edges (see print/print_dot.c). */
static void add_ruler(const struct drawing *d, uint32_t node, bool sends)
{
	tti_strbuf_addf(d->out, "\truler%u%s [label=<", node, sends ? "s" : "r");
	tti_dot_ports(d->out, "height=\"42\"", (uint32_t)d->ends.n, false);
	tti_strbuf_add(d->out, ">];\n");
	for (size_t i = 0; i < d->ends.n; i++)
		for (int copy = 0; copy < 4; copy++) {
			if (sends)
				tti_strbuf_addf(d->out, "\truler%us:p%zu:e -> n%u_%u", node, i,
						node, d->ends.at[i]);
			else
				tti_strbuf_addf(d->out, "\tn%u_%u -> ruler%ur:p%zu:w", node,
						d->ends.at[i], node, i);
			tti_strbuf_add(d->out, " [style=invis, weight=2];\n");
		}
}

/* -- Arrows ------------------------------------------------------------------------------------ */

static void add_way(const struct drawing *d, const struct tti_handoff_way *way, uint32_t number)
{
	const struct tti_handoff_view *view = d->view;
	const uint32_t a = d->leg->from_node, b = d->leg->to_node;
	const char *color = tti_dot_palette[number % TTI_DOT_COLORS];
	char share[TTI_HANDOFF_WORDS], gbps[24];

	tti_handoff_share_words(way->share, share);
	tti_gbps_words(way->gbps, gbps);
	tti_strbuf_addf(d->out, "\tn%u_%u -> n%u_%u [color=\"%s\", penwidth=2];\n", a,
			tti_handoff_end(view, way->from), a,
			tti_handoff_job_node(view, a)->nets[way->net_out], color);
	tti_strbuf_addf(d->out,
			"\tn%u_%u -> n%u_%u [color=\"%s\", penwidth=2, minlen=3, fontcolor=\"%s\", "
			"label=\"%s, %s GB/s\"];\n",
			a, tti_handoff_job_node(view, a)->nets[way->net_out], b,
			tti_handoff_job_node(view, b)->nets[way->net_in], color, color, share,
			gbps);
	tti_strbuf_addf(d->out, "\tn%u_%u -> n%u_%u [color=\"%s\", penwidth=2];\n", b,
			tti_handoff_job_node(view, b)->nets[way->net_in], b,
			tti_handoff_end(view, way->to), color);
}

/* GB/s from rank to rank of the receiving node, all trees together; by place in the node. NULL: out
 * of memory. */
static double *sum_trees(const struct drawing *d)
{
	const struct tti_handoff_plan *plan = d->view->plan;
	const size_t n = tti_handoff_job_node(d->view, d->leg->to_node)->nranks;
	double *used = tti_calloc(n * n, sizeof(*used));

	for (uint32_t i = 0; used && i < plan->ntrees; i++) {
		const struct tti_handoff_tree *tree = &plan->trees[i];

		for (uint32_t k = 1; tree->node == d->leg->to_node && k < tree->n; k++)
			used[d->view->place_of[tree->ranks[tree->parent[k]]] * n +
			     d->view->place_of[tree->ranks[k]]] += tree->share * plan->gbps;
	}
	return used;
}

/* As rows and columns, for as many arrows cannot be told apart; the more, the darker. */
static void add_spread(const struct drawing *d, const double *used, double most)
{
	const struct tti_job_node *job = tti_handoff_job_node(d->view, d->leg->to_node);
	char text[32];

	tti_strbuf_add(d->out, "\tinside [label=<");
	tti_dot_table(d->out, "cellborder=\"1\" cellspacing=\"0\" cellpadding=\"4\" "
			      "color=\"#cccccc\"");
	(void)snprintf(text, sizeof(text), "inside %.20s",
		       tti_handoff_node_name(d->view, d->leg->to_node));
	tti_dot_row(d->out, job->nranks + 1, text);
	tti_dot_row(d->out, job->nranks + 1, "GB/s from the rank of the row to that of the column");
	for (uint32_t i = 0; i <= job->nranks; i++) {
		tti_strbuf_add(d->out, i ? "<tr>" : "<tr><td border=\"0\"></td>");
		for (uint32_t j = i ? 0 : 1; j <= job->nranks; j++) {
			const double gbps = i && j ? used[(i - 1) * job->nranks + j - 1] : 0;

			if (i && j) {
				tti_gbps_words(gbps, text);
				tti_dot_cell(d->out,
					     gbps > most / 2 ? "bgcolor=\"#c8c8c8\""
					     : gbps > 0      ? "bgcolor=\"#ececec\""
							     : NULL,
					     gbps > 0 ? text : "");
			} else {
				(void)snprintf(text, sizeof(text), "%u",
					       job->ranks[(i ? i : j) - 1]);
				tti_dot_heading(d->out, "bgcolor=\"#f4f4f4\"", text);
			}
		}
		tti_strbuf_add(d->out, "</tr>\n");
	}
	tti_strbuf_addf(d->out, "</table>>];\n\truler%ur -> inside [style=invis];\n",
			d->leg->to_node);
}

static tutti_status add_inside(const struct drawing *d)
{
	const size_t n = tti_handoff_job_node(d->view, d->leg->to_node)->nranks;
	double *used = sum_trees(d), most = 0;

	if (!used)
		return tti_fail(TUTTI_ENOMEM, "picture of a handoff: out of memory");
	for (size_t i = 0; i < n * n; i++)
		most = used[i] > most ? used[i] : most;
	if (most > 0 && n <= MOST_RANKS)
		add_spread(d, used, most);
	tti_free(used);
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------------------- */

static void add_header(const struct drawing *d)
{
	const struct tti_handoff_plan *plan = d->view->plan;
	const struct tti_handoff_time time = tti_handoff_plan_time(plan, d->view->nbytes);
	char gbps[24], bound[24], bytes[TTI_HANDOFF_WORDS], us[TTI_HANDOFF_WORDS];
	struct tti_strbuf title = { 0 }, notes = { 0 };
	uint32_t nothers = 0;

	for (uint32_t i = 0; i < plan->nlegs; i++)
		nothers += &plan->legs[i] != d->leg;
	tti_gbps_words(plan->gbps, gbps);
	tti_gbps_words(plan->bound_gbps, bound);
	tti_handoff_bytes_words(d->view->nbytes, bytes);
	tti_handoff_time_words(time.us, us);
	tti_strbuf_addf(&title, "%s: handoff, %s GB/s of at most %s",
			tti_handoff_graph(d->view, d->leg->from_node)->source, gbps, bound);
	tti_strbuf_addf(&notes, "bound: %s\n%s: %s, %.2f times the bound\n", plan->bound, bytes, us,
			time.bound_us > 0 ? time.us / time.bound_us : 0.0);
	tti_strbuf_add(&notes, "a colour is a part of the vector, from rank to NIC to NIC to rank");
	if (nothers)
		tti_strbuf_addf(&notes, "\n%u more pairs of nodes are not drawn", nothers);
	d->out->failed |= title.failed || notes.failed;
	if (!d->out->failed)
		tti_dot_open(d->out, "rankdir=LR, newrank=true, ranksep=0.6, nodesep=0.12",
			     title.text, notes.text);
	tti_strbuf_release(&title);
	tti_strbuf_release(&notes);
}

static tutti_status draw(struct drawing *d)
{
	tutti_status st;

	add_header(d);
	for (int sends = 1; sends >= 0; sends--) {
		const uint32_t node = sends ? d->leg->from_node : d->leg->to_node;

		d->ends.n = 0;
		add_node(d, node);
		add_columns(d, node, sends);
		add_ruler(d, node, sends);
	}
	for (uint32_t i = 0; i < d->leg->n; i++)
		add_way(d, &d->view->plan->ways[d->leg->first + i], i);
	st = add_inside(d);
	tti_strbuf_add(d->out, "}\n");
	return st;
}

tutti_status tti_handoff_dot(const struct tti_handoff_job *handoff,
			     const struct tti_handoff_plan *plan, double nbytes,
			     struct tti_strbuf *out)
{
	struct tti_handoff_view view;
	struct drawing d = { .view = &view, .out = out };
	tutti_status st;

	for (uint32_t i = 0; i < plan->nlegs && !d.leg; i++)
		if (plan->legs[i].from_node != plan->legs[i].to_node)
			d.leg = &plan->legs[i];
	if (!d.leg)
		return tti_fail(TUTTI_EPLAN,
				"nothing of this handoff goes from node to node: there is nothing "
				"to draw");
	if (!tti_handoff_view_open(handoff, plan, nbytes, &view))
		return tti_fail(TUTTI_ENOMEM, "picture of a handoff: out of memory");
	st = draw(&d);
	tti_vec_release(&d.ends);
	tti_handoff_view_close(&view);
	return st;
}

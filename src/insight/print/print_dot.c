/* SPDX-License-Identifier: BSD-3-Clause */
/* From top to bottom: NVSwitch, GPUs and NICs, PCI switches, NUMA nodes, sockets. An
 * edge therefore runs from what hangs to what it hangs on. */
#include "insight/print/print_dot.h"
#include "insight/lint/lint.h"

#include <stdio.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "insight/topo/order.h"
#include "topo/graph/words.h"
#include "util/mem.h"

static const struct tti_node *node_at(const struct tti_picture *picture, uint32_t index)
{
	return &picture->graph->nodes[index];
}

static bool is_box(const struct tti_picture *picture, uint32_t index)
{
	return picture->places[index].box == index;
}

/* -- Clusters: hosts, and sockets side by side ---------------------------------------- */

/* The socket in whose frame a node stands; -1: none. */
static int socket_of(const struct tti_picture *picture, uint32_t index)
{
	uint32_t cpu = tti_graph_cpu_of(picture->graph, index);

	if (cpu != TTI_NODE_NONE)
		return node_at(picture, cpu)->cpu.package;
	for (uint32_t i = 0; i < picture->graph->ntype[TTI_NODE_CPU]; i++) {
		cpu = picture->graph->by_type[TTI_NODE_CPU][i];
		if (node_at(picture, cpu)->parent == index)
			return node_at(picture, cpu)->cpu.package;
	}
	return -1;
}

static void add_boxes(const struct tti_picture *picture, uint32_t host, int socket)
{
	const struct tti_graph *graph = picture->graph;

	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const uint32_t node = picture->order.walk[i];

		if (is_box(picture, node) && graph->nodes[node].host == host &&
		    socket_of(picture, node) == socket)
			tti_picture_add_box(picture, node);
	}
}

static const char *cpu_name(const struct tti_picture *picture, uint32_t host, int socket)
{
	const struct tti_graph *graph = picture->graph;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		const struct tti_node *node = node_at(picture, graph->by_type[TTI_NODE_CPU][i]);

		if (node->host == host && node->cpu.package == socket)
			return tti_graph_cpu_model(&node->cpu).name;
	}
	return NULL;
}

/* Its name stands outside, where the lines to other sockets do not cross it. */
static void add_socket(const struct tti_picture *picture, uint32_t host, int socket, int last)
{
	const char *name = cpu_name(picture, host, socket);
	struct tti_strbuf *out = picture->out;

	if (!name)
		return;
	tti_strbuf_addf(out,
			"\tsubgraph cluster_%u_%d {\n\tstyle=\"rounded,filled\"; "
			"color=\"#dddddd\"; fillcolor=\"#fafafa\"; labeljust=%c; labelloc=b;\n"
			"\tlabel=<socket %d",
			host, socket, last && socket > last / 2 ? 'r' : 'l', socket);
	if (strcmp(name, "unknown") != 0) {
		tti_strbuf_add(out, ": ");
		tti_dot_text(out, name);
	}
	tti_strbuf_add(out, ">;\n");
	add_boxes(picture, host, socket);
	tti_strbuf_add(out, "\t}\n");
}

static void add_host(const struct tti_picture *picture, uint32_t host)
{
	const struct tti_graph *graph = picture->graph;
	struct tti_strbuf *out = picture->out;
	int last = -1;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		const struct tti_node *node = node_at(picture, graph->by_type[TTI_NODE_CPU][i]);

		if (node->host == host && node->cpu.package > last)
			last = node->cpu.package;
	}
	if (graph->nhosts > 1) {
		tti_strbuf_addf(out, "\tsubgraph cluster_host%u {\n\tlabel=<host ", host);
		tti_dot_text(out, graph->hosts[host]);
		tti_strbuf_add(out, ">;\n");
	}
	add_boxes(picture, host, -1);
	for (int socket = 0; socket <= last; socket++)
		add_socket(picture, host, socket, last);
	if (graph->nhosts > 1)
		tti_strbuf_add(out, "\t}\n");
}

/* -- Edges ---------------------------------------------------------------------------- */

/* Where a box stands, from the top. */
static int level_of(enum tti_node_type type)
{
	switch (type) {
	case TTI_NODE_NVS:
		return 0;
	case TTI_NODE_GPU:
	case TTI_NODE_DEV:
	case TTI_NODE_NET:
	case TTI_NODE_NIC:
		return 1;
	case TTI_NODE_PCI:
		return 2;
	case TTI_NODE_CPU:
	case TTI_NODE_HOST:
		return 3;
	case TTI_NODE_PKG:
	default:
		return 4;
	}
}

static void add_edge(const struct tti_picture *picture, const struct tti_topo_link *link)
{
	const struct tti_node *from = node_at(picture, link->from);
	const struct tti_node *to = node_at(picture, link->to);
	const int rise = level_of(from->type) - level_of(to->type);
	const bool flip = rise > 0 || (rise == 0 && to->parent == link->from);
	const uint32_t n = picture->places[link->from].count + picture->places[link->to].count;
	/* A NIC that is no PCI function hangs on its CPU by nothing that could be slow. */
	const bool limits = (double)link->bw_gbps < TTI_LOC_GBPS;
	char gbps[TTI_WORDS_MAX] = "", times[24] = "";

	if (limits)
		tti_words_gbps((double)link->bw_gbps, gbps);
	if (limits && n > 1)
		snprintf(times, sizeof(times), "%u x ", n);
	tti_strbuf_addf(picture->out, "\tn%u -> n%u [label=\"%s%s\", ",
			flip ? link->to : link->from, flip ? link->from : link->to, times, gbps);
	tti_dot_stroke(picture->graph, picture->over, link, picture->out);
}

/* Two boxes side by side, not one above the other. */
static bool is_arch(const struct tti_graph *graph, const struct tti_topo_link *link)
{
	const struct tti_node *from = &graph->nodes[link->from], *to = &graph->nodes[link->to];

	return level_of(from->type) == level_of(to->type) && from->parent != link->to &&
	       to->parent != link->from;
}

/* A point of its own above GPUs or below CPUs: lines along a row would lie on each
 * other, and Graphviz draws some of them twice. */
static void add_arch(const struct tti_picture *picture, uint32_t index)
{
	const struct tti_topo_link *link = &picture->graph->links[index];
	char gbps[TTI_WORDS_MAX];

	tti_words_gbps((double)link->bw_gbps, gbps);
	tti_strbuf_addf(picture->out, "\tl%u [label=\"%s\", fontsize=9];\n", index, gbps);
	if (link->type == TTI_LINK_SYS)
		tti_strbuf_addf(picture->out, "\t{ n%u n%u } -> l%u [", link->from, link->to,
				index);
	else
		tti_strbuf_addf(picture->out, "\tl%u -> { n%u n%u } [minlen=2, ", index, link->from,
				link->to);
	tti_dot_stroke(picture->graph, picture->over, link, picture->out);
}

/* One direction of what links two boxes. A box of several NICs has one edge, that of
 * the first. */
static bool is_drawn(const struct tti_picture *picture, uint32_t index)
{
	const struct tti_topo_link *link = &picture->graph->links[index];

	return link->type != TTI_LINK_LOC && link->type != TTI_LINK_NET && index < link->reverse &&
	       is_box(picture, link->from) && is_box(picture, link->to);
}

/* Under an overlay there are enough lines without those that it does not use. */
static bool is_faded(const struct tti_picture *picture, uint32_t index)
{
	return picture->over && !picture->over->colors(picture->over->arg, index);
}

static void add_edges(const struct tti_picture *picture)
{
	const struct tti_graph *graph = picture->graph;

	for (uint32_t i = 0; i < graph->nlinks; i++) {
		if (!is_drawn(picture, i))
			continue;
		if (is_arch(graph, &graph->links[i]) && is_faded(picture, i))
			continue;
		if (is_arch(graph, &graph->links[i]))
			add_arch(picture, i);
		else
			add_edge(picture, &graph->links[i]);
	}
}

/* All boxes of a type side by side. */
static void add_rank(const struct tti_picture *picture, enum tti_node_type type)
{
	const struct tti_graph *graph = picture->graph;

	if (!graph->ntype[type])
		return;
	tti_strbuf_add(picture->out, "\t{ rank=same;");
	for (uint32_t i = 0; i < graph->ntype[type]; i++)
		tti_strbuf_addf(picture->out, " n%u;", graph->by_type[type][i]);
	tti_strbuf_add(picture->out, " }\n");
}

static bool is_foot(const struct tti_picture *picture, uint32_t index)
{
	return level_of(node_at(picture, index)->type) > level_of(TTI_NODE_PCI);
}

static bool is_head(const struct tti_picture *picture, uint32_t index)
{
	return level_of(node_at(picture, index)->type) == level_of(TTI_NODE_DEV);
}

/* What keeps boxes in the order of the tree: a row of ports that nobody sees, one for
 * each, for Graphviz has lines cross as little as can be. Edges within the row of boxes
 * would say it better, but it does not heed them across clusters. The box in the middle
 * of them, or NONE. */
static uint32_t add_ruler(const struct tti_picture *picture, const char *name, bool above,
			  bool (*has)(const struct tti_picture *picture, uint32_t index))
{
	const uint32_t *walk = picture->order.walk;
	const uint32_t nnodes = picture->graph->nnodes;
	struct tti_strbuf *out = picture->out;
	uint32_t middle = TTI_NODE_NONE;
	uint32_t n = 0;

	tti_strbuf_addf(out, "\t%s [label=<<table border=\"0\"><tr>", name);
	for (uint32_t i = 0; i < nnodes; i++)
		if (is_box(picture, walk[i]) && has(picture, walk[i])) {
			tti_strbuf_addf(out, "<td width=\"10\" port=\"n%u\"></td>", walk[i]);
			n++;
		}
	tti_strbuf_add(out, "<td></td></tr></table>>];\n");
	for (uint32_t i = 0, k = 0; i < nnodes; i++) {
		if (!is_box(picture, walk[i]) || !has(picture, walk[i]))
			continue;
		if (k++ == n / 2)
			middle = walk[i];
		/* To cross several edges at once is worse than to cross one. */
		for (int copy = 0; copy < 4; copy++) {
			if (above)
				tti_strbuf_addf(out, "\t%s:n%u -> n%u", name, walk[i], walk[i]);
			else
				tti_strbuf_addf(out, "\tn%u -> %s:n%u", walk[i], name, walk[i]);
			tti_strbuf_add(out, " [style=invis, weight=0];\n");
		}
	}
	return middle;
}

static void add_rulers(const struct tti_picture *picture)
{
	const struct tti_graph *graph = picture->graph;
	uint32_t held = add_ruler(picture, "head", true, is_head);

	/* Nothing else holds it above the machine. */
	if (graph->ntype[TTI_NODE_NVS])
		held = graph->by_type[TTI_NODE_NVS][0];
	if (held != TTI_NODE_NONE)
		tti_strbuf_addf(picture->out, "\thead -> n%u [style=invis];\n", held);
	(void)add_ruler(picture, "foot", false, is_foot);
}

/* -- The whole ------------------------------------------------------------------------ */

static void add_header(const struct tti_picture *picture)
{
	const struct tti_graph *graph = picture->graph;
	struct tti_strbuf *out = picture->out;

	tti_strbuf_add(out, "digraph tutti {\n\tgraph [newrank=true, ranksep=0.55, nodesep=0.22, "
			    "fontname=\"Helvetica\", labelloc=t, labeljust=l, fontsize=14, "
			    "bgcolor=white, label=<<b>");
	tti_dot_text(out, graph->source ? graph->source : "topology");
	if (picture->over) {
		tti_strbuf_add(out, ": ");
		tti_dot_text(out, picture->over->title);
	}
	tti_strbuf_add(out, "</b><br align=\"left\"/><font point-size=\"10\">at the lines: GB/s "
			    "in one direction</font><br align=\"left\"/>>];\n");
	tti_strbuf_add(out, "\tnode [shape=plain, fontname=\"Helvetica\", fontsize=11];\n"
			    "\tedge [dir=none, fontname=\"Helvetica\", fontsize=9];\n");
}

/* Below all else, so that its height does not tear the machine apart. */
static void add_tables(const struct tti_picture *picture, const struct tti_routes *routes)
{
	bool paths, findings;

	if (picture->over) {
		picture->over->table(picture->over->arg, picture->out);
		tti_strbuf_add(picture->out, "\tfoot -> overlay [style=invis];\n");
		return;
	}
	paths = tti_dot_paths(routes, picture->out);
	findings = tti_dot_findings(picture->lint, picture->graph->source, picture->out);
	if (paths && findings)
		tti_strbuf_add(picture->out, "\t{ rank=same; paths -> findings [style=invis]; }\n");
	if (paths || findings)
		tti_strbuf_addf(picture->out, "\tfoot -> %s [style=invis];\n",
				paths ? "paths" : "findings");
}

static void draw(struct tti_picture *picture, const struct tti_routes *routes)
{
	picture->places = tti_dot_places(picture->graph);
	if (picture->places && tti_print_order_make(picture->graph, &picture->order)) {
		add_header(picture);
		for (uint32_t host = 0; host < picture->graph->nhosts; host++)
			add_host(picture, host);
		add_edges(picture);
		add_rank(picture, TTI_NODE_DEV);
		add_rank(picture, TTI_NODE_CPU);
		add_rank(picture, TTI_NODE_PKG);
		add_rulers(picture);
		add_tables(picture, routes);
		tti_strbuf_add(picture->out, "}\n");
	} else {
		picture->out->failed = true;
	}
	tti_free(picture->places);
	tti_print_order_release(&picture->order);
}

void tti_print_dot(const struct tti_routes *routes, const struct tti_lint *lint,
		   struct tti_strbuf *out)
{
	struct tti_picture picture = { .graph = routes->paths->graph, .lint = lint, .out = out };

	draw(&picture, routes);
}

void tti_print_dot_over(const struct tti_routes *routes, const struct tti_dot_overlay *overlay,
			struct tti_strbuf *out)
{
	struct tti_picture picture = { .graph = routes->paths->graph, .out = out, .over = overlay };

	draw(&picture, routes);
}

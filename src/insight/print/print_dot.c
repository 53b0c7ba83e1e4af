/* SPDX-License-Identifier: BSD-3-Clause */
/* From top to bottom: NVSwitch, GPUs and NICs, PCI switches, NUMA nodes, sockets. An
 * edge therefore runs from what hangs to what it hangs on. */
#include "insight/print/print_dot.h"
#include "insight/lint/lint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "insight/topo/order.h"
#include "insight/write/dot.h"
#include "topo/graph/words.h"
#include "util/mem.h"

/* More NVLinks from GPU to GPU than that are a tangle of lines. */
#define MESH_LINES 4

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

/* The level of a box, counted from the top. */
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

/* Twice as wide for six times as fast or so: 12 and 448 GB/s are both to be seen. What is
 * as fast as a device is inside is no wire. */
static double line_width(double gbps)
{
	return 0.7 + 0.9 * log2(1 + (gbps >= TTI_LOC_GBPS ? 1 : gbps) / 4);
}

static const char *edge_color(enum tti_link_type type)
{
	switch (type) {
	case TTI_LINK_NVL:
		return "#5aa832";
	case TTI_LINK_C2C:
		return "#7a4fb0";
	case TTI_LINK_SYS:
		return "#c98a1b";
	case TTI_LINK_LOC:
	case TTI_LINK_PCI:
	case TTI_LINK_NET:
	default:
		return "#6f7f8f";
	}
}

/* The channels of an overlay that use a link in its direction, a bit for each. */
static uint16_t used_by(const struct tti_picture *picture, uint32_t link)
{
	return picture->over ? picture->over->colors[link] : 0;
}

static bool is_used(const struct tti_picture *picture, uint32_t link)
{
	return used_by(picture, link) || used_by(picture, picture->graph->links[link].reverse);
}

/* The end of an edge without an arrow. What an overlay does not use fades. */
static void add_stroke(const struct tti_picture *picture, const struct tti_topo_link *link)
{
	if (picture->over)
		tti_strbuf_add(picture->out, "dir=none, penwidth=0.7, color=\"#c8c8c8\", "
					     "fontcolor=\"#999999\"];\n");
	else
		tti_strbuf_addf(picture->out, "dir=none, penwidth=%.2f, color=\"%s\"];\n",
				line_width((double)link->bw_gbps), edge_color(link->type));
}

/* The end of an edge whose colours lie side by side, as lines of a metro do. */
static void add_colors(const struct tti_picture *picture, uint16_t used, const char *dir)
{
	uint32_t n = 0;

	tti_strbuf_addf(picture->out, "dir=%s, arrowsize=0.6, color=\"", dir);
	for (uint32_t i = 0; i < TTI_DOT_COLORS; i++)
		if (used >> i & 1)
			tti_strbuf_addf(picture->out, "%s%s", n++ ? ":" : "", tti_dot_palette[i]);
	tti_strbuf_addf(picture->out, "\", penwidth=%s];\n", n > 6 ? "1.5" : "2.2");
}

/* One line; under an overlay one for each direction that it uses. */
static void add_edge(const struct tti_picture *picture, uint32_t index)
{
	const struct tti_topo_link *link = &picture->graph->links[index];
	const struct tti_node *from = node_at(picture, link->from);
	const struct tti_node *to = node_at(picture, link->to);
	const int rise = level_of(from->type) - level_of(to->type);
	const bool flip = rise > 0 || (rise == 0 && to->parent == link->from);
	const uint32_t n = picture->places[link->from].count + picture->places[link->to].count;
	/* A NIC that is no PCI function hangs on its CPU by nothing that could be slow. */
	const bool limits = (double)link->bw_gbps < TTI_LOC_GBPS;
	char gbps[TTI_WORDS_MAX] = "", times[24] = "", ends[64];

	if (limits)
		tti_words_gbps((double)link->bw_gbps, gbps);
	if (limits && n > 1)
		snprintf(times, sizeof(times), "%u x ", n);
	snprintf(ends, sizeof(ends), "\tn%u -> n%u [", flip ? link->to : link->from,
		 flip ? link->from : link->to);
	if (!is_used(picture, index)) {
		tti_strbuf_addf(picture->out, "%slabel=\"%s%s\", ", ends, times, gbps);
		add_stroke(picture, link);
		return;
	}
	for (int way = 0; way < 2; way++) {
		const uint16_t used = used_by(picture, way ? link->reverse : index);

		if (!used)
			continue;
		tti_strbuf_addf(picture->out, "%slabel=\"%s%s\", ", ends, times, gbps);
		add_colors(picture, used, (way == 1) == flip ? "forward" : "back");
		times[0] = gbps[0] = '\0';
	}
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
	const uint32_t ends[2] = { link->from, link->to };
	const bool below = link->type == TTI_LINK_SYS;
	char gbps[TTI_WORDS_MAX];

	tti_words_gbps((double)link->bw_gbps, gbps);
	tti_strbuf_addf(picture->out, "\tl%u [label=\"%s\", fontsize=9];\n", index, gbps);
	for (int end = 0; end < 2; end++)
		for (int way = 0; way < 2; way++) {
			const uint16_t used = used_by(picture, way ? link->reverse : index);
			const char *arrow = below ? "back" : "forward";

			if (picture->over ? !used : way)
				continue;
			if (below)
				tti_strbuf_addf(picture->out, "\tn%u -> l%u [", ends[end], index);
			else
				tti_strbuf_addf(picture->out, "\tl%u -> n%u [minlen=2, ", index,
						ends[end]);
			if (picture->over)
				add_colors(picture, used, end == way ? "none" : arrow);
			else
				add_stroke(picture, link);
		}
}

/* One direction of what links two boxes. A box of several NICs has one edge, that of
 * the first. */
static bool is_drawn(const struct tti_picture *picture, uint32_t index)
{
	const struct tti_topo_link *link = &picture->graph->links[index];

	return link->type != TTI_LINK_LOC && link->type != TTI_LINK_NET && index < link->reverse &&
	       is_box(picture, link->from) && is_box(picture, link->to);
}

static bool is_nvlink_arch(const struct tti_picture *picture, uint32_t index)
{
	return picture->graph->links[index].type == TTI_LINK_NVL && is_drawn(picture, index) &&
	       is_arch(picture->graph, &picture->graph->links[index]);
}

static bool has_mesh(const struct tti_picture *picture)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < picture->graph->nlinks; i++)
		n += is_nvlink_arch(picture, i);
	return n > MESH_LINES;
}

static void add_edges(const struct tti_picture *picture)
{
	const struct tti_graph *graph = picture->graph;

	for (uint32_t i = 0; i < graph->nlinks; i++) {
		const bool arch = is_arch(graph, &graph->links[i]);

		if (!is_drawn(picture, i) || (picture->mesh && is_nvlink_arch(picture, i)))
			continue;
		/* Under an overlay there are enough lines without arches that it does not use. */
		if (!arch)
			add_edge(picture, i);
		else if (!picture->over || is_used(picture, i))
			add_arch(picture, i);
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

/* Keeps boxes in the order of the tree: a row of invisible ports, one for each box, as Graphviz
 * lets lines cross as little as possible. Edges within the row of boxes would say it better, but
 * it does not heed them across clusters. A table may stand below the ports. The box in the
 * middle of them, or NONE. */
static uint32_t add_ruler(const struct tti_picture *picture, const char *name, bool above,
			  bool (*has)(const struct tti_picture *picture, uint32_t index),
			  const char *table)
{
	struct tti_strbuf *out = picture->out, edges = { 0 };
	const uint32_t *walk = picture->order.walk;
	uint32_t middle = TTI_NODE_NONE, n = 0;

	for (uint32_t i = 0; i < picture->graph->nnodes; i++)
		n += is_box(picture, walk[i]) && has(picture, walk[i]);
	for (uint32_t i = 0, k = 0; i < picture->graph->nnodes; i++) {
		if (!is_box(picture, walk[i]) || !has(picture, walk[i]))
			continue;
		if (k == n / 2)
			middle = walk[i];
		/* To cross several edges at once is worse than to cross one. */
		for (int copy = 0; copy < 4; copy++) {
			if (above)
				tti_strbuf_addf(&edges, "\t%s:p%u -> n%u", name, k, walk[i]);
			else
				tti_strbuf_addf(&edges, "\tn%u -> %s:p%u", walk[i], name, k);
			tti_strbuf_add(&edges, " [style=invis, weight=0];\n");
		}
		k++;
	}
	tti_strbuf_addf(out, "\t%s [label=<", name);
	tti_dot_table(out, "cellspacing=\"0\" cellpadding=\"0\"");
	tti_strbuf_add(out, "<tr><td>");
	tti_dot_ports(out, "width=\"10\"", n, true);
	tti_strbuf_addf(out, "</td></tr>\n<tr><td>%s</td></tr></table>>];\n%s", table,
			edges.len ? edges.text : "");
	out->failed |= edges.failed;
	tti_strbuf_release(&edges);
	return middle;
}

static void add_head(const struct tti_picture *picture)
{
	const struct tti_graph *graph = picture->graph;
	uint32_t held = add_ruler(picture, "head", true, is_head, "");

	/* Nothing else holds it above the machine. */
	if (graph->ntype[TTI_NODE_NVS])
		held = graph->by_type[TTI_NODE_NVS][0];
	if (held != TTI_NODE_NONE)
		tti_strbuf_addf(picture->out, "\thead -> n%u [style=invis];\n", held);
}

/* -- The whole ------------------------------------------------------------------------ */

/* The devices whose NVLinks stand in a table under an overlay. */
static void add_mesh(const struct tti_picture *picture, struct tti_strbuf *out)
{
	const struct tti_graph *graph = picture->graph;
	uint32_t *devices = tti_calloc((size_t)graph->nnodes + 1, sizeof(*devices)), n = 0;

	for (uint32_t i = 0; devices && i < graph->nnodes; i++) {
		const struct tti_node *node = node_at(picture, picture->order.walk[i]);
		bool any = false;

		for (uint32_t k = 0; node->type == TTI_NODE_DEV && k < node->nlinks; k++)
			any |= graph->links[node->first_link + k].type == TTI_LINK_NVL;
		if (any)
			devices[n++] = picture->order.walk[i];
	}
	out->failed |= !devices;
	if (devices)
		tti_dot_mesh(graph, picture->places, devices, n, picture->over->colors, out);
	tti_free(devices);
}

/* Whether the row of the lower ruler has the points of links between CPUs, too. */
static bool has_arches_below(const struct tti_picture *picture)
{
	for (uint32_t i = 0; i < picture->graph->nlinks; i++)
		if (picture->graph->links[i].type == TTI_LINK_SYS && is_drawn(picture, i) &&
		    is_arch(picture->graph, &picture->graph->links[i]) &&
		    (!picture->over || is_used(picture, i)))
			return true;
	return false;
}

/* Two tables side by side; either may be empty. The first is one with the ports of the lower
 * ruler where that row would be empty without. */
static void add_tables(const struct tti_picture *picture, const struct tti_strbuf *left,
		       const struct tti_strbuf *right)
{
	struct tti_strbuf *out = picture->out;
	const bool apart = has_arches_below(picture);
	const struct tti_strbuf *first = left->len ? left : right;
	const char *table = first->len ? first->text : "";

	(void)add_ruler(picture, "foot", false, is_foot, apart ? "" : table);
	if (apart && first->len)
		tti_strbuf_addf(out, "\ttable [label=<%s>];\n\tfoot -> table [style=invis];\n",
				table);
	if (first == left && right->len)
		tti_strbuf_addf(out,
				"\tbeside [label=<%s>];\n"
				"\t{ rank=same; %s -> beside [style=invis]; }\n",
				right->text, apart ? "table" : "foot");
	out->failed |= left->failed || right->failed;
}

static void add_foot(const struct tti_picture *picture, const struct tti_routes *routes)
{
	struct tti_strbuf left = { 0 }, right = { 0 };

	if (picture->over) {
		picture->over->table(picture->over->arg, &left);
		if (picture->mesh)
			add_mesh(picture, &right);
	} else {
		tti_dot_paths(routes, &left);
		tti_dot_findings(picture->lint, picture->graph->source, &right);
	}
	add_tables(picture, &left, &right);
	tti_strbuf_release(&left);
	tti_strbuf_release(&right);
}

static void add_header(const struct tti_picture *picture)
{
	const char *source = picture->graph->source ? picture->graph->source : "topology";
	struct tti_strbuf title = { 0 }, notes = { 0 };

	tti_strbuf_addf(&title, "%s%s%s", source, picture->over ? ": " : "",
			picture->over ? picture->over->title : "");
	tti_strbuf_addf(&notes, "at the lines: GB/s in one direction%s%s",
			picture->over ? "\n" : "", picture->over ? picture->over->notes : "");
	picture->out->failed |= title.failed || notes.failed;
	if (!picture->out->failed)
		tti_dot_open(picture->out, "newrank=true, ranksep=0.55, nodesep=0.22", title.text,
			     notes.text);
	tti_strbuf_release(&title);
	tti_strbuf_release(&notes);
}

static void draw(struct tti_picture *picture, const struct tti_routes *routes)
{
	picture->places = tti_dot_places(picture->graph);
	if (picture->places && tti_print_order_make(picture->graph, &picture->order)) {
		picture->mesh = has_mesh(picture);
		add_header(picture);
		for (uint32_t host = 0; host < picture->graph->nhosts; host++)
			add_host(picture, host);
		add_edges(picture);
		add_rank(picture, TTI_NODE_DEV);
		add_rank(picture, TTI_NODE_CPU);
		add_rank(picture, TTI_NODE_PKG);
		add_head(picture);
		add_foot(picture, routes);
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

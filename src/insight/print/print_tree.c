/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree: a row for each thing, with the lines of the tree in front of its name. */
#include "insight/print/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "insight/topo/order.h"
#include "insight/write/table.h"
#include "topo/graph/words.h"
#include "util/mem.h"

struct tree {
	const struct tti_graph *graph;
	const struct tti_print_config *config;
	struct tti_arena arena; /* of stems */
	struct tti_table table;
	struct tti_print_order order;
	bool failed;
};

struct stroke {
	const char *child, *last, *through, *blank;
};
static const struct stroke utf8_strokes = { "├─ ", "└─ ", "│  ", "   " };
static const struct stroke ascii_strokes = { "|- ", "`- ", "|  ", "   " };

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define RESET "\033[0m"

/* The colour of a name. */
static const char *color_of(enum tti_node_type type)
{
	switch (type) {
	case TTI_NODE_GPU:
	case TTI_NODE_DEV:
		return "\033[1;32m";
	case TTI_NODE_NET:
	case TTI_NODE_NIC:
		return "\033[1;36m";
	case TTI_NODE_CPU:
	case TTI_NODE_PKG:
		return "\033[1;33m";
	case TTI_NODE_HOST:
	case TTI_NODE_PCI:
	case TTI_NODE_NVS:
	default:
		return NULL;
	}
}

/* How many children of a type a node has, and the first of them. */
static uint32_t count_children(const struct tree *tree, uint32_t node, enum tti_node_type type,
			       uint32_t *first_out)
{
	uint32_t n = 0;

	for (uint32_t i = tree->order.first[node + 1]; i-- > tree->order.first[node];)
		if (tree->graph->nodes[tree->order.nodes[i]].type == type) {
			*first_out = tree->order.nodes[i];
			n++;
		}
	return n;
}

/* -- One row ---------------------------------------------------------------------- */

/* The text of `buf` as the next cell; the buffer is empty again. */
static void add_cell(struct tree *tree, const char *color, struct tti_strbuf *buf)
{
	tti_table_cell(&tree->table, color, buf->text ? buf->text : "");
	tree->failed |= buf->failed;
	tti_strbuf_release(buf);
}

/* "switch", "CPU" ... where the name would say nothing. */
static void name_of(const struct tti_node *node, struct tti_strbuf *out)
{
	if (node->type == TTI_NODE_CPU && node->cpu.numaid >= 0)
		tti_strbuf_addf(out, "NUMA %" PRId64, node->cpu.numaid);
	else if (node->type == TTI_NODE_CPU)
		tti_strbuf_add(out, "CPUs");
	else if (node->type == TTI_NODE_PKG)
		tti_strbuf_addf(out, "socket %s", node->name + strcspn(node->name, "0123456789"));
	else if (node->type == TTI_NODE_PCI)
		tti_strbuf_add(out, tti_print_function(node->pci.class_code));
	else if (node->type == TTI_NODE_NIC)
		tti_strbuf_add(out, "NIC");
	else if (node->type == TTI_NODE_DEV)
		tti_strbuf_add(out, "device");
	else
		tti_words_text(node->name, out);
}

static void add_gpu_words(const struct tti_gpu_info *gpu, struct tti_strbuf *out)
{
	/* "gfx90a", which files also write as 910 */
	if (gpu->gcn && strncmp(gpu->gcn, "gfx", 3) != 0)
		tti_strbuf_add(out, "gcn ");
	if (gpu->gcn)
		tti_words_text(gpu->gcn, out);
	else if (gpu->sm)
		tti_strbuf_addf(out, "sm %d", gpu->sm);
}

/* CPUs have no place, link or speed, so their description follows the name at once. */
static bool is_loose(enum tti_node_type type)
{
	return type == TTI_NODE_CPU || type == TTI_NODE_PKG;
}

/* ", memory 125.6 GiB 153.6 GB/s 90 ns (data sheet)": what is known of it. */
static void add_memory(const struct tti_cpu_info *cpu, struct tti_strbuf *out)
{
	char text[TTI_WORDS_MAX];

	if (cpu->mem_mib < 0 && !(cpu->mem_gbps > 0))
		return;
	tti_strbuf_add(out, ", memory");
	if (cpu->mem_mib >= 0) {
		tti_print_memory_size(cpu->mem_mib, text);
		tti_strbuf_addf(out, " %s", text);
	}
	if (!(cpu->mem_gbps > 0))
		return;
	tti_words_gbps(cpu->mem_gbps, text);
	tti_strbuf_addf(out, " %s GB/s %.0f ns", text, cpu->mem_ns);
	if (!cpu->mem_measured)
		tti_strbuf_addf(out, " (%s)", tti_print_memory(cpu));
}

static void add_cpu(const struct tti_node *node, struct tti_strbuf *out)
{
	const char *name = tti_graph_cpu_model(&node->cpu).name;
	struct tti_strbuf cpus = { 0 };

	if (strcmp(name, "unknown") != 0)
		tti_strbuf_addf(out, "%s, ", name);
	tti_words_cpus(node->cpu.affinity, &cpus);
	tti_strbuf_addf(out, "%s%s", cpus.text ? "cpus " : "no cpus", cpus.text ? cpus.text : "");
	if (node->cpu.npackages > 1)
		tti_strbuf_addf(out, " of %d sockets", node->cpu.npackages);
	add_memory(&node->cpu, out);
	if (cpus.failed)
		out->failed = true;
	tti_strbuf_release(&cpus);
}

/* A NIC that is no PCI function has none. */
static bool has_busid(const struct tti_node *device)
{
	return device->pci.busid != TTI_BUSID_NONE;
}

static void what_of(const struct tti_node *node, const struct tti_node *device,
		    struct tti_strbuf *out)
{
	char text[TTI_WORDS_MAX];

	if (node->type == TTI_NODE_CPU)
		add_cpu(node, out);
	if (!device || !has_busid(device))
		return;
	tti_words_pci(&device->pci, text);
	if (node->type != TTI_NODE_PCI || tti_words_vendor(device->pci.vendor))
		tti_strbuf_add(out, text);
	if (node->type == TTI_NODE_GPU && (node->gpu.sm || node->gpu.gcn)) {
		tti_strbuf_add(out, ", ");
		add_gpu_words(&node->gpu, out);
	}
}

/* The link towards the CPU, of a device. */
static const struct tti_topo_link *uplink(const struct tti_graph *graph, uint32_t node)
{
	const uint32_t parent = graph->nodes[node].parent;

	return parent == TTI_NODE_NONE ? NULL : tti_graph_link(graph, node, parent, TTI_LINK_PCI);
}

static void add_nvlinks(const struct tti_graph *graph, uint32_t device, struct tti_strbuf *out)
{
	const struct tti_node *node = &graph->nodes[device];
	unsigned nlinks = 0, npeers = 0;
	bool to_switch = false;
	double gbps = 0;
	char text[TTI_WORDS_MAX];

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[node->first_link + i];

		if (link->type != TTI_LINK_NVL)
			continue;
		to_switch |= graph->nodes[link->to].type == TTI_NODE_NVS;
		nlinks += link->count;
		npeers++;
		gbps += (double)link->bw_gbps;
	}
	if (!npeers)
		return;
	tti_words_gbps(gbps, text);
	tti_strbuf_addf(out, "%s%u %s%s to ", out->len ? ", " : "", nlinks,
			node->gpu.gcn ? "xGMI link" : "NVLink", nlinks == 1 ? "" : "s");
	if (to_switch)
		tti_strbuf_add(out, "NVSwitch");
	else
		tti_strbuf_addf(out, "%u GPU%s", npeers, npeers == 1 ? "" : "s");
	tti_strbuf_addf(out, " %s GB/s", text);
}

static void add_c2c(const struct tti_graph *graph, uint32_t device, struct tti_strbuf *out)
{
	const struct tti_topo_link *link =
		tti_graph_link(graph, device, tti_graph_cpu_of(graph, device), TTI_LINK_C2C);
	char text[TTI_WORDS_MAX];

	if (!link)
		return;
	tti_words_gbps((double)link->bw_gbps, text);
	tti_strbuf_addf(out, "%s%u C2C link%s to its CPU %s GB/s", out->len ? ", " : "",
			link->count, link->count == 1 ? "" : "s", text);
}

static void add_net(const struct tti_graph *graph, const struct tti_net_info *net,
		    struct tti_strbuf *out)
{
	char text[TTI_WORDS_MAX];

	tti_words_net_speed(net->speed_mbps, text);
	tti_strbuf_add(out, text);
	if (net->port >= 0)
		tti_strbuf_addf(out, ", port %d", net->port);
	if (net->is_virtual)
		tti_strbuf_add(out, ", virtual by its name");
	if (net->rail >= 0)
		tti_strbuf_addf(out, ", rail %d", net->rail);
	if (net->plane >= 0)
		tti_strbuf_addf(out, ", plane %d", net->plane);
	if (!net->gdr && graph->ntype[TTI_NODE_GPU])
		tti_strbuf_add(out, ", no GPUDirect");
}

static void more_of(struct tree *tree, uint32_t index, uint32_t device, struct tti_strbuf *out)
{
	const struct tti_node *node = &tree->graph->nodes[index];

	if (node->type == TTI_NODE_NET)
		add_net(tree->graph, &node->net, out);
	if (node->type == TTI_NODE_GPU && node->gpu.rank >= 0)
		tti_strbuf_addf(out, "rank %d", node->gpu.rank);
	if ((node->type == TTI_NODE_GPU || node->type == TTI_NODE_DEV) && device != TTI_NODE_NONE) {
		add_nvlinks(tree->graph, device, out);
		add_c2c(tree->graph, device, out);
	}
	if (node->type == TTI_NODE_GPU && node->gpu.bare)
		tti_strbuf_addf(out, "%sno driver", out->len ? ", " : "");
}

/* `device` is what the thing is plugged in with: itself, the DEV of a GPU, the NIC of a
 * NET; NONE. */
static void add_row(struct tree *tree, const char *stem, uint32_t index, uint32_t device)
{
	const struct tti_node *node = &tree->graph->nodes[index];
	const struct tti_node *plugged =
		device == TTI_NODE_NONE ? NULL : &tree->graph->nodes[device];
	const struct tti_topo_link *link =
		plugged && has_busid(plugged) ? uplink(tree->graph, device) : NULL;
	struct tti_strbuf buf = { 0 };
	char text[TTI_WORDS_MAX];

	tree->table.loose = is_loose(node->type);
	name_of(node, &buf);
	add_cell(tree, color_of(node->type), &buf);
	tti_table_lead(&tree->table, stem);
	what_of(node, plugged, &buf);
	add_cell(tree, NULL, &buf);
	if (plugged && has_busid(plugged))
		tti_strbuf_add(&buf, tti_busid_format(plugged->pci.busid, text));
	add_cell(tree, DIM, &buf);
	if (link) {
		tti_words_pci_link(&plugged->pci, text);
		tti_strbuf_add(&buf, text[0] ? text : "assumed");
	}
	add_cell(tree, DIM, &buf);
	if (link) {
		tti_words_gbps((double)link->bw_gbps, text);
		tti_strbuf_addf(&buf, "%s GB/s", text);
	}
	add_cell(tree, NULL, &buf);
	more_of(tree, index, device, &buf);
	add_cell(tree, NULL, &buf);
	tti_table_end_row(&tree->table);
}

/* -- The rows of a tree ----------------------------------------------------------- */

static bool has_device(enum tti_node_type type)
{
	return type == TTI_NODE_PCI || type == TTI_NODE_DEV || type == TTI_NODE_NIC;
}

static bool is_shown(const struct tti_node *node)
{
	return node->type != TTI_NODE_NVS && node->type != TTI_NODE_HOST;
}

static const char *join(struct tree *tree, const char *a, const char *b)
{
	const size_t len = strlen(a), more = strlen(b) + 1;
	char *text = tti_arena_alloc(&tree->arena, len + more);

	tree->failed |= !text;
	if (!text)
		return "";
	memcpy(text, a, len);
	memcpy(text + len, b, more);
	return text;
}

static void add_children(struct tree *tree, const char *stem, uint32_t parent, uint32_t host);

/* A device with one GPU, or a card with one port, is one row. */
static void add_node(struct tree *tree, const char *stem, const char *below, uint32_t index)
{
	const struct tti_node *node = &tree->graph->nodes[index];
	uint32_t only = TTI_NODE_NONE;

	if (node->type == TTI_NODE_DEV && count_children(tree, index, TTI_NODE_GPU, &only) == 1) {
		add_row(tree, stem, only, index);
	} else if (node->type == TTI_NODE_NIC &&
		   count_children(tree, index, TTI_NODE_NET, &only) == 1) {
		add_row(tree, stem, only, index);
	} else {
		add_row(tree, stem, index, has_device(node->type) ? index : TTI_NODE_NONE);
		add_children(tree, below, index, UINT32_MAX);
	}
}

/* Below `parent` (nnodes: what has none, of one host). */
static void add_children(struct tree *tree, const char *stem, uint32_t parent, uint32_t host)
{
	const struct stroke *strokes = tree->config->utf8 ? &utf8_strokes : &ascii_strokes;
	const struct tti_node *nodes = tree->graph->nodes;
	uint32_t left = 0;

	for (uint32_t i = tree->order.first[parent]; i < tree->order.first[parent + 1]; i++)
		left += is_shown(&nodes[tree->order.nodes[i]]) &&
			(host == UINT32_MAX || nodes[tree->order.nodes[i]].host == host);
	for (uint32_t i = tree->order.first[parent]; i < tree->order.first[parent + 1]; i++) {
		const uint32_t child = tree->order.nodes[i];

		if (!is_shown(&nodes[child]) || (host != UINT32_MAX && nodes[child].host != host))
			continue;
		left--;
		add_node(tree, join(tree, stem, left ? strokes->child : strokes->last),
			 join(tree, stem, left ? strokes->through : strokes->blank), child);
	}
}

static void add_hosts(struct tree *tree)
{
	const struct tti_graph *graph = tree->graph;
	struct tti_strbuf buf = { 0 };

	for (uint32_t host = 0; host < graph->nhosts; host++) {
		if (graph->nhosts > 1) {
			tti_strbuf_addf(&buf, "host %s", graph->hosts[host]);
			add_cell(tree, NULL, &buf);
			tti_table_end_row(&tree->table);
		}
		add_children(tree, "", graph->nnodes, host);
	}
}

/* -- Writing ---------------------------------------------------------------------- */

static void add_count(struct tti_strbuf *out, bool *any, uint32_t n, const char *what)
{
	if (!n)
		return;
	tti_strbuf_addf(out, "%s%u %s%s", *any ? ", " : "", n, what, n == 1 ? "" : "s");
	*any = true;
}

/* Cores of no NUMA node stand beside those that there are. */
static uint32_t count_numa(const struct tti_graph *graph)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++)
		n += graph->nodes[graph->by_type[TTI_NODE_CPU][i]].cpu.numaid >= 0;
	return n ? n : graph->ntype[TTI_NODE_CPU];
}

static bool is_assumed(const struct tti_graph *graph)
{
	for (uint32_t i = 0; i < graph->nnotes; i++)
		if (graph->notes[i].kind == TTI_NOTE_ASSUMED_SOCKET)
			return true;
	return false;
}

static void write_title(const struct tree *tree, struct tti_strbuf *out)
{
	const struct tti_graph *graph = tree->graph;
	bool any = false;

	if (tree->config->color)
		tti_strbuf_add(out, BOLD);
	tti_words_text(graph->source ? graph->source : "topology", out);
	if (tree->config->color)
		tti_strbuf_add(out, RESET);
	tti_strbuf_add(out, ": ");
	add_count(out, &any, graph->nhosts > 1 ? graph->nhosts : 0, "host");
	add_count(out, &any, graph->nsockets, "socket");
	if (is_assumed(graph))
		tti_strbuf_add(out, " (assumed)");
	add_count(out, &any, count_numa(graph), "NUMA node");
	add_count(out, &any, graph->ntype[TTI_NODE_GPU], "GPU");
	add_count(out, &any, graph->ntype[TTI_NODE_NET], "NIC port");
	tti_strbuf_add(out, any ? "\n" : "nothing\n");
}

void tti_print_tree(const struct tti_graph *graph, const struct tti_print_config *config,
		    struct tti_strbuf *out)
{
	struct tree tree = { .graph = graph,
			     .config = config,
			     .table = { .align = "<<<<><", .color = config->color } };

	if (tti_print_order_make(graph, &tree.order))
		add_hosts(&tree);
	else
		tree.failed = true;
	write_title(&tree, out);
	tti_table_write(&tree.table, out);
	tti_print_links(graph, out);
	if (tree.failed)
		out->failed = true;
	tti_arena_release(&tree.arena);
	tti_print_order_release(&tree.order);
}

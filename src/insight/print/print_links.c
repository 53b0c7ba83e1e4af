/* SPDX-License-Identifier: BSD-3-Clause */
/* The links that a tree cannot show: between GPUs, and between CPUs. */
#include "insight/print/print.h"

#include <stdio.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "insight/write/table.h"
#include "topo/graph/words.h"
#include "util/mem.h"
#include "util/vec.h"

/* A wider table would be folded by every terminal. */
#define TABLE_MAX 32

static bool is_mesh_link(const struct tti_graph *graph, const struct tti_topo_link *link)
{
	return link->type == TTI_LINK_NVL && graph->nodes[link->to].type == TTI_NODE_DEV;
}

struct mesh {
	const struct tti_graph *graph;
	TTI_VEC(uint32_t) devices;
	const char **names; /* of each node: for a device, its first GPU's */
	double each_gbps;   /* of one link; 0: they differ */
	bool xgmi;
};

static const char *name_of(const struct mesh *mesh, uint32_t device)
{
	const char *name = mesh->names[device];

	return name ? name : mesh->graph->nodes[device].name;
}

static bool find_names(struct mesh *mesh)
{
	const struct tti_graph *graph = mesh->graph;

	mesh->names = tti_calloc((size_t)graph->nnodes + 1, sizeof(*mesh->names));
	for (uint32_t i = graph->ntype[TTI_NODE_GPU]; mesh->names && i-- > 0;) {
		const struct tti_node *gpu = &graph->nodes[graph->by_type[TTI_NODE_GPU][i]];

		if (gpu->parent != TTI_NODE_NONE)
			mesh->names[gpu->parent] = gpu->name;
	}
	return mesh->names != NULL;
}

static bool same_speed(double a, double b)
{
	return a > b * 0.999 && a < b * 1.001;
}

/* Whether a device has links into the mesh; notes how fast one of them is. */
static bool look_at(struct mesh *mesh, uint32_t device)
{
	const struct tti_node *node = &mesh->graph->nodes[device];
	bool inside = false;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &mesh->graph->links[node->first_link + i];
		const double each = (double)link->bw_gbps / (link->count ? link->count : 1);

		if (!is_mesh_link(mesh->graph, link))
			continue;
		if (!mesh->devices.n && !inside)
			mesh->each_gbps = each;
		else if (!same_speed(each, mesh->each_gbps))
			mesh->each_gbps = 0;
		inside = true;
	}
	return inside;
}

/* In the order of their first GPUs. */
static void find_mesh(struct mesh *mesh, struct tti_strbuf *out)
{
	const struct tti_graph *graph = mesh->graph;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_GPU]; i++) {
		const struct tti_node *gpu = &graph->nodes[graph->by_type[TTI_NODE_GPU][i]];

		if (gpu->parent == TTI_NODE_NONE || mesh->names[gpu->parent] != gpu->name ||
		    !look_at(mesh, gpu->parent))
			continue;
		mesh->xgmi |= gpu->gpu.gcn != NULL;
		if (!tti_vec_push(&mesh->devices, gpu->parent))
			out->failed = true;
	}
}

static void write_heading(const struct mesh *mesh, struct tti_strbuf *out)
{
	char text[TTI_WORDS_MAX];

	tti_strbuf_addf(out, "\n%s between GPUs", mesh->xgmi ? "xGMI links" : "NVLinks");
	if (mesh->each_gbps > 0) {
		tti_words_gbps(mesh->each_gbps, text);
		tti_strbuf_addf(out, ", %s GB/s each", text);
	}
	tti_strbuf_add(out, "\n");
}

static void write_table(const struct mesh *mesh, struct tti_strbuf *out)
{
	const uint32_t *devices = mesh->devices.at, n = (uint32_t)mesh->devices.n;
	struct tti_table table = { .align = "<>", .widths = { 2 } };

	tti_table_cell(&table, NULL, "");
	for (uint32_t i = 0; i < n; i++)
		tti_table_cell(&table, NULL, name_of(mesh, devices[i]));
	tti_table_end_row(&table);
	for (uint32_t i = 0; i < n; i++) {
		tti_table_cell(&table, NULL, name_of(mesh, devices[i]));
		for (uint32_t j = 0; j < n; j++) {
			const struct tti_topo_link *link =
				i == j ? NULL
				       : tti_graph_link(mesh->graph, devices[i], devices[j],
							TTI_LINK_NVL);

			if (link)
				tti_table_cellf(&table, "%u", link->count);
			else
				tti_table_cell(&table, NULL, i == j ? "X" : "-");
		}
		tti_table_end_row(&table);
	}
	tti_table_even(&table, 0, n + 1);
	tti_table_write(&table, out);
}

static void write_list(const struct mesh *mesh, struct tti_strbuf *out)
{
	const struct tti_graph *graph = mesh->graph;

	for (size_t i = 0; i < mesh->devices.n; i++) {
		const struct tti_node *node = &graph->nodes[mesh->devices.at[i]];

		tti_words_text(name_of(mesh, mesh->devices.at[i]), out);
		tti_strbuf_add(out, ":");
		for (uint32_t k = 0; k < node->nlinks; k++) {
			const struct tti_topo_link *link = &graph->links[node->first_link + k];

			if (!is_mesh_link(graph, link))
				continue;
			tti_strbuf_addf(out, " %u to ", link->count);
			tti_words_text(name_of(mesh, link->to), out);
		}
		tti_strbuf_add(out, "\n");
	}
}

static void write_mesh(const struct tti_graph *graph, struct tti_strbuf *out)
{
	struct mesh mesh = { .graph = graph };

	if (find_names(&mesh))
		find_mesh(&mesh, out);
	else
		out->failed = true;
	if (mesh.devices.n) {
		write_heading(&mesh, out);
		if (mesh.devices.n <= TABLE_MAX)
			write_table(&mesh, out);
		else
			write_list(&mesh, out);
	}
	tti_vec_release(&mesh.devices);
	tti_free(mesh.names);
}

/* -- Between CPUs ----------------------------------------------------------------- */

/* "socket to socket", "NUMA nodes of a socket"... */
static const char *relation(const struct tti_node *a, const struct tti_node *b)
{
	if (a->host != b->host)
		return "host to host";
	if (a->type == TTI_NODE_PKG && b->type == TTI_NODE_PKG)
		return "socket to socket";
	if (a->type != b->type)
		return "NUMA nodes of a socket";
	return a->cpu.package != b->cpu.package ? "socket to socket" : "NUMA nodes of a socket";
}

struct span {
	const char *relation;
	float low, high;
};

/* One entry per relation: from the slowest to the fastest link of it. */
static void find_spans(const struct tti_graph *graph, struct span *spans, size_t *n)
{
	for (uint32_t i = 0; i < graph->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[i];
		const char *what;
		size_t k = 0;

		if (link->type != TTI_LINK_SYS)
			continue;
		what = relation(&graph->nodes[link->from], &graph->nodes[link->to]);
		while (k < *n && strcmp(spans[k].relation, what) != 0)
			k++;
		if (k == *n)
			spans[(*n)++] = (struct span){ what, link->bw_gbps, link->bw_gbps };
		if (link->bw_gbps < spans[k].low)
			spans[k].low = link->bw_gbps;
		if (link->bw_gbps > spans[k].high)
			spans[k].high = link->bw_gbps;
	}
}

static void write_cpu_links(const struct tti_graph *graph, struct tti_strbuf *out)
{
	struct span spans[4];
	char low[TTI_WORDS_MAX], high[TTI_WORDS_MAX];
	size_t n = 0;

	find_spans(graph, spans, &n);
	for (size_t i = 0; i < n; i++) {
		tti_words_gbps((double)spans[i].low, low);
		tti_words_gbps((double)spans[i].high, high);
		tti_strbuf_addf(out, "%s%s %s", i ? ", " : "\nBetween CPUs: ", spans[i].relation,
				low);
		if (strcmp(low, high) != 0)
			tti_strbuf_addf(out, " to %s", high);
		tti_strbuf_add(out, " GB/s");
	}
	if (n)
		tti_strbuf_add(out, "\n");
}

void tti_print_links(const struct tti_graph *graph, struct tti_strbuf *out)
{
	write_mesh(graph, out);
	write_cpu_links(graph, out);
}

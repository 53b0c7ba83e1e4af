/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "topo/alike.h"
#include "topo/words.h"
#include "util/mem.h"

#define RESET "\033[0m"
#define BOLD  "\033[1m"

struct matrix {
	const struct tti_alike *alike;
	const struct tti_print_config *config;
	struct tti_strbuf *out;
	size_t row_width, column_width;
	bool types[TTI_PATH_DIS + 1]; /* that occur, and so have a line in the legend */
};

static const char *const meanings[] = {
	[TTI_PATH_LOC] = "the same device",
	[TTI_PATH_NVL] = "through that many NVLinks (AMD: xGMI links), with or without a switch",
	[TTI_PATH_NVB] = "NVLinks through another GPU",
	[TTI_PATH_C2C] = "the link between a GPU and its CPU",
	[TTI_PATH_PIX] = "at most one PCIe switch",
	[TTI_PATH_PXB] = "several PCIe switches, no CPU",
	[TTI_PATH_P2C] = "the link between a GPU and its CPU, then PCIe",
	[TTI_PATH_PXN] = "NVLinks to another GPU, from there to the NIC",
	[TTI_PATH_PHB] = "PCIe through a CPU",
	[TTI_PATH_SYS] = "the link between NUMA nodes or sockets",
	[TTI_PATH_NET] = "the network only",
	[TTI_PATH_DIS] = "nothing connects them",
};

static const char *color_of(const struct tti_alike_cell *cell)
{
	if (!cell->path)
		return "\033[2m";
	switch ((enum tti_path_type)cell->path->type) {
	case TTI_PATH_LOC:
	case TTI_PATH_NVL:
	case TTI_PATH_NVB:
	case TTI_PATH_C2C:
		return "\033[32m";
	case TTI_PATH_PIX:
	case TTI_PATH_PXB:
	case TTI_PATH_P2C:
	case TTI_PATH_PXN:
		return "\033[36m";
	case TTI_PATH_PHB:
		return "\033[33m";
	case TTI_PATH_SYS:
	case TTI_PATH_NET:
	case TTI_PATH_DIS:
	default:
		return "\033[31m";
	}
}

static void type_text(struct matrix *m, const struct tti_alike_cell *cell, char buf[24])
{
	const char mark[2] = { tti_alike_mark(m->alike, cell), '\0' };
	char type[16];

	snprintf(buf, 24, "%s%s", tti_alike_type(cell, type), mark);
	if (cell->path)
		m->types[cell->path->type] = true;
}

static void gbps_text(struct matrix *m, const struct tti_alike_cell *cell, char buf[24])
{
	const char mark[2] = { tti_alike_mark(m->alike, cell), '\0' };
	char gbps[TTI_WORDS_MAX];

	if (!cell->path || cell->path->type == TTI_PATH_LOC) {
		snprintf(buf, 24, "%s", cell->path ? "-" : "X");
		return;
	}
	tti_words_gbps((double)cell->route->bw_gbps, gbps);
	snprintf(buf, 24, "%.20s%s", gbps, mark);
}

typedef void (*cell_text_fn)(struct matrix *m, const struct tti_alike_cell *cell, char buf[24]);

static void measure(struct matrix *m, cell_text_fn text)
{
	const struct tti_alike *alike = m->alike;
	char buf[24];

	m->row_width = m->column_width = 0;
	for (uint32_t i = 0; i < alike->n; i++) {
		const size_t width = tti_words_width(alike->at[i].label);

		m->row_width = width > m->row_width ? width : m->row_width;
		m->column_width = width > m->column_width ? width : m->column_width;
		for (uint32_t j = 0; j < alike->n; j++) {
			const struct tti_alike_cell cell = tti_alike_cell(alike, i, j);

			text(m, &cell, buf);
			if (strlen(buf) > m->column_width)
				m->column_width = strlen(buf);
		}
	}
}

static void add_blanks(struct matrix *m, size_t width, size_t used)
{
	tti_strbuf_addf(m->out, "%*s", used < width ? (int)(width - used) : 0, "");
}

static void add_colored(struct matrix *m, const char *color, const char *text, size_t width)
{
	if (m->config->color && color)
		tti_strbuf_add(m->out, color);
	tti_words_text(text, m->out);
	if (m->config->color && color)
		tti_strbuf_add(m->out, RESET);
	add_blanks(m, width, tti_words_width(text));
}

/* CPUs and number of the NUMA node that a group hangs on. */
static void add_affinity(struct matrix *m, uint32_t row, size_t width)
{
	const struct tti_graph *graph = m->alike->routes->paths->graph;
	const uint32_t cpu = tti_graph_cpu_of(graph, m->alike->at[row].nodes[0]);
	const size_t begin = m->out->len;

	tti_strbuf_add(m->out, "  ");
	if (cpu == TTI_NODE_NONE)
		return;
	tti_words_cpus(graph->nodes[cpu].cpu.affinity, m->out);
	add_blanks(m, width + 2, m->out->len - begin);
	if (graph->nodes[cpu].cpu.numaid >= 0)
		tti_strbuf_addf(m->out, "  %" PRId64, graph->nodes[cpu].cpu.numaid);
	else
		tti_strbuf_add(m->out, "  -");
}

static size_t affinity_width(const struct tti_graph *graph)
{
	size_t width = strlen("CPU affinity");

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		struct tti_strbuf buf = { 0 };

		tti_words_cpus(graph->nodes[graph->by_type[TTI_NODE_CPU][i]].cpu.affinity, &buf);
		width = buf.len > width ? buf.len : width;
		tti_strbuf_release(&buf);
	}
	return width;
}

static void write_matrix(struct matrix *m, cell_text_fn text, bool affinity)
{
	const struct tti_alike *alike = m->alike;
	const size_t width = affinity ? affinity_width(alike->routes->paths->graph) : 0;
	char buf[24];

	measure(m, text);
	tti_words_padded("", m->row_width, false, m->out);
	for (uint32_t i = 0; i < alike->n; i++) {
		tti_strbuf_add(m->out, "  ");
		add_colored(m, BOLD, alike->at[i].label,
			    i + 1 < alike->n || affinity ? m->column_width : 0);
	}
	if (affinity)
		tti_strbuf_addf(m->out, "  %-*s  NUMA", (int)width, "CPU affinity");
	tti_strbuf_add(m->out, "\n");
	for (uint32_t i = 0; i < alike->n; i++) {
		add_colored(m, BOLD, alike->at[i].label, m->row_width);
		for (uint32_t j = 0; j < alike->n; j++) {
			const struct tti_alike_cell cell = tti_alike_cell(alike, i, j);

			text(m, &cell, buf);
			tti_strbuf_add(m->out, "  ");
			add_colored(m, color_of(&cell), buf,
				    j + 1 < alike->n || affinity ? m->column_width : 0);
		}
		if (affinity)
			add_affinity(m, i, width);
		tti_strbuf_add(m->out, "\n");
	}
}

/* -- Too many columns: a line per row, in words ------------------------------------ */

/* All columns that are as `first` is from this row, which none before it was. */
static void write_bundle(struct matrix *m, uint32_t row, uint32_t first,
			 const struct tti_alike_cell *cells, bool *written)
{
	const struct tti_alike *alike = m->alike;
	const char **names = tti_calloc(alike->n + 1, sizeof(*names));
	char type[24], gbps[24];
	uint32_t n = 0;

	if (!names) {
		m->out->failed = true;
		return;
	}
	for (uint32_t i = first; i < alike->n; i++) {
		if (written[i] || (i != first && !tti_alike_same(&cells[first], &cells[i])))
			continue;
		written[i] = true;
		names[n++] = alike->at[i].names;
	}
	type_text(m, &cells[first], type);
	gbps_text(m, &cells[first], gbps);
	tti_strbuf_addf(m->out, "  %-5s %7s GB/s  ", type, gbps);
	tti_words_names(names, n, m->out);
	if (row == first)
		tti_strbuf_add(m->out, " among each other");
	tti_strbuf_add(m->out, "\n");
	tti_free(names);
}

static void write_row_in_words(struct matrix *m, uint32_t row)
{
	const struct tti_alike *alike = m->alike;
	struct tti_alike_cell *cells = tti_calloc(alike->n + 1, sizeof(*cells));
	bool *written = tti_calloc(alike->n + 1, sizeof(*written));

	if (!cells || !written) {
		m->out->failed = true;
		goto done;
	}
	add_colored(m, BOLD, alike->at[row].names, 0);
	add_affinity(m, row, 0);
	tti_strbuf_add(m->out, "\n");
	for (uint32_t i = 0; i < alike->n; i++)
		cells[i] = tti_alike_cell(alike, row, i);
	for (int type = 0; type <= TTI_PATH_DIS; type++)
		for (uint32_t i = 0; i < alike->n; i++)
			if (!written[i] && cells[i].path && cells[i].path->type == type)
				write_bundle(m, row, i, cells, written);
done:
	tti_free(cells);
	tti_free(written);
}

/* Ways are the same back, so the lines of GPUs say all but how NICs reach NICs. */
static void write_words(struct matrix *m)
{
	const struct tti_alike *alike = m->alike;
	const struct tti_graph *graph = alike->routes->paths->graph;
	const enum tti_node_type first = graph->nodes[alike->at[0].nodes[0]].type;

	for (uint32_t i = 0; i < alike->n; i++)
		if (graph->nodes[alike->at[i].nodes[0]].type == first)
			write_row_in_words(m, i);
}

/* -- Legend ------------------------------------------------------------------------ */

static void write_labels(struct matrix *m)
{
	const struct tti_alike *alike = m->alike;
	bool any = false;

	for (uint32_t i = 0; i < alike->n; i++) {
		const struct tti_alike_group *group = &alike->at[i];

		if (group->label == group->names)
			continue;
		tti_strbuf_addf(m->out, "%s%s: ", any ? "" : "\n", group->label);
		tti_strbuf_add(m->out, group->names);
		tti_strbuf_add(m->out, "\n");
		any = true;
	}
}

static void write_legend(struct matrix *m)
{
	tti_strbuf_add(m->out, "\n");
	for (int type = 0; type <= TTI_PATH_DIS; type++)
		if (m->types[type])
			tti_strbuf_addf(m->out, "%-4s %s\n",
					type == TTI_PATH_NVL
						? "NV#"
						: tti_path_type_name((enum tti_path_type)type),
					meanings[type]);
	for (int why = 0; why <= TTI_ROUTE_NO_WAY; why++)
		if (m->alike->marks[why])
			tti_strbuf_addf(m->out, "%c    %s\n", m->alike->marks[why],
					tti_route_why_text((enum tti_route_why)why));
}

void tti_print_paths(const struct tti_routes *routes, const struct tti_print_config *config,
		     struct tti_strbuf *out)
{
	struct tti_alike alike;
	struct matrix m = { .alike = &alike, .config = config, .out = out };

	if (tti_alike_find(routes, &alike) != TUTTI_OK) {
		out->failed = true;
		return;
	}
	if (alike.n == 0) {
		tti_strbuf_add(out, "no GPU, no NIC and no CPU: there are no paths\n");
	} else if (alike.n > TTI_ALIKE_COLUMNS) {
		write_words(&m);
	} else {
		write_matrix(&m, type_text, true);
		tti_strbuf_add(out, "\nGB/s\n");
		write_matrix(&m, gbps_text, false);
		write_labels(&m);
	}
	if (alike.n)
		write_legend(&m);
	tti_alike_release(&alike);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/print/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "insight/print/path_matrix.h"
#include "insight/print/print_words.h"
#include "insight/write/table.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

#define BOLD "\033[1m"

struct matrix {
	const struct tti_path_matrix *matrix;
	const struct tti_print_config *config;
	struct tti_strbuf *out;
	/* Types and reasons that were shown: they have a line in the legend. */
	bool types[TTI_PATH_DIS + 1];
	bool whys[TTI_ROUTE_NO_WAY + 1];
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

static const char *color_of(const struct tti_matrix_cell *cell)
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

static void type_text(struct matrix *m, const struct tti_matrix_cell *cell, char buf[24])
{
	const char mark[2] = { tti_matrix_mark(m->matrix, cell), '\0' };
	char type[16];

	snprintf(buf, 24, "%s%s", tti_matrix_type(cell, type), mark);
	if (cell->path) {
		m->types[cell->path->type] = true;
		m->whys[cell->route->why] = true;
	}
}

static void gbps_text(struct matrix *m, const struct tti_matrix_cell *cell, char buf[24])
{
	const char mark[2] = { tti_matrix_mark(m->matrix, cell), '\0' };
	char gbps[TTI_WORDS_MAX];

	if (!cell->path || cell->path->type == TTI_PATH_LOC) {
		snprintf(buf, 24, "%s", cell->path ? "-" : "X");
		return;
	}
	tti_words_gbps((double)cell->route->bw_gbps, gbps);
	snprintf(buf, 24, "%.20s%s", gbps, mark);
}

typedef void (*cell_text_fn)(struct matrix *m, const struct tti_matrix_cell *cell, char buf[24]);

/* The CPUs and the number of the NUMA node that a group hangs on: two cells. */
static void add_affinity(const struct matrix *m, uint32_t row, struct tti_table *table)
{
	const struct tti_graph *graph = m->matrix->routes->paths->graph;
	const uint32_t cpu = tti_graph_cpu_of(graph, m->matrix->at[row].nodes[0]);
	struct tti_strbuf cpus = { 0 };

	if (cpu == TTI_NODE_NONE)
		return;
	tti_words_cpus(graph->nodes[cpu].cpu.affinity, &cpus);
	tti_table_cell(table, NULL, cpus.text ? cpus.text : "");
	if (graph->nodes[cpu].cpu.numaid >= 0)
		tti_table_cellf(table, "%" PRId64, graph->nodes[cpu].cpu.numaid);
	else
		tti_table_cell(table, NULL, "-");
	m->out->failed |= cpus.failed;
	tti_strbuf_release(&cpus);
}

static void write_matrix(struct matrix *m, cell_text_fn text, bool affinity)
{
	const struct tti_path_matrix *matrix = m->matrix;
	struct tti_table table = { .align = "<", .color = m->config->color };
	char buf[24];

	tti_table_cell(&table, NULL, "");
	for (uint32_t i = 0; i < matrix->n; i++)
		tti_table_cell(&table, BOLD, matrix->at[i].label);
	if (affinity) {
		tti_table_cell(&table, NULL, "CPU affinity");
		tti_table_cell(&table, NULL, "NUMA");
	}
	tti_table_end_row(&table);
	for (uint32_t i = 0; i < matrix->n; i++) {
		tti_table_cell(&table, BOLD, matrix->at[i].label);
		for (uint32_t j = 0; j < matrix->n; j++) {
			const struct tti_matrix_cell cell = tti_matrix_cell(matrix, i, j);

			text(m, &cell, buf);
			tti_table_cell(&table, color_of(&cell), buf);
		}
		if (affinity)
			add_affinity(m, i, &table);
		tti_table_end_row(&table);
	}
	tti_table_even(&table, 1, matrix->n);
	tti_table_write(&table, m->out);
}

/* -- Too many columns: a line per row, in words ------------------------------------ */

/* A bundle of columns: the names on the host of the row, and the number of those on others. */
struct bundle {
	const char **names;
	uint32_t nnames, nothers, nhosts;
	uint32_t last_host;
	enum tti_node_type type;
};

static enum tti_node_type type_of(const struct matrix *m, uint32_t column)
{
	return m->matrix->routes->paths->graph->nodes[m->matrix->at[column].nodes[0]].type;
}

static void add_to_bundle(const struct matrix *m, struct bundle *bundle, uint32_t row,
			  uint32_t column)
{
	const struct tti_graph *graph = m->matrix->routes->paths->graph;
	const struct tti_matrix_group *group = &m->matrix->at[column];
	const struct tti_node *node = &graph->nodes[group->nodes[0]];

	if (node->host == graph->nodes[m->matrix->at[row].nodes[0]].host) {
		bundle->names[bundle->nnames++] = group->bare;
		return;
	}
	bundle->nothers += group->n;
	/* Endpoints of one type are sorted by host. */
	bundle->nhosts += !bundle->nhosts || bundle->last_host != node->host;
	bundle->last_host = node->host;
}

static void write_bundle(struct matrix *m, const struct tti_matrix_cell *cell,
			 const struct bundle *bundle)
{
	char type[24], gbps[TTI_WORDS_MAX];

	type_text(m, cell, type);
	tti_words_gbps((double)cell->route->bw_gbps, gbps);
	tti_strbuf_addf(m->out, "  %-5s %6s GB/s  ", type, gbps);
	tti_words_names(bundle->names, bundle->nnames, m->out);
	if (bundle->nothers)
		tti_strbuf_addf(m->out, "%s%u %s%s of %u other host%s", bundle->nnames ? ", " : "",
				bundle->nothers, bundle->type == TTI_NODE_NET ? "NIC" : "GPU",
				bundle->nothers == 1 ? "" : "s", bundle->nhosts,
				bundle->nhosts == 1 ? "" : "s");
	tti_strbuf_add(m->out, "\n");
}

/* A line for each kind of path that leads from this row, the best first. `names` and
 * `cells` have room for all columns. */
static void write_row_in_words(struct matrix *m, uint32_t row, const char **names,
			       struct tti_matrix_cell *cells)
{
	const struct tti_path_matrix *matrix = m->matrix;
	struct tti_table heading = { .align = "<", .color = m->config->color };

	tti_table_cell(&heading, BOLD, matrix->at[row].bare);
	add_affinity(m, row, &heading);
	tti_table_end_row(&heading);
	tti_table_write(&heading, m->out);
	for (uint32_t i = 0; i < matrix->n; i++)
		cells[i] = tti_matrix_cell(matrix, row, i);
	for (int type = 0; type <= TTI_PATH_DIS; type++)
		for (uint32_t i = 0; i < matrix->n; i++) {
			const struct tti_matrix_cell first = cells[i];
			struct bundle bundle = { .names = names, .type = type_of(m, i) };

			if (!first.path || first.path->type != type)
				continue;
			for (uint32_t k = i; k < matrix->n; k++)
				if (tti_matrix_same(&first, &cells[k]) &&
				    type_of(m, k) == bundle.type) {
					add_to_bundle(m, &bundle, row, k);
					cells[k].path = NULL;
				}
			write_bundle(m, &first, &bundle);
		}
}

/* The rows of one host. A path is the same in both directions, so the rows of GPUs show all
 * paths but those from NIC to NIC. */
static char *words_of_host(struct matrix *m, uint32_t host, const char **names,
			   struct tti_matrix_cell *cells)
{
	const struct tti_path_matrix *matrix = m->matrix;
	const struct tti_graph *graph = matrix->routes->paths->graph;
	const enum tti_node_type first = graph->nodes[matrix->at[0].nodes[0]].type;
	struct tti_strbuf *out = m->out, buf = { 0 };

	m->out = &buf;
	for (uint32_t i = 0; i < matrix->n; i++) {
		const struct tti_node *node = &graph->nodes[matrix->at[i].nodes[0]];

		if (node->type == first && node->host == host)
			write_row_in_words(m, i, names, cells);
	}
	m->out = out;
	return tti_strbuf_take(&buf);
}

/* Hosts with equal rows are shown once. */
static void write_hosts(struct matrix *m, char **words, const char **names)
{
	const struct tti_graph *graph = m->matrix->routes->paths->graph;

	for (uint32_t i = 0; i < graph->nhosts; i++) {
		char *text = words[i];
		uint32_t n = 0;

		if (!text)
			continue;
		for (uint32_t k = i; k < graph->nhosts; k++)
			if (words[k] && !strcmp(words[k], text)) {
				names[n++] = graph->hosts[k];
				if (k != i)
					tti_free(words[k]);
				words[k] = NULL;
			}
		if (graph->nhosts > 1 && text[0]) {
			tti_strbuf_addf(m->out, "%shost%s ", i ? "\n" : "", n == 1 ? "" : "s");
			tti_words_names(names, n, m->out);
			tti_strbuf_add(m->out, "\n");
		}
		tti_strbuf_add(m->out, text);
		tti_free(text);
	}
}

static void write_words(struct matrix *m)
{
	const uint32_t nhosts = m->matrix->routes->paths->graph->nhosts;
	const char **names = tti_calloc((size_t)m->matrix->n + nhosts, sizeof(*names));
	struct tti_matrix_cell *cells = tti_calloc(m->matrix->n, sizeof(*cells));
	char **words = tti_calloc(nhosts, sizeof(*words));

	if (names && cells && words) {
		for (uint32_t i = 0; i < nhosts; i++) {
			words[i] = words_of_host(m, i, names, cells);
			m->out->failed |= !words[i];
		}
		write_hosts(m, words, names);
	} else {
		m->out->failed = true;
	}
	tti_free(names);
	tti_free(cells);
	tti_free(words);
}

/* -- Legend ------------------------------------------------------------------------ */

static void write_labels(struct matrix *m)
{
	const struct tti_path_matrix *matrix = m->matrix;
	bool any = false;

	for (uint32_t i = 0; i < matrix->n; i++) {
		const struct tti_matrix_group *group = &matrix->at[i];

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
	for (const char *sign = TTI_MATRIX_SIGNS; *sign; sign++)
		for (int why = 0; why <= TTI_ROUTE_NO_WAY; why++)
			if (m->whys[why] && m->matrix->marks[why] == *sign)
				tti_strbuf_addf(m->out, "%c    %s\n", *sign,
						tti_print_route_why((enum tti_route_why)why));
}

tutti_status tti_print_paths(const struct tti_routes *routes, const struct tti_print_config *config,
			     struct tti_strbuf *out)
{
	struct tti_path_matrix matrix;
	struct matrix m = { .matrix = &matrix, .config = config, .out = out };

	TTI_TRY(tti_path_matrix_find(routes, &matrix));
	if (matrix.n == 0) {
		tti_strbuf_add(out, "no GPU, no NIC and no CPU: there are no paths\n");
	} else if (matrix.n > TTI_MATRIX_COLUMNS) {
		write_words(&m);
	} else {
		write_matrix(&m, type_text, true);
		tti_strbuf_add(out, "\nGB/s\n");
		write_matrix(&m, gbps_text, false);
		write_labels(&m);
	}
	if (matrix.n)
		write_legend(&m);
	tti_path_matrix_release(&matrix);
	return TUTTI_OK;
}

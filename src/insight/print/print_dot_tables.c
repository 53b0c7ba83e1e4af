/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/print/print_dot.h"

#include <stdio.h>
#include <string.h>

#include "insight/print/path_matrix.h"
#include "insight/print/print_words.h"
#include "insight/write/dot.h"
#include "topo/graph/words.h"
#include "util/mem.h"

/* A larger table would make the machine beside it too small to see. */
#define TABLE_COLUMNS 40

#define MATRIX  "cellborder=\"1\" cellspacing=\"0\" cellpadding=\"4\" color=\"#cccccc\""
#define HEADING "bgcolor=\"#f4f4f4\""

/* -- Paths --------------------------------------------------------------------------- */

/* From green for what is near to red for what is far. */
static const char *cell_color(const struct tti_matrix_cell *cell)
{
	if (!cell->path)
		return "#ffffff";
	switch ((enum tti_path_type)cell->path->type) {
	case TTI_PATH_LOC:
	case TTI_PATH_NVL:
	case TTI_PATH_C2C:
		return "#b7e1a1";
	case TTI_PATH_NVB:
	case TTI_PATH_PIX:
		return "#d9f0c9";
	case TTI_PATH_PXB:
	case TTI_PATH_P2C:
	case TTI_PATH_PXN:
		return "#f3f5c0";
	case TTI_PATH_PHB:
		return "#fde3b0";
	case TTI_PATH_SYS:
		return "#f9cdb5";
	case TTI_PATH_NET:
	case TTI_PATH_DIS:
	default:
		return "#f3b4b4";
	}
}

static void add_cell(const struct tti_path_matrix *matrix, uint32_t from, uint32_t to,
		     struct tti_strbuf *out)
{
	const struct tti_matrix_cell cell = tti_matrix_cell(matrix, from, to);
	char gbps[TTI_WORDS_MAX], type[16];
	const char mark[2] = { tti_matrix_mark(matrix, &cell), '\0' };

	tti_strbuf_addf(out, "<td bgcolor=\"%s\">", cell_color(&cell));
	if (!cell.path) {
		tti_strbuf_add(out, "X</td>");
		return;
	}
	tti_words_gbps((double)cell.route->bw_gbps, gbps);
	tti_strbuf_addf(out, "%s%s", tti_matrix_type(&cell, type), mark);
	if (cell.path->type != TTI_PATH_LOC && cell.path->type != TTI_PATH_DIS)
		tti_strbuf_addf(out, "<br/><font point-size=\"8\">%s</font>", gbps);
	tti_strbuf_add(out, "</td>");
}

static void add_legend(const struct tti_path_matrix *matrix, struct tti_strbuf *out)
{
	char line[256];

	tti_dot_row(out, matrix->n + 1, "types as nvidia-smi topo -m has them, GB/s of traffic");
	for (const char *sign = TTI_MATRIX_SIGNS; *sign; sign++)
		for (int why = 0; why <= TTI_ROUTE_NO_WAY; why++)
			if (matrix->marks[why] == *sign) {
				snprintf(line, sizeof(line), "%c %s", *sign,
					 tti_print_route_why((enum tti_route_why)why));
				tti_dot_row(out, matrix->n + 1, line);
			}
	for (uint32_t i = 0; i < matrix->n; i++)
		if (matrix->at[i].label != matrix->at[i].names) {
			snprintf(line, sizeof(line), "%s: %s", matrix->at[i].label,
				 matrix->at[i].names);
			tti_dot_row(out, matrix->n + 1, line);
		}
}

static void add_matrix(const struct tti_path_matrix *matrix, struct tti_strbuf *out)
{
	tti_dot_table(out, MATRIX);
	tti_strbuf_add(out, "<tr><td border=\"0\"></td>");
	for (uint32_t i = 0; i < matrix->n; i++)
		tti_dot_heading(out, HEADING, matrix->at[i].label);
	tti_strbuf_add(out, "</tr>\n");
	for (uint32_t i = 0; i < matrix->n; i++) {
		tti_strbuf_add(out, "<tr>");
		tti_dot_heading(out, HEADING, matrix->at[i].label);
		for (uint32_t j = 0; j < matrix->n; j++)
			add_cell(matrix, i, j, out);
		tti_strbuf_add(out, "</tr>\n");
	}
	add_legend(matrix, out);
	tti_strbuf_add(out, "</table>");
}

void tti_dot_paths(const struct tti_routes *routes, struct tti_strbuf *out)
{
	struct tti_path_matrix matrix;

	if (!routes->at)
		return;
	if (tti_path_matrix_find(routes, &matrix) != TUTTI_OK) {
		out->failed = true;
		return;
	}
	if (matrix.n >= 2 && matrix.n <= TABLE_COLUMNS)
		add_matrix(&matrix, out);
	tti_path_matrix_release(&matrix);
}

/* -- NVLinks ------------------------------------------------------------------------- */

/* "40.0" and a square for each colour of the direction. */
static void add_mesh_cell(const struct tti_graph *graph, const struct tti_topo_link *link,
			  const uint16_t *colors, struct tti_strbuf *out)
{
	char gbps[TTI_WORDS_MAX];

	if (!link) {
		tti_strbuf_add(out, "<td></td>");
		return;
	}
	tti_words_gbps((double)link->bw_gbps, gbps);
	tti_strbuf_addf(out, "<td>%s", gbps);
	for (uint32_t i = 0; i < TTI_DOT_COLORS; i++)
		if (colors[link - graph->links] >> i & 1)
			tti_strbuf_addf(out, "<font color=\"%s\">&#9632;</font>",
					tti_dot_palette[i]);
	tti_strbuf_add(out, "</td>");
}

void tti_dot_mesh(const struct tti_graph *graph, const struct tti_dot_place *places,
		  const uint32_t *devices, uint32_t n, const uint16_t *colors,
		  struct tti_strbuf *out)
{
	tti_dot_table(out, MATRIX);
	tti_dot_row(out, n + 1,
		    "GB/s of the NVLinks from row to column, and the channels that use them");
	for (uint32_t i = 0; i <= n; i++) {
		tti_strbuf_add(out, i ? "<tr>" : "<tr><td border=\"0\"></td>");
		for (uint32_t j = i ? 0 : 1; j <= n; j++) {
			const uint32_t head = devices[(i ? i : j) - 1];
			const uint32_t gpu = places[head].first;

			if (i == 0 || j == 0)
				tti_dot_heading(
					out, HEADING,
					graph->nodes[gpu == TTI_NODE_NONE ? head : gpu].name);
			else
				add_mesh_cell(graph,
					      i == j ? NULL
						     : tti_graph_link(graph, devices[i - 1],
								      devices[j - 1], TTI_LINK_NVL),
					      colors, out);
		}
		tti_strbuf_add(out, "</tr>\n");
	}
	tti_strbuf_add(out, "</table>");
}

/* -- Findings ------------------------------------------------------------------------ */

#define LINE_WIDTH 92

/* Labels do not fold by themselves. */
static void add_folded(const char *text, struct tti_strbuf *out)
{
	char *copy = tti_strdup(text);
	char *line = copy;

	if (!copy) {
		out->failed = true;
		return;
	}
	while (strlen(line) > LINE_WIDTH) {
		char *cut = line + LINE_WIDTH;

		while (cut > line && *cut != ' ')
			cut--;
		if (cut == line)
			cut = strchr(line, ' ');
		if (!cut)
			break;
		*cut = '\0';
		tti_dot_row(out, 1, line);
		line = cut + 1;
	}
	tti_dot_row(out, 1, line);
	tti_free(copy);
}

/* More would be no picture of the machine any longer. */
#define FINDINGS_MAX 16

/* "file.xml:12: PCI 0000:17:00.0" without the file, which is the title. */
static void add_place(const char *place, const char *source, struct tti_strbuf *out)
{
	const size_t len = source ? strlen(source) : 0;

	if (len && !strncmp(place, source, len) && place[len] == ':') {
		place += len + 1;
		if (place[0] == ' ')
			place++;
		else
			tti_strbuf_add(out, "line ");
	}
	tti_dot_text(out, place);
}

static void add_finding(const struct tti_finding *finding, const char *source,
			struct tti_strbuf *out)
{
	tti_strbuf_add(out, "<tr><td align=\"left\"><font color=\"" TTI_DOT_MARK "\"><b>");
	tti_dot_text(out, finding->rule);
	/* A blank in front of a text of SVG is not drawn: it is a text of its own. */
	tti_strbuf_add(out, "</b> <font point-size=\"10\">");
	add_place(finding->place, source, out);
	tti_strbuf_add(out, "</font></font></td></tr>\n");
	add_folded(finding->what, out);
	if (finding->consequence && finding->consequence[0])
		add_folded(finding->consequence, out);
	tti_strbuf_add(out, "<tr><td height=\"4\"></td></tr>\n");
}

void tti_dot_findings(const struct tti_lint *lint, const char *source, struct tti_strbuf *out)
{
	size_t n = 0;

	for (size_t i = 0; lint && i < lint->n; i++) {
		if (!tti_finding_costs(&lint->at[i]))
			continue;
		if (!n++)
			tti_dot_table(out, "cellborder=\"0\" cellspacing=\"0\" cellpadding=\"1\"");
		if (n <= FINDINGS_MAX)
			add_finding(&lint->at[i], source, out);
	}
	if (n > FINDINGS_MAX)
		tti_strbuf_addf(out,
				"<tr><td align=\"left\">and %zu more: tutti topo lint</td></tr>\n",
				n - FINDINGS_MAX);
	if (n)
		tti_strbuf_add(out, "</table>");
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/write/dot.h"

#include <stdarg.h>
#include <string.h>

#include "topo/graph/words.h"

const char *const tti_dot_palette[TTI_DOT_COLORS] = {
	"#e6194b", "#0068d9", "#2ca02c", "#ff7f0e", "#8b2fc9", "#00a5b5",
	"#c9a100", "#e377c2", "#7a4b2a", "#6b8e23", "#1a1a1a", "#7f8fa6",
};

void tti_dot_text(struct tti_strbuf *out, const char *text)
{
	static const char special[] = "&<>\"";
	static const char *const entities[] = { "&amp;", "&lt;", "&gt;", "&quot;" };
	struct tti_strbuf clean = { 0 };

	tti_words_text(text, &clean);
	out->failed |= clean.failed;
	for (size_t i = 0; i < clean.len; i++) {
		const char one[2] = { clean.text[i], '\0' };
		const char *found = strchr(special, one[0]);

		tti_strbuf_add(out, found ? entities[found - special] : one);
	}
	tti_strbuf_release(&clean);
}

void tti_dot_open(struct tti_strbuf *out, const char *layout, const char *title, const char *notes)
{
	tti_strbuf_addf(out,
			"digraph tutti {\n\tgraph [%s, fontname=\"Helvetica\", labelloc=t, "
			"labeljust=l, bgcolor=white, label=<",
			layout);
	tti_dot_table(out, "cellspacing=\"0\" cellpadding=\"2\"");
	tti_strbuf_add(out, "<tr><td align=\"left\"><font point-size=\"14\"><b>");
	tti_dot_text(out, title);
	tti_strbuf_add(out, "</b></font></td></tr>\n");
	while (*notes) {
		struct tti_strbuf line = { 0 };
		const size_t len = strcspn(notes, "\n");

		tti_strbuf_addf(&line, "%.*s", (int)len, notes);
		tti_strbuf_add(out, "<tr><td align=\"left\"><font point-size=\"10\">");
		tti_dot_text(out, line.text ? line.text : "");
		tti_strbuf_add(out, "</font></td></tr>\n");
		out->failed |= line.failed;
		tti_strbuf_release(&line);
		notes += len + (notes[len] == '\n');
	}
	tti_strbuf_add(out, "</table>>];\n"
			    "\tnode [shape=plain, fontname=\"Helvetica\", fontsize=11];\n"
			    "\tedge [fontname=\"Helvetica\", fontsize=9];\n");
}

/* -- Boxes --------------------------------------------------------------------------- */

void tti_dot_box(struct tti_strbuf *out, const char *fill, bool mark, const char *name, ...)
{
	va_list args;

	tti_strbuf_add(out, "\t");
	va_start(args, name);
	tti_strbuf_vaddf(out, name, args);
	va_end(args);
	tti_strbuf_addf(out,
			" [label=<<table border=\"%d\" cellborder=\"0\" cellspacing=\"3\" "
			"cellpadding=\"0\" color=\"%s\" bgcolor=\"%s\" style=\"rounded\">",
			mark ? 2 : 1, mark ? TTI_DOT_MARK : "#888888", fill);
}

void tti_dot_line(struct tti_strbuf *out, const char *bold, const char *small)
{
	tti_strbuf_add(out, "<tr><td>");
	if (bold) {
		tti_strbuf_add(out, "<b>");
		tti_dot_text(out, bold);
		tti_strbuf_add(out, small ? "</b> " : "</b>");
	}
	if (small) {
		tti_strbuf_add(out, "<font point-size=\"9\">");
		tti_dot_text(out, small);
		tti_strbuf_add(out, "</font>");
	}
	tti_strbuf_add(out, "</td></tr>");
}

void tti_dot_box_end(struct tti_strbuf *out)
{
	tti_strbuf_add(out, "</table>>];\n");
}

/* -- Tables -------------------------------------------------------------------------- */

void tti_dot_table(struct tti_strbuf *out, const char *attributes)
{
	tti_strbuf_addf(out, "<table border=\"0\" %s>\n", attributes);
}

static void add_cell(struct tti_strbuf *out, const char *attributes, const char *text, bool bold)
{
	tti_strbuf_addf(out, "<td%s%s>%s", attributes ? " " : "", attributes ? attributes : "",
			bold ? "<b>" : "");
	tti_dot_text(out, text);
	tti_strbuf_add(out, bold ? "</b></td>" : "</td>");
}

void tti_dot_cell(struct tti_strbuf *out, const char *attributes, const char *text)
{
	add_cell(out, attributes, text, false);
}

void tti_dot_heading(struct tti_strbuf *out, const char *attributes, const char *text)
{
	add_cell(out, attributes, text, true);
}

void tti_dot_row(struct tti_strbuf *out, uint32_t columns, const char *text)
{
	tti_strbuf_addf(out, "<tr><td border=\"0\" colspan=\"%u\" align=\"left\">", columns);
	tti_dot_text(out, text);
	tti_strbuf_add(out, "</td></tr>\n");
}

void tti_dot_ports(struct tti_strbuf *out, const char *attributes, uint32_t n, bool across)
{
	tti_strbuf_add(out, across ? "<table border=\"0\"><tr>" : "<table border=\"0\">");
	for (uint32_t i = 0; i < n; i++)
		tti_strbuf_addf(out,
				across ? "<td %s port=\"p%u\"></td>"
				       : "<tr><td %s port=\"p%u\"></td></tr>",
				attributes, i);
	tti_strbuf_add(out, across ? "<td></td></tr></table>" : "</table>");
}

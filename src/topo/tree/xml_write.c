/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a tree of elements as text and to files. */
#include "topo/tree/xml.h"

#include <string.h>

#include "util/error.h"
#include "util/file.h"

/* Deeper levels are not indented further: the text stays in proportion to the tree. */
#define INDENT_MOST 24

static void indent(size_t depth, struct tti_strbuf *out)
{
	static const char blanks[] = "                                                ";
	const size_t n = 2 * (depth < INDENT_MOST ? depth : INDENT_MOST);

	_Static_assert(sizeof(blanks) == 2 * INDENT_MOST + 1, "two a level");
	tti_strbuf_add(out, blanks + 2 * INDENT_MOST - n);
}

static const char *escape_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\n':
		return "&#10;";
	case '\r':
		return "&#13;";
	default:
		return "&#9;";
	}
}

/* White space other than blanks would be read as blanks. */
static void write_value(const char *value, struct tti_strbuf *out)
{
	for (;;) {
		const size_t plain = strcspn(value, "&<>\"\n\r\t");

		if (value[plain] == '\0') {
			tti_strbuf_add(out, value);
			return;
		}
		if (plain)
			tti_strbuf_addf(out, "%.*s", (int)plain, value);
		tti_strbuf_add(out, escape_of(value[plain]));
		value += plain + 1;
	}
}

/* The start of a node: the whole of a comment or of an element without children. */
static void open_node(const struct tti_xml *node, size_t depth, struct tti_strbuf *out)
{
	indent(depth, out);
	if (!node->name) {
		tti_strbuf_add(out, "<!--");
		tti_strbuf_add(out, node->comment);
		tti_strbuf_add(out, "-->\n");
		return;
	}
	tti_strbuf_add(out, "<");
	tti_strbuf_add(out, node->name);
	for (uint32_t i = 0; i < node->nattrs; i++) {
		tti_strbuf_add(out, " ");
		tti_strbuf_add(out, node->attrs[i].name);
		tti_strbuf_add(out, "=\"");
		write_value(node->attrs[i].value, out);
		tti_strbuf_add(out, "\"");
	}
	tti_strbuf_add(out, node->first ? ">\n" : "/>\n");
}

static void close_node(const struct tti_xml *node, size_t depth, struct tti_strbuf *out)
{
	indent(depth, out);
	tti_strbuf_add(out, "</");
	tti_strbuf_add(out, node->name);
	tti_strbuf_add(out, ">\n");
}

void tti_xml_write(const struct tti_xml_doc *doc, struct tti_strbuf *out)
{
	const struct tti_xml *at = doc->root;
	size_t depth = 0;

	for (const struct tti_xml *comment = doc->prolog; comment; comment = comment->next)
		open_node(comment, 0, out);
	while (at) {
		open_node(at, depth, out);
		if (at->first) {
			at = at->first;
			depth++;
			continue;
		}
		while (!at->next && at->parent) {
			at = at->parent;
			close_node(at, --depth, out);
		}
		at = at->next;
	}
}

/* -- Files ------------------------------------------------------------------------ */

tutti_status tti_xml_write_file(const struct tti_xml_doc *doc, const char *path)
{
	struct tti_strbuf text = { 0 };
	tutti_status st;

	tti_xml_write(doc, &text);
	st = text.failed ? tti_fail(TUTTI_ENOMEM, "writing %s: out of memory", path)
			 : tti_file_replace(path, text.text, text.len);
	tti_strbuf_release(&text);
	return st;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_GRAPHS_H
#define TESTS_TOPO_GRAPHS_H

/* Graphs of files and of texts. cmocka's header comes before this one. */

#include <stdio.h>
#include <string.h>

#include "topo/graph/graph.h"
#include "topo/tree/schema.h"
#include "util/error.h"

static inline struct tti_xml_doc *doc_of_file(const char *name)
{
	struct tti_xml_doc *doc = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return doc;
}

/* `inside`: what stands in <system>. */
static inline struct tti_xml_doc *doc_of_text(const char *inside)
{
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_addf(&text, "<system version=\"1\">%s</system>", inside);
	assert_false(text.failed);
	if (tti_xml_read(text.text, text.len, "text.xml", &doc) != TUTTI_OK ||
	    tti_schema_check(doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	tti_strbuf_release(&text);
	return doc;
}

/* Built, checked; the document is freed. */
static inline struct tti_graph *graph_of(struct tti_xml_doc *doc, enum tti_model model)
{
	struct tti_graph *graph = NULL;

	if (tti_graph_build(doc, model, &graph) != TUTTI_OK || tti_graph_check(graph) != TUTTI_OK)
		fail_msg("%s: %s", doc->source, tti_error_text());
	tti_xml_free(doc);
	return graph;
}

static inline uint32_t node_of(const struct tti_graph *graph, enum tti_node_type type,
			       const char *name)
{
	const uint32_t node = tti_graph_find(graph, type, name);

	if (node == TTI_NODE_NONE)
		fail_msg("no %s %s in %s", tti_node_type_name(type), name, graph->source);
	return node;
}

/* GB/s of a link, 0: there is none. */
static inline double gbps_of(const struct tti_graph *graph, uint32_t from, uint32_t to,
			     enum tti_link_type type)
{
	const struct tti_topo_link *link = tti_graph_link(graph, from, to, type);

	return link ? (double)link->bw_gbps : 0;
}

static inline uint32_t count_notes(const struct tti_graph *graph, enum tti_note_kind kind)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < graph->nnotes; i++)
		n += graph->notes[i].kind == kind;
	return n;
}

static inline void expect_near(double is, double wanted)
{
	if (!(is > wanted * 0.999999 && is < wanted * 1.000001))
		fail_msg("%g, not %g", is, wanted);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/topo.h"

#include "support/xml_edit.h"
#include "topo/paths/routes.h"
#include "topo/tree/overlay.h"
#include "topo/tree/schema.h"
#include "util/error.h"

tutti_status topo_use(const char *text, size_t nbytes)
{
	struct tti_xml_doc *doc = NULL, *again = NULL, *both = NULL;
	struct tti_strbuf buf = { 0 };
	tutti_status st = tti_xml_read(text, nbytes, "t.xml", &doc);

	if (st == TUTTI_OK)
		st = tti_schema_check(doc);
	if (st == TUTTI_OK) {
		tti_xml_write(doc, &buf);
		st = buf.failed ? TUTTI_ENOMEM : tti_xml_read(buf.text, buf.len, "again", &again);
	}
	if (st == TUTTI_OK)
		st = tti_overlay(doc, again, &both);
	if (st == TUTTI_OK &&
	    (!xml_same(doc->root, again->root) || !xml_same(doc->root, both->root)))
		st = tti_fail(TUTTI_EINTERNAL, "another document came back");
	tti_strbuf_release(&buf);
	tti_xml_free(again);
	tti_xml_free(doc);
	tti_xml_free(both);
	return st;
}

tutti_status topo_use_graph(const char *text, size_t nbytes)
{
	const struct tti_routes_config config = tti_routes_config_from_params();
	struct tti_xml_doc *doc = NULL;
	struct tti_graph *graph = NULL;
	struct tti_paths *paths = NULL;
	struct tti_routes *routes = NULL;
	tutti_status st = tti_xml_read(text, nbytes, "t.xml", &doc);

	if (st == TUTTI_OK)
		st = tti_schema_check(doc);
	if (st == TUTTI_OK)
		st = tti_graph_build(doc, TTI_MODEL_TUTTI, &graph);
	if (st == TUTTI_OK)
		st = tti_paths_build(graph, &paths);
	if (st == TUTTI_OK)
		st = tti_routes_build(paths, &config, &routes);
	tti_routes_free(routes);
	tti_paths_free(paths);
	tti_graph_free(graph);
	tti_xml_free(doc);
	return st;
}

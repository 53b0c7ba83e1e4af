/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/topo.h"

#include "topo/schema.h"
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
	    (!tti_xml_same(doc->root, again->root) || !tti_xml_same(doc->root, both->root)))
		st = tti_fail(TUTTI_EINTERNAL, "another document came back");
	tti_strbuf_release(&buf);
	tti_xml_free(again);
	tti_xml_free(doc);
	tti_xml_free(both);
	return st;
}

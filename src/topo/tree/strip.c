/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/strip.h"

#include <inttypes.h>
#include <string.h>

#include "topo/tree/schema.h"
#include "util/error.h"

/* What is a host's own: its name, the serial numbers and addresses of its parts, where its
 * cables end, and what was measured; also how much memory a node has, which firmware makes a
 * little different from boot to boot. */
static const char *const own_attrs[] = {
	"guid",         "host_hash",     "rank",         "serial",
	"uuid",         "tutti_fabric",  "tutti_host",   "tutti_mac",
	"tutti_mem_ns", "tutti_mem_mib", "tutti_path",   "tutti_mem_gbps",
	"tutti_serial", "tutti_subnet",  "tutti_switch", "tutti_uuid",
};

void tti_strip_hosts_init(struct tti_strip_hosts *hosts, const struct tti_xml_doc *doc)
{
	*hosts = (struct tti_strip_hosts){ .several = tti_schema_has_several_hosts(doc) };
}

void tti_strip_hosts_release(struct tti_strip_hosts *hosts)
{
	tti_intern_release(&hosts->seen);
}

uint32_t tti_strip_host_of(struct tti_strip_hosts *hosts, const struct tti_xml *cpu)
{
	const uint64_t hash = hosts->several ? tti_schema_host(cpu) : 0;

	return tti_intern(&hosts->seen, &hash, sizeof(hash));
}

bool tti_strip_is_own(const struct tti_xml *node, const char *attr)
{
	if (!node->parent) /* <system> may have any attributes; only the version counts */
		return strcmp(attr, "version") != 0;
	for (size_t i = 0; i < sizeof(own_attrs) / sizeof(own_attrs[0]); i++)
		if (own_attrs[i][0] == attr[0] && strcmp(own_attrs[i], attr) == 0)
			return true;
	return false;
}

/* The host of a CPU stays, as a number. */
static bool copy_attrs(struct tti_xml_doc *doc, struct tti_xml *to, const struct tti_xml *from,
		       struct tti_strip_hosts *hosts)
{
	if (hosts->several && tti_xml_is(from, "cpu")) {
		const uint32_t host = tti_strip_host_of(hosts, from);

		if (host == TTI_INTERN_NONE ||
		    !tti_xml_setf(doc, to, "host_hash", "0x%" PRIx32, host))
			return false;
	}
	for (uint32_t i = 0; i < from->nattrs; i++)
		if (!tti_strip_is_own(from, from->attrs[i].name) &&
		    !tti_xml_set(doc, to, from->attrs[i].name, from->attrs[i].value))
			return false;
	return true;
}

static bool copy_tree(struct tti_xml_doc *doc, struct tti_xml *to, const struct tti_xml *from,
		      struct tti_strip_hosts *hosts)
{
	to->line = from->line;
	to->column = from->column;
	if (!copy_attrs(doc, to, from, hosts))
		return false;
	for (const struct tti_xml *child = from->first; child; child = child->next) {
		struct tti_xml *copy;

		if (!child->name)
			continue;
		copy = tti_xml_add(doc, to, child->name);
		if (!copy || !copy_tree(doc, copy, child, hosts))
			return false;
	}
	return true;
}

tutti_status tti_strip(const struct tti_xml_doc *doc, struct tti_xml_doc **out)
{
	struct tti_strip_hosts hosts;
	struct tti_xml_doc *copy;
	bool good;

	TTI_TRY(tti_xml_create(doc->source, &copy));
	tti_strip_hosts_init(&hosts, doc);
	good = copy_tree(copy, copy->root, doc->root, &hosts);
	tti_strip_hosts_release(&hosts);
	if (!good) {
		tti_xml_free(copy);
		return tti_fail(TUTTI_ENOMEM, "a copy of %s: out of memory", doc->source);
	}
	*out = copy;
	return TUTTI_OK;
}

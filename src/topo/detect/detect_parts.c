/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_parts.h"

#include <stdlib.h>

#include "util/error.h"

struct tti_xml *tti_detect_find_pci(const struct tti_detect *detect, uint64_t busid)
{
	struct tti_xml *xml = detect->doc->root;

	for (; xml; xml = tti_xml_walk(xml)) {
		const char *text = tti_xml_is(xml, "pci") ? tti_xml_get(xml, "busid") : NULL;
		uint64_t value;

		if (text && tti_busid_parse(text, &value) && value == busid)
			return xml;
	}
	return NULL;
}

struct tti_xml *tti_detect_find_cpu(const struct tti_detect *detect, int64_t numaid)
{
	struct tti_xml *first = tti_xml_find(detect->doc->root, "cpu", NULL, NULL);

	for (struct tti_xml *xml = first; xml; xml = tti_xml_next(xml, "cpu")) {
		const char *id = tti_xml_get(xml, "numaid");

		if (id && strtoll(id, NULL, 10) == numaid)
			return xml;
	}
	return first;
}

tutti_status tti_detect_no_memory(const struct tti_detect *detect)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the topology of %s", detect->sysfs.path);
}

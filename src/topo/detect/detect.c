/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"

/* What only the parts of detection tell each other. */
#define PATH_ATTR "tutti_path"

/* -- Finding ------------------------------------------------------------------------ */

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

/* -- Detecting ---------------------------------------------------------------------- */

static void drop_attr(struct tti_xml *xml, const char *name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < xml->nattrs; i++)
		if (strcmp(xml->attrs[i].name, name) != 0)
			xml->attrs[n++] = xml->attrs[i];
	xml->nattrs = n;
}

static tutti_status detect_parts(struct tti_detect *detect)
{
	TTI_TRY(tti_detect_cpus(detect));
	TTI_TRY(tti_detect_pci(detect));
	TTI_TRY(tti_detect_nics(detect));
	TTI_TRY(tti_detect_gpus(detect));
	TTI_TRY(tti_detect_gdr(detect));
	if (detect->config->measure)
		TTI_TRY(tti_measure_memory(detect));
	for (struct tti_xml *xml = detect->doc->root; xml; xml = tti_xml_walk(xml))
		drop_attr(xml, PATH_ATTR);
	return TUTTI_OK;
}

tutti_status tti_detect(const struct tti_detect_config *config, struct tti_xml_doc **out)
{
	struct tti_detect detect = { .config = config };
	tutti_status st;

	TTI_TRY(tti_sysfs_open(config->sysfs_root, &detect.sysfs));
	st = tti_xml_create(detect.sysfs.captured ? detect.sysfs.path : "this machine",
			    &detect.doc);
	if (st == TUTTI_OK)
		st = detect_parts(&detect);
	tti_sysfs_close(&detect.sysfs);
	if (st != TUTTI_OK) {
		tti_xml_free(detect.doc);
		return st;
	}
	*out = detect.doc;
	return TUTTI_OK;
}

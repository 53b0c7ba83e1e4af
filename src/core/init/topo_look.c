/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <unistd.h>

#include "core/init/host_classes.h"
#include "topo/detect/detect.h"
#include "topo/tree/schema.h"
#include "topo/tree/strip.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/params.h"
#include "util/strbuf.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the topology of this host: out of memory");
}

/* -- What there is at least ------------------------------------------------------------ */

static bool user_says(const struct tti_param_values *params)
{
	return params->sysfs_root || params->topo_file || params->topo_dump_file;
}

/* One NUMA node without figures: ranks work even if /sys is hidden. */
static tutti_status assume(struct tti_xml_doc **out)
{
	struct tti_xml *cpu;

	tti_log(TTI_LOG_WARN, TTI_TOPO,
		"this machine's topology is not known, so it counts as one NUMA node: %s",
		tti_error_text());
	TTI_TRY(tti_xml_create("a machine that is not known", out));
	cpu = tti_xml_add(*out, (*out)->root, "cpu");
	if (cpu && tti_xml_set(*out, cpu, "numaid", "-1") &&
	    tti_xml_set(*out, cpu, "affinity", "ffffffff"))
		return TUTTI_OK;
	tti_xml_free(*out);
	return no_memory();
}

static tutti_status load(struct tti_xml_doc **out)
{
	const tutti_status st = tti_detect_this_machine(out);

	if (st == TUTTI_OK || st == TUTTI_ENOMEM || user_says(tti_params()))
		return st;
	return assume(out);
}

/* -- As text ------------------------------------------------------------------------------ */

/* Without values that identify one host, so that hosts of a class have equal texts. */
static tutti_status write_text(const struct tti_xml_doc *doc, struct tti_host_info *info,
			       char **text_out)
{
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *plain;

	TTI_TRY(tti_strip(doc, &plain));
	tti_xml_write(plain, &text);
	tti_xml_free(plain);
	if (text.len > TTI_XML_BYTES) {
		tti_strbuf_release(&text);
		return tti_fail(TUTTI_EPLAN, "the topology of this host takes %zu bytes as text",
				text.len);
	}
	info->nbytes = (uint32_t)text.len;
	*text_out = tti_strbuf_take(&text);
	if (!*text_out)
		return no_memory();
	info->hash = tti_hash_bytes(*text_out, info->nbytes);
	return TUTTI_OK;
}

tutti_status tti_topo_look(bool several, struct tti_host_info *info, char **text_out)
{
	struct tti_xml_doc *doc;
	tutti_status st;

	TTI_TRY(load(&doc));
	if (gethostname(info->name, sizeof(info->name)) != 0)
		info->name[0] = '\0';
	info->name[sizeof(info->name) - 1] = '\0';
	st = several ? tti_topo_find_nets(doc, info) : TUTTI_OK;
	if (st == TUTTI_OK)
		st = write_text(doc, info, text_out);
	tti_xml_free(doc);
	return st;
}

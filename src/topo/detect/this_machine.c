/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology that a process uses, from the machine and what the user says of it. */
#include "topo/detect/detect.h"

#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* What went wrong, and which variable to look at. */
static tutti_status blame(tutti_status st, const char *variables)
{
	if (st == TUTTI_ENOMEM)
		return st;
	return tti_fail_quiet(st, "%s; %s names it: correct or unset that", tti_error_text(),
			      variables);
}

static tutti_status detect(const struct tti_param_values *params, struct tti_xml_doc **out)
{
	const struct tti_detect_config config = { .sysfs_root = params->sysfs_root };
	tutti_status st = tti_detect_machine(&config, out);

	if (st != TUTTI_OK)
		return params->sysfs_root ? blame(st, "TUTTI_SYSFS_ROOT") : st;
	st = tti_schema_check(*out);
	if (st != TUTTI_OK)
		tti_xml_free(*out);
	return st;
}

static tutti_status read_file(const char *path, struct tti_xml_doc **out)
{
	tutti_status st = tti_xml_read_file(path, out);

	if (st == TUTTI_OK) {
		st = tti_schema_check(*out);
		if (st != TUTTI_OK)
			tti_xml_free(*out);
	}
	return st == TUTTI_OK ? st : blame(st, "TUTTI_TOPO_FILE or NCCL_TOPO_FILE");
}

/* Replaces *doc by what the file makes of it. */
static tutti_status lay_over(const char *path, struct tti_xml_doc **doc)
{
	struct tti_xml_doc *over, *both;
	tutti_status st;

	TTI_TRY(read_file(path, &over));
	st = tti_overlay(*doc, over, &both);
	tti_xml_free(over);
	if (st != TUTTI_OK)
		return blame(st, "TUTTI_TOPO_FILE or NCCL_TOPO_FILE");
	tti_log(TTI_LOG_INFO, TTI_TOPO, "topology file %s is laid over what was detected", path);
	tti_xml_free(*doc);
	*doc = both;
	return TUTTI_OK;
}

tutti_status tti_detect_this_machine(struct tti_xml_doc **out)
{
	const struct tti_param_values *params = tti_params();
	struct tti_xml_doc *doc;
	tutti_status st = TUTTI_OK;

	TTI_TRY(detect(params, &doc));
	if (params->topo_file)
		st = lay_over(params->topo_file, &doc);
	if (st == TUTTI_OK && params->topo_dump_file) {
		st = tti_xml_write_file(doc, params->topo_dump_file);
		if (st != TUTTI_OK)
			st = blame(st, "TUTTI_TOPO_DUMP_FILE or NCCL_TOPO_DUMP_FILE");
	}
	if (st != TUTTI_OK) {
		tti_xml_free(doc);
		return st;
	}
	*out = doc;
	return TUTTI_OK;
}

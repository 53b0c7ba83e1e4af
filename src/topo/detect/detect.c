/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect.h"

#include <string.h>

#include "topo/detect/detect_gpu.h"
#include "topo/detect/detect_parts.h"
#include "topo/tree/overlay.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* Log the GPUs that PCI shows and no driver knows. `why` says why there is no NVML; "": there
 * is. */
static void tell_bare_gpus(const struct tti_detect *detect, const char *why)
{
	char driver[512];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_TOPO))
		return;
	for (const struct tti_xml *node = detect->doc->root; node; node = tti_xml_walk(node)) {
		const char *const class_code = tti_xml_get(node, "class");
		const char *const busid = tti_xml_get(node, "busid");
		const char *const vendor = tti_xml_get(node, "vendor");
		const char *told = "";
		bool has_driver;

		if (!tti_xml_is(node, "pci") || !class_code || !busid ||
		    (strncmp(class_code, "0x03", 4) != 0 && strncmp(class_code, "0x12", 4) != 0 &&
		     strncmp(class_code, "0x0b40", 6) != 0) ||
		    tti_xml_find(node, "gpu", NULL, NULL))
			continue;
		if (vendor && !strcmp(vendor, TTI_PCI_NVIDIA))
			told = *why ? why : "the driver's library does not list it";
		has_driver = tti_sysfs_real_name(&detect->sysfs, driver, sizeof(driver),
						 "sys/bus/pci/devices/%s/driver", busid);
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"accelerator %s (class %s, vendor %s, bound to %s) is known from PCI "
			"alone%s%s",
			busid, class_code, vendor ? vendor : "?", has_driver ? driver : "no driver",
			*told ? ": " : "", told);
	}
}

static tutti_status detect_gpus(struct tti_detect *detect)
{
	char why[256];
	int ndev = 0;

	TTI_TRY(tti_detect_gpus_nvidia(detect, &ndev, why));
	TTI_TRY(tti_detect_gpus_amd(detect, &ndev));
	tell_bare_gpus(detect, why);
	return TUTTI_OK;
}

static tutti_status detect_parts(struct tti_detect *detect)
{
	TTI_TRY(tti_detect_cpus(detect));
	TTI_TRY(tti_detect_pci(detect));
	TTI_TRY(tti_detect_nics(detect));
	TTI_TRY(detect_gpus(detect));
	TTI_TRY(tti_detect_gdr(detect));
	if (detect->config->measure)
		TTI_TRY(tti_detect_memory(detect));
	return TUTTI_OK;
}

tutti_status tti_detect_machine(const struct tti_detect_config *config, struct tti_xml_doc **out)
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

/* -- What this process uses ----------------------------------------------------------- */

/* Add to the error which variable to look at. */
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

/* Lay the file over *doc, which is replaced. */
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

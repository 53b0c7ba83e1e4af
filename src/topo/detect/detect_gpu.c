/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"
#include "util/error.h"
#include "util/log.h"

#define PCI_DEVICE "sys/bus/pci/devices/%s"

static struct tti_xml *add_pci(const struct tti_detect *detect, const char *text)
{
	struct tti_xml *pci;
	int64_t numaid;

	if (!tti_sysfs_int(&detect->sysfs, &numaid, PCI_DEVICE "/numa_node", text))
		numaid = -1;
	tti_log(TTI_LOG_INFO, TTI_TOPO,
		"GPU %s: the driver knows it, the PCI tree does not: it is placed at NUMA node "
		"%lld",
		text, (long long)numaid);
	pci = tti_xml_add(detect->doc, tti_detect_find_cpu(detect, numaid), "pci");
	return pci && tti_xml_set(detect->doc, pci, "busid", text) ? pci : NULL;
}

struct tti_xml *tti_detect_gpu_pci(const struct tti_detect *detect, uint64_t busid,
				   const char *vendor)
{
	struct tti_xml *pci = tti_detect_find_pci(detect, busid);
	char text[TTI_BUSID_TEXT], class_code[16];

	tti_busid_format(busid, text);
	if (!pci)
		pci = add_pci(detect, text);
	if (!pci)
		return NULL;
	/* A captured tree may have the function and no files of it. */
	tti_detect_class(detect, busid, "0x", "0x030200", class_code);
	if ((!tti_xml_get(pci, "class") && !tti_xml_set(detect->doc, pci, "class", class_code)) ||
	    (!tti_xml_get(pci, "vendor") && !tti_xml_set(detect->doc, pci, "vendor", vendor)))
		return NULL;
	return pci;
}

struct tti_xml *tti_detect_gpu_add(const struct tti_detect *detect, struct tti_xml *pci, int dev)
{
	struct tti_xml *const gpu = tti_xml_add(detect->doc, pci, "gpu");

	return gpu && tti_xml_setf(detect->doc, gpu, "dev", "%d", dev) ? gpu : NULL;
}

const char *tti_detect_class(const struct tti_detect *detect, uint64_t busid, const char *prefix,
			     const char *otherwise, char buf[16])
{
	char text[TTI_BUSID_TEXT];

	if (!tti_sysfs_line(&detect->sysfs, buf, 16, PCI_DEVICE "/class",
			    tti_busid_format(busid, text)) ||
	    strncmp(buf, prefix, strlen(prefix)) != 0)
		snprintf(buf, 16, "%s", otherwise);
	return buf;
}

/* Not strtod(), which a program's locale changes. */
static int parse_decigts(const char *text)
{
	char *end;
	const long whole = strtol(text, &end, 10);

	if (end == text || whole < 0 || whole > 10000)
		return 0;
	return (int)whole * 10 +
	       (end[0] == '.' && end[1] >= '0' && end[1] <= '9' ? end[1] - '0' : 0);
}

bool tti_detect_link_now(const struct tti_detect *detect, struct tti_xml *pci, uint64_t busid,
			 int decigts, int width)
{
	const char *const speed = tti_xml_get(pci, "link_speed");
	const char *const lanes = tti_xml_get(pci, "link_width");
	char text[TTI_BUSID_TEXT], line[64];
	int64_t value;

	tti_busid_format(busid, text);
	if (decigts <= 0 && tti_sysfs_line(&detect->sysfs, line, sizeof(line),
					   PCI_DEVICE "/current_link_speed", text))
		decigts = parse_decigts(line);
	if (width <= 0 &&
	    tti_sysfs_int(&detect->sysfs, &value, PCI_DEVICE "/current_link_width", text) &&
	    value > 0 && value <= 64)
		width = (int)value;
	if (decigts <= 0 || width <= 0 || !speed || !lanes)
		return true;
	if (decigts >= parse_decigts(speed) && width >= atoi(lanes))
		return true;
	return tti_xml_setf(detect->doc, pci, "tutti_link_now", TTI_GTS_FORMAT " x%d", decigts / 10,
			    decigts % 10, width);
}

/* -- What is left: GPUs that PCI shows and no driver knows ----------------------------- */

static const char *bound_driver(const struct tti_detect *detect, const char *busid, char *buf,
				size_t size)
{
	const char *slash;

	if (!tti_sysfs_real(&detect->sysfs, buf, size, PCI_DEVICE "/driver", busid))
		return "no driver";
	slash = strrchr(buf, '/');
	return slash ? slash + 1 : buf;
}

/* `why` there is no NVML; "": there is. */
static void tell_bare_gpus(const struct tti_detect *detect, const char *why)
{
	char path[512];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_TOPO))
		return;
	for (const struct tti_xml *node = detect->doc->root; node; node = tti_xml_walk(node)) {
		const char *const class_code = tti_xml_get(node, "class");
		const char *const busid = tti_xml_get(node, "busid");
		const char *const vendor = tti_xml_get(node, "vendor");
		const char *told = "";

		if (!tti_xml_is(node, "pci") || !class_code || !busid ||
		    (strncmp(class_code, "0x03", 4) != 0 && strncmp(class_code, "0x12", 4) != 0 &&
		     strncmp(class_code, "0x0b40", 6) != 0) ||
		    tti_xml_find(node, "gpu", NULL, NULL))
			continue;
		if (vendor && !strcmp(vendor, TTI_PCI_NVIDIA))
			told = *why ? why : "the driver's library does not list it";
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"accelerator %s (class %s, vendor %s, bound to %s) is known from PCI "
			"alone%s%s",
			busid, class_code, vendor ? vendor : "?",
			bound_driver(detect, busid, path, sizeof(path)), *told ? ": " : "", told);
	}
}

static tutti_status nvidia_gpus(struct tti_detect *detect, int *ndev, const char **why_out)
{
	const struct tti_nvml *nvml = detect->config->nvml;
	struct tti_nvml *own = NULL;
	tutti_status status = TUTTI_OK;

	*why_out = "";
	if (!nvml && detect->sysfs.captured) {
		*why_out = "of a captured machine no driver can be asked";
	} else if (!nvml) {
		status = tti_nvml_open(&own, why_out);
		nvml = own;
	}
	if (status == TUTTI_OK && nvml)
		status = tti_detect_gpus_nvml(detect, nvml, ndev);
	else if (status == TUTTI_OK)
		status = tti_detect_gpus_proc(detect, ndev);
	tti_nvml_close(own);
	return status;
}

tutti_status tti_detect_gpus(struct tti_detect *detect)
{
	const char *why;
	char reason[256];
	int ndev = 0;

	TTI_TRY(nvidia_gpus(detect, &ndev, &why));
	snprintf(reason, sizeof(reason), "%s", why);
	TTI_TRY(tti_detect_gpus_kfd(detect, &ndev));
	tell_bare_gpus(detect, reason);
	return TUTTI_OK;
}

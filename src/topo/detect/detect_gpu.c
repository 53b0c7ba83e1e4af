/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_gpu.h"

#include <stdio.h>
#include <string.h>

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
	/* A captured machine may have the function without its files. */
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

bool tti_detect_link_now(const struct tti_detect *detect, struct tti_xml *pci, uint64_t busid,
			 const struct tti_pci_link *said)
{
	char path[64], text[TTI_BUSID_TEXT];
	struct tti_pci_link now;

	if (!tti_xml_get(pci, "link_speed") || !tti_xml_get(pci, "link_width"))
		return true;
	snprintf(path, sizeof(path), PCI_DEVICE, tti_busid_format(busid, text));
	now = tti_pci_link_now(&detect->sysfs, path);
	if (said && said->decigts > 0)
		now.decigts = said->decigts;
	if (said && said->width > 0)
		now.width = said->width;
	return tti_pci_link_set_now(detect->doc, pci, &now);
}

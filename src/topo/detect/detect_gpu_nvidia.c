/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"
#include "topo/detect/detect_gpu.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"
#include "util/vec.h"

/* NVIDIA: by the driver's library, else by what /proc has. */

/* The address that stands for a switch which this machine cannot see. */
#define HIDDEN_SWITCH "fffffff:ff:ff.0"

struct known {
	struct tti_nvml_gpu gpu;
	struct tti_xml *node;
	uint64_t busid;
};
typedef TTI_VEC(struct known *) known_vec;

static bool is_said(const struct tti_detect *detect, const struct tti_xml *pci, const char *attr,
		    const char *busid)
{
	return tti_xml_get(pci, attr) &&
	       tti_sysfs_exists(&detect->sysfs, "sys/bus/pci/devices/%s/max_%s", busid, attr);
}

/* What the link can do: as detect_pci.c found it in max_link_*, else as the driver says of
 * both ends. The link may run slower now, to save power. */
static bool set_pci_link(const struct tti_detect *detect, struct tti_xml *pci,
			 const struct known *known)
{
	const struct tti_pci_link now = { tti_pci_link_decigts(known->gpu.pci_gen),
					  known->gpu.pci_width };
	struct tti_pci_link max = { tti_pci_link_decigts(known->gpu.max_pci_gen),
				    known->gpu.max_pci_width };
	char text[TTI_BUSID_TEXT];

	tti_busid_format(known->busid, text);
	if (is_said(detect, pci, "link_speed", text))
		max.decigts = 0;
	if (is_said(detect, pci, "link_width", text))
		max.width = 0;
	return tti_pci_link_set(detect->doc, pci, &max) &&
	       tti_detect_link_now(detect, pci, known->busid, &now);
}

/* The class of the other end of a link, and its address in `target`; NULL: it is a GPU or CPU
 * of unknown address. */
static const char *link_end(const struct tti_detect *detect, const struct tti_nvml_link *link,
			    char target[TTI_BUSID_TEXT], char class_code[16])
{
	uint64_t busid;

	if (!tti_busid_parse(link->peer, &busid)) {
		if (link->remote == TTI_NVML_GPU || link->remote == TTI_NVML_CPU)
			return NULL;
		memcpy(target, HIDDEN_SWITCH, sizeof(HIDDEN_SWITCH));
		return "0x068000";
	}
	tti_busid_format(busid, target);
	switch (link->remote) {
	case TTI_NVML_GPU:
		return tti_detect_class(detect, busid, "0x03", "0x030200", class_code);
	case TTI_NVML_CPU:
		return "0x068001"; /* the format tells a CPU from a switch by this */
	case TTI_NVML_SWITCH:
	case TTI_NVML_OTHER:
		break;
	}
	/* An old driver does not say what the other end is. One that sysfs does not show is a
	 * switch. */
	return tti_detect_class(detect, busid, link->remote == TTI_NVML_OTHER ? "0x" : "0x0680",
				"0x068000", class_code);
}

/* One <nvlink> for each target counts the links to it. */
static bool add_nvlink(const struct tti_detect *detect, struct tti_xml *node, const char *target,
		       const char *class_code)
{
	struct tti_xml *nvlink = tti_xml_find(node, "nvlink", "target", target);

	if (nvlink)
		return tti_xml_setf(detect->doc, nvlink, "count", "%d",
				    atoi(tti_xml_get(nvlink, "count")) + 1);
	nvlink = tti_xml_add(detect->doc, node, "nvlink");
	return nvlink && tti_xml_set(detect->doc, nvlink, "target", target) &&
	       tti_xml_set(detect->doc, nvlink, "count", "1") &&
	       tti_xml_set(detect->doc, nvlink, "tclass", class_code);
}

static bool add_nvlinks(const struct tti_detect *detect, const struct known *known)
{
	for (int i = 0; i < known->gpu.nlinks; i++) {
		const struct tti_nvml_link *const link = &known->gpu.links[i];
		char target[TTI_BUSID_TEXT], buf[16];
		const char *class_code = NULL;
		const char *trouble = NULL;

		if (!link->active)
			trouble = "is not active";
		else if (!link->p2p && link->remote != TTI_NVML_CPU)
			trouble = "is not for memory of GPUs";
		else if (!(class_code = link_end(detect, link, target, buf)))
			trouble = "leads to an unknown address";
		if (trouble)
			tti_log(TTI_LOG_INFO, TTI_TOPO, "GPU %d (%s): NVLink %d %s: not counted",
				known->gpu.index, known->gpu.busid, link->index, trouble);
		else if (!add_nvlink(detect, known->node, target, class_code))
			return false;
	}
	return true;
}

static bool add_c2c(const struct tti_detect *detect, const struct known *known)
{
	struct tti_xml *c2c;

	if (known->gpu.c2c_links == 0)
		return true;
	c2c = tti_xml_add(detect->doc, known->node, "c2c");
	return c2c && tti_xml_setf(detect->doc, c2c, "bw", "%.0f", known->gpu.c2c_gbps * 1000) &&
	       tti_xml_setf(detect->doc, c2c, "count", "%d", known->gpu.c2c_links);
}

static bool set_fabric(const struct tti_detect *detect, const struct known *known)
{
	if (!known->gpu.fabric_uuid[0])
		return true;
	if (known->gpu.fabric_ready)
		return tti_xml_setf(detect->doc, known->node, "tutti_fabric", "%s.%u",
				    known->gpu.fabric_uuid, known->gpu.fabric_clique);
	tti_log(TTI_LOG_WARN, TTI_TOPO,
		"GPU %d (%s) belongs to the NVLink domain %s, which has not come up: links to "
		"other hosts are not counted; see the fabric manager",
		known->gpu.index, known->gpu.busid, known->gpu.fabric_uuid);
	return true;
}

static bool add_gpu(const struct tti_detect *detect, struct known *known)
{
	struct tti_xml *const pci = tti_detect_gpu_pci(detect, known->busid, TTI_PCI_NVIDIA);

	if (!pci || !set_pci_link(detect, pci, known))
		return false;
	known->node = tti_detect_gpu_add(detect, pci, known->gpu.index);
	if (!known->node ||
	    (known->gpu.sm && !tti_xml_setf(detect->doc, known->node, "sm", "%d", known->gpu.sm)) ||
	    (known->gpu.mig && !tti_xml_set(detect->doc, known->node, "tutti_mig", "1")))
		return false;
	return set_fabric(detect, known) && add_nvlinks(detect, known) && add_c2c(detect, known);
}

/* Set tutti_no_p2p to the GPUs whose memory this one may not access. */
static bool set_no_p2p(const struct tti_detect *detect, const struct tti_nvml *nvml,
		       const known_vec *all, const struct known *from)
{
	struct tti_strbuf list = { 0 };
	bool ok = true;

	for (size_t i = 0; i < all->n; i++) {
		const struct known *const to = all->at[i];
		char text[TTI_BUSID_TEXT];
		const char *why;

		if (to == from || tti_nvml_p2p(nvml, from->gpu.index, to->gpu.index, &why))
			continue;
		tti_log(TTI_LOG_INFO, TTI_TOPO, "GPU %d may not access the memory of GPU %d: %s",
			from->gpu.index, to->gpu.index, why);
		tti_strbuf_addf(&list, "%s%s", list.len ? " " : "",
				tti_busid_format(to->busid, text));
	}
	if (list.failed ||
	    (list.text && !tti_xml_set(detect->doc, from->node, "tutti_no_p2p", list.text)))
		ok = false;
	tti_strbuf_release(&list);
	return ok;
}

/* Ask for one GPU; *out NULL if the driver does not reach it. */
static tutti_status ask_gpu(const struct tti_detect *detect, const struct tti_nvml *nvml, int index,
			    struct known **out)
{
	struct known *known = tti_zalloc(sizeof(*known));
	tutti_status status;

	*out = NULL;
	if (!known)
		return tti_detect_no_memory(detect);
	status = tti_nvml_gpu(nvml, index, &known->gpu);
	if (status == TUTTI_OK && tti_busid_parse(known->gpu.busid, &known->busid)) {
		*out = known;
		return TUTTI_OK;
	}
	if (status == TUTTI_OK)
		tti_log(TTI_LOG_WARN, TTI_TOPO, "GPU %d is left out: \"%s\" is no bus id", index,
			known->gpu.busid);
	else
		tti_log(TTI_LOG_WARN, TTI_TOPO, "a GPU is left out: %s", tti_error_text());
	tti_free(known);
	return TUTTI_OK;
}

static tutti_status gpus_of_nvml(struct tti_detect *detect, const struct tti_nvml *nvml, int *ndev)
{
	known_vec all = { 0 };
	tutti_status status = TUTTI_OK;
	bool ok = true;

	for (int i = 0; ok && status == TUTTI_OK && i < tti_nvml_count(nvml); i++) {
		struct known *known;

		status = ask_gpu(detect, nvml, i, &known);
		if (!known)
			continue;
		ok = tti_vec_push(&all, known);
		if (!ok)
			tti_free(known);
		else
			ok = add_gpu(detect, known);
	}
	for (size_t i = 0; ok && status == TUTTI_OK && i < all.n; i++)
		ok = set_no_p2p(detect, nvml, &all, all.at[i]);
	*ndev += tti_nvml_count(nvml);
	tti_log(TTI_LOG_INFO, TTI_TOPO, "NVIDIA driver %s: %zu GPUs", tti_nvml_driver(nvml), all.n);
	for (size_t i = 0; i < all.n; i++)
		tti_free(all.at[i]);
	tti_vec_release(&all);
	if (!ok)
		return tti_detect_no_memory(detect);
	return status;
}

/* Without NVML: /proc/driver/nvidia lists the GPUs that have a driver, in its order. */
static tutti_status gpus_of_proc(struct tti_detect *detect, int *ndev)
{
	char **names;
	size_t n;
	bool ok = true;

	TTI_TRY(tti_sysfs_list(&detect->sysfs, &names, &n, "proc/driver/nvidia/gpus"));
	for (size_t i = 0; ok && i < n; i++) {
		struct tti_xml *pci;
		uint64_t busid;

		if (!tti_busid_parse(names[i], &busid))
			continue;
		pci = tti_detect_gpu_pci(detect, busid, TTI_PCI_NVIDIA);
		ok = pci && tti_detect_link_now(detect, pci, busid, NULL) &&
		     tti_detect_gpu_add(detect, pci, *ndev);
		++*ndev;
	}
	free(names);
	return ok ? TUTTI_OK : tti_detect_no_memory(detect);
}

tutti_status tti_detect_gpus_nvidia(struct tti_detect *detect, int *ndev, char why_out[256])
{
	const struct tti_nvml *nvml = detect->config->nvml;
	struct tti_nvml *own = NULL;
	const char *why = "";
	tutti_status status = TUTTI_OK;

	if (!nvml && detect->sysfs.captured) {
		why = "of a captured machine no driver can be asked";
	} else if (!nvml) {
		status = tti_nvml_open(&own, &why);
		nvml = own;
	}
	snprintf(why_out, 256, "%s", why);
	if (status == TUTTI_OK && nvml)
		status = gpus_of_nvml(detect, nvml, ndev);
	else if (status == TUTTI_OK)
		status = gpus_of_proc(detect, ndev);
	tti_nvml_close(own);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/detect_gpu.h"
#include "util/error.h"
#include "util/log.h"
#include "util/vec.h"

/* AMD: the kernel's compute driver (kfd) lists CPUs, GPUs and the links between them as
 * numbered directories. Lines of "name number" describe each. */

#define NODES     "sys/class/kfd/kfd/topology/nodes"
#define LINK_XGMI 11

struct kfd_gpu {
	int64_t node;
	uint64_t busid;
	struct tti_xml *gpu;
};
typedef TTI_VEC(struct kfd_gpu) kfd_vec;

/* The number of that name in a text of such lines; `missing` if it is not there. */
static uint64_t property(const char *text, const char *name, uint64_t missing)
{
	const size_t len = strlen(name);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, name, len) && text[len] == ' ')
			return strtoull(text + len, NULL, 10);
	}
	return missing;
}

/* Read the properties below `path` as a string; false: there are none. */
static bool read_properties(const struct tti_detect *detect, const char *path, char *buf,
			    size_t size)
{
	const ssize_t n = tti_sysfs_bytes(&detect->sysfs, buf, size - 1, "%s/properties", path);

	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* 90402 is gfx942: major, minor and stepping, the last two in hexadecimal digits. */
static bool set_gcn(const struct tti_detect *detect, struct tti_xml *gpu, uint64_t version)
{
	return tti_xml_setf(detect->doc, gpu, "gcn", "gfx%" PRIu64 "%" PRIx64 "%" PRIx64,
			    version / 10000, version / 100 % 100, version % 100);
}

static tutti_status add_gpu(struct tti_detect *detect, const char *name, kfd_vec *gpus, int *ndev)
{
	struct kfd_gpu found = { .node = strtoll(name, NULL, 10) };
	struct tti_xml *pci;
	char path[128], text[4096];
	uint64_t version, location;

	snprintf(path, sizeof(path), NODES "/%.32s", name);
	if (!read_properties(detect, path, text, sizeof(text)))
		return TUTTI_OK; /* a GPU that a container may not see */
	version = property(text, "gfx_target_version", 0);
	location = property(text, "location_id", 0);
	if (version == 0 || version > 999999 || location > 0xffff)
		return TUTTI_OK; /* a CPU */
	found.busid = (property(text, "domain", 0) & UINT32_MAX) << 20 | (location >> 8) << 12 |
		      (location >> 3 & 0x1f) << 4 | (location & 7);
	/* A part of a GPU may be numbered as a function that PCI does not have. */
	if (!tti_detect_find_pci(detect, found.busid) &&
	    tti_detect_find_pci(detect, TTI_BUSID_CARD(found.busid)))
		found.busid = TTI_BUSID_CARD(found.busid);
	pci = tti_detect_gpu_pci(detect, found.busid, TTI_PCI_AMD);
	if (!pci || !tti_detect_link_now(detect, pci, found.busid, NULL))
		return tti_detect_no_memory(detect);
	if (tti_xml_find(pci, "gpu", NULL, NULL)) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "kfd node %s is a part of a GPU that is listed",
			name);
		return TUTTI_OK;
	}
	found.gpu = tti_detect_gpu_add(detect, pci, *ndev);
	if (!found.gpu || !set_gcn(detect, found.gpu, version) || !tti_vec_push(gpus, found))
		return tti_detect_no_memory(detect);
	++*ndev;
	return TUTTI_OK;
}

static const struct kfd_gpu *find_node(const kfd_vec *gpus, uint64_t node)
{
	for (size_t i = 0; i < gpus->n; i++)
		if ((uint64_t)gpus->at[i].node == node)
			return &gpus->at[i];
	return NULL;
}

/* Add an xGMI link to another GPU. The driver states the bandwidth of one wire as the minimum
 * and that of all wires as the maximum. */
static tutti_status add_link(struct tti_detect *detect, const kfd_vec *gpus,
			     const struct kfd_gpu *from, const char *text)
{
	const struct kfd_gpu *const to = find_node(gpus, property(text, "node_to", UINT64_MAX));
	const uint64_t least = property(text, "min_bandwidth", 0);
	const uint64_t most = property(text, "max_bandwidth", 0);
	const uint64_t count = least && most / least ? most / least : 1;
	char target[TTI_BUSID_TEXT], class_code[16];
	struct tti_xml *xgmi;

	if (property(text, "type", 0) != LINK_XGMI)
		return TUTTI_OK;
	if (!to || to == from || count > 64) {
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"kfd node %" PRId64 ": an xGMI link to node %" PRIu64 " of %" PRIu64
			" wires is not one between GPUs: not counted",
			from->node, property(text, "node_to", UINT64_MAX), count);
		return TUTTI_OK;
	}
	xgmi = tti_xml_add(detect->doc, from->gpu, "xgmi");
	if (!xgmi ||
	    !tti_xml_set(detect->doc, xgmi, "target", tti_busid_format(to->busid, target)) ||
	    !tti_xml_setf(detect->doc, xgmi, "count", "%" PRIu64, count) ||
	    !tti_xml_set(detect->doc, xgmi, "tclass",
			 tti_detect_class(detect, to->busid, "0x", "0x038000", class_code)) ||
	    /* The version of the format that has this element. */
	    !tti_xml_set(detect->doc, detect->doc->root, "version", "2"))
		return tti_detect_no_memory(detect);
	return TUTTI_OK;
}

static tutti_status add_links(struct tti_detect *detect, const kfd_vec *gpus,
			      const struct kfd_gpu *from)
{
	tutti_status status = TUTTI_OK;
	char path[128], text[4096];
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&detect->sysfs, &names, &n, NODES "/%" PRId64 "/io_links",
			       from->node));
	for (size_t i = 0; status == TUTTI_OK && i < n; i++) {
		snprintf(path, sizeof(path), NODES "/%" PRId64 "/io_links/%.32s", from->node,
			 names[i]);
		if (read_properties(detect, path, text, sizeof(text)))
			status = add_link(detect, gpus, from, text);
	}
	free(names);
	return status;
}

static int by_number(const void *a, const void *b)
{
	const long long x = strtoll(*(char *const *)a, NULL, 10);
	const long long y = strtoll(*(char *const *)b, NULL, 10);

	return (x > y) - (x < y);
}

tutti_status tti_detect_gpus_amd(struct tti_detect *detect, int *ndev)
{
	tutti_status status = TUTTI_OK;
	kfd_vec gpus = { 0 };
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&detect->sysfs, &names, &n, NODES));
	if (n > 1)
		qsort(names, n, sizeof(*names), by_number);
	for (size_t i = 0; status == TUTTI_OK && i < n; i++)
		status = add_gpu(detect, names[i], &gpus, ndev);
	for (size_t i = 0; status == TUTTI_OK && i < gpus.n; i++)
		status = add_links(detect, &gpus, &gpus.at[i]);
	tti_vec_release(&gpus);
	free(names);
	return status;
}

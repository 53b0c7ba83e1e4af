/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUDirect RDMA: whether NICs may read and write GPU memory, and why. Either of two ways is
 * enough: a peer memory module, by which the RDMA stack gets memory from the GPU's driver, or
 * dma-buf, which needs support in the kernel and in both drivers, and no module. */
#include "topo/detect/detect_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/nic_scan.h"
#include "util/error.h"

enum vendor { NO_GPU, NVIDIA, AMD, OTHER, NVENDORS };

/* By what the GPUs of one vendor take part; an empty text: not in that way. */
struct peer {
	char module[96]; /* "nvidia_peermem is loaded"                        */
	bool dmabuf;     /* the driver exports dma-bufs                       */
	char why[160];   /* or why it does not                                */
};

struct gdr {
	struct tti_detect *detect;
	int kernel;        /* 5 * 1000 + 12, 0: not known                     */
	enum vendor there; /* the vendor of the GPUs of this machine; the first of several */
	struct peer peers[NVENDORS];
};

#define VERSION(major, minor) ((major)*1000 + (minor))
/* The RDMA core takes dma-bufs since 5.12. */
#define DMABUF_KERNEL         VERSION(5, 12)

/* The first kernel in which the RDMA side of a PCI driver takes dma-bufs. */
static const struct {
	const char *driver;
	int kernel;
} dmabuf_nics[] = {
	{ "mlx5_core", VERSION(5, 12) },
	{ "efa", VERSION(5, 16) },
	{ "ice", VERSION(6, 4) },     /* irdma */
	{ "bnxt_en", VERSION(6, 6) }, /* bnxt_re */
};

/* Modules, and entries of the RDMA stack, which are there if GPU memory can be registered. */
static const struct {
	enum vendor vendor;
	const char *path, *text;
} peer_modules[] = {
	{ NVIDIA, "sys/module/nvidia_peermem", "nvidia_peermem is loaded" },
	{ NVIDIA, "sys/module/nv_peer_mem", "nv_peer_mem is loaded" },
	{ NVIDIA, "sys/kernel/mm/memory_peers/nv_mem", "the peer memory client nv_mem is there" },
	{ NVIDIA, "sys/kernel/mm/memory_peers/nv_mem_nc",
	  "the peer memory client nv_mem_nc is there" },
	{ NVIDIA, "sys/module/efa_nv_peermem", "efa_nv_peermem is loaded" },
	{ AMD, "sys/kernel/mm/memory_peers/amdkfd", "the peer memory client amdkfd is there" },
};

/* -- What there is -------------------------------------------------------------------- */

static int kernel_version(const struct tti_sysfs *sysfs)
{
	char line[256];
	int major, minor;

	if (tti_sysfs_line(sysfs, line, sizeof(line), "proc/sys/kernel/osrelease") &&
	    sscanf(line, "%4d.%4d", &major, &minor) == 2)
		return VERSION(major, minor);
	if (tti_sysfs_line(sysfs, line, sizeof(line), "proc/version") &&
	    sscanf(line, "Linux version %4d.%4d", &major, &minor) == 2)
		return VERSION(major, minor);
	return 0;
}

static enum vendor vendor_of(const struct tti_xml *pci)
{
	const char *const text = pci ? tti_xml_get(pci, "vendor") : NULL;

	switch (text ? strtoul(text, NULL, 16) : 0) {
	case 0x10de:
		return NVIDIA;
	case 0x1002:
		return AMD;
	default:
		return OTHER;
	}
}

/* Display controllers and accelerators, with or without a driver. */
static bool is_gpu(const struct tti_xml *pci)
{
	const char *const class = tti_xml_get(pci, "class");

	return tti_xml_is(pci, "pci") && class &&
	       (!strncmp(class, "0x03", 4) || !strncmp(class, "0x12", 4));
}

static enum vendor find_vendor(const struct tti_xml_doc *doc)
{
	enum vendor found = NO_GPU;

	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		const enum vendor vendor = is_gpu(node) ? vendor_of(node) : NO_GPU;

		if (vendor == NVIDIA || vendor == AMD)
			return vendor;
		/* Not the VGA of a mainboard. */
		if (vendor == OTHER && strncmp(tti_xml_get(node, "class"), "0x0300", 6) != 0)
			found = OTHER;
	}
	return found;
}

/* NVIDIA's open modules export dma-bufs, the proprietary ones do not. */
static void find_nvidia(const struct tti_sysfs *sysfs, struct peer *peer)
{
	char line[256];

	if (!tti_sysfs_line(sysfs, line, sizeof(line), "proc/driver/nvidia/version")) {
		snprintf(peer->why, sizeof(peer->why), "the NVIDIA driver is not loaded");
		return;
	}
	peer->dmabuf = strstr(line, "Open Kernel Module") != NULL;
	if (!peer->dmabuf)
		snprintf(peer->why, sizeof(peer->why),
			 "nvidia_peermem is not loaded, and of the NVIDIA modules only the open "
			 "ones have dma-buf");
}

static void find_amd(const struct tti_sysfs *sysfs, struct peer *peer)
{
	peer->dmabuf = tti_sysfs_exists(sysfs, "sys/module/amdgpu");
	if (!peer->dmabuf)
		snprintf(peer->why, sizeof(peer->why), "the amdgpu driver is not loaded");
}

static void find_peers(struct gdr *gdr)
{
	const struct tti_sysfs *const sysfs = &gdr->detect->sysfs;

	for (size_t i = 0; i < sizeof(peer_modules) / sizeof(peer_modules[0]); i++) {
		struct peer *const peer = &gdr->peers[peer_modules[i].vendor];

		if (!peer->module[0] && tti_sysfs_exists(sysfs, "%s", peer_modules[i].path))
			snprintf(peer->module, sizeof(peer->module), "%s", peer_modules[i].text);
	}
	find_nvidia(sysfs, &gdr->peers[NVIDIA]);
	find_amd(sysfs, &gdr->peers[AMD]);
	snprintf(gdr->peers[OTHER].why, sizeof(gdr->peers[OTHER].why),
		 "for GPUs of this vendor no way is known");
	snprintf(gdr->peers[NO_GPU].why, sizeof(gdr->peers[NO_GPU].why), "there is no GPU");
	gdr->kernel = kernel_version(sysfs);
	gdr->there = find_vendor(gdr->detect->doc);
}

/* -- What follows --------------------------------------------------------------------- */

/* Whether the GPU takes part: by a module, or by dma-buf and a kernel that has it. */
static bool peer_gdr(const struct gdr *gdr, enum vendor vendor, bool *by_module, char *why,
		     size_t size)
{
	const struct peer *const peer = &gdr->peers[vendor];

	*by_module = peer->module[0] != '\0';
	if (*by_module) {
		snprintf(why, size, "%s", peer->module);
		return true;
	}
	if (!peer->dmabuf) {
		snprintf(why, size, "%s", peer->why);
		return false;
	}
	if (!gdr->kernel) {
		snprintf(why, size, "no peer memory module, and the kernel's version is not known");
		return false;
	}
	if (gdr->kernel < DMABUF_KERNEL) {
		snprintf(why, size,
			 "no peer memory module, and kernel %d.%d has no dma-buf for RDMA (5.12 "
			 "has)",
			 gdr->kernel / 1000, gdr->kernel % 1000);
		return false;
	}
	snprintf(why, size, "dma-buf, kernel %d.%d", gdr->kernel / 1000, gdr->kernel % 1000);
	return true;
}

/* Whether the NIC takes part by dma-buf. */
static bool nic_dmabuf(const struct gdr *gdr, const char *device, char *why, size_t size)
{
	char driver[64];

	if (!tti_sysfs_real_name(&gdr->detect->sysfs, driver, sizeof(driver),
				 "sys/class/infiniband/%s/device/driver", device)) {
		snprintf(why, size, "no peer memory module, and the NIC's driver is not known");
		return false;
	}
	for (size_t i = 0; i < sizeof(dmabuf_nics) / sizeof(dmabuf_nics[0]); i++) {
		if (strcmp(driver, dmabuf_nics[i].driver) != 0)
			continue;
		if (gdr->kernel >= dmabuf_nics[i].kernel) {
			snprintf(why, size, "dma-buf, kernel %d.%d, driver %s", gdr->kernel / 1000,
				 gdr->kernel % 1000, driver);
			return true;
		}
		snprintf(why, size, "no peer memory module, and %s has dma-buf from kernel %d.%d",
			 driver, dmabuf_nics[i].kernel / 1000, dmabuf_nics[i].kernel % 1000);
		return false;
	}
	snprintf(why, size, "no peer memory module, and the driver %s is not known to have dma-buf",
		 driver);
	return false;
}

static bool set_gdr(struct gdr *gdr, struct tti_xml *node, bool good, const char *why)
{
	return tti_xml_set(gdr->detect->doc, node, "gdr", good ? "1" : "0") &&
	       tti_xml_set(gdr->detect->doc, node, "tutti_gdr_why", why);
}

static bool set_gpu(struct gdr *gdr, struct tti_xml *gpu)
{
	char why[256];
	bool by_module;
	const bool good = peer_gdr(gdr, vendor_of(gpu->parent), &by_module, why, sizeof(why));

	return set_gdr(gdr, gpu, good, why);
}

static bool set_net(struct gdr *gdr, struct tti_xml *net)
{
	const char *const text = tti_xml_get(net, "name"), *const name = text ? text : "";
	char device[256], why[256];
	bool good, by_module;

	/* "mlx4_0:2" is a port of mlx4_0. */
	snprintf(device, sizeof(device), "%.*s", (int)strcspn(name, ":"), name);
	if (!device[0] || !tti_sysfs_exists(&gdr->detect->sysfs, "sys/class/infiniband/%s", device))
		return set_gdr(gdr, net, false, "not an RDMA device");
	good = peer_gdr(gdr, gdr->there, &by_module, why, sizeof(why));
	if (good && !by_module)
		good = nic_dmabuf(gdr, device, why, sizeof(why));
	return set_gdr(gdr, net, good, why);
}

tutti_status tti_detect_gdr(struct tti_detect *detect)
{
	struct gdr gdr = { .detect = detect };
	bool complete = true;

	find_peers(&gdr);
	for (struct tti_xml *node = detect->doc->root; node && complete;
	     node = tti_xml_walk(node)) {
		if (tti_xml_is(node, "gpu"))
			complete = set_gpu(&gdr, node);
		else if (tti_xml_is(node, "net"))
			complete = set_net(&gdr, node);
	}
	return complete ? TUTTI_OK : tti_detect_no_memory(detect);
}

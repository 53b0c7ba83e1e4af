/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_NICS_H
#define TESTS_TOPO_NICS_H

/* Network cards of a made-up machine, as the kernel shows them. Places are below
 * sys/devices: "pci0000:00/0000:00:01.0/0000:01:00.0". tree.h comes before this one. */

#include <stdarg.h>

/* A file with text, whose name is put together. */
static inline void nics_file(struct tree *tree, const char *text, const char *fmt, ...)
{
	char name[512];
	va_list list;

	va_start(list, fmt);
	vsnprintf(name, sizeof(name), fmt, list);
	va_end(list);
	tree_file(tree, name, text);
}

static inline void nics_link(struct tree *tree, const char *target, const char *fmt, ...)
{
	char name[512];
	va_list list;

	va_start(list, fmt);
	vsnprintf(name, sizeof(name), fmt, list);
	va_end(list);
	tree_link(tree, name, target);
}

static inline const char *nics_base(const char *path)
{
	const char *const slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A PCI function, class "0x020000"; its driver may be NULL. */
static inline void nics_pci(struct tree *tree, const char *place, const char *class,
			    const char *driver)
{
	char target[512];

	nics_file(tree, class, "sys/devices/%s/class", place);
	nics_file(tree, "0x15b3\n", "sys/devices/%s/vendor", place);
	nics_file(tree, "0x101b\n", "sys/devices/%s/device", place);
	nics_file(tree, "0\n", "sys/devices/%s/numa_node", place);
	snprintf(target, sizeof(target), "../../../devices/%s", place);
	nics_link(tree, target, "sys/bus/pci/devices/%s", nics_base(place));
	if (!driver)
		return;
	nics_file(tree, "\n", "sys/bus/pci/drivers/%s/uevent", driver);
	snprintf(target, sizeof(target), "/sys/bus/pci/drivers/%s", driver);
	nics_link(tree, target, "sys/devices/%s/driver", place);
}

/* An interface of a device; without one (NULL) it is virtual. */
static inline void nics_net(struct tree *tree, const char *name, const char *place)
{
	char dir[256], target[512];

	snprintf(dir, sizeof(dir), "sys/devices/%s/net/%s", place ? place : "virtual", name);
	nics_file(tree, "1\n", "%s/type", dir);
	nics_file(tree, "7\n", "%s/ifindex", dir);
	nics_file(tree, "7\n", "%s/iflink", dir);
	nics_file(tree, "up\n", "%s/operstate", dir);
	nics_file(tree, "INTERFACE=x\nIFINDEX=7\n", "%s/uevent", dir);
	snprintf(target, sizeof(target), "../../%s", dir + strlen("sys/"));
	nics_link(tree, target, "sys/class/net/%s", name);
	if (place)
		nics_link(tree, "../..", "%s/device", dir);
}

/* Replace one of its files. */
static inline void nics_net_set(struct tree *tree, const char *name, const char *file,
				const char *text)
{
	nics_file(tree, text, "sys/class/net/%s/%s", name, file);
}

/* An RDMA device with ports 1 to nports, active, 100 Gb/s Ethernet; without a place it
 * is software. `guid` as sysfs writes it. */
static inline void nics_rdma(struct tree *tree, const char *name, const char *place, int nports,
			     const char *guid)
{
	char dir[256], target[512];

	snprintf(dir, sizeof(dir), "sys/devices/%s/infiniband/%s", place ? place : "virtual", name);
	nics_file(tree, "1: CA\n", "%s/node_type", dir);
	nics_file(tree, guid, "%s/node_guid", dir);
	nics_file(tree, guid, "%s/sys_image_guid", dir);
	for (int port = 1; port <= nports; port++) {
		nics_file(tree, "4: ACTIVE\n", "%s/ports/%d/state", dir, port);
		nics_file(tree, "100 Gb/sec (4X EDR)\n", "%s/ports/%d/rate", dir, port);
		nics_file(tree, "Ethernet\n", "%s/ports/%d/link_layer", dir, port);
	}
	snprintf(target, sizeof(target), "../../%s", dir + strlen("sys/"));
	nics_link(tree, target, "sys/class/infiniband/%s", name);
	if (place)
		nics_link(tree, "../..", "%s/device", dir);
}

static inline void nics_rdma_set(struct tree *tree, const char *name, const char *file,
				 const char *text)
{
	nics_file(tree, text, "sys/class/infiniband/%s/%s", name, file);
}

#endif

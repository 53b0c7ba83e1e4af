/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of RDMA devices, from sys/class/infiniband. */
#include "topo/detect/nic_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

#define CLASS     "sys/class/infiniband"
#define MAX_MBPS  1e9 /* a thousand times what there is */
#define NODE_RNIC 4
#define MAX_PORT  255 /* of one device, in InfiniBand's addresses */

/* "0c42:a103:0003:5a9e": the bytes of the GUID in the order in which they are sent,
 * as the number that NCCL on a little-endian host makes of them. 0: none. */
static uint64_t read_guid(const struct tti_sysfs *sysfs, const char *device, const char *file)
{
	unsigned part[4];
	uint64_t guid = 0;
	char line[64];

	tti_sysfs_line(sysfs, line, sizeof(line), CLASS "/%s/%s", device, file);
	if (sscanf(line, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	for (int i = 0; i < 4; i++)
		guid = guid << 16 | part[i];
	return __builtin_bswap64(guid);
}

/* "100 Gb/sec (4X EDR)" */
static int64_t read_rate(const struct tti_sysfs *sysfs, const char *device, const char *port)
{
	char line[64], *end;
	double gbps;

	if (!tti_sysfs_line(sysfs, line, sizeof(line), CLASS "/%s/ports/%s/rate", device, port))
		return -1;
	gbps = strtod(line, &end);
	if (end == line || strncmp(end, " Gb/sec", 7) != 0 || !(gbps > 0) || gbps * 1e3 > MAX_MBPS)
		return -1;
	return llround(gbps * 1e3);
}

/* Whether this is software RDMA, over an interface that is listed by itself. One driver names
 * that interface in `parent`; the other one is an RNIC without a hardware revision. */
static bool is_software(const struct tti_sysfs *sysfs, const char *device)
{
	char line[256];
	int64_t revision;

	if (tti_sysfs_line(sysfs, line, sizeof(line), CLASS "/%s/parent", device)) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: software RDMA over %s", device,
			line);
		return true;
	}
	if (!tti_sysfs_line(sysfs, line, sizeof(line), CLASS "/%s/node_type", device) ||
	    atoi(line) != NODE_RNIC || tti_sysfs_int(sysfs, &revision, CLASS "/%s/hw_rev", device))
		return false;
	tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: software RDMA (an RNIC without hardware)",
		device);
	return true;
}

/* Find the device that it belongs to. false: there is none, which is logged. */
static bool find_device(const struct tti_sysfs *sysfs, const char *device, char *buf, size_t size)
{
	char *end;

	if (tti_sysfs_real(sysfs, buf, size, CLASS "/%s/device", device))
		return true;
	if (tti_sysfs_real(sysfs, buf, size, CLASS "/%s", device) &&
	    strncmp(buf, "sys/devices/virtual/", 20) != 0 &&
	    (end = strstr(buf, "/infiniband/")) != NULL) {
		*end = '\0';
		return true;
	}
	tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: there is no device behind it", device);
	return false;
}

/* The interface of a port, if the driver names it. */
static const char *read_netdev(struct tti_nic_scan *scan, const char *device, const char *port)
{
	char line[64];

	if (!tti_sysfs_line(scan->sysfs, line, sizeof(line), CLASS "/%s/ports/%s/gid_attrs/ndevs/0",
			    device, port) ||
	    !line[0] || !tti_sysfs_exists(scan->sysfs, "sys/class/net/%s", line))
		return NULL;
	return tti_nic_keep(scan, line);
}

/* The upper half of the first GID, unless that is the default of all subnets. */
static const char *read_subnet(struct tti_nic_scan *scan, const char *device, const char *port)
{
	char line[64];

	if (!tti_sysfs_line(scan->sysfs, line, sizeof(line), CLASS "/%s/ports/%s/gids/0", device,
			    port) ||
	    strlen(line) != 39 || !strncmp(line, "fe80:", 5))
		return NULL;
	line[19] = '\0';
	return strcmp(line, "0000:0000:0000:0000") ? tti_nic_keep(scan, line) : NULL;
}

/* "4: ACTIVE"; a port that is on its way up counts as down. */
static bool is_down(const struct tti_sysfs *sysfs, const char *device, const char *port)
{
	char line[32];

	return tti_sysfs_line(sysfs, line, sizeof(line), CLASS "/%s/ports/%s/state", device,
			      port) &&
	       !strstr(line, "ACTIVE");
}

static tutti_status scan_port(struct tti_nic_scan *scan, const char *device, const char *number,
			      bool several, struct tti_nic_port port)
{
	char name[320], layer[32];

	snprintf(name, sizeof(name), "%s%s%s", device, several ? ":" : "", several ? number : "");
	port.name = tti_nic_keep(scan, name);
	port.unit = atoi(number);
	if (port.unit < 1 || port.unit > MAX_PORT) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: no number of a port", name);
		return TUTTI_OK;
	}
	port.netdev = read_netdev(scan, device, number);
	if (port.netdev && tti_nic_is_representor(scan->sysfs, port.netdev)) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: it stands for a virtual function",
			name);
		return TUTTI_OK;
	}
	port.down = is_down(scan->sysfs, device, number);
	/* A port without a link states a speed that it does not have. */
	port.speed_mbps = port.down ? -1 : read_rate(scan->sysfs, device, number);
	if (tti_sysfs_line(scan->sysfs, layer, sizeof(layer), CLASS "/%s/ports/%s/link_layer",
			   device, number) &&
	    strcmp(layer, "Unspecified") != 0)
		port.link_layer = tti_nic_keep(scan, layer);
	if (port.link_layer && !strcmp(port.link_layer, "InfiniBand"))
		port.subnet = read_subnet(scan, device, number);
	return tti_nic_port_add(scan, &port);
}

static tutti_status scan_device(struct tti_nic_scan *scan, const char *device)
{
	struct tti_nic_port port = { .rdma = true };
	char path[TTI_NIC_PATH];
	tutti_status status;
	char **numbers;
	size_t n;

	if (is_software(scan->sysfs, device) ||
	    !find_device(scan->sysfs, device, path, sizeof(path)))
		return TUTTI_OK;
	tti_nic_port_place(scan, path, &port);
	port.guid = read_guid(scan->sysfs, device, "sys_image_guid");
	if (!port.guid)
		port.guid = read_guid(scan->sysfs, device, "node_guid");
	TTI_TRY(tti_sysfs_list(scan->sysfs, &numbers, &n, CLASS "/%s/ports", device));
	status = TUTTI_OK;
	for (size_t i = 0; i < n && !status; i++)
		status = scan_port(scan, device, numbers[i], n > 1, port);
	if (!n)
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: it has no ports", device);
	free(numbers);
	return status;
}

tutti_status tti_nic_scan_rdma(struct tti_nic_scan *scan)
{
	tutti_status status = TUTTI_OK;
	char **devices;
	size_t n;

	TTI_TRY(tti_sysfs_list(scan->sysfs, &devices, &n, CLASS));
	for (size_t i = 0; i < n && !status; i++)
		status = scan_device(scan, devices[i]);
	free(devices);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The network interfaces that are hardware, from sys/class/net. */
#include "topo/detect/nic_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

#define CLASS "sys/class/net"

/* Types of interfaces, as <net/if_arp.h> numbers them. */
enum { TYPE_ETHER = 1, TYPE_INFINIBAND = 32, TYPE_LOOPBACK = 772 };

struct netdev {
	const struct tti_sysfs *sysfs;
	const char *name;
};

static bool has(const struct netdev *netdev, const char *file)
{
	return tti_sysfs_exists(netdev->sysfs, CLASS "/%s/%s", netdev->name, file);
}

static int64_t number(const struct netdev *netdev, const char *file, int64_t missing)
{
	int64_t value;

	return tti_sysfs_int(netdev->sysfs, &value, CLASS "/%s/%s", netdev->name, file) ? value
											: missing;
}

/* The kind of interface by the kernel (DEVTYPE=vlan); "" for a plain one. */
static void read_devtype(const struct netdev *netdev, char *buf, size_t size)
{
	char text[1024], *begin;
	ssize_t len = tti_sysfs_bytes(netdev->sysfs, text, sizeof(text) - 1, CLASS "/%s/uevent",
				      netdev->name);

	buf[0] = '\0';
	if (len <= 0)
		return;
	text[len] = '\0';
	begin = strstr(text, "DEVTYPE=");
	if (begin)
		snprintf(buf, size, "%.*s", (int)strcspn(begin + 8, "\n"), begin + 8);
}

bool tti_nic_is_representor(const struct tti_sysfs *sysfs, const char *netdev)
{
	char port[32];
	int skip = 0, pf;

	if (!tti_sysfs_line(sysfs, port, sizeof(port), CLASS "/%s/phys_port_name", netdev))
		return false;
	if (port[0] == 'c' && sscanf(port, "c%*u%n", &skip) != 0)
		skip = 0;
	return sscanf(port + skip, "pf%d", &pf) == 1;
}

/* Why an interface is not hardware, by files that the kernel shows for that kind alone; NULL:
 * nothing says so. */
static const char *why_made_up(const struct netdev *netdev)
{
	char devtype[32];

	if (has(netdev, "bonding"))
		return "a bond: the interfaces below it are the hardware";
	if (has(netdev, "bridge"))
		return "a bridge";
	if (has(netdev, "tun_flags"))
		return "a tun or tap device";
	if (has(netdev, "wireless") || has(netdev, "phy80211"))
		return "wireless";
	read_devtype(netdev, devtype, sizeof(devtype));
	if (!strcmp(devtype, "vlan"))
		return "a VLAN: the interface below it is the hardware";
	if (!strcmp(devtype, "bond"))
		return "a bond: the interfaces below it are the hardware";
	if (!strcmp(devtype, "bridge"))
		return "a bridge";
	if (!strcmp(devtype, "wlan") || !strcmp(devtype, "wwan"))
		return "wireless";
	return NULL;
}

static const char *why_no_nic(const struct netdev *netdev)
{
	const int64_t type = number(netdev, "type", TYPE_ETHER);
	const int64_t index = number(netdev, "ifindex", 0);
	const int64_t below = number(netdev, "iflink", index);
	const char *why = why_made_up(netdev);

	if (why)
		return why;
	if (type == TYPE_LOOPBACK)
		return "the loopback";
	if (type != TYPE_ETHER && type != TYPE_INFINIBAND)
		return "neither Ethernet nor InfiniBand";
	/* A VLAN, macvlan, ipvlan or partition of another interface, or the end of a pair. */
	if (below > 0 && below != index)
		return "it sits on another interface";
	if (tti_nic_is_representor(netdev->sysfs, netdev->name))
		return "it stands for a virtual function of its card";
	return NULL;
}

/* Find the device behind an interface, or return why there is none. A captured machine may
 * lack the `device` link; then the path of the interface says which device it is. */
static const char *find_device(const struct netdev *netdev, char *buf, size_t size)
{
	char *end;

	if (tti_sysfs_real(netdev->sysfs, buf, size, CLASS "/%s/device", netdev->name))
		return NULL;
	if (!tti_sysfs_real(netdev->sysfs, buf, size, CLASS "/%s", netdev->name))
		return "its entry leads nowhere";
	if (!strncmp(buf, "sys/devices/virtual/", 20))
		return "virtual: there is no device behind it";
	end = strstr(buf, "/net/");
	if (!end)
		return "there is no device behind it";
	*end = '\0';
	return NULL;
}

/* Whether an interface that is a device has another one below it. The synthetic interface of a
 * virtual machine has: its traffic goes through the virtual function below. */
static bool has_lower(struct tti_nic_scan *scan, const char *name, char *lower, size_t size)
{
	bool found = false;
	char **entries;
	size_t n;

	if (tti_sysfs_list(scan->sysfs, &entries, &n, CLASS "/%s", name)) {
		scan->failed = true;
		return false;
	}
	for (size_t i = 0; i < n && !found; i++) {
		if (strncmp(entries[i], "lower_", 6) != 0 || !entries[i][6])
			continue;
		snprintf(lower, size, "%s", entries[i] + 6);
		found = true;
	}
	free(entries);
	return found;
}

static bool is_nic(struct tti_nic_scan *scan, const char *name, char *device, size_t size)
{
	const struct netdev netdev = { scan->sysfs, name };
	const char *why = why_no_nic(&netdev);
	char lower[64];

	if (!why)
		why = find_device(&netdev, device, size);
	if (why) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s is left out: %s", name, why);
		return false;
	}
	if (has_lower(scan, name, lower, sizeof(lower))) {
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s is left out: its traffic goes through %s, which is the hardware", name,
			lower);
		return false;
	}
	return true;
}

/* Whether it is known to have no link. Drivers that do not track that say "unknown". */
static bool is_down(const struct netdev *netdev)
{
	char state[32];

	return tti_sysfs_line(netdev->sysfs, state, sizeof(state), CLASS "/%s/operstate",
			      netdev->name) &&
	       strcmp(state, "up") != 0 && strcmp(state, "unknown") != 0 && state[0];
}

static tutti_status scan_netdev(struct tti_nic_scan *scan, const char *name)
{
	const struct netdev netdev = { scan->sysfs, name };
	struct tti_nic_port port = { .speed_mbps = -1 };
	char path[TTI_NIC_PATH], master[256];

	if (!is_nic(scan, name, path, sizeof(path)))
		return TUTTI_OK;
	tti_nic_port_place(scan, path, &port);
	port.name = tti_nic_keep(scan, name);
	/* IPoIB counted ports in dev_id before there was dev_port. */
	port.unit = (int)(number(&netdev, "dev_port", 0) & 0xffff);
	if (!port.unit && number(&netdev, "type", TYPE_ETHER) == TYPE_INFINIBAND)
		port.unit = (int)(number(&netdev, "dev_id", 0) & 0xffff);
	port.unit++;
	port.down = is_down(&netdev);
	if (!port.down)
		port.speed_mbps = number(&netdev, "speed", -1);
	/* Some kernels print "not known", -1 in 32 bits, as an unsigned number. */
	if (port.speed_mbps <= 0 || port.speed_mbps >= UINT32_MAX)
		port.speed_mbps = -1;
	if (tti_sysfs_real_name(scan->sysfs, master, sizeof(master), CLASS "/%s/master", name))
		port.master = tti_nic_keep(scan, master);
	return tti_nic_port_add(scan, &port);
}

tutti_status tti_nic_scan_netdevs(struct tti_nic_scan *scan)
{
	tutti_status status = TUTTI_OK;
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(scan->sysfs, &names, &n, CLASS));
	for (size_t i = 0; i < n && !status; i++)
		status = scan_netdev(scan, names[i]);
	free(names);
	return status;
}

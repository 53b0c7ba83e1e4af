/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_NIC_SCAN_H
#define TTI_TOPO_DETECT_NIC_SCAN_H

/* The ports of RDMA devices and the network interfaces that are hardware, before they have a
 * place in the tree. All others (bridges, bonds, VLANs, ends of veth pairs, software RDMA) are
 * left out, and the log says why at INFO.
 *
 * Owner: tti_nic_scan_release(); all strings are the scan's.
 * Threads: not synchronised. */

#include <stdbool.h>
#include <stdint.h>

#include "topo/detect/sysfs.h"
#include "topo/tree/busid.h"
#include "util/arena.h"
#include "util/vec.h"

/* Longest path of an entry in sysfs that is followed. */
#define TTI_NIC_PATH 4096

struct tti_nic_port {
	const char *name;       /* "mlx5_0", of several ports "mlx4_0:2"; "eth0"      */
	const char *netdev;     /* interface of an RDMA port, NULL                    */
	const char *master;     /* bond or bridge that uses the interface, NULL       */
	const char *link_layer; /* "InfiniBand", "Ethernet"; NULL: not said           */
	const char *subnet;     /* prefix of an InfiniBand subnet that has its own    */
	const char *path;       /* of its device: "sys/devices/pci0000:00/...",       */
	uint64_t function;      /* its PCI function, TTI_BUSID_NONE: it is no PCI NIC */
	uint64_t physical;      /* the physical function of a virtual one, NONE       */
	uint64_t guid;          /* of the card, bytes as NCCL has them; 0: none       */
	int64_t speed_mbps;     /* -1: not known                                      */
	int unit;               /* port of its function, from 1                       */
	bool rdma, down;
};

struct tti_nic_scan {
	const struct tti_sysfs *sysfs;
	struct tti_arena arena;
	TTI_VEC(struct tti_nic_port) ports;
	bool failed; /* out of memory on the way: TUTTI_ENOMEM in the end */
};

/* Append the ports that sys/class/infiniband and sys/class/net have, by name. */
TUTTI_CHECKED tutti_status tti_nic_scan_rdma(struct tti_nic_scan *scan);
TUTTI_CHECKED tutti_status tti_nic_scan_netdevs(struct tti_nic_scan *scan);
void tti_nic_scan_release(struct tti_nic_scan *scan);

/* Whether an interface is a representor: on a NIC that is a switch, the end that leads to a
 * virtual function or to another host ("pf0vf3", "c1pf0sf88"; a port of the wire is "p0"). */
bool tti_nic_is_representor(const struct tti_sysfs *sysfs, const char *netdev);

/* For the two scans: copy a text; say where a port is, by the real path of its device; add a
 * port to the list. */
const char *tti_nic_keep(struct tti_nic_scan *scan, const char *text);
void tti_nic_port_place(struct tti_nic_scan *scan, const char *device, struct tti_nic_port *port);
TUTTI_CHECKED tutti_status tti_nic_port_add(struct tti_nic_scan *scan,
					    const struct tti_nic_port *port);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts network cards into the tree. The ports of one card are one <nic>, whichever of its
 * functions they belong to, since they share its PCI link. A virtual function is a port of the
 * card of its physical function if that is visible, else a card of its own. */
#include "topo/detect/detect_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/nic_scan.h"
#include "util/error.h"
#include "util/log.h"

/* -- Ports and their interfaces ------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool has_other_port(const struct tti_nic_scan *scan, const struct tti_nic_port *port)
{
	for (size_t i = 0; i < scan->ports.n; i++) {
		const struct tti_nic_port *const other = &scan->ports.at[i];

		if (other != port && other->rdma && same_text(other->path, port->path))
			return true;
	}
	return false;
}

/* Whether an interface belongs to that RDMA port: it is on the same device, or in the bond
 * that is the interface of the RDMA device. */
static bool is_interface_of(const struct tti_nic_scan *scan, const struct tti_nic_port *netdev,
			    const struct tti_nic_port *rdma)
{
	if (same_text(netdev->name, rdma->netdev))
		return true;
	if (same_text(netdev->master, rdma->netdev) && netdev->function != TTI_BUSID_NONE &&
	    TTI_BUSID_CARD(netdev->function) == TTI_BUSID_CARD(rdma->function))
		return true;
	return same_text(netdev->path, rdma->path) &&
	       (netdev->unit == rdma->unit || !has_other_port(scan, rdma));
}

static struct tti_nic_port *find_rdma(const struct tti_nic_scan *scan,
				      const struct tti_nic_port *netdev)
{
	for (size_t i = 0; i < scan->ports.n; i++) {
		struct tti_nic_port *const port = &scan->ports.at[i];

		if (port->rdma && is_interface_of(scan, netdev, port))
			return port;
	}
	return NULL;
}

/* Keep one entry for each port: interfaces of RDMA ports go into the entries of these. */
static void merge_interfaces(struct tti_nic_scan *scan)
{
	size_t kept = 0;

	for (size_t i = 0; i < scan->ports.n; i++) {
		const struct tti_nic_port port = scan->ports.at[i];
		struct tti_nic_port *const rdma = port.rdma ? NULL : find_rdma(scan, &port);

		if (!rdma) {
			scan->ports.at[kept++] = port;
			continue;
		}
		if (!rdma->netdev)
			rdma->netdev = port.name;
		if (!rdma->master && !same_text(port.master, rdma->netdev))
			rdma->master = port.master;
		if (rdma->speed_mbps <= 0 && !rdma->down)
			rdma->speed_mbps = port.speed_mbps;
	}
	scan->ports.n = kept;
}

/* -- Cards ---------------------------------------------------------------------------- */

/* The function whose PCI link and cable a port uses. */
static uint64_t port_function(const struct tti_nic_port *port)
{
	return port->physical != TTI_BUSID_NONE ? port->physical : port->function;
}

static bool same_card(const struct tti_nic_port *a, const struct tti_nic_port *b)
{
	if (port_function(a) == TTI_BUSID_NONE || port_function(b) == TTI_BUSID_NONE)
		return same_text(a->path, b->path);
	return TTI_BUSID_CARD(port_function(a)) == TTI_BUSID_CARD(port_function(b));
}

static bool same_port(const struct tti_nic_port *a, const struct tti_nic_port *b)
{
	return port_function(a) == port_function(b) && a->unit == b->unit;
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By PCI address, then by name. NICs that are not on PCI come last, by device. Virtual
 * functions follow the port whose cable they use. */
static int compare(const void *left, const void *right)
{
	const struct tti_nic_port *const a = left, *const b = right;
	int by = order(port_function(a), port_function(b));

	if (!by && port_function(a) == TTI_BUSID_NONE)
		by = strcmp(a->path, b->path);
	if (!by)
		by = a->unit - b->unit;
	if (!by)
		by = (a->physical != TTI_BUSID_NONE) - (b->physical != TTI_BUSID_NONE);
	if (!by)
		by = order(a->function, b->function);
	return by ? by : strcmp(a->name, b->name);
}

/* -- Into the tree -------------------------------------------------------------------- */

/* The NUMA node that the nearest device above states. */
static int64_t numa_of(const struct tti_detect *detect, const char *path)
{
	int64_t numa;

	for (size_t len = strlen(path); len > 0; len = tti_sysfs_parent(path, len))
		if (tti_sysfs_int(&detect->sysfs, &numa, "%.*s/numa_node", (int)len, path) &&
		    numa >= 0)
			return numa;
	return -1;
}

/* The nearest function above that is in the tree. */
static struct tti_xml *nearest_pci(const struct tti_detect *detect, const char *path)
{
	struct tti_xml *pci = NULL;
	uint64_t busid;

	for (size_t len = strlen(path); len > 0 && !pci; len = tti_sysfs_parent(path, len))
		if (tti_busid_of_path(path, len, &busid))
			pci = tti_detect_find_pci(detect, busid);
	return pci;
}

/* Where the <nic> of a card goes. */
static struct tti_xml *find_place(const struct tti_detect *detect, const struct tti_nic_port *port)
{
	struct tti_xml *place = NULL;

	if (port->function == TTI_BUSID_NONE) {
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s is not on PCI: it is placed below the CPU of its NUMA node",
			port->name);
		return tti_detect_find_cpu(detect, numa_of(detect, port->path));
	}
	place = tti_detect_find_pci(detect, port_function(port));
	if (!place)
		place = tti_detect_find_pci(detect, port->function);
	if (place)
		return place;
	tti_log(TTI_LOG_INFO, TTI_TOPO, "%s: its PCI function is not in the tree: %s", port->name,
		port->path);
	place = nearest_pci(detect, port->path);
	return place ? place : tti_detect_find_cpu(detect, numa_of(detect, port->path));
}

/* Drop the element of a function whose ports went to another function of its card. */
static void drop_function(const struct tti_detect *detect, const struct tti_nic_port *port,
			  const struct tti_xml *place)
{
	struct tti_xml *const pci = port->function == TTI_BUSID_NONE
					    ? NULL
					    : tti_detect_find_pci(detect, port->function);

	if (pci && pci != place && !pci->first && !detect->config->all)
		tti_xml_unlink(pci);
}

static bool set_text(struct tti_xml_doc *doc, struct tti_xml *net, const char *name,
		     const char *value)
{
	return !value || tti_xml_set(doc, net, name, value);
}

static bool write_net(struct tti_xml_doc *doc, struct tti_xml *nic, const struct tti_nic_port *port,
		      size_t dev, int number)
{
	char busid[TTI_BUSID_TEXT];
	struct tti_xml *const net = tti_xml_add(doc, nic, "net");

	return net && tti_xml_set(doc, net, "name", port->name) &&
	       tti_xml_setf(doc, net, "dev", "%zu", dev) &&
	       tti_xml_setf(doc, net, "speed", "%" PRId64, port->speed_mbps) &&
	       tti_xml_setf(doc, net, "port", "%d", number) &&
	       (!port->guid || tti_xml_setf(doc, net, "guid", "0x%" PRIx64, port->guid)) &&
	       set_text(doc, net, "tutti_netdev", port->netdev) &&
	       set_text(doc, net, "tutti_master", port->master) &&
	       set_text(doc, net, "tutti_link_layer", port->link_layer) &&
	       set_text(doc, net, "tutti_subnet", port->subnet) &&
	       set_text(doc, net, "tutti_state", port->down ? "down" : NULL) &&
	       (port->physical == TTI_BUSID_NONE ||
		tti_xml_set(doc, net, "tutti_vf_of", tti_busid_format(port->physical, busid)));
}

/* The ports are sorted: those of a card follow each other. */
static bool write_cards(struct tti_detect *detect, const struct tti_nic_scan *scan)
{
	struct tti_xml *place = NULL, *nic = NULL;
	int number = 0; /* of the wire on its card */

	for (size_t i = 0; i < scan->ports.n; i++) {
		const struct tti_nic_port *const port = &scan->ports.at[i];

		if (!i || !same_card(port, port - 1)) {
			place = find_place(detect, port);
			nic = place ? tti_xml_add(detect->doc, place, "nic") : NULL;
			number = 0;
		}
		number += !number || !same_port(port, port - 1);
		if (!nic || !write_net(detect->doc, nic, port, i, number))
			return false;
		drop_function(detect, port, place);
	}
	return true;
}

tutti_status tti_detect_nics(struct tti_detect *detect)
{
	struct tti_nic_scan scan = { .sysfs = &detect->sysfs };
	tutti_status status = tti_nic_scan_rdma(&scan);

	if (!status)
		status = tti_nic_scan_netdevs(&scan);
	if (!status && scan.ports.n) {
		merge_interfaces(&scan);
		qsort(scan.ports.at, scan.ports.n, sizeof(scan.ports.at[0]), compare);
		if (!write_cards(detect, &scan))
			status = tti_detect_no_memory(detect);
	}
	tti_nic_scan_release(&scan);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/nic_scan.h"

#include <string.h>

#include "util/error.h"

void tti_nic_scan_release(struct tti_nic_scan *scan)
{
	tti_vec_release(&scan->ports);
	tti_arena_release(&scan->arena);
	scan->failed = false;
}

/* The PCI function that a device is, or that is one level above it (virtio7, an auxiliary
 * device). A NIC with another bus in between, as USB, is not a PCI NIC. */
static uint64_t function_of(const char *device)
{
	size_t len = strlen(device);
	uint64_t busid;

	for (int level = 0; level < 2 && len > 0; level++) {
		if (tti_busid_of_path(device, len, &busid))
			return busid;
		len = tti_sysfs_parent(device, len);
	}
	return TTI_BUSID_NONE;
}

/* The physical function of a virtual one, if this machine can see it. */
static uint64_t physical_of(const struct tti_sysfs *sysfs, uint64_t function)
{
	char busid[TTI_BUSID_TEXT], name[TTI_BUSID_TEXT];
	uint64_t physical;

	if (function != TTI_BUSID_NONE &&
	    tti_sysfs_real_name(sysfs, name, sizeof(name), "sys/bus/pci/devices/%s/physfn",
				tti_busid_format(function, busid)) &&
	    tti_busid_parse(name, &physical))
		return physical;
	return TTI_BUSID_NONE;
}

const char *tti_nic_keep(struct tti_nic_scan *scan, const char *text)
{
	const char *const copy = tti_arena_strdup(&scan->arena, text);

	scan->failed = scan->failed || !copy;
	return copy;
}

void tti_nic_port_place(struct tti_nic_scan *scan, const char *device, struct tti_nic_port *port)
{
	port->path = tti_nic_keep(scan, device);
	port->function = function_of(device);
	port->physical = physical_of(scan->sysfs, port->function);
}

tutti_status tti_nic_port_add(struct tti_nic_scan *scan, const struct tti_nic_port *port)
{
	if (scan->failed || !tti_vec_push(&scan->ports, *port))
		return tti_fail(TUTTI_ENOMEM, "no memory for the network cards");
	return TUTTI_OK;
}

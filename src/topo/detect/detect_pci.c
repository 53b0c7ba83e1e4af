/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/pci_scan.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

/* -- Which of them matter ----------------------------------------------------------- */

static uint32_t read_id(const struct tti_pci_scan *scan, const struct tti_pci_function *function,
			const char *file)
{
	int64_t value;

	return tti_sysfs_int(&scan->detect->sysfs, &value, "%s/%s", function->path, file) &&
			       value >= 0 && value <= 0xffffff
		       ? (uint32_t)value
		       : TTI_PCI_CLASS_NONE;
}

#define NVIDIA 0x10de

static bool communicates(const struct tti_pci_scan *scan, const struct tti_pci_function *function)
{
	switch (function->class_code >> 16) {
	case 0x02: /* network */
	case 0x03: /* display, 3D */
	case 0x12: /* processing accelerator */
		return function->class_code != TTI_PCI_CLASS_NONE;
	default:
		break;
	}
	switch (function->class_code >> 8) {
	case 0x0b40: /* co-processor */
	case 0x0c06: /* InfiniBand, before it became a network */
		return true;
	case 0x0680: /* another bridge: NVSwitch */
		return read_id(scan, function, "vendor") == NVIDIA;
	default:
		return false;
	}
}

static void want(struct tti_pci_function *function)
{
	for (; function && !function->is_wanted; function = function->above)
		function->is_wanted = true;
}

static void read_classes(struct tti_pci_scan *scan)
{
	for (size_t i = 0; i < scan->functions.n; i++) {
		struct tti_pci_function *function = &scan->functions.at[i];

		function->class_code = read_id(scan, function, "class");
		if (function->class_code >> 8 == 0x0604)
			function->is_bridge = true;
		if (function->is_bridge && function->class_code == TTI_PCI_CLASS_NONE)
			function->class_code = 0x060400; /* functions are below it */
		if (function->is_listed &&
		    (scan->detect->config->all || communicates(scan, function)))
			want(function);
	}
}

/* -- Which of them are an element --------------------------------------------------- */

/* A switch is an upstream port with downstream ports below it, which are folded into it. The
 * PCI Express capability of a bridge below a bridge says whether it is such a port. Where that
 * may not be read, ports are assumed to alternate on the way down: upstream, downstream,
 * upstream and so on. */
static bool is_folded(const struct tti_pci_scan *scan, struct tti_pci_function *function)
{
	const struct tti_pci_function *above = function->above;

	if (!function->is_bridge)
		return false;
	if (!above)
		return true;
	function->port = tti_pci_link_port(&scan->detect->sysfs, function->path);
	switch (function->port) {
	case TTI_PCI_PORT_ROOT:
	case TTI_PCI_PORT_DOWNSTREAM:
		return true;
	case TTI_PCI_PORT_UPSTREAM:
	case TTI_PCI_PORT_BRIDGE:
	case TTI_PCI_PORT_ENDPOINT:
		return false;
	case TTI_PCI_PORT_UNKNOWN:
	default:
		return !above->is_folded && above->port != TTI_PCI_PORT_BRIDGE;
	}
}

static void fold_ports(struct tti_pci_scan *scan)
{
	for (size_t i = 0; i < scan->in_order.n; i++) {
		struct tti_pci_function *function = scan->in_order.at[i];
		struct tti_pci_function *above = function->above;

		if (!function->is_wanted)
			continue;
		function->is_folded = is_folded(scan, function);
		if (above)
			function->holder = above->is_folded ? above->holder : above;
		if (function->holder)
			function->level = function->holder->level + 1;
	}
}

/* -- The elements ------------------------------------------------------------------- */

static const struct tti_pci_link *get_end(const struct tti_pci_scan *scan,
					  struct tti_pci_function *function)
{
	if (!function->is_end_known)
		function->end = tti_pci_link_max(&scan->detect->sysfs, function->path);
	function->is_end_known = true;
	return &function->end;
}

static int least_known(int a, int b)
{
	return a > 0 && (b == 0 || a < b) ? a : b;
}

/* Set what both ends can do, or what one can if the other is not known. */
static bool set_link(struct tti_pci_scan *scan, struct tti_pci_function *function)
{
	struct tti_pci_link link = *get_end(scan, function);
	const struct tti_pci_link now = tti_pci_link_now(&scan->detect->sysfs, function->path);

	if (function->above) {
		const struct tti_pci_link *other = get_end(scan, function->above);

		link.decigts = least_known(link.decigts, other->decigts);
		link.width = least_known(link.width, other->width);
	}
	return tti_pci_link_set(scan->detect->doc, function->xml, &link) &&
	       tti_pci_link_set_now(scan->detect->doc, function->xml, &now);
}

static bool set_ids(struct tti_pci_scan *scan, struct tti_pci_function *function)
{
	static const char *const files[] = { "vendor", "device", "subsystem_vendor",
					     "subsystem_device" };
	struct tti_xml_doc *doc = scan->detect->doc;

	if (function->class_code != TTI_PCI_CLASS_NONE &&
	    !tti_xml_setf(doc, function->xml, "class", "0x%06x", function->class_code))
		return false;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		const uint32_t id = read_id(scan, function, files[i]);

		if (id <= UINT16_MAX && !tti_xml_setf(doc, function->xml, files[i], "0x%04x", id))
			return false;
	}
	return true;
}

static bool add_element(struct tti_pci_scan *scan, struct tti_pci_function *function)
{
	struct tti_xml *parent = function->holder ? function->holder->xml : function->top->cpu;
	struct tti_xml_doc *doc = scan->detect->doc;
	char busid[TTI_BUSID_TEXT];

	function->xml = tti_xml_add(doc, parent, "pci");
	return function->xml &&
	       tti_xml_set(doc, function->xml, "busid", tti_busid_format(function->busid, busid)) &&
	       set_ids(scan, function) && set_link(scan, function);
}

static int by_level(const void *a, const void *b)
{
	const struct tti_pci_function *first = *(struct tti_pci_function *const *)a;
	const struct tti_pci_function *second = *(struct tti_pci_function *const *)b;

	if (first->level != second->level)
		return first->level < second->level ? -1 : 1;
	return tti_pci_scan_by_busid(first, second);
}

/* Level by level, so that a parent is there before its children, and children are in the order
 * of their bus ids. */
static tutti_status add_elements(struct tti_pci_scan *scan)
{
	if (scan->in_order.n > 0)
		qsort(scan->in_order.at, scan->in_order.n, sizeof(*scan->in_order.at), by_level);
	for (size_t i = 0; i < scan->in_order.n; i++) {
		struct tti_pci_function *function = scan->in_order.at[i];

		if (function->is_wanted && !function->is_folded && !add_element(scan, function))
			return tti_detect_no_memory(scan->detect);
	}
	return TUTTI_OK;
}

static tutti_status scan_all(struct tti_pci_scan *scan)
{
	TTI_TRY(tti_pci_scan_functions(scan));
	read_classes(scan);
	fold_ports(scan);
	TTI_TRY(tti_pci_place(scan));
	return add_elements(scan);
}

tutti_status tti_detect_pci(struct tti_detect *detect)
{
	struct tti_pci_scan scan = { .detect = detect };
	const tutti_status st = scan_all(&scan);

	tti_vec_release(&scan.functions);
	tti_vec_release(&scan.in_order);
	tti_arena_release(&scan.arena);
	return st;
}

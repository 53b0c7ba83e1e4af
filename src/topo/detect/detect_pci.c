/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/pci_scan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"

#define DEVICES "sys/bus/pci/devices"

int tti_pci_scan_by_busid(const void *a, const void *b)
{
	const struct tti_pci_function *first = a, *second = b;

	if (first->busid != second->busid)
		return first->busid < second->busid ? -1 : 1;
	return second->is_listed - first->is_listed;
}

struct tti_pci_function *tti_pci_scan_find(const struct tti_pci_scan *scan, uint64_t busid)
{
	size_t low = 0, high = scan->functions.n;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (scan->functions.at[middle].busid < busid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scan->functions.n && scan->functions.at[low].busid == busid
		       ? &scan->functions.at[low]
		       : NULL;
}

/* A function and all on the way to it: a port may be missing in the list. */
static bool add_path(struct tti_pci_scan *scan, uint64_t busid, const char *real)
{
	struct tti_pci_function function = { .busid = busid, .is_listed = true };

	function.path = tti_arena_strdup(&scan->arena, real);
	if (!function.path)
		return false;
	function.path_len = strlen(function.path);
	do {
		if (!tti_vec_push(&scan->functions, function))
			return false;
		function.is_listed = false;
		function.path_len = tti_sysfs_parent(function.path, function.path_len);
	} while (tti_busid_of_path(function.path, function.path_len, &function.busid));
	return true;
}

static tutti_status add_listed(struct tti_pci_scan *scan, const char *name)
{
	const struct tti_sysfs *sysfs = &scan->detect->sysfs;
	char real[PATH_MAX];
	uint64_t busid;

	if (!tti_busid_parse(name, &busid)) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s: " DEVICES "/%s is no PCI function: left out",
			sysfs->path, name);
		return TUTTI_OK;
	}
	if (!tti_sysfs_real(sysfs, real, sizeof(real), DEVICES "/%s", name)) {
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s: " DEVICES "/%s leads nowhere: left out",
			sysfs->path, name);
		return TUTTI_OK;
	}
	return add_path(scan, busid, real) ? TUTTI_OK : tti_detect_no_memory(scan->detect);
}

/* Sorted, each once, each path a string of its own. */
static tutti_status make_unique(struct tti_pci_scan *scan)
{
	struct tti_pci_function *at = scan->functions.at;
	size_t n = 0;

	if (scan->functions.n > 0)
		qsort(at, scan->functions.n, sizeof(*at), tti_pci_scan_by_busid);
	for (size_t i = 0; i < scan->functions.n; i++)
		if (n == 0 || at[n - 1].busid != at[i].busid)
			at[n++] = at[i];
	scan->functions.n = n;
	for (size_t i = 0; i < n; i++) {
		char *path;

		if (at[i].path[at[i].path_len] == '\0')
			continue;
		path = tti_arena_alloc(&scan->arena, at[i].path_len + 1);
		if (!path)
			return tti_detect_no_memory(scan->detect);
		memcpy(path, at[i].path, at[i].path_len);
		at[i].path = path;
	}
	return TUTTI_OK;
}

static tutti_status find_functions(struct tti_pci_scan *scan)
{
	tutti_status st = TUTTI_OK;
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&scan->detect->sysfs, &names, &n, DEVICES));
	for (size_t i = 0; i < n && st == TUTTI_OK; i++)
		st = add_listed(scan, names[i]);
	free(names);
	return st == TUTTI_OK ? make_unique(scan) : st;
}

/* -- How they hang together --------------------------------------------------------- */

/* Only what lies on the own path is above: so there are no circles, whatever links a
 * captured machine has. */
static struct tti_pci_function *find_above(const struct tti_pci_scan *scan,
					   const struct tti_pci_function *function)
{
	const size_t len = tti_sysfs_parent(function->path, function->path_len);
	struct tti_pci_function *above;
	uint64_t busid;

	if (!tti_busid_of_path(function->path, len, &busid))
		return NULL;
	above = tti_pci_scan_find(scan, busid);
	return above && above->path_len == len && memcmp(above->path, function->path, len) == 0
		       ? above
		       : NULL;
}

static int by_depth(const void *a, const void *b)
{
	const struct tti_pci_function *first = *(struct tti_pci_function *const *)a;
	const struct tti_pci_function *second = *(struct tti_pci_function *const *)b;

	if (first->depth != second->depth)
		return first->depth < second->depth ? -1 : 1;
	return tti_pci_scan_by_busid(first, second);
}

static tutti_status connect_functions(struct tti_pci_scan *scan)
{
	for (size_t i = 0; i < scan->functions.n; i++) {
		struct tti_pci_function *function = &scan->functions.at[i];

		function->above = find_above(scan, function);
		if (function->above)
			function->above->is_bridge = true;
	}
	for (size_t i = 0; i < scan->functions.n; i++) {
		struct tti_pci_function *function = &scan->functions.at[i];

		function->top = function;
		for (; function->top->above; function->top = function->top->above)
			function->depth++;
		if (!tti_vec_push(&scan->in_order, function))
			return tti_detect_no_memory(scan->detect);
	}
	if (scan->in_order.n > 0)
		qsort(scan->in_order.at, scan->in_order.n, sizeof(*scan->in_order.at), by_depth);
	return TUTTI_OK;
}

tutti_status tti_pci_scan_functions(struct tti_pci_scan *scan)
{
	TTI_TRY(find_functions(scan));
	return connect_functions(scan);
}

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

/* A switch is an upstream port with downstream ports below it: these are folded into
 * it. Whether a bridge below a bridge is such a port is known from its PCI Express
 * capability or, where that may not be read, taken from the order in which they come:
 * upstream, downstream, upstream, ... as long as they hang in each other. */
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

/* What both ends can do; of one alone if the other does not say. */
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

/* Level by level: what an element hangs below is there before it, and children come
 * in the order of their bus ids. */
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

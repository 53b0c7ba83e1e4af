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

/* Add a function and all functions on its path, since a port may be missing in the list. */
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

/* Sort the functions, keep each once, and give each a string of its own as its path. */
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

/* A function's parent lies on its own path. So there are no circles, whatever links a captured
 * machine has. */
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

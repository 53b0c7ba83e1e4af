/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/pci_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/cpuset.h"
#include "util/error.h"
#include "util/log.h"

/* Which CPU the functions of a root bus hang below. All that is below one function of a root
 * bus has one place: the one stated by the function that is nearest to the root, and that has
 * the lowest bus id among equals. If another function states another place, that is wrong and
 * logged. */

struct place {
	struct tti_xml *xml;
	struct tti_cpuset cpus;
};

struct places {
	struct tti_pci_scan *scan;
	TTI_VEC(struct place) cpus; /* in the order of the document */
};

static tutti_status read_cpus(struct places *places)
{
	struct tti_xml *xml = tti_xml_find(places->scan->detect->doc->root, "cpu", NULL, NULL);

	for (; xml; xml = tti_xml_next(xml, "cpu")) {
		const char *affinity = tti_xml_get(xml, "affinity");
		struct place place = { .xml = xml };

		if (affinity)
			tti_cpuset_parse_map(&place.cpus, affinity);
		if (place.cpus.failed || !tti_vec_push(&places->cpus, place)) {
			tti_cpuset_release(&place.cpus);
			return tti_detect_no_memory(places->scan->detect);
		}
	}
	return TUTTI_OK;
}

static void release(struct places *places)
{
	for (size_t i = 0; i < places->cpus.n; i++)
		tti_cpuset_release(&places->cpus.at[i].cpus);
	tti_vec_release(&places->cpus);
}

static const char *id_of(const struct tti_xml *cpu)
{
	const char *id = tti_xml_get(cpu, "numaid");

	return id ? id : "?";
}

/* -- By numa_node ------------------------------------------------------------------- */

static void place_by_node(struct places *places, struct tti_pci_function *function)
{
	const struct tti_sysfs *sysfs = &places->scan->detect->sysfs;
	struct tti_pci_function *top = function->top;
	char name[TTI_BUSID_TEXT];
	struct tti_xml *cpu;
	int64_t node;

	if (!tti_sysfs_int(sysfs, &node, "%s/numa_node", function->path) || node < 0)
		return;
	cpu = tti_detect_find_cpu(places->scan->detect, node);
	if (strtoll(id_of(cpu), NULL, 10) != node)
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s: PCI function %s states NUMA node %" PRId64
			", which is not there: ignored",
			sysfs->path, tti_busid_format(function->busid, name), node);
	else if (!top->cpu)
		top->cpu = cpu;
	else if (top->cpu != cpu)
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s: PCI function %s states NUMA node %" PRId64
			", but a function nearer to its root bus states %s, which counts",
			sysfs->path, tti_busid_format(function->busid, name), node,
			id_of(top->cpu));
}

/* -- By local CPUs ------------------------------------------------------------------ */

/* NULL: these are all CPUs, or no known ones. */
static struct tti_xml *find_by_cpus(const struct places *places,
				    const struct tti_pci_function *function,
				    const struct tti_cpuset *local)
{
	struct tti_xml *found = NULL;
	char name[TTI_BUSID_TEXT];
	bool has_all = true, has_more = false;

	for (size_t i = 0; i < places->cpus.n; i++) {
		const struct place *place = &places->cpus.at[i];

		has_all = has_all && tti_cpuset_is_within(&place->cpus, local);
		if (!tti_cpuset_meets(&place->cpus, local))
			continue;
		has_more = found != NULL;
		found = found ? found : place->xml;
	}
	if (has_all || !found)
		return NULL;
	if (has_more)
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s: PCI function %s is local to several NUMA nodes; taken to be at %s",
			places->scan->detect->sysfs.path, tti_busid_format(function->busid, name),
			id_of(found));
	return found;
}

static tutti_status place_by_cpus(struct places *places, struct tti_pci_function *function)
{
	const struct tti_sysfs *sysfs = &places->scan->detect->sysfs;
	struct tti_cpuset local = { 0 };
	bool ok;

	if (function->top->cpu)
		return TUTTI_OK;
	ok = tti_cpuset_read(&local, sysfs, tti_cpuset_parse_map, "%s/local_cpus",
			     function->path) ||
	     tti_cpuset_read(&local, sysfs, tti_cpuset_parse_list, "%s/local_cpulist",
			     function->path);
	if (ok)
		function->top->cpu = find_by_cpus(places, function, &local);
	ok = !local.failed;
	tti_cpuset_release(&local);
	return ok ? TUTTI_OK : tti_detect_no_memory(places->scan->detect);
}

/* -- By what it is behind ----------------------------------------------------------- */

/* A function may itself make a root bus, as Intel's VMD does:
 * .../0000:5d:05.5/pci10000:00/10000:00:02.0 is where 0000:5d:05.5 is. */
static struct tti_pci_function *find_maker(const struct places *places,
					   const struct tti_pci_function *top)
{
	size_t len = top->path_len;
	uint64_t busid;

	while ((len = tti_sysfs_parent(top->path, len)) > 0)
		if (tti_busid_of_path(top->path, len, &busid))
			return tti_pci_scan_find(places->scan, busid);
	return NULL;
}

static tutti_status place_by_maker(struct places *places, struct tti_pci_function *top)
{
	struct tti_pci_function *maker = find_maker(places, top);

	if (!maker || maker->top == top)
		return TUTTI_OK;
	if (!maker->top->cpu)
		place_by_node(places, maker);
	TTI_TRY(place_by_cpus(places, maker));
	top->cpu = maker->top->cpu;
	return TUTTI_OK;
}

/* ----------------------------------------------------------------------------------- */

/* Place the rest, of which nothing is known, at the first CPU. */
static void place_rest(struct places *places)
{
	const struct tti_pci_scan *scan = places->scan;
	char name[TTI_BUSID_TEXT] = "";
	size_t n = 0;

	for (size_t i = 0; i < scan->in_order.n; i++) {
		struct tti_pci_function *top = scan->in_order.at[i];

		if (top->above || top->cpu)
			continue;
		top->cpu = places->cpus.at[0].xml;
		if (top->is_wanted && n++ == 0)
			tti_busid_format(top->busid, name);
	}
	if (n > 0 && places->cpus.n > 1)
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s does not say at which NUMA node PCI function %s is, nor %zu more: "
			"taken to be at %s",
			scan->detect->sysfs.path, name, n - 1, id_of(places->cpus.at[0].xml));
}

static tutti_status place_all(struct places *places)
{
	const struct tti_pci_scan *scan = places->scan;

	TTI_TRY(read_cpus(places));
	if (places->cpus.n > 1) {
		for (size_t i = 0; i < scan->in_order.n; i++)
			if (scan->in_order.at[i]->is_wanted)
				place_by_node(places, scan->in_order.at[i]);
		for (size_t i = 0; i < scan->in_order.n; i++)
			if (scan->in_order.at[i]->is_wanted)
				TTI_TRY(place_by_cpus(places, scan->in_order.at[i]));
		for (size_t i = 0; i < scan->in_order.n; i++)
			if (!scan->in_order.at[i]->above && !scan->in_order.at[i]->cpu)
				TTI_TRY(place_by_maker(places, scan->in_order.at[i]));
	}
	place_rest(places);
	return TUTTI_OK;
}

tutti_status tti_pci_place(struct tti_pci_scan *scan)
{
	struct places places = { .scan = scan };
	const tutti_status st = place_all(&places);

	release(&places);
	return st;
}

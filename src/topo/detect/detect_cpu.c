/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/cpuset.h"
#include "topo/detect/detect_parts.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"

/* A line of distances is shorter: the kernel writes a page at most. */
#define TEXT_BYTES 16384

#define CPU_DIR  "sys/devices/system/cpu"
#define NODE_DIR "sys/devices/system/node"

struct numa_node {
	int64_t id;
	struct tti_cpuset cpus;
	bool of_gpu;  /* it is memory of a GPU, which the driver gives to the kernel */
	bool is_kept; /* it has CPUs, memory that is not a GPU's, or a device */
};

/* The CPUs of no node that is online. */
#define NO_NODE (-1)

struct machine {
	struct tti_detect *detect;
	struct tti_cpuset online;
	TTI_VEC(struct numa_node) nodes; /* by id */
	size_t nkept;
	struct tti_cpu_kind kind;
	char host_hash[24]; /* "": not known */
};

/* The number behind `prefix` in a name like "node12". */
static bool numbered(const char *name, const char *prefix, int64_t *out)
{
	const size_t len = strlen(prefix);
	char *end;

	if (strncmp(name, prefix, len) != 0 || name[len] < '0' || name[len] > '9')
		return false;
	*out = strtoll(name + len, &end, 10);
	return *end == '\0' && *out <= INT32_MAX;
}

/* -- CPUs --------------------------------------------------------------------------- */

/* A CPU that cannot be taken offline has no file that says so. */
static bool is_online(const struct tti_sysfs *sysfs, int64_t cpu)
{
	int64_t online = 1;

	return !tti_sysfs_int(sysfs, &online, CPU_DIR "/cpu%" PRId64 "/online", cpu) || online;
}

/* For a capture without the kernel's own list. */
static tutti_status count_online(struct machine *machine)
{
	const struct tti_sysfs *sysfs = &machine->detect->sysfs;
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(sysfs, &names, &n, CPU_DIR));
	for (size_t i = 0; i < n; i++) {
		int64_t cpu;

		if (numbered(names[i], "cpu", &cpu) && is_online(sysfs, cpu))
			tti_cpuset_add(&machine->online, (uint64_t)cpu, (uint64_t)cpu);
	}
	free(names);
	return TUTTI_OK;
}

static tutti_status find_online(struct machine *machine)
{
	if (!tti_cpuset_read(&machine->online, &machine->detect->sysfs, tti_cpuset_parse_list,
			     CPU_DIR "/online"))
		TTI_TRY(count_online(machine));
	return machine->online.failed ? tti_detect_no_memory(machine->detect) : TUTTI_OK;
}

/* -- NUMA nodes --------------------------------------------------------------------- */

/* "MemTotal:  131732940 kB", somewhere in the first lines, in MiB. 0: none, or not said. */
static uint64_t parse_memory(const char *meminfo, ssize_t nbytes)
{
	static const char name[] = "MemTotal:";
	const char *at = nbytes > 0 ? strstr(meminfo, name) : NULL;

	return at ? strtoull(at + sizeof(name) - 1, NULL, 10) / 1024 : 0;
}

/* The memory of a node; of the whole machine for NULL, or if the only node does not state it. */
static uint64_t read_memory(const struct machine *machine, const struct numa_node *node)
{
	const struct tti_sysfs *sysfs = &machine->detect->sysfs;
	char text[512] = "";
	ssize_t n = -1;

	if (node && node->id == NO_NODE)
		return 0;
	if (node)
		n = tti_sysfs_bytes(sysfs, text, sizeof(text) - 1,
				    NODE_DIR "/node%" PRId64 "/meminfo", node->id);
	if (n < 0 && machine->nodes.n <= 1)
		n = tti_sysfs_bytes(sysfs, text, sizeof(text) - 1, "proc/meminfo");
	return parse_memory(text, n);
}

static tutti_status read_node_cpus(struct machine *machine, struct numa_node *node)
{
	const struct tti_sysfs *sysfs = &machine->detect->sysfs;
	bool ok;

	ok = tti_cpuset_read(&node->cpus, sysfs, tti_cpuset_parse_map,
			     NODE_DIR "/node%" PRId64 "/cpumap", node->id) ||
	     tti_cpuset_read(&node->cpus, sysfs, tti_cpuset_parse_list,
			     NODE_DIR "/node%" PRId64 "/cpulist", node->id);
	if (node->cpus.failed)
		return tti_detect_no_memory(machine->detect);
	if (!ok)
		tti_log(TTI_LOG_INFO, TTI_TOPO,
			"%s does not say which CPUs NUMA node %" PRId64 " has", sysfs->path,
			node->id);
	/* Old kernels also list CPUs that are offline. */
	if (!tti_cpuset_is_empty(&machine->online))
		tti_cpuset_and(&node->cpus, &machine->online);
	node->is_kept = !tti_cpuset_is_empty(&node->cpus);
	return TUTTI_OK;
}

static int by_id(const void *a, const void *b)
{
	const struct numa_node *first = a, *second = b;

	return (first->id > second->id) - (first->id < second->id);
}

static tutti_status read_nodes(struct machine *machine)
{
	tutti_status st = TUTTI_OK;
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&machine->detect->sysfs, &names, &n, NODE_DIR));
	for (size_t i = 0; i < n && st == TUTTI_OK; i++) {
		struct numa_node node = { 0 };

		if (numbered(names[i], "node", &node.id) && !tti_vec_push(&machine->nodes, node))
			st = tti_detect_no_memory(machine->detect);
	}
	free(names);
	if (machine->nodes.n > 0)
		qsort(machine->nodes.at, machine->nodes.n, sizeof(*machine->nodes.at), by_id);
	for (size_t i = 0; i < machine->nodes.n && st == TUTTI_OK; i++)
		st = read_node_cpus(machine, &machine->nodes.at[i]);
	return st;
}

static struct numa_node *find_node(struct machine *machine, int64_t id)
{
	const struct numa_node key = { .id = id };

	return machine->nodes.n == 0
		       ? NULL
		       : bsearch(&key, machine->nodes.at, machine->nodes.n, sizeof(key), by_id);
}

/* "Node:      255" */
static void find_gpu_memory(struct machine *machine, const char *gpu)
{
	struct numa_node *node;
	char text[256] = "";
	const char *at;

	if (tti_sysfs_bytes(&machine->detect->sysfs, text, sizeof(text) - 1,
			    "proc/driver/nvidia/gpus/%s/numa_status", gpu) <= 0)
		return;
	at = strstr(text, "Node:");
	node = at ? find_node(machine, strtoll(at + sizeof("Node:") - 1, NULL, 10)) : NULL;
	if (node)
		node->of_gpu = true;
}

/* Keep nodes that have memory and no CPUs, except memory of GPUs, which is not for ranks. */
static tutti_status keep_nodes_of_memory(struct machine *machine)
{
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(&machine->detect->sysfs, &names, &n, "proc/driver/nvidia/gpus"));
	for (size_t i = 0; i < n; i++)
		find_gpu_memory(machine, names[i]);
	free(names);
	for (size_t i = 0; i < machine->nodes.n; i++) {
		struct numa_node *node = &machine->nodes.at[i];

		if (!node->is_kept && !node->of_gpu)
			node->is_kept = read_memory(machine, node) > 0;
	}
	return TUTTI_OK;
}

/* Keep nodes without memory that a PCI device is on. */
static tutti_status keep_nodes_of_devices(struct machine *machine)
{
	const struct tti_sysfs *sysfs = &machine->detect->sysfs;
	char **names;
	size_t n;

	TTI_TRY(tti_sysfs_list(sysfs, &names, &n, "sys/bus/pci/devices"));
	for (size_t i = 0; i < n; i++) {
		struct numa_node *node = NULL;
		int64_t id;

		if (tti_sysfs_int(sysfs, &id, "sys/bus/pci/devices/%s/numa_node", names[i]))
			node = find_node(machine, id);
		if (node)
			node->is_kept = true;
	}
	free(names);
	return TUTTI_OK;
}

static size_t count_kept(const struct machine *machine)
{
	size_t n = 0;

	for (size_t i = 0; i < machine->nodes.n; i++)
		n += machine->nodes.at[i].is_kept;
	return n;
}

static tutti_status find_nodes(struct machine *machine)
{
	TTI_TRY(read_nodes(machine));
	machine->nkept = count_kept(machine);
	if (machine->nkept == 0 || machine->nkept == machine->nodes.n)
		return TUTTI_OK;
	TTI_TRY(keep_nodes_of_memory(machine));
	TTI_TRY(keep_nodes_of_devices(machine));
	machine->nkept = count_kept(machine);
	return TUTTI_OK;
}

/* -- What is said of one ------------------------------------------------------------ */

static int64_t package_of(const struct machine *machine, uint64_t cpu)
{
	int64_t package;

	if (!tti_sysfs_int(&machine->detect->sysfs, &package,
			   CPU_DIR "/cpu%" PRIu64 "/topology/physical_package_id", cpu))
		return -1;
	return package <= INT32_MAX ? package : -1;
}

/* Whether the number is in a list with commas. */
static bool has_number(const struct tti_strbuf *list, int64_t number)
{
	for (const char *at = list->text; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strtoll(at, NULL, 10) == number)
			return true;
	}
	return false;
}

/* Add all CPUs of the package of `cpu`, as far as the kernel knows them. */
static void add_package(const struct machine *machine, uint64_t cpu, struct tti_cpuset *seen)
{
	struct tti_cpuset same = { 0 };
	uint64_t other;

	if (!tti_cpuset_read(&same, &machine->detect->sysfs, tti_cpuset_parse_map,
			     CPU_DIR "/cpu%" PRIu64 "/topology/core_siblings", cpu))
		return;
	other = tti_cpuset_next(&same, 0);
	for (; other < TTI_CPUSET_MAX; other = tti_cpuset_next(&same, other + 1))
		tti_cpuset_add(seen, other, other);
	tti_cpuset_release(&same);
}

/* `first`: the package of the first CPU. `all`: all packages, if there are several. */
static void format_packages(const struct machine *machine, const struct tti_cpuset *cpus,
			    struct tti_strbuf *first, struct tti_strbuf *all)
{
	uint64_t cpu = tti_cpuset_next(cpus, 0);
	struct tti_cpuset seen = { 0 };

	for (; cpu < TTI_CPUSET_MAX; cpu = tti_cpuset_next(cpus, cpu + 1)) {
		const int64_t package = tti_cpuset_has(&seen, cpu) ? -1 : package_of(machine, cpu);

		if (package < 0 || has_number(all, package))
			continue;
		add_package(machine, cpu, &seen);
		if (first->len == 0)
			tti_strbuf_addf(first, "%" PRId64, package);
		tti_strbuf_addf(all, "%s%" PRId64, all->len > 0 ? "," : "", package);
	}
	if (!all->failed && all->len == first->len)
		tti_strbuf_release(all);
	all->failed |= seen.failed;
	tti_cpuset_release(&seen);
}

#define MAX_DISTANCE 65535 /* firmware has a byte for it */

/* For a node without CPUs: the CPUs of the nearest node; its own, if distances are not known. */
static const struct tti_cpuset *nearest_cpus(const struct machine *machine,
					     const struct numa_node *node)
{
	const struct tti_cpuset *nearest = &node->cpus;
	unsigned long least = MAX_DISTANCE;
	char text[TEXT_BYTES];
	char *at = text;

	if (!tti_cpuset_is_empty(&node->cpus) ||
	    !tti_sysfs_line(&machine->detect->sysfs, text, sizeof(text),
			    NODE_DIR "/node%" PRId64 "/distance", node->id))
		return nearest;
	for (size_t i = 0; i < machine->nodes.n; i++) {
		const struct tti_cpuset *cpus = &machine->nodes.at[i].cpus;
		char *end;
		const unsigned long distance = strtoul(at, &end, 10);

		if (end == at)
			break;
		at = end;
		if (tti_cpuset_is_empty(cpus) || distance >= least)
			continue;
		least = distance;
		nearest = cpus;
	}
	return nearest;
}

/* The kernel writes the distance to each node. Those to nodes that are kept are taken. */
static void format_distances(const struct machine *machine, const struct numa_node *node,
			     struct tti_strbuf *out)
{
	char text[TEXT_BYTES];
	char *at = text;
	size_t i = 0;

	if (!tti_sysfs_line(&machine->detect->sysfs, text, sizeof(text),
			    NODE_DIR "/node%" PRId64 "/distance", node->id))
		return;
	for (;; i++) {
		unsigned long distance;

		at += strspn(at, " ");
		if (*at < '0' || *at > '9')
			break;
		distance = strtoul(at, &at, 10);
		if (distance > MAX_DISTANCE)
			break;
		if (i < machine->nodes.n && machine->nodes.at[i].is_kept)
			tti_strbuf_addf(out, "%s%lu", out->len > 0 ? "," : "", distance);
	}
	if (i == machine->nodes.n && *at == '\0')
		return;
	tti_log(TTI_LOG_INFO, TTI_TOPO,
		"%s: the distances of NUMA node %" PRId64
		" are \"%s\", which is not one for each of %zu nodes: left out",
		machine->detect->sysfs.path, node->id, text, machine->nodes.n);
	tti_strbuf_release(out);
}

/* The same for all processes of a host until it boots again. */
static void read_host_hash(struct machine *machine)
{
	const struct tti_sysfs *sysfs = &machine->detect->sysfs;
	char name[256], boot[64], both[sizeof(name) + sizeof(boot)];
	int len;

	if (!tti_sysfs_line(sysfs, name, sizeof(name), "proc/sys/kernel/hostname") ||
	    !tti_sysfs_line(sysfs, boot, sizeof(boot), "proc/sys/kernel/random/boot_id"))
		return;
	len = snprintf(both, sizeof(both), "%s\n%s", name, boot);
	(void)snprintf(machine->host_hash, sizeof(machine->host_hash), "0x%016" PRIx64,
		       tti_hash_bytes(both, (size_t)len));
}

/* -- The elements ------------------------------------------------------------------- */

/* Set the attribute, unless `text` is empty; empty `text` afterwards. */
static bool set_text(struct machine *machine, struct tti_xml *cpu, const char *name,
		     struct tti_strbuf *text)
{
	const bool ok = !text->failed && (text->len == 0 ||
					  tti_xml_set(machine->detect->doc, cpu, name, text->text));

	tti_strbuf_release(text);
	return ok;
}

static bool set_kind(struct machine *machine, struct tti_xml *cpu)
{
	const struct tti_cpu_kind *kind = &machine->kind;
	struct tti_xml_doc *doc = machine->detect->doc;

	return (!kind->arch[0] || tti_xml_set(doc, cpu, "arch", kind->arch)) &&
	       (!kind->vendor[0] || tti_xml_set(doc, cpu, "vendor", kind->vendor)) &&
	       (kind->family < 0 || tti_xml_setf(doc, cpu, "familyid", "%" PRId64, kind->family)) &&
	       (kind->model < 0 || tti_xml_setf(doc, cpu, "modelid", "%" PRId64, kind->model));
}

/* node NULL: all of the machine, whose kernel knows no NUMA. */
static tutti_status add_cpu(struct machine *machine, const struct numa_node *node)
{
	struct tti_strbuf text = { 0 }, packages = { 0 };
	const uint64_t mib = read_memory(machine, node);
	const struct tti_cpuset *cpus = node ? &node->cpus : &machine->online;
	struct tti_xml_doc *doc = machine->detect->doc;
	struct tti_xml *cpu = tti_xml_add(doc, doc->root, "cpu");
	bool ok = cpu && (!machine->host_hash[0] ||
			  tti_xml_set(doc, cpu, "host_hash", machine->host_hash));

	ok = ok && tti_xml_setf(doc, cpu, "numaid", "%" PRId64, node ? node->id : -1);
	if (node || !tti_cpuset_is_empty(cpus))
		tti_cpuset_format(cpus, &text);
	ok = ok && set_text(machine, cpu, "affinity", &text) && set_kind(machine, cpu);
	format_packages(machine, node ? nearest_cpus(machine, node) : cpus, &text, &packages);
	ok = ok && set_text(machine, cpu, "tutti_package", &text) &&
	     set_text(machine, cpu, "tutti_packages", &packages);
	if (node && node->id != NO_NODE)
		format_distances(machine, node, &text);
	ok = ok && set_text(machine, cpu, "tutti_distances", &text);
	ok = ok && (mib == 0 || tti_xml_setf(doc, cpu, "tutti_mem_mib", "%" PRIu64, mib));
	tti_strbuf_release(&text);
	tti_strbuf_release(&packages);
	return ok ? TUTTI_OK : tti_detect_no_memory(machine->detect);
}

static bool is_in_a_node(const struct machine *machine, uint64_t cpu)
{
	for (size_t i = 0; i < machine->nodes.n; i++)
		if (tti_cpuset_has(&machine->nodes.at[i].cpus, cpu))
			return true;
	return false;
}

/* Add a <cpu> for the CPUs that run although their NUMA node is offline or they have none. */
static tutti_status add_others(struct machine *machine)
{
	struct numa_node none = { .id = NO_NODE };
	uint64_t cpu = tti_cpuset_next(&machine->online, 0);
	tutti_status st = TUTTI_OK;

	for (; cpu < TTI_CPUSET_MAX; cpu = tti_cpuset_next(&machine->online, cpu + 1))
		if (!is_in_a_node(machine, cpu))
			tti_cpuset_add(&none.cpus, cpu, cpu);
	if (none.cpus.failed)
		st = tti_detect_no_memory(machine->detect);
	else if (!tti_cpuset_is_empty(&none.cpus))
		st = add_cpu(machine, &none);
	tti_cpuset_release(&none.cpus);
	return st;
}

static tutti_status add_cpus(struct machine *machine)
{
	if (machine->nkept == 0)
		return add_cpu(machine, NULL);
	for (size_t i = 0; i < machine->nodes.n; i++)
		if (machine->nodes.at[i].is_kept)
			TTI_TRY(add_cpu(machine, &machine->nodes.at[i]));
	return add_others(machine);
}

static void release(struct machine *machine)
{
	for (size_t i = 0; i < machine->nodes.n; i++)
		tti_cpuset_release(&machine->nodes.at[i].cpus);
	tti_vec_release(&machine->nodes);
	tti_cpuset_release(&machine->online);
}

tutti_status tti_detect_cpus(struct tti_detect *detect)
{
	struct machine machine = { .detect = detect };
	tutti_status st;

	tti_detect_cpu_kind(&detect->sysfs, &machine.kind);
	read_host_hash(&machine);
	st = find_online(&machine);
	if (st == TUTTI_OK)
		st = find_nodes(&machine);
	if (st == TUTTI_OK)
		st = add_cpus(&machine);
	release(&machine);
	return st;
}

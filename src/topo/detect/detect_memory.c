/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/detect_parts.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "topo/detect/cpuset.h"
#include "topo/detect/measure.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/vec.h"

/* The time for all nodes together, without what the system takes for itself. */
#define ALL_NODES_MS 1500
#define ONE_NODE_MS  300

typedef TTI_VEC(uint32_t) cpu_vec;

/* The CPUs that this thread may run on. */
static bool own_cpus(struct tti_cpuset *out)
{
	/* The kernel refuses a mask smaller than its own. */
	for (size_t ncpus = 1024; ncpus <= TTI_CPUSET_MAX; ncpus *= 2) {
		const size_t nbytes = CPU_ALLOC_SIZE(ncpus);
		cpu_set_t *const set = CPU_ALLOC(ncpus);
		bool ok;

		if (!set)
			return false;
		ok = sched_getaffinity(0, nbytes, set) == 0;
		for (size_t cpu = 0; ok && cpu < ncpus; cpu++)
			if (CPU_ISSET_S(cpu, nbytes, set))
				(void)tti_cpuset_add(out, cpu, cpu);
		CPU_FREE(set);
		if (ok || errno != EINVAL)
			return ok && !out->failed;
	}
	return false;
}

/* Those of a <cpu> that are in `own`. */
static bool usable_cpus(const struct tti_xml *cpu, const struct tti_cpuset *own, cpu_vec *out)
{
	const char *const affinity = tti_xml_get(cpu, "affinity");
	struct tti_cpuset set = { 0 };
	bool ok = true;

	out->n = 0;
	if (affinity && tti_cpuset_parse_map(&set, affinity)) {
		tti_cpuset_and(&set, own);
		for (uint64_t i = 0; ok && (i = tti_cpuset_next(&set, i)) < TTI_CPUSET_MAX; i++)
			ok = tti_vec_push(out, (uint32_t)i);
	}
	tti_cpuset_release(&set);
	return ok;
}

static tutti_status measure_cpu(struct tti_detect *detect, struct tti_xml *cpu, const cpu_vec *cpus,
				int64_t budget_ns)
{
	const char *const numaid = tti_xml_get(cpu, "numaid");
	struct tti_memory_speed speed;
	int decigbps; /* a locale may have another point */

	TTI_TRY(tti_measure_node(cpus->at, cpus->n, budget_ns, &speed));
	decigbps = (int)(speed.gbps * 10 + 0.5);
	if (decigbps == 0)
		decigbps = 1; /* 0.0 would say that it is not known */
	tti_log(TTI_LOG_INFO, TTI_TOPO,
		"memory of NUMA node %s: %.1f GB/s with %zu threads, %.0f ns",
		numaid ? numaid : "?", speed.gbps, speed.nthreads, speed.ns);
	if (!tti_xml_setf(detect->doc, cpu, "tutti_mem_gbps", "%d.%d", decigbps / 10,
			  decigbps % 10) ||
	    !tti_xml_setf(detect->doc, cpu, "tutti_mem_ns", "%.0f", speed.ns))
		return tti_detect_no_memory(detect);
	return TUTTI_OK;
}

tutti_status tti_detect_memory(struct tti_detect *detect)
{
	struct tti_xml *const root = detect->doc->root;
	struct tti_cpuset own = { 0 };
	tutti_status status = TUTTI_OK;
	cpu_vec cpus = { 0 };
	int64_t budget_ns = ONE_NODE_MS * TTI_NS_PER_MS;
	int64_t ncpus = 0;

	if (detect->sysfs.captured)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"%s is a captured machine, whose memory cannot be measured: "
				"leave out the measurement (--measure, or measure of "
				"tutti_topo_config)",
				detect->sysfs.path);
	if (!own_cpus(&own)) {
		tti_cpuset_release(&own);
		return tti_fail(TUTTI_ESYS, "which CPUs this thread may run on cannot be read: %m");
	}
	for (struct tti_xml *cpu = tti_xml_find(root, "cpu", NULL, NULL); cpu;
	     cpu = tti_xml_next(cpu, "cpu"))
		if (usable_cpus(cpu, &own, &cpus))
			ncpus += cpus.n > 0;
	if (ncpus > 0 && budget_ns > ALL_NODES_MS * TTI_NS_PER_MS / ncpus)
		budget_ns = ALL_NODES_MS * TTI_NS_PER_MS / ncpus;
	for (struct tti_xml *cpu = tti_xml_find(root, "cpu", NULL, NULL); status == TUTTI_OK && cpu;
	     cpu = tti_xml_next(cpu, "cpu")) {
		if (!usable_cpus(cpu, &own, &cpus))
			status = tti_detect_no_memory(detect);
		else if (cpus.n > 0)
			status = measure_cpu(detect, cpu, &cpus, budget_ns);
	}
	tti_vec_release(&cpus);
	tti_cpuset_release(&own);
	return status;
}

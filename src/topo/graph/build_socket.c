/* SPDX-License-Identifier: BSD-3-Clause */
/* Assumes which NUMA nodes share a socket, where nothing says so, from the number of cores and
 * the largest number of cores that the CPU's model has. */
#include "topo/graph/build.h"

#include <string.h>

#include "topo/detect/cpuset.h"
#include "util/error.h"
#include "util/mem.h"

/* AMD and Intel cut a socket into at most so many NUMA nodes (NPS4, SNC4). */
#define MAX_CUT 4

/* No machine has more NUMA nodes, so a greater id does not say how many there are. */
#define MAX_NODES 1024

struct guess {
	struct tti_build *build;
	const struct tti_made *at;
	size_t n;
	int nodes; /* of the machine: some may not be in the file */
	int cores; /* of a NUMA node, 0: not known */
};

static struct tti_cpu_info *cpu_of(const struct guess *guess, size_t i)
{
	return &guess->build->nodes.at[guess->at[i].node].cpu;
}

/* Kernels number the first threads of all cores, then the second ones in the same order. */
static bool is_second_thread(const struct tti_cpuset *set, uint64_t ncpus)
{
	const uint64_t half = ncpus / 2;
	uint64_t cpu = tti_cpuset_next(set, 0);

	for (; cpu < TTI_CPUSET_MAX; cpu = tti_cpuset_next(set, cpu + 1))
		if (!tti_cpuset_has(set, cpu < half ? cpu + half : cpu - half))
			return false;
	return ncpus % 2 == 0;
}

static int count(const struct tti_cpuset *set, uint64_t *last)
{
	uint64_t cpu = tti_cpuset_next(set, 0);
	int n = 0;

	for (; cpu < TTI_CPUSET_MAX; cpu = tti_cpuset_next(set, cpu + 1)) {
		*last = cpu > *last ? cpu : *last;
		n++;
	}
	return n;
}

/* The most cores of one of the NUMA nodes. */
static void count_cores(struct guess *guess, struct tti_cpuset *sets)
{
	uint64_t last = 0;
	bool threads = true;

	for (size_t i = 0; i < guess->n; i++) {
		int cores = 0;

		if (tti_cpuset_parse_map(&sets[i], cpu_of(guess, i)->affinity))
			cores = count(&sets[i], &last);
		guess->cores = cores > guess->cores ? cores : guess->cores;
	}
	for (size_t i = 0; i < guess->n; i++)
		threads = threads && is_second_thread(&sets[i], last + 1);
	if (threads)
		guess->cores /= 2;
}

static tutti_status find_cores(struct guess *guess)
{
	struct tti_cpuset *sets = tti_calloc(guess->n, sizeof(*sets));
	bool failed = !sets;

	if (sets)
		count_cores(guess, sets);
	for (size_t i = 0; sets && i < guess->n; i++) {
		failed |= sets[i].failed;
		tti_cpuset_release(&sets[i]);
	}
	tti_free(sets);
	return failed ? tti_build_no_memory(guess->build) : TUTTI_OK;
}

/* The least number of sockets that have so many cores and NUMA nodes; two if the number of
 * cores is not known. Intel has cut sockets in two, and into more only of late, so four nodes
 * are two sockets. */
static int count_sockets(const struct guess *guess, const struct tti_cpu_model *model)
{
	const bool intel = strcmp(cpu_of(guess, 0)->vendor, "GenuineIntel") == 0;
	int least = (guess->nodes + MAX_CUT - 1) / MAX_CUT;

	if (!model->cores || !guess->cores || intel)
		least = least > 2 ? least : 2;
	if (model->cores && guess->cores) {
		const int needed = (guess->cores * guess->nodes + model->cores - 1) / model->cores;

		least = least > needed ? least : needed;
	}
	/* All sockets have the same number of NUMA nodes; a file may lack the last one. */
	while (least < guess->nodes && guess->nodes % least && (guess->nodes + 1) % least)
		least++;
	return least < guess->nodes ? least : guess->nodes;
}

tutti_status tti_build_guess_sockets(struct tti_build *build, const struct tti_made *at, size_t n,
				     int *per_socket_out)
{
	struct guess guess = { .build = build, .at = at, .n = n };
	const struct tti_cpu_info *last = cpu_of(&guess, n - 1);
	const bool cut = strcmp(last->vendor, "AuthenticAMD") == 0 ||
			 strcmp(last->vendor, "GenuineIntel") == 0;
	struct tti_cpu_model model;
	int nsockets;

	for (size_t i = 0; i < n; i++) {
		cpu_of(&guess, i)->package_assumed = true;
		cpu_of(&guess, i)->package = (int)i;
	}
	*per_socket_out = 1;
	if (!cut || n < 2 || last->numaid < 2 || last->numaid >= MAX_NODES)
		return TUTTI_OK;
	guess.nodes = (int)last->numaid + 1;
	TTI_TRY(find_cores(&guess));
	model = tti_graph_cpu_model(last);
	nsockets = count_sockets(&guess, &model);
	*per_socket_out = (guess.nodes + nsockets - 1) / nsockets;
	for (size_t i = 0; i < n; i++) {
		struct tti_cpu_info *cpu = cpu_of(&guess, i);

		cpu->package = cpu->numaid < 0 ? 0 : (int)(cpu->numaid / *per_socket_out);
	}
	if (!model.cores || !guess.cores)
		return tti_build_note(build, TTI_NOTE_ASSUMED_SOCKET, at[0].node, TTI_NODE_NONE,
				      at[0].xml, "%d NUMA nodes are taken for %d socket%s",
				      guess.nodes, nsockets, nsockets == 1 ? "" : "s");
	return tti_build_note(
		build, TTI_NOTE_ASSUMED_SOCKET, at[0].node, TTI_NODE_NONE, at[0].xml,
		"%d NUMA nodes of %d cores are taken for %d socket%s of %s, which has "
		"up to %d cores",
		guess.nodes, guess.cores, nsockets, nsockets == 1 ? "" : "s", model.name,
		model.cores);
}

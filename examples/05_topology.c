/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks how a machine is wired: for each GPU (or NUMA node, where there is none) the
 * NIC that is best for it, how fast that is, and why it is not faster.
 *
 * Run:    ./05_topology                this machine
 *         ./05_topology FILE.xml       a topology file, as NCCL and clouds write them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/insight.h>

static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

static tutti_topo_node node_at(tutti_topo_t topo, int index)
{
	tutti_topo_node node;

	check(tutti_topo_get_node(topo, index, &node), "tutti_topo_get_node");
	return node;
}

/* The NIC with the fastest path, -1 if there is none. */
static int best_nic(tutti_topo_t topo, int from, tutti_topo_path *best)
{
	tutti_topo_path path;
	int nic = -1;

	for (int i = 0; i < tutti_topo_node_count(topo); i++) {
		if (strcmp(node_at(topo, i).type, "NET"))
			continue;
		check(tutti_topo_get_path(topo, from, i, &path), "tutti_topo_get_path");
		/* If two are equally fast, take the one with less latency. */
		if (nic < 0 || path.gbps > best->gbps ||
		    (path.gbps >= best->gbps && path.latency_ns < best->latency_ns)) {
			*best = path;
			nic = i;
		}
	}
	return nic;
}

static void print_nics(tutti_topo_t topo, const char *type)
{
	for (int i = 0; i < tutti_topo_node_count(topo); i++) {
		const tutti_topo_node from = node_at(topo, i);
		tutti_topo_path path;
		int nic;

		if (strcmp(from.type, type))
			continue;
		nic = best_nic(topo, i, &path);
		if (nic < 0)
			printf("%s: there is no NIC\n", from.name);
		else
			printf("%s: %s, %s, %.1f GB/s, %s\n", from.name, node_at(topo, nic).name,
			       path.route, path.gbps, path.why);
	}
}

static void print_findings(tutti_topo_t topo)
{
	tutti_topo_finding finding;

	for (int i = 0; i < tutti_topo_finding_count(topo); i++) {
		check(tutti_topo_get_finding(topo, i, &finding), "tutti_topo_get_finding");
		if (strcmp(finding.severity, "note"))
			printf("%s: %s: %s\n  %s\n", finding.severity, finding.place, finding.what,
			       finding.remedy);
	}
}

int main(int argc, char **argv)
{
	tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo;

	if (argc > 1)
		config.xml_file = argv[1];
	check(tutti_topo_load(&config, &topo), "tutti_topo_load");
	if (tutti_topo_find(topo, "GPU", "GPU0") >= 0)
		print_nics(topo, "GPU");
	else
		print_nics(topo, "HOST");
	print_findings(topo);
	tutti_topo_free(topo);
	return 0;
}

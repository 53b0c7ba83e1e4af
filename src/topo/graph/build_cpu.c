/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include <stdlib.h>
#include <string.h>

#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* More sockets than this are joined by a node controller, not by a link from each to each.
 * That also keeps a document of 10,000 CPUs from making 10^8 links. */
#define MESHED_SOCKETS 8
#define MESHED_CPUS    64 /* of the full clique that NCCL assumes */

/* NUMA nodes at a smaller distance are on one socket. ACPI has 10 for local, and 20 by default
 * for another socket. */
#define SOCKET_DISTANCE 20

/* -- NUMA nodes ---------------------------------------------------------------------- */

/* The name of a host: tutti_host, unless another host has the same, else its host_hash. */
static tutti_status name_host(struct tti_build *build, const struct tti_xml *cpu, uint32_t host,
			      const char **out)
{
	uint64_t key;

	TTI_TRY(tti_build_text(build, cpu, "tutti_host", "", out));
	key = tti_hash_bytes(*out, strlen(*out));
	if (**out == '\0' || tti_map_get(&build->host_of, key, 1) != TTI_MAP_NONE)
		return tti_build_text(build, cpu, "host_hash", "", out);
	if (tti_map_put(&build->host_of, key, 1, host))
		return TUTTI_OK;
	return tti_build_no_memory(build);
}

static tutti_status find_host(struct tti_build *build, const struct tti_xml *cpu, uint32_t *out)
{
	const uint64_t key = tti_schema_host(cpu);
	const char *name;

	*out = tti_map_get(&build->host_of, key, 0);
	if (*out != TTI_MAP_NONE)
		return TUTTI_OK;
	*out = (uint32_t)build->hosts.n;
	TTI_TRY(name_host(build, cpu, *out, &name));
	if (!tti_map_put(&build->host_of, key, 0, *out) || !tti_vec_push(&build->hosts, name))
		return tti_build_no_memory(build);
	return TUTTI_OK;
}

/* The compute capability of a GPU that is on this CPU by C2C; 0: there is none. */
static tutti_status find_c2c(const struct tti_build *build, const struct tti_xml *cpu, int *out)
{
	const struct tti_xml *end = tti_xml_next(cpu, NULL);
	int64_t sm = 0;

	if (!end)
		end = tti_xml_next(cpu->parent, NULL);
	for (const struct tti_xml *xml = tti_schema_walk(cpu); xml != end && !sm;
	     xml = tti_schema_walk(xml))
		if (tti_xml_is(xml, "gpu") && tti_xml_find(xml, "c2c", NULL, NULL))
			TTI_TRY(tti_xml_int(build->doc, xml, "sm", 0, INT32_MAX, 0, &sm));
	*out = (int)sm;
	return TUTTI_OK;
}

static tutti_status read_cpu(struct tti_build *build, const struct tti_xml *xml,
			     struct tti_cpu_info *cpu)
{
	int64_t family, model;

	TTI_TRY(tti_xml_int(build->doc, xml, "numaid", -1, INT32_MAX, -1, &cpu->numaid));
	TTI_TRY(tti_xml_int(build->doc, xml, "familyid", -1, INT32_MAX, -1, &family));
	TTI_TRY(tti_xml_int(build->doc, xml, "modelid", -1, INT32_MAX, -1, &model));
	TTI_TRY(tti_build_text(build, xml, "affinity", "", &cpu->affinity));
	TTI_TRY(tti_build_text(build, xml, "arch", "", &cpu->arch));
	TTI_TRY(tti_build_text(build, xml, "vendor", "", &cpu->vendor));
	TTI_TRY(tti_xml_int(build->doc, xml, "tutti_mem_mib", 0, INT64_MAX, -1, &cpu->mem_mib));
	TTI_TRY(tti_xml_real(build->doc, xml, "tutti_mem_gbps", 1e6, 0, &cpu->mem_gbps));
	TTI_TRY(tti_xml_real(build->doc, xml, "tutti_mem_ns", 1e9, 0, &cpu->mem_ns));
	cpu->mem_measured = cpu->mem_gbps >= TTI_BUILD_LEAST_GBPS;
	TTI_TRY(find_c2c(build, xml, &cpu->c2c_sm));
	cpu->family = (int)family;
	cpu->model = (int)model;
	return TUTTI_OK;
}

tutti_status tti_build_cpus(struct tti_build *build)
{
	const struct tti_xml *xml = tti_xml_find(build->doc->root, "cpu", NULL, NULL);

	for (; xml; xml = tti_xml_next(xml, "cpu")) {
		struct tti_cpu_info cpu = { 0 };
		struct tti_made made = { .xml = xml };
		uint32_t host;

		TTI_TRY(find_host(build, xml, &host));
		TTI_TRY(read_cpu(build, xml, &cpu));
		if (cpu.numaid < 0)
			TTI_TRY(tti_build_node(build, TTI_NODE_CPU, xml, host, &made.node, "CPU"));
		else
			TTI_TRY(tti_build_node(build, TTI_NODE_CPU, xml, host, &made.node,
					       "CPU%lld", (long long)cpu.numaid));
		build->nodes.at[made.node].cpu = cpu;
		if (!tti_vec_push(&build->cpus, made))
			return tti_build_no_memory(build);
	}
	return TUTTI_OK;
}

/* -- Sockets ------------------------------------------------------------------------- */

/* The CPUs of one host, by NUMA id. */
struct group {
	struct tti_build *build;
	const struct tti_made *at;
	size_t n;
	int npackages;
	bool any_cores; /* one of them has cores */
	int per_socket; /* NUMA nodes of a socket; 0: those that are here */
};

static struct tti_cpu_info *cpu_of(const struct group *group, size_t i)
{
	return &group->build->nodes.at[group->at[i].node].cpu;
}

/* Whether the mask of CPUs is empty. A NUMA node without a mask may have some. */
static bool has_no_cores(const struct tti_cpu_info *cpu)
{
	return cpu->affinity[0] && strspn(cpu->affinity, "0x,") == strlen(cpu->affinity);
}

/* The packages that the document states. A NUMA node without cores that states none is on the
 * package of the first. */
static tutti_status read_packages(const struct group *group, bool *stated_out)
{
	int first = -1;

	*stated_out = true;
	for (size_t i = 0; i < group->n; i++) {
		int64_t package;

		TTI_TRY(tti_xml_int(group->build->doc, group->at[i].xml, "tutti_package", -1,
				    INT32_MAX, -1, &package));
		cpu_of(group, i)->package = (int)package;
		if (first < 0)
			first = (int)package;
		if (package < 0 && !has_no_cores(cpu_of(group, i)))
			*stated_out = false;
	}
	*stated_out = *stated_out && first >= 0;
	for (size_t i = 0; i < group->n && *stated_out; i++)
		if (cpu_of(group, i)->package < 0)
			cpu_of(group, i)->package = first;
	return TUTTI_OK;
}

/* Read "10,21,..." as at most n numbers; returns how many. */
static size_t read_distances(const char *list, long *row, size_t n)
{
	size_t at = 0;
	char *end;

	while (list && at < n) {
		row[at] = strtol(list, &end, 10);
		if (end == list)
			break;
		at++;
		list = *end == ',' ? end + 1 : NULL;
	}
	return at;
}

/* Give the package to CPU `first` and to those after it that are near it and have none yet.
 * The list has the distances to all nodes of the machine, where an id is a place in the list,
 * or only to those that have a <cpu>. false: the list is too short. */
static bool claim_near(const struct group *group, size_t first, int package, long *row, size_t room)
{
	const size_t n =
		read_distances(tti_xml_get(group->at[first].xml, "tutti_distances"), row, room);

	if (n < group->n)
		return false;
	for (size_t j = first; j < group->n; j++) {
		struct tti_cpu_info *cpu = cpu_of(group, j);
		const size_t at = n == group->n ? j : (size_t)cpu->numaid;

		if (j == first || (cpu->package < 0 && at < n && row[at] < SOCKET_DISTANCE))
			cpu->package = package;
	}
	return true;
}

static tutti_status packages_by_distance(const struct group *group, bool *found_out)
{
	const int64_t last = cpu_of(group, group->n - 1)->numaid;
	const size_t room = last < 1 << 20 ? (size_t)last + 1 + group->n : group->n;
	long *row = tti_calloc(room, sizeof(*row));
	int package = 0;

	if (!row)
		return tti_build_no_memory(group->build);
	*found_out = true;
	for (size_t i = 0; i < group->n && *found_out; i++)
		if (cpu_of(group, i)->package < 0)
			*found_out = claim_near(group, i, package++, row, room);
	tti_free(row);
	return TUTTI_OK;
}

static int by_package(const void *left, const void *right)
{
	const int a = *(const int *)left, b = *(const int *)right;

	return (a > b) - (a < b);
}

/* Number packages from 0 without gaps, in the order of their ids. */
static tutti_status renumber(struct group *group)
{
	int *seen = tti_calloc(group->n, sizeof(*seen));
	int n = 0;

	if (!seen)
		return tti_build_no_memory(group->build);
	for (size_t i = 0; i < group->n; i++)
		seen[i] = cpu_of(group, i)->package;
	qsort(seen, group->n, sizeof(*seen), by_package);
	for (size_t i = 0; i < group->n; i++)
		if (i == 0 || seen[i] != seen[n - 1])
			seen[n++] = seen[i];
	for (size_t i = 0; i < group->n; i++) {
		int *package = &cpu_of(group, i)->package;
		const int *at = bsearch(package, seen, (size_t)n, sizeof(*seen), by_package);

		*package = (int)(at - seen);
	}
	group->npackages = n;
	tti_free(seen);
	return TUTTI_OK;
}

typedef TTI_VEC(int) int_vec;

/* List the packages of a CPU; a NUMA node may have several. false: no memory. */
static bool list_packages(const struct group *group, size_t i, int_vec *all)
{
	const char *list = tti_xml_get(group->at[i].xml, "tutti_packages");
	const size_t before = all->n;
	bool ok = true;

	while (list && *list && ok) {
		char *end;
		const long package = strtol(list, &end, 10);

		if (end == list)
			break;
		ok = package < 0 || package > INT32_MAX || tti_vec_push(all, (int)package);
		list = *end == ',' ? end + 1 : NULL;
	}
	cpu_of(group, i)->npackages = all->n > before ? (int)(all->n - before) : 1;
	return ok && (all->n > before || tti_vec_push(all, cpu_of(group, i)->package));
}

/* Count the sockets of a host. */
static tutti_status count_sockets(const struct group *group, uint32_t *out)
{
	int_vec all = { 0 };
	bool ok = true;

	for (size_t i = 0; i < group->n && ok; i++)
		ok = list_packages(group, i, &all);
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), by_package);
	*out = 0;
	for (size_t i = 0; i < all.n; i++)
		*out += i == 0 || all.at[i] != all.at[i - 1];
	tti_vec_release(&all);
	return ok ? TUTTI_OK : tti_build_no_memory(group->build);
}

static tutti_status find_packages(struct group *group)
{
	uint32_t nsockets = 0;
	bool found;

	TTI_TRY(read_packages(group, &found));
	if (!found) {
		for (size_t i = 0; i < group->n; i++)
			cpu_of(group, i)->package = -1;
		TTI_TRY(packages_by_distance(group, &found));
	}
	if (!found)
		TTI_TRY(tti_build_guess_sockets(group->build, group->at, group->n,
						&group->per_socket));
	TTI_TRY(count_sockets(group, &nsockets));
	group->build->graph->nsockets += nsockets;
	return renumber(group);
}

/* -- Links between them, and memory ---------------------------------------------------- */

static double socket_gbps(const struct group *group, const struct tti_cpu_info *cpu)
{
	const struct tti_cpu_id id = { cpu->arch, cpu->vendor, cpu->family, cpu->model, 0 };

	return group->build->graph->model == TTI_MODEL_NCCL ? tti_model_nccl_sockets(&id)
							    : tti_graph_cpu_model(cpu).inter_gbps;
}

/* The node that stands for a socket: its PKG, or its only CPU. */
struct hub {
	uint32_t node;
	size_t first, ncpus; /* first: its first CPU in the group */
	size_t nwith;        /* CPUs that have cores */
};

/* Make a PKG for each socket, if one of them has several NUMA nodes with cores. Else NUMA
 * nodes without cores are linked to the one of their socket that has some. */
static tutti_status make_hubs(const struct group *group, struct hub *hubs)
{
	struct tti_build *build = group->build;
	bool all_single = true;

	for (int p = 0; p < group->npackages; p++)
		all_single = all_single && (hubs[p].nwith == 1 || hubs[p].ncpus == 1);
	for (int p = 0; p < group->npackages; p++) {
		const struct tti_made *first = &group->at[hubs[p].first];

		hubs[p].node = first->node;
		if (!all_single)
			TTI_TRY(tti_build_node(build, TTI_NODE_PKG, first->xml,
					       build->nodes.at[first->node].host, &hubs[p].node,
					       "PKG%d", p));
	}
	for (size_t i = 0; i < group->n; i++) {
		const struct tti_cpu_model model = tti_graph_cpu_model(cpu_of(group, i));
		const struct hub *hub = &hubs[cpu_of(group, i)->package];

		if (group->at[i].node == hub->node)
			continue;
		if (!all_single)
			build->nodes.at[group->at[i].node].parent = hub->node;
		TTI_TRY(tti_build_link(build, (struct tti_half){
						      .from = group->at[i].node,
						      .to = hub->node,
						      .type = TTI_LINK_SYS,
						      .count = 1,
						      .bw_gbps = model.intra_gbps,
						      .latency_ns = model.intra_ns,
					      }));
	}
	return TUTTI_OK;
}

/* The link that a socket has to others, or to the node in their middle. */
static struct tti_half socket_link(const struct group *group, const struct hub *hub, uint32_t to)
{
	const struct tti_cpu_info *cpu = cpu_of(group, hub->first);

	return (struct tti_half){
		.from = hub->node,
		.to = to,
		.type = TTI_LINK_SYS,
		.count = 1,
		.bw_gbps = socket_gbps(group, cpu),
		.latency_ns = tti_graph_cpu_model(cpu).inter_ns,
	};
}

/* Sockets joined through one node in the middle. */
static tutti_status join_star(const struct group *group, const struct hub *hubs, size_t n)
{
	struct tti_build *build = group->build;
	uint32_t middle;

	TTI_TRY(tti_build_node(build, TTI_NODE_PKG, NULL, build->nodes.at[hubs[0].node].host,
			       &middle, "FABRIC"));
	for (size_t i = 0; i < n; i++)
		TTI_TRY(tti_build_link(build, socket_link(group, &hubs[i], middle)));
	return TUTTI_OK;
}

static tutti_status join_mesh(const struct group *group, const struct hub *hubs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (i != j)
				TTI_TRY(tti_build_half(group->build,
						       socket_link(group, &hubs[i], hubs[j].node)));
	return TUTTI_OK;
}

static tutti_status join(const struct group *group, const struct hub *hubs, size_t n)
{
	const size_t meshed =
		group->build->graph->model == TTI_MODEL_NCCL ? MESHED_CPUS : MESHED_SOCKETS;

	return n > meshed ? join_star(group, hubs, n) : join_mesh(group, hubs, n);
}

/* Memory that was not measured gets its share of the bandwidth of its socket. Nothing is known
 * about memory of a node without cores, which is not on the channels of the socket. */
static void set_memory(const struct group *group, const struct hub *hub, struct tti_cpu_info *cpu)
{
	const struct tti_cpu_model model = tti_graph_cpu_model(cpu);
	const size_t share = group->per_socket > 0 ? (size_t)group->per_socket
						   : (hub->nwith ? hub->nwith : hub->ncpus);

	if (!(cpu->mem_ns > 0))
		cpu->mem_ns = model.mem_ns;
	if (cpu->mem_measured || (has_no_cores(cpu) && group->any_cores))
		return;
	/* Which memory cores without a NUMA node have is not known. */
	cpu->mem_known = model.is_known && (cpu->numaid >= 0 || group->n == 1);
	cpu->mem_gbps = model.mem_gbps * cpu->npackages / (double)share;
}

static tutti_status add_host(const struct group *group, size_t at)
{
	struct tti_build *build = group->build;
	const uint32_t node = group->at[at].node;
	const struct tti_cpu_info *cpu = cpu_of(group, at);
	uint32_t host;

	if (has_no_cores(cpu))
		return TUTTI_OK;
	TTI_TRY(tti_build_node(build, TTI_NODE_HOST, group->at[at].xml, build->nodes.at[node].host,
			       &host, "HOST%s", build->nodes.at[node].name + strlen("CPU")));
	build->nodes.at[host].parent = node;
	cpu = cpu_of(group, at); /* nodes may have moved */
	return tti_build_link(build, (struct tti_half){
					     .from = host,
					     .to = node,
					     .type = TTI_LINK_LOC,
					     .count = 1,
					     .bw_gbps = build->graph->model == TTI_MODEL_NCCL
								? TTI_LOC_GBPS
								: cpu->mem_gbps,
					     .latency_ns = cpu->mem_ns,
				     });
}

/* Sockets of one host, their links, and the memory of its NUMA nodes. */
static tutti_status link_sockets(struct group *group, struct hub *hubs)
{
	const bool clique = group->build->graph->model == TTI_MODEL_NCCL;

	for (size_t i = group->n; i-- > 0;) {
		struct hub *hub = &hubs[cpu_of(group, i)->package];

		if (hub->nwith == 0 || !has_no_cores(cpu_of(group, i)))
			hub->first = i;
		hub->ncpus++;
		hub->nwith += !has_no_cores(cpu_of(group, i));
		group->any_cores |= !has_no_cores(cpu_of(group, i));
	}
	for (size_t i = 0; i < group->n; i++) {
		set_memory(group, &hubs[cpu_of(group, i)->package], cpu_of(group, i));
		TTI_TRY(add_host(group, i));
	}
	if (clique) {
		for (size_t i = 0; i < group->n; i++)
			hubs[i] = (struct hub){ .node = group->at[i].node, .first = i, .ncpus = 1 };
		return join(group, hubs, group->n);
	}
	TTI_TRY(make_hubs(group, hubs));
	return join(group, hubs, (size_t)group->npackages);
}

/* The CPUs of a host are of one model, so what a GPU says of one holds for all. */
static void share_c2c(const struct group *group)
{
	int sm = 0;

	for (size_t i = 0; i < group->n && !sm; i++)
		sm = cpu_of(group, i)->c2c_sm;
	for (size_t i = 0; i < group->n; i++)
		cpu_of(group, i)->c2c_sm = sm;
}

static tutti_status build_host(struct group *group)
{
	struct hub *hubs = tti_calloc(group->n, sizeof(*hubs));
	tutti_status status;

	if (!hubs)
		return tti_build_no_memory(group->build);
	share_c2c(group);
	status = find_packages(group);
	if (status == TUTTI_OK)
		status = link_sockets(group, hubs);
	tti_free(hubs);
	return status;
}

static int by_host_and_numa(const void *left, const void *right, void *context)
{
	const struct tti_build *build = context;
	const struct tti_node *a = &build->nodes.at[((const struct tti_made *)left)->node];
	const struct tti_node *b = &build->nodes.at[((const struct tti_made *)right)->node];

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (a->cpu.numaid != b->cpu.numaid)
		return a->cpu.numaid < b->cpu.numaid ? -1 : 1;
	return (a > b) - (a < b);
}

tutti_status tti_build_sockets(struct tti_build *build)
{
	size_t from = 0;

	if (build->cpus.n)
		qsort_r(build->cpus.at, build->cpus.n, sizeof(*build->cpus.at), by_host_and_numa,
			build);
	while (from < build->cpus.n) {
		const uint32_t host = build->nodes.at[build->cpus.at[from].node].host;
		struct group group = { .build = build, .at = &build->cpus.at[from] };

		while (from + group.n < build->cpus.n &&
		       build->nodes.at[build->cpus.at[from + group.n].node].host == host)
			group.n++;
		TTI_TRY(build_host(&group));
		from += group.n;
	}
	return TUTTI_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/comm_job.h"

#include <inttypes.h>
#include <string.h>

#include "core/init/wiring.h"
#include "topo/detect/cpuset.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the job of a communicator: out of memory");
}

/* -- Machines ----------------------------------------------------------------------- */

static tutti_status build_machine(const struct tti_host_class *host_class, struct tti_machine *out)
{
	struct tti_xml_doc *doc;
	tutti_status st;

	TTI_TRY(tti_xml_read(host_class->text, host_class->nbytes, "the topology of a host", &doc));
	st = tti_schema_check(doc);
	if (st == TUTTI_OK)
		st = tti_graph_build(doc, TTI_MODEL_TUTTI, &out->graph);
	tti_xml_free(doc);
	if (st == TUTTI_OK)
		st = tti_paths_build(out->graph, &out->paths);
	if (st == TUTTI_OK)
		st = tti_routes_build(out->paths, NULL, &out->routes);
	if (st == TUTTI_OK && out->graph->ntype[TTI_NODE_HOST] == 0)
		st = tti_fail(TUTTI_EPLAN,
			      "the topology of rank %d's host has no NUMA node with cores, so its "
			      "ranks have no place in it",
			      host_class->owner);
	return st;
}

/* -- Where ranks are ----------------------------------------------------------------- */

/* The NUMA nodes of a machine with cores, and how many ranks are on each so far. */
struct numa_nodes {
	const struct tti_graph *graph;
	uint32_t n;
	struct tti_cpuset *cpus;
	uint32_t *taken;
};

static void numa_release(struct numa_nodes *numas)
{
	for (uint32_t numa = 0; numas->cpus && numa < numas->n; numa++)
		tti_cpuset_release(&numas->cpus[numa]);
	tti_free(numas->cpus);
	tti_free(numas->taken);
}

static const struct tti_cpu_info *cpu_of(const struct tti_graph *graph, uint32_t host)
{
	const uint32_t cpu = tti_graph_cpu_of(graph, host);

	return cpu == TTI_NODE_NONE ? NULL : &graph->nodes[cpu].cpu;
}

static tutti_status numa_init(struct numa_nodes *numas, const struct tti_graph *graph)
{
	*numas = (struct numa_nodes){ .graph = graph, .n = graph->ntype[TTI_NODE_HOST] };
	numas->cpus = tti_calloc(numas->n, sizeof(*numas->cpus));
	numas->taken = tti_calloc(numas->n, sizeof(*numas->taken));
	if (!numas->cpus || !numas->taken)
		return no_memory();
	for (uint32_t numa = 0; numa < numas->n; numa++) {
		const struct tti_cpu_info *cpu = cpu_of(graph, graph->by_type[TTI_NODE_HOST][numa]);

		/* A mask that cannot be read counts as one without cores. */
		if (cpu && cpu->affinity)
			(void)tti_cpuset_parse_map(&numas->cpus[numa], cpu->affinity);
		if (numas->cpus[numa].failed)
			return no_memory();
	}
	return TUTTI_OK;
}

static bool has_core(const struct numa_nodes *numas, uint32_t numa,
		     const struct tti_peer_info *info)
{
	for (uint64_t cpu = tti_cpuset_next(&numas->cpus[numa], 0); cpu < CPU_SETSIZE;
	     cpu = tti_cpuset_next(&numas->cpus[numa], cpu + 1))
		if (tti_bit_has(info->cpus, cpu))
			return true;
	return false;
}

/* How many NUMA nodes a rank may use, and the last of them. */
static uint32_t count_numas(const struct numa_nodes *numas, const struct tti_peer_info *info,
			    uint32_t *last)
{
	uint32_t count = 0;

	*last = 0;
	for (uint32_t numa = 0; numa < numas->n; numa++)
		if (has_core(numas, numa, info)) {
			*last = numa;
			count++;
		}
	return count;
}

/* The NUMA node of a rank that may use several: the first that is not full, else the emptiest.
 * anywhere: the topology has none of the rank's cores. */
static uint32_t choose_numa(const struct numa_nodes *numas, const struct tti_peer_info *info,
			    bool anywhere, uint32_t full)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t numa = 0; numa < numas->n; numa++) {
		if (!anywhere && !has_core(numas, numa, info))
			continue;
		if (numas->taken[numa] < full)
			return numa;
		if (best == UINT32_MAX || numas->taken[numa] < numas->taken[best])
			best = numa;
	}
	return best;
}

/* Ranks bound to one NUMA node are there; the others fill up what is left. */
static void place_ranks(struct numa_nodes *numas, const struct tti_peer_info *info,
			const uint32_t *ranks, uint32_t n, uint32_t *numa_of)
{
	const uint32_t full = (n + numas->n - 1) / numas->n;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t numa;
		const uint32_t count = count_numas(numas, &info[ranks[i]], &numa);

		numa_of[i] = count == 1 ? numa : UINT32_MAX;
		if (count == 1)
			numas->taken[numa]++;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t last;

		if (numa_of[i] != UINT32_MAX)
			continue;
		numa_of[i] = choose_numa(numas, &info[ranks[i]],
					 count_numas(numas, &info[ranks[i]], &last) == 0, full);
		numas->taken[numa_of[i]]++;
	}
}

static tutti_status place_members(const struct tti_peers *peers, const struct tti_job_node *node,
				  struct tti_comm_job *job, uint32_t *members)
{
	const struct tti_graph *graph = node->routes->paths->graph;
	const struct tti_cpu_info *cpu;
	bool sockets = false;
	struct numa_nodes numas;
	tutti_status st = numa_init(&numas, graph);

	if (st == TUTTI_OK)
		place_ranks(&numas, peers->info, node->ranks, node->nranks, members);
	numa_release(&numas);
	if (st != TUTTI_OK)
		return st;
	for (uint32_t i = 0; i < node->nranks; i++) {
		members[i] = graph->by_type[TTI_NODE_HOST][members[i]];
		cpu = cpu_of(graph, members[i]);
		job->part[node->ranks[i]] = cpu ? (uint32_t)cpu->package : 0;
		sockets |= job->part[node->ranks[i]] != job->part[node->ranks[0]];
	}
	for (uint32_t i = 0; i < node->nranks && !sockets; i++)
		job->part[node->ranks[i]] = members[i];
	return TUTTI_OK;
}

/* -- Nodes --------------------------------------------------------------------------- */

static bool has_link(const struct tti_graph *graph, uint32_t net)
{
	const struct tti_topo_link *link =
		tti_graph_link(graph, net, graph->nodes[net].parent, TTI_LINK_NET);

	return link && link->bw_gbps > 0;
}

/* The index of a NIC among those that the site uses; UINT32_MAX: it is not used. */
static uint32_t place_of(const struct tti_wiring_site *site, const struct tti_graph *graph,
			 uint32_t net)
{
	for (uint32_t i = 0; i < site->nnets && i < TTI_HOST_NETS; i++)
		if (graph->nodes[net].element == site->nets[i])
			return i;
	return UINT32_MAX;
}

/* The NICs that are used, and the network of each where the site knows it. */
static tutti_status choose_nets(const struct tti_wiring_site *site, struct tti_job_node *node,
				struct tti_arena *arena)
{
	const struct tti_graph *graph = node->routes->paths->graph;
	const uint32_t n = graph->ntype[TTI_NODE_NET];
	const bool any = site->nnets == TTI_HOST_ANY_NET;
	uint32_t *nets = tti_arena_alloc(arena, n * sizeof(*nets) + 1);
	uint64_t *rail = tti_arena_alloc(arena, n * sizeof(*rail) + 1);

	if (!nets || !rail)
		return no_memory();
	node->nets = nets;
	node->rail = rail;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t net = graph->by_type[TTI_NODE_NET][i];
		const uint32_t at = any ? UINT32_MAX : place_of(site, graph, net);

		if (any ? !has_link(graph, net) : at == UINT32_MAX)
			continue;
		rail[node->nnets] = any ? 0 : site->rail[at];
		nets[node->nnets++] = net;
	}
	return TUTTI_OK;
}

/* Hosts in the order of their lowest ranks; which node a rank is on, into node_of. */
static tutti_status list_nodes(const int *host_of, int n, struct tti_comm_job *job,
			       struct tti_job_node *nodes, uint32_t *node_of)
{
	uint32_t *ranks = tti_arena_alloc(&job->arena, (size_t)n * sizeof(*ranks));
	uint32_t **room = NULL, used = 0;

	for (int rank = 0; rank < n; rank++) {
		node_of[rank] = host_of[rank] == rank ? job->job.nnodes++ : node_of[host_of[rank]];
		nodes[node_of[rank]].nranks++;
	}
	room = tti_calloc(job->job.nnodes, sizeof(uint32_t *));
	if (!ranks || !room) {
		tti_free(room);
		return no_memory();
	}
	for (uint32_t node = 0; node < job->job.nnodes; node++) {
		room[node] = ranks + used;
		nodes[node].ranks = room[node];
		used += nodes[node].nranks;
	}
	for (int rank = 0; rank < n; rank++)
		*room[node_of[rank]]++ = (uint32_t)rank;
	tti_free(room);
	return TUTTI_OK;
}

/* Nodes on one leaf switch are a group, numbered by the first of them. */
static tutti_status group_nodes(const struct tti_host_classes *hosts, struct tti_job_node *nodes,
				uint32_t nnodes)
{
	uint64_t *leaf = tti_calloc(nnodes, sizeof(*leaf));
	int *first = tti_calloc(nnodes, sizeof(*first));
	tutti_status st = leaf && first ? TUTTI_OK : no_memory();

	for (uint32_t node = 0; node < nnodes && st == TUTTI_OK; node++)
		leaf[node] = hosts->info[hosts->leader[nodes[node].ranks[0]]].leaf;
	if (st == TUTTI_OK)
		st = tti_peers_group(leaf, (int)nnodes, first);
	for (uint32_t node = 0; node < nnodes && st == TUTTI_OK; node++)
		nodes[node].group = leaf[node] ? first[node] : -1;
	tti_free(leaf);
	tti_free(first);
	return st;
}

static void take_members(const struct tti_wiring *wiring, const struct tti_graph *graph,
			 const struct tti_job_node *node, uint32_t *members)
{
	for (uint32_t i = 0; i < node->nranks; i++) {
		const uint32_t member = tti_wiring_rank(wiring, (int)node->ranks[i]).member;

		/* Ranks that share memory only since then may have endpoints of another machine. */
		members[i] = member < graph->nnodes && graph->nodes[member].type == TTI_NODE_HOST
				     ? member
				     : graph->by_type[TTI_NODE_HOST][0];
	}
}

/* What a job is made from: peer info and hosts, at init, or else the wiring that was kept. */
struct source {
	const struct tti_peers *peers;
	const struct tti_host_classes *hosts;
	const struct tti_wiring *wiring;
};

static tutti_status fill_node(const struct source *from, struct tti_comm_job *job,
			      struct tti_job_node *node)
{
	const int first = (int)node->ranks[0];
	const struct tti_wiring_site site =
		from->hosts
			? tti_wiring_site_of(from->hosts, first)
			: *tti_wiring_site(from->wiring, tti_wiring_rank(from->wiring, first).site);
	struct tti_machine *machine = &job->machines[site.host_class];
	uint32_t *members = tti_arena_alloc(&job->arena, node->nranks * sizeof(*members));

	node->name = tti_arena_strdup(&job->arena, site.name);
	if (!members || !node->name)
		return no_memory();
	if (!machine->routes)
		TTI_TRY(build_machine(from->hosts ? &from->hosts->classes.at[site.host_class]
						  : tti_wiring_class(from->wiring, site.host_class),
				      machine));
	node->routes = machine->routes;
	node->members = members;
	node->group = -1;
	TTI_TRY(choose_nets(&site, node, &job->arena));
	if (from->peers)
		return place_members(from->peers, node, job, members);
	take_members(from->wiring, machine->graph, node, members);
	return TUTTI_OK;
}

static tutti_status fill(const struct source *from, const int *host_of, int n,
			 struct tti_comm_job *job)
{
	const size_t nranks = (size_t)n;
	struct tti_job_node *nodes = tti_arena_alloc(&job->arena, nranks * sizeof(*nodes));
	uint32_t *node_of = tti_arena_alloc(&job->arena, nranks * sizeof(*node_of));

	job->nmachines =
		from->hosts ? (uint32_t)from->hosts->classes.n : tti_wiring_nclasses(from->wiring);
	job->machines = tti_arena_alloc(&job->arena, job->nmachines * sizeof(*job->machines));
	job->part = tti_arena_alloc(&job->arena, nranks * sizeof(*job->part));
	if (!nodes || !node_of || !job->machines || !job->part)
		return no_memory();
	job->job.nodes = nodes;
	job->job.nranks = (uint32_t)n;
	TTI_TRY(list_nodes(host_of, n, job, nodes, node_of));
	for (uint32_t node = 0; node < job->job.nnodes; node++)
		TTI_TRY(fill_node(from, job, &nodes[node]));
	return from->hosts ? group_nodes(from->hosts, nodes, job->job.nnodes) : TUTTI_OK;
}

static tutti_status build(const struct source *from, const int *host_of, int n,
			  struct tti_comm_job *out)
{
	struct tti_comm_job job = { .nmachines = 0 };
	const tutti_status st = fill(from, host_of, n, &job);

	if (st == TUTTI_OK)
		*out = job;
	else
		tti_comm_job_release(&job);
	return st;
}

tutti_status tti_comm_job_build(const struct tti_peers *peers, const struct tti_host_classes *hosts,
				const int *host_of, struct tti_comm_job *out)
{
	return build(&(struct source){ .peers = peers, .hosts = hosts }, host_of, peers->n, out);
}

tutti_status tti_comm_job_of_wiring(const struct tti_wiring *wiring, const int *host_of, int n,
				    struct tti_comm_job *out)
{
	return build(&(struct source){ .wiring = wiring }, host_of, n, out);
}

void tti_comm_job_release(struct tti_comm_job *job)
{
	for (uint32_t i = 0; job->machines && i < job->nmachines; i++) {
		tti_routes_free(job->machines[i].routes);
		tti_paths_free(job->machines[i].paths);
		tti_graph_free(job->machines[i].graph);
	}
	tti_arena_release(&job->arena);
	*job = (struct tti_comm_job){ .nmachines = 0 };
}

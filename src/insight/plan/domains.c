/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/domains.h"
#include "insight/cluster/cluster_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/cluster/cluster.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* The most GPUs of a domain: so many the NVLink switches of NVIDIA's fifth generation connect
 * ("NVLink Switch", nvidia.com, 2024). */
#define MOST_GPUS 576

struct fused {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

struct tti_domains {
	struct tti_arena arena;
	struct tti_plan_job job;
	const struct tti_xml_doc **docs; /* of each of its nodes */
	struct fused *fused;
	uint32_t nfused;
};

/* State while hosts are joined. */
struct joiner {
	const struct tti_plan_job *hosts;
	const struct tti_xml_doc *const *docs;
	struct tti_intern fabrics;
	uint32_t *domain; /* of each host: number of its fabric, NONE         */
	uint32_t *count;  /* hosts of each fabric                             */
	struct tti_domains *out;
	struct tti_job_node *nodes; /* of the new job */
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "NVLink domains of a job: out of memory");
}

/* Equal hosts have one document. */
static tutti_status find_domain(struct joiner *j, uint32_t host)
{
	const char *fabric;

	if (host > 0 && j->docs[host] == j->docs[host - 1]) {
		j->domain[host] = j->domain[host - 1];
		return TUTTI_OK;
	}
	j->domain[host] = TTI_INTERN_NONE;
	fabric = tti_cluster_fabric_of(j->docs[host]);
	if (!fabric)
		return TUTTI_OK;
	j->domain[host] = tti_intern_text(&j->fabrics, fabric);
	return j->domain[host] == TTI_INTERN_NONE ? no_memory() : TUTTI_OK;
}

/* Whether any two hosts are in one. */
static tutti_status find_domains(struct joiner *j, bool *out)
{
	*out = false;
	for (uint32_t host = 0; host < j->hosts->nnodes; host++) {
		TTI_TRY(find_domain(j, host));
		if (j->domain[host] != TTI_INTERN_NONE)
			*out |= ++j->count[j->domain[host]] > 1;
	}
	return TUTTI_OK;
}

/* -- One topology of several ------------------------------------------------------------ */

static tutti_status check_size(const struct joiner *j, const uint32_t *list, uint32_t n)
{
	uint64_t ngpus = 0;

	for (uint32_t i = 0; i < n; i++)
		ngpus += j->hosts->nodes[list[i]].routes->paths->graph->ntype[TTI_NODE_GPU];
	if (ngpus <= MOST_GPUS)
		return TUTTI_OK;
	return tti_fail(
		TUTTI_EINVAL,
		"%u hosts with %llu GPUs name the NVLink domain %s, which can have %d GPUs: "
		"give the GPUs of each rack a tutti_fabric of their own",
		n, (unsigned long long)ngpus, tti_intern_get(&j->fabrics, j->domain[list[0]]),
		MOST_GPUS);
}

static tutti_status fuse_docs(const struct joiner *j, const uint32_t *list, uint32_t n,
			      struct tti_xml_doc **out)
{
	struct tti_cluster *cluster = NULL;
	uint32_t *all = tti_calloc(n, sizeof(*all));
	tutti_status st = all ? tti_cluster_create(&cluster) : no_memory();

	for (uint32_t i = 0; i < n && st == TUTTI_OK; i++) {
		all[i] = i;
		st = tti_cluster_add(cluster, j->hosts->nodes[list[i]].name, j->docs[list[i]]);
	}
	if (st == TUTTI_OK)
		st = tti_cluster_seal(cluster);
	if (st == TUTTI_OK)
		st = tti_cluster_fuse(cluster, all, n, out);
	tti_cluster_free(cluster);
	tti_free(all);
	return st;
}

static tutti_status fuse(struct joiner *j, const uint32_t *list, uint32_t n, struct fused *out)
{
	const struct tti_routes_config policy = tti_routes_config_from_params();

	TTI_TRY(check_size(j, list, n));
	TTI_TRY(fuse_docs(j, list, n, &out->doc));
	TTI_TRY(tti_schema_check(out->doc));
	TTI_TRY(tti_graph_build(out->doc, j->hosts->nodes[list[0]].routes->paths->graph->model,
				&out->graph));
	TTI_TRY(tti_paths_build(out->graph, &out->paths));
	return tti_routes_build(out->paths, &policy, &out->routes);
}

/* -- Its node of the job ---------------------------------------------------------------- */

struct seat {
	uint32_t rank, member;
};

static int by_rank(const void *left, const void *right)
{
	const struct seat *a = left, *b = right;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The endpoint of a host in the graph that it is a part of, by the name it has there. */
static tutti_status find_member(const struct tti_graph *graph, const struct tti_job_node *host,
				uint32_t member, uint32_t *out)
{
	const struct tti_graph *from = host->routes->paths->graph;
	const struct tti_node *node = &from->nodes[member];
	struct tti_strbuf name = { 0 };
	char *text;

	tti_strbuf_addf(&name, "%s%s%s", host->name, from->nhosts > 1 ? "." : "/", node->full_name);
	text = tti_strbuf_take(&name);
	if (!text)
		return no_memory();
	*out = tti_graph_find(graph, node->type, text);
	tti_free(text);
	if (*out != TTI_NODE_NONE)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINTERNAL, "%s of %s is gone from its NVLink domain", node->full_name,
			host->name);
}

/* In order of rank. */
static tutti_status seat_ranks(struct joiner *j, const uint32_t *list, uint32_t n,
			       struct tti_job_node *out)
{
	const struct tti_graph *graph = out->routes->paths->graph;
	uint32_t *ranks, *members, at = 0;
	struct seat *seats;

	for (uint32_t i = 0; i < n; i++)
		out->nranks += j->hosts->nodes[list[i]].nranks;
	ranks = tti_arena_alloc(&j->out->arena, out->nranks * sizeof(*ranks));
	members = tti_arena_alloc(&j->out->arena, out->nranks * sizeof(*members));
	seats = tti_arena_alloc(&j->out->arena, out->nranks * sizeof(*seats));
	if (!ranks || !members || !seats)
		return no_memory();
	for (uint32_t i = 0; i < n; i++) {
		const struct tti_job_node *host = &j->hosts->nodes[list[i]];

		for (uint32_t k = 0; k < host->nranks; k++) {
			seats[at].rank = host->ranks[k];
			TTI_TRY(find_member(graph, host, host->members[k], &seats[at++].member));
		}
	}
	qsort(seats, at, sizeof(*seats), by_rank);
	for (uint32_t i = 0; i < at; i++) {
		ranks[i] = seats[i].rank;
		members[i] = seats[i].member;
	}
	out->ranks = ranks;
	out->members = members;
	return TUTTI_OK;
}

static tutti_status name_domain(struct joiner *j, const uint32_t *list, uint32_t n,
				struct tti_job_node *out)
{
	const char *first = j->hosts->nodes[list[0]].name,
		   *last = j->hosts->nodes[list[n - 1]].name;
	const size_t len = strlen(first) + strlen(last) + 3;
	char *name = tti_arena_alloc(&j->out->arena, len);

	if (!name)
		return no_memory();
	(void)snprintf(name, len, "%s..%s", first, last);
	out->name = name;
	return TUTTI_OK;
}

static tutti_status add_domain(struct joiner *j, const uint32_t *list, uint32_t n)
{
	struct tti_domains *out = j->out;
	struct fused *fused = &out->fused[out->nfused++];
	struct tti_job_node *node = &j->nodes[out->job.nnodes];
	const struct tti_graph *graph;

	TTI_TRY(fuse(j, list, n, fused));
	graph = fused->graph;
	*node = (struct tti_job_node){ .routes = fused->routes,
				       .nets = graph->by_type[TTI_NODE_NET],
				       .nnets = graph->ntype[TTI_NODE_NET],
				       .group = j->hosts->nodes[list[0]].group };
	for (uint32_t i = 1; i < n; i++)
		if (j->hosts->nodes[list[i]].group != node->group)
			node->group = -1;
	out->docs[out->job.nnodes++] = fused->doc;
	TTI_TRY(name_domain(j, list, n, node));
	return seat_ranks(j, list, n, node);
}

/* -- All of it -------------------------------------------------------------------------- */

/* A domain stands where its first host did; its count is 0 when it is there. */
static tutti_status join(struct joiner *j, uint32_t *list)
{
	struct tti_domains *out = j->out;

	for (uint32_t host = 0; host < j->hosts->nnodes; host++) {
		const uint32_t domain = j->domain[host];
		uint32_t n = 0;

		if (domain == TTI_INTERN_NONE || j->count[domain] == 1) {
			j->nodes[out->job.nnodes] = j->hosts->nodes[host];
			out->docs[out->job.nnodes++] = j->docs[host];
			continue;
		}
		for (uint32_t other = host; n < j->count[domain]; other++)
			if (j->domain[other] == domain)
				list[n++] = other;
		j->count[domain] = 0;
		if (n > 0)
			TTI_TRY(add_domain(j, list, n));
	}
	return TUTTI_OK;
}

static tutti_status start(struct joiner *j, struct tti_domains **out)
{
	const uint32_t n = j->hosts->nnodes;
	uint32_t *list = tti_calloc(n, sizeof(*list));
	struct tti_domains *domains = tti_zalloc(sizeof(*domains));
	tutti_status st;

	if (!list || !domains) {
		tti_free(list);
		tti_free(domains);
		return no_memory();
	}
	j->out = domains;
	j->nodes = tti_arena_alloc(&domains->arena, n * sizeof(*j->nodes));
	domains->docs = tti_arena_alloc(&domains->arena, n * sizeof(*domains->docs));
	domains->fused = tti_arena_alloc(&domains->arena, n * sizeof(*domains->fused));
	domains->job.nodes = j->nodes;
	domains->job.nranks = j->hosts->nranks;
	st = j->nodes && domains->docs && domains->fused ? join(j, list) : no_memory();
	tti_free(list);
	if (st == TUTTI_OK)
		*out = domains;
	else
		tti_domains_free(domains);
	return st;
}

tutti_status tti_domains_join(const struct tti_plan_job *hosts,
			      const struct tti_xml_doc *const *docs, struct tti_domains **out)
{
	struct joiner j = { .hosts = hosts, .docs = docs };
	bool any = false;
	tutti_status st;

	*out = NULL;
	j.domain = tti_calloc((size_t)hosts->nnodes, sizeof(*j.domain));
	j.count = tti_calloc((size_t)hosts->nnodes, sizeof(*j.count));
	st = j.domain && j.count ? find_domains(&j, &any) : no_memory();
	if (st == TUTTI_OK && any)
		st = start(&j, out);
	tti_intern_release(&j.fabrics);
	tti_free(j.domain);
	tti_free(j.count);
	return st;
}

void tti_domains_free(struct tti_domains *domains)
{
	if (!domains)
		return;
	for (uint32_t i = 0; i < domains->nfused; i++) {
		tti_routes_free(domains->fused[i].routes);
		tti_paths_free(domains->fused[i].paths);
		tti_graph_free(domains->fused[i].graph);
		tti_xml_free(domains->fused[i].doc);
	}
	tti_arena_release(&domains->arena);
	tti_free(domains);
}

const struct tti_plan_job *tti_domains_job(const struct tti_domains *domains)
{
	return &domains->job;
}

const struct tti_xml_doc *const *tti_domains_docs(const struct tti_domains *domains)
{
	return domains->docs;
}

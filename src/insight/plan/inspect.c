/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/inspect.h"
#include "insight/plan/job.h"
#include "insight/plan/plan_report.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "insight/plan/domains.h"
#include "insight/print/print_words.h"
#include "insight/topo/inspect.h"
#include "util/error.h"
#include "util/file.h"
#include "util/mem.h"

/* The most bytes of a file with a plan: 4,096 nodes of 8 GPUs with 32 channels have 10 MB. */
#define MOST_BYTES ((size_t)256 << 20)

/* Sealed once it is given away. */
struct tutti_plan {
	struct tti_plan *plan;
	struct tti_plan_job *hosts;     /* NULL: read without its nodes */
	struct tti_domains *domains;    /* what is made of them; NULL: each host is a node */
	const struct tti_plan_job *job; /* of its nodes: that of domains or hosts; NULL  */
	struct tti_plan_config config;
	const struct tti_xml_doc **host_docs;
	tutti_topo_t *parts; /* own: of hosts of which not all GPUs have ranks; NULL */
	int nparts;
	const struct tti_xml_doc *const *docs; /* of each node; NULL */
	struct tti_strbuf excess;              /* what of the file the machines cannot carry */
};

const struct tti_plan *tti_inspect_plan(tutti_plan_t plan)
{
	return plan->plan;
}

const struct tti_plan_job *tti_inspect_job(tutti_plan_t plan)
{
	return plan->job;
}

/* -- Config ------------------------------------------------------------------------- */

/* "ring,tree" as bits. */
static tutti_status read_patterns(const char *text, uint32_t *out)
{
	*out = 0;
	while (text && *text) {
		const size_t len = strcspn(text, ",");
		char name[32];
		enum tti_pattern pattern;

		if (len >= sizeof(name))
			return tti_fail(TUTTI_EINVAL, "there is no pattern '%.40s'", text);
		memcpy(name, text, len);
		name[len] = '\0';
		if (!tti_pattern_parse(name, &pattern))
			return tti_fail(TUTTI_EINVAL,
					"there is no pattern '%s': choose one or several of "
					"ring, tree, balanced-tree, split-tree, nvls, "
					"collnet-chain and collnet-direct",
					name);
		if (*out & 1u << pattern)
			return tti_fail(TUTTI_EINVAL, "pattern '%s' is there twice", name);
		*out |= 1u << pattern;
		text += len + (text[len] == ',');
	}
	return TUTTI_OK;
}

static tutti_status check_range(const char *name, int value, int least)
{
	if (value >= least)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL, "%s of a plan is %d: it must be at least %d", name, value,
			least);
}

static tutti_status read_config(const struct tutti_plan_config *given,
				struct tutti_plan_config *out, struct tti_plan_config *config)
{
	*out = (struct tutti_plan_config)TUTTI_PLAN_CONFIG_INIT;
	if (given && given->size < sizeof(*out))
		return tti_fail(TUTTI_EINVAL,
				"config.size is %zu: begin with TUTTI_PLAN_CONFIG_INIT",
				given->size);
	if (given)
		*out = *given;
	if (out->cross_nic < TTI_CROSS_AUTO || out->cross_nic > TTI_CROSS_MIRROR)
		return tti_fail(TUTTI_EINVAL, "cross_nic of a plan is %d: it is -1, 0, 1 or 2",
				out->cross_nic);
	TTI_TRY(check_range("min_channels", out->min_channels, 0));
	TTI_TRY(check_range("max_channels", out->max_channels, 0));
	TTI_TRY(check_range("ranks_per_node", out->ranks_per_node, 0));
	TTI_TRY(check_range("nranks", out->nranks, out->node_of_rank ? 1 : 0));
	if (out->max_channels && out->min_channels > out->max_channels)
		return tti_fail(TUTTI_EINVAL,
				"a plan cannot have at least %d and at most %d channels: "
				"the first number must not be the larger one",
				out->min_channels, out->max_channels);
	*config = (struct tti_plan_config){ .cross_nic = (enum tti_cross_nic)out->cross_nic,
					    .both_ways = out->both_ways,
					    .min_channels = (uint32_t)out->min_channels,
					    .max_channels = (uint32_t)out->max_channels };
	return read_patterns(out->patterns, &config->patterns);
}

/* -- The job ------------------------------------------------------------------------ */

static tutti_status copy_ranks(const struct tutti_plan_config *config, uint32_t **out)
{
	*out = NULL;
	if (!config->node_of_rank)
		return TUTTI_OK;
	*out = tti_calloc((size_t)config->nranks, sizeof(**out));
	if (!*out)
		return tti_fail(TUTTI_ENOMEM, "plan: out of memory");
	for (int rank = 0; rank < config->nranks; rank++)
		(*out)[rank] = (uint32_t)config->node_of_rank[rank]; /* < 0: no node is that */
	return TUTTI_OK;
}

/* A topology, or its part that has ranks, which equal hosts share. */
static tutti_status take_host(struct tutti_plan *plan, const tutti_topo_t *nodes, int node,
			      const struct tti_routes **routes)
{
	tutti_topo_t *part = &plan->parts[plan->nparts];
	const bool again = node > 0 && nodes[node] == nodes[node - 1];

	if (!again)
		TTI_TRY(tti_topo_of_ranks(nodes[node], part));
	plan->nparts += !again && *part;
	routes[node] = again ? routes[node - 1] : tti_topo_routes(*part ? *part : nodes[node]);
	plan->host_docs[node] =
		again ? plan->host_docs[node - 1] : tti_topo_doc(*part ? *part : nodes[node]);
	return TUTTI_OK;
}

static tutti_status lay_out(struct tutti_plan *plan, const tutti_topo_t *nodes, int nnodes,
			    const struct tutti_plan_config *config)
{
	const struct tti_routes **routes = tti_calloc((size_t)nnodes, sizeof(*routes));
	struct tti_job_layout layout = { .routes = routes,
					 .nnodes = (uint32_t)nnodes,
					 .ranks_per_node = (uint32_t)config->ranks_per_node,
					 .nranks = (uint32_t)config->nranks,
					 .group = config->group_of_node,
					 .names = config->name_of_node };
	uint32_t *node_of_rank = NULL;
	tutti_status st = TUTTI_OK;

	plan->host_docs = tti_calloc((size_t)nnodes, sizeof(*plan->host_docs));
	plan->parts = tti_calloc((size_t)nnodes, sizeof(*plan->parts));
	if (!routes || !plan->host_docs || !plan->parts) {
		tti_free(routes);
		return tti_fail(TUTTI_ENOMEM, "plan of %d nodes: out of memory", nnodes);
	}
	for (int node = 0; node < nnodes && st == TUTTI_OK; node++)
		st = take_host(plan, nodes, node, routes);
	if (st == TUTTI_OK)
		st = copy_ranks(config, &node_of_rank);
	layout.node_of_rank = node_of_rank;
	if (st == TUTTI_OK)
		st = tti_job_lay_out(&layout, &plan->hosts);
	tti_free(node_of_rank);
	tti_free(routes);
	if (st == TUTTI_OK)
		st = tti_domains_join(plan->hosts, plan->host_docs, &plan->domains);
	if (st == TUTTI_OK) {
		plan->job = plan->domains ? tti_domains_job(plan->domains) : plan->hosts;
		plan->docs = plan->domains ? tti_domains_docs(plan->domains) : plan->host_docs;
	}
	return st;
}

static tutti_status check_nodes(const char *what, const tutti_topo_t *nodes, int nnodes,
				const tutti_plan_t *out)
{
	if (!out)
		return tti_fail(TUTTI_EINVAL, "%s: out is NULL", what);
	for (int node = 0; node < nnodes; node++)
		if (!nodes || !nodes[node])
			return tti_fail(TUTTI_EINVAL, "%s: node %d is NULL", what, node);
	return TUTTI_OK;
}

/* An empty plan with its job, if there are nodes. */
static tutti_status begin(const tutti_topo_t *nodes, int nnodes,
			  const struct tutti_plan_config *given, struct tutti_plan **out)
{
	struct tutti_plan_config config;
	struct tti_plan_config own;
	tutti_status st = TUTTI_OK;

	TTI_TRY(read_config(given, &config, &own));
	*out = tti_zalloc(sizeof(**out));
	if (!*out)
		return tti_fail(TUTTI_ENOMEM, "plan: out of memory");
	(*out)->config = own;
	if (nnodes > 0)
		st = lay_out(*out, nodes, nnodes, &config);
	if (st != TUTTI_OK)
		tutti_plan_free(*out);
	return st;
}

static tutti_status finish(struct tutti_plan *plan, tutti_status st, tutti_plan_t *out)
{
	if (st == TUTTI_OK)
		*out = plan;
	else
		tutti_plan_free(plan);
	return st;
}

tutti_status tutti_plan_make(const tutti_topo_t *nodes, int nnodes,
			     const struct tutti_plan_config *config, tutti_plan_t *out)
{
	struct tutti_plan *plan = NULL;

	TTI_TRY(check_nodes("tutti_plan_make", nodes, nnodes, out));
	*out = NULL;
	if (nnodes < 1)
		return tti_fail(TUTTI_EINVAL, "a plan of %d nodes: 1 or more", nnodes);
	TTI_TRY(begin(nodes, nnodes, config, &plan));
	return finish(plan, tti_plan_make(plan->job, &plan->config, &plan->plan), out);
}

void tutti_plan_free(tutti_plan_t plan)
{
	if (!plan)
		return;
	tti_strbuf_release(&plan->excess);
	tti_plan_free(plan->plan);
	tti_domains_free(plan->domains);
	tti_plan_job_free(plan->hosts);
	tti_free(plan->host_docs);
	for (int part = 0; part < plan->nparts; part++)
		tutti_topo_free(plan->parts[part]);
	tti_free(plan->parts);
	tti_free(plan);
}

/* -- Reading ------------------------------------------------------------------------ */

/* A file may name a device without its host if only one host has the name. The order of the
 * ranks of a node tells them apart in any case. */
static bool is_called(const struct tti_node *node, const char *name)
{
	return strcmp(node->full_name, name) == 0 || strcmp(node->name, name) == 0;
}

/* The ranks of a file must live where those of the nodes do. */
static tutti_status check_fit(const struct tutti_plan *plan, const char *path)
{
	const struct tti_plan_job *job = plan->job;

	if (plan->plan->nnodes != job->nnodes || plan->plan->nranks != job->nranks)
		return tti_fail(TUTTI_EINVAL,
				"%s is a plan of %u ranks on %u nodes; these are %u on %u", path,
				plan->plan->nranks, plan->plan->nnodes, job->nranks, job->nnodes);
	for (uint32_t i = 0; i < job->nnodes; i++) {
		const struct tti_job_node *node = &job->nodes[i];
		const struct tti_graph *graph = node->routes->paths->graph;
		const struct tti_plan_node *said = &plan->plan->nodes[i];

		for (uint32_t k = 0; k < node->nranks; k++) {
			const struct tti_plan_rank *rank = &plan->plan->ranks[node->ranks[k]];
			const struct tti_node *member = &graph->nodes[node->members[k]];

			if (rank->node != i || !is_called(member, rank->name))
				return tti_fail(TUTTI_EINVAL,
						"%s: rank %u is %s of node %u, and here %s of node "
						"%u",
						path, node->ranks[k], rank->name, rank->node,
						member->full_name, i);
		}
		for (uint32_t k = 0; k < said->nnets; k++)
			if (tti_graph_find(graph, TTI_NODE_NET, said->nets[k]) == TTI_NODE_NONE)
				return tti_fail(TUTTI_EINVAL, "%s: node %u has no NIC %s", path, i,
						said->nets[k]);
	}
	return TUTTI_OK;
}

static tutti_status read_text(struct tutti_plan *plan, const char *path, const char *text,
			      size_t nbytes)
{
	size_t at = 0;

	while (at < nbytes && strchr(" \t\r\n", text[at]))
		at++;
	if (at < nbytes && text[at] == '<') {
		if (!plan->job)
			return tti_fail(TUTTI_EINVAL,
					"%s is a graph file of NCCL: say of which machine, for it "
					"names devices by number",
					path);
		return tti_plan_read_nccl(text, nbytes, path, plan->job, &plan->config,
					  &plan->excess, &plan->plan);
	}
	TTI_TRY(tti_plan_read(text, nbytes, path, &plan->plan));
	return plan->job ? check_fit(plan, path) : TUTTI_OK;
}

tutti_status tutti_plan_read(const char *path, const tutti_topo_t *nodes, int nnodes,
			     const struct tutti_plan_config *config, tutti_plan_t *out)
{
	struct tutti_plan *plan = NULL;
	char *text = NULL;
	size_t nbytes;
	tutti_status st;

	TTI_TRY(check_nodes("tutti_plan_read", nodes, nnodes, out));
	*out = NULL;
	if (!path)
		return tti_fail(TUTTI_EINVAL, "tutti_plan_read: path is NULL");
	TTI_TRY(begin(nodes, nnodes, config, &plan));
	st = tti_file_read(path, "plan", MOST_BYTES, &text, &nbytes);
	if (st == TUTTI_OK && nbytes > MOST_BYTES)
		st = tti_fail(TUTTI_EINVAL, "plan %s has more than %zu bytes", path, MOST_BYTES);
	if (st == TUTTI_OK)
		st = read_text(plan, path, text, nbytes);
	tti_free(text);
	return finish(plan, st, out);
}

/* -- Printing ----------------------------------------------------------------------- */

static struct tti_report report_of(const struct tutti_plan *plan, unsigned flags)
{
	return (struct tti_report){ .plan = plan->plan,
				    .job = plan->job,
				    .config = &plan->config,
				    .docs = plan->docs,
				    .color = flags & TUTTI_TOPO_COLOR,
				    .utf8 = flags & TUTTI_TOPO_UTF8 };
}

static tutti_status need_job(const struct tutti_plan *plan, const char *what)
{
	if (plan->job)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL, "%s a plan that was read from a file needs its machines",
			what);
}

static tutti_status print(const struct tutti_plan *plan, tutti_plan_format format,
			  const struct tti_report *report, struct tti_strbuf *out)
{
	switch (format) {
	case TUTTI_PLAN_TABLE:
		tti_plan_table(report, out);
		return TUTTI_OK;
	case TUTTI_PLAN_JSON:
		return tti_plan_json(plan->plan, out);
	case TUTTI_PLAN_EXPLAIN:
		TTI_TRY(need_job(plan, "to explain"));
		return tti_plan_explain(report, out);
	case TUTTI_PLAN_DOT:
		TTI_TRY(need_job(plan, "to draw"));
		return tti_plan_dot(report, out);
	case TUTTI_PLAN_NCCL:
		TTI_TRY(need_job(plan, "to write for NCCL"));
		return tti_plan_nccl(report, out);
	case TUTTI_PLAN_ADVICE:
		TTI_TRY(need_job(plan, "to judge the order of ranks of"));
		return tti_plan_advise(report, out);
	default:
		return tti_fail(TUTTI_EINVAL, "there is no format %d of a plan", (int)format);
	}
}

tutti_status tutti_plan_print(tutti_plan_t plan, tutti_plan_format format, unsigned flags,
			      char **out)
{
	struct tti_strbuf buf = { 0 };
	struct tti_report report;

	if (!plan || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_plan_print: plan or out is NULL");
	*out = NULL;
	report = report_of(plan, flags);
	return tti_print_take(print(plan, format, &report, &buf), &buf, "printing a plan", out);
}

static int to_int(size_t n)
{
	return n < INT_MAX ? (int)n : INT_MAX;
}

static int count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return to_int(n);
}

tutti_status tutti_plan_check(tutti_plan_t plan, char **out, int *nfindings_out)
{
	struct tti_strbuf buf = { 0 };
	struct tti_report report;
	tutti_status st = TUTTI_OK;
	size_t n;

	if (!plan || !out || !nfindings_out)
		return tti_fail(TUTTI_EINVAL, "tutti_plan_check: an argument is NULL");
	*out = NULL;
	TTI_TRY(need_job(plan, "to check"));
	report = report_of(plan, 0);
	if (plan->excess.len)
		tti_strbuf_add(&buf, plan->excess.text);
	else
		st = tti_plan_verify(&report, &buf, &n);
	TTI_TRY(tti_print_take(st, &buf, "printing a plan", out));
	*nfindings_out = count_lines(*out);
	return TUTTI_OK;
}

tutti_status tutti_plan_diff(tutti_plan_t a, tutti_plan_t b, char **out, int *ndiffs_out)
{
	struct tti_strbuf buf = { 0 };
	size_t n = 0;

	if (!a || !b || !out || !ndiffs_out)
		return tti_fail(TUTTI_EINVAL, "tutti_plan_diff: an argument is NULL");
	*out = NULL;
	tti_plan_diff(a->plan, b->plan, &buf, &n);
	TTI_TRY(tti_print_take(TUTTI_OK, &buf, "printing a plan", out));
	*ndiffs_out = to_int(n);
	return TUTTI_OK;
}

/* -- Looking ------------------------------------------------------------------------ */

int tutti_plan_pattern_count(tutti_plan_t plan)
{
	return plan ? (int)plan->plan->npatterns : 0;
}

tutti_status tutti_plan_get_pattern(tutti_plan_t plan, int index, struct tutti_plan_pattern *out)
{
	const struct tti_plan_pattern *pattern;

	if (!plan || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_plan_get_pattern: plan or out is NULL");
	if (index < 0 || index >= tutti_plan_pattern_count(plan))
		return tti_fail(TUTTI_EINVAL, "there is no pattern %d: this plan has %d", index,
				tutti_plan_pattern_count(plan));
	pattern = &plan->plan->patterns[index];
	*out = (struct tutti_plan_pattern){ .name = tti_pattern_name(pattern->pattern),
					    .limit = pattern->limit ? pattern->limit : "",
					    .nchannels = (int)pattern->nchannels,
					    .cross_nic = (int)pattern->cross_nic,
					    .total_gbps = pattern->total_gbps,
					    .bound_gbps = pattern->bound_gbps,
					    .search_ms = pattern->search_ms };
	return TUTTI_OK;
}

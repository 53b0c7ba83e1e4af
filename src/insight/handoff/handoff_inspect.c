/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>

#include "insight/handoff/handoff_report.h"
#include "insight/plan/job.h"
#include "insight/print/print_words.h"
#include "insight/topo/inspect.h"
#include "plan/handoff/handoff.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/mem.h"

/* Sealed once it is given away. */
struct tutti_handoff_plan {
	struct tti_plan_job *job;
	struct tti_handoff_job handoff;
	uint32_t *from, *to; /* own */
	struct tti_handoff_plan *plan;
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "plan of a handoff: out of memory");
}

/* -- The job -------------------------------------------------------------------------------- */

static tutti_status read_job(const struct tutti_plan_config *given, struct tutti_plan_config *out)
{
	*out = (struct tutti_plan_config)TUTTI_PLAN_CONFIG_INIT;
	if (!given)
		return TUTTI_OK;
	if (given->size < sizeof(*out))
		return tti_fail(TUTTI_EINVAL, "job.size is %zu: begin with TUTTI_PLAN_CONFIG_INIT",
				given->size);
	*out = *given;
	if (out->ranks_per_node < 0 || out->nranks < 0 || (out->node_of_rank && !out->nranks))
		return tti_fail(
			TUTTI_EINVAL,
			"job.nranks is %d and job.ranks_per_node is %d: neither is negative, "
			"and node_of_rank needs nranks",
			out->nranks, out->ranks_per_node);
	return TUTTI_OK;
}

static tutti_status lay_out(const tutti_topo_t *nodes, int nnodes,
			    const struct tutti_plan_config *config, struct tti_plan_job **out)
{
	const struct tti_routes **routes = tti_calloc((size_t)nnodes, sizeof(*routes));
	uint32_t *node_of = tti_calloc((size_t)config->nranks + 1, sizeof(*node_of));
	const struct tti_job_layout layout = { .routes = routes,
					       .nnodes = (uint32_t)nnodes,
					       .ranks_per_node = (uint32_t)config->ranks_per_node,
					       .node_of_rank =
						       config->node_of_rank ? node_of : NULL,
					       .nranks = (uint32_t)config->nranks,
					       .group = config->group_of_node,
					       .names = config->name_of_node };
	tutti_status st = routes && node_of ? TUTTI_OK : no_memory();

	for (int node = 0; node < nnodes && st == TUTTI_OK; node++)
		routes[node] = tti_topo_routes(nodes[node]);
	for (int rank = 0; config->node_of_rank && rank < config->nranks && st == TUTTI_OK; rank++)
		node_of[rank] = (uint32_t)config->node_of_rank[rank]; /* < 0: no node is that */
	if (st == TUTTI_OK)
		st = tti_job_lay_out(&layout, out);
	tti_free(routes);
	tti_free(node_of);
	return st;
}

/* -- Sides ------------------------------------------------------------------------------------ */

static tutti_status copy_side(const int *ranks, int n, uint32_t **out, uint32_t *n_out)
{
	*out = tti_calloc((size_t)n + 1, sizeof(**out));
	if (!*out)
		return no_memory();
	for (int i = 0; i < n; i++) {
		if (ranks[i] < 0)
			return tti_fail(TUTTI_EINVAL,
					"a side of a handoff has rank %d: ranks are 0 or more",
					ranks[i]);
		(*out)[i] = (uint32_t)ranks[i];
	}
	*n_out = (uint32_t)n;
	return TUTTI_OK;
}

/* Ranks of nodes first .. end - 1. */
static tutti_status take_nodes(const struct tti_plan_job *job, uint32_t first, uint32_t end,
			       uint32_t **out, uint32_t *n_out)
{
	*out = tti_calloc((size_t)job->nranks + 1, sizeof(**out));
	*n_out = 0;
	if (!*out)
		return no_memory();
	for (uint32_t node = first; node < end; node++)
		for (uint32_t i = 0; i < job->nodes[node].nranks; i++)
			(*out)[(*n_out)++] = job->nodes[node].ranks[i];
	return TUTTI_OK;
}

static tutti_status read_sides(struct tutti_handoff_plan *plan,
			       const struct tutti_handoff_plan_config *config)
{
	const struct tti_plan_job *job = plan->job;
	struct tti_handoff_job *handoff = &plan->handoff;
	const struct tutti_handoff_plan_config none = TUTTI_HANDOFF_PLAN_CONFIG_INIT;

	config = config ? config : &none;
	if (config->size < sizeof(*config))
		return tti_fail(TUTTI_EINVAL,
				"config.size is %zu: begin with TUTTI_HANDOFF_PLAN_CONFIG_INIT",
				config->size);
	if (config->nfrom < 0 || config->nto < 0)
		return tti_fail(TUTTI_EINVAL,
				"a handoff from %d ranks to %d: neither number can be negative",
				config->nfrom, config->nto);
	if (job->nnodes < 2 && !(config->from && config->to))
		return tti_fail(TUTTI_EINVAL,
				"a handoff on one node needs both sides: say which ranks hold the "
				"vector (--from) and which get it (--to)");
	if (config->from)
		TTI_TRY(copy_side(config->from, config->nfrom, &plan->from, &handoff->nfrom));
	else
		TTI_TRY(take_nodes(job, 0, 1, &plan->from, &handoff->nfrom));
	if (config->to)
		TTI_TRY(copy_side(config->to, config->nto, &plan->to, &handoff->nto));
	else
		TTI_TRY(take_nodes(job, 1, job->nnodes, &plan->to, &handoff->nto));
	handoff->job = job;
	handoff->from = plan->from;
	handoff->to = plan->to;
	handoff->from_sharded = config->from_sharded && handoff->nfrom > 1;
	handoff->to_sharded = config->to_sharded && handoff->nto > 1;
	return TUTTI_OK;
}

/* -- Making ------------------------------------------------------------------------------------- */

static tutti_status make(struct tutti_handoff_plan *plan, const tutti_topo_t *nodes, int nnodes,
			 const struct tutti_plan_config *job,
			 const struct tutti_handoff_plan_config *config)
{
	struct tutti_plan_config layout;

	TTI_TRY(read_job(job, &layout));
	TTI_TRY(lay_out(nodes, nnodes, &layout, &plan->job));
	TTI_TRY(read_sides(plan, config));
	TTI_TRY(tti_handoff_plan_make(&plan->handoff, &plan->plan));
	TTI_TRY(tti_handoff_figures(&plan->handoff, plan->plan));
	return tti_handoff_plan_check(&plan->handoff, plan->plan);
}

tutti_status tutti_handoff_plan_make(const tutti_topo_t *nodes, int nnodes,
				     const struct tutti_plan_config *job,
				     const struct tutti_handoff_plan_config *config,
				     tutti_handoff_plan_t *out)
{
	struct tutti_handoff_plan *plan;
	tutti_status st;

	if (!nodes || !out || nnodes < 1)
		return tti_fail(TUTTI_EINVAL,
				"tutti_handoff_plan_make: nodes or out is NULL, or %d nodes",
				nnodes);
	*out = NULL;
	for (int node = 0; node < nnodes; node++)
		if (!nodes[node])
			return tti_fail(TUTTI_EINVAL, "tutti_handoff_plan_make: node %d is NULL",
					node);
	plan = tti_zalloc(sizeof(*plan));
	if (!plan)
		return no_memory();
	st = make(plan, nodes, nnodes, job, config);
	if (st == TUTTI_OK)
		*out = plan;
	else
		tutti_handoff_plan_free(plan);
	return st;
}

void tutti_handoff_plan_free(tutti_handoff_plan_t plan)
{
	if (!plan)
		return;
	tti_handoff_plan_free(plan->plan);
	tti_plan_job_free(plan->job);
	tti_free(plan->from);
	tti_free(plan->to);
	tti_free(plan);
}

/* -- Looking ------------------------------------------------------------------------------------ */

tutti_status tutti_handoff_plan_print(tutti_handoff_plan_t plan, tutti_plan_format format,
				      size_t nbytes, char **out)
{
	struct tti_strbuf buf = { 0 };
	tutti_status st = TUTTI_OK;

	if (!plan || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_handoff_plan_print: plan or out is NULL");
	*out = NULL;
	if (format == TUTTI_PLAN_TABLE)
		tti_handoff_table(&plan->handoff, plan->plan, (double)nbytes, &buf);
	else if (format == TUTTI_PLAN_JSON)
		tti_handoff_json(&plan->handoff, plan->plan, (double)nbytes, &buf);
	else if (format == TUTTI_PLAN_EXPLAIN)
		tti_handoff_explain(&plan->handoff, plan->plan, (double)nbytes, &buf);
	else if (format == TUTTI_PLAN_DOT)
		st = tti_handoff_dot(&plan->handoff, plan->plan, (double)nbytes, &buf);
	else
		st = tti_fail(TUTTI_EINVAL, "there is no format %d of a handoff", (int)format);
	return tti_print_take(st, &buf, "printing a handoff", out);
}

tutti_status tutti_handoff_plan_get(tutti_handoff_plan_t plan, size_t nbytes,
				    struct tutti_handoff_figures *out)
{
	struct tti_handoff_time time;
	int npairs = 0;

	if (!plan || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_handoff_plan_get: plan or out is NULL");
	time = tti_handoff_plan_time(plan->plan, (double)nbytes);
	for (uint32_t i = 0; i < plan->plan->nways && npairs < INT_MAX; i++)
		npairs += plan->plan->ways[i].net_out != TTI_NO_NET;
	*out = (struct tutti_handoff_figures){ .npairs = npairs,
					       .gbps = plan->plan->gbps,
					       .bound_gbps = plan->plan->bound_gbps,
					       .naive_gbps = plan->plan->naive_gbps,
					       .us = time.us,
					       .bound_us = time.bound_us,
					       .naive_us = time.naive_us };
	return TUTTI_OK;
}

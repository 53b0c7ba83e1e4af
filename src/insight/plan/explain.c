/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/explain.h"
#include "insight/plan/plan_report.h"

#include "topo/graph/words.h"
#include "util/error.h"

/* -- Which node ----------------------------------------------------------------------- */

static tutti_status search_node(struct tti_explain *explain, uint32_t node)
{
	const struct tti_plan_job *job = explain->report->job;

	tti_local_free(explain->search);
	tti_loads_free(explain->loads);
	explain->search = NULL;
	explain->loads = NULL;
	explain->index = node;
	explain->node = &job->nodes[node];
	TTI_TRY(tti_explain_loads(explain->node, explain->node->routes, explain->nets,
				  &explain->loads));
	return tti_local_search(explain->loads, &explain->config, &explain->search);
}

/* The kind of node that can carry least sets the pace of all. */
static tutti_status find_weakest(struct tti_explain *explain)
{
	const struct tti_plan *plan = explain->report->plan;
	uint32_t weakest = 0, kinds = 0;
	double least = 0;

	for (uint32_t node = 0; node < plan->nnodes && kinds < plan->nkinds; node++) {
		if (plan->nodes[node].kind != kinds)
			continue;
		TTI_TRY(search_node(explain, node));
		if (kinds++ == 0 || explain->search->bound_gbps < least) {
			least = explain->search->bound_gbps;
			weakest = node;
		}
	}
	return explain->index == weakest ? TUTTI_OK : search_node(explain, weakest);
}

/* -- Sentences ------------------------------------------------------------------------ */

static void say_total(const struct tti_explain *explain)
{
	const struct tti_plan *plan = explain->report->plan;
	const struct tti_plan_pattern *pattern = explain->pattern;
	char total[24], bound[24];

	tti_gbps_words(pattern->total_gbps, total);
	tti_gbps_words(pattern->bound_gbps, bound);
	tti_strbuf_addf(explain->out, "%s%s%s: %s GB/s over %u channel%s",
			explain->report->color ? "\033[1m" : "", tti_pattern_name(pattern->pattern),
			explain->report->color ? "\033[0m" : "", total, pattern->nchannels,
			pattern->nchannels == 1 ? "" : "s");
	if (pattern->bound_gbps > pattern->total_gbps * (1 + 1e-4))
		tti_strbuf_addf(explain->out,
				"; whether more than that and up to %s is possible is not known\n",
				bound);
	else
		tti_strbuf_add(explain->out, "; it is proven that no others carry more\n");
	if (plan->nkinds > 1)
		tti_strbuf_addf(
			explain->out,
			"  of %u kinds of nodes that of %s carries least, and sets the pace "
			"of all\n",
			plan->nkinds, plan->nodes[explain->index].name);
}

static tutti_status explain_pattern(struct tti_explain *explain)
{
	TTI_TRY(find_weakest(explain));
	say_total(explain);
	if (explain->search->nchannels == 0 || explain->loads->nrows == 0) {
		tti_strbuf_add(explain->out, "  no link is used: all ranks share one device\n");
		return TUTTI_OK;
	}
	TTI_TRY(tti_explain_links(explain));
	if (!explain->nets)
		return tti_explain_detours(explain);
	TTI_TRY(tti_explain_nics(explain));
	return tti_explain_more_nics(explain);
}

/* The patterns that were asked for; without a wish, rings and trees. */
static bool is_wanted(const struct tti_report *report, enum tti_pattern pattern)
{
	return report->config->patterns || pattern == TTI_PATTERN_RING ||
	       pattern == TTI_PATTERN_TREE;
}

tutti_status tti_plan_explain(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_plan *plan = report->plan;
	tutti_status st = TUTTI_OK;

	for (uint32_t i = 0; st == TUTTI_OK && i < plan->npatterns; i++) {
		struct tti_explain explain = {
			.report = report,
			.pattern = &plan->patterns[i],
			.nets = plan->nnodes > 1,
			.config = { .pattern = plan->patterns[i].pattern,
				    .cross_nic = report->config->cross_nic,
				    .both_ways = report->config->both_ways,
				    .max_channels = report->config->max_channels,
				    .budget_ms = report->config->budget_ms },
			.out = out,
		};

		if (!is_wanted(report, plan->patterns[i].pattern))
			continue;
		tti_strbuf_add(out, out->len ? "\n" : "");
		st = explain_pattern(&explain);
		tti_local_free(explain.search);
		tti_loads_free(explain.loads);
	}
	return st;
}

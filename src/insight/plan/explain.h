/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_EXPLAIN_H
#define TTI_PLAN_EXPLAIN_H

/* The inside of tti_plan_explain(): one pattern at the node that limits it, searched
 * again so that the price of each link is known.
 * Threads: one explanation, one thread. */

#include "insight/plan/plan_report.h"
#include "plan/plan_words.h"

struct tti_explain {
	const struct tti_report *report;
	const struct tti_plan_pattern *pattern;
	const struct tti_job_node *node;
	uint32_t index; /* of the node */
	bool nets;      /* the job has several nodes, so NICs count */
	struct tti_loads *loads;
	struct tti_local *search;
	struct tti_local_config config;
	struct tti_strbuf *out;
};

/* The links that make up the bound, and the gain if they were twice as fast. */
TUTTI_CHECKED tutti_status tti_explain_links(struct tti_explain *explain);
/* The load of each NIC, the NICs that are idle and why, and the GPUs without a NIC near. */
TUTTI_CHECKED tutti_status tti_explain_nics(struct tti_explain *explain);
/* For a single node: the hops that go over NICs. */
TUTTI_CHECKED tutti_status tti_explain_detours(struct tti_explain *explain);
/* The gain of one more NIC at each place that has none. */
TUTTI_CHECKED tutti_status tti_explain_more_nics(struct tti_explain *explain);

/* The loads of a node's endpoints, over routes that may be those of a changed topology. */
TUTTI_CHECKED tutti_status tti_explain_loads(const struct tti_job_node *node,
					     const struct tti_routes *routes, bool nets,
					     struct tti_loads **out);

/* A lower price of a link counts as none. */
#define TTI_LEAST_PRICE 1e-7
/* The names of a member and of a NIC. */
const char *tti_explain_member(const struct tti_explain *explain, uint32_t member);
const char *tti_explain_net(const struct tti_explain *explain, uint32_t net);
/* Whether a hop puts load on a row. */
bool tti_explain_needs(const struct tti_explain *explain, const struct tti_hop *hop, uint32_t row);

#endif

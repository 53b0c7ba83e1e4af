/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "plan/plan.h"
#include "util/error.h"
#include "util/mem.h"

struct checker {
	const struct tti_plan *plan;
	uint32_t *seen; /* by rank or node: the number of the channel that came last */
	uint32_t stamp;
};

static tutti_status breach(const struct tti_plan_pattern *pattern, uint32_t channel,
			   const char *what, uint32_t value)
{
	return tti_fail(TUTTI_EPLAN, "plan: %s channel %u: %s %u",
			tti_pattern_name(pattern->pattern), channel, what, value);
}

/* Each rank once; of heads one a node. */
static tutti_status check_visits(struct checker *c, const struct tti_plan_pattern *pattern,
				 uint32_t at)
{
	const struct tti_plan_channel *channel = &pattern->channels[at];
	const bool heads = tti_pattern_has_heads(pattern->pattern);
	const uint32_t want = heads ? c->plan->nnodes : c->plan->nranks;

	if (channel->nranks != want)
		return breach(pattern, at, heads ? "heads of all nodes are not" : "ranks are not",
			      channel->nranks);
	c->stamp++;
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t rank = channel->ranks[i];
		const uint32_t key = rank >= c->plan->nranks ? 0
				     : heads                 ? c->plan->ranks[rank].node
							     : rank;

		if (rank >= c->plan->nranks)
			return breach(pattern, at, "there is no rank", rank);
		if (c->seen[key] == c->stamp)
			return breach(pattern, at,
				      heads ? "two heads on a node, one is rank" : "twice rank",
				      rank);
		c->seen[key] = c->stamp;
	}
	return TUTTI_OK;
}

/* Parents come first, so there is no circle; one root, or one a node. */
static tutti_status check_parents(struct checker *c, const struct tti_plan_pattern *pattern,
				  uint32_t at)
{
	const struct tti_plan_channel *channel = &pattern->channels[at];
	const uint32_t want = pattern->pattern == TTI_PATTERN_COLLNET_CHAIN ? c->plan->nnodes : 1;
	uint32_t nroots = 0;

	c->stamp++;
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t rank = channel->ranks[i], parent = channel->parent[rank];

		nroots += parent == UINT32_MAX;
		if (parent != UINT32_MAX &&
		    (parent >= c->plan->nranks || c->seen[parent] != c->stamp))
			return breach(pattern, at, "comes before its parent: rank", rank);
		c->seen[rank] = c->stamp;
	}
	if (nroots != want)
		return breach(pattern, at, "roots:", nroots);
	return TUTTI_OK;
}

/* A ring leaves a node only when it is through with it. */
static tutti_status check_nodes_in_a_row(struct checker *c, const struct tti_plan_pattern *pattern,
					 uint32_t at)
{
	const struct tti_plan_channel *channel = &pattern->channels[at];

	c->stamp++;
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t node = c->plan->ranks[channel->ranks[i]].node;
		const bool stays = i > 0 && c->plan->ranks[channel->ranks[i - 1]].node == node;

		if (!stays && c->seen[node] == c->stamp)
			return breach(pattern, at, "comes back to node", node);
		c->seen[node] = c->stamp;
	}
	return TUTTI_OK;
}

static tutti_status check_ends(const struct checker *c, const struct tti_plan_pattern *pattern,
			       uint32_t at)
{
	const struct tti_plan_channel *channel = &pattern->channels[at];

	if (!channel->ends != (c->plan->nnodes == 1))
		return breach(pattern, at,
			      "NICs are missing, or too many; nodes:", c->plan->nnodes);
	for (uint32_t node = 0; channel->ends && node < c->plan->nnodes; node++) {
		const int32_t nnets = (int32_t)c->plan->nodes[node].nnets;
		const struct tti_plan_end end = channel->ends[node];

		if (end.in < 0 || end.in >= nnets || end.out < 0 || end.out >= nnets)
			return breach(pattern, at, "there is no such NIC at node", node);
	}
	return TUTTI_OK;
}

/* Hops that leave the only node by a NIC and come back by another. */
static tutti_status check_ways(const struct checker *c, const struct tti_plan_pattern *pattern,
			       uint32_t at)
{
	const struct tti_plan_channel *channel = &pattern->channels[at];
	const int32_t nnets = (int32_t)c->plan->nodes[0].nnets;

	if (!channel->ways)
		return TUTTI_OK;
	if (c->plan->nnodes > 1 || tti_pattern_has_heads(pattern->pattern))
		return breach(pattern, at,
			      "hops inside a node go over NICs; nodes:", c->plan->nnodes);
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t rank = channel->ranks[i];
		const struct tti_plan_end way = channel->ways[rank];

		if (way.out == -1 && way.in == -1)
			continue;
		if (way.in < 0 || way.in >= nnets || way.out < 0 || way.out >= nnets ||
		    way.in == way.out)
			return breach(pattern, at,
				      "goes over NICs that are no two of the node to rank", rank);
		if (tti_plan_before(channel, i) == UINT32_MAX)
			return breach(pattern, at, "goes over NICs, from nowhere, to rank", rank);
	}
	return TUTTI_OK;
}

/* The inner nodes of one tree of a pair are leaves of the other. */
static tutti_status check_pair(struct checker *c, const struct tti_plan_pattern *pattern,
			       uint32_t at)
{
	const struct tti_plan *plan = c->plan;
	uint32_t nboth = 0;

	c->stamp += 2;
	for (uint32_t second = 0; second < 2; second++) {
		const struct tti_plan_channel *channel = &pattern->channels[at + second];

		for (uint32_t rank = 0; rank < plan->nranks; rank++) {
			const uint32_t parent = channel->parent[rank];
			uint32_t *seen;

			if (parent == UINT32_MAX ||
			    plan->ranks[parent].node == plan->ranks[rank].node)
				continue;
			seen = &c->seen[plan->ranks[parent].node];
			nboth += second && *seen == c->stamp - 1;
			*seen = c->stamp - 1 + second;
		}
	}
	if (nboth > 2 || pattern->channels[at].bw_gbps != pattern->channels[at + 1].bw_gbps)
		return breach(pattern, at, "and the next are no pair; nodes inside both:", nboth);
	return TUTTI_OK;
}

static tutti_status check_pattern(struct checker *c, const struct tti_plan_pattern *pattern)
{
	const bool in_pairs = tti_trees_in_pairs(pattern->pattern, c->plan->nnodes);
	double total = 0;

	if (pattern->nchannels == 0 || (in_pairs && pattern->nchannels % 2))
		return breach(pattern, 0, "channels:", pattern->nchannels);
	for (uint32_t at = 0; at < pattern->nchannels; at++) {
		const struct tti_plan_channel *channel = &pattern->channels[at];
		const bool tree = pattern->pattern != TTI_PATTERN_RING &&
				  !tti_pattern_has_heads(pattern->pattern);

		if (!(channel->bw_gbps > 0) || !isfinite(channel->bw_gbps))
			return breach(pattern, at, "carries nothing, as channel", at);
		if (tree != (channel->parent != NULL))
			return breach(pattern, at, "parents are missing, or too many, in channel",
				      at);
		TTI_TRY(check_visits(c, pattern, at));
		TTI_TRY(check_ends(c, pattern, at));
		if (tree)
			TTI_TRY(check_parents(c, pattern, at));
		TTI_TRY(check_ways(c, pattern, at));
		if (pattern->pattern == TTI_PATTERN_RING)
			TTI_TRY(check_nodes_in_a_row(c, pattern, at));
		if (in_pairs && at % 2 == 1)
			TTI_TRY(check_pair(c, pattern, at - 1));
		total += (double)channel->bw_gbps;
	}
	if (fabs(total - pattern->total_gbps) > 1e-3 * (1 + total) ||
	    total > pattern->bound_gbps * (1 + 1e-5) + 1e-3)
		return tti_fail(TUTTI_EPLAN,
				"plan: %s channels add up to %.3f GB/s; the total says %.3f, the "
				"bound %.3f",
				tti_pattern_name(pattern->pattern), total, pattern->total_gbps,
				pattern->bound_gbps);
	return TUTTI_OK;
}

tutti_status tti_plan_check(const struct tti_plan *plan)
{
	struct checker c = { .plan = plan };
	tutti_status st = TUTTI_OK;

	c.seen = tti_calloc((size_t)plan->nranks + plan->nnodes, sizeof(*c.seen));
	if (!c.seen)
		return tti_fail(TUTTI_ENOMEM, "check of a plan: out of memory");
	for (uint32_t i = 0; st == TUTTI_OK && i < plan->npatterns; i++)
		st = check_pattern(&c, &plan->patterns[i]);
	tti_free(c.seen);
	return st;
}

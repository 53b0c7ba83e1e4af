/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/shape.h"
#include "core/init/agree.h"
#include "plan/plan.h"
#include "util/error.h"
#include "util/strbuf.h"

/* The plan in use, for people. */

/* Lists of ranks are cut here. */
#define MOST_RANKS 64

static void add_total(const struct tti_plan_pattern *pattern, struct tti_strbuf *out)
{
	const char *name = tti_pattern_name(pattern->pattern);

	if (pattern->total_gbps >= TTI_LOC_GBPS) {
		tti_strbuf_addf(out, "%s inside one NUMA node", name);
		return;
	}
	tti_strbuf_addf(out, "%s %.4g GB/s of at most %.4g", name, pattern->total_gbps,
			pattern->bound_gbps);
	if (pattern->limit && pattern->limit[0])
		tti_strbuf_addf(out, " (%s)", pattern->limit);
}

static void add_channels(const struct tti_shape *shape, struct tti_strbuf *out)
{
	tti_strbuf_addf(out, "%u ring%s, %u tree%s, %u group%s", shape->nrings,
			shape->nrings == 1 ? "" : "s", shape->ntrees, shape->ntrees == 1 ? "" : "s",
			shape->ngroups, shape->ngroups == 1 ? "" : "s");
}

void tti_agreed_sum_up(const struct tti_agreed *agreed, struct tti_strbuf *out)
{
	static const enum tti_pattern told[] = { TTI_PATTERN_RING, TTI_PATTERN_TREE };
	const struct tti_plan *plan = agreed->plan;

	tti_strbuf_addf(out, "%u ranks on %u node%s", plan->nranks, plan->nnodes,
			plan->nnodes == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const struct tti_plan_pattern *pattern = tti_plan_pattern(plan, told[i]);

		if (!pattern)
			continue;
		tti_strbuf_add(out, ", ");
		add_total(pattern, out);
	}
	tti_strbuf_add(out, "; in use: ");
	add_channels(agreed->shape, out);
}

static void add_ranks(const uint32_t *ranks, uint32_t n, struct tti_strbuf *out)
{
	for (uint32_t i = 0; i < n && i < MOST_RANKS; i++)
		tti_strbuf_addf(out, " %u", ranks[i]);
	if (n > MOST_RANKS)
		tti_strbuf_addf(out, " ... (%u)", n);
}

/* Each rank (NULL: all, by number) and the one that it hangs on. */
static void add_tree(const uint32_t *ranks, uint32_t n, const uint32_t *parent,
		     struct tti_strbuf *out)
{
	for (uint32_t i = 0; i < n && i < MOST_RANKS; i++) {
		const uint32_t rank = ranks ? ranks[i] : i;

		if (parent[rank] == UINT32_MAX)
			tti_strbuf_addf(out, " %u", rank);
		else
			tti_strbuf_addf(out, " %u<%u", parent[rank], rank);
	}
	if (n > MOST_RANKS)
		tti_strbuf_addf(out, " ... (%u)", n);
}

static void add_node(const struct tti_plan *plan, uint32_t index, struct tti_strbuf *out)
{
	const struct tti_plan_node *node = &plan->nodes[index];

	tti_strbuf_addf(out, "node %u %s: ranks", index, node->name);
	add_ranks(node->ranks, node->nranks, out);
	for (uint32_t net = 0; net < node->nnets; net++)
		tti_strbuf_addf(out, "%s%s", net ? ", " : "; NIC ", node->nets[net]);
	tti_strbuf_add(out, "\n");
}

static void add_plan(const struct tti_agreed *agreed, struct tti_strbuf *out)
{
	const struct tti_plan *plan = agreed->plan;

	tti_agreed_sum_up(agreed, out);
	tti_strbuf_add(out, "\n");
	for (uint32_t node = 0; node < plan->nnodes; node++)
		add_node(plan, node, out);
	for (uint32_t i = 0; i < plan->npatterns; i++) {
		const struct tti_plan_pattern *pattern = &plan->patterns[i];

		add_total(pattern, out);
		tti_strbuf_add(out, "\n");
		for (uint32_t k = 0; k < pattern->nchannels; k++) {
			const struct tti_plan_channel *channel = &pattern->channels[k];

			tti_strbuf_addf(out, "  %.4g GB/s%s:", (double)channel->bw_gbps,
					channel->parent ? ", parent<child" : "");
			if (channel->parent)
				add_tree(channel->ranks, channel->nranks, channel->parent, out);
			else
				add_ranks(channel->ranks, channel->nranks, out);
			tti_strbuf_add(out, "\n");
		}
	}
}

tutti_status tti_agreed_print(const struct tti_agreed *agreed, bool json, struct tti_strbuf *out)
{
	if (agreed->plan && json)
		return tti_plan_json(agreed->plan, out);
	if (agreed->plan)
		add_plan(agreed, out);
	else
		tti_strbuf_add(out, json ? "null\n"
					 : "nothing to plan, or no solver to plan with: "
					   "ranks go by number\n");
	return out->failed ? tti_fail(TUTTI_ENOMEM, "plan as text: out of memory") : TUTTI_OK;
}

/* The part of the root's plan that a child has. */
static void add_shape(const struct tti_shape *shape, struct tti_strbuf *out)
{
	tti_strbuf_addf(out,
			"%u ranks of a communicator with a plan, which holds as far as they go: ",
			shape->n);
	add_channels(shape, out);
	tti_strbuf_add(out, "\n");
	for (uint32_t group = 0; group < shape->ngroups; group++) {
		tti_strbuf_addf(out, "group %u: ranks", group);
		add_ranks(&shape->members[shape->first_member[group]], shape->group_size[group],
			  out);
		tti_strbuf_add(out, "\n");
	}
	for (uint32_t ring = 0; ring < shape->nrings; ring++) {
		tti_strbuf_addf(out, "ring, share %u:", shape->rings[ring].share);
		add_ranks(shape->rings[ring].order, shape->n, out);
		tti_strbuf_add(out, "\n");
	}
	for (uint32_t tree = 0; tree < shape->ntrees; tree++) {
		tti_strbuf_addf(out, "tree, share %u, parent<child:", shape->trees[tree].share);
		add_tree(NULL, shape->n, shape->trees[tree].parent, out);
		tti_strbuf_add(out, "\n");
	}
}

tutti_status tti_derived_print(const struct tti_shape *shape, int n, bool json,
			       struct tti_strbuf *out)
{
	if (json)
		tti_strbuf_add(out, "null\n");
	else if (shape)
		add_shape(shape, out);
	else
		tti_strbuf_add(out,
			       n == 1 ? "nothing to plan: one rank\n"
				      : "nothing to plan: all of its ranks are on one host and "
					"go by number\n");
	return out->failed ? tti_fail(TUTTI_ENOMEM, "plan as text: out of memory") : TUTTI_OK;
}

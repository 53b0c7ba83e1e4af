/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"
#include "topo/paths/paths.h"
#include "util/error.h"
#include "util/json.h"

/* A channel stands on one line, so that a person can edit it. */

static void add_list(struct tti_json *json, const char *key, const uint32_t *list, uint32_t n)
{
	tti_json_open(json, key, "[");
	for (uint32_t i = 0; i < n; i++)
		tti_json_addf(json, NULL, "%d", (int)list[i]); /* UINT32_MAX: -1 */
	tti_json_close(json);
}

/* By node: [in, out]. */
static void add_ends(struct tti_json *json, const struct tti_plan *plan,
		     const struct tti_plan_end *ends)
{
	tti_json_open(json, "nets", "[");
	for (uint32_t node = 0; ends && node < plan->nnodes; node++) {
		tti_json_open(json, NULL, "[");
		tti_json_text(json, NULL, plan->nodes[node].nets[ends[node].in]);
		tti_json_text(json, NULL, plan->nodes[node].nets[ends[node].out]);
		tti_json_close(json);
	}
	tti_json_close(json);
}

/* [from, "out", "in", to] of each hop that leaves the node and comes back. */
static void add_ways(struct tti_json *json, const struct tti_plan *plan,
		     const struct tti_plan_channel *channel)
{
	const char **nets = plan->nodes[0].nets;

	tti_json_open(json, "over_nets", "[");
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t to = channel->ranks[i];

		if (tti_plan_hop_is_direct(channel, to))
			continue;
		tti_json_open(json, NULL, "[");
		tti_json_addf(json, NULL, "%u", tti_plan_before(channel, i));
		tti_json_text(json, NULL, nets[channel->ways[to].out]);
		tti_json_text(json, NULL, nets[channel->ways[to].in]);
		tti_json_addf(json, NULL, "%u", to);
		tti_json_close(json);
	}
	tti_json_close(json);
}

static void add_channel(struct tti_json *json, const struct tti_plan *plan,
			const struct tti_plan_channel *channel)
{
	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "bw_gbps", "%.5f", (double)channel->bw_gbps);
	add_list(json, "ranks", channel->ranks, channel->nranks);
	if (channel->parent)
		add_list(json, "parents", channel->parent, plan->nranks);
	add_ends(json, plan, channel->ends);
	if (channel->ways)
		add_ways(json, plan, channel);
	tti_json_text(json, "type_intra",
		      tti_path_type_name((enum tti_path_type)channel->type_intra));
	tti_json_text(json, "type_inter",
		      tti_path_type_name((enum tti_path_type)channel->type_inter));
	tti_json_close(json);
}

static void add_pattern(struct tti_json *json, const struct tti_plan *plan,
			const struct tti_plan_pattern *pattern)
{
	tti_json_open(json, tti_pattern_name(pattern->pattern), " {");
	tti_json_addf(json, "total_bw_gbps", "%.5f", pattern->total_gbps);
	tti_json_addf(json, "bound_bw_gbps", "%.5f", pattern->bound_gbps);
	tti_json_addf(json, "search_ms", "%.3f", pattern->search_ms);
	tti_json_addf(json, "cross_nic", "%d", (int)pattern->cross_nic);
	tti_json_text(json, "limit", pattern->limit);
	tti_json_open(json, "channels", "[\n");
	for (uint32_t i = 0; i < pattern->nchannels; i++)
		add_channel(json, plan, &pattern->channels[i]);
	tti_json_close(json);
	tti_json_close(json);
}

static void add_node(struct tti_json *json, const struct tti_plan *plan,
		     const struct tti_plan_node *node)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "name", node->name);
	tti_json_addf(json, "kind", "%u", node->kind);
	add_list(json, "ranks", node->ranks, node->nranks);
	tti_json_open(json, "endpoints", "[");
	for (uint32_t i = 0; i < node->nranks; i++)
		tti_json_text(json, NULL, plan->ranks[node->ranks[i]].name);
	tti_json_close(json);
	tti_json_open(json, "nets", "[");
	for (uint32_t i = 0; i < node->nnets; i++)
		tti_json_text(json, NULL, node->nets[i]);
	tti_json_close(json);
	tti_json_close(json);
}

tutti_status tti_plan_json(const struct tti_plan *plan, struct tti_strbuf *out)
{
	struct tti_json json = { .out = out };

	tti_json_open(&json, NULL, "{\n");
	tti_json_addf(&json, "nodes", "%u", plan->nnodes);
	tti_json_addf(&json, "ranks", "%u", plan->nranks);
	tti_json_open(&json, "hosts", "[\n");
	for (uint32_t node = 0; node < plan->nnodes; node++)
		add_node(&json, plan, &plan->nodes[node]);
	tti_json_close(&json);
	tti_json_open(&json, "patterns", "{\n");
	for (uint32_t i = 0; i < plan->npatterns; i++)
		add_pattern(&json, plan, &plan->patterns[i]);
	tti_json_close(&json);
	tti_json_close(&json);
	tti_strbuf_add(out, "\n");
	return out->failed ? tti_fail(TUTTI_ENOMEM, "plan as text: out of memory") : TUTTI_OK;
}
